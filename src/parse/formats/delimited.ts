import type { SplitWord } from '../../config/grammar.js';
import type { ParseOptions } from '../../config/vocabulary.js';
import type { FileRecord } from '../../model.js';
import { decode, findEncoding } from '../decode.js';
import { depthOf } from '../grammar/line.js';
import { compileSplit, NO_SPLIT } from '../grammar/split.js';
import { type Line, toLines, withEnds } from '../lines.js';
import { readRecord } from '../read/record.js';
import { piecesOf, type Source } from '../source.js';
import { type Cut, cutLines } from './cut.js';
import { findDelimiter, LOOK_LINES } from './find-delimiter.js';
import type { OpenFile } from './open-file.js';

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
