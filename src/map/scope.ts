import { type Comparable, type ComparableResult, Drop, toValue } from 'liquidjs';
import type { Column, FileRecord, Table, Value } from '../model.js';
import { formatBytes, formatTime, formatUtcOffset, plural, singleLine } from '../text.js';
import { isPartial, lazyRows, partialRows, type RowsLocation } from './tables.js';

/** A run's file as drafts describe it, apart from its content. */
export interface SourceFile {
  readonly name: string;
  /** The name without its extension. */
  readonly stem: string;
  readonly path: string;
  readonly size: number;
  readonly modifiedMs: number;
  readonly sha256: string;
  /** The files of a run that has several. Their names are relative to the run. */
  readonly parts?: readonly SourcePart[] | undefined;
}

type SourcePart = Omit<SourceFile, 'stem' | 'path'>;

/** Name, size and modification time, as a file listing shows them: enough to find the raw file. */
export const describeSource = ({ name, size, modifiedMs, parts }: SourcePart): string =>
  [
    singleLine(name),
    ...(parts ? [plural(parts.length, 'file')] : []),
    size < 100_000 ? formatBytes(size) : `${formatBytes(size)} (${plural(size, 'byte')})`,
    `modified ${formatTime(modifiedMs)} ${formatUtcOffset(modifiedMs)}`,
  ].join(', ');

/** Local time with its UTC offset: `2026-03-04T10:11:12+01:00`. */
const isoTime = (ms: number): string => formatTime(ms).replace(' ', 'T') + formatUtcOffset(ms);

/** What the templates of one run are rendered with. */
export interface TemplateInput {
  readonly record: FileRecord;
  readonly file: SourceFile;
  readonly scope: Scope;
}

/** The variables of the templates. */
interface Scope {
  readonly meta: Named;
  readonly readings: readonly Named[];
  readonly columns: readonly { name: string; unit: string | null }[];
  readonly tables: Named;
  readonly file: Record<(typeof FILE_NAMES)[number], string | number>;
  readonly instrument: string;
  readonly now: string;
  /** Where the filter `table` says that all rows are. Set before the body is rendered, once the comments are known. */
  [ROWS_LOCATION]: RowsLocation;
  /** What the filter `table` has shown in full, and how. */
  [SHOWN]: Map<FileRecord['meta'] | Table, string>;
}

export const ROWS_LOCATION = Symbol('rows location');
export const SHOWN = Symbol('shown');
export const FILE_NAMES = ['name', 'stem', 'path', 'size', 'modified', 'sha256'] as const;
export const VARIABLES = ['meta', 'readings', 'columns', 'tables', 'file', 'instrument', 'now'] as const;

/** Which part of the record an object in a template stands for. A symbol, so that templates do not see it. */
export const ORIGIN = Symbol('origin');

export type Origin =
  | { readonly facts: ReadonlyMap<string, Value> }
  | { readonly table: Table; readonly cells?: readonly Value[] };

/** Inherits nothing: in a file, `constructor` and `__proto__` are names like any other. */
interface Named {
  [name: string]: unknown;
  [ORIGIN]?: Origin;
}

// With an empty prototype instead of none, V8 gives all rows of a table one hidden class and fills them twice as fast.
const EMPTY: object = Object.freeze(Object.create(null));
const createNamed = (): Named => Object.create(EMPTY);

export function createInput(record: FileRecord, file: SourceFile, instrument: string, nowMs: number): TemplateInput {
  // Rows and times are expensive and often unused, so they are built on first use.
  const rows = new Map(record.tables.map((table) => [table, lazy(() => namedRows(table))]));
  const [first] = record.tables;
  const { name, stem, path, size, sha256 } = file;
  const scope: Scope = {
    meta: namedFacts(record.meta),
    get readings() {
      return (first && rows.get(first)?.()) ?? [];
    },
    columns: describeColumns(first?.columns ?? []),
    tables: namedTables(rows),
    file: {
      name,
      stem,
      path,
      size,
      get modified() {
        return isoTime(file.modifiedMs);
      },
      sha256,
    },
    instrument,
    get now() {
      return isoTime(nowMs);
    },
    [ROWS_LOCATION]: 'file',
    [SHOWN]: new Map(),
  };
  return { record, file, scope };
}

/** The scope that a Liquid context was created with. */
export const scopeOf = ({ environments }: { environments: object }): Partial<Scope> => environments;

function lazy<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const describeColumns = (columns: readonly Column[]) => columns.map(({ name, unit }) => ({ name, unit: unit ?? null }));

function namedFacts(facts: ReadonlyMap<string, Value>): Named {
  const named = createNamed();
  for (const [name, value] of facts) setValue(named, name, value);
  named[ORIGIN] = { facts };
  return named;
}

function namedTables(rows: ReadonlyMap<Table, () => readonly Named[]>): Named {
  const named = createNamed();
  for (const [{ name }, get] of rows) {
    // Among tables of the same name the first wins, as for `readings`.
    if (!(name in named)) Object.defineProperty(named, name, { get, enumerable: true });
  }
  return named;
}

function namedRows(table: Table): readonly Named[] {
  const toNamed = (cells: readonly Value[]): Named => namedRow(table, cells);
  const rows = isPartial(table) ? partialRows(table, toNamed) : lazyRows(table.count, () => table.rows.map(toNamed));
  return Object.assign(rows, { columns: describeColumns(table.columns), [ORIGIN]: { table } });
}

function namedRow(table: Table, cells: readonly Value[]): Named {
  const named = createNamed();
  for (let i = 0; i < cells.length; i++) {
    const column = table.columns[i];
    const value = cells[i];
    if (column && value) setValue(named, column.name, value);
  }
  named[ORIGIN] = { table, cells };
  return named;
}

/** A missing or censored value is null. Its text in the file is available as `NAME text`. */
function setValue(named: Named, name: string, value: Value): void {
  named[name] = toTemplateValue(value);
  if (value.value !== null || value.text === '') return;
  const textName = `${name} text`;
  if (!(textName in named)) named[textName] = value.text;
}

/** Null and '' stay as they are, so that `if` and `default` treat them as Liquid does. */
function toTemplateValue(value: Value): TemplateValue | TemplateFalse | '' | null {
  const meaning = value.value;
  if (meaning === null || meaning === '') return meaning;
  return meaning === false ? new TemplateFalse(value.text) : new TemplateValue(meaning, value);
}

/**
 * A value as templates see it: prints as written in the file (`2.100`), compares and calculates as its value (2.1).
 * Not a Drop, because Liquid prints the value of a Drop.
 */
export class TemplateValue implements Comparable {
  readonly value: string | number | true;
  readonly text: string;
  readonly unit: string | null;
  /** Whether a template printed it as written. */
  isPrinted = false;

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

  /** Liquid's `contains` calls this. */
  indexOf(part: unknown): number {
    return this.text.indexOf(String(part));
  }

  equals(other: unknown): ComparableResult {
    // `empty`, `blank` and `nil` are Drops that decide themselves what equals them.
    if (other instanceof Drop && typeof other['equals'] === 'function') return other['equals'](this.text);
    const operand = toOperand(other);
    return operand === this.value || operand === this.text;
  }

  gt(other: unknown): boolean {
    return this.value > toOperand(other);
  }

  geq(other: unknown): boolean {
    return this.value >= toOperand(other);
  }

  lt(other: unknown): boolean {
    return this.value < toOperand(other);
  }

  leq(other: unknown): boolean {
    return this.value <= toOperand(other);
  }
}

/** The value false. A Drop, because Liquid takes every other object for true. */
export class TemplateFalse extends Drop {
  readonly text: string;
  isPrinted = false;

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

/** NaN, which compares as false, for anything that is neither a number nor a text. */
function toOperand(other: unknown): string | number | true {
  if (other instanceof TemplateValue) return other.value;
  return typeof other === 'string' || typeof other === 'number' || other === true ? other : Number.NaN;
}

/** Equal for values that `uniq` and `group_by` must treat as equal. Liquid compares objects by identity. */
export const equalityKey = (value: unknown): unknown =>
  value instanceof TemplateValue ? `${typeof value.value} ${value.text} ${value.unit}` : toValue(value);

export function toText(value: unknown): string {
  const plain: unknown = toValue(value);
  return plain == null ? '' : String(plain);
}
