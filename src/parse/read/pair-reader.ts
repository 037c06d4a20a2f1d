import type { Finder } from '../../config/vocabulary.js';
import type { Cut } from '../formats/cut.js';
import { compileSplit, type Split } from '../grammar/split.js';
import type { Line } from '../lines.js';
import type { Pair } from './facts.js';

/** Reads names and values out of lines. */
export interface PairReader {
  read(line: Line): Pair[];
  /** Whether it has all that it looks for. */
  isDone(): boolean;
}

/** As the finder says: by a separator, cell by cell, line by line, or by the place in the line. */
export function createPairReader(finder: Finder, cut: Cut): PairReader {
  const { separator, cells } = finder;
  if (cells !== undefined) return createPositional(cells);
  if (separator === 'nextLine') return createNextLine();
  if (separator === 'cell') return endless(alternating);
  if (separator === undefined) return endless(() => []);
  const split = compileSplit(separator);
  return endless((line) => separated(line, split, finder, cut));
}

const endless = (read: (line: Line) => Pair[]): PairReader => ({ read, isDone: () => false });

/** Cells of one line by their place. */
function createPositional(cells: NonNullable<Finder['cells']>): PairReader {
  const places = Array.isArray(cells)
    ? cells.map((name, n) => [name, n + 1] as const).filter(([name]) => name !== '_')
    : Object.entries(cells);
  let isDone = false;
  return {
    read(line) {
      isDone = true;
      return places.map(([name, place]) => ({ name, text: line.cells[place - 1] ?? '', line }));
    },
    isDone: () => isDone,
  };
}

/** The name on one line, the value on the next. */
function createNextLine(): PairReader {
  let open: string | undefined;
  return endless((line) => {
    const text = line.cells.join(' ').trim();
    if (open === undefined) {
      open = text;
      return [];
    }
    const name = open;
    open = undefined;
    return [{ name, text, line }];
  });
}

/**
 * Name, value, name, value: empty cells and those that only hold a sign are passed over.
 * Where a name is expected, a cell that holds both, `Weight: 12 mg`, is both.
 */
function alternating(line: Line): Pair[] {
  const pairs: Pair[] = [];
  let open: string | undefined;
  for (const cell of line.cells) {
    if (cell === '' || cell === ':' || cell === '=') continue;
    const both = open === undefined ? nameAndValue(cell) : undefined;
    if (both) pairs.push({ ...both, line });
    else if (open === undefined) open = cell;
    else {
      pairs.push({ name: open, text: cell, line });
      open = undefined;
    }
  }
  return pairs;
}

/** A word, a colon, a blank and more: `10:15` is a value and no name with one. */
function nameAndValue(cell: string): { name: string; text: string } | undefined {
  const at = cell.indexOf(':');
  if (at < 0 || !/^\s+\S/.test(cell.slice(at + 1))) return undefined;
  const name = cell.slice(0, at);
  return /\p{L}/u.test(name) ? { name, text: cell.slice(at + 1).trim() } : undefined;
}

/** Name and value of a line, or of each of its cells, cut at the first separator. */
function separated(line: Line, split: Split, finder: Finder, cut: Cut): Pair[] {
  if (finder.in === 'cells') {
    // A name whose value stands in the next cell is a pair for another finder.
    return line.cells.flatMap((cell) => pairOf(cell, split, finder, line)).filter(({ text }) => text !== '');
  }
  if (split.text === undefined || split.text !== cut.split.text) {
    return pairOf(plainText(line, cut), split, finder, line);
  }
  // The separator is the delimiter, so the cut was made already, and with regard to quotes.
  const cells = withoutTrailingEmpty(line.cells);
  const [name = '', ...rest] = cells;
  if (line.cells.length < 2) return [];
  // Values are often moved a cell or two to the right, to stand below each other.
  const start = rest.findIndex((cell) => cell !== '');
  return [pick(name, rest.slice(Math.max(0, start)).join(split.text), cells, finder, line)];
}

function pairOf(text: string, split: Split, finder: Finder, line: Line): Pair[] {
  const parts = split.cutOnce(text);
  if (!parts) return [];
  return [pick(parts[0], parts[1], finder.value || finder.unit ? split.cut(text) : [], finder, line)];
}

/** The value is all that follows, or the piece that the finder says; where that is lacking, the last one. */
function pick(name: string, rest: string, pieces: readonly string[], finder: Finder, line: Line): Pair {
  const { value, unit } = finder;
  if (value === undefined)
    return { name, text: rest, unit: unit === undefined ? undefined : pieces[unit - 1], line };
  const piece = pieces[value - 1];
  if (piece === undefined) return { name, text: pieces.at(-1) ?? '', line };
  return { name, text: piece, unit: unit === undefined ? undefined : pieces[unit - 1], line };
}

/** The text of a line without its quotes and without the delimiters at its end. */
function plainText(line: Line, { split, quote }: Cut): string {
  if (split.text === undefined) return line.text;
  if (quote !== undefined && line.text.includes(quote))
    return withoutTrailingEmpty(line.cells).join(split.text);
  let end = line.text.length;
  // Blanks stay where no delimiter follows: a separator such as " : " may end in one.
  for (let at = end; ; ) {
    while (at > 0 && line.text[at - 1] === ' ') at--;
    if (!line.text.endsWith(split.text, at)) return line.text.slice(0, end);
    at -= split.text.length;
    end = at;
  }
}

function withoutTrailingEmpty(cells: readonly string[]): readonly string[] {
  let end = cells.length;
  while (end > 0 && cells[end - 1] === '') end--;
  return cells.slice(0, end);
}
