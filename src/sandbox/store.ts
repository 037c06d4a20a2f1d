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
export const timestamp = (clock: Clock) => new Date(clock.now()).toISOString().slice(0, 19).replace('T', ' ');

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
  readonly attributes: Attributes;
}

/** What the sandbox stores and shows, and makes no further use of. */
interface Attributes {
  readonly category?: number | null;
  readonly status?: number | null;
  readonly custom_id?: number | null;
  readonly rating?: number;
  readonly hide_main_text?: number;
  readonly canread?: string;
  readonly canwrite?: string;
  readonly canread_base?: number;
  readonly canwrite_base?: number;
  readonly access_key?: string | null;
  readonly locked_at?: string;
  readonly is_pinned?: number;
  /** The resources that it links to. */
  readonly items?: readonly number[];
  /** Whether a body was replaced by an empty one. A body that never was is null. */
  readonly emptied?: boolean;
}

export type NewExperiment = Partial<
  Pick<Experiment, 'title' | 'date' | 'body' | 'tags' | 'team' | 'private' | 'content_type' | 'metadata' | 'attributes'>
>;

export type ExperimentChange = Partial<
  Pick<
    Experiment,
    | 'title'
    | 'date'
    | 'body'
    | 'tags'
    | 'state'
    | 'lockedby'
    | 'private'
    | 'content_type'
    | 'metadata'
    | 'userid'
    | 'attributes'
  >
>;

type Row<T> = Omit<T, 'tags' | 'attributes'> & { readonly tags: string };

const decodeTags = <T extends { readonly tags: string }>(row: T) => ({
  ...row,
  tags: JSON.parse(row.tags) as readonly string[],
});

const decodeRow = (row: Row<Experiment> & { readonly attributes: string }): Experiment => ({
  ...decodeTags(row),
  attributes: JSON.parse(row.attributes),
});

/** Tags and attributes are stored as JSON. */
const encode = (value: unknown) => (typeof value === 'object' && value !== null ? JSON.stringify(value) : value);

export function createExperiment(
  { prepare, clock }: Store,
  fields: NewExperiment,
  userid = USERS.owner.userid,
): number {
  const { title = 'Untitled', date = today(clock), body = '', tags = [], team = 1 } = fields;
  const { private: hidden = 0, content_type: type = 1, metadata = null, attributes = {} } = fields;
  const values = [title, date, body, tags, timestamp(clock), userid, team, hidden, type, metadata, attributes];
  const row: { id: number } = prepare(
    `INSERT INTO experiments
       (title, date, body, tags, created_at, modified_at, userid, team, private, content_type, metadata, attributes)
     VALUES (?, ?, ?, ?, ?5, ?5, ?6, ?7, ?8, ?9, ?10, ?11) RETURNING id`,
  ).get(...values.map(encode));
  return row.id;
}

export function readExperiment({ prepare }: Store, id: number): Experiment | undefined {
  const row = prepare('SELECT * FROM experiments WHERE id = ?').get(id);
  return row && decodeRow(row);
}

/** All experiments by id, deleted ones included. */
export const listExperiments = ({ prepare }: Store): Experiment[] =>
  prepare('SELECT * FROM experiments ORDER BY id').all().map(decodeRow);

/** Also sets the time of the last change. Returns undefined if there is no such experiment. */
export const changeExperiment = (
  store: Store,
  id: number,
  changes: ExperimentChange,
  userid = USERS.owner.userid,
): Experiment | undefined =>
  update(store, id, { ...changes, modified_at: timestamp(store.clock), lastchangeby: userid });

/** Leaves the time of the last change alone, as eLabFTW does for tags, pins and the editor. */
export const changeQuietly = (
  store: Store,
  id: number,
  changes: Partial<Pick<Experiment, 'tags' | 'attributes' | 'editedby'>>,
): void => void update(store, id, changes);

function update({ prepare }: Store, id: number, changes: Partial<Experiment>): Experiment | undefined {
  const changed = Object.entries(changes).filter(([, value]) => value !== undefined);
  const row = prepare(
    `UPDATE experiments SET ${changed.map(([column]) => `${column} = ?`).join(', ')} WHERE id = ? RETURNING *`,
  ).get(...changed.map(([, value]) => encode(value)), id);
  return row && decodeRow(row);
}

/** A copy without comments and files. Extra fields with `blank_value_on_duplicate` are blank in it. */
export function duplicateExperiment(store: Store, experiment: Experiment, userid = USERS.owner.userid): number {
  const { title, body, tags, team, content_type, metadata, attributes } = experiment;
  const { category = null, canread_base, canwrite_base } = attributes;
  const kept = { category, ...(canread_base && { canread_base }), ...(canwrite_base && { canwrite_base }) };
  const copy = { title: `${title} I`, body, tags, team, content_type, attributes: kept };
  return createExperiment(store, { ...copy, metadata: blankOnDuplicate(metadata) }, userid);
}

function blankOnDuplicate(metadata: string | null): string | null {
  const decoded = JSON.parse(metadata ?? 'null');
  for (const field of Object.values<Record<string, unknown>>(decoded?.extra_fields ?? {})) {
    if (field['blank_value_on_duplicate'] === true) field['value'] = '';
  }
  return decoded && JSON.stringify(decoded);
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

/** eLabFTW compares the first 72 bytes after the id: bcrypt ignores the rest. */
const significant = (key: string) => key.replace(/^(\d+-.{72}).*$/s, '$1');

/** `numbered`: the key begins and ends with its id, as in eLabFTW. `cleartext`: it can be read back. */
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
  const key = `${id}-${secret}${id}`;
  prepare('UPDATE apikeys SET hash = ? WHERE id = ?').run(hashOf(significant(key)), id);
  return key;
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
  prepare('SELECT id, name, can_write, created_at, last_used_at FROM apikeys WHERE hash = ?').get(
    hashOf(significant(key)),
  );

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

export const readTag = ({ prepare }: Store, id: number): TeamTag | undefined =>
  prepare('SELECT id, tag FROM tags WHERE id = ?').get(id);

/** An attached file. */
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
  readonly state: number;
}

const UPLOAD = 'id, item_id, userid, real_name, comment, filesize, hash, created_at, state';

type NewUpload = Pick<Upload, 'item_id' | 'userid' | 'real_name' | 'comment'> & { readonly content: Uint8Array };

export function createUpload({ prepare, clock }: Store, upload: NewUpload): number {
  const { item_id, userid, real_name, comment, content } = upload;
  const hash = createHash('sha256').update(content).digest('hex');
  const row: { id: number } = prepare(
    `INSERT INTO uploads (item_id, userid, real_name, comment, filesize, hash, created_at, content)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
  ).get(item_id, userid, real_name, comment, content.length, hash, timestamp(clock), content);
  return row.id;
}

/** By id, deleted ones included. */
export const listUploads = ({ prepare }: Store, experiment: number): Upload[] =>
  prepare(`SELECT ${UPLOAD} FROM uploads WHERE item_id = ? ORDER BY id`).all(experiment);

/** Deleted ones have no content any more. */
export const allUploads = ({ prepare }: Store): Upload[] =>
  prepare(`SELECT ${UPLOAD} FROM uploads WHERE state <> ${STATE.deleted} ORDER BY id`).all();

export const readUpload = ({ prepare }: Store, experiment: number, id: number): Upload | undefined =>
  prepare(`SELECT ${UPLOAD} FROM uploads WHERE item_id = ? AND id = ?`).get(experiment, id);

/** Undefined for an upload of an older version, which kept no content. */
export function readContent({ prepare }: Store, id: number): Uint8Array | undefined {
  const row: { content: Uint8Array | null } | undefined = prepare('SELECT content FROM uploads WHERE id = ?').get(id);
  return row?.content ?? undefined;
}

export function changeUpload(
  { prepare }: Store,
  id: number,
  { real_name, comment, state }: Pick<Upload, 'real_name' | 'comment' | 'state'>,
): void {
  prepare('UPDATE uploads SET real_name = ?, comment = ?, state = ? WHERE id = ?').run(real_name, comment, state, id);
}
