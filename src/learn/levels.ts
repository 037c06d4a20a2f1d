import type { ParseMapping } from '../config/vocabulary.js';
import { isBlank, type Line } from '../parse/lines.js';
import { escapeRegex } from '../text.js';
import { widthOf } from './header.js';
import { type CellKind, isMeasure, isWordOf, kindsOf, mergeKinds } from './kinds.js';

/**
 * Rows within rows, as battery cyclers write them: the line of a cycle, below it the lines of its steps, and below each
 * of those its records. Each level has its own names, and is read as a table of its own with the keys of the levels
 * above it.
 */

type TableMapping = NonNullable<ParseMapping['table']>;

/** One level as a table. */
interface FoundLevel {
  readonly name: string;
  readonly header: Line;
  readonly kinds: readonly CellKind[];
  readonly mapping: TableMapping;
}

/** Indexes of lines: `from` up to but not including `to`. The deepest level is first, because it has the readings. */
export interface FoundLevels {
  readonly from: number;
  readonly to: number;
  /** Undefined if a line among them belongs to no level: then no row is read. */
  readonly levels: readonly FoundLevel[] | undefined;
}

interface Level {
  readonly key: string | number;
  readonly header: Line;
  kinds: readonly CellKind[];
  readonly rows: Line[];
  /** Whether the names are written again above further rows. */
  isRepeated: boolean;
}

/** What shows the level of a line, and how a pattern finds the lines of a level. */
interface Sign {
  keyOf(line: Line): string | number;
  /** Whether a line with this key can be the names of a level below the others. */
  isDeeper(key: string | number, levels: readonly Level[]): boolean;
  /** The pattern of the lines of a level. `cell`: what stands in its first cell, the key of its rows. */
  pattern(key: string | number, signs: Signs, cell?: string): string;
}

/** Parts of patterns for a delimiter. */
interface Signs {
  readonly sign: string;
  readonly isQuoted: boolean;
}

const not = ({ sign, isQuoted }: Signs): string => `[^${sign}${isQuoted ? '"' : ''}]`;
const quote = ({ isQuoted }: Signs): string => (isQuoted ? '"?' : '');
const emptyCell = ({ sign, isQuoted }: Signs): string => (isQuoted ? `(?:"")?${sign}` : sign);

/** How many cells at the start of the line are empty. */
const INDENT: Sign = {
  keyOf: ({ cells }) => cells.findIndex((cell) => cell !== ''),
  isDeeper: (key, levels) => key > (levels.at(-1)?.key ?? -1),
  pattern: (key, signs, cell = not(signs)) => `^${emptyCell(signs).repeat(Number(key))}${quote(signs)}${cell}`,
};

/** A word in the first cell that all lines of the level have. */
const TYPE: Sign = {
  keyOf: ({ cells: [first = ''] }) => (/^\p{L}/u.test(first) ? first : ''),
  isDeeper: (key) => key !== '',
  pattern: (key, signs, cell = '') =>
    `^${quote(signs)}${escapeRegex(String(key))}${quote(signs)}${signs.sign}${cell === '' ? '' : quote(signs) + cell}`,
};

/** The number of cells up to the last that is not empty. */
const WIDTH: Sign = {
  keyOf: (line) => widthOf(line),
  isDeeper: (key, levels) => levels.every((level) => level.key !== key),
  pattern: (key, signs, cell = `${not(signs)}*`) => {
    const { sign } = signs;
    return `^${cell}(?:${sign}${not(signs)}*){${Number(key) - 2}}${sign}${not(signs)}+${sign}*$`;
  },
};

const SIGNS = [INDENT, TYPE, WIDTH];

/** More lines of words than this at the start of a block are no names of levels. */
const MAX_TRIES = 20;

/** `delimiter`: a character. */
export function findLevels(lines: readonly Line[], delimiter: string | undefined): FoundLevels[] {
  if (delimiter === undefined) return [];
  const found: FoundLevels[] = [];
  for (let from = 0; from < lines.length; from++) {
    if (!startsBlock(lines, from)) continue;
    let to = from;
    while (to < lines.length && !isBlankAt(lines, to)) to++;
    const levels = findInBlock(lines, from, to, delimiter);
    if (levels) found.push(levels);
    from = to;
  }
  return found;
}

const isBlankAt = (lines: readonly Line[], at: number): boolean => {
  const line = lines[at];
  return !line || isBlank(line);
};

const startsBlock = (lines: readonly Line[], at: number): boolean =>
  !isBlankAt(lines, at) && (at === 0 || isBlankAt(lines, at - 1));

function findInBlock(lines: readonly Line[], from: number, to: number, delimiter: string): FoundLevels | undefined {
  const named = lines.slice(from, to).flatMap((line, n) => (isNames(line) ? [from + n] : []));
  // Each level has its own names, so the last ones have no level below them.
  for (const at of named.slice(0, -1).slice(0, MAX_TRIES)) {
    for (const sign of SIGNS) {
      const { levels, strays } = collect(sign, lines.slice(at, to));
      // A single line of another kind is enough to move the cells of a row to other names.
      const isOften = strays > (sign === INDENT ? 1 : 0) && strays * 10 > to - at;
      if (isOften || !areNested(levels, sign)) continue;
      const signs = { sign: delimiter === '\t' ? '\\t' : escapeRegex(delimiter), isQuoted: hasQuotes(levels) };
      const isSure = strays === 0 && !(sign === WIDTH && signs.isQuoted);
      return { from: at, to, levels: isSure ? describeLevels(levels, sign, signs) : undefined };
    }
  }
  return undefined;
}

const isNames = (line: Line): boolean => {
  const kinds = kindsOf(line);
  let filled = 0;
  for (const [n, cell] of line.cells.entries()) {
    if (cell === '') continue;
    if (!isWordOf(kinds[n], cell)) return false;
    filled++;
  }
  return filled >= 2;
};

const hasQuotes = (levels: readonly Level[]): boolean =>
  levels.some(({ header, rows }) => [header, ...rows].some(({ text }) => text.includes('"')));

/** Assigns lines to levels. `strays`: how many lines fit none. */
function collect(sign: Sign, lines: readonly Line[]): { levels: Level[]; strays: number } {
  const levels: Level[] = [];
  let depth = -1;
  let strays = 0;
  for (const line of lines) {
    const key = sign.keyOf(line);
    const own = levels.findIndex((level) => level.key === key);
    const level = levels[own];
    if (level) {
      const isHeader = line.text === level.header.text;
      const kinds = !isHeader && own <= depth + 1 ? kindsWith(level, line, sign) : undefined;
      if (isHeader) level.isRepeated = true;
      else if (!kinds) {
        strays++;
        // The rows of two levels in one line: those below it belong to both.
        const next =
          sign === INDENT && own <= depth + 1 && widthOf(line) > widthOf(level.header) ? levels[own + 1] : undefined;
        if (next) {
          for (const each of [level, next]) each.rows.push(line);
          depth = own + 1;
        }
      } else {
        level.kinds = kinds;
        level.rows.push(line);
        depth = own;
      }
    } else if (isNames(line) && sign.isDeeper(key, levels))
      levels.push({ key, header: line, kinds: [], rows: [], isRepeated: false });
    else strays++;
    if (strays > 1 && strays * 10 > lines.length) break;
  }
  return { levels, strays };
}

/** An indented line belongs to its level whatever its cells are. Other signs are weaker, so the cells must fit. */
function kindsWith({ header, kinds, rows }: Level, line: Line, sign: Sign): readonly CellKind[] | undefined {
  if (widthOf(line) > widthOf(header)) return undefined;
  const own = kindsOf(line);
  return rows.length === 0 ? own : (mergeKinds(kinds, own) ?? (sign === INDENT ? kinds : undefined));
}

/** Several groups of rows of the deepest level, each below a row of the level above. */
function areNested(levels: readonly Level[], sign: Sign): boolean {
  const deepest = levels.at(-1);
  const above = levels.at(-2);
  if (!deepest || !above || levels.some(({ rows }) => rows.length === 0)) return false;
  if (deepest.rows.length < 3 || !deepest.kinds.some(isMeasure)) return false;
  if (sign !== INDENT && levels.some(({ kinds }) => !kinds.some(isMeasure))) return false;
  const starts = above.rows.map(({ number }) => number);
  const groups = new Set(deepest.rows.map(({ number }) => starts.findLastIndex((start) => start < number)));
  return groups.size >= 2 && !groups.has(-1);
}

function describeLevels(levels: readonly Level[], sign: Sign, signs: Signs): FoundLevel[] {
  const names = levels.map((level) => nameOf(level, sign));
  const groups = names.map((name, n) => toGroup(name, names.slice(0, n)));
  return levels
    .map(({ header, kinds }, n): FoundLevel => {
      const every = levels
        .slice(0, n)
        .map((level, m) => `/${sign.pattern(level.key, signs, keyGroup(level, sign, groups[m] ?? '', signs))}/`);
      const deeper = levels.slice(n + 1).map(({ key }) => sign.pattern(key, signs));
      const repeated = levels.slice(0, n).filter(({ isRepeated }) => isRepeated);
      const skip = [...deeper, ...repeated.map((level) => startPattern(level.header, sign))];
      const isDeepest = n === levels.length - 1;
      return {
        name: isDeepest ? 'readings' : (names[n] ?? ''),
        header,
        kinds,
        mapping: {
          ...(every.length > 0 && { every: one(every) }),
          header: `/${startPattern(header, sign)}/`,
          ...(skip.length > 0 && { skip: one(skip.map((pattern) => `/${pattern}/`)) }),
        },
      };
    })
    .reverse();
}

const one = (list: readonly string[]): string | string[] =>
  list.length === 1 && list[0] !== undefined ? list[0] : [...list];

/** The key of a level is the first cell of its rows, after its type. */
const keyCell = ({ header }: Level, sign: Sign): number =>
  sign === INDENT ? (INDENT.keyOf(header) as number) : sign === TYPE ? 1 : 0;

const nameOf = (level: Level, sign: Sign): string => level.header.cells[keyCell(level, sign)] ?? '';

/** A digit, if all keys start with one: then names do not match. */
function keyGroup(level: Level, sign: Sign, group: string, signs: Signs): string {
  const at = keyCell(level, sign);
  const isCounted = level.rows.every(({ cells }) => /^\d/.test(cells[at] ?? ''));
  return `(?<${group}>${isCounted ? '\\d' : ''}${not(signs)}${isCounted ? '*' : '+'})`;
}

/** Groups of patterns have names of letters, digits and `_`. */
function toGroup(name: string, others: readonly string[]): string {
  const clean = name
    .replace(/[([].*$/, '')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$|^\d+/g, '');
  const usable = clean === '' ? `level_${others.length + 1}` : clean;
  return others.includes(name) ? `${usable}_${others.length + 1}` : usable;
}

/** The line with the names of a level, by its beginning up to the first name. */
function startPattern({ text, cells }: Line, sign: Sign): string {
  const first = cells.find((cell) => cell !== '') ?? '';
  const start = sign === INDENT ? text.slice(0, text.indexOf(first) + first.length) : text.trimEnd();
  return `^${escapeRegex(start)}`;
}
