import { CsvError } from 'csv-parse';
import { parse as parseCsv } from 'csv-parse/sync';
import type { Split } from '../grammar/split.js';
import type { Line } from '../lines.js';

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
