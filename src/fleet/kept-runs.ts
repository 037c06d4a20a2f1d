import type pg from 'pg';
import { type Connection, raw } from '../journal/database.js';
import { type Change, insertRows } from './changes.js';
import type { Postgres } from './database.js';
import type { Table, Tables } from './tables.js';
import { loadTable } from './upgrade.js';

/**
 * What a machine that only watches keeps of the outbox: its own runs, those that are not filed or wait for a person, the
 * latest one of every instrument, and the newest of all. It decides nothing with them: commands and page show them, and ask the
 * database for older ones. Whether a content is filed already is decided when the leader applies what was handed over.
 */
export interface Kept {
  readonly member: number;
  /** How many of the newest; at most twice as many before older ones are forgotten. */
  readonly newest: number;
}

export const NEWEST = 10_000;

/** Which column of a table names a run of the fleet. */
function runColumn({ name, columns }: Table): string | undefined {
  if (name === 'runs') return 'id';
  // The numbers of runs in `origins` and `departures` are those of the members. `shapes` belong to instruments.
  if (name === 'origins') return 'filed';
  return name === 'departures' || name === 'shapes' || !columns.includes('run') ? undefined : 'run';
}

/** Commands and page of a watcher do not read these. */
const UNUSED: ReadonlySet<string> = new Set(['departures', 'inbox', 'alarms', 'notices', 'sources']);

/** Never null: it is negated, too. */
const OPEN = `(parked IS NULL AND step <> 'done' OR parked IS NOT NULL AND parked <> 'ignored')`;

/** The rows that belong to kept runs, and all others. Within a transaction that sees one state. Returns the oldest of the newest. */
export async function loadKept(client: pg.ClientBase, db: Connection, tables: Tables, kept: Kept): Promise<number> {
  const newest = await client.query<{ above: number }>(
    `SELECT greatest(coalesce(max(id), 0) - $1, 0)::bigint AS above FROM labfeed.runs`,
    [kept.newest],
  );
  const above = newest.rows[0]?.above ?? 0;
  const { rows } = await client.query<{ id: number }>(
    `SELECT id FROM labfeed.runs WHERE id > $2 OR ${OPEN} UNION SELECT filed FROM labfeed.origins WHERE member = $1
       UNION SELECT run FROM labfeed.attachments WHERE due_at IS NOT NULL
       UNION SELECT run FROM labfeed.growths WHERE ended_at IS NULL UNION SELECT max(id) FROM labfeed.runs GROUP BY instrument`,
    [kept.member, above],
  );
  const ids = rows.map(({ id }) => id).join(',');
  for (const table of tables.values()) {
    const column = runColumn(table);
    // A cursor takes no parameters.
    const where = column === undefined ? '' : ` WHERE "${column}" = ANY('{${ids}}'::bigint[])`;
    if (!UNUSED.has(table.name)) await loadTable(client, db, table, where);
  }
  return above;
}

/** Everything about some runs, by table. */
export type RunRows = readonly { readonly table: Table; readonly rows: readonly (readonly unknown[])[] }[];

export const readRuns = (postgres: Postgres, tables: Tables, ids: readonly number[]): Promise<RunRows> =>
  postgres.transaction(async (client) => {
    const all: { table: Table; rows: readonly unknown[][] }[] = [];
    for (const table of tables.values()) {
      const column = runColumn(table);
      if (column === undefined || UNUSED.has(table.name)) continue;
      const text = `SELECT ${table.list} FROM labfeed.${table.name} WHERE "${column}" = ANY($1)`;
      const { rows } = await client.query<unknown[]>({ text, values: [ids], rowMode: 'array' });
      all.push({ table, rows });
    }
    return all;
  }, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');

/** Within a transaction. */
export function putRuns(db: Connection, runs: RunRows): void {
  for (const { table, rows } of runs) insertRows(db, table, rows, 'OR REPLACE');
}

const hasRun = (db: Connection, id: unknown): boolean => db.exists`SELECT 1 FROM runs WHERE id = ${Number(id)}`;

const cellsOf = (change: Change) =>
  change.o === 'd' ? change.k : change.o === 'u' ? { ...change.k, ...change.v } : change.v;

/** Runs that are not kept and should be: they are open again, or one of this machine has become one of them. */
export function missingRuns(db: Connection, changes: readonly Change[], { member }: Kept): number[] {
  const added = addedRuns(changes);
  const ids = changes.flatMap((change): unknown[] => {
    if (change.o === 'd') return [];
    const cells = cellsOf(change);
    switch (change.t) {
      case 'runs': {
        const { step, parked, id } = cells;
        const isOpen = (step !== undefined && step !== 'done') || parked === 'quarantined' || parked === 'held';
        return change.o === 'u' && isOpen ? [id] : [];
      }
      case 'origins':
        return cells['member'] === member ? [cells['filed']] : [];
      case 'attachments':
        return cells['due_at'] == null ? [] : [cells['run']];
      default:
        return [];
    }
  });
  return [...new Set(ids.map(Number))].filter((id) => !added.has(id) && !hasRun(db, id));
}

const addedRuns = (changes: readonly Change[]): ReadonlySet<number> =>
  new Set(changes.flatMap((change) => (change.t === 'runs' && change.o === 'i' ? [Number(change.v['id'])] : [])));

/** Without rows of runs that are not kept. An update of such a row changes nothing. */
export function ofKeptRuns(db: Connection, changes: readonly Change[], tables: Tables): Change[] {
  const added = addedRuns(changes);
  return changes.filter((change) => {
    const table = tables.get(change.t);
    const column = table && runColumn(table);
    if (UNUSED.has(change.t)) return false;
    if (change.o !== 'i' || change.t === 'runs' || column === undefined) return true;
    const id = Number(change.v[column]);
    return added.has(id) || hasRun(db, id);
  });
}

/** Within a transaction. Forgets runs that are no longer among the newest, when there are many. */
export function forgetOlder(db: Connection, tables: Tables, { member, newest }: Kept): void {
  const { last = 0, above = 0 } =
    db.row<{ last: number; above: number }>`SELECT (SELECT max(id) FROM runs) AS last, above FROM kept_runs` ?? {};
  if (last - above < 2 * newest) return;
  const next = last - newest;
  db.run`CREATE TEMP TABLE IF NOT EXISTS forgotten (id INTEGER PRIMARY KEY)`;
  db.run`DELETE FROM forgotten`;
  db.run`
    INSERT INTO forgotten SELECT id FROM runs WHERE id <= ${next} AND NOT ${raw(OPEN)}
      AND id NOT IN (SELECT filed FROM origins WHERE member = ${member})
      AND id NOT IN (SELECT run FROM attachments WHERE due_at IS NOT NULL)
      AND id NOT IN (SELECT run FROM growths WHERE ended_at IS NULL)
      AND id NOT IN (SELECT max(id) FROM runs GROUP BY instrument)`;
  for (const table of tables.values()) {
    const column = runColumn(table);
    if (column !== undefined) db.run`DELETE FROM ${raw(table.name)} WHERE ${raw(column)} IN (SELECT id FROM forgotten)`;
  }
  db.run`UPDATE kept_runs SET above = ${next}`;
}
