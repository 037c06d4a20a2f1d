import type { Column, FileRecord, Table, Value } from '../model.js';
import { cutRows, isCut } from './rows.js';
import { localTime, type SourceFile } from './source.js';
import type { WhereAll } from './wording.js';
import { showValue } from './written.js';

/** Which table, and which of its rows, an object in a template stands for. Not visible to the template. */
export const ORIGIN = Symbol('origin');

export interface RowOrigin {
  readonly of: Table;
  readonly cells: readonly Value[];
}

export interface TableOrigin {
  readonly of: Table;
}

export interface FactsOrigin {
  readonly facts: ReadonlyMap<string, Value>;
}

/** `constructor` or `__proto__` are names in a file like any other: nothing is inherited. */
export interface Named {
  [name: string]: unknown;
  [ORIGIN]?: RowOrigin | TableOrigin | FactsOrigin;
}

// An empty prototype instead of none: V8 then gives the rows of one table one shape, and fills them twice as fast.
const NOTHING: object = Object.freeze(Object.create(null));
const createNamed = (): Named => Object.create(NOTHING);

/** What one run's templates see, and what the program knows while it fills them in. */
export interface View {
  readonly record: FileRecord;
  readonly file: SourceFile;
  /** The variables of the templates. */
  readonly scope: Scope;
}

export interface Scope {
  readonly meta: Named;
  readonly readings: readonly Named[];
  readonly columns: readonly { name: string; unit: string | null }[];
  readonly tables: Named;
  readonly file: Record<(typeof FILE_NAMES)[number], string | number>;
  readonly instrument: string;
  readonly now: string;
  /** Where all rows are to be found; set once the comments are known. */
  [ALL_ROWS]: WhereAll;
}

export const ALL_ROWS = Symbol('all rows');
export const FILE_NAMES = ['name', 'stem', 'path', 'size', 'modified', 'sha256'] as const;
export const VARIABLES = ['meta', 'readings', 'columns', 'tables', 'file', 'instrument', 'now'] as const;

export function createView(record: FileRecord, file: SourceFile, instrument: string, nowMs: number): View {
  const [first] = record.tables;
  // Most templates use few of them, and rows are the costly ones: each is made when asked for.
  const meta = once(() => seeFacts(record.meta));
  const rows = new Map(record.tables.map((table) => [table, once(() => seeRows(table))]));
  const tables = once(() => seeTables(rows));
  const columns = once(() => seeColumns(first?.columns ?? []));
  const { name, stem, path, size, sha256 } = file;
  const scope: Scope = {
    get meta() {
      return meta();
    },
    get readings() {
      return (first && rows.get(first)?.()) ?? [];
    },
    get columns() {
      return columns();
    },
    get tables() {
      return tables();
    },
    file: {
      name,
      stem,
      path,
      size,
      get modified() {
        return localTime(file.modifiedMs);
      },
      sha256,
    },
    instrument,
    get now() {
      return localTime(nowMs);
    },
    [ALL_ROWS]: 'file',
  };
  return { record, file, scope };
}

/** The variables again, out of Liquid's context, which knows them as any object. */
export const scopeIn = (environments: object): Partial<Scope> => environments;

function once<T>(make: () => T): () => T {
  let made: { readonly it: T } | undefined;
  return () => {
    made ??= { it: make() };
    return made.it;
  };
}

const seeColumns = (columns: readonly Column[]) =>
  columns.map(({ name, unit }) => ({ name, unit: unit ?? null }));

function seeFacts(facts: ReadonlyMap<string, Value>): Named {
  const named = createNamed();
  for (const [name, value] of facts) put(named, name, value);
  named[ORIGIN] = { facts };
  return named;
}

function seeTables(rows: ReadonlyMap<Table, () => readonly Named[]>): Named {
  const named = createNamed();
  for (const [{ name }, get] of rows) {
    // Of tables with one name, the first is the one that `readings` stands for.
    if (!(name in named)) Object.defineProperty(named, name, { get, enumerable: true });
  }
  return named;
}

function seeRows(table: Table): readonly Named[] {
  const see = (cells: readonly Value[]): Named => seeRow(table, cells);
  // Made all at once where all are kept: a loop over them is then as fast as over any array.
  const rows = isCut(table) ? cutRows(table, see) : table.rows.map(see);
  return Object.assign(rows, { columns: seeColumns(table.columns), [ORIGIN]: { of: table } });
}

function seeRow(table: Table, cells: readonly Value[]): Named {
  const named = createNamed();
  for (let i = 0; i < cells.length; i++) {
    const column = table.columns[i];
    const value = cells[i];
    if (column && value) put(named, column.name, value);
  }
  named[ORIGIN] = { of: table, cells };
  return named;
}

/** A value that is missing or censored is null; what was written in its place is `NAME text`. */
function put(named: Named, name: string, value: Value): void {
  named[name] = showValue(value);
  if (value.value !== null || value.text === '') return;
  const beside = `${name} text`;
  if (!(beside in named)) named[beside] = value.text;
}
