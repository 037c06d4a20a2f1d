import type { CommentOptions } from '../config/schema.js';
import { MARK_BYTES } from '../markers.js';
import type { Column, FileRecord, Table, Value } from '../model.js';
import { formatCount, headingOf, multiLine, plural, singleLine, splitBytes, truncateBytes } from '../text.js';
import type { Held } from './omissions.js';
import type { Plate, ShownTable, ShowTable } from './plates.js';
import { describeSource, type SourceFile } from './scope.js';
import { alignTable, cellWithUnit, factLine, isPartial, type RowsLocation, summariseColumns } from './tables.js';

interface Comments {
  readonly comments: readonly string[];
  /** Where a reader of the body finds every row. */
  readonly allRowsIn: RowsLocation;
  /** What they contain in full, apart from what a template prints. */
  readonly holds: Held;
  /** Whether a template made them, and nothing of its text was left out. */
  readonly isTemplate: boolean;
}

interface CommentSources {
  readonly record: FileRecord;
  readonly file: SourceFile;
  readonly options: CommentOptions;
  /** The rendered template, if there is one. It replaces the readings. */
  readonly text: string | undefined;
  readonly show: ShowTable;
}

interface Limits {
  readonly maxBytes: number;
  readonly maxParts: number;
}

/** The comments of one run: plain text, never empty, within the limits once their marker lines are added. */
export function makeComments({ record, file, options, text, show }: CommentSources): Comments {
  const limits: Limits = { maxBytes: options.maxBytes - MARK_BYTES, maxParts: options.maxComments };
  const without = (comments: readonly string[], isTemplate = false): Comments => ({
    ...{ comments, allRowsIn: 'file', holds: new Set(), isTemplate },
  });
  const summary = () => without([summarise(record, file, limits.maxBytes)]);
  if (text !== undefined) {
    const packed = packText(multiLine(text), limits);
    return packed ? without(packed, true) : summary();
  }
  if (options.readings === 'none') return without([]);
  const tables = record.tables.filter(({ count }) => count > 0);
  if (tables.length === 0) {
    const facts = commentFacts(record, file, limits);
    return facts ? { ...without(facts), holds: new Set(isUncut(facts) ? [record.meta] : []) } : summary();
  }
  const comments = commentTables(tables, options.readings, file, limits, show);
  if (!comments) return summary();
  if (!isUncut(comments)) return without(comments);
  return { comments, allRowsIn: 'comments', holds: new Set(tables), isTemplate: false };
}

/** Notes about lines of a growing file, as comments. However long they are, the first comments have the most. */
export const makeNotes = (notes: string, { maxBytes, maxComments }: CommentOptions): string[] =>
  notes === ''
    ? []
    : (packText(multiLine(notes), { maxBytes: maxBytes - MARK_BYTES, maxParts: maxComments }) ?? [
        truncateBytes(multiLine(notes), maxBytes - MARK_BYTES),
      ]);

/** With more lines than this, the comments are only a summary if the raw file is attached. */
const MAX_LINES = 200;

/** The comment that replaces these if the raw file is attached; undefined if they stay as they are. */
export function makeBrief(
  { comments, allRowsIn }: Comments,
  { record, file, options }: CommentSources,
): string | undefined {
  if (options.readings !== 'auto' || allRowsIn !== 'comments') return undefined;
  const lines = comments.reduce((sum, text) => sum + countLines(text), 0);
  return lines <= MAX_LINES ? undefined : summarise(record, file, options.maxBytes - MARK_BYTES, 'attached file');
}

/** A line that was cut ends with "…". One that happens to end like that is in the file as well. */
const isUncut = (comments: readonly string[]): boolean => !comments.some((comment) => /…$/m.test(comment));

/** Undefined if a summary is wanted, or needed because there are too many rows or not all are in memory. */
function commentTables(
  tables: readonly Table[],
  readings: Exclude<CommentOptions['readings'], 'none'>,
  file: SourceFile,
  limits: Limits,
  show: ShowTable,
): string[] | undefined {
  if (tables.some(isPartial)) return undefined;
  switch (readings) {
    case 'table': {
      if (minBytes(tables) > limits.maxBytes * limits.maxParts) return undefined;
      const sections = tables.map((table) => tableSection(table, file, limits));
      return packSections(sections, limits);
    }
    // Wherever comments are shown in a proportional font, aligned columns cannot be read.
    case 'auto':
    case 'lines': {
      if (minBytes(tables) > limits.maxBytes * limits.maxParts) return undefined;
      const sections = tables.flatMap((table) => lineSections(show(table), file, limits));
      return packSections(sections, limits);
    }
    case 'each':
      return commentEachRow(tables, file, limits);
    case 'summary':
      return undefined;
  }
}

/** Less than the rows can take, to avoid laying out a million of them that cannot fit. */
const minBytes = (tables: readonly Table[]): number => tables.reduce((sum, { rows }) => sum + rows.length * 2, 0);

function tableSection({ name, columns, rows }: Table, file: SourceFile, { maxBytes }: Limits): Section {
  const { head, line } = alignTable(columns, rows);
  const title = truncateBytes(singleLine(name), maxBytes / 8);
  // However many columns there are, the headings leave room for rows.
  const headings = head.split('\n').map((line) => truncateBytes(line, maxBytes / 8));
  return {
    heading: (first, last) =>
      [`${title}: ${rowRange(first, last, rows.length)}, from ${shortName(file, maxBytes)}`, ...headings].join('\n'),
    count: rows.length,
    line: (index) => line(rows[index] ?? []),
  };
}

function lineSections(table: ShownTable, file: SourceFile, { maxBytes }: Limits): Section[] {
  const title = truncateBytes(singleLine(table.shown.name), maxBytes / 8);
  return layOutLines(table).map(({ about, noun, count, line, isRaw }) => {
    const columns = about === undefined ? [] : [truncateBytes(singleLine(about), maxBytes / 8)];
    return {
      heading: (first, last) =>
        [`${title}: ${rowRange(first, last, count, noun)}, from ${shortName(file, maxBytes)}`, ...columns].join('\n'),
      count,
      line,
      isRaw,
    };
  });
}

/** `12 rows`, or `rows 1–500 of 2,000` if these are not all. */
function rowRange(first: number, last: number, count: number, noun = 'row'): string {
  if (first === 1 && last === count) return plural(count, noun);
  return `${noun}s ${formatCount(first)}–${formatCount(last)} of ${formatCount(count)}`;
}

const shortName = ({ name }: SourceFile, maxBytes: number): string => truncateBytes(singleLine(name), maxBytes / 4);

function commentEachRow(
  tables: readonly Table[],
  file: SourceFile,
  { maxBytes, maxParts }: Limits,
): string[] | undefined {
  if (tables.reduce((sum, { rows }) => sum + rows.length, 0) > maxParts) return undefined;
  return tables.flatMap(({ name, columns, rows }) =>
    rows.map((cells, i) => {
      const title = `${truncateBytes(singleLine(name), maxBytes / 8)}: row ${formatCount(i + 1)} of ${formatCount(rows.length)}`;
      const lines = columns.map(({ name, unit }, c) => {
        const cell = cells[c] ?? { value: null, text: '' };
        return factLine(name, unit === undefined || cell.unit ? cell : { ...cell, unit });
      });
      return truncateBytes([`${title}, from ${shortName(file, maxBytes)}`, ...lines].join('\n'), maxBytes);
    }),
  );
}

/** For a file without readings. */
function commentFacts({ meta }: FileRecord, file: SourceFile, limits: Limits): string[] | undefined {
  if (meta.size === 0) return [];
  const lines = Array.from(meta, ([name, value]) => factLine(name, value));
  const heading = `facts, from ${shortName(file, limits.maxBytes)}`;
  return packSections([{ heading: () => heading, count: lines.length, line: (index) => lines[index] ?? '' }], limits);
}

/** Lines under a heading. The heading is repeated in every comment that continues them. */
interface Section {
  /** The heading above the lines from `first` to `last`, counted from 1. */
  heading(first: number, last: number): string;
  readonly count: number;
  line(index: number): string;
  /** Whether the lines are as in the file, with any character. */
  readonly isRaw?: boolean | undefined;
}

/**
 * As few texts as possible that hold every line of every section exactly once, split between lines only.
 * Undefined if more texts would be needed than are allowed.
 */
function packSections(sections: readonly Section[], { maxBytes, maxParts }: Limits): string[] | undefined {
  const parts: string[] = [];
  let current = '';
  let used = 0;
  const finish = (): void => {
    if (current !== '') parts.push(current);
    current = '';
    used = 0;
  };
  for (const section of sections) {
    for (let from = 0; from < section.count; ) {
      const gap = current === '' ? '' : '\n\n';
      const block = takeLines(section, from, maxBytes - used - gap.length, current === '');
      if (block) {
        current += gap + block.text;
        used += gap.length + block.bytes;
        from = block.next;
      }
      if (from < section.count) finish();
      if (parts.length + (current === '' ? 0 : 1) > maxParts) return undefined;
    }
  }
  finish();
  return parts.length > maxParts ? undefined : parts;
}

/** The heading and as many lines as fit. If not even one fits: undefined, or in an empty comment that line, cut. */
function takeLines(
  section: Section,
  from: number,
  maxBytes: number,
  isEmptyComment: boolean,
): { text: string; bytes: number; next: number } | undefined {
  // The final heading is not known yet; this is the longest it can become.
  const room = maxBytes - Buffer.byteLength(section.heading(section.count, section.count));
  const lines: string[] = [];
  // A character has at least one byte. The lines are searched and their bytes counted together, not one by one.
  for (let left = room, at = from; at < section.count && left > 0; at++) {
    const line = section.line(at);
    lines.push(line);
    left -= line.length + 1;
  }
  let text = lines.join('\n');
  if (section.isRaw && !areCleanLines(text, lines.length)) text = cleanLines(lines);
  let bytes = Buffer.byteLength(text) + 1;
  while (bytes > room && lines.length > 0) {
    bytes -= Buffer.byteLength(lines.pop() ?? '') + 1;
    text = '';
  }
  if (lines.length === 0) {
    if (!isEmptyComment) return undefined;
    lines.push(truncateBytes(cleanLines([section.line(from)]), room - 1));
    bytes = Buffer.byteLength(lines[0] ?? '') + 1;
  }
  text ||= lines.join('\n');
  const next = from + lines.length;
  const heading = section.heading(from + 1, next);
  return { text: `${heading}\n${text}`, bytes: Buffer.byteLength(heading) + bytes, next };
}

const UNCLEAN = /[^\P{Cc}\n]|[\p{Cs}\u2028\u2029]/u;

/** Whether so many lines from a file contain no control characters, and no blanks at their ends. */
function areCleanLines(text: string, count: number): boolean {
  if (UNCLEAN.test(text) || text.startsWith(' ') || text.endsWith(' ')) return false;
  if (text.includes('\n ') || text.includes(' \n')) return false;
  return countLines(text) === count;
}

function cleanLines(lines: string[]): string {
  // A blank line would look like the end of the table.
  for (let n = 0; n < lines.length; n++) lines[n] = singleLine(lines[n] ?? '').trim() || '–';
  return lines.join('\n');
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/** Splits a text between its lines, and within a line only if that line alone is too long. */
function packText(text: string, { maxBytes, maxParts }: Limits): string[] | undefined {
  const parts: string[] = [];
  let lines: string[] = [];
  let bytes = 0;
  const finish = (): void => {
    const part = lines
      .join('\n')
      .replace(/^\s*\n/, '')
      .trimEnd();
    if (part !== '') parts.push(part);
    lines = [];
    bytes = 0;
  };
  for (const line of text.split('\n')) {
    for (const piece of splitBytes(line, maxBytes)) {
      const size = Buffer.byteLength(piece) + 1;
      if (bytes + size - 1 > maxBytes) finish();
      lines.push(piece);
      bytes += size;
    }
    if (parts.length > maxParts) return undefined;
  }
  finish();
  return parts.length > maxParts ? undefined : parts;
}

/** A summary of all readings that names the raw file. */
function summarise(record: FileRecord, file: SourceFile, maxBytes: number, where = 'raw file'): string {
  const source = [
    `Summary of ${describeSource({ ...file, name: truncateBytes(singleLine(file.name), 300) })}`,
    `sha256:${file.sha256}`,
  ];
  const lines =
    record.tables.length > 0 ? record.tables.flatMap((table) => summariseTable(table, where)) : summariseFacts(record);
  return keepLines([...source, ...lines], maxBytes);
}

function summariseTable(table: Table, where: string): string[] {
  const size = `${plural(table.count, 'row')}, ${plural(table.columns.length, 'column')}`;
  return [
    '',
    singleLine(`${table.name}: ${size}; all rows are in the ${where}`),
    ...summariseColumns(table, 'all columns').rows.map(summaryLine),
  ];
}

/** `Weight (mg): 12 values from 0.5 to 2.1, median 1.2`. */
function summaryLine(cells: readonly Value[]): string {
  const [name = '', unit, n, min, median, max] = cells.map(({ text }) => text);
  const column = headingOf({ name, unit });
  if (min)
    return singleLine(`${column}: ${n === '1' ? '1 value' : `${n} values`} from ${min} to ${max}, median ${median}`);
  return singleLine(n ? `${column}: ${n === '1' ? '1 text' : `${n} texts`}` : `${column}: no numbers`);
}

const summariseFacts = ({ meta }: FileRecord): string[] => [
  '',
  `${plural(meta.size, 'fact')}; all are in the raw file`,
  ...Array.from(meta, ([name, value]) => factLine(name, value)),
];

/** As many lines as fit, then the number of lines left out. */
function keepLines(lines: readonly string[], maxBytes: number): string {
  const sizes = lines.map((line) => Buffer.byteLength(line) + 1);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total - 1 <= maxBytes) return lines.join('\n');
  const more = (n: number) => `… ${plural(n, 'more line')}; everything is in the raw file`;
  let room = maxBytes - Buffer.byteLength(more(lines.length));
  const kept: string[] = [];
  for (const [i, line] of lines.entries()) {
    room -= sizes[i] ?? 0;
    if (room < 0) break;
    kept.push(line);
  }
  return [...kept, more(lines.length - kept.length)].join('\n');
}

/** Readings as lines that read well in any font. */
interface Lines {
  /** What they show, if not all columns of the table. */
  readonly about?: string;
  /** What one line is. */
  readonly noun: string;
  readonly count: number;
  line(index: number): string;
  readonly isRaw?: boolean;
}

/** One line per row, or for a plate with nothing but numbers, one per row of the plate and column of the table. */
function layOutLines({ shown, plate }: ShownTable): Lines[] {
  const others = plate ? shown.columns.filter((_, at) => at !== plate.wells) : [];
  const isNumeric = plate && shown.rows.every((row) => row.every((cell, at) => at === plate.wells || isNumber(cell)));
  if (plate && isNumeric && others.length > 0)
    return shown.columns.flatMap((column, at) => (at === plate.wells ? [] : [plateLines(shown, plate, column, at)]));
  return [rowLines(shown)];
}

/** Or a missing one. */
const isNumber = ({ value, text }: Value): boolean => typeof value === 'number' || value === null || text === '';

/** `A: 0.12, 0.13, 0.15`. */
function plateLines({ rows }: Table, { letters, numbers, rowOf }: Plate, column: Column, at: number): Lines {
  const used = letters.filter((letter) => numbers.some((number) => rowOf(letter, number) !== undefined));
  const cells = (letter: string): string[] =>
    numbers.map((number) => {
      const row = rowOf(letter, number);
      return (row === undefined ? undefined : rows[row]?.[at]?.text) || '–';
    });
  const last = Math.max(...used.map((letter) => cells(letter).findLastIndex((cell) => cell !== '–'))) + 1;
  return {
    about: `${headingOf(column)}, columns 1–${last}`,
    noun: 'plate row',
    count: used.length,
    line: (index) =>
      singleLine(
        `${used[index]}: ${cells(used[index] ?? '')
          .slice(0, last)
          .join(', ')}`,
      ),
  };
}

/** With more columns, each value has the name of its column, even if the units differ. */
const MAX_UNNAMED = 3;

/** `A1: 2.100 AU, 37.0 °C`. With names if the units do not tell the columns apart: `A1: A260 2.100 AU, A280 1.1 AU`. */
function rowLines(table: Table): Lines {
  const { columns, rows } = withLabelFirst(table);
  const [label, ...others] = columns;
  const units = others.map(({ unit }) => unit);
  const areUnitsEnough =
    others.length <= MAX_UNNAMED && !units.includes(undefined) && new Set(units).size === units.length;
  const isNamed = others.length > 1 && !areUnitsEnough;
  const before = others.map(({ name }) => (isNamed ? `${name} ` : ''));
  const beforeOthers = before.map((name) => `, ${name}`);
  return {
    noun: 'row',
    count: rows.length,
    isRaw: true,
    line(index) {
      const cells = rows[index] ?? [];
      const head = (cells[0] && label ? cellWithUnit(cells[0], label) : '') || '–';
      let line = '';
      for (let n = 0; n < others.length; n++) {
        const column = others[n];
        const cell = cells[n + 1];
        if (!column || !cell || cell.text === '') continue;
        line = line === '' ? `${head}: ${before[n]}` : line + beforeOthers[n];
        line += cellWithUnit(cell, column);
      }
      return line === '' ? head : line;
    },
    ...(isNamed || columns.length === 0 ? {} : { about: columns.map(headingOf).join(', ') }),
  };
}

const LABEL_NAME = /^(?:sample|probe|well)(?:[\s_-]?(?:name|id|no\.?|position|pos\.?))?$/i;

/** A line starts with its sample or well, if every row has one. */
function withLabelFirst({ columns, rows }: Table): Pick<Table, 'columns' | 'rows'> {
  const at = columns.findIndex(({ name }, index) => LABEL_NAME.test(name) && rows.every((row) => row[index]?.text));
  if (at <= 0) return { columns, rows };
  const reorder = <Item>(items: readonly Item[]): Item[] => [...items.slice(at, at + 1), ...items.toSpliced(at, 1)];
  return { columns: reorder(columns), rows: rows.map(reorder) };
}
