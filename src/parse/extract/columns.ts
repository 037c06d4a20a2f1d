import { regexSource, type Where } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import type { Column } from '../../model.js';
import { joinTexts, type Line, type Refuse, suggestName } from '../lines.js';
import { bareUnit, isHemisphere, isUnit, unitAfterSlash, unitInName } from '../values/unit.js';
import type { NumberReader } from '../values/value.js';
import type { Context } from './context.js';

/** A row in the file: cells in the order of the table's file columns. */
export type Cells = readonly string[];

/** A column of the file. */
export interface FileColumn {
  /** As in the file, including a unit. */
  readonly name: string;
  /** From the units row. */
  readonly unit: string | undefined;
  /** Index in the row. Captured columns, which have one value per block, count down from -1. */
  readonly cell: number;
  /** False if the file has no name for it. */
  readonly isNamed: boolean;
}

export const unnamedColumn = (cell: number): FileColumn => ({
  name: `column ${cell + 1}`,
  unit: undefined,
  cell,
  isNamed: false,
});

export const namedColumn = (name: string, cell: number, unit?: string): FileColumn => ({
  name,
  unit,
  cell,
  isNamed: true,
});

/** A column of the record. */
export interface PlannedColumn {
  /** The name in the mapping; undefined if it keeps the file's own. */
  readonly given: string | undefined;
  /** Undefined if it is joined, computed, or a single cell of the file. */
  readonly column: FileColumn | undefined;
  readonly spec: Where;
  text(cells: Cells): string;
}

/** What the mapping says of all columns whose names match. */
interface ColumnPattern {
  readonly written: string;
  readonly regex: RegExp;
  readonly spec: Where;
}

export const columnPatterns = ({ columns = {} }: TableOptions): ColumnPattern[] =>
  Object.entries(Array.isArray(columns) ? {} : columns).flatMap(([written, spec]) => {
    const source = regexSource(written);
    return source === undefined ? [] : [{ written, regex: new RegExp(source), spec }];
  });

/** What determines the columns of a table. */
export interface ColumnPlanning {
  readonly options: TableOptions;
  readonly patterns: readonly ColumnPattern[];
  readonly context: Context;
  /** Columns without a header are added when rows have them. */
  readonly columns: FileColumn[];
  /** The values of captured columns in the current block. */
  readonly captured: readonly string[];
  readonly header: Line | undefined;
}

/** `captured` changes with each block, so it is read when a row needs it. */
export const textOf = ({ cell }: FileColumn, table: Pick<ColumnPlanning, 'captured'>) =>
  cell < 0 ? () => table.captured[-1 - cell] ?? '' : (cells: Cells) => cells[cell] ?? '';

/** The file's columns, as the mapping renames, types, adds or selects them. */
export function planColumns(table: ColumnPlanning): PlannedColumn[] {
  const { options, columns } = table;
  if (Array.isArray(options.columns)) {
    return isByPosition(options)
      ? columns.flatMap((column) => planFurther(column, table))
      : options.columns.filter((name) => name !== '_').map((name) => keep(findColumn(name, table), table));
  }
  requirePatterns(table);
  const planned = Object.entries(options.columns ?? {})
    .filter(([given]) => regexSource(given) === undefined)
    .map(([given, spec]) => plan(given, spec, table));
  const axes = planned.filter(({ spec }) => spec.start !== undefined);
  const own = columns.map((column) => keep(column, table));
  for (const column of planned) if (!axes.includes(column)) insert(own, column);
  return [...axes, ...own];
}

function requirePatterns({ patterns, columns, context, header }: ColumnPlanning): void {
  const unused = patterns.find(({ regex }) => !columns.some(({ name }) => regex.test(name)));
  if (unused) throw context.refuse(`no column matches ${unused.written}`, { line: header, isMismatch: true });
}

/** Plans a column that appears after the first header. */
export function planFurther(column: FileColumn, table: ColumnPlanning): PlannedColumn[] {
  const { columns } = table.options;
  if (!Array.isArray(columns) || column.cell < 0) return [keep(column, table)];
  const name = isByPosition(table.options) ? columns[column.cell] : undefined;
  return name === undefined || name === '_' ? [] : [keep(column, table, name)];
}

export const isByPosition = ({ header, rows }: Pick<TableOptions, 'header' | 'rows'>): boolean =>
  header[0] === 'none' && rows === undefined;

const keep = (column: FileColumn, table: ColumnPlanning, given?: string): PlannedColumn => ({
  given,
  column,
  spec: (given === undefined && table.patterns.find(({ regex }) => regex.test(column.name))?.spec) || {},
  text: textOf(column, table),
});

function plan(given: string, spec: Where, table: ColumnPlanning): PlannedColumn {
  if (spec.start !== undefined) return { given, column: undefined, spec, text: () => '' };
  const parts = (spec.from ?? [given]).map((part): ((cells: Cells) => string) | FileColumn =>
    typeof part === 'string' && part.startsWith('=')
      ? () => table.context.cells.at(part)?.text ?? ''
      : findColumn(part, table),
  );
  const [only] = parts;
  if (parts.length === 1 && typeof only === 'object') return { ...keep(only, table, given), spec };
  const texts = parts.map((part) => (typeof part === 'function' ? part : textOf(part, table)));
  return { given, column: undefined, spec, text: (cells) => joinTexts(texts.map((part) => part(cells))) };
}

/** A renamed column keeps its place. Added columns, and second uses of a column, go to the end. */
function insert(planned: PlannedColumn[], column: PlannedColumn): void {
  const at = planned.findIndex((other) => other.given === undefined && other.column === column.column);
  if (column.column === undefined || at < 0) planned.push(column);
  else planned[at] = column;
}

/** Finds a column of the file by its name, with or without unit, or by its position from 1. */
export function findColumn(name: string | number, table: ColumnPlanning): FileColumn {
  const { columns, options, header } = table;
  const found = typeof name === 'number' ? columnAt(name - 1, table) : columnNamed(name, columns, options);
  if (found) return found;
  const names = columns.map((column) => splitUnit(column.name, options.units, true).name);
  throw table.context.refuse(
    typeof name === 'number' ? `the rows have no cell ${name}` : `there is no column ${JSON.stringify(name)}`,
    {
      line: header,
      hint: typeof name === 'number' ? undefined : suggestName(name, names, 'the columns are'),
      isMismatch: true,
    },
  );
}

const columnNamed = (name: string, columns: readonly FileColumn[], { units }: TableOptions) =>
  columns.find((column) => column.name === name) ??
  columns.find((column) => splitUnit(column.name, units, true).name === name) ??
  columns.find((column) => column.name === cleanName(name));

/** Without a header, the number of columns is not known yet. */
function columnAt(cell: number, { columns, options }: ColumnPlanning): FileColumn | undefined {
  const found = columns.find((column) => column.cell === cell);
  if (found || !isByPosition(options)) return found;
  const width = columns.filter((column) => column.cell >= 0).length;
  for (let next = width; next <= cell; next++) columns.push(unnamedColumn(next));
  return columns.at(-1);
}

/** Splits the unit from a column's name as `units` says. A column of units concerns only the numbers to its left. */
export function splitUnit(name: string, units: TableOptions['units'], isNumeric: boolean): SplitName {
  // `Load (V) (2)`, if two columns are called `Load (V)`.
  const [, repeated, number] = /^(.*\S)( \(\d+\))$/.exec(name) ?? [];
  const split = repeated === undefined ? undefined : splitWritten(repeated, units, isNumeric);
  return split?.unit === undefined
    ? splitWritten(name, units, isNumeric)
    : { ...split, name: `${split.name}${number}` };
}

interface SplitName {
  readonly name: string;
  readonly unit?: string;
}

function splitWritten(name: string, units: TableOptions['units'], isNumeric: boolean): SplitName {
  switch (typeof units === 'object' ? 'inHeader' : units) {
    case 'inHeader':
      return (isNumeric ? unitInName(name) : undefined) ?? { name };
    case 'slash':
      // `Cycle / 1`: a number without a unit.
      if (/ \/ 1$/.test(name)) return { name: name.slice(0, -4).trim() };
      // `Flow (mL/min)`: the name of a group and of its column.
      return (/[)\]]$/.test(name) ? unitInName(name) : undefined) ?? unitAfterSlash(name, isNumeric) ?? { name };
    case 'nextRow':
    case 'firstRow':
    case 'none':
      return { name };
  }
}

/** The lines above the rows of a block. */
export interface Head {
  /** Without comment prefixes; empty if there is no header. */
  readonly header: readonly Line[];
  readonly units: Line | undefined;
}

/** The columns that a header and a units row name. */
export function readHeader({ header, units }: Head): FileColumn[] {
  const unique = createUniqueNames();
  const width = Math.max(0, ...[...header, ...(units ? [units] : [])].map(({ cells }) => cells.length));
  const names = withoutLabel(joinRows(header, width), units);
  const areBracketed = units?.cells.some(isBracketed);
  return Array.from({ length: width }, (_, cell) => {
    const written = (units?.cells[cell] ?? '').replace(cell === 0 ? LABEL_AND_UNIT : NOTHING, '');
    const isLabel = UNITS_LABEL.test(written);
    const isOther = areBracketed && /^\p{L}{2,}$/u.test(written) && !isUnit(written) && !isLabel;
    const isWord = names[cell] && (isOther || isHemisphere(written, names[cell]));
    const name = cleanName(isWord ? `${names[cell]} ${written}` : (names[cell] ?? ''));
    const unit = isWord || isLabel ? undefined : bareUnit(written);
    return name === ''
      ? { ...unnamedColumn(cell), name: unique(unnamedColumn(cell).name), unit }
      : namedColumn(unique(name), cell, unit);
  });
}

/** `Name:Time`, `Units: s`: the first cells of lines that say what they are. */
const LABEL_AND_UNIT = /^(?:units?|einheit(?:en)?|unit[ée]s?|unidad(?:es)?|unit[àa])\s*[:=]\s*(?=\S)/i;
const LABEL_AND_NAME =
  /^(?:names?|labels?|columns?|channels?|parameters?|variables?|signals?|fields?|headers?|spalten?)\s*[:=]\s*(?=\S)/i;
const NOTHING = /^(?!)/;

function withoutLabel(names: readonly string[], units: Line | undefined): readonly string[] {
  const [first = '', ...others] = names;
  if (others.length === 0 || others.some((name) => /[:=]/.test(name))) return names;
  const isLabelled = LABEL_AND_UNIT.test(units?.cells[0] ?? '');
  return [first.replace(isLabelled ? /^\p{L}[\p{L} ]*\s?[:=]\s*(?=\S)/u : LABEL_AND_NAME, ''), ...others];
}

/** Beside `[min]`, the word `used` is not a unit but the rest of a name. */
const isBracketed = (cell: string): boolean => /^(?:\[.*\]|\(.*\))$/.test(cell.trim());

/** What the row of units is called, in its first cell, and what it calls a column of numbers without a unit. */
const UNITS_LABEL =
  /^(?:n[or]\.?|rn|ts|units?|einheit(?:en)?|unit[ée]s?|unidad(?:es)?|unit[àa]|eenhe(?:id|den)|единицы|単位|单位)\s*:?$/i;

/** Whether the first cell of a line says that it is the row of units, and perhaps also the first unit. */
export const isUnitsLabel = (cell: string): boolean => UNITS_LABEL.test(cell) || LABEL_AND_UNIT.test(cell);

/**
 * Names that span several header rows. Repetitions come from merged cells. A name that repeats in the last row needs the
 * name of its group, which is above the first column of the group only.
 */
function joinRows(header: readonly Line[], width: number): readonly string[] {
  const first = header.at(-1)?.cells[0];
  // `Signals=`, or `Sensor` left of `North,North,South`, says what the names of groups are.
  const isLabel = ({ cells: [text = '', ...groups] }: Line) =>
    first && text !== first && (/[:=]$/.test(text) || (!groups.includes('') && repeatedIn(groups).size > 0));
  const unlabelled = header.filter((line) => !isLabel(line));
  const names = Array.from({ length: width }, (_, cell) => {
    const texts = new Set((cell === 0 ? unlabelled : header).map(({ cells }) => cells[cell]));
    return joinTexts([...texts]);
  });
  return header.length > 1 && repeatedIn(names).size > 0 ? withGroups(header, names) : names;
}

/** With the names of their groups, where the last row repeats a name. */
export function withGroups(header: readonly Line[], names: readonly string[]): readonly string[] {
  const last = header.at(-1)?.cells ?? [];
  const repeated = repeatedIn(last);
  const groups = header.slice(0, -1).map(({ cells }) => groupsOf(cells, last) ?? groupsFrom(cells, names));
  return names.map((own, cell) => {
    const name = last[cell] ?? '';
    // To the left of all groups, a row has its own label.
    if (!repeated.has(name)) return cell === 0 && name !== '' ? name : own;
    return joinGroups([...groups.map((each) => each[cell] ?? ''), name]);
  });
}

/** Each title is that of the columns from its own to the next one. */
function groupsFrom(titles: readonly string[], names: readonly string[]): readonly string[] {
  let group = '';
  return names.map((_, cell) => {
    group = titles[cell] || group;
    return group;
  });
}

/**
 * Titles can be above the middle of their columns. As many blocks of the same names as there are titles show which columns
 * these are; undefined if there are none.
 */
function groupsOf(titles: readonly string[], names: readonly string[]): readonly string[] | undefined {
  const repeated = repeatedIn(names);
  const from = names.findIndex((name) => repeated.has(name));
  const to = names.findLastIndex((name) => repeated.has(name)) + 1;
  const titled = titles.flatMap((title, cell) => (title !== '' && cell >= from && cell < to ? [cell] : []));
  const size = (to - from) / titled.length;
  const isBlock = Number.isInteger(size) && size > 1 && from >= 0;
  if (!isBlock || !names.slice(from + size, to).every((name, n) => name === names[from + n])) return undefined;
  const blockOf = (cell: number) => Math.floor((cell - from) / size);
  // Otherwise, nobody knows.
  const areApart = titled.every((cell, n) => blockOf(cell) === n);
  return names.map((_, cell) =>
    areApart && cell >= from && cell < to ? (titles[titled[blockOf(cell)] ?? 0] ?? '') : '',
  );
}

/** The unit of a group is that of its columns: `RT (s)` above `H2` becomes `RT H2 (s)`. */
function joinGroups(names: readonly string[]): string {
  const split = names.map((name) => unitInName(name) ?? { name, unit: undefined });
  const units = split.flatMap(({ unit }) => unit ?? []);
  if (units.length !== 1) return joinTexts([...new Set(names)]);
  return `${joinTexts([...new Set(split.map(({ name }) => name))])} (${units[0]})`;
}

/** The names that occur more than once. */
export function repeatedIn(names: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  return new Set(names.filter((name) => name !== '' && (seen.has(name) || !seen.add(name))));
}

/** A header of numbers is probably a row. */
export function refuseNumbers({ header }: Head, numbers: NumberReader, refuse: Refuse): void {
  const names = header.flatMap(({ cells }) => cells).filter((cell) => cell !== '');
  const isNumber = (name: string) => numbers.read(name) !== undefined || numbers.isAmbiguous(name);
  if (names.length === 0 || !names.every(isNumber)) return;
  throw refuse('the header consists of numbers', {
    line: header[0],
    hint: 'if the file has no header: `table: { header: none }`; otherwise specify its start: `header: "…"`',
  });
}

/** A name on one line, without a trailing `:`, `=` or `?`. */
export function cleanName(written: string): string {
  const name = written.includes('\n')
    ? written
        .split('\n')
        .map((part) => part.trim())
        .join(' ')
    : written;
  // Not a regular expression: one that is anchored at the end is tried at each character of a long line.
  let end = name.length;
  while (end > 0 && TRAILING.has(name.charAt(end - 1))) end--;
  // Empty cells before the name of a fact.
  return name.slice(0, end).replace(/^[\s,;|]+/, '');
}

const TRAILING = new Set([' ', '\t', '\u00a0', ':', '=', '?', ';']);

/** Adds ` (2)` to a name that is used again. */
export function createUniqueNames(): (name: string) => string {
  const taken = new Set<string>();
  const times = new Map<string, number>();
  return (name) => {
    let unique = name;
    let n = times.get(name) ?? 1;
    while (taken.has(unique)) unique = `${name} (${++n})`;
    times.set(name, n);
    taken.add(unique);
    return unique;
  };
}

/**
 * `Time (s),Voltage (V),Time,Voltage`: where the same names repeat in the same order, and only the first of them have
 * units, these are also those of the others. A first column can be that of the rows.
 */
export function withUnitsOfBlocks(columns: readonly Column[]): Column[] {
  const hasBoth = columns.some(({ unit }) => unit !== undefined) && columns.some(({ unit }) => unit === undefined);
  if (!hasBoth || columns.length < 4 || columns.length > MAX_IN_BLOCKS) return [...columns];
  const names = columns.map(({ name }) => name.replace(NUMBERING, '').replace(/\d+|\b[A-H]\b/g, '#'));
  for (const start of [0, 1]) {
    const width = names.indexOf(names[start] ?? '', start + 1) - start;
    const isBlock = width > 1 && (columns.length - start) % width === 0;
    if (!isBlock || new Set(names.slice(start, start + width)).size < width) continue;
    const others = columns.slice(start + width);
    const areRepeated = others.every((_, n) => names[start + width + n] === names[start + (n % width)]);
    if (!areRepeated || others.some(({ unit }) => unit !== undefined)) continue;
    return columns.map((column, n) => {
      const unit = n < start ? undefined : columns[start + ((n - start) % width)]?.unit;
      return column.unit === undefined && unit !== undefined ? { ...column, unit } : column;
    });
  }
  return [...columns];
}

/** More columns are those of a matrix. */
const MAX_IN_BLOCKS = 200;
const NUMBERING = /(?: \(\d+\))+$/;
