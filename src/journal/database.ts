import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite';
import { z } from 'zod';
import { explain, LabfeedError, systemCode } from '../errors.js';
import { isLocked, lockForLife, makePrivate } from '../system/filesystem.js';
import { mountOf } from '../system/mounts.js';
import { MIGRATIONS } from './migrations.js';

export type Database = DatabaseSyncInstance;

/** Commands write requests while the daemon runs: each waits a few milliseconds for the other. */
const BUSY_MS = 5000;

/** A command may hold the lock for a moment, to apply its request while no daemon runs. */
const LOCK_WAIT_MS = 2000;

export class JournalInUseError extends LabfeedError {
  override readonly name = 'JournalInUseError';
}

/** Opens the journal for its one writer, and holds the lock that keeps other daemons out. */
export async function openDatabase(path: string, isShare = isOnShare) {
  prepareFolder(path, isShare);
  return openLocked(path);
}

const isOnShare = (folder: string): boolean => mountOf(folder).share !== undefined;

/** `isNew`: it was created just now. `release` gives the lock back. */
function openLocked(path: string) {
  const lock = takeLock(path, LOCK_WAIT_MS);
  let database: Database | undefined;
  try {
    database = openOwned(path);
    const isNew = readVersion(database, path) === 0;
    // So that a pruned journal becomes smaller. Has no effect on one that has tables.
    database.exec('PRAGMA auto_vacuum = INCREMENTAL');
    // WAL lets commands read while the daemon writes; FULL makes the commit of a migration wait for the disk.
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;');
    // Overwrites erased names on disk. Over 5,000 deliveries, the cost was not measurable.
    database.exec('PRAGMA secure_delete = ON');
    migrate(database, path);
    // What a process left in the log may not be on disk, if its sync failed: a checkpoint writes it again.
    database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    // From here on the store syncs the log itself. SQLite still syncs log and database at each checkpoint.
    database.exec('PRAGMA synchronous = NORMAL');
    // A checkpoint makes the event loop wait for the disk: one per 16 MB of the log instead of one per 4 MB.
    database.exec('PRAGMA wal_autocheckpoint = 4000');
    return { database, isNew, release: () => lock.close() };
  } catch (error) {
    database?.close();
    lock.close();
    throw error instanceof LabfeedError ? error : cannotOpen(path, error);
  }
}

function prepareFolder(path: string, isShare: (folder: string) => boolean): void {
  const folder = dirname(path);
  try {
    makeFolder(folder);
  } catch (error) {
    throw cannotOpen(path, error);
  }
  if (isShare(folder)) {
    throw new LabfeedError(`the journal ${path} is on a network share`, {
      hint: 'locks and durable writes are not reliable there: put it on a local disk with journal: PATH',
    });
  }
}

/** One folder at a time: Node's recursive mkdir never returns in places such as /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/** Keeps other daemons out. Commands that only read the journal do not need it. */
function takeLock(path: string, waitMs: number): Database {
  try {
    const lock = openOwned(`${path}.lock`, waitMs);
    if (lockForLife(lock)) return lock;
  } catch (error) {
    throw cannotOpen(path, error);
  }
  throw new JournalInUseError(`the journal ${path} is in use by another daemon or command`, {
    hint: 'stop that one first (systemctl stop labfeed); a second daemon needs its own journal',
  });
}

/** Whether no daemon holds the journal at this moment. Asks for a shared lock, so that commands do not see each other. */
export function isFree(path: string): boolean {
  let lock: Database | undefined;
  try {
    lock = openOwned(`${path}.lock`, 0);
    lock.exec('SELECT count(*) FROM sqlite_master');
    return true;
  } catch (error) {
    if (isLocked(error)) return false;
    throw cannotOpen(path, error);
  } finally {
    lock?.close();
  }
}

/**
 * Root opens the journal as the owner of its folder: what is created there belongs to the service, which could not open
 * it otherwise, and a link that the service's user has put there leads to nothing that only root may change.
 */
function openOwned(path: string, timeout = BUSY_MS): Database {
  const owner = process.geteuid?.() === 0 ? statSync(dirname(path)) : undefined;
  if (owner) {
    process.setegid?.(owner.gid);
    process.seteuid?.(owner.uid);
  }
  try {
    makePrivate(path);
    return new DatabaseSync(path, { timeout });
  } finally {
    if (owner) {
      process.seteuid?.(0);
      process.setegid?.(0);
    }
  }
}

/** Brings the journal to the current version, or to this earlier one. */
export function migrate(database: Database, path: string, to = MIGRATIONS.length): void {
  const version = readVersion(database, path);
  if (version >= to) return;
  const known = version === 0 ? schemas.get(to) : undefined;
  const steps = known ?? MIGRATIONS.slice(version, to).join('\n');
  // In one transaction with the version number: a crash leaves the journal as it was, and the disk is waited for once.
  database.exec(`BEGIN IMMEDIATE; ${steps}; PRAGMA user_version = ${to}; COMMIT;`);
  if (version === 0 && known === undefined) schemas.set(to, schemaOf(database));
}

/**
 * What creates the empty tables of each version at once, in a tenth of the time of all steps: a machine of a fleet opens
 * several databases.
 */
const schemas = new Map<number, string>();

function schemaOf(database: Database): string {
  const created = database
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
    .all() as { sql: string }[];
  return created.map(({ sql }) => `${sql};`).join('\n');
}

/** Opens a second connection, without the lock that identifies the daemon. */
export function openBeside(path: string, busyMs = BUSY_MS): Database {
  if (!journalExists(path)) throw noJournal(path);
  let database: Database | undefined;
  try {
    database = new DatabaseSync(path, { timeout: busyMs });
    database.exec('PRAGMA synchronous = FULL');
    if (readVersion(database, path) === 0) throw noJournal(path);
    return database;
  } catch (error) {
    database?.close();
    throw error instanceof LabfeedError ? error : cannotOpen(path, error);
  }
}

/** Like `openBeside`, after a journal of an older version was migrated. */
export function openCurrent(path: string, busyMs?: number): Database {
  const database = openBeside(path, busyMs);
  if (readVersion(database, path) === MIGRATIONS.length) return database;
  database.close();
  migrateFree(path);
  return openBeside(path, busyMs);
}

/** Migrates the journal, unless a daemon of the older version still uses it. */
function migrateFree(path: string): void {
  try {
    const { database, release } = openLocked(path);
    database.close();
    release();
  } catch (error) {
    if (!(error instanceof JournalInUseError)) throw error;
    throw new LabfeedError(`the journal ${path} has an older version and is in use by an older labfeed`, {
      hint: 'restart the daemon with this version (systemctl restart labfeed), then try again',
      cause: error,
    });
  }
}

/** Zero for a file that is not a journal yet. A journal of a newer version is refused and left unchanged. */
function readVersion(database: Database, path: string): number {
  const version = new Connection(database).value<number>`PRAGMA user_version` ?? 0;
  if (version <= MIGRATIONS.length) return version;
  throw new LabfeedError(
    `the journal ${path} has version ${version}, written by a newer labfeed; this labfeed supports versions up to ${MIGRATIONS.length}`,
    { hint: 'update labfeed, or use another journal; this one was not changed' },
  );
}

const noJournal = (path: string): LabfeedError =>
  new LabfeedError(`there is no journal at ${path} yet`, {
    hint: '`labfeed run` creates it. Choose the configuration with --config',
  });

export function cannotOpen(path: string, error: unknown): LabfeedError {
  const message = explain(error);
  const damaged = /not a database|malformed/i.test(message);
  const denied = !damaged && (systemCode(error) === 'EACCES' || isDenied(path));
  const hint = damaged
    ? 'the file is not a journal, or it is damaged. Restore a backup, or move it aside and run `labfeed recover`'
    : denied
      ? 'use sudo, or ask for membership of the group labfeed: sudo usermod --append --groups labfeed NAME'
      : 'check the disk, and the path in `journal`';
  const reason = denied ? 'permission denied' : message;
  return new LabfeedError(`cannot open the journal ${path}: ${reason}`, { hint, cause: error });
}

/** Throws if this user may not access its folder: `existsSync` would report that there is none. */
export function journalExists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (systemCode(error) === 'ENOTDIR') return false;
    throw cannotOpen(path, error);
  }
}

/** SQLite reports a missing permission only as `unable to open database file`, or as a read-only database. */
function isDenied(path: string): boolean {
  return [path, dirname(path)].some((place) => {
    try {
      accessSync(place, constants.R_OK | constants.W_OK);
      return false;
    } catch (error) {
      return systemCode(error) === 'EACCES';
    }
  });
}

type Value = string | number | bigint | null | Uint8Array;
type Values = readonly (Value | Fragment)[];

/** A part of a statement, with the values that it binds. */
interface Fragment {
  readonly text: string;
  readonly values: readonly Value[];
}

const isFragment = (value: Value | Fragment): value is Fragment =>
  typeof value === 'object' && value !== null && 'text' in value;

export const raw = (text: string): Fragment => ({ text, values: [] });

export function part(strings: TemplateStringsArray, ...values: Values): Fragment {
  let text = strings[0] ?? '';
  const bound: Value[] = [];
  for (const [n, value] of values.entries()) {
    const isPart = isFragment(value);
    text += `${isPart ? value.text : '?'}${strings[n + 1]}`;
    if (isPart) bound.push(...value.values);
    else bound.push(value);
  }
  return { text, values: bound };
}

interface Prepared {
  readonly statement: StatementSyncInstance;
  readonly columns: readonly string[];
}

/** SQLite's own row objects take twice as long to make, and each access to them is slow. */
function prepare(database: Database, sql: string): Prepared {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  return { statement, columns: statement.columns().map(({ name }) => name) };
}

function toRow<Row>(columns: readonly string[], cells: readonly unknown[]): Row {
  const row: Record<string, unknown> = {};
  for (let n = 0; n < columns.length; n++) row[columns[n] ?? ''] = cells[n];
  return row as Row;
}

type Statements = Map<TemplateStringsArray | string, Prepared>;

const compiled = new WeakMap<Database, Statements>();

/** Runs tagged templates as statements: what is interpolated is bound as a value. Each is compiled once per database. */
export class Connection {
  readonly database: Database;
  readonly #statements: Statements;

  constructor(database: Database) {
    this.database = database;
    this.#statements = compiled.get(database) ?? new Map();
    compiled.set(database, this.#statements);
  }

  run(text: TemplateStringsArray, ...values: Values): { readonly changes: number } {
    const [{ statement }, bound] = this.#bind(text, values);
    return { changes: Number(statement.run(...bound).changes) };
  }

  rows<Row = unknown>(text: TemplateStringsArray, ...values: Values): Row[] {
    const [{ statement, columns }, bound] = this.#bind(text, values);
    return (statement.all(...bound) as unknown[][]).map((cells) => toRow<Row>(columns, cells));
  }

  row<Row = unknown>(text: TemplateStringsArray, ...values: Values): Row | undefined {
    const [{ statement, columns }, bound] = this.#bind(text, values);
    const cells = statement.get(...bound) as unknown[] | undefined;
    return cells && toRow<Row>(columns, cells);
  }

  exists(text: TemplateStringsArray, ...values: Values): boolean {
    const [{ statement }, bound] = this.#bind(text, values);
    return statement.get(...bound) !== undefined;
  }

  /** The first column of every row. */
  values<T>(text: TemplateStringsArray, ...values: Values): T[] {
    const [{ statement }, bound] = this.#bind(text, values);
    return (statement.all(...bound) as unknown[][]).map(([first]) => (first ?? undefined) as T);
  }

  /** The first column of the first row; undefined if it is null or there is no row. */
  value<T>(text: TemplateStringsArray, ...values: Values): T | undefined {
    const [{ statement }, bound] = this.#bind(text, values);
    return ((statement.get(...bound) as unknown[] | undefined)?.[0] ?? undefined) as T | undefined;
  }

  /** For a text that is assembled elsewhere. Compiled once, too. */
  statement(sql: string): StatementSyncInstance {
    const prepared = this.#statements.get(sql) ?? prepare(this.database, sql);
    this.#statements.set(sql, prepared);
    return prepared.statement;
  }

  /** The strings of a template are the same object in every call, which saves assembling the text. */
  #bind(strings: TemplateStringsArray, values: Values): [Prepared, readonly Value[]] {
    const known = this.#statements.get(strings);
    if (known) return [known, values as readonly Value[]];
    const whole = part(strings, ...values);
    const prepared = this.#statements.get(whole.text) ?? prepare(this.database, whole.text);
    this.#statements.set(values.some(isFragment) ? whole.text : strings, prepared);
    return [prepared, whole.values];
  }
}

/** Within a commit. Events keep the names under which older versions stored them. */
export function addHistory(db: Connection, run: number, at: number, event: string, detail?: object): void {
  const json = detail === undefined ? null : JSON.stringify(detail);
  db.run`INSERT INTO history (run, at, event, detail) VALUES (${run}, ${at}, ${event}, ${json})`;
}

/** As a condition on the table `runs`. */
export const isOf = (instruments: readonly string[]): Fragment =>
  part`instrument IN (SELECT value FROM json_each(${JSON.stringify(instruments)}))`;

/** The column that holds this property: `due_at` for `dueAt`. */
export const columnOf = (property: string): Fragment =>
  raw(property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

export const parseRow = <T>(schema: z.ZodType<T>, row: unknown): T | undefined =>
  row === undefined ? undefined : schema.parse(row);

export const parseRows = <T>(schema: z.ZodType<T>, rows: readonly unknown[]): T[] =>
  rows.map((row) => schema.parse(row));

/** SQL null as undefined. */
export const nullable = <T>(schema: z.ZodType<T>) => schema.nullish().transform((value) => value ?? undefined);

export const flag = z.number().transform((value) => value === 1);

const texts = z.array(z.string());

/** A JSON array of strings. */
export const textList = z.string().transform((json) => texts.parse(JSON.parse(json)));

/** A JSON object of fingerprints (`StoredParts`). */
export const storedParts = nullable(z.string()).transform((json) => fingerprints.parse(JSON.parse(json ?? '{}')));

const fingerprints = z.object({
  title: z.string().exactOptional(),
  date: z.string().exactOptional(),
  body: z.string().exactOptional(),
});

/** A run's state as people see it, as an SQL expression over the table `runs`. */
export const STATE = `CASE WHEN runs.parked IS NOT NULL THEN runs.parked WHEN runs.step = 'done' THEN 'done'
  WHEN runs.step = 'pending' THEN 'queued' ELSE 'sending' END`;

/** The instruments that have open runs. Steps from name to name in the index instead of reading every open run for a DISTINCT. */
export function* openInstruments(db: Connection): Generator<string> {
  for (let name: string | undefined = ''; ; ) {
    name = db.value<string>`
      SELECT instrument FROM runs WHERE step <> 'done' AND parked IS NULL AND instrument > ${name}
        ORDER BY instrument LIMIT 1`;
    if (name === undefined) return;
    yield name;
  }
}
