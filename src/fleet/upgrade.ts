import { randomBytes } from 'node:crypto';
import { DatabaseSync } from '@photostructure/sqlite';
import type pg from 'pg';
import { LabfeedError } from '../errors.js';
import { Connection, type Database, migrate } from '../journal/database.js';
import { MIGRATIONS } from '../journal/migrations.js';
import { insertRows, readRows } from './changes.js';
import type { Postgres } from './database.js';
import { createTables, dropTables, FLEET_STEPS, FLEET_TABLES, readTables, type Table, type Tables } from './tables.js';

/** Any number that no other program of the database uses. */
const LOCK = 1_818_326_629;

export interface Schema {
  /** Part of the origin line of everything that the fleet files. */
  readonly id: string;
  /** The version of the journal's tables in PostgreSQL. */
  readonly journal: number;
}

/**
 * Creates the schema, or brings it to the version of this labfeed. Members that start at the same time wait for each other.
 * `mayUpgrade`: watchers only hand over operations, so they leave the tables as they are.
 */
export const prepareSchema = (postgres: Postgres, mayUpgrade: boolean): Promise<Schema> =>
  postgres.transaction(async (client) => {
    await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await runSteps(client);
    const { id, journal } = (await client.query<Schema>('SELECT id, journal FROM labfeed.fleet FOR UPDATE'))
      .rows[0] ?? {
      ...{ id: '', journal: 0 },
    };
    if (journal > MIGRATIONS.length && mayUpgrade) throw tooNew('tables', journal, MIGRATIONS.length);
    if (journal >= MIGRATIONS.length || (journal > 0 && !mayUpgrade)) return { id, journal };
    await upgrade(client, journal);
    return { id, journal: MIGRATIONS.length };
  });

async function runSteps(client: pg.ClientBase): Promise<void> {
  await client.query(`
    CREATE SCHEMA IF NOT EXISTS labfeed;
    CREATE TABLE IF NOT EXISTS labfeed.version (one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL);
    INSERT INTO labfeed.version (version) VALUES (0) ON CONFLICT DO NOTHING`);
  const found = await client.query<{ version: number }>('SELECT version FROM labfeed.version FOR UPDATE');
  const version = found.rows[0]?.version ?? 0;
  if (version > FLEET_STEPS.length) throw tooNew('a schema', version, FLEET_STEPS.length);
  for (const step of FLEET_STEPS.slice(version)) await client.query(step);
  if (version === 0) await client.query('INSERT INTO labfeed.fleet (id) VALUES ($1)', [randomBytes(4).toString('hex')]);
  await client.query('UPDATE labfeed.version SET version = $1', [FLEET_STEPS.length]);
}

const tooNew = (what: string, version: number, known: number): LabfeedError =>
  new LabfeedError(
    `the fleet's database has ${what} of version ${version}, written by a newer labfeed; this one supports versions up to ${known}`,
    { hint: 'update labfeed on this machine; nothing was changed' },
  );

/**
 * The journal's steps are written for SQLite. The rows go through a database of the older version, which takes those steps:
 * so there is one definition of each. A leader of the older version is fenced by the new epoch.
 */
async function upgrade(client: pg.ClientBase, from: number): Promise<void> {
  const database = new DatabaseSync(':memory:');
  try {
    database.exec('PRAGMA foreign_keys = OFF');
    // Many rows take their steps here between two statements.
    await client.query("SET LOCAL idle_in_transaction_session_timeout = '10min'");
    if (from > 0) {
      migrate(database, 'the fleet', from);
      database.exec(FLEET_TABLES);
      const before = await present(client, readTables(database));
      withoutTriggers(database);
      await loadTables(client, new Connection(database), before);
      await client.query(dropTables([...before.keys()]));
      restoreTriggers(database, from);
    }
    migrate(database, 'the fleet');
    database.exec(FLEET_TABLES);
    const tables = readTables(database);
    await client.query(createTables(tables));
    await fillTables(client, new Connection(database), tables);
    await client.query(
      'UPDATE labfeed.fleet SET journal = $1, epoch = epoch + 1, seq = seq + 1, mark = DEFAULT, until = $2::timestamptz',
      [MIGRATIONS.length, '-infinity'],
    );
    // Standbys load the tables again.
    await client.query('DELETE FROM labfeed.changes');
  } finally {
    database.close();
  }
}

/** Without the tables that only a later version has. */
async function present(client: pg.ClientBase, tables: Tables): Promise<Tables> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'labfeed'",
  );
  const names = new Set(rows.map(({ name }) => name));
  return new Map([...tables].filter(([name]) => names.has(name)));
}

/** All rows of a working copy into empty tables of PostgreSQL. Within a transaction. */
async function fillTables(client: pg.ClientBase, db: Connection, tables: Tables): Promise<void> {
  await client.query("SELECT set_config('labfeed.seq', (SELECT seq + 1 FROM labfeed.fleet)::text, true)");
  for (const table of tables.values())
    for (const rows of readRows(db, table))
      await client.query('SELECT labfeed.apply($1)', [JSON.stringify(rows.map((v) => ({ t: table.name, o: 'i', v })))]);
}

const AT_A_TIME = 5000;

/** All rows of PostgreSQL into an empty database without triggers. Within a transaction that sees one state. */
export async function loadTables(client: pg.ClientBase, db: Connection, tables: Tables): Promise<void> {
  for (const table of tables.values()) await loadTable(client, db, table);
}

/** `where`: which of its rows. */
export async function loadTable(client: pg.ClientBase, db: Connection, table: Table, where = ''): Promise<void> {
  await client.query(`DECLARE loading CURSOR FOR SELECT ${table.list} FROM labfeed.${table.name}${where}`);
  for (;;) {
    const { rows } = await client.query<unknown[]>({ text: `FETCH ${AT_A_TIME} FROM loading`, rowMode: 'array' });
    if (rows.length > 0) {
      db.run`BEGIN`;
      insertRows(db, table, rows);
      db.run`COMMIT`;
    }
    if (rows.length < AT_A_TIME) break;
  }
  await client.query('CLOSE loading');
}

/** The journal's triggers count runs and make files due. What they change is shipped, so a copy must not do it again. */
export function withoutTriggers(database: Database): void {
  for (const name of triggersOf(database).keys()) database.exec(`DROP TRIGGER ${name}`);
}

/** Gives a working copy the triggers of the journal of this version again. */
export function restoreTriggers(database: Database, version = MIGRATIONS.length): void {
  const model = new DatabaseSync(':memory:');
  try {
    migrate(model, 'the fleet', version);
    const own = triggersOf(database);
    for (const [name, sql] of triggersOf(model)) if (!own.has(name)) database.exec(sql);
  } finally {
    model.close();
  }
}

const triggersOf = (database: Database): ReadonlyMap<string, string> =>
  new Map(
    new Connection(database).rows<{ name: string; sql: string }>`
      SELECT name, sql FROM sqlite_master WHERE type = 'trigger'`.map(({ name, sql }) => [name, sql]),
  );
