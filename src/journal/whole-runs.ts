import { type Connection, raw } from './database.js';
import type { JournalFacts, Row, WholeRun } from './forwards.js';

/**
 * Runs that change from one journal to another, with everything that the outbox half knows about them. Files, folders and
 * what becomes of the files stay with the machine that has them.
 */

/** Tables whose rows belong to one run, and the column that each journal numbers itself. */
const TABLES: Readonly<Record<string, string | undefined>> = {
  drafts: undefined,
  comments: undefined,
  attachments: undefined,
  history: 'id',
  earlier_drafts: 'number',
  earlier_comments: 'number',
  versions: undefined,
  paths: undefined,
  growths: undefined,
  drifts: undefined,
  remaps: undefined,
};

type Cells = Readonly<Record<string, unknown>>;

/** Undefined if there is no such run. */
export function readWholeRun(db: Connection, own: number): WholeRun | undefined {
  const run = db.row<Cells>`SELECT * FROM runs WHERE id = ${own}`;
  if (!run) return undefined;
  const rows = Object.entries(TABLES).flatMap(([table, numbered]) => {
    const found = db.rows<Cells>`SELECT * FROM ${raw(table)} WHERE run = ${own} ORDER BY ${raw(numbered ?? 'run')}`;
    return found.length === 0 ? [] : [[table, found.map((row) => toRow(row, ['run', numbered ?? 'run']))] as const];
  });
  const generation = db.row<Cells>`
    SELECT * FROM generations WHERE id = (SELECT generation FROM growths WHERE run = ${own})`;
  const unread = db.rows<{ own: number; n: number }>`SELECT run AS own, n FROM versions WHERE unread = ${own}`;
  return {
    ...{ own, unread, run: toRow(run, ['id']), rows: Object.fromEntries(rows) },
    generation: generation && toRow(generation, []),
  };
}

/** Within a commit. Replaces everything of this run but its history, which is continued. */
export function putWholeRun(db: Connection, id: number, { run, rows, generation }: Omit<WholeRun, 'own'>): void {
  const isKnown = db.exists`SELECT 1 FROM runs WHERE id = ${id}`;
  for (const table of Object.keys(TABLES)) if (table !== 'history') db.run`DELETE FROM ${raw(table)} WHERE run = ${id}`;
  if (isKnown) updateRow(db, 'runs', id, run);
  else insertRow(db, 'runs', { ...run, id });
  for (const [table, found] of Object.entries(rows))
    for (const row of found) if (table in TABLES) insertRow(db, table, { ...row, run: id });
  if (generation) insertRow(db, 'generations', generation);
}

const columnsOf = (db: Connection, table: string): string[] =>
  db.values<string>`SELECT name FROM pragma_table_info(${table})`;

/** A column that this version does not have is left out. */
function insertRow(db: Connection, table: string, row: Row): void {
  const columns = columnsOf(db, table).filter((name) => row[name] !== undefined);
  const marks = { text: columns.map(() => '?').join(', '), values: columns.map((name) => toCell(row[name])) };
  db.run`INSERT OR REPLACE INTO ${raw(table)} (${raw(columns.join(', '))}) VALUES (${marks})`;
}

function updateRow(db: Connection, table: string, id: number, row: Row): void {
  const columns = columnsOf(db, table).filter((name) => name !== 'id' && row[name] !== undefined);
  const sets = {
    text: columns.map((name) => `${name} = ?`).join(', '),
    values: columns.map((name) => toCell(row[name])),
  };
  db.run`UPDATE ${raw(table)} SET ${sets} WHERE id = ${id}`;
}

/** Bytes are written as PostgreSQL does. No text of these tables starts like this. */
const BYTES = /^\\x([0-9a-f]*)$/;

const toRow = (cells: Cells, without: readonly string[]): Row =>
  Object.fromEntries(
    Object.entries(cells)
      .filter(([name]) => !without.includes(name))
      .map(([name, cell]) => [
        name,
        cell instanceof Uint8Array ? `\\x${Buffer.from(cell).toString('hex')}` : (cell as string | number | null),
      ]),
  );

function toCell(cell: Row[string] | undefined): string | number | null | Uint8Array {
  const [, hex] = (typeof cell === 'string' && BYTES.exec(cell)) || [];
  return hex === undefined ? (cell ?? null) : Buffer.from(hex, 'hex');
}

/** What is known about notebooks and instruments. `run` of a shape is one of this journal. */
export function readFacts(db: Connection): JournalFacts {
  const all = (table: string): Row[] => db.rows<Cells>`SELECT * FROM ${raw(table)}`.map((row) => toRow(row, []));
  return { servers: all('servers'), spares: all('spares'), shapes: all('shapes') };
}

/** Within a commit. Adds what another journal knows to what this one knows. `runOf`: which run here one of theirs is. */
export function mergeFacts(
  db: Connection,
  { servers, spares, shapes }: JournalFacts,
  runOf: (run: number) => number | undefined,
): void {
  for (const server of servers) mergeServer(db, server);
  for (const { server = '', experiment = 0, reference = null } of spares)
    db.run`
      INSERT OR IGNORE INTO spares (server, experiment, reference) SELECT ${server}, ${experiment}, ${reference}
        WHERE NOT EXISTS (SELECT 1 FROM runs WHERE server = ${server} AND experiment = ${experiment})`;
  for (const { instrument = '', mapping = '', shapes: known = '[]', run = null } of shapes) {
    const first = (run === null ? undefined : runOf(Number(run))) ?? null;
    db.run`
      INSERT INTO shapes (instrument, mapping, shapes, run) VALUES (${instrument}, ${mapping}, ${known}, ${first})
        ON CONFLICT (instrument) DO UPDATE SET run = ifnull(run, excluded.run)
        WHERE mapping = excluded.mapping AND shapes = excluded.shapes`;
  }
}

/** Of both, what makes labfeed more careful: the highest id, the lowest that is in doubt, and a halt. */
function mergeServer(db: Connection, theirs: Row): void {
  const url = String(theirs['url']);
  const ours = db.row<Row>`SELECT * FROM servers WHERE url = ${url}`;
  if (!ours) {
    insertRow(db, 'servers', theirs);
    return;
  }
  const both = (name: string, choose: (...values: number[]) => number): number | null => {
    const values = [ours[name], theirs[name]].filter((value) => typeof value === 'number');
    return values.length === 0 ? null : choose(...values);
  };
  const known = (name: string): Row[string] => ours[name] ?? theirs[name] ?? null;
  db.run`
    UPDATE servers SET highest = ${both('highest', Math.max)}, seen = ${both('seen', Math.max)},
      dialect = ${known('dialect')}, keeps_title = ${both('keeps_title', Math.min)},
      keeps_comments = ${both('keeps_comments', Math.min)}, blank = ${known('blank')}, owner = ${known('owner')},
      halted = ${known('halted')}, restored_from = ${both('restored_from', Math.min)},
      sweep = ${both('sweep', Math.max)}, sweep_from = ${both('sweep_from', Math.min)},
      sweep_count = ${both('sweep_count', (...counts) => counts.reduce((sum, count) => sum + count))},
      unconfirmed = ${both('unconfirmed', Math.min)}, shared = ${both('shared', Math.max)} WHERE url = ${url}`;
}
