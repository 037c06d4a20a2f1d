import { regexSource } from '../../config/grammar.js';
import type { Finder } from '../../config/vocabulary.js';
import { caught, compileLine } from '../grammar/line.js';
import { compileSplit, type Split } from '../grammar/split.js';
import { isBlank, type Line } from '../lines.js';
import { type Context, recut, withoutMark } from './context.js';
import { indexOfLine, requireLine } from './find-line.js';
import type { Claims } from './locate.js';
import { cleanName } from './names.js';

/** A name and a value that a finder found. */
export interface Pair {
  readonly name: string;
  readonly text: string;
  readonly unit?: string | undefined;
  readonly line: Line | undefined;
}

/** Finds the facts of a file: runs one finder over the lines that no table claimed, or over the range it names. */
export async function findPairs(finder: Finder, file: Context, claims: Claims): Promise<Pair[]> {
  const context = await recut(file, finder.delimiter);
  const lines = linesFor(finder, context, claims).map((line) => withoutMark(line, context));
  const pairs = await pairsIn(finder, lines, context);
  return pairs
    .map(({ line, ...pair }) => ({
      ...pair,
      name: cleanName(pair.name),
      line: line?.number ? line : undefined,
    }))
    .filter(({ name }) => name !== '');
}

async function pairsIn(finder: Finder, lines: readonly Line[], context: Context): Promise<Pair[]> {
  const { separator, match, cells, line } = finder;
  if (match !== undefined) return matched(match, lines, context);
  if (cells !== undefined) return positional(cells, lines[0]);
  if (separator === undefined) return [];
  if (separator === 'nextLine') return nextLines(lines);
  const split = compileSplit(separator);
  const read = separator === 'cell' ? alternating : (from: Line) => separated(from, split, finder, context);
  const pairs: Pair[] = [];
  for (const from of line === undefined ? lines : lines.slice(0, 1)) {
    for (const pair of read(from)) pairs.push(pair);
    if (from.number % 512 === 0 && context.pace.due()) await context.pace.rest();
  }
  return pairs;
}

function linesFor(finder: Finder, context: Context, claims: Claims): Line[] {
  const { lines } = context;
  if (finder.in === 'name') return [alone(context.name, context)];
  if (finder.in === 'path') return [alone(context.path, context)];
  const { after, until, line } = finder;
  const from = after === undefined ? 0 : requireLine('after', after, context) + 1;
  // Blank lines at the top do not end what has not begun.
  const start = indexOfLine(lines, (first) => !isBlank(first), from);
  const end = until === undefined ? -1 : indexOfLine(lines, compileLine(until, lines), Math.max(start, from));
  const to = end < 0 ? lines.length : end;
  const first = line === undefined ? from : requireLine('line', line, context, from, to);
  const isNamed = after !== undefined || until !== undefined || line !== undefined;
  return lines
    .slice(first, to)
    .filter((candidate, n) => !isBlank(candidate) && (isNamed || claims[first + n] !== 1));
}

/** The name of the file is no line of it. */
const alone = (text: string, { cut }: Context): Line => ({ number: 0, text, cells: cut.split.cut(text) });

/** The named groups, from the first line that fits. */
function matched(match: string, lines: readonly Line[], { refuse }: Context): Pair[] {
  const regex = new RegExp(regexSource(match) ?? match);
  for (const line of lines) {
    const found = regex.exec(line.text);
    if (found) return [...caught(found)].map(([name, text]) => ({ name, text: text.trim(), line }));
  }
  throw refuse(`nothing fits \`match: ${match}\``, { hint: 'correct the pattern, or narrow it with `line`' });
}

/** Cells of one line by their place. */
function positional(cells: NonNullable<Finder['cells']>, line: Line | undefined): Pair[] {
  const places = Array.isArray(cells)
    ? cells.map((name, n) => [name, n + 1] as const).filter(([name]) => name !== '_')
    : Object.entries(cells);
  return places.map(([name, place]) => ({ name, text: line?.cells[place - 1] ?? '', line }));
}

/** Name, value, name, value: empty cells and those that only hold a sign are passed over. */
function alternating(line: Line): Pair[] {
  const cells = line.cells.filter((cell) => cell !== '' && cell !== ':' && cell !== '=');
  return inTwos(cells).map(([name, text]) => ({ name, text, line }));
}

function nextLines(lines: readonly Line[]): Pair[] {
  return inTwos(lines).map(([first, second]) => ({
    name: first.cells.join(' ').trim(),
    text: second.cells.join(' ').trim(),
    line: second,
  }));
}

function inTwos<T>(items: readonly T[]): [T, T][] {
  return items.flatMap((first, n): [T, T][] => {
    const second = items[n + 1];
    return n % 2 === 0 && second !== undefined ? [[first, second]] : [];
  });
}

/** Name and value of a line, or of each of its cells, cut at the first separator. */
function separated(line: Line, split: Split, finder: Finder, context: Context): Pair[] {
  if (finder.in === 'cells') return line.cells.flatMap((cell) => pairOf(cell, split, finder, line));
  const { cut } = context;
  if (split.text === undefined || split.text !== cut.split.text) {
    return pairOf(plainText(line, context), split, finder, line);
  }
  // The separator is the delimiter, so the cut was made already, and with regard to quotes.
  const cells = withoutTrailingEmpty(line.cells);
  const [name = '', ...rest] = cells;
  if (line.cells.length < 2) return [];
  return [pick(name, rest.join(split.text), cells, finder, line)];
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
function plainText(line: Line, { cut: { split, quote } }: Context): string {
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
