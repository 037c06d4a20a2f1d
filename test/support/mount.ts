import { execFileSync, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { until } from './until.js';

/**
 * Mounts something, and unmounts it after the test. Returns a function that unmounts it before. Mounting needs root and a
 * system that permits it: elsewhere, the test is skipped.
 */
export function mount(folder: string, args: readonly string[], skip: (note?: string) => void): () => void {
  try {
    execFileSync('mount', [...args, folder], { stdio: 'ignore' });
  } catch {
    skip(`cannot mount here: mount ${args.join(' ')}`);
  }
  let isMounted = true;
  const unmount = (): void => {
    if (isMounted) execFileSync('umount', ['--lazy', folder], { stdio: 'ignore' });
    isMounted = false;
  };
  onTestFinished(unmount);
  return unmount;
}

export const TMPFS = ['-t', 'tmpfs', 'labfeed-test'];

const SHARE = fileURLToPath(new URL('./share.py', import.meta.url));

/** A real network file system on this machine, with faults. */
interface Share {
  /** Words that `share.py` knows; none for a share without faults. */
  setFaults(...words: string[]): void;
  /** The program behind the share dies: "transport endpoint is not connected". */
  die(): void;
  unmount(): void;
}

/** Skips the test where there is no FUSE. */
export async function mountShare(source: string, at: string, skip: (note?: string) => void): Promise<Share> {
  const faults = `${source}.faults`;
  writeFileSync(faults, '');
  const server = spawn('/usr/bin/python3', [SHARE, source, at, faults], { stdio: 'ignore' });
  let isOver = false;
  server.once('error', () => {
    isOver = true;
  });
  server.once('exit', () => {
    isOver = true;
  });
  const unmount = (): void => {
    try {
      execFileSync('umount', ['--lazy', at], { stdio: 'ignore' });
    } catch {
      // It was unmounted before.
    }
  };
  onTestFinished(() => {
    server.kill('SIGKILL');
    unmount();
  });
  const isMounted = () => existsSync('/dev/fuse') && execFileSync('mount').includes(` on ${at} `);
  await until('the share is mounted, or cannot be', () => isOver || isMounted(), 30_000);
  if (!isMounted()) skip('needs root, /dev/fuse and python3-fusepy');
  return {
    setFaults: (...words) => writeFileSync(faults, words.join(' ')),
    die: () => void server.kill('SIGKILL'),
    unmount,
  };
}
