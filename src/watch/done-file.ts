import { isUtf8 } from 'node:buffer';
import { posix } from 'node:path';

const PLACEHOLDER = /\{(name|stem)\}/g;

/** Where the done-file of a file is: `{name}.done` beside `a.csv` is `a.csv.done`, `{stem}.ok` is `a.ok`. */
export function doneFileOf(location: string | Buffer, pattern: string): string | Buffer {
  if (typeof location === 'string') return fill(location, pattern);
  // One character a byte, so that a name that is not UTF-8 comes through untouched.
  const filled = Buffer.from(
    fill(location.toString('latin1'), Buffer.from(pattern).toString('latin1')),
    'latin1',
  );
  return isUtf8(filled) ? filled.toString() : filled;
}

/** Matches every path that is a done-file by its name. */
export function doneFileNames(pattern: string): RegExp {
  const name = pattern
    .split(/\{(?:name|stem)\}/)
    .map((literal) => literal.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .join('[^/]+');
  return new RegExp(`(?:^|/)${name}$`);
}

function fill(location: string, pattern: string): string {
  const { dir, base, name } = posix.parse(location);
  // A function, since a name may hold what `replace` takes for an instruction, such as `$&`.
  const beside = pattern.replace(PLACEHOLDER, (_, part: string) => (part === 'name' ? base : name));
  return posix.join(dir, beside);
}
