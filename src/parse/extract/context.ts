import { areaOf, type CellReference, cellReference, regexSource } from '../../config/grammar.js';
import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import type { FileError } from '../../errors.js';
import { nearest } from '../../text.js';
import { compileSplit, type LineFormat, splitLine } from '../cells.js';
import { isBlank, type Line, type Refuse, raiseLimit } from '../lines.js';
import type { OpenFile } from '../source.js';
import type { DateOptions } from '../values/date.js';
import { createValueReader, type ValueReader } from '../values/value.js';
import type { Found } from './tree.js';
import { addUnread, covers, openUnreadLines, type UnreadLines, wordsOf } from './unread.js';

/** What the facts and tables of one file share. */
export interface Context extends OpenFile, FileLayout {
  readonly values: ValueReader;
  /** Searched for the nearest line if a pattern is not found. */
  readonly firstLines: Line[];
  readonly cells: CellWatcher;
  readonly unread: UnreadLines;
  /** Refuses the file if its tables have too many rows. */
  countRow(line: Line | undefined): void;
}

export interface FileLayout {
  readonly lineFormat: LineFormat;
  /** The names of a workbook's sheets; empty for other files. */
  readonly sheets: readonly string[];
  /** Only the first rows of longer tables are kept; all are counted and summarised. */
  readonly maxKeptCells: number;
}

/** A cell takes about 100 bytes. */
export const MAX_KEPT_CELLS = 2_000_000;

export function openContext(file: OpenFile, layout: FileLayout, dates: DateOptions): Context {
  const { options, refuse } = file;
  const { maxRows } = options.limits;
  let rows = 0;
  return {
    firstLines: [],
    unread: openUnreadLines(),
    ...file,
    ...layout,
    values: createValueReader(options, dates),
    cells: watchCells(options, layout.sheets, refuse),
    countRow(line) {
      if (++rows <= maxRows) return;
      throw refuse(`the tables have more than ${maxRows} rows`, { line, hint: raiseLimit('rows', 10 * maxRows) });
    },
  };
}

export type LinePattern = string | number;
type LineMatcher = (line: Line) => boolean;

/** A line in a mapping: a number, `blank`, `eof`, the text it starts with, a `/regex/`, or a list of these. */
export function compileLinePattern(written: readonly LinePattern[]): LineMatcher {
  const [first, ...others] = written.map(compileOne);
  if (first && others.length === 0) return first;
  return (line) => first?.(line) || others.some((matches) => matches(line));
}

function compileOne(pattern: LinePattern): LineMatcher {
  if (typeof pattern === 'number') {
    return pattern > 0 ? (line) => line.number === pattern : (line) => line.fromEnd === -pattern;
  }
  if (pattern === 'blank') return isBlank;
  if (pattern === 'eof') return () => false;
  const source = regexSource(pattern);
  if (source === undefined) return (line) => startsWith(line, pattern);
  const regex = new RegExp(source);
  return (line) => regex.test(line.text);
}

/** Leading blanks are ignored, and so are the quotes of the first cell, which spreadsheets do not show. */
const startsWith = ({ text, cells }: Line, start: string): boolean =>
  text.startsWith(start) ||
  text.trimStart().startsWith(start) ||
  (/^["']/.test(text) && (cells[0]?.startsWith(start) ?? false));

/** The named groups that the first matching `/regex/` captures in a line. */
export function compileCaptures(written: readonly LinePattern[]): (line: Line) => Map<string, string> {
  const regexes = sourcesOf(written).map((source) => new RegExp(source));
  return ({ text }) => namedGroups(regexes.map((regex) => regex.exec(text)).find((match) => match !== null));
}

/** Finds lines by these patterns, and tells whether such a line contains more than its pattern and what it captures. */
export function compileMarker(written: readonly LinePattern[]): LineMatcher {
  const words = written.map(wordsOf);
  const captures = compileCaptures(written);
  return (line) => covers(line.text, [...words, ...captures(line).values()]);
}

/** The names of all groups in these patterns. */
export const groupNames = (written: readonly LinePattern[]): string[] => [
  ...new Set(
    sourcesOf(written).flatMap((source) => [...source.matchAll(/\(\?<([^=!][^>]*)>/g)].map(([, name]) => name ?? '')),
  ),
];

const sourcesOf = (written: readonly LinePattern[]): string[] =>
  written.flatMap((pattern) => (typeof pattern === 'string' ? (regexSource(pattern) ?? []) : []));

/** The named groups of a match, without those that did not take part. */
export function namedGroups(match: RegExpExecArray | null | undefined): Map<string, string> {
  const groups = Object.entries(match?.groups ?? {});
  return new Map(groups.filter((group): group is [string, string] => group[1] !== undefined));
}

export const isComment = ({ text }: Line, { options: { comment } }: Context): boolean =>
  comment !== undefined && text.trimStart().startsWith(comment);

/** Without the prefix, which may repeat: `## T/K`. A line that starts with many of them is drawn. */
export function withoutMark(text: string, mark: string): string {
  const start = text.trimStart();
  let end = 0;
  while (mark !== '' && start.startsWith(mark, end)) end += mark.length;
  return start.slice(end > 3 * mark.length ? mark.length : end);
}

/** `meta` and `header` read comment lines without the comment prefix. */
export function stripComment(line: Line, context: Context, format = context.lineFormat): Line {
  if (!isComment(line, context)) return line;
  const text = withoutMark(line.text, context.options.comment ?? '');
  return splitLine({ ...line, text }, format);
}

export const HINT_LINES = 2000;

/** No line matches the pattern that the mapping gives for `key`. The hint names the nearest line. */
export function lineNotFound(
  key: string,
  written: readonly LinePattern[],
  { firstLines, refuse }: Pick<Context, 'firstLines' | 'refuse'>,
): FileError {
  const near = nearestStart(written, firstLines);
  return refuse(`no line matches \`${key}: ${written.join(' or ')}\``, {
    line: near?.line,
    isMismatch: true,
    hint: near ? `did you mean \`${key}: ${JSON.stringify(near.start)}\`?` : `correct \`${key}\` in the mapping`,
  });
}

/** The line whose start is most similar to one of these texts. */
function nearestStart(written: readonly LinePattern[], lines: readonly Line[]) {
  for (const wanted of written) {
    if (typeof wanted === 'number' || regexSource(wanted) !== undefined) continue;
    const starts = lines.map(({ text }) => startOf(text.trim(), wanted.length));
    const start = nearest(wanted.slice(0, 80), new Set(starts.filter((text) => text !== '')));
    const line = start === undefined ? undefined : lines[starts.indexOf(start)];
    if (start !== undefined && line) return { line, start };
  }
  return undefined;
}

/** About `length` characters, up to the end of a word. */
const startOf = (text: string, length: number): string =>
  text.slice(0, length) + (/^[\p{L}\p{N}]*/u.exec(text.slice(length, length + 20))?.[0] ?? '');

/** The part of a file that a table or finder reads. */
interface Region {
  /** The line as split for the region; undefined outside of it. Must be called once for every line. */
  view(line: Line): Line | undefined;
  readonly lineFormat: LineFormat;
}

/** Applies `sheet`, `area` and `delimiter` of a table or finder. */
export function createRegion(
  { sheet, area, delimiter }: Pick<TableOptions, 'sheet' | 'area' | 'delimiter'>,
  context: Context,
): Region {
  const lineFormat =
    delimiter === undefined ? context.lineFormat : { split: compileSplit(delimiter), quote: context.lineFormat.quote };
  const split = delimiter === undefined ? (line: Line) => line : (line: Line) => splitLine(line, lineFormat);
  const wanted = sheetIndex(sheet, context);
  const crop = area === undefined ? undefined : createCrop(area);
  const columns = area === undefined ? [] : [areaOf(area), ...wholeColumns(context)];
  const isRead = (cell: number) =>
    columns.some((each) => each && cell >= each.fromCell && cell <= (each.toCell ?? Number.POSITIVE_INFINITY));
  if (context.sheets.length === 0 && !crop) return { view: split, lineFormat };
  return {
    lineFormat,
    view(line) {
      if ((line.sheet ?? 0) !== wanted) return undefined;
      const cropped = crop ? crop(split(line)) : undefined;
      if (cropped && line.cells.some((cell, n) => cell !== '' && !isRead(n + 1)))
        addUnread(context.unread, line, 'left out');
      return crop ? cropped : split(line);
    },
  };
}

/** Areas of whole columns: a line may have facts in some cells and readings in others. */
const wholeColumns = ({ options: { tables, meta } }: Context) =>
  [...Object.values(tables), ...meta].flatMap(({ area }) => {
    const columns = area === undefined ? undefined : areaOf(area);
    return columns && columns.fromLine === 1 && columns.toLine === undefined ? [columns] : [];
  });

function sheetIndex(sheet: string | number | undefined, { sheets, refuse }: Context): number {
  if (sheet === undefined || sheets.length === 0) return 0;
  const index = typeof sheet === 'number' ? sheet - 1 : sheets.indexOf(sheet);
  if (sheets[index] !== undefined) return index;
  throw refuse(`the workbook has no sheet ${JSON.stringify(sheet)}`, {
    hint: `its sheets are: ${sheets.slice(0, 20).join(', ')}`,
    isMismatch: true,
  });
}

/** Counts lines of text as a spreadsheet does: a quoted cell with line breaks is in one line. */
function createCrop(area: string): (line: Line) => Line | undefined {
  const { fromLine = 1, toLine = Number.POSITIVE_INFINITY, fromCell = 1, toCell } = areaOf(area) ?? {};
  let counted = 0;
  return (line) => {
    const number = line.sheet === undefined ? ++counted : line.number;
    if (number < fromLine || number > toLine) return undefined;
    const cells = line.cells.slice(fromCell - 1, toCell);
    return { ...line, cells, text: cells.join('\t') };
  };
}

/** Collects the cells to which a mapping refers, such as `=C3`. */
interface CellWatcher {
  /** Returns the texts of the cells that are in this line. */
  take(line: Line): readonly string[];
  /** The cell at a reference; undefined if the text is not one. Refuses a cell that the file does not have. */
  at(written: string): Found | undefined;
}

const NOTHING: readonly string[] = [];

function watchCells(options: ParseOptions, sheets: readonly string[], refuse: Refuse): CellWatcher {
  const wanted = new Map<string, CellReference & { readonly sheetIndex: number }>();
  for (const written of referencesIn(options)) {
    const cell = cellReference(written);
    if (cell) wanted.set(written, { ...cell, sheetIndex: cell.sheet ? sheets.indexOf(cell.sheet) : 0 });
  }
  const lines = new Map<string, Line>();
  // Counted as a spreadsheet does: a quoted cell with line breaks is in one line.
  const counts: number[] = [];
  return {
    take(line) {
      if (wanted.size === 0) return NOTHING;
      const { sheet = 0 } = line;
      const number = (counts[sheet] ?? 0) + 1;
      counts[sheet] = number;
      const here = [...wanted].filter(([, cell]) => cell.sheetIndex === sheet && cell.line === number);
      for (const [written] of here) lines.set(written, line);
      return here.map(([, { cell }]) => line.cells[cell - 1] ?? '');
    },
    at(written) {
      const cell = wanted.get(written)?.cell;
      if (cell === undefined) return undefined;
      const line = lines.get(written);
      const text = line?.cells[cell - 1];
      if (!line || text === undefined)
        throw refuse(`there is no cell ${written}, or it is below the rows that use it`, { line, isMismatch: true });
      return { text, unit: undefined, line: line.number };
    },
  };
}

/** All texts in a mapping that may be cell references. */
function referencesIn(part: unknown, found: string[] = []): string[] {
  if (typeof part === 'string' && part.startsWith('=')) found.push(part);
  if (typeof part === 'object' && part !== null) for (const each of Object.values(part)) referencesIn(each, found);
  return found;
}
