import { CsvError } from 'csv-parse';
import { parse as parseCsv } from 'csv-parse/sync';
import { regexSource, type SplitWord } from '../config/grammar.js';
import type { ParseOptions } from '../config/vocabulary.js';
import { FileError } from '../errors.js';
import { depthFromEnd, isRule, type Line, numberFromEnd, toLines } from './lines.js';
import { decode, knownEncoding, MAX_TEXT_BYTES, type OpenFile, readChunks } from './source.js';

type Batches = AsyncIterable<readonly string[]> | Iterable<readonly string[]>;
type Texts = () => Batches;

/** The lines of a text file, split into cells. `lines` starts from the first line at each call. */
export async function openLines(file: OpenFile) {
  const { options, known } = file;
  const texts = await openText(file);
  const { delimiter, from } = chooseDelimiter(await firstLines(texts, SAMPLE_LINES), options);
  const format = lineFormat(delimiter, options.quote);
  const depth = depthFromEnd(options);
  const isKnown =
    known.split?.delimiter === delimiter && options.quote === '"' && known.split?.count === known.text?.count;
  const whole = isKnown && depth === 0 ? known.split?.lines : undefined;
  return {
    lineFormat: format,
    lines() {
      if (whole) return [whole];
      const split = splitLines(skipFirst(texts(), from - 1), format, from);
      const lines = format.split.text === BOX ? readBoxes(split) : split;
      return depth === 0 ? lines : numberFromEnd(lines, depth);
    },
  };
}

/** The lines of a text file, from the first at each call. A long file is never in memory as a whole. */
export async function openText(file: OpenFile): Promise<Texts> {
  const { source, refuse, options, known } = file;
  const { encoding } = options;
  if (known.text?.encoding === encoding) return known.text.lines;
  const chunks = () => readChunks(file, options.limits.maxBytes ?? MAX_TEXT_BYTES);
  const found = await knownEncoding(chunks(), encoding, refuse);
  known.encoding = found;
  const lines = () => toLines(decode(chunks(), found, refuse), refuse);
  if (!(source.content instanceof Uint8Array)) return lines;
  // The bytes are in memory already, so they are decoded only once.
  const batches: (readonly string[])[] = [];
  for await (const batch of lines()) batches.push(batch);
  const count = batches.reduce((sum, batch) => sum + batch.length, 0);
  known.text = { encoding, count, lines: () => batches };
  return known.text.lines;
}

export async function firstLines(texts: Texts, count: number): Promise<readonly string[]> {
  const head: string[] = [];
  for await (const batch of texts()) {
    for (const text of batch) head.push(text);
    if (head.length >= count) break;
  }
  return head.slice(0, count);
}

async function* skipFirst(batches: Batches, lines: number): AsyncGenerator<readonly string[]> {
  let left = lines;
  for await (const batch of batches) {
    yield left === 0 ? batch : batch.slice(left);
    left = Math.max(0, left - batch.length);
  }
}

/** The delimiter of the mapping, or the one that is found, and the number of the first line with data. */
export function chooseDelimiter(
  head: readonly string[],
  { delimiter, format }: Partial<Pick<ParseOptions, 'delimiter' | 'format'>>,
): { delimiter: SplitWord | undefined; from: number } {
  // Excel takes the delimiter from a first line such as `sep=;` and does not show that line.
  const declared = /^sep=(.)$/.exec(head[0] ?? '')?.[1];
  const found = () => (format === 'text' ? undefined : findDelimiter(head));
  return {
    delimiter: delimiter ?? (declared === '\t' ? 'tab' : declared) ?? found(),
    from: declared === undefined ? 1 : 2,
  };
}

/** The side of a drawn box, and its other lines. */
const BOX = '│';
const BOX_RULE = /^\s*[┌├└]/;

/** In order of preference if several split equally well: `1,5;2,5` is split at `;`. */
const CHARACTERS = ['tab', ';', '|', BOX, ','];
const BLANKS = ['spaces', 'whitespace'];
const SAMPLE_LINES = 1000;
const SAMPLE_CHARACTERS = 100_000;

/** `200,0  2,05E+03`: numbers with blanks between them. */
export const DECIMAL_COMMAS = /^\s*[-+]?\d+,\d+(?:[eE][-+]?\d+)?(?:\s+[-+]?\d+,\d+(?:[eE][-+]?\d+)?)+\s*$/;

/** The delimiter that splits the longest sequence of lines into the same number of cells. */
export function findDelimiter(texts: readonly string[]): string | undefined {
  const sample = texts
    .slice(0, SAMPLE_LINES)
    .filter((text) => !BOX_RULE.test(text))
    .map((text) => text.slice(0, SAMPLE_CHARACTERS).replace(/"[^"]*"/g, 'q'))
    .map((text) => (DECIMAL_COMMAS.test(text) ? text.replaceAll(',', '.') : text));
  const character = best(CHARACTERS, sample);
  // Blanks also separate the words of sentences, so they must be far more regular.
  const least = Math.max(3, 2 * (character?.run ?? 0) + 1);
  const blank = sample.length < least ? undefined : best(BLANKS, sample);
  const isBlank = blank !== undefined && blank.run >= least;
  return (isBlank ? blank : character)?.delimiter;
}

type Candidate = ReturnType<typeof longestRun>;

function best(delimiters: readonly string[], texts: readonly string[]): Candidate | undefined {
  let found: Candidate | undefined;
  for (const delimiter of delimiters) {
    const candidate = longestRun(delimiter, texts);
    if (candidate.run > 0 && (!found || isBetter(candidate, found))) found = candidate;
  }
  return found;
}

/** One odd line does not decide. But a delimiter that yields twice as many cells about as regularly is better. */
const isBetter = (later: Candidate, found: Candidate): boolean =>
  later.run > 1.2 * found.run || (1.2 * later.run >= found.run && later.width >= 2 * found.width);

/** The longest run of lines that a delimiter splits into the same number of cells, and that number. */
function longestRun(delimiter: string, texts: readonly string[]) {
  const split = compileSplit(delimiter);
  let longest = { delimiter, run: 0, width: 0 };
  let run = 0;
  let width = 0;
  for (const text of texts) {
    if (text.trim() === '') continue;
    const cells = split.text === undefined ? split.all(text).length : 1 + count(text, split.text);
    run = cells > 1 && cells === width ? run + 1 : Number(cells > 1);
    width = cells;
    if (run > longest.run) longest = { delimiter, run, width };
  }
  return longest;
}

export interface LineFormat {
  readonly split: Split;
  /** Undefined if cells are not quoted. */
  readonly quote: string | undefined;
}

export const lineFormat = (delimiter: SplitWord | undefined, quote: string): LineFormat => ({
  split: delimiter === undefined ? NO_SPLIT : compileSplit(delimiter),
  quote: quote === 'none' ? undefined : quote,
});

/** Splits lines that are all in memory. `from` is the number of the first line to split. */
export async function splitAll(texts: readonly string[], format: LineFormat, from: number): Promise<Line[]> {
  const split = splitLines([texts.slice(from - 1)], format, from);
  const lines: Line[] = [];
  for await (const batch of format.split.text === BOX ? readBoxes(split) : split)
    for (const line of batch) lines.push(line);
  return lines;
}

/** More lines between two drawn lines are rows of their own. */
const MAX_WRAPPED = 4;
/** A longer box is not held in memory. */
const MAX_BOX_LINES = 10_000;

/** Drawn boxes without what is drawn. Blank lines are instead of their top and bottom. */
async function* readBoxes(batches: AsyncIterable<readonly Line[]>): AsyncGenerator<readonly Line[]> {
  let box: Line[] = [];
  for await (const batch of batches) {
    const done: Line[] = [];
    for (const line of batch) {
      if (box.length > 0 || /^\s*┌/.test(line.text)) box.push(line);
      else done.push(line);
      if (/^\s*└/.test(line.text) || box.length > MAX_BOX_LINES) {
        done.push(...readBox(box));
        box = [];
      }
    }
    yield done;
  }
  yield readBox(box);
}

/** If lines are drawn between all rows, each row can have several lines. */
function readBox(box: readonly Line[]): readonly Line[] {
  const isClosed = box.every((line) => isRule(line) || /^\s*│.*│\s*$/.test(line.text));
  const isWhole = BOX_RULE.test(box.at(-1)?.text ?? '');
  if (!isClosed || !isWhole) return box;
  const rows: Line[][] = [];
  for (const [n, line] of box.entries()) {
    if (!isRule(line)) rows.at(-1)?.push(line);
    else if (n < box.length - 1) rows.push([]);
  }
  const isWrapped = rows.length !== 2 && rows.every(({ length }) => length <= MAX_WRAPPED);
  const lines = rows.flatMap((row) => (isWrapped ? joinLines(row) : row.map((line) => joinLines([line]))));
  const blanks = [box[0], box.at(-1)].map((line) => ({ number: line?.number ?? 0, text: '', cells: [''] }));
  return [...blanks.slice(0, 1), ...lines, ...blanks.slice(1)];
}

/** One row, without the sides of the box. */
function joinLines(lines: readonly Line[]): Line {
  const parts = lines.map((line) => line.text.trim().split(BOX).slice(1, -1));
  const joined = (parts[0] ?? []).map((_, n) => parts.reduce((cell, part) => continueCell(cell, part[n] ?? ''), ''));
  const cells = trimAll(joined);
  return { number: lines[0]?.number ?? 0, text: cells.join(BOX), cells, count: lines.length };
}

/** A word or number that fills its cell, or ends with a sign, goes on without a blank. */
function continueCell(cell: string, part: string): string {
  const isOpen = /\S$|[-._/\\]\s*$/.test(cell);
  return isOpen ? cell.trimEnd() + part.trimStart() : `${cell.trimEnd()} ${part.trimStart()}`;
}

/** Lines that are split together: enough to amortise the start of the CSV parser, few enough not to block. */
const BATCH_LINES = 500;
/** A quoted cell that spans more lines than this is an unclosed quote. */
const MAX_QUOTED_LINES = 100;
/** With more unclosed quotes than this in a batch, quotes are ordinary characters in the rest of it. */
const MAX_STRAY_QUOTES = 10;

/** `from` is the number of the first line. */
async function* splitLines(batches: Batches, format: LineFormat, from: number): AsyncGenerator<Line[]> {
  let waiting: readonly string[] = [];
  let number = from;
  for await (const batch of batches) {
    const texts = waiting.length === 0 ? batch : [...waiting, ...batch];
    let at = 0;
    // A quoted cell may be closed in the next batch, so the last lines wait for it.
    while (texts.length - at >= BATCH_LINES + MAX_QUOTED_LINES) {
      const end = batchEnd(texts, at, format);
      yield splitBatch(texts.slice(at, end), format, number + at);
      at = end;
    }
    number += at;
    waiting = texts.slice(at);
  }
  for (let at = 0; at < waiting.length; ) {
    const end = batchEnd(waiting, at, format);
    yield splitBatch(waiting.slice(at, end), format, number + at);
    at = end;
  }
}

/** Splits a line again, for a table or finder with its own delimiter. */
export const splitLine = (line: Line, format: LineFormat): Line => ({
  ...line,
  cells: splitBatch(line.text.split('\n'), format, line.number).flatMap(({ cells }) => cells),
});

/** A batch does not end within a quoted cell. */
function batchEnd(texts: readonly string[], start: number, { quote }: LineFormat): number {
  const end = Math.min(start + BATCH_LINES, texts.length);
  if (quote === undefined || end === texts.length) return end;
  let open = false;
  for (let at = start; at < texts.length && at < end + MAX_QUOTED_LINES; at++) {
    if (at >= end && !open) return at;
    if (count(texts[at] ?? '', quote) % 2 === 1) open = !open;
  }
  return open ? end : Math.min(end + MAX_QUOTED_LINES, texts.length);
}

function count(text: string, part: string): number {
  let times = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) times++;
  return times;
}

function splitBatch(texts: readonly string[], { split, quote }: LineFormat, from: number): Line[] {
  const { text: delimiter } = split;
  if (quote === undefined || delimiter === undefined || !texts.some((text) => text.includes(quote))) {
    return texts.map((text, n) => ({ number: from + n, text, cells: split.all(text) }));
  }
  const lines: Line[] = [];
  let at = 0;
  for (let strays = 0; at < texts.length; strays++) {
    const records = strays > MAX_STRAY_QUOTES ? [] : readCsv(texts.slice(at).join('\n'), delimiter, quote);
    for (const cells of records) {
      const span = 1 + cells.reduce((sum, cell) => sum + count(cell, '\n'), 0);
      if (span > MAX_QUOTED_LINES) break;
      const text = texts.slice(at, at + span).join('\n');
      lines.push({ number: from + at, text, cells: cells.map((cell) => cell.trim()) });
      at += span;
    }
    if (at >= texts.length) break;
    // An unclosed quote: it is an ordinary character in this line.
    const text = texts[at] ?? '';
    lines.push({ number: from + at, text, cells: split.all(text) });
    at++;
  }
  return lines;
}

/** The records up to the end, or up to the line with an unclosed quote. */
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
  // Either a quote is unclosed, or text follows a closing quote, which `trim` forbids. Records are collected
  // one by one, because the error discards those before it; this takes twice the time.
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

/** Splits a line into cells, or a name from its value. */
export interface Split {
  /** All pieces, trimmed. */
  all(text: string): string[];
  /** The text before and after the first split, trimmed; undefined if there is no split. */
  once(text: string): readonly [before: string, after: string] | undefined;
  /** The delimiter, if it is a fixed text: only then can cells be quoted. */
  readonly text?: string;
}

export function compileSplit(written: SplitWord): Split {
  if (typeof written === 'object') return byPositions(written.at);
  if (written === 'spaces') return byRegex(/ *\t *|[ \u00a0]{2,}/, true);
  if (written === 'whitespace') return byRegex(/\s+/, true);
  const source = regexSource(written);
  if (source !== undefined) return byRegex(new RegExp(source), false);
  return byText(written === 'tab' ? '\t' : written);
}

/** The line is one cell. */
const NO_SPLIT: Split = { all: (text) => [text.trim()], once: () => undefined };

function byText(delimiter: string): Split {
  return {
    text: delimiter,
    // Not with `split` and then `trim` for each cell, which takes twice as long.
    all(text) {
      const cells: string[] = [];
      let from = 0;
      for (let at = text.indexOf(delimiter); at >= 0; at = text.indexOf(delimiter, from)) {
        cells.push(trimmedPart(text, from, at));
        from = at + delimiter.length;
        if (cells.length > MAX_CELLS) break;
      }
      cells.push(trimmedPart(text, from, text.length));
      return refuseTooMany(cells);
    },
    once(text) {
      const at = text.indexOf(delimiter);
      return at < 0 ? undefined : [text.slice(0, at).trim(), text.slice(at + delimiter.length).trim()];
    },
  };
}

/** Most cells begin and end with a letter, digit or sign and need no trimming. */
function trimmedPart(text: string, from: number, to: number): string {
  const part = text.slice(from, to);
  return mayBeBlank(text.charCodeAt(from)) || mayBeBlank(text.charCodeAt(to - 1)) ? part.trim() : part;
}

/** Not a visible ASCII character. */
const mayBeBlank = (code: number): boolean => code <= 32 || code >= 127;

/** Fixed width: the characters, from 1, at which further cells start. */
function byPositions(written: readonly number[]): Split {
  const starts = written.map((position) => position - 1);
  const [first = 0] = starts;
  return {
    all: (text) => trimAll([0, ...starts].map((start, n) => text.slice(start, starts[n]))),
    once: (text) => (text.length > first ? [text.slice(0, first).trim(), text.slice(first).trim()] : undefined),
  };
}

/** No name of a value is longer. */
const MAX_NAME_CHARACTERS = 5000;

/** `isTrimmed`: matches at the start and end of a line yield no empty cells. */
function byRegex(regex: RegExp, isTrimmed: boolean): Split {
  // `split` adds the groups of the pattern to the pieces, so they are removed here.
  const step = new RegExp(`${regex.source}|`).exec('')?.length ?? 1;
  return {
    all(text) {
      const pieces = (isTrimmed ? text.trim() : text).split(regex);
      return trimAll(step === 1 ? pieces : pieces.filter((_, n) => n % step === 0));
    },
    once(written) {
      const text = isTrimmed ? written.trim() : written;
      // A pattern that looks back at the line would take quadratic time.
      const match = regex.exec(text.length > MAX_NAME_CHARACTERS ? text.slice(0, MAX_NAME_CHARACTERS) : text);
      if (!match) return undefined;
      return [text.slice(0, match.index).trim(), text.slice(match.index + match[0].length).trim()];
    },
  };
}

/** Instruments do not write longer lines: the file is of another kind, or damaged. */
const MAX_CELLS = 1_000_000;

function refuseTooMany(cells: string[]): string[] {
  if (cells.length <= MAX_CELLS) return cells;
  throw new FileError(`a line has more than ${MAX_CELLS} cells`, {
    hint: 'check the delimiter, and whether the file is damaged',
  });
}

function trimAll(cells: string[]): string[] {
  refuseTooMany(cells);
  for (let n = 0; n < cells.length; n++) cells[n] = cells[n]?.trim() ?? '';
  return cells;
}

/** The text of a line without quotes and trailing delimiters. */
export function plainText(line: Line, { split, quote }: LineFormat): string {
  if (split.text === undefined) return line.text;
  if (quote !== undefined && hasQuotedCell(line.text, split.text, quote))
    return withoutTrailingEmpty(line.cells).join(split.text);
  let end = line.text.length;
  // Trailing blanks stay unless a delimiter is among them: a separator such as " : " may end in one.
  for (let at = end; ; ) {
    while (at > 0 && line.text[at - 1] === ' ') at--;
    if (!line.text.endsWith(split.text, at)) return line.text.slice(0, end);
    at -= split.text.length;
    end = at;
  }
}

/** Quotes within a cell are part of it: `DATE "Jun 23, 2022"`, `"A":"B"`. */
function hasQuotedCell(text: string, delimiter: string, quote: string): boolean {
  for (let at = text.indexOf(quote); at >= 0; at = text.indexOf(quote, at + 1)) {
    const before = text.slice(0, at).trimEnd();
    const close = text.indexOf(quote, at + 1);
    const after = close < 0 ? '' : text.slice(close + 1).replace(/^ +/, '');
    const isClosed = after.trim() === '' || after.startsWith(delimiter) || text.startsWith(quote, close + 1);
    if (isClosed && (before === '' || before.endsWith(delimiter))) return true;
  }
  return false;
}

export const withoutTrailingEmpty = (cells: readonly string[]): readonly string[] =>
  cells.slice(0, cells.findLastIndex((cell) => cell !== '') + 1);
