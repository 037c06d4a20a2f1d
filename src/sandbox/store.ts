import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../clock.js';
import { type Database, openDatafile } from './datafile.js';

type Statement = ReturnType<Database['prepare']>;

/** The content of the notebook. A record is written by one statement, so it is never half done. */
export interface Store {
  readonly db: Database;
  readonly clock: Clock;
  /** Prepared once, then cached. */
  prepare(sql: string): Statement;
  close(): void;
}

export function openStore(file: string, clock: Clock): Store {
  const { db, close } = openDatafile(file);
  const statements = new Map<string, Statement>();
  function prepare(sql: string): Statement {
    const statement = statements.get(sql) ?? db.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }
  return { db, clock, prepare, close };
}

/** A user of the notebook. All API keys belong to the owner. */
export interface User {
  readonly userid: number;
  readonly firstname: string;
  readonly lastname: string;
  readonly email: string;
}

export const USERS = {
  owner: { userid: 1, firstname: 'Sam', lastname: 'Sandbox', email: 'sam@eln.invalid' },
  colleague: { userid: 2, firstname: 'Kim', lastname: 'Colleague', email: 'kim@eln.invalid' },
  administrator: { userid: 3, firstname: 'Ada', lastname: 'Admin', email: 'ada@eln.invalid' },
} satisfies Record<string, User>;

export const userOf = (userid: number): User =>
  Object.values(USERS).find((user) => user.userid === userid) ?? USERS.owner;

export const fullName = ({ firstname, lastname }: User) => `${firstname} ${lastname}`;

/** UTC, to the second, as eLabFTW shows it. */
const timestamp = (clock: Clock) => new Date(clock.now()).toISOString().slice(0, 19).replace('T', ' ');

/** The local date. The Swedish locale writes it YYYY-MM-DD. */
const today = (clock: Clock) => new Date(clock.now()).toLocaleDateString('sv-SE');

/** As eLabFTW numbers them. */
export const STATE = { normal: 1, archived: 2, deleted: 3 } as const;

/** Records use the field names of the API. */
export interface Experiment {
  readonly id: number;
  readonly title: string;
  readonly date: string;
  readonly body: string;
  readonly tags: readonly string[];
  readonly created_at: string;
  readonly modified_at: string;
  readonly userid: number;
  // The rest exists in eLabFTW only.
  readonly team: number;
  readonly state: number;
  readonly lockedby: number | null;
  /** Who has it open in the editor. */
  readonly editedby: number | null;
  readonly private: number;
  readonly content_type: number;
  /** JSON, as text. */
  readonly metadata: string | null;
  readonly lastchangeby: number | null;
}

export type NewExperiment = Partial<
  Pick<Experiment, 'title' | 'date' | 'body' | 'tags' | 'team' | 'private' | 'content_type' | 'metadata'>
>;

const CHANGEABLE = [
  'title',
  'date',
  'body',
  'tags',
  'state',
  'lockedby',
  'private',
  'content_type',
  'metadata',
] as const;

export type ExperimentChange = Partial<Pick<Experiment, (typeof CHANGEABLE)[number]>>;

type Row<T> = Omit<T, 'tags'> & { readonly tags: string };

const decodeTags = <T extends { readonly tags: string }>(row: T) => ({
  ...row,
  tags: JSON.parse(row.tags) as readonly string[],
});

const encodeTags = (value: unknown) => (Array.isArray(value) ? JSON.stringify(value) : value);

export function createExperiment(
  { prepare, clock }: Store,
  fields: NewExperiment,
  userid = USERS.owner.userid,
): number {
  const { title = 'Untitled', date = today(clock), body = '', tags = [], team = 1 } = fields;
  const { private: hidden = 0, content_type: type = 1, metadata = null } = fields;
  const row: { id: number } = prepare(
    `INSERT INTO experiments
       (title, date, body, tags, created_at, modified_at, userid, team, private, content_type, metadata)
     VALUES (?, ?, ?, ?, ?5, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id`,
  ).get(...[title, date, body, JSON.stringify(tags), timestamp(clock), userid, team, hidden, type, metadata]);
  return row.id;
}

export function readExperiment({ prepare }: Store, id: number): Experiment | undefined {
  const row: Row<Experiment> | undefined = prepare('SELECT * FROM experiments WHERE id = ?').get(id);
  return row && decodeTags(row);
}

/** All experiments by id, deleted ones included. */
export function listExperiments({ prepare }: Store): Experiment[] {
  const rows: Row<Experiment>[] = prepare('SELECT * FROM experiments ORDER BY id').all();
  return rows.map(decodeTags);
}

/** Also sets the time of the last change. Returns undefined if there is no such experiment. */
export function changeExperiment(
  { prepare, clock }: Store,
  id: number,
  changes: ExperimentChange,
  userid = USERS.owner.userid,
): Experiment | undefined {
  const columns = CHANGEABLE.filter((column) => changes[column] !== undefined);
  const assignments = [...columns, 'modified_at', 'lastchangeby'].map((column) => `${column} = ?`);
  const values = [...columns.map((column) => encodeTags(changes[column])), timestamp(clock), userid, id];
  const row: Row<Experiment> | undefined = prepare(
    `UPDATE experiments SET ${assignments.join(', ')} WHERE id = ? RETURNING *`,
  ).get(...values);
  return row && decodeTags(row);
}

/** Leaves the time of the last change alone, as eLabFTW does. */
export function setTags({ prepare }: Store, id: number, tags: readonly string[]): void {
  prepare('UPDATE experiments SET tags = ? WHERE id = ?').run(JSON.stringify(tags), id);
}

/** An experiment as the page lists it. */
export interface ExperimentSummary extends Pick<Experiment, 'id' | 'title' | 'date' | 'tags' | 'modified_at'> {
  readonly comments: number;
}

/** Newest first, without deleted ones. */
export function listSummaries({ prepare }: Store, limit: number, offset: number): ExperimentSummary[] {
  const rows: Row<ExperimentSummary>[] = prepare(
    `SELECT id, title, date, tags, modified_at,
       (SELECT count(*) FROM comments WHERE item_id = experiments.id) AS comments
     FROM experiments WHERE state <> ${STATE.deleted} ORDER BY id DESC LIMIT ? OFFSET ?`,
  ).all(limit, offset);
  return rows.map(decodeTags);
}

export function countExperiments({ prepare }: Store): number {
  const row: { total: number } = prepare(
    `SELECT count(*) AS total FROM experiments WHERE state <> ${STATE.deleted}`,
  ).get();
  return row.total;
}

export interface Comment {
  readonly id: number;
  readonly comment: string;
  readonly item_id: number;
  readonly userid: number;
  readonly created_at: string;
  readonly modified_at: string;
}

/** Returns undefined if there is no such experiment. */
export function createComment(
  { prepare, clock }: Store,
  experiment: number,
  comment: string,
  userid = USERS.owner.userid,
): number | undefined {
  const row: { id: number } | undefined = prepare(
    `INSERT INTO comments (comment, item_id, created_at, modified_at, userid)
     SELECT ?2, id, ?3, ?3, ?4 FROM experiments WHERE id = ?1 RETURNING id`,
  ).get(experiment, comment, timestamp(clock), userid);
  return row?.id;
}

export const listComments = ({ prepare }: Store, experiment: number): Comment[] =>
  prepare('SELECT * FROM comments WHERE item_id = ? ORDER BY id').all(experiment);

export const readComment = ({ prepare }: Store, experiment: number, id: number): Comment | undefined =>
  prepare('SELECT * FROM comments WHERE item_id = ? AND id = ?').get(experiment, id);

export const changeComment = (
  { prepare, clock }: Store,
  experiment: number,
  id: number,
  comment: string,
): Comment | undefined =>
  prepare('UPDATE comments SET comment = ?3, modified_at = ?4 WHERE item_id = ?1 AND id = ?2 RETURNING *').get(
    experiment,
    id,
    comment,
    timestamp(clock),
  );

export const deleteComment = ({ prepare }: Store, experiment: number, id: number): boolean =>
  prepare('DELETE FROM comments WHERE item_id = ? AND id = ?').run(experiment, id).changes > 0;

interface KeyRecord {
  readonly id: number;
  readonly name: string;
  readonly can_write: 0 | 1;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

/** Keys are long and random, so a plain hash protects them as well as a slow one, at a thousandth of the cost. */
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex');

/** `numbered`: the key begins with its id, as in eLabFTW. `cleartext`: it can be read back. */
export function createKey(
  { prepare, clock }: Store,
  name: string,
  canWrite: boolean,
  form?: 'numbered' | 'cleartext',
): string {
  const secret = randomBytes(form === 'numbered' ? 42 : 24).toString('hex');
  const { id }: { id: number } = prepare(
    'INSERT INTO apikeys (name, hash, can_write, created_at, cleartext) VALUES (?, ?, ?, ?, ?) RETURNING id',
  ).get(name, hashOf(secret), Number(canWrite), timestamp(clock), form === 'cleartext' ? secret : null);
  if (form !== 'numbered') return secret;
  prepare('UPDATE apikeys SET hash = ? WHERE id = ?').run(hashOf(`${id}-${secret}`), id);
  return `${id}-${secret}`;
}

/**
 * The key that `labfeed sandbox` prints. It is stored in clear text, unlike in a real notebook, because the sandbox
 * is for trials and the key should be the same after a restart. If it was deleted, a new one is created.
 */
export function ownKey(store: Store): string {
  const row: { cleartext: string } | undefined = store
    .prepare('SELECT cleartext FROM apikeys WHERE cleartext IS NOT NULL ORDER BY id LIMIT 1')
    .get();
  return row?.cleartext ?? createKey(store, 'labfeed sandbox', true, 'cleartext');
}

export const listKeys = ({ prepare }: Store): (KeyRecord & { readonly hash: string })[] =>
  prepare('SELECT id, name, can_write, created_at, last_used_at, hash FROM apikeys ORDER BY id').all();

export const findKey = ({ prepare }: Store, key: string): KeyRecord | undefined =>
  prepare('SELECT id, name, can_write, created_at, last_used_at FROM apikeys WHERE hash = ?').get(hashOf(key));

/** Finds the key and records that it was used. */
export function useKey(store: Store, key: string): KeyRecord | undefined {
  const record = findKey(store, key);
  const now = timestamp(store.clock);
  // At most once a second: a write for every read would halve the speed.
  if (record && record.last_used_at !== now) {
    store.prepare('UPDATE apikeys SET last_used_at = ? WHERE id = ?').run(now, record.id);
  }
  return record;
}

export const deleteKey = ({ prepare }: Store, id: number): void =>
  void prepare('DELETE FROM apikeys WHERE id = ?').run(id);

export interface TeamTag {
  readonly id: number;
  readonly tag: string;
}

/** The team's tag of this name, created if necessary. Case is ignored; the first spelling is kept. */
export function teamTag({ prepare }: Store, tag: string): TeamTag {
  const folded = tag.toLowerCase();
  const existing: TeamTag | undefined = prepare('SELECT id, tag FROM tags WHERE folded = ?').get(folded);
  return existing ?? prepare('INSERT INTO tags (tag, folded) VALUES (?, ?) RETURNING id, tag').get(tag, folded);
}

/** An attached file. Its bytes are not kept. */
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

export function createUpload({ prepare, clock }: Store, upload: Omit<Upload, 'id' | 'created_at'>): number {
  const { item_id, userid, real_name, comment, filesize, hash } = upload;
  const row: { id: number } = prepare(
    `INSERT INTO uploads (item_id, userid, real_name, comment, filesize, hash, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
  ).get(item_id, userid, real_name, comment, filesize, hash, timestamp(clock));
  return row.id;
}

export const listUploads = ({ prepare }: Store, experiment: number): Upload[] =>
  prepare('SELECT * FROM uploads WHERE item_id = ? ORDER BY id').all(experiment);
