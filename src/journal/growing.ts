import { z } from 'zod';
import type { FollowedFile } from '../growth.js';
import { erasedPath } from '../markers.js';
import type { DiskFile } from '../model.js';
import { type Connection, nullable, parseRow, parseRows, part, raw } from './database.js';
import { signed } from './intake.js';
import type { Store } from './store.js';

/**
 * The generations of growing files, in the intake half of the journal: which file is followed, and how far. A generation
 * lasts from its first line until other content takes its place.
 */
export type GrowingJournal = ReturnType<typeof createGrowingJournal>;

export type Generation = z.output<typeof generationRow>;

export type NewGeneration = Pick<Generation, 'instrument' | 'path' | 'inode' | 'base' | 'head' | 'tail'> &
  Partial<Omit<Generation, 'id'>>;

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);

const generationRow = z.object({
  id: z.number(),
  instrument: z.string(),
  path: z.string(),
  place: nullable(z.string()),
  state: z.enum(['open', 'rotated', 'closed']),
  inode: z.string().transform(BigInt),
  base: z.number(),
  offset: z.number(),
  lines: z.number(),
  head: bytes,
  tail: bytes,
  low: nullable(z.number()),
  header: nullable(bytes),
  headerEnd: z.number(),
  start: nullable(z.string()),
  nth: z.number(),
  unfinished: z.number(),
  note: nullable(z.string()),
  beganAt: z.number(),
  lookedAt: z.number(),
  grownAt: nullable(z.number()),
});

/** Without what it has of the content: there can be many, and they are listed with each scan. */
const openRow = generationRow.pick({
  ...{ id: true, path: true, place: true, state: true, inode: true, lookedAt: true, grownAt: true },
});

export type OpenGeneration = z.output<typeof openRow>;

/** Inodes as text, because JavaScript's numbers cannot hold all of them. */
const COLUMNS = `id, instrument, path, place, state, CAST(inode AS TEXT) AS inode, base, offset, lines, head, tail, low,
  header, header_end AS headerEnd, start, nth, unfinished, note, began_at AS beganAt, looked_at AS lookedAt,
  grown_at AS grownAt FROM growing`;

export function createGrowingJournal(store: Store) {
  const { db, commit, now } = store;
  return {
    /** The generation that grows at this path, or that was found there after it was rotated. */
    async at(instrument: string, path: string): Promise<Generation | undefined> {
      store.flush();
      return generationAt(db, instrument, path);
    },
    async get(id: number): Promise<Generation | undefined> {
      store.flush();
      return parseRow(generationRow, db.row`SELECT ${raw(COLUMNS)} WHERE id = ${id}`);
    },
    /** Those that may still get lines: all that grow, and all that were rotated and not read to the end. */
    async open(instrument: string): Promise<OpenGeneration[]> {
      store.flush();
      return listOpen(db, part`instrument = ${instrument} AND state <> 'closed' ORDER BY id DESC`);
    },
    /** Those that began with these bytes, or with fewer of them, and have lines beyond their header. */
    async alike(instrument: string, head: Uint8Array): Promise<OpenGeneration[]> {
      store.flush();
      return listOpen(
        db,
        part`instrument = ${instrument} AND offset > base + header_end AND head = substr(${head}, 1, length(head))
          ORDER BY state = 'closed', id DESC`,
      );
    },
    /** Where lines begin that were in the file when it was skipped as part of the backlog; 0 if this one was not. */
    skippedSize: async (instrument: string, { path, size, inode }: DiskFile) =>
      db.value<number>`
        SELECT size FROM files WHERE instrument = ${instrument} AND path = ${path} AND verdict = 'skipped'
          AND inode = ${signed(inode)} AND size <= ${size}` ?? 0,
    /** Whether lines were taken of what was written at this path afterwards. */
    hasSuccessor: async ({ id, instrument, path }: Generation) =>
      db.exists`
        SELECT 1 FROM growing WHERE instrument = ${instrument} AND path = ${path} AND id > ${id}
          AND grown_at IS NOT NULL`,
    /** How many generations at this path began with the same lines. */
    countAlike: async (generation: Generation, start: string) =>
      db.value<number>`
        SELECT count(*) FROM growing WHERE instrument = ${generation.instrument} AND path = ${generation.path}
          AND start = ${start} AND id <> ${generation.id}` ?? 0,
    /** Durable before its first lines are handed over: after a crash, they belong to the same generation. */
    begin: (generation: NewGeneration) => commit(() => begin(db, generation, now())),
    /** In one commit: after a crash in between, lines before the new one would be taken again. */
    replace: (ended: Generation, next: NewGeneration) =>
      commit(() => {
        save(db, ended);
        return begin(db, next, now());
      }),
    /** Removes what it has of the content of a file that gets no more lines. */
    erase: (id: number) =>
      commit(() => {
        const row = db.row<{ instrument: string; path: string }>`SELECT instrument, path FROM growing WHERE id = ${id}`;
        if (row)
          db.run`
            UPDATE growing SET path = ${erasedPath(row.instrument, row.path)}, place = NULL, state = 'closed', head = x'',
              tail = x'', header = NULL, note = NULL WHERE id = ${id}`;
      }),
    save: (...generations: readonly Generation[]) =>
      commit(() => {
        for (const generation of generations) save(db, generation);
      }),
    /** Not awaited: after a crash, the outbox tells how far its lines were taken. */
    saveLater: (generation: Generation): void => store.writeLater(() => void save(db, generation)),
  };
}

const MAX_OPEN = 1000;

const listOpen = (db: Connection, condition: ReturnType<typeof part>): OpenGeneration[] =>
  parseRows(
    openRow,
    db.rows`
      SELECT id, path, place, state, CAST(inode AS TEXT) AS inode, looked_at AS lookedAt, grown_at AS grownAt FROM growing
        WHERE ${condition} LIMIT ${MAX_OPEN} + 0`,
  );

const generationAt = (db: Connection, instrument: string, path: string): Generation | undefined =>
  parseRow(
    generationRow,
    db.row`
      SELECT ${raw(COLUMNS)} WHERE instrument = ${instrument}
        AND (path = ${path} AND place IS NULL AND state = 'open' OR place = ${path}) ORDER BY id DESC LIMIT 1`,
  );

function begin(db: Connection, generation: NewGeneration, at: number): Generation {
  const { instrument, path, place, state = 'open', inode, base, offset = base, lines = 0, head, tail } = generation;
  const { header, headerEnd = 0, start, nth = 0, note } = generation;
  const id = db.value<number>`
    INSERT INTO growing (instrument, path, place, state, inode, base, offset, lines, head, tail, header, header_end, start,
      nth, note, began_at, looked_at) VALUES (${instrument}, ${path}, ${place ?? null}, ${state}, ${signed(inode)}, ${base},
      ${offset}, ${lines}, ${head}, ${tail}, ${header ?? null}, ${headerEnd}, ${start ?? null}, ${nth}, ${note ?? null},
      ${at}, 0) RETURNING id`;
  const row = parseRow(generationRow, db.row`SELECT ${raw(COLUMNS)} WHERE id = ${id ?? 0}`);
  if (row === undefined) throw new Error('the generation was not stored');
  return row;
}

const save = (db: Connection, generation: Generation): unknown => {
  const { id, path, place, state, inode, offset, lines, head, tail, low, header, headerEnd, start, nth } = generation;
  const { unfinished, note, lookedAt, grownAt } = generation;
  return db.run`
    UPDATE growing SET path = ${path}, place = ${place ?? null}, state = ${state}, inode = ${signed(inode)}, offset = ${offset},
      lines = ${lines}, head = ${head}, tail = ${tail}, low = ${low ?? null}, header = ${header ?? null},
      header_end = ${headerEnd}, start = ${start ?? null}, nth = ${nth}, unfinished = ${unfinished}, note = ${note ?? null},
      looked_at = ${lookedAt}, grown_at = ${grownAt ?? null} WHERE id = ${id}`;
};

const followedRow = z.object({
  instrument: z.string(),
  path: z.string(),
  place: nullable(z.string()),
  offset: z.number(),
  lines: z.number(),
  unfinished: z.number(),
  note: nullable(z.string()),
  lookedAt: z.number(),
  grownAt: nullable(z.number()),
});

const FOLLOWED = `instrument, path, place, offset, lines, unfinished, note, looked_at AS lookedAt, grown_at AS grownAt
  FROM growing`;

/** Some of the files that still may get lines, the newest first. */
export const listFollowed = (db: Connection, limit: number): FollowedFile[] =>
  parseRows(followedRow, db.rows`SELECT ${raw(FOLLOWED)} WHERE state <> 'closed' ORDER BY id DESC LIMIT ${limit} + 0`);

/** What is known of the file that grows, or grew last, at this path. */
export const followedAt = (db: Connection, instrument: string, path: string): FollowedFile | undefined =>
  parseRow(
    followedRow,
    db.row`
      SELECT ${raw(FOLLOWED)} WHERE instrument = ${instrument} AND (path = ${path} OR place = ${path})
        ORDER BY place IS ${path} DESC, id DESC LIMIT 1`,
  );
