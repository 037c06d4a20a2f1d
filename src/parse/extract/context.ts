import { areaOf, regexSource } from '../../config/grammar.js';
import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import type { FileError } from '../../errors.js';
import { nearest } from '../../text.js';
import { compileSplit, type LineFormat, splitLine } from '../cells.js';
import { isBlank, type Line, type Refuse, type TimeSlice } from '../lines.js';

/** What every part of the reading knows of the file and of how it is to be read. */
export interface Context {
  readonly options: ParseOptions;
  readonly lineFormat: LineFormat;
  readonly path: string;
  readonly name: string;
  /** The names of a workbook's sheets; none for other files. */
  readonly sheets: readonly string[];
  /** How many cells of a table are kept: a cell takes about 100 bytes. */
  readonly maxKeptCells: number;
  /** Whether a file that says nothing is fine, since only its name is asked for. */
  readonly isNameEnough?: boolean;
  /** Whether there are further mappings to try where this one is not for the file. */
  readonly hasAlternatives?: boolean | undefined;
  readonly refuse: Refuse;
  readonly slice: TimeSlice;
  /** The first lines, to name the nearest where one is not found. */
  readonly firstLines: readonly Line[];
}

export const isComment = ({ text }: Line, { options: { comment } }: Context): boolean =>
  comment !== undefined && text.trimStart().startsWith(comment);

/** A line as `meta` and `header` read it: without the mark of a comment. */
export function stripComment(line: Line, context: Context, cut = context.lineFormat): Line {
  if (!isComment(line, context)) return line;
  const text = line.text.trimStart().slice(context.options.comment?.length);
  return splitLine({ ...line, text }, cut);
}

/** How many of the first lines are kept for this. */
export const HINT_LINES = 2000;

/** What to say where no line is the one that the mapping means by `key`: the nearest is named. */
export function lineNotFound(
  key: string,
  written: readonly (string | number)[],
  { firstLines: first, refuse }: Pick<Context, 'firstLines' | 'refuse'>,
): FileError {
  const near = nearestStart(written, first);
  return refuse(`no line fits \`${key}: ${written.join(' or ')}\``, {
    ...near,
    isMismatch: true,
    hint: near
      ? `did you mean \`${key}: ${JSON.stringify(near.start)}\`?`
      : `correct \`${key}\` in the mapping`,
  });
}

/** About so many characters, to the end of a word. */
const startOf = (text: string, length: number): string =>
  text.slice(0, length) + (/^[\p{L}\p{N}]*/u.exec(text.slice(length, length + 20))?.[0] ?? '');

/** A line that begins nearly like one of these texts. */
function nearestStart(
  written: readonly (string | number)[],
  lines: readonly Line[],
): { line: Line; start: string } | undefined {
  for (const wanted of written) {
    if (typeof wanted === 'number' || regexSource(wanted) !== undefined) continue;
    const starts = lines.map(({ text }) => startOf(text.trim(), wanted.length));
    const start = nearest(wanted.slice(0, 80), new Set(starts.filter((text) => text !== '')));
    const line = start === undefined ? undefined : lines[starts.indexOf(start)];
    if (start !== undefined && line) return { line, start };
  }
  return undefined;
}

/** The part of a file that a table or a finder looks at. */
interface Region {
  /** The line as it is seen there; undefined where it lies outside. To be shown every line, once. */
  view(line: Line): Line | undefined;
  readonly lineFormat: LineFormat;
}

/** `sheet`, `area` and a `delimiter` of its own narrow what a table or a finder sees. */
export function createRegion(
  { sheet, area, delimiter }: Pick<TableOptions, 'sheet' | 'area' | 'delimiter'>,
  context: Context,
): Region {
  const cut: LineFormat =
    delimiter === undefined
      ? context.lineFormat
      : { split: compileSplit(delimiter), quote: context.lineFormat.quote };
  const wanted = sheetNumber(sheet, context);
  const within = area === undefined ? undefined : rectangle(area);
  const recut = delimiter === undefined ? (line: Line) => line : (line: Line) => splitLine(line, cut);
  if (context.sheets.length === 0 && !within) return { view: recut, lineFormat: cut };
  return {
    lineFormat: cut,
    view(line) {
      if ((line.sheet ?? 0) !== wanted) return undefined;
      const own = recut(line);
      return within ? within(own) : own;
    },
  };
}

function sheetNumber(sheet: string | number | undefined, { sheets, refuse }: Context): number {
  if (sheet === undefined || sheets.length === 0) return 0;
  const index = typeof sheet === 'number' ? sheet - 1 : sheets.indexOf(sheet);
  if (sheets[index] !== undefined) return index;
  throw refuse(`there is no sheet ${JSON.stringify(sheet)}`, {
    hint: `the sheets are: ${sheets.slice(0, 20).join(', ')}`,
    isMismatch: true,
  });
}

/** Lines of text are counted as they come: in a spreadsheet, a quoted cell with line breaks stands in one line. */
function rectangle(area: string): (line: Line) => Line | undefined {
  const { fromLine = 1, toLine = Number.POSITIVE_INFINITY, fromCell = 1, toCell } = areaOf(area) ?? {};
  let counted = 0;
  return (line) => {
    const place = line.sheet === undefined ? ++counted : line.number;
    if (place < fromLine || place > toLine) return undefined;
    const cells = line.cells.slice(fromCell - 1, toCell);
    return { ...line, cells, text: cells.join('\t') };
  };
}

/** Whether a line is the one that is meant. */
export type LineMatcher = (line: Line) => boolean;

/** What a mapping writes for a line: a number, `blank`, `eof`, the text that it begins with, a `/regex/`; any of a list. */
export function compileLinePattern(written: readonly (string | number)[]): LineMatcher {
  const [first, ...others] = written.map(compileForm);
  if (first && others.length === 0) return first;
  return (line) => first?.(line) || others.some((matches) => matches(line));
}

function compileForm(form: string | number): LineMatcher {
  if (typeof form === 'number') {
    return form > 0 ? (line) => line.number === form : (line) => line.fromEnd === -form;
  }
  if (form === 'blank') return isBlank;
  if (form === 'eof') return () => false;
  const source = regexSource(form);
  if (source === undefined) return (line) => begins(line, form);
  const regex = new RegExp(source);
  return (line) => regex.test(line.text);
}

/** Blanks before it do not count, and neither do the quotes of its first cell, which spreadsheets do not show. */
const begins = ({ text, cells }: Line, start: string): boolean =>
  text.startsWith(start) || text.trimStart().startsWith(start) || isQuotedStart(text, cells[0], start);

const isQuotedStart = (text: string, cell: string | undefined, start: string): boolean =>
  /^["']/.test(text) && (cell?.startsWith(start) ?? false);

/** What the named groups of a `/regex/` caught in the line; nothing for the other forms. */
export function compileCaptures(written: readonly (string | number)[]): (line: Line) => Map<string, string> {
  const regexes = sourcesOf(written).map((source) => new RegExp(source));
  return ({ text }) => namedGroups(regexes.map((regex) => regex.exec(text)).find((match) => match !== null));
}

/** The names of all groups that these patterns can catch. */
export const groupNames = (written: readonly (string | number)[]): string[] => [
  ...new Set(
    sourcesOf(written).flatMap((source) =>
      [...source.matchAll(/\(\?<([^=!][^>]*)>/g)].map(([, name]) => name ?? ''),
    ),
  ),
];

const sourcesOf = (written: readonly (string | number)[]): string[] =>
  written
    .map((form) => (typeof form === 'string' ? regexSource(form) : undefined))
    .filter((source) => source !== undefined);

/** The named groups of a match that took part in it. */
export function namedGroups(match: RegExpExecArray | null | undefined): Map<string, string> {
  const groups = Object.entries(match?.groups ?? {});
  return new Map(groups.filter((group): group is [string, string] => group[1] !== undefined));
}
