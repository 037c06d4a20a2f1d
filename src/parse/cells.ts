import { CsvError } from 'csv-parse';
import { parse as parseCsv } from 'csv-parse/sync';
import { regexSource, type SplitWord } from '../config/grammar.js';
import type { Line } from './lines.js';

/** How lines are cut; `quote` is undefined where none is used. */
export interface Cut {
  readonly split: Split;
  readonly quote: string | undefined;
}

/** Lines that are cut together: enough that the CSV parser's start does not count, few enough to pause between. */
const BATCH_LINES = 500;
/** A quoted cell that goes on for longer than this is a quote that was never closed. */
const LONGEST_QUOTED_LINES = 100;
/** Where quotes are left open more often than this in one batch, they are ordinary characters throughout it. */
const MOST_STRAYS = 10;

/** Cuts lines into cells. Lines that a quoted cell holds together become one. `from` is the first line's number. */
export async function* cutLines(
  batches: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  cut: Cut,
  from: number,
): AsyncGenerator<Line[]> {
  let waiting: readonly string[] = [];
  let number = from;
  for await (const batch of batches) {
    const texts = waiting.length === 0 ? batch : [...waiting, ...batch];
    let at = 0;
    // What comes next may be needed to close a quoted cell, so the last lines wait for it.
    while (texts.length - at >= BATCH_LINES + LONGEST_QUOTED_LINES) {
      const end = batchEnd(texts, at, cut);
      yield cutBatch(texts.slice(at, end), cut, number + at);
      at = end;
    }
    number += at;
    waiting = texts.slice(at);
  }
  for (let at = 0; at < waiting.length; ) {
    const end = batchEnd(waiting, at, cut);
    yield cutBatch(waiting.slice(at, end), cut, number + at);
    at = end;
  }
}

/** One line by itself, as a table or finder with a delimiter of its own sees it. */
export const cutLine = (line: Line, cut: Cut): Line => ({
  ...line,
  cells: cutBatch(line.text.split('\n'), cut, line.number).flatMap(({ cells }) => cells),
});

/** A batch does not end within a quoted cell. */
function batchEnd(texts: readonly string[], start: number, { quote }: Cut): number {
  const end = Math.min(start + BATCH_LINES, texts.length);
  if (quote === undefined) return end;
  let open = false;
  for (let at = start; at < texts.length && at < end + LONGEST_QUOTED_LINES; at++) {
    if (at >= end && !open) return at;
    if (count(texts[at] ?? '', quote) % 2 === 1) open = !open;
  }
  return open ? end : Math.min(end + LONGEST_QUOTED_LINES, texts.length);
}

function count(text: string, sign: string): number {
  let times = 0;
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + sign.length)) times++;
  return times;
}

function cutBatch(texts: readonly string[], cut: Cut, from: number): Line[] {
  const { split, quote } = cut;
  const isQuoted =
    quote !== undefined && split.text !== undefined && texts.some((text) => text.includes(quote));
  if (!isQuoted) return texts.map((text, n) => ({ number: from + n, text, cells: split.cut(text) }));
  return cutQuoted(texts, split, split.text ?? '', quote, from);
}

function cutQuoted(
  texts: readonly string[],
  split: Split,
  delimiter: string,
  quote: string,
  from: number,
): Line[] {
  const lines: Line[] = [];
  let at = 0;
  for (let strays = 0; at < texts.length; strays++) {
    const records = strays > MOST_STRAYS ? [] : readCsv(texts.slice(at).join('\n'), delimiter, quote);
    for (const cells of records) {
      const span = 1 + cells.reduce((sum, cell) => sum + count(cell, '\n'), 0);
      if (span > LONGEST_QUOTED_LINES) break;
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
    lines.push({ number: from + at, text, cells: split.cut(text) });
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
  cut(text: string): string[];
  /** What stands before and after the first cut, trimmed; undefined where there is none. */
  cutOnce(text: string): readonly [before: string, after: string] | undefined;
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
export const NO_SPLIT: Split = { cut: (text) => [text.trim()], cutOnce: () => undefined };

function byText(delimiter: string): Split {
  return {
    text: delimiter,
    cut: (text) => trimmed(text.split(delimiter)),
    cutOnce(text) {
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
    cut: (text) => trimmed([0, ...places].map((place, n) => text.slice(place, places[n]))),
    cutOnce: (text) =>
      text.length > first ? [text.slice(0, first).trim(), text.slice(first).trim()] : undefined,
  };
}

/** `margin`: blanks at the ends of a line are no empty cells. */
function byRegex(regex: RegExp, margin: boolean): Split {
  // `split` puts what the groups of a pattern caught among the pieces: they are passed over.
  const step = new RegExp(`${regex.source}|`).exec('')?.length ?? 1;
  return {
    cut(text) {
      const pieces = (margin ? text.trim() : text).split(regex);
      return trimmed(step === 1 ? pieces : pieces.filter((_, n) => n % step === 0));
    },
    cutOnce(written) {
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
