import { execFileSync } from 'node:child_process';
import { onTestFinished } from 'vitest';

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
