import { setFlagsFromString } from 'node:v8';

/**
 * A regular expression such as `(a+)+$`, which anybody may write into a mapping, tries 2ⁿ ways on n letters and
 * holds up everything. With this, V8 goes on in linear time once it has gone back 50,000 times.
 * To be called before any expression is used. What that way of matching does not know (looking around, references
 * back) is refused with the configuration where it could explode: see `canExplode`.
 */
export function limitBacktracking(): void {
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
}
