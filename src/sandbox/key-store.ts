import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../clock.js';
import type { Database } from './datafile.js';
import { timestamp } from './times.js';

export interface KeyRecord {
  readonly id: number;
  readonly name: string;
  readonly can_write: 0 | 1;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

/** Keys are long and random, so a plain hash hides them as well as a slow one, at a thousandth of the cost. */
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex');

export type Keys = ReturnType<typeof storeKeys>;

export function storeKeys(db: Database, clock: Clock) {
  const insert = db.prepare(
    'INSERT INTO apikeys (name, hash, can_write, created_at, cleartext) VALUES (?, ?, ?, ?, ?) RETURNING id',
  );
  const rename = db.prepare('UPDATE apikeys SET hash = ? WHERE id = ?');
  const list = db.prepare('SELECT id, name, can_write, created_at, last_used_at FROM apikeys ORDER BY id');
  const listHashes = db.prepare(
    'SELECT id, name, can_write, created_at, last_used_at, hash FROM apikeys ORDER BY last_used_at DESC, id',
  );
  const find = db.prepare('SELECT id, can_write, last_used_at FROM apikeys WHERE hash = ?');
  const touch = db.prepare('UPDATE apikeys SET last_used_at = ? WHERE id = ?');
  const remove = db.prepare('DELETE FROM apikeys WHERE id = ?');
  const findOwn = db.prepare('SELECT cleartext FROM apikeys WHERE cleartext IS NOT NULL ORDER BY id LIMIT 1');

  function create(name: string, canWrite: 0 | 1, keep: 'hash' | 'cleartext' = 'hash'): string {
    const key = randomBytes(24).toString('hex');
    insert.get(name, hashOf(key), canWrite, timestamp(clock), keep === 'cleartext' ? key : null);
    return key;
  }

  return {
    create,
    /** A key that begins with its own number, as eLabFTW makes them. */
    createNumbered(name: string, canWrite: 0 | 1): string {
      const secret = randomBytes(42).toString('hex');
      const { id }: { id: number } = insert.get(name, hashOf(secret), canWrite, timestamp(clock), null);
      rename.run(hashOf(`${id}-${secret}`), id);
      return `${id}-${secret}`;
    },
    list: (): KeyRecord[] => list.all(),
    /** The one used last stands first. */
    listWithHashes: (): (KeyRecord & { readonly hash: string })[] => listHashes.all(),
    /** Which key this is, without its being used. */
    idOf(key: string): number | undefined {
      const row: { id: number } | undefined = find.get(hashOf(key));
      return row?.id;
    },
    /**
     * The key that `labfeed sandbox` prints. Kept in clear text, as no real notebook would: this is a
     * play notebook, and the same key after a restart is worth more here. Once deleted, a new one is made.
     */
    own(): string {
      const row: { cleartext: string } | undefined = findOwn.get();
      return row?.cleartext ?? create('labfeed sandbox', 1, 'cleartext');
    },
    /** What the key may do, or undefined for one that is not known. */
    use(key: string): { readonly canWrite: boolean } | undefined {
      const row: Pick<KeyRecord, 'id' | 'can_write' | 'last_used_at'> | undefined = find.get(hashOf(key));
      if (!row) return undefined;
      const now = timestamp(clock);
      // Once a second at most: a write for every read would halve the speed.
      if (row.last_used_at !== now) touch.run(now, row.id);
      return { canWrite: row.can_write === 1 };
    },
    delete(id: number): void {
      remove.run(id);
    },
  };
}
