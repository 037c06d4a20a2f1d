import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../clock.js';
import { type Database, openDatafile } from './datafile.js';
import { type Entries, type Experiment, PEOPLE, STATE, storeEntries, timestamp, today } from './entries.js';

interface ExperimentFields {
  readonly title?: string;
  readonly date?: string;
  readonly body?: string;
  readonly tags?: readonly string[];
}

/** An experiment as the page lists it. */
export interface ExperimentSummary extends Omit<Experiment, 'body'> {
  readonly comments: number;
}

export interface Comment {
  readonly id: number;
  readonly comment: string;
  readonly item_id: number;
  readonly userid: number;
  readonly created_at: string;
  readonly modified_at: string;
}

export interface Store {
  readonly experiments: ReturnType<typeof storeExperiments>;
  readonly comments: ReturnType<typeof storeComments>;
  readonly keys: Keys;
  readonly entries: Entries;
  readonly tags: TeamTags;
  readonly uploads: Uploads;
  close(): void;
}

/** Everything the notebook holds, in one SQLite file. Each operation is one statement, so none is half done. */
export function openStore(file: string, clock: Clock): Store {
  const { db, close } = openDatafile(file);
  return {
    experiments: storeExperiments(db, clock),
    comments: storeComments(db, clock),
    keys: storeKeys(db, clock),
    entries: storeEntries(db, clock),
    tags: storeTeamTags(db),
    uploads: storeUploads(db, clock),
    close,
  };
}

type WithTagsAsText<T> = Omit<T, 'tags'> & { readonly tags: string };

const withTags = <T extends { readonly tags: string }>(row: T) => ({
  ...row,
  tags: JSON.parse(row.tags) as readonly string[],
});

function storeExperiments(db: Database, clock: Clock) {
  const columns = 'id, title, date, body, tags, created_at, modified_at, userid';
  const insert = db.prepare(
    'INSERT INTO experiments (title, date, tags, created_at, modified_at, body) VALUES (?, ?, ?, ?4, ?4, ?5) RETURNING id',
  );
  const select = db.prepare(`SELECT ${columns} FROM experiments WHERE id = ?`);
  const exists = db.prepare('SELECT 1 FROM experiments WHERE id = ?');
  const update = db.prepare(
    `UPDATE experiments SET title = coalesce(?2, title), date = coalesce(?3, date), body = coalesce(?4, body),
       tags = coalesce(?5, tags), modified_at = ?6 WHERE id = ?1 RETURNING ${columns}`,
  );
  const page = db.prepare(
    `SELECT id, title, date, tags, created_at, modified_at, userid,
       (SELECT count(*) FROM comments WHERE item_id = experiments.id) AS comments
     FROM experiments WHERE state <> ${STATE.deleted} ORDER BY id DESC LIMIT ? OFFSET ?`,
  );
  const count = db.prepare(`SELECT count(*) AS total FROM experiments WHERE state <> ${STATE.deleted}`);
  const tagsAsText = (tags: readonly string[] | undefined) => (tags ? JSON.stringify(tags) : null);

  return {
    create({ title = 'Untitled', date = today(clock), body = '', tags = [] }: ExperimentFields): number {
      const row: { id: number } = insert.get(title, date, JSON.stringify(tags), timestamp(clock), body);
      return row.id;
    },
    exists: (id: number): boolean => exists.get(id) !== undefined,
    read(id: number): Experiment | undefined {
      const row: WithTagsAsText<Experiment> | undefined = select.get(id);
      return row && withTags(row);
    },
    change(id: number, { title, date, body, tags }: ExperimentFields): Experiment | undefined {
      const row: WithTagsAsText<Experiment> | undefined = update.get(
        id,
        title ?? null,
        date ?? null,
        body ?? null,
        tagsAsText(tags),
        timestamp(clock),
      );
      return row && withTags(row);
    },
    count(): number {
      const row: { total: number } = count.get();
      return row.total;
    },
    listNewest(limit: number, offset: number): ExperimentSummary[] {
      const rows: WithTagsAsText<ExperimentSummary>[] = page.all(limit, offset);
      return rows.map(withTags);
    },
  };
}

function storeComments(db: Database, clock: Clock) {
  const columns = 'id, comment, item_id, userid, created_at, modified_at';
  // Takes the experiment from its table, so that there is no row where there is no experiment.
  const insert = db.prepare(
    `INSERT INTO comments (comment, item_id, created_at, modified_at, userid)
     SELECT ?2, id, ?3, ?3, ?4 FROM experiments WHERE id = ?1 RETURNING id`,
  );
  const list = db.prepare(`SELECT ${columns} FROM comments WHERE item_id = ? ORDER BY id`);
  const select = db.prepare(`SELECT ${columns} FROM comments WHERE item_id = ? AND id = ?`);
  const update = db.prepare(
    `UPDATE comments SET comment = ?3, modified_at = ?4 WHERE item_id = ?1 AND id = ?2 RETURNING ${columns}`,
  );
  const remove = db.prepare('DELETE FROM comments WHERE item_id = ? AND id = ?');

  return {
    /** The new comment's id, or undefined where there is no such experiment. */
    create(experiment: number, comment: string, userid = PEOPLE.owner.userid): number | undefined {
      const row: { id: number } | undefined = insert.get(experiment, comment, timestamp(clock), userid);
      return row?.id;
    },
    list(experiment: number): Comment[] {
      return list.all(experiment);
    },
    read(experiment: number, id: number): Comment | undefined {
      return select.get(experiment, id);
    },
    change(experiment: number, id: number, comment: string): Comment | undefined {
      return update.get(experiment, id, comment, timestamp(clock));
    },
    delete(experiment: number, id: number): boolean {
      return remove.run(experiment, id).changes > 0;
    },
  };
}

interface KeyRecord {
  readonly id: number;
  readonly name: string;
  readonly can_write: 0 | 1;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

/** Keys are long and random, so a plain hash hides them as well as a slow one, at a thousandth of the cost. */
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex');

export type Keys = ReturnType<typeof storeKeys>;

function storeKeys(db: Database, clock: Clock) {
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

export interface TeamTag {
  readonly id: number;
  readonly tag: string;
}

type TeamTags = ReturnType<typeof storeTeamTags>;

/** The team's tags. Two spellings that differ in case only are one tag, written as it was first. */
function storeTeamTags(db: Database) {
  const find = db.prepare('SELECT id, tag FROM tags WHERE folded = ?');
  const insert = db.prepare('INSERT INTO tags (tag, folded) VALUES (?, ?) RETURNING id, tag');
  const fold = (tag: string) => tag.toLowerCase();

  const existing = (tag: string): TeamTag | undefined => find.get(fold(tag));
  return {
    existing,
    named: (tag: string): TeamTag => existing(tag) ?? insert.get(tag, fold(tag)),
  };
}

export interface Upload {
  readonly id: number;
  readonly item_id: number;
  readonly userid: number;
  readonly real_name: string;
  readonly comment: string | null;
  readonly filesize: number;
  /** SHA-256, in hexadecimal. */
  readonly hash: string;
  readonly created_at: string;
}

type Uploads = ReturnType<typeof storeUploads>;

/** Which files were attached. Their bytes are not kept: what they were is in the hash. */
function storeUploads(db: Database, clock: Clock) {
  const insert = db.prepare(
    `INSERT INTO uploads (item_id, userid, real_name, comment, filesize, hash, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
  );
  const list = db.prepare(
    `SELECT id, item_id, userid, real_name, comment, filesize, hash, created_at
     FROM uploads WHERE item_id = ? ORDER BY id`,
  );
  return {
    create({
      item_id,
      userid,
      real_name,
      comment,
      filesize,
      hash,
    }: Omit<Upload, 'id' | 'created_at'>): number {
      const values = [item_id, userid, real_name, comment, filesize, hash, timestamp(clock)];
      const row: { id: number } = insert.get(...values);
      return row.id;
    },
    list: (experiment: number): Upload[] => list.all(experiment),
  };
}
