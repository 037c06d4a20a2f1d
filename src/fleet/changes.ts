import type { Connection } from '../journal/database.js';
import type { Table, Tables } from './tables.js';

/**
 * The changes that SQLite's session extension recorded, as rows that PostgreSQL and other working copies can apply. A
 * session yields the net change of each row, so the order of the statements behind it is lost: deletions come first,
 * then updates, then insertions, and unique constraints are checked at the end.
 */
export type Change =
  | { readonly t: string; readonly o: 'd'; readonly k: Cells }
  | { readonly t: string; readonly o: 'u'; readonly k: Cells; readonly v: Cells }
  | { readonly t: string; readonly o: 'i'; readonly v: Cells };

/** Values by column, as JSON can hold them: a BLOB is written as PostgreSQL does, `\x` and hexadecimal digits. */
type Cells = Readonly<Record<string, Cell>>;
type Cell = string | number | null;

const INSERT = 18;
const UPDATE = 23;
const DELETE = 9;
const ORDER = { d: 0, u: 1, i: 2 } as const;

/** Reads a changeset: https://sqlite.org/session.html#the_changeset_format as in sqlite3session.c. */
export function readChangeset(bytes: Uint8Array, tables: Tables): Change[] {
  const from = new Cursor(bytes);
  const changes: Change[] = [];
  let table: Table | undefined;
  let count = 0;
  while (!from.isAtEnd()) {
    const kind = from.byte();
    if (kind === TABLE) {
      count = from.varint();
      from.skip(count);
      table = tables.get(from.name());
      continue;
    }
    from.skip(1);
    if (table) changes.push(readChange(kind, table, from));
    // A table that is not shipped: its records are skipped.
    else for (let cells = kind === UPDATE ? 2 * count : count; cells > 0; cells--) from.cell();
  }
  return changes.sort((a, b) => ORDER[a.o] - ORDER[b.o]);
}

const TABLE = 0x54;

function readChange(kind: number, { name: t, columns, key }: Table, from: Cursor): Change {
  const read = (): Record<string, Cell> => {
    const cells: Record<string, Cell> = {};
    for (const column of columns) {
      const cell = from.cell();
      if (cell !== undefined) cells[column] = cell;
    }
    return cells;
  };
  const first = read();
  if (kind === INSERT) return { t, o: 'i', v: first };
  const k = Object.fromEntries(key.map((column) => [column, first[column] ?? null]));
  if (kind === DELETE) return { t, o: 'd', k };
  if (kind === UPDATE) return { t, o: 'u', k, v: read() };
  throw new Error(`the changeset has an unknown operation ${kind}`);
}

class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor({ buffer, byteOffset, length }: Uint8Array) {
    this.#bytes = Buffer.from(buffer, byteOffset, length);
  }

  isAtEnd = (): boolean => this.#at >= this.#bytes.length;

  skip(count: number): void {
    this.#at += count;
  }

  byte(): number {
    return this.#bytes.readUInt8(this.#at++);
  }

  /** Lengths have at most four bytes of seven bits. */
  varint(): number {
    let value = 0;
    for (;;) {
      const next = this.byte();
      value = value * 128 + (next & 0x7f);
      if (next < 0x80) return value;
    }
  }

  /** Up to the next zero byte. */
  name(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    const name = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end + 1;
    return name;
  }

  #take(count: number): Buffer {
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  /** Undefined: an update has not changed it. */
  cell(): Cell | undefined {
    switch (this.byte()) {
      case 0:
        return undefined;
      case 1: {
        const value = this.#take(8).readBigInt64BE();
        const short = Number(value);
        return Number.isSafeInteger(short) ? short : String(value);
      }
      case 2:
        return this.#take(8).readDoubleBE();
      case 3:
        return toPostgres(this.#take(this.varint()).toString('utf8'));
      case 4:
        return `\\x${this.#take(this.varint()).toString('hex')}`;
      default:
        return null;
    }
  }
}

/** PostgreSQL has no U+0000 in texts. The character that replaces it is for private use, and escaped itself. */
const ESCAPE = '\u{e000}';
const SPECIAL = /[\0\u{e000}]/gu;
const ESCAPED = /\u{e000}(.)/gu;

export const toPostgres = (text: string): string =>
  SPECIAL.test(text) ? text.replace(SPECIAL, (char) => ESCAPE + (char === '\0' ? '0' : '1')) : text;

export const fromPostgres = (text: string): string =>
  text.includes(ESCAPE) ? text.replace(ESCAPED, (_, code) => (code === '0' ? '\0' : ESCAPE)) : text;

/** What is bound to a statement of the working copy. */
const toSqlite = (cell: Cell | Uint8Array | undefined, isBlob: boolean): string | number | null | Uint8Array => {
  if (typeof cell !== 'string') return cell ?? null;
  return isBlob ? Buffer.from(cell.slice(2), 'hex') : fromPostgres(cell);
};

/** Applies changes to a working copy without triggers: what triggers change is shipped, too. Within a transaction. */
export function applyChanges(db: Connection, changes: readonly Change[], tables: Tables): void {
  const run = (sql: string, values: readonly (string | number | null | Uint8Array)[]): void =>
    void db.statement(sql).run(...values);
  for (const change of changes) {
    const table = tables.get(change.t);
    if (!table) throw new Error(`the table ${change.t} is not known`);
    const bind = (cells: Cells) =>
      Object.entries(cells).map(([column, cell]) => toSqlite(cell, table.blobs.has(column)));
    const where = `WHERE ${table.key.map((column) => `${column} = ?`).join(' AND ')}`;
    if (change.o === 'd') run(`DELETE FROM ${change.t} ${where}`, bind(pick(change.k, table.key)));
    else if (change.o === 'i') {
      const columns = Object.keys(change.v);
      const marks = columns.map(() => '?').join(', ');
      run(`INSERT OR REPLACE INTO ${change.t} (${columns.join(', ')}) VALUES (${marks})`, bind(change.v));
    } else {
      const sets = Object.keys(change.v).map((column) => `${column} = ?`);
      run(`UPDATE ${change.t} SET ${sets.join(', ')} ${where}`, [
        ...bind(change.v),
        ...bind(pick(change.k, table.key)),
      ]);
    }
  }
}

const pick = (cells: Cells, names: readonly string[]): Cells =>
  Object.fromEntries(names.map((name) => [name, cells[name] ?? null]));

/** Inserts rows that were read from PostgreSQL, in the order of the table's columns. */
export function insertRows(
  db: Connection,
  table: Table,
  rows: readonly (readonly unknown[])[],
  orReplace: '' | 'OR REPLACE' = '',
): void {
  const statement = db.statement(
    `INSERT ${orReplace} INTO ${table.name} (${table.list}) VALUES (${table.columns.map(() => '?').join(', ')})`,
  );
  for (const row of rows)
    statement.run(...row.map((cell) => (typeof cell === 'string' ? fromPostgres(cell) : (cell as number | null))));
}

/** All rows of a table, for the first load of PostgreSQL. */
export function* readRows(db: Connection, table: Table, atATime = 2000): Generator<Cells[]> {
  const statement = db.database.prepare(`SELECT ${table.list} FROM ${table.name}`);
  statement.setReturnArrays(true);
  let rows: Cells[] = [];
  for (const row of statement.iterate() as Iterable<unknown> as Iterable<readonly unknown[]>) {
    rows.push(Object.fromEntries(table.columns.map((column, n) => [column, toJson(row[n])])));
    if (rows.length < atATime) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
}

function toJson(cell: unknown): Cell {
  if (cell instanceof Uint8Array) return `\\x${Buffer.from(cell).toString('hex')}`;
  if (typeof cell === 'string') return toPostgres(cell);
  return typeof cell === 'number' ? cell : typeof cell === 'bigint' ? String(cell) : null;
}
