import { z } from 'zod';
import { type DiskFile, RUN_STATES } from '../model.js';
import { openBeside } from './client.js';
import { type Database, flag, nullable } from './database.js';
import { createCopyOf, signed } from './files.js';
import { stateOf } from './migrations.js';

/** A run that the journal has as done, with the experiment that should prove it. */
export type FiledRun = z.output<typeof filedRow>;

/** What was sent of a run. */
export interface Filing {
  /** Unknown where the run was recovered from the notebook, or erased. */
  readonly draft: { readonly title: string; readonly date: string; readonly body: string } | undefined;
  /** The text is empty where it is not known. */
  readonly comments: readonly {
    readonly n: number;
    readonly text: string;
    readonly comment: number | undefined;
  }[];
}

/** A run that is not, or not yet, in the notebook. */
export type UnfiledRun = z.output<typeof unfiledRow>;

/** What the journal knows of a file: by its path, or by its content. */
export type KnownRun = z.output<typeof knownRow>;

export interface KnownPath {
  readonly verdict: 'taken' | 'skipped' | 'asked';
  readonly run: KnownRun | undefined;
  /** Whether the quick look finds it as it was. */
  readonly isUntouched: boolean;
}

interface Content {
  readonly instrument: string;
  readonly sha256: string;
  /** The path, where equal bytes at other paths are runs of their own; else empty. */
  readonly copy: string;
}

/** What the journal says, for who holds it against the folders and the notebook. No list is in memory as a whole. */
export interface Evidence {
  /** Also of those that are no longer in the configuration. */
  instruments(): Promise<string[]>;
  countFiled(instrument: string | undefined): Promise<number>;
  /** The oldest first, as they are when their turn comes. */
  filed(instrument: string | undefined): AsyncIterable<FiledRun>;
  filingOf(run: number): Promise<Filing>;
  unfiled(instrument: string | undefined): AsyncIterable<UnfiledRun>;
  atPath(instrument: string, file: DiskFile): Promise<KnownPath | undefined>;
  /** The last filing of this content. */
  ofContent(content: Content): Promise<KnownRun | undefined>;
  server(url: string): Promise<ServerEvidence>;
  close(): Promise<void>;
}

interface ServerEvidence {
  readonly dialect: string | undefined;
  /** Why nothing is sent there. */
  readonly halted: string | undefined;
  /** Experiments that labfeed made and no run uses yet. */
  readonly spares: readonly number[];
}

/** Empty in the journal where it was erased. */
const name = z.string().transform((path) => path || undefined);
const filedRow = z.object({
  id: z.number(),
  instrument: z.string(),
  sha256: z.string(),
  reference: z.string(),
  path: name,
  server: nullable(z.string()),
  experiment: nullable(z.number()),
});
const draftRow = z.object({ title: z.string(), date: z.string(), body: z.string() });
const commentRow = z.object({ n: z.number(), text: z.string(), comment: nullable(z.number()) });
const unfiledRow = z.object({
  id: z.number(),
  instrument: z.string(),
  path: name,
  state: z.enum(RUN_STATES),
  experiment: nullable(z.number()),
  reason: nullable(z.string()),
  attempts: z.number(),
});
const knownRow = z.object({
  id: z.number(),
  sha256: z.string(),
  state: z.enum(RUN_STATES),
  experiment: nullable(z.number()),
});
const pathRow = z.object({
  verdict: z.enum(['taken', 'skipped', 'asked']),
  run: nullable(z.number()),
  isUntouched: flag,
});
const serverRow = z.object({ dialect: nullable(z.string()), halted: nullable(z.string()) });

/** So many rows at a time: between them, whoever writes the journal is not kept from tidying it up. */
const PAGE = 500;

const OF_INSTRUMENT = '(?2 IS NULL OR instrument = ?2)';

export const openEvidence = (path: string): Evidence => createEvidence(openBeside(path));

export function createEvidence(database: Database): Evidence {
  const instruments = database.prepare('SELECT DISTINCT instrument FROM tallies ORDER BY 1');
  const count = database.prepare(
    "SELECT ifnull(sum(runs), 0) AS runs FROM tallies WHERE state = 'done' AND (?1 IS NULL OR instrument = ?1)",
  );
  const filed = database.prepare(
    `SELECT id, instrument, sha256, reference, path, server, experiment FROM runs
       WHERE id > ?1 AND step = 'done' AND resting IS NULL AND ${OF_INSTRUMENT} ORDER BY id LIMIT ${PAGE}`,
  );
  const unfiled = database.prepare(
    `SELECT id, instrument, path, ${stateOf('runs')} AS state, experiment, reason, attempts FROM runs
       WHERE id > ?1 AND (step <> 'done' OR resting IS NOT NULL) AND resting IS NOT 'ignored' AND ${OF_INSTRUMENT}
       ORDER BY id LIMIT ${PAGE}`,
  );
  const draft = database.prepare('SELECT title, date, body FROM drafts WHERE run = ?');
  const comments = database.prepare('SELECT n, text, comment FROM comments WHERE run = ? ORDER BY n');
  // A run whose file is to be read anew still needs it.
  const known = `SELECT id, sha256, CASE WHEN id IN (SELECT run FROM remaps) THEN 'queued' ELSE ${stateOf('runs')} END AS state,
    experiment FROM runs`;
  const byId = database.prepare(`${known} WHERE id = ?`);
  const byContent = database.prepare(
    `${known} WHERE instrument = ? AND sha256 = ? AND copy = ? ORDER BY refiling DESC LIMIT 1`,
  );
  const copyOf = createCopyOf(database);
  const atPath = database.prepare(
    `SELECT verdict, run, size = ? AND mtime_ns = ? AND inode = ? AS isUntouched FROM files
       WHERE instrument = ? AND path = ?`,
  );
  const server = database.prepare('SELECT dialect, halted FROM servers WHERE url = ?');
  const spares = database.prepare('SELECT experiment FROM spares WHERE server = ? ORDER BY experiment');

  function knownAs(row: unknown): KnownRun | undefined {
    return row === undefined ? undefined : knownRow.parse(row);
  }

  return {
    instruments: async () => (instruments.all() as { instrument: string }[]).map((row) => row.instrument),
    countFiled: async (instrument) => (count.get(instrument ?? null) as { runs: number }).runs,
    filed: (instrument) =>
      inPages((after) => filed.all(after, instrument ?? null).map((row) => filedRow.parse(row))),
    unfiled: (instrument) =>
      inPages((after) => unfiled.all(after, instrument ?? null).map((row) => unfiledRow.parse(row))),
    async filingOf(run) {
      const row: unknown = draft.get(run);
      return {
        draft: row === undefined ? undefined : draftRow.parse(row),
        comments: comments.all(run).map((comment) => commentRow.parse(comment)),
      };
    },
    async atPath(instrument, { path, size, mtimeNs, inode }) {
      const row: unknown = atPath.get(size, mtimeNs, signed(inode), instrument, path);
      if (row === undefined) return undefined;
      const { run, ...known } = pathRow.parse(row);
      return { ...known, run: run === undefined ? undefined : knownAs(byId.get(run)) };
    },
    ofContent: async (content) => knownAs(byContent.get(content.instrument, content.sha256, copyOf(content))),
    server: async (url) => ({
      ...serverRow.parse(server.get(url) ?? { dialect: null, halted: null }),
      spares: (spares.all(url) as { experiment: number }[]).map(({ experiment }) => experiment),
    }),
    close: async () => database.close(),
  };
}

async function* inPages<T extends { readonly id: number }>(read: (after: number) => T[]): AsyncGenerator<T> {
  for (let after = 0; ; ) {
    const page = read(after);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}
