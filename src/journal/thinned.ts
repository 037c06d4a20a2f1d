import { z } from 'zod';
import type { DiskFile } from '../model.js';
import type { Database } from './database.js';
import { signed } from './files.js';
import { hiddenPath } from './hidden.js';

const filedRow = z.object({ id: z.number(), path: z.string(), files: z.number() });

type Filed = z.output<typeof filedRow>;

/**
 * The filed run of which these files are what is left: some of its files were taken away since, or no longer count. All
 * of them, with other bytes, are a run of their own.
 */
export function createThinnedOf(
  database: Database,
): (instrument: string, parts: readonly DiskFile[]) => Filed | undefined {
  // Where the quick look was made to look again, the time is gone: size and inode are what is left of it.
  const find = database.prepare(
    `SELECT id, runs.path, (SELECT count(*) FROM files AS all_of_it WHERE all_of_it.run = id) AS files
       FROM files JOIN runs ON runs.id = run WHERE files.instrument = ? AND files.path IN (?, ?)
         AND files.size = ? AND inode = ? AND mtime_ns IN (?, -1) AND experiment IS NOT NULL`,
  );

  return (instrument, parts) => {
    const runs = parts.map(({ path, size, inode, mtimeNs }): Filed | undefined => {
      const row = find.get(instrument, path, hiddenPath(instrument, path), size, signed(inode), mtimeNs);
      return row === undefined ? undefined : filedRow.parse(row);
    });
    const [first] = runs;
    const isRest = first !== undefined && parts.length < first.files;
    return isRest && runs.every((run) => run?.id === first.id) ? first : undefined;
  };
}
