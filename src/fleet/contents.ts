import { Readable } from 'node:stream';
import type { AttachOptions } from '../deliver/uploads.js';
import type { Outbox } from '../outbox.js';
import type { Spool } from '../spool.js';
import type { NewAttachment } from '../uploads.js';
import { openContent } from '../watch/identify.js';
import type { Postgres } from './database.js';

/**
 * Raw files and plots travel through the database, so that the deliverer needs no access to the folders of the other
 * machines. They stay there until the notebook has them: the leader can read them.
 */
const CHUNK_BYTES = 1024 * 1024;

/** Stores what the database does not have yet. Returns why it cannot; undefined if it could. */
export async function storeContent(
  { sha256, path, size, kind }: Pick<NewAttachment, 'sha256' | 'size'> & { path?: string; kind: 'raw' | 'plot' },
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
    await postgres.run('INSERT INTO labfeed.complete (sha256, size) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
      ...[sha256, stored],
    ]);
    return undefined;
  } finally {
    await source.close();
  }
}

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

async function* readContent(sha256: string, postgres: Postgres): AsyncGenerator<Uint8Array> {
  for (let n = 0; ; n++) {
    const row = await postgres.row<{ bytes: Buffer }>(
      'SELECT bytes FROM labfeed.contents WHERE sha256 = $1 AND n = $2',
      [...[sha256, n]],
    );
    if (!row) return;
    for (let at = 0; at < row.bytes.length; at += READ_BYTES) yield row.bytes.subarray(at, at + READ_BYTES);
  }
}

const removeContents = async (postgres: Postgres, fingerprints: readonly string[]): Promise<void> =>
  postgres.transaction(async (client) => {
    await client.query('DELETE FROM labfeed.complete WHERE sha256 = ANY($1)', [fingerprints]);
    await client.query('DELETE FROM labfeed.contents WHERE sha256 = ANY($1)', [fingerprints]);
  });

/** Where the leader has raw files from. Members decide which are attached. */
export const attachFromDatabase = (
  postgres: Postgres,
  outbox: Outbox,
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
    if (!(await outbox.uploads.needs(sha256))) await removeContents(postgres, [sha256]);
  },
});

/** Removes contents that no run needs: those of erased runs, or of members that never sent the run. */
export async function sweepContents(postgres: Postgres, outbox: Outbox): Promise<void> {
  const old = await postgres.rows<{ sha256: string }>(
    "SELECT DISTINCT sha256 FROM labfeed.contents WHERE at < now() - interval '1 day'",
  );
  const needed = await outbox.uploads.needed();
  const free = old.map(({ sha256 }) => sha256).filter((sha256) => !needed.has(sha256));
  if (free.length > 0) await removeContents(postgres, free);
}
