import { Readable } from 'node:stream';
import type { AttachOptions } from '../deliver/uploads.js';
import type { Content } from '../journal/forwards.js';
import type { Journal } from '../journal/journal.js';
import type { Spool } from '../spool.js';
import { openContent } from '../watch/identify.js';
import type { Postgres } from './database.js';

type LeadersJournal = Pick<Journal, 'store' | 'outbox'>;

/**
 * Raw files and plots travel through the database, so that the deliverer needs no access to the folders of the other
 * machines. They stay there until the notebook has them: the leader can read them.
 */
const CHUNK_BYTES = 1024 * 1024;

/** Stores what the database does not have yet. Returns why it cannot; undefined if it could. */
export async function storeContent(
  { sha256, path, size, kind }: Content,
  spool: Spool,
  postgres: Postgres,
): Promise<string | undefined> {
  if (await postgres.row('SELECT 1 FROM labfeed.complete WHERE sha256 = $1', [sha256])) return undefined;
  const copy = await spool.open(sha256);
  const source = copy
    ? { read: () => copy.createReadStream({ start: 0, autoClose: false }), close: () => copy.close() }
    : kind === 'raw' && path !== undefined
      ? await openContent(path, { sha256, size }).catch(() => undefined)
      : undefined;
  if (!source) return 'its copy is gone, and so is the file';
  try {
    let n = 0;
    let stored = 0;
    for await (const bytes of inChunks(source.read())) {
      await postgres.run('INSERT INTO labfeed.contents (sha256, n, bytes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
        ...[sha256, n, bytes],
      ]);
      n += 1;
      stored += bytes.length;
    }
    await complete(sha256, stored, postgres);
    return undefined;
  } finally {
    await source.close();
  }
}

/** Unless pieces that another member had stored were removed meanwhile: then the content is stored again. */
const complete = (sha256: string, size: number, postgres: Postgres): Promise<void> =>
  postgres.transaction(async (client) => {
    await client.query(LOCK, [[sha256]]);
    await client.query(
      `INSERT INTO labfeed.complete (sha256, size) SELECT $1, $2::bigint
         WHERE $2::bigint = (SELECT coalesce(sum(length(bytes)), 0) FROM labfeed.contents WHERE sha256 = $1) ON CONFLICT DO NOTHING`,
      [sha256, size],
    );
  });

/** Contents are completed and removed one after the other. In one order, so that two removals cannot block each other. */
const LOCK =
  'SELECT pg_advisory_xact_lock(hashtextextended(sha256, 0)) FROM (SELECT unnest($1::text[]) AS sha256 ORDER BY 1) AS s';

async function* inChunks(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let waiting: Uint8Array[] = [];
  let length = 0;
  for await (const part of bytes) {
    for (let at = 0; at < part.length; ) {
      const taken = part.subarray(at, at + CHUNK_BYTES - length);
      waiting.push(taken);
      length += taken.length;
      at += taken.length;
      if (length < CHUNK_BYTES) continue;
      yield Buffer.concat(waiting);
      waiting = [];
      length = 0;
    }
  }
  if (length > 0) yield Buffer.concat(waiting);
}

/** Looking for secrets in a chunk takes a few milliseconds. */
const READ_BYTES = 128 * 1024;

export async function* readContent(sha256: string, postgres: Postgres): AsyncGenerator<Uint8Array> {
  for (let n = 0; ; n++) {
    const row = await postgres.row<{ bytes: Buffer }>(
      'SELECT bytes FROM labfeed.contents WHERE sha256 = $1 AND n = $2',
      [...[sha256, n]],
    );
    if (!row) return;
    for (let at = 0; at < row.bytes.length; at += READ_BYTES) yield row.bytes.subarray(at, at + READ_BYTES);
  }
}

/** Removes the contents that no operation needs, and no run as `needed` tells. */
const removeContents = async (
  postgres: Postgres,
  { db }: Journal['store'],
  contents: readonly string[],
  needed: () => Promise<ReadonlySet<string>>,
): Promise<void> =>
  postgres.transaction(async (client) => {
    await client.query(LOCK, [contents]);
    // Operations that need one of them arrive before this, or wait and find it gone.
    await client.query('SELECT 1 FROM labfeed.complete WHERE sha256 = ANY($1) ORDER BY sha256 FOR UPDATE', [contents]);
    const sent = await client.query<{ sha256: string }>(
      'SELECT DISTINCT unnest(contents) AS sha256 FROM labfeed.operations WHERE contents && $1',
      [contents],
    );
    // Only now: an operation is removed after its run is there.
    const kept = new Set([...(await needed()), ...sent.rows.map(({ sha256 }) => sha256)]);
    const free = contents.filter(
      (sha256) =>
        !kept.has(sha256) &&
        !db.exists`
          SELECT 1 FROM failures WHERE instr(operation, ${sha256}) > 0
            UNION ALL SELECT 1 FROM departures WHERE instr(whole, ${sha256}) > 0`,
    );
    await client.query('DELETE FROM labfeed.complete WHERE sha256 = ANY($1)', [free]);
    await client.query('DELETE FROM labfeed.contents WHERE sha256 = ANY($1)', [free]);
  });

/** Where the leader has raw files from. Members decide which are attached. */
export const attachFromDatabase = (
  postgres: Postgres,
  journal: LeadersJournal,
  instruments: readonly string[],
  isSecretIn: (text: string) => boolean,
): AttachOptions => ({
  isSecretIn,
  instruments: { attached: instruments, dropped: [] },
  isPlotted: () => true,
  async openSource({ sha256 }) {
    const found = await postgres.row('SELECT 1 FROM labfeed.complete WHERE sha256 = $1', [sha256]);
    return found && { read: () => Readable.from(readContent(sha256, postgres)), close: async () => undefined };
  },
  async uploaded({ sha256 }) {
    const needed = async () => new Set((await journal.outbox.uploads.needs(sha256)) ? [sha256] : []);
    if ((await needed()).size === 0) await removeContents(postgres, journal.store, [sha256], needed);
  },
});

const SWEPT_AT_A_TIME = 200;

/** Removes contents that no run needs: those of erased runs, or of members that never sent the run. */
export async function sweepContents(postgres: Postgres, journal: LeadersJournal): Promise<void> {
  const old = await postgres.rows<{ sha256: string }>(
    "SELECT DISTINCT sha256 FROM labfeed.contents WHERE at < now() - interval '1 day'",
  );
  const { needed } = journal.outbox.uploads;
  const before = await needed();
  const free = old.map(({ sha256 }) => sha256).filter((sha256) => !before.has(sha256));
  for (let at = 0; at < free.length; at += SWEPT_AT_A_TIME)
    await removeContents(postgres, journal.store, free.slice(at, at + SWEPT_AT_A_TIME), needed);
}
