import { regexSource } from '../../config/grammar.js';
import type { Finder } from '../../config/vocabulary.js';
import { wordsIn } from '../../text.js';
import { compileSplit, type LineFormat, plainText, type Split, withoutTrailingEmpty } from '../cells.js';
import type { Line } from '../lines.js';
import { isMeasuredIn } from '../values/quantity.js';
import { bareUnit, isMark, isUnit, unitInName } from '../values/unit.js';
import { cleanName } from './columns.js';
import { namedGroups } from './context.js';

/** Names and values in a line, in each of the ways that a mapping can describe. */

export interface Pair {
  readonly name: string;
  readonly text: string;
  readonly unit?: string | undefined;
  readonly line: Line;
}

export const PAIR = /^\s*\p{L}[^:=]*[:=]\s+\S/u;

export const OPEN_QUOTE = /^"[^"]*$|^[^"]+\p{L}"$/u;

/** Without the signs that mark it: `$LIVE_TIME:`, `&SITE`, `- Gain`, `[Operator]`, `<Operator>`, `"Operator"`. */
export const factName = (written: string): string =>
  cleanName(written)
    .replace(MARKED, '')
    .replace(/^(?:\[([^\]]*)\]?|<([^<>]*)>|"([^"]*)")$/, '$1$2$3');

const MARKED = /^(?:[-*•–] +|[$@&]+|[%!]+(?=[A-Z][A-Z\d]*_))(?=\p{L})/u;

/** A time or a date is a value, never the name of one. */
export const MOMENT =
  /^(?:\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M)?|(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d\d))(?:[ T]\d.*)?)$/i;

/** A value in quotes: `OPERATOR "Ada"`. With `=` before it, spreadsheets show it as text. `Amount:  : 100` has two colons. */
export const unquote = (text: string): string =>
  /^=?(["'])[^"']*\1$/.test(text) ? text.slice(text.startsWith('=') ? 2 : 1, -1).trim() : text.replace(/^[:=]\s+/, '');

export const isOfTwoLines = ({ separator }: Finder): boolean => separator === 'nextLine' || separator === 'nextRow';

/** Reads names and values from a line; undefined if the line does not match. */
type PairReader = (line: Line) => Pair[] | undefined;
export function createPairReader(finder: Finder, format: LineFormat): PairReader {
  const { separator, cells, match } = finder;
  if (match !== undefined) return createMatchReader(match);
  if (cells !== undefined) return createCellReader(cells);
  if (separator === 'cell') return alternatingCells;
  if (separator === undefined || isOfTwoLines(finder)) return () => [];
  const split = compileSplit(separator);
  return (line) => separatedPairs(line, split, finder, format);
}

function createMatchReader(match: string): PairReader {
  const regex = new RegExp(regexSource(match) ?? match);
  return (line) => {
    const found = regex.exec(line.text);
    return found ? [...namedGroups(found)].map(([name, text]) => ({ name, text: text.trim(), line })) : undefined;
  };
}

/** Cells by their position in the line. */
function createCellReader(cells: NonNullable<Finder['cells']>): PairReader {
  const positions = Array.isArray(cells)
    ? cells.map((name, n) => [name, n + 1] as const).filter(([name]) => name !== '_')
    : Object.entries(cells);
  return (line) => positions.map(([name, position]) => ({ name, text: line.cells[position - 1] ?? '', line }));
}

/**
 * Name, value, name, value. Empty cells and cells with only `:` or `=` are skipped.
 * A cell such as `Weight: 12 mg` in the place of a name is a name and its value.
 */
function alternatingCells(line: Line): Pair[] {
  const pairs: Pair[] = [];
  let open: string | undefined;
  const end = line.cells.findLastIndex((cell) => cell !== '');
  for (const [n, cell] of line.cells.entries()) {
    if (cell === '' || cell === ':' || cell === '=' || cell === '|') continue;
    // A name and its value directly after a name, or after a title: the first has no value.
    const both = open === undefined || n === 1 || /[:=]$/.test(open) ? nameAndValue(cell) : undefined;
    if (both) {
      if (open !== undefined && /[:=]$/.test(open)) pairs.push({ name: open, text: '', line });
      pairs.push({ ...both, line });
      open = undefined;
      continue;
    }
    const last = pairs.at(-1);
    const unit = open === undefined && n === end && isNumeric(last?.text) ? bareUnit(cell) : undefined;
    if (last && unit !== undefined && isUnit(unit)) pairs[pairs.length - 1] = withBeside(last, unit);
    else if (open === undefined) open = cell;
    else {
      const isName = /[:=]$/.test(cell) && /[:=]$/.test(open);
      pairs.push({ name: open, text: isName ? '' : cell, line });
      open = isName ? cell : undefined;
    }
  }
  const [only, other] = pairs;
  // `Result  Total acidity  4.66 g/l`: a number is not a name.
  const isCut = only && !other && /^[-+]?\d/.test(open ?? '') && !/\d/.test(only.text) && !/[:=]$/.test(only.name);
  return isCut ? [{ name: `${only.name} ${only.text}`, text: open ?? '', line }] : pairs;
}

/** A colon counts only between a word and a blank: `10:15` is a value. So does ` = `. */
function nameAndValue(cell: string): { name: string; text: string } | undefined {
  const [colon, equals] = [cell.indexOf(':'), cell.indexOf(' = ')];
  const at = colon < 0 && equals > 0 ? equals + 1 : colon;
  if (at < 0 || !/^\s+\S/.test(cell.slice(at + 1))) return undefined;
  const name = cell.slice(0, at);
  return /\p{L}/u.test(name) ? { name, text: cell.slice(at + 1).trim() } : undefined;
}

/** Splits a line, or each of its cells, at the first separator. */
function separatedPairs(line: Line, split: Split, finder: Finder, format: LineFormat): Pair[] {
  if (finder.in === 'cells') {
    // If a name has no value here, it is in the next cell, for another finder.
    return line.cells.flatMap((cell) => splitPair(cell, split, finder, line)).filter(({ text }) => text !== '');
  }
  if (split.text === undefined || split.text !== format.split.text) {
    return splitPair(plainText(line, format).replace(FRAME, '$1'), split, finder, line).map((pair) =>
      withoutBeside(pair, line, format),
    );
  }
  if (finder.name !== undefined) return pairOfPieces(withoutTrailingEmpty(line.cells), finder, line);
  // The separator is the delimiter, so the line is already split, respecting quotes.
  if (line.cells.length < 2) return [];
  const cells = withoutTrailingEmpty(line.cells);
  const [name = '', ...rest] = cells;
  // Values are often indented by a cell or two to align them.
  const start = rest.findIndex((cell) => cell !== '');
  if (finder.value === 'each') return eachValue(name, rest, line);
  return [createPair(name, rest.slice(Math.max(0, start)).join(split.text), cells, finder, line)];
}

/** `| Gain | 4 |` */
const FRAME = /^\s*\|(.*)\|\s*$/;

/** `Application: X,,,,V2.3`: what follows empty cells is not the value. It may be another pair, or a unit. */
function withoutBeside(pair: Pair, { cells }: Line, { split: { text: sign } }: LineFormat): Pair {
  if (sign === undefined || !pair.text.includes(sign)) return pair;
  const gap = `${sign}${sign}`;
  const at = cells.some((cell) => cell.includes(gap)) ? -1 : pair.text.indexOf(gap);
  const isOther = at > 0 && !isNumeric(pair.text.slice(0, at)) && !PAIR.test(pair.text.slice(at).replaceAll(sign, ''));
  return isOther ? { ...pair, text: pair.text.slice(0, at).trim() } : pair;
}

/**
 * Every cell that is not empty is a value. A unit belongs to the number before it, a lone sign to the one after it. From
 * a word after a number on, or a number after a word, the cells are not values of the same name. `Delay :` is another name.
 */
function eachValue(name: string, cells: readonly string[], line: Line): Pair[] {
  const starts = cells.flatMap((cell, n) => (LABEL.test(cell) ? [n] : []));
  return [-1, ...starts].flatMap((at, n) =>
    valuesOf(at < 0 ? name : (cells[at] ?? ''), cells.slice(at + 1, starts[n]), line),
  );
}

function valuesOf(name: string, cells: readonly string[], line: Line): Pair[] {
  const pairs: Pair[] = [];
  const [first = '', second] = cells;
  if (cells.length === 2 && isNumeric(second) && isUnit(bareUnit(first) ?? ''))
    return [withBeside({ name, text: second ?? '', line }, bareUnit(first) ?? '')];
  for (const [n, cell] of cells.entries()) {
    const sign = n > 0 && SIGN.test(cells[n - 1] ?? '') ? cells[n - 1] : '';
    const text = /^\d/.test(cell) ? `${sign}${cell}` : cell;
    if (SIGN.test(cell) && /^\d/.test(cells[n + 1] ?? '')) continue;
    const last = pairs.at(-1);
    const isLimits = LIMITS.test(last?.text ?? '');
    const unit = last?.unit === undefined && (isLimits || isNumeric(last?.text)) ? bareUnit(text) : undefined;
    const open = pairs.slice(pairs.findLastIndex((pair) => pair.unit !== undefined) + 1).map((pair) => pair.text);
    // A letter behind several numbers may be the last of them: `1`, `2`, `A`.
    const isOther = open.length > 1 && /^[A-H]$/.test(text) && !isMeasuredIn(name, text);
    if (unit !== undefined && isUnit(unit) && !isOther) {
      // Limits stand between a value and its unit: `3.4`, `2.5-4.4`, `g/dL`.
      const count = isLimits ? 2 : areOfOneUnit(name, open, unit) ? open.length : 1;
      pairs.push(...pairs.splice(-count).map((pair) => withBeside(pair, unit)));
    } else if (text !== '') {
      if (last && AS_NUMBER.test(last.text) !== AS_NUMBER.test(text)) break;
      pairs.push({ name, text, line });
    }
  }
  return pairs.length > 0 ? pairs : [{ name, text: '', line }];
}

/** The same number several times, or the set and the actual value of what is measured in that unit: `40.0`, `39.8`, `°C`. */
function areOfOneUnit(name: string, texts: readonly string[], unit: string): boolean {
  // Others may be a number of a step or channel, and its value.
  if (!texts.every((text) => /\d[.,]\d|\d{3}/.test(text))) return false;
  const numbers = texts.map((text) => Number(text.replace(',', '.')));
  const [min, max] = [Math.min(...numbers), Math.max(...numbers)];
  return min === max || (isMeasuredIn(name, unit) && max - min < 0.1 * min);
}

const SIGN = /^[-+]$/;
const LABEL = /^\p{L}[^:=]*[:=]$/u;
/** Also dates and times, and values with a mark: `142 *`, `7.1 H`. */
const AS_NUMBER = /^[-+<>]?\s*[.,]?\d[\d\s.,:/-]*(?:e[-+]?\d+|%|[ap]m|\*|[hl]{1,2})?$/i;
const LIMITS = /^\d[\d.,]* ?[-–] ?\d[\d.,]*$/;
export const isNumeric = (text: string | undefined): boolean => /^[-+]?\d[\d.,' ]*(?:[eE][-+]?\d+)?$/.test(text ?? '');

function splitPair(text: string, split: Split, finder: Finder, line: Line): Pair[] {
  const parts = split.once(text);
  if (!parts) return [];
  const { name, value, unit } = finder;
  if (name !== undefined) return pairOfPieces(value || unit || name > 2 ? split.all(text) : parts, finder, line);
  // Several values in one quoted cell: `"Gain=620<tab>570"`.
  if (line.cells.length === 1 && line.text.startsWith('"') && parts[1].includes('\t'))
    return eachValue(parts[0], parts[1].split('\t'), line);
  if (finder.value === 'each') return eachValue(parts[0], split.all(text).slice(1), line);
  return [createPair(parts[0], parts[1], finder.value || finder.unit ? split.all(text) : [], finder, line)];
}

/** The name is the piece that the finder selects; without it, there is no pair. */
function pairOfPieces(pieces: readonly string[], { name = 1, value, unit }: Finder, line: Line): Pair[] {
  const text = pieces[(typeof value === 'number' ? value : name === 1 ? 2 : 1) - 1];
  const own = pieces[name - 1];
  return own === undefined || text === undefined
    ? []
    : [{ name: own, text, unit: unit === undefined ? undefined : pieces[unit - 1], line }];
}

/** The value is the piece that the finder selects, or the last one if there is no such piece, or everything after the name. */
function createPair(name: string, rest: string, pieces: readonly string[], finder: Finder, line: Line): Pair {
  const { value, unit } = finder;
  const unitPiece = unit === undefined ? undefined : pieces[unit - 1];
  if (value === undefined || value === 'each') {
    const beside = unitPiece === undefined ? unitBeside(rest, line) : undefined;
    return beside
      ? withBeside({ name, text: beside.text, line }, beside.unit)
      : { name, text: rest, unit: unitPiece, line };
  }
  const piece = pieces[value - 1];
  if (piece === undefined) return { name, text: pieces.length > 1 ? (pieces.at(-1) ?? '') : '', line };
  return {
    name,
    text: piece,
    unit: unitPiece ?? (isNumeric(piece) ? describedUnit(name, piece, line) : undefined),
    line,
  };
}

/** `dwell_time,Dwell Time [ms],int,32`: a cell between name and value describes the fact, with its unit. */
function describedUnit(name: string, value: string, { cells }: Line): string | undefined {
  const described = cells
    .slice(1, Math.max(1, cells.indexOf(value)))
    .map((cell) => (/^.{1,80}[)\]]$/.test(cell) ? unitInName(cell) : undefined));
  return described.find((one) => one && wordsIn(one.name) === wordsIn(name))?.unit;
}

/** With the unit that stands beside its number, or with a letter that is none: `142 L`. */
const withBeside = (pair: Pair, unit: string): Pair =>
  isMark(unit, pair.name) ? { ...pair, text: `${pair.text} ${unit}` } : { ...pair, unit };

/** `37,°C` or `°C,37`: the last two cells are a number and its unit, and nothing else is the value. */
function unitBeside(rest: string, { cells }: Line): { text: string; unit: string } | undefined {
  const [one = '', other = ''] = withoutTrailingEmpty(cells).slice(-2);
  const isBoth = rest.length === one.length + 1 + other.length && rest.startsWith(one) && rest[one.length] !== ' ';
  const [text, last] = isNumeric(one) ? [one, other] : [other, one];
  const unit = bareUnit(last) ?? '';
  return isBoth && isNumeric(text) && isUnit(unit) ? { text, unit } : undefined;
}
