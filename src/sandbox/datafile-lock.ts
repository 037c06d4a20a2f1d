import { realpathSync, rmSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { LabfeedError } from '../errors.js';
import { lockForLife } from '../filesystem.js';

/** Two notebooks on one file would each count for themselves. Returns how to let go of it. */
export function lockDatafile(path: string): () => void {
  const name = `${realpathSync(path)}.lock`;
  const lock = new DatabaseSync(name);
  if (!lockForLife(lock)) {
    throw new LabfeedError('another sandbox has this data file', {
      where: { file: path },
      hint: 'stop that one first, or choose another file with --data',
    });
  }
  return () => {
    // While it is still held, so that the next one makes its own.
    rmSync(name, { force: true });
    lock.close();
  };
}
