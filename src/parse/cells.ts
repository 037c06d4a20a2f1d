import { CsvError } from 'csv-parse';
import { parse as parseCsv } from 'csv-parse/sync';
import { regexSource, type SplitWord } from '../config/grammar.js';
import type { ParseOptions } from '../config/vocabulary.js';
import { depthFromEnd, type Line, numberFromEnd, toLines } from './lines.js';
import { decode, findEncoding, type OpenFile, readChunks } from './source.js';

/** How lines are cut; `quote` is undefined where none is used. */
export interface LineFormat {
  readonly split: Split;
  readonly quote: string | undefined;
}

/** Lines that are cut together: enough that the CSV parser's start does not count, few enough to pause between. */
const BATCH_LINES = 500;
/** A quoted cell that goes on for longer than this is a quote that was never closed. */
const MAX_QUOTED_LINES = 100;
/** Where quotes are left open more often than this in one batch, they are ordinary characters throughout it. */
const MAX_STRAY_QUOTES = 10;

/** Cuts lines into cells. Lines that a quoted cell holds together become one. `from` is the first line's number. */
async function* splitLines(
  batches: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  cut: LineFormat,
  from: number,
): AsyncGenerator<Line[]> {
  let waiting: readonly string[] = [];
  let number = from;
  for await (const batch of batches) {
    const texts = waiting.length === 0 ? batch : [...waiting, ...batch];
    let at = 0;
    // What comes next may be needed to close a quoted cell, so the last lines wait for it.
    while (texts.length - at >= BATCH_LINES + MAX_QUOTED_LINES) {
      const end = batchEnd(texts, at, cut);
      yield splitBatch(texts.slice(at, end), cut, number + at);
      at = end;
    }
    number += at;
    waiting = texts.slice(at);
  }
  for (let at = 0; at < waiting.length; ) {
    const end = batchEnd(waiting, at, cut);
    yield splitBatch(waiting.slice(at, end), cut, number + at);
    at = end;
  }
}

/** One line by itself, as a table or finder with a delimiter of its own sees it. */
export const splitLine = (line: Line, cut: LineFormat): Line => ({
  ...line,
  cells: splitBatch(line.text.split('\n'), cut, line.number).flatMap(({ cells }) => cells),
});

/** A batch does not end within a quoted cell. */
function batchEnd(texts: readonly string[], start: number, { quote }: LineFormat): number {
  const end = Math.min(start + BATCH_LINES, texts.length);
  if (quote === undefined) return end;
  let open = false;
  for (let at = start; at < texts.length && at < end + MAX_QUOTED_LINES; at++) {
    if (at >= end && !open) return at;
    if (count(texts[at] ?? '', quote) % 2 === 1) open = !open;
  }
  return open ? end : Math.min(end + MAX_QUOTED_LINES, texts.length);
}

function count(text: string, sign: string): number {
  let times = 0;
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + sign.length)) times++;
  return times;
}

function splitBatch(texts: readonly string[], cut: LineFormat, from: number): Line[] {
  const { split, quote } = cut;
  const isQuoted =
    quote !== undefined && split.text !== undefined && texts.some((text) => text.includes(quote));
  if (!isQuoted) return texts.map((text, n) => ({ number: from + n, text, cells: split.all(text) }));
  return splitQuoted(texts, split, split.text ?? '', quote, from);
}

function splitQuoted(
  texts: readonly string[],
  split: Split,
  delimiter: string,
  quote: string,
  from: number,
): Line[] {
  const lines: Line[] = [];
  let at = 0;
  for (let strays = 0; at < texts.length; strays++) {
    const records = strays > MAX_STRAY_QUOTES ? [] : readCsv(texts.slice(at).join('\n'), delimiter, quote);
    for (const cells of records) {
      const span = 1 + cells.reduce((sum, cell) => sum + count(cell, '\n'), 0);
      if (span > MAX_QUOTED_LINES) break;
      lines.push({
        number: from + at,
        text: texts.slice(at, at + span).join('\n'),
        cells: cells.map((cell) => cell.trim()),
      });
      at += span;
    }
    if (at >= texts.length) break;
    // A quote was never closed: in this line it is an ordinary character.
    const text = texts[at] ?? '';
    lines.push({ number: from + at, text, cells: split.all(text) });
    at++;
  }
  return lines;
}

/** The records up to the end, or up to the line with a quote that is not closed. */
function readCsv(text: string, delimiter: string, quote: string): string[][] {
  const options = {
    ...{ delimiter, quote, escape: quote, record_delimiter: '\n' },
    ...{ relax_quotes: true, relax_column_count: true },
  };
  try {
    return parseCsv(text, { ...options, trim: true });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
  }
  // Something follows a closing quote, or there is none. Trimming forbids the former; and the error takes
  // the records before it along, so they are kept one by one, which takes twice the time.
  const records: string[][] = [];
  const keep = (record: string[]): null => {
    records.push(record);
    return null;
  };
  try {
    parseCsv(text, { ...options, ltrim: true, on_record: keep });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
  }
  return records;
}

/** Where a line is cut into cells, or a name from its value. */
export interface Split {
  /** All pieces, trimmed. */
  all(text: string): string[];
  /** What stands before and after the first cut, trimmed; undefined where there is none. */
  once(text: string): readonly [before: string, after: string] | undefined;
  /** The text at which it cuts, where that is one fixed text: only then can cells be quoted. */
  readonly text?: string;
}

export function compileSplit(written: SplitWord): Split {
  if (typeof written === 'object') return byPlaces(written.at);
  if (written === 'spaces') return byRegex(/ *\t *|[ \u00a0]{2,}/, true);
  if (written === 'whitespace') return byRegex(/\s+/, true);
  const source = regexSource(written);
  if (source !== undefined) return byRegex(new RegExp(source), false);
  return byText(written === 'tab' ? '\t' : written);
}

/** A line that is not cut is one cell. */
export const NO_SPLIT: Split = { all: (text) => [text.trim()], once: () => undefined };

function byText(delimiter: string): Split {
  return {
    text: delimiter,
    all: (text) => trimmed(text.split(delimiter)),
    once(text) {
      const at = text.indexOf(delimiter);
      return at < 0 ? undefined : [text.slice(0, at).trim(), text.slice(at + delimiter.length).trim()];
    },
  };
}

/** Where tables are printed, each cell begins at the same character of every line, counted from 1. */
function byPlaces(written: readonly number[]): Split {
  const places = written.map((place) => place - 1);
  const [first = 0] = places;
  return {
    all: (text) => trimmed([0, ...places].map((place, n) => text.slice(place, places[n]))),
    once: (text) =>
      text.length > first ? [text.slice(0, first).trim(), text.slice(first).trim()] : undefined,
  };
}

/** `margin`: blanks at the ends of a line are no empty cells. */
function byRegex(regex: RegExp, margin: boolean): Split {
  // `split` puts what the groups of a pattern caught among the pieces: they are passed over.
  const step = new RegExp(`${regex.source}|`).exec('')?.length ?? 1;
  return {
    all(text) {
      const pieces = (margin ? text.trim() : text).split(regex);
      return trimmed(step === 1 ? pieces : pieces.filter((_, n) => n % step === 0));
    },
    once(written) {
      const text = margin ? written.trim() : written;
      const match = regex.exec(text);
      if (!match) return undefined;
      return [text.slice(0, match.index).trim(), text.slice(match.index + match[0].length).trim()];
    },
  };
}

function trimmed(cells: string[]): string[] {
  for (let n = 0; n < cells.length; n++) cells[n] = cells[n]?.trim() ?? '';
  return cells;
}

const MOST_BYTES = 2 ** 30;

/** The lines of a text file, cut into cells, from the first each time. */
export async function openLines(
  file: OpenFile,
  options: ParseOptions,
): Promise<{ cut: LineFormat; lines(): AsyncIterable<readonly Line[]> }> {
  const texts = await openText(file, options);
  const { cut, from } = await findLineFormat(texts, options);
  const depth = depthFromEnd(options);
  return {
    cut,
    lines() {
      const lines = splitLines(skipFirst(texts(), from - 1), cut, from);
      return depth === 0 ? lines : numberFromEnd(lines, depth);
    },
  };
}

/** The lines of a text file, from the first each time: a long file is never in memory as a whole. */
export async function openText(
  { source, refuse }: OpenFile,
  { encoding, limits }: ParseOptions,
): Promise<() => AsyncIterable<readonly string[]>> {
  const pieces = () => readChunks(source, limits.maxBytes ?? MOST_BYTES, refuse);
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
async function findLineFormat(
  texts: () => AsyncIterable<readonly string[]>,
  options: Pick<ParseOptions, 'delimiter' | 'quote' | 'format'>,
): Promise<{ cut: LineFormat; from: number }> {
  const { delimiter, from } = chooseDelimiter(await firstLines(texts, SAMPLE_LINES), options);
  return { cut: lineFormat(delimiter, options.quote), from };
}

/** The delimiter, and the number of the first line that is one of the table's world. */
export function chooseDelimiter(
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

export const lineFormat = (delimiter: SplitWord | undefined, quote: string): LineFormat => ({
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
export async function splitAll(texts: readonly string[], cut: LineFormat, from: number): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const batch of splitLines([texts.slice(from - 1)], cut, from))
    for (const line of batch) lines.push(line);
  return lines;
}

/** In the order in which they are believed where several cut equally well: `1,5;2,5` is cut at `;`. */
const SIGNS = ['tab', ';', '|', ','];
const BLANKS = ['spaces', 'whitespace'];
const SAMPLE_LINES = 1000;

interface Candidate {
  readonly delimiter: string;
  /** How many lines in a row it cuts alike, and into how many cells. */
  readonly run: number;
  readonly width: number;
}

/** The delimiter that cuts the most lines in a row into equally many cells; undefined where none does. */
export function findDelimiter(texts: readonly string[]): string | undefined {
  const look = texts.slice(0, SAMPLE_LINES).map((text) => text.replace(/"[^"]*"/g, 'q'));
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
    const cells = split.all(text).length;
    run = cells > 1 && cells === width ? run + 1 : Number(cells > 1);
    width = cells;
    if (run > longest.run) longest = { delimiter, run, width };
  }
  return longest;
}
