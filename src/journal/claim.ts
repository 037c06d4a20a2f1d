import { basename } from 'node:path';
import { z } from 'zod';
import { referenceOf, refilingsOf } from '../markers.js';
import type { IdentifiedFile } from '../model.js';
import type { Commit } from './commit.js';
import type { Database } from './database.js';
import { hiddenCopy } from './hidden.js';

interface Copy {
  readonly instrument: string;
  readonly file: IdentifiedFile;
  /** Its path, where equal bytes at other paths are runs of their own; else empty. */
  readonly copy: string;
}

const rowSchema = z.object({ id: z.number(), refiling: z.number(), reference: z.string(), path: z.string() });

/**
 * The notebook does not say which of several equal files an experiment came from. A run that was recovered from there
 * belongs to the file that its reference was made for; where it bears none, to the first file of its name.
 */
export function createClaim(database: Database, commit: Commit): (copy: Copy) => Promise<boolean> {
  const unclaimed = database.prepare(
    `SELECT id, refiling, reference, path FROM runs WHERE instrument = ? AND sha256 = ? AND copy = '' AND mapping = ''
       AND step = 'done' AND NOT EXISTS (SELECT 1 FROM files WHERE run = runs.id) ORDER BY refiling`,
  );
  const claim = database.prepare('UPDATE runs SET copy = ?, refiling = ? WHERE id = ?');

  function find({ instrument, file: { sha256, path }, copy }: Copy): { id: number; refiling: number }[] {
    const rows = unclaimed.all(instrument, sha256).map((row) => rowSchema.parse(row));
    if (rows.length === 0) return [];
    // One that was filed anew after it was erased bears a reference of the hidden path.
    const hidden = refilingsOf({ instrument, sha256, copy: hiddenCopy({ instrument, sha256, copy }) });
    const own = new Map([...hidden, ...refilingsOf({ instrument, sha256, copy })]);
    const certain = rows.flatMap(({ id, reference }) => {
      const refiling = own.get(reference);
      return refiling === undefined ? [] : [{ id, refiling }];
    });
    if (certain.length > 0) return certain;
    const likely = rows.find(
      ({ refiling, reference, path: name }) =>
        name === basename(path) && reference === referenceOf({ instrument, sha256, copy: '', refiling }),
    );
    return likely ? [{ id: likely.id, refiling: 0 }] : [];
  }

  return async (run) => {
    if (run.copy === '' || find(run).length === 0) return false;
    return commit(() => {
      const found = find(run);
      for (const { id, refiling } of found) claim.run(run.copy, refiling, id);
      return found.length > 0;
    });
  };
}
