import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCode } from '../errors.js';

/** Less than this, and the next run may not be recorded. */
const LEAST_FREE_BYTES = 1024 * 1024;

/** Makes the function that says why the journal cannot be written, or is no longer the one that was opened. */
export function createJournalWatch(path: string): () => Promise<string | undefined> {
  let opened: bigint | undefined;

  return async () => {
    try {
      await access(path, constants.R_OK | constants.W_OK);
      await access(dirname(path), constants.W_OK);
      const { ino } = await stat(path, { bigint: true });
      opened ??= ino;
      if (ino !== opened) return `the journal ${path} was replaced while labfeed runs: restart labfeed`;
      const { bavail, bsize } = await statfs(dirname(path));
      return bavail * bsize < LEAST_FREE_BYTES ? `the disk of the journal ${path} is full` : undefined;
    } catch (error) {
      return `the journal ${path} cannot be written (${systemCode(error) ?? error})`;
    }
  };
}
