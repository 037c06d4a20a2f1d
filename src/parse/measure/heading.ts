import { isBlank, type Line } from '../lines.js';
import { bareUnit, isUnit, unitAfterSlash, unitInBrackets } from '../values/unit.js';
import type { Body } from './body.js';
import { areNumberNames, kindOf } from './kinds.js';

/** What stands above the rows: the lines with the names, and maybe one with units. */
export interface Heading {
  /** The first line of the names; where there are none, the first row. */
  readonly from: number;
  readonly rows: number;
  readonly units: 'inHeader' | 'slash' | 'nextRow';
  /** The lines with the names. */
  readonly names: readonly Line[];
  /** Lines between the names and the rows that are neither. */
  readonly skip: readonly Line[];
  /** The last of them, where it says what the rows below it are. */
  readonly title?: Line | undefined;
}

/** Looks above the rows of a table for its names; rows 0 where it has none. */
export function findHeading(lines: readonly Line[], body: Body, top = 0): Heading {
  if (!body.kinds.some((kind) => kind === 'number' || kind === 'date')) {
    // A table of words: its first line is the only one that can name them.
    const names = lines.slice(body.from, body.from + 1);
    return { from: body.from, rows: 1, units: 'inHeader', names, skip: [] };
  }
  const [nearest, ...others] = namesAbove(lines, body, top);
  if (nearest === undefined) return furtherUp(lines, body, top);
  const parted = others[0] === undefined ? findParted(lines, nearest, body, top) : undefined;
  if (parted) return parted;
  const hasUnits = others[0] !== undefined && isUnitRow(lines[nearest]);
  const names = hasUnits ? others : [nearest, ...others];
  return {
    from: names.at(-1) ?? nearest,
    rows: names.length,
    units: hasUnits ? 'nextRow' : hasSlashes(lines[nearest], body) ? 'slash' : 'inHeader',
    names: names.toReversed().flatMap((index) => lines[index] ?? []),
    skip: [],
  };
}

/**
 * Names, words that go on below some of them, units. Where lines are cut at blanks, the words in between
 * cannot be told to belong to one name or another: they are left out.
 */
function findParted(lines: readonly Line[], units: number, body: Body, top: number): Heading | undefined {
  const [names, words] = [lines[units - 2], lines[units - 1]];
  if (!names || !words || units - 2 < top || !isUnitRow(lines[units])) return undefined;
  if (!isNames(names, body.kinds.length, 0.75) || !isNames(words, body.kinds.length, 0)) return undefined;
  return { from: units - 2, rows: 1, units: 'nextRow', names: [names], skip: [words] };
}

/** Names need not stand right above the rows: a line such as `[Data]` can come between. */
function furtherUp(lines: readonly Line[], body: Body, top: number): Heading {
  const above = lines
    .slice(top, body.from)
    .filter((line) => !isBlank(line))
    .slice(-3)
    .reverse();
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  const isFull = (line: Line) => isNames(line, columns, 1) && line.cells.length === body.kinds.length;
  const nearest = above.findIndex(isFull);
  // `in`, `in`, `out` say something about columns that have their names one line up.
  const distinct = above.findIndex(
    (line) => isFull(line) && new Set(line.cells).size * 2 > line.cells.length,
  );
  const n = distinct < 0 ? nearest : distinct;
  const names = above[n];
  if (!names) return { from: body.from, rows: 0, units: 'inHeader', names: [], skip: [] };
  const units = hasSlashes(names, body) ? 'slash' : 'inHeader';
  return {
    from: lines.indexOf(names),
    rows: 1,
    units,
    names: [names],
    skip: above.slice(0, n).reverse(),
    title: above[0],
  };
}

/** The lines directly above that can be names, nearest first: all words, and about one for each column. */
function namesAbove(lines: readonly Line[], body: Body, top: number): number[] {
  const found: number[] = [];
  for (let index = body.from - 1; index >= top && found.length < 3; index--) {
    const line = lines[index];
    if (!line) break;
    // Blank lines may stand between rows, units and names; names that go on do so without one.
    if (isRule(line)) continue;
    if (isBlank(line) && (found.length === 0 || (found.length === 1 && isUnitRow(lines[found[0] ?? 0]))))
      continue;
    const enough = found.length === 0 ? 0.5 : 0.75;
    if (found.length === 0 && areNumberNames(line, body.kinds)) return [index];
    if (!isNames(line, body.kinds.length, enough)) break;
    // Lines of two cells above a header are names with values, not more names.
    if (found.length > 0 && body.kinds.length < 3 && !isUnitRow(lines[found[0] ?? 0])) break;
    found.push(index);
  }
  return found;
}

/** A line that is only drawn. */
export const isRule = ({ text }: Line): boolean =>
  text.length < LONGEST_RULE && /^[\s\-=_+|*]+$/.test(text) && /[-=_*]{3}/.test(text);

/** What is longer is not drawn for people to look at. */
const LONGEST_RULE = 1000;

function isNames(line: Line, width: number, enough: number): boolean {
  const filled = line.cells.filter((cell) => cell !== '');
  return filled.length >= Math.max(2, enough * width) && filled.every((cell) => isWord(cell));
}

const isWord = (cell: string): boolean =>
  kindOf(cell) === 'text' || (kindOf(cell) === 'any' && !/\d/.test(cell));

function isUnitRow(line: Line | undefined): boolean {
  const units = line?.cells.filter((cell) => cell !== '') ?? [];
  const known = units.filter((cell) => /^[[(].*[\])]$/.test(cell) || isUnit(bareUnit(cell) ?? ''));
  return units.length > 0 && known.length * 2 > units.length;
}

function hasSlashes(line: Line | undefined, { kinds }: Body): boolean {
  const names = line?.cells.filter((_, n) => kinds[n] === 'number') ?? [];
  const slashes = names.filter((name) => unitAfterSlash(name, false));
  return slashes.length * 2 > names.length && !names.some((name) => unitInBrackets(name));
}
