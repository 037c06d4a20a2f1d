import { promises } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished } from 'vitest';

/** What goes wrong with file access in a test. */
export interface DiskFaults {
  /** The number of steps until the process "dies": every later step fails. */
  stepsLeft: number;
  /** The code of the system error that a call fails with. */
  fail: (call: string, path: string) => string | undefined;
  /** Called before each call, as other programs that act meanwhile. */
  meanwhile: (call: string, path: string) => void;
}

export class Died extends Error {
  override readonly name = 'Died';
}

export const faults: DiskFaults = { stepsLeft: 0, fail: () => undefined, meanwhile: () => undefined };

export function resetFaults(): void {
  Object.assign(faults, { stepsLeft: Number.POSITIVE_INFINITY, fail: () => undefined, meanwhile: () => undefined });
}

/** One step of the process; also used for records in the journal. */
export function step(): void {
  if (faults.stepsLeft <= 0) throw new Died('killed');
  faults.stepsLeft -= 1;
}

/** A crash before or after any other call leaves the same behind. */
const CHANGES = new Set(['rename', 'link', 'unlink', 'mkdir', 'rmdir', 'chmod', 'utimes', 'open wx']);

const CALLS = [
  ...['rename', 'link', 'unlink', 'mkdir', 'rmdir', 'open', 'lstat', 'stat', 'access'],
  ...['chmod', 'chown', 'utimes', 'realpath'],
] as const;

type Call = (...args: readonly unknown[]) => Promise<unknown>;

let isInstalled = false;

/** Makes all file access of `node:fs/promises` go through the faults, until the test ends. */
export function installFaults(): void {
  resetFaults();
  if (isInstalled) return;
  isInstalled = true;
  const calls = promises as unknown as Record<string, Call>;
  const real = Object.fromEntries(CALLS.map((name) => [name, calls[name] as Call]));
  for (const name of CALLS)
    calls[name] = async (...args) => {
      const path = String(args[0]);
      if (CHANGES.has(name) || CHANGES.has(`${name} ${args[1]}`) || faults.stepsLeft <= 0) step();
      faults.meanwhile(name, path);
      const code = faults.fail(name, path);
      if (code !== undefined) throw Object.assign(new Error(`${code}: ${name} ${path}`), { code });
      return real[name]?.(...args);
    };
  syncBuiltinESMExports();
  onTestFinished(() => {
    Object.assign(promises, real);
    syncBuiltinESMExports();
    isInstalled = false;
  });
}
