import { type Comparable, type ComparableResult, Drop, toValue } from 'liquidjs';
import type { Column, FileRecord, Table, Value } from '../model.js';
import { localTime, type SourceFile } from './date.js';
import { cutRows, isCut, type WhereAll } from './tables.js';

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
interface Named {
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

interface Scope {
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

/**
 * A value as templates see it: prints as it was written (`2.100`), compares and computes as what it is (2.1).
 * Not a Drop, since Liquid would then print its value.
 */
export class Written implements Comparable {
  readonly value: string | number | true;
  readonly text: string;
  readonly unit: string | null;

  constructor(value: string | number | true, { text, unit }: Value) {
    this.value = value;
    this.text = text;
    this.unit = unit ?? null;
  }

  toString(): string {
    return this.text;
  }

  valueOf(): string | number | true {
    return this.value;
  }

  toJSON(): string | number | true {
    return this.value;
  }

  get length(): number {
    return this.text.length;
  }

  get size(): number {
    return this.text.length;
  }

  /** What Liquid's `contains` asks for. */
  indexOf(part: unknown): number {
    return this.text.indexOf(String(part));
  }

  equals(other: unknown): ComparableResult {
    // `empty`, `blank` and `nil` know what equals them.
    if (other instanceof Drop && typeof other['equals'] === 'function') return other['equals'](this.text);
    const that = plain(other);
    return that === this.value || that === this.text;
  }

  gt(other: unknown): boolean {
    return this.value > plain(other);
  }

  geq(other: unknown): boolean {
    return this.value >= plain(other);
  }

  lt(other: unknown): boolean {
    return this.value < plain(other);
  }

  leq(other: unknown): boolean {
    return this.value <= plain(other);
  }
}

/** The value false. A Drop, since Liquid takes every other object for true. */
export class WrittenFalse extends Drop {
  readonly text: string;

  constructor(text: string) {
    super();
    this.text = text;
  }

  override valueOf(): false {
    return false;
  }

  override toString(): string {
    return this.text;
  }

  toJSON(): false {
    return false;
  }
}

/** Compared with anything but a number or a text, a value is neither more nor less. */
function plain(other: unknown): string | number | true {
  if (other instanceof Written) return other.value;
  return typeof other === 'string' || typeof other === 'number' || other === true ? other : Number.NaN;
}

type Seen = Written | WrittenFalse | '' | null;

/** Nothing stays nothing, so that `if` and `default` see it. */
function showValue(value: Value): Seen {
  const meaning = value.value;
  if (meaning === null || meaning === '') return meaning;
  return meaning === false ? new WrittenFalse(value.text) : new Written(meaning, value);
}

/** What tells two values apart that Liquid would tell apart as objects. */
export const identityOf = (seen: unknown): unknown =>
  seen instanceof Written ? `${typeof seen.value} ${seen.text} ${seen.unit}` : toValue(seen);

/** A value as a text, whatever it is. */
export function textIn(value: unknown): string {
  const inside: unknown = toValue(value);
  return inside == null ? '' : String(inside);
}
