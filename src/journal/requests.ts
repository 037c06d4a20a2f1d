import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { existingSchema } from '../config/schema.js';
import type { Database } from './database.js';

const id = z.int().positive();

/** What people decide about runs that labfeed will not guess about, as it stands in the inbox. */
export const requestSchema = z.discriminatedUnion('kind', [
  /** Goes on where it stood; what is quarantined is read anew. */
  z.strictObject({ kind: z.literal('retry'), run: id }),
  /** This experiment is the run's, whatever it holds. */
  z.strictObject({ kind: z.literal('adopt'), run: id, server: z.string(), experiment: id }),
  /** Files it once more, as a run of its own. */
  z.strictObject({ kind: z.literal('refile'), run: id }),
  /** Sets it aside: it is not filed. */
  z.strictObject({ kind: z.literal('ignore'), run: id }),
  /** Removes all of it but what it is known by. */
  z.strictObject({ kind: z.literal('erase'), run: id }),
  /** What is to become of the old files that an instrument's first scan found. */
  z.strictObject({ kind: z.literal('backfill'), instrument: z.string(), existing: existingSchema }),
  /** Posts again what is gone: each comment with the id under which it was missed. Without any: goes on at once. */
  z.strictObject({
    kind: z.literal('repair'),
    run: id,
    comments: z.array(z.strictObject({ n: id, comment: id })).readonly(),
  }),
  /** Reads the file of a done run anew, and has its experiment and comments revised. */
  z.strictObject({ kind: z.literal('remap'), run: id }),
]);

export type Request = z.output<typeof requestSchema>;

/** What a request is about, for people. */
export const subjectOf = (request: Request): string =>
  'run' in request ? `run ${request.run}` : request.instrument;

export const answerSchema = z.strictObject({
  /** Whether it was carried out. What is refused has changed nothing. */
  done: z.boolean(),
  /** What became of it, for people. */
  text: z.string(),
  /** The instrument whose folder holds what is to be read anew. */
  rescan: z.string().optional(),
});

export type Answer = z.output<typeof answerSchema>;

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

/** A share that hangs must not keep people's other requests waiting. */
const PATIENCE_MS = 3000;

interface Source {
  /** Bytes that are not UTF-8 stand in it as `\xNN`. */
  readonly path: string;
  readonly size: number;
}

/** Whether a run's file is still where it was taken from, as far as its size tells. */
export const isStillThere = async (source: Source): Promise<boolean> =>
  (await patiently(() => atEither(source.path, async (place) => (await stat(place)).size === source.size))) ??
  false;

/** What is where a run's file was. */
export interface SourceState {
  readonly path: string;
  readonly has: 'nothing' | 'otherBytes' | 'itsBytes';
}

/**
 * The first of these places that has the run's bytes, or else what the first one has. Where that takes too long to find
 * out, they are taken to be there: whoever reads the file hashes it again.
 */
export async function findSource(
  { size, sha256 }: { readonly size: number; readonly sha256: string },
  paths: readonly [string, ...string[]],
): Promise<SourceState> {
  const states: SourceState[] = [];
  for (const path of paths) {
    const look = (): Promise<SourceState['has']> =>
      atEither(path, async (place) => {
        const found = await stat(place);
        if (!found.isFile() || found.size !== size) return 'otherBytes';
        return (await hashOf(place)) === sha256 ? 'itsBytes' : 'otherBytes';
      }).catch(() => 'nothing');
    const state = { path, has: (await patiently(look)) ?? 'itsBytes' } as const;
    if (state.has === 'itsBytes') return state;
    states.push(state);
  }
  return states[0] ?? { path: paths[0], has: 'nothing' };
}

/** Undefined where it takes too long. */
async function patiently<T>(look: () => Promise<T>): Promise<T | undefined> {
  const given = new AbortController();
  const patience = delay(PATIENCE_MS, undefined, { signal: given.signal }).catch(() => undefined);
  const found = await Promise.race([look().catch(() => undefined), patience]);
  given.abort();
  return found;
}

/** By its name, or by the bytes that the name stands for. */
const atEither = <T>(path: string, look: (place: string | Buffer) => Promise<T>): Promise<T> =>
  Promise.any((path.includes('\\x') ? [path, bytesOf(path)] : [path]).map(look));

async function hashOf(place: string | Buffer): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(place)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function bytesOf(path: string): Buffer {
  const parts = path.split(/\\x([0-9A-F]{2})/);
  return Buffer.concat(parts.map((part, index) => Buffer.from(part, index % 2 === 0 ? 'utf8' : 'hex')));
}
