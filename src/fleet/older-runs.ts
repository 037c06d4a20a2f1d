import type { FleetConfig } from '../config/fleet.js';
import { explain, LabfeedError, splitHint } from '../errors.js';
import { createReader, type JournalReader } from '../journal/reader.js';
import { insertRows } from './changes.js';
import { adviseConnection, Postgres } from './database.js';
import { putRuns, readRuns } from './kept-runs.js';
import { openWorkingCopy } from './working-copy.js';

/** Which runs: one by its number, or those with these words in their paths. */
export type Wanted = { readonly run: number } | { readonly words: string };

const MAX_RUNS = 100;

/** What else a reader shows of a run. */
const AROUND = ['servers', 'tallies'];

/**
 * Runs of the fleet that a machine that only watches does not keep, from the database, as a journal in memory. Undefined if
 * there are none.
 */
export async function readOlder(fleet: FleetConfig, wanted: Wanted): Promise<JournalReader | undefined> {
  const postgres = new Postgres(fleet, () => undefined);
  try {
    const ids = await findRuns(postgres, wanted);
    if (ids.length === 0) return undefined;
    const { db, tables } = openWorkingCopy(':memory:');
    putRuns(db, await readRuns(postgres, tables, ids));
    for (const name of AROUND) {
      const table = tables.get(name);
      if (!table) continue;
      const rows = await postgres.rows<Record<string, unknown>>(`SELECT ${table.list} FROM labfeed.${name}`);
      insertRows(
        db,
        table,
        rows.map((row) => table.columns.map((column) => row[column])),
      );
    }
    return createReader(db.database);
  } catch (error) {
    const { what, hint } = splitHint(explain(error));
    const missing = 'run' in wanted ? `run ${wanted.run} is` : 'older runs of other machines are';
    throw new LabfeedError(`${missing} not on this machine, and the database of the fleet cannot be asked: ${what}`, {
      hint: hint ?? adviseConnection(error) ?? 'run this command again later, or on a machine that delivers',
      cause: error,
    });
  } finally {
    await postgres.close();
  }
}

async function findRuns(postgres: Postgres, wanted: Wanted): Promise<number[]> {
  if ('run' in wanted) return [wanted.run];
  const words = wanted.words.split(/\s+/).filter(Boolean);
  const matching = words.map((_, n) => `strpos(lower(path), lower($${n + 1})) > 0`).join(' AND ');
  const rows = await postgres.rows<{ id: number }>(
    `SELECT id FROM labfeed.runs WHERE ${matching} ORDER BY id DESC LIMIT ${MAX_RUNS}`,
    words,
  );
  return rows.map(({ id }) => id);
}
