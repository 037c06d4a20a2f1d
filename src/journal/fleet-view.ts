import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LabfeedError } from '../errors.js';
import { Connection, type Database } from './database.js';
import { MIGRATIONS } from './migrations.js';

/** The outbox of the fleet as this machine knows it, beside the journal of the member. */
export const fleetCopyOf = (journal: string): string => join(dirname(journal), 'fleet.db');

/** Tables of the copy that commands do not read: requests are left in the member's own journal. */
const HIDDEN: ReadonlySet<string> = new Set(['inbox', 'alarms', 'notices', 'sources', 'working_copy', 'kept_runs']);

/**
 * On a member of a fleet, commands and page show the runs of all members: those of the copy, under the numbers of the
 * fleet. Files, folders and backlog stay those of this machine. Returns false if there is no fleet, or no copy yet.
 * No statement reads both halves of the journal, so views in place of the outbox half are enough.
 */
function showFleet(database: Database, path: string): boolean {
  const db = new Connection(database);
  const copy = fleetCopyOf(path);
  const { member, name } = db.row<{ member: number; name: string }>`SELECT member, name FROM membership` ?? {};
  if (member === undefined || !existsSync(copy)) return false;
  db.run`ATTACH ${copy} AS fleet`;
  const isLoaded =
    db.value<number>`PRAGMA fleet.user_version` === MIGRATIONS.length && db.exists`SELECT 1 FROM fleet.working_copy`;
  if (!isLoaded) {
    db.run`DETACH fleet`;
    return false;
  }
  const own = `${name}:`;
  const local = new Set([
    'files',
    'instruments',
    'growing',
    'folders',
    'identity',
    'forwards',
    'forwarded',
    'membership',
  ]);
  const tables = db.values<string>`SELECT name FROM fleet.sqlite_master WHERE type = 'table'`;
  for (const table of tables) {
    if (local.has(table) || HIDDEN.has(table) || table.startsWith('sqlite_')) continue;
    const columns = db.values<string>`SELECT name FROM pragma_table_info(${table}, 'fleet')`;
    database.exec(`CREATE TEMP VIEW ${table} AS SELECT ${columns.map(shown).join(', ')} FROM fleet.${table}`);
  }
  // What became of the files of this machine is known here only.
  const columns = db.values<string>`SELECT name FROM pragma_table_info('sources', 'main') WHERE name <> 'run'`;
  database.exec(`
    CREATE TEMP VIEW sources AS SELECT filed AS run, ${columns.map((column) => `own.${column}`).join(', ')}
      FROM main.sources AS own JOIN fleet.origins ON member = ${member} AND origins.run = own.run`);
  return true;

  /** The files of this machine have their paths, those of others `MEMBER:PATH`. */
  function shown(column: string): string {
    if (column !== 'path' && column !== 'copy') return column;
    const prefix = `'${own.replaceAll("'", "''")}'`;
    return `iif(substr(${column}, 1, ${own.length}) = ${prefix}, substr(${column}, ${own.length + 1}), ${column}) AS ${column}`;
  }
}

/** Which fleet the runs of this journal were moved to, and how far; undefined if they are delivered from here. */
export const movedTo = (db: Connection) =>
  db.row<{ url: string | null; importing: number | null }>`SELECT url, importing FROM membership`;

/** Two journals must never deliver the same runs. */
export function refuseMoved({ db }: { readonly db: Connection }, path: string): void {
  const moved = movedTo(db);
  if (!moved) return;
  const url = moved.url ?? 'postgres://…';
  throw new LabfeedError(`the runs of the journal ${path} belong to a fleet: ${url}`, {
    hint: `set journal: ${url}; to take them back, do so and run: labfeed migrate --to ${path}`,
  });
}

/**
 * The numbers of runs that people see are those of the fleet. Without them, nothing is shown and nothing decided: the
 * decision about a run of this machine could meet another one of the fleet. Closes the database if it throws.
 */
export function requireFleetView(database: Database, path: string): void {
  const isMember = new Connection(database).exists`SELECT 1 FROM membership`;
  if (!isMember || showFleet(database, path)) return;
  database.close();
  throw new LabfeedError('this machine does not know the runs of its fleet yet', {
    hint: 'wait until the daemon has reached the database, then try again',
  });
}
