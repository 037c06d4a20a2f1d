import { basename } from 'node:path';
import { z } from 'zod';
import type { Database } from './database.js';
import type { Source } from './source.js';

/** A run as somebody sees it who decides on it. */
export interface Standing extends z.output<typeof standingRow> {
  /** The file by which it is seen whether the run is still where it was: its own, or one of several. */
  readonly source: Source;
}

const standingRow = z.object({
  id: z.number(),
  instrument: z.string(),
  sha256: z.string(),
  copy: z.string(),
  refiling: z.number(),
  path: z.string(),
  size: z.number(),
  step: z.enum(['pending', 'creating', 'created', 'described', 'done']),
  resting: z.enum(['quarantined', 'held', 'ignored']).nullable(),
  failure: z.string().nullable(),
  experiment: z.number().nullable(),
  /** Whether it is known what to send. */
  drafted: z.number().transform((count) => count > 0),
  /** The run as which it was filed anew. */
  refiledAs: z.number().nullable(),
});

const sourceRow = z.object({ path: z.string(), size: z.number() });

export function createStanding(database: Database): (run: number) => Standing | undefined {
  const find = database.prepare(
    `SELECT id, instrument, sha256, copy, refiling, path, size, step, resting, failure, experiment,
            (SELECT count(*) FROM drafts WHERE run = runs.id) AS drafted,
            (SELECT id FROM runs AS later WHERE later.instrument = runs.instrument AND later.sha256 = runs.sha256
               AND later.copy = runs.copy AND later.refiling > runs.refiling
               ORDER BY later.refiling DESC LIMIT 1) AS refiledAs
       FROM runs WHERE id = ?`,
  );
  const part = database.prepare(
    `SELECT path, size FROM files WHERE run = ?1 AND (path = ?2 OR substr(path, 1, length(?2) + 1) = ?2 || '/')
       ORDER BY path LIMIT 1`,
  );
  return (id) => {
    const row: unknown = find.get(id);
    if (row === undefined) return undefined;
    const run = standingRow.parse(row);
    return { ...run, source: sourceRow.parse(part.get(id, run.path) ?? run) };
  };
}

/** Its experiment went when the notebook was set back: nothing of it is there to go on with. */
export const isGone = ({ step, resting }: Standing): boolean => step === 'done' && resting !== null;

/** Its bytes are those of several files together. */
export const hasSeveralFiles = ({ path, size, source }: Standing): boolean =>
  source.path !== path || source.size !== size;

/** Its name, draft and history were removed; only what it is known by is left. */
export const isErased = ({ path }: Standing): boolean => path === '';

export const nameOf = ({ id, path }: Standing): string =>
  path === '' ? `run ${id}` : `run ${id} (${basename(path)})`;

/** Its state in the words that people see. */
export function stateOf(run: Standing): string {
  const { step, resting, experiment, refiledAs } = run;
  if (refiledAs !== null) return `was filed anew, as run ${refiledAs}`;
  if (isErased(run) && resting === 'ignored') return 'was erased';
  if (resting !== null) return `is ${resting}`;
  if (step === 'done') return experiment === null ? 'is done' : `is done, as experiment ${experiment}`;
  return 'is on its way';
}
