import { cellReference, type Where } from '../../config/grammar.js';
import { type ParseOptions, type TableOptions, tableSchema } from '../../config/vocabulary.js';
import type { FileRecord, Table, Value } from '../../model.js';
import { nearest } from '../../text.js';
import { lineFormat } from '../cells.js';
import type { Line, Refuse, TimeSlice } from '../lines.js';
import type { OpenFile } from '../source.js';
import { createDateReader, type DateOptions, withFixedZone } from '../values/date.js';
import { parseZone } from '../values/date-candidates.js';
import { unitInBrackets } from '../values/unit.js';
import {
  createNumberReader,
  createValueReader,
  isUnreadable,
  readTyped,
  type ValueReader,
} from '../values/value.js';
import { cleanName, createUniqueNames } from './columns.js';
import type { Context } from './context.js';
import { createPairFinder } from './facts.js';
import { createWatchedCells } from './lines.js';
import type { Found, Tree } from './tree.js';
import { type CellContext, readTreeTable, type TextRow, type TextTable, tableFrom } from './tree-tables.js';

/** What else is known of a file that is a tree. */
export interface TreeFile {
  readonly refuse: Refuse;
  readonly slice: TimeSlice;
  /** What `meta` found: in the file's name or path, or in its lines where it has some. */
  readonly named: readonly NamedFact[];
  /** The text of a cell such as `=C3`, where the file has lines. */
  readonly cell?: (written: string) => string | undefined;
}

/** Reads JSON, XML or records: facts and tables by their paths. */
export async function readTree(tree: Tree, file: TreeFile, options: ParseOptions): Promise<FileRecord> {
  const { refuse, slice: pace, named } = file;
  const sources: FactSources = { named, tree, cell: file.cell, refuse };
  const context = createCellContext(options, sources, pace);
  const meta = readFacts(options.facts, sources, context.values, context.dates);
  const tables: Table[] = [];
  let rows = 0;
  for (const [name, table] of Object.entries(options.tables)) {
    const text = await readTreeTable(name, table, tree, (from) => requireFound(from, sources), context);
    rows += text.rows.length;
    refuseManyRows(rows, options, refuse);
    tables.push(await tableFrom(name, withoutPaths(table, text), text, context));
  }
  if (meta.size === 0 && tables.every(({ count }) => count === 0)) {
    throw refuse('the mapping finds no fact and no row', {
      hint: 'say where they are: `facts: { sample: //Sample }`, `table: { rows: //Reading }`',
    });
  }
  return { meta, tables };
}

/** What is left to be heeded, once the cells were found: which columns there are, and what is no column, is settled. */
function withoutPaths(table: TableOptions, { columns }: TextTable): TableOptions {
  const own = Object.entries(table.where ?? {}).filter(([key]) => columns.some(({ name }) => name === key));
  return { ...table, columns: undefined, where: Object.fromEntries(own) };
}

const NONE: ReadonlySet<string> = new Set();

/** What `meta` and cell references find beside the tree: in the file's name or path, or in its lines where it has some. */
export async function namedIn(
  { source, refuse, slice: pace }: OpenFile,
  options: ParseOptions,
  lines: readonly Line[] = [],
): Promise<TreeFile> {
  const context: Context = {
    ...{ options, refuse, slice: pace, sheets: [], firstLines: lines.slice(0, 100), maxKeptCells: 0 },
    ...{
      path: source.path,
      name: source.name,
      lineFormat: lineFormat(options.delimiter ?? 'tab', options.quote),
    },
  };
  const cells = createWatchedCells(context);
  const finders = options.meta.map((finder) => createPairFinder(finder, context));
  for (const line of lines) {
    cells.take(line);
    for (const finder of finders) finder.take(line, false);
  }
  const pairs = finders.flatMap((finder) => finder.finish(NONE));
  return {
    ...{ refuse, slice: pace },
    named: pairs.map(({ line, ...pair }) => ({ ...pair, line: line?.number })),
    cell: (written) => cells.at(written)?.text,
  };
}

/** How the values of a file are read, once it is known where its time zone stands. */
function createCellContext(options: ParseOptions, sources: FactSources, pace: TimeSlice): CellContext {
  const dates = knownDates(options, sources);
  const values = createValueReader({
    numbers: createNumberReader(options),
    dates: createDateReader(dates),
    missing: options.missing,
  });
  return { options, values, dates, refuse: sources.refuse, slice: pace };
}

function refuseManyRows(rows: number, { limits }: ParseOptions, refuse: Refuse): void {
  if (rows <= limits.maxRows) return;
  throw refuse(`the tables have ${rows} rows, more than are read`, {
    hint: `if such files are to be read, allow more: \`limits: { rows: ${rows} }\``,
  });
}

/** A fact that the file says by a name, or that its own name says. */
export interface NamedFact {
  readonly name: string;
  readonly text: string;
  readonly unit?: string | undefined;
  /** Of the file, where it stands in one. */
  readonly line?: number | undefined;
}

/** Where facts are looked for. */
interface FactSources {
  /** What finders found, or labels. */
  readonly named: readonly NamedFact[];
  readonly tree: Tree | undefined;
  /** The text of a cell such as `=C3`, where the file has lines. */
  readonly cell: ((written: string) => string | undefined) | undefined;
  readonly refuse: Refuse;
}

/** Whatever a mapping refers to: a path, a cell, or a fact by its name. What is not there is refused. */
function requireFound(written: string | number, sources: FactSources): Found {
  const { tree, named, refuse } = sources;
  const name = String(written);
  if (cellReference(name)) return cellAt(name, sources);
  const known = name.startsWith('/') ? undefined : named.find((fact) => isCalled(fact, name));
  if (known) return { text: known.text, unit: known.unit, line: known.line ?? 0 };
  const found = tree?.lookup(written)();
  if (found) return found;
  const names = named.map((fact) => fact.name);
  const { message, hint, line } = tree?.explainMissing(written) ?? noSuchFact(name, names);
  throw refuse(message, { hint, at: line === undefined ? undefined : { line }, isMismatch: true });
}

const isCalled = (fact: NamedFact, name: string): boolean =>
  fact.name === name || fact.name === cleanName(name) || unitInBrackets(fact.name)?.name === name;

function noSuchFact(
  name: string,
  names: readonly string[],
): { message: string; hint: string; line?: number } {
  const near = nearest(name, names);
  return {
    message: `there is no fact ${JSON.stringify(name)}`,
    hint:
      near === undefined
        ? `the file says: ${names.slice(0, 20).join(', ')}`
        : `did you mean ${JSON.stringify(near)}?`,
  };
}

function cellAt(written: string, { cell, refuse }: FactSources): Found {
  const text = cell?.(written);
  if (text === undefined) throw refuse(`there is no cell ${written}`);
  return { text, unit: undefined, line: cellReference(written)?.line ?? 0 };
}

/** The zone may be a fact of the file itself, and every date waits for it. */
function knownDates({ dates }: ParseOptions, sources: FactSources): DateOptions {
  if (typeof dates.zone !== 'object') return withFixedZone(dates);
  const { text, line } = requireFound(dates.zone.from, sources);
  const zone = parseZone(text);
  if (zone !== undefined) return { ...withFixedZone(dates), zone };
  throw sources.refuse(`this is no time zone: ${JSON.stringify(text)}`, {
    at: { line },
    hint: 'give the zone itself: `dates: { zone: Europe/Zurich }`',
  });
}

/** Everything that the record will say of the file: what has a name in it, then what the mapping names. */
function readFacts(
  wanted: Readonly<Record<string, Where>>,
  sources: FactSources,
  values: ValueReader,
  dates: DateOptions,
): Map<string, Value> {
  const meta = new Map<string, Value>();
  const unique = createUniqueNames();
  for (const { name, text, unit } of sources.named) {
    const value = values.read(text);
    const isBare = typeof value.value === 'number' && value.unit === undefined;
    const own = isBare && unit === undefined ? unitInBrackets(name) : undefined;
    meta.set(unique(own?.name ?? name), isBare ? withUnit(value, unit ?? own?.unit) : value);
  }
  for (const [name, spec] of Object.entries(wanted)) {
    const found = (spec.from ?? [name]).map((part) => requireFound(part, sources));
    meta.set(name, readFact(found, spec, sources, values, dates));
  }
  return meta;
}

function readFact(
  found: readonly Found[],
  spec: Where,
  sources: FactSources,
  values: ValueReader,
  dates: DateOptions,
): Value {
  const texts = found.map(({ text }) => text.trim()).filter((text) => text !== '');
  const text = texts.join(' ');
  const type = spec.type ?? (spec.format ? 'date' : undefined);
  const reader = spec.format ? createDateReader({ ...dates, format: spec.format }) : values.dates;
  const read = type === undefined ? values.read(text) : readTyped(text, type, values, reader);
  if (isUnreadable(read)) {
    throw sources.refuse(read.problem, { hint: read.hint, at: { line: found[0]?.line ?? 1 } });
  }
  const unit = typeof spec.unit === 'object' ? requireFound(spec.unit.from, sources).text : spec.unit;
  return withUnit(read, unit ?? (found.length === 1 ? found[0]?.unit : undefined));
}

/** Only numbers have units. */
const withUnit = (value: Value, unit: string | undefined): Value =>
  unit === undefined || unit === '' || typeof value.value !== 'number' ? value : { ...value, unit };

/** A file that says everything by labels: facts, and data that need no mapping. */
interface LabelledFile {
  readonly labels: readonly NamedFact[];
  readonly tables: readonly LabelledTable[];
}

interface LabelledTable {
  readonly columns: readonly { readonly name: string; readonly unit: string | undefined }[];
  readonly rows: readonly TextRow[];
  readonly line: number;
  /** How many rows the file itself says that there are. */
  readonly declared: number | undefined;
}

/** Reads it, as it is; a mapping may name facts and, in the order of the file, tables and their columns. */
export async function readLabelled(
  { labels, tables: data }: LabelledFile,
  file: TreeFile,
  options: ParseOptions,
): Promise<FileRecord> {
  const { refuse, slice: pace } = file;
  const sources: FactSources = {
    named: [...file.named, ...labels],
    tree: undefined,
    cell: undefined,
    refuse,
  };
  const context = createCellContext(options, sources, pace);
  const meta = readFacts(options.facts, sources, context.values, context.dates);
  const date = meta.has('date') ? undefined : dateIn(labels, context);
  if (date) meta.set('date', date);

  const rows = data.reduce((sum, table) => sum + table.rows.length, 0);
  refuseManyRows(rows, options, refuse);
  const wanted = Object.entries(options.tables);
  const lacking = wanted[data.length];
  if (lacking) {
    throw refuse(`there is no data for table ${lacking[0]}: the file has ${data.length} tables`, {
      hint: 'name at most as many tables as the file has, in its order',
    });
  }
  const unique = createUniqueNames();
  const tables: Table[] = [];
  for (const [n, table] of data.entries()) {
    const [name, how] = wanted[n] ?? ['readings', tableSchema.parse({})];
    requireCount(table, how, context);
    const columns = table.columns.map((column) => ({ ...column, spec: undefined }));
    tables.push(await tableFrom(unique(name), how, { columns, rows: table.rows }, context));
  }
  return { meta, tables };
}

/** A mapping that knows better than the file has the last word. */
function requireCount(
  { rows, declared, line }: LabelledTable,
  { count }: TableOptions,
  { refuse }: CellContext,
): void {
  const wanted = typeof count === 'number' ? count : declared;
  if (wanted === undefined || wanted === rows.length) return;
  throw refuse(`there are ${rows.length} points, and there must be ${wanted}`, {
    at: { line },
    hint: `the file may be cut short; if it is not, say so: \`table: { count: ${rows.length} }\``,
  });
}

/** The day by the file's own label, where it can mean one day only. */
function dateIn(labels: readonly NamedFact[], { values }: CellContext): Value | undefined {
  const textOf = (key: string) =>
    labels.find(({ name }) => name.replace(/[\s\-_/]/g, '').toUpperCase() === key)?.text;
  const [long, day, time] = [textOf('LONGDATE'), textOf('DATE'), textOf('TIME')];
  for (const text of [long, day && time && `${day} ${time}`, day]) {
    const iso = text ? values.dates.readAsDate(text) : undefined;
    if (text && iso !== undefined) return { value: iso, text };
  }
  return undefined;
}
