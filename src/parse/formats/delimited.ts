import type { SplitWord } from '../../config/grammar.js';
import type { ParseOptions } from '../../config/vocabulary.js';
import type { FileRecord } from '../../model.js';
import { type Cut, compileSplit, cutLines, NO_SPLIT } from '../cells.js';
import { decode, findEncoding } from '../decode.js';
import type { Context } from '../extract/context.js';
import { createPairFinder } from '../extract/facts.js';
import { createWatchedCells, readRecord } from '../extract/lines.js';
import type { TreeFile } from '../extract/tree-facts.js';
import { depthOf } from '../grammar.js';
import { type Line, toLines, withEnds } from '../lines.js';
import { load, MOST_WHOLE_BYTES, type OpenFile, piecesOf, type Source, type WholeFile } from '../source.js';

const MOST_BYTES = 2 ** 30;

/** Reads delimited text, as the options say. */
export async function readDelimited(file: OpenFile, options: ParseOptions): Promise<FileRecord> {
  const { source, isAlternative, refuse, pace } = file;
  const { cut, lines } = await openLines(file, options);
  const { path, name } = source;
  const maxKeptCells = keptCellsOf(source);
  return readRecord({
    lines,
    context: { options, cut, path, name, sheets: [], maxKeptCells, isAlternative, refuse, pace },
  });
}

/** The lines of a text file, cut into cells, from the first each time. */
export async function openLines(
  file: OpenFile,
  options: ParseOptions,
): Promise<{ cut: Cut; lines(): AsyncIterable<readonly Line[]> }> {
  const texts = await openText(file, options);
  const { cut, from } = await findCut(texts, options);
  const depth = depthOf(options);
  return {
    cut,
    lines() {
      const lines = cutLines(skipFirst(texts(), from - 1), cut, from);
      return depth === 0 ? lines : withEnds(lines, depth);
    },
  };
}

/** Small files are kept as they are; what is so large that it is read in a stream must not fill the memory. */
const keptCellsOf = ({ content }: Source): number => (content instanceof Uint8Array ? 2_000_000 : 40_000);

/** The lines of a text file, from the first each time: a long file is never in memory as a whole. */
export async function openText(
  { source, refuse }: OpenFile,
  { encoding, limits }: ParseOptions,
): Promise<() => AsyncIterable<readonly string[]>> {
  const pieces = () => piecesOf(source, limits.maxBytes ?? MOST_BYTES, refuse);
  const name = encoding === 'auto' ? await findEncoding(pieces()) : encoding;
  const lines = () => toLines(decode(pieces(), name, refuse), refuse);
  if (!(source.content instanceof Uint8Array)) return lines;
  // What is in memory anyway is decoded once.
  const all: (readonly string[])[] = [];
  for await (const batch of lines()) all.push(batch);
  return () => replay(all);
}

async function* replay(batches: readonly (readonly string[])[]): AsyncGenerator<readonly string[]> {
  yield* batches;
}

/** The first lines, up to so many. */
export async function firstLines(
  texts: () => AsyncIterable<readonly string[]>,
  most: number,
): Promise<readonly string[]> {
  const head: string[] = [];
  for await (const batch of texts()) {
    for (const text of batch) head.push(text);
    if (head.length >= most) break;
  }
  return head.slice(0, most);
}

/** Where lines are cut: at the delimiter that the options name, or at the one that is found. */
async function findCut(
  texts: () => AsyncIterable<readonly string[]>,
  options: Pick<ParseOptions, 'delimiter' | 'quote' | 'format'>,
): Promise<{ cut: Cut; from: number }> {
  const { delimiter, from } = delimiterOf(await firstLines(texts, LOOK_LINES), options);
  return { cut: cutAt(delimiter, options.quote), from };
}

/** The delimiter, and the number of the first line that is one of the table's world. */
export function delimiterOf(
  head: readonly string[],
  { delimiter, format }: Partial<Pick<ParseOptions, 'delimiter' | 'format'>>,
): { delimiter: SplitWord | undefined; from: number } {
  // A spreadsheet's note to itself: it names the delimiter and is not shown as a line.
  const note = /^sep=(.)$/.exec(head[0] ?? '')?.[1];
  const found = () => (format === 'text' ? undefined : findDelimiter(head));
  return {
    delimiter: delimiter ?? (note === '\t' ? 'tab' : note) ?? found(),
    from: note === undefined ? 1 : 2,
  };
}

export const cutAt = (delimiter: SplitWord | undefined, quote: string): Cut => ({
  split: delimiter === undefined ? NO_SPLIT : compileSplit(delimiter),
  quote: quote === 'none' ? undefined : quote,
});

async function* skipFirst(
  batches: AsyncIterable<readonly string[]>,
  lines: number,
): AsyncGenerator<readonly string[]> {
  let left = lines;
  for await (const batch of batches) {
    yield left === 0 ? batch : batch.slice(left);
    left = Math.max(0, left - batch.length);
  }
}

/** Lines cut into cells that are all in memory, as measuring looks at them. */
export async function cutAll(texts: readonly string[], cut: Cut, from: number): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const batch of cutLines([texts.slice(from - 1)], cut, from))
    for (const line of batch) lines.push(line);
  return lines;
}

/** In the order in which they are believed where several cut equally well: `1,5;2,5` is cut at `;`. */
const SIGNS = ['tab', ';', '|', ','];
const BLANKS = ['spaces', 'whitespace'];
const LOOK_LINES = 1000;

interface Candidate {
  readonly delimiter: string;
  /** How many lines in a row it cuts alike, and into how many cells. */
  readonly run: number;
  readonly width: number;
}

/** The delimiter that cuts the most lines in a row into equally many cells; undefined where none does. */
export function findDelimiter(texts: readonly string[]): string | undefined {
  const look = texts.slice(0, LOOK_LINES).map((text) => text.replace(/"[^"]*"/g, 'q'));
  const sign = best(SIGNS, look);
  const blank = best(BLANKS, look);
  // Words of a sentence are cut by blanks too, so blanks must be by far the more regular.
  const isBlanks = blank !== undefined && blank.run >= 3 && blank.run > 2 * (sign?.run ?? 0);
  return (isBlanks ? blank : sign)?.delimiter;
}

function best(delimiters: readonly string[], texts: readonly string[]): Candidate | undefined {
  let found: Candidate | undefined;
  for (const delimiter of delimiters) {
    const candidate = longestRun(delimiter, texts);
    if (candidate.run > 0 && (!found || isBetter(candidate, found))) found = candidate;
  }
  return found;
}

/** One odd line does not decide; but what cuts twice as fine at least as regularly is the better delimiter. */
const isBetter = (later: Candidate, found: Candidate): boolean =>
  later.run > 1.2 * found.run || (1.2 * later.run >= found.run && later.width >= 2 * found.width);

function longestRun(delimiter: string, texts: readonly string[]): Candidate {
  const split = compileSplit(delimiter);
  let longest: Candidate = { delimiter, run: 0, width: 0 };
  let run = 0;
  let width = 0;
  for (const text of texts) {
    if (text.trim() === '') continue;
    const cells = split.cut(text).length;
    run = cells > 1 && cells === width ? run + 1 : Number(cells > 1);
    width = cells;
    if (run > longest.run) longest = { delimiter, run, width };
  }
  return longest;
}

/** The whole of a file, for formats that cannot be read piece by piece. */
export async function loadWhole(
  { source, refuse, pace }: OpenFile,
  { limits }: ParseOptions,
): Promise<WholeFile> {
  return { bytes: await load(source, limits.maxBytes ?? MOST_WHOLE_BYTES, refuse), refuse, pace };
}

const NONE: ReadonlySet<string> = new Set();

/** What `meta` and cell references find beside the tree: in the file's name or path, or in its lines where it has some. */
export async function namedIn(
  { source, refuse, pace }: OpenFile,
  options: ParseOptions,
  lines: readonly Line[] = [],
): Promise<TreeFile> {
  const context: Context = {
    ...{ options, refuse, pace, sheets: [], first: lines.slice(0, 100), maxKeptCells: 0 },
    ...{ path: source.path, name: source.name, cut: cutAt(options.delimiter ?? 'tab', options.quote) },
  };
  const cells = createWatchedCells(context);
  const finders = options.meta.map((finder) => createPairFinder(finder, context));
  for (const line of lines) {
    cells.take(line);
    for (const finder of finders) finder.take(line, false);
  }
  const pairs = finders.flatMap((finder) => finder.finish(NONE));
  return {
    ...{ refuse, pace },
    named: pairs.map(({ line, ...pair }) => ({ ...pair, line: line?.number })),
    cell: (written) => cells.at(written)?.text,
  };
}
