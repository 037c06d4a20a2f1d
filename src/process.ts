import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';

/** Of the program that runs. */
export function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return (manifest as { version: string }).version;
}

/**
 * By itself V8 lets a small heap grow to four times what is in use before it looks for what is not: with a file of
 * 200 MB under way, that is 230 MB for a daemon that needs 160. With this it looks at one and a half times.
 * For who lives long; a command has ended before it matters.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--heap-growing-percent=50');
}

/**
 * A regular expression such as `(a+)+$`, which anybody may write into a mapping, tries 2ⁿ ways on n letters and
 * holds up everything. With this, V8 goes on in linear time once it has gone back 50,000 times.
 * To be called before any expression is used. What that way of matching does not know (looking around, references
 * back) is refused with the configuration where it could explode: see `canExplode`.
 */
export function limitBacktracking(): void {
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
}

/**
 * The first SIGTERM or SIGINT asks the command to end in order, through the signal; a second one ends the process
 * at once. The journal is made for that.
 */
export function onStopRequest(): AbortSignal {
  const stop = new AbortController();
  for (const [name, number] of [
    ['SIGTERM', 15],
    ['SIGINT', 2],
  ] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(128 + number);
      stop.abort();
    });
  }
  return stop.signal;
}

/** Resolves when a stop was asked for. */
export const stopRequested = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
