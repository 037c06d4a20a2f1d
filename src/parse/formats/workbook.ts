import type { ParseOptions } from '../../config/vocabulary.js';
import type { FileRecord } from '../../model.js';
import { depthOf } from '../grammar/line.js';
import { type Line, withEnds } from '../lines.js';
import { readRecord } from '../read/record.js';
import { cutAt } from './delimited.js';
import { loadWhole } from './load-whole.js';
import type { OpenFile } from './open-file.js';
import type { Sheet } from './workbook/sheet-thread.js';
import { readSheets } from './xlsx.js';

/** The sheets of a workbook. */
export async function openSheets(file: OpenFile, options: ParseOptions): Promise<readonly Sheet[]> {
  const { bytes } = await loadWhole(file, options);
  return readSheets(bytes, options, file.refuse, file.signal);
}

/** A sheet is lines of cells, like delimited text. */
export const linesOf = ({ lines }: Sheet, sheet: number): Line[] =>
  lines.map((cells, n) => ({ number: n + 1, text: cells.join('\t'), cells, sheet }));

/** Reads a workbook as the options say. */
export async function readWorkbook(file: OpenFile, options: ParseOptions): Promise<FileRecord> {
  const { source, isAlternative, refuse, pace } = file;
  const sheets = await openSheets(file, options);
  return readRecord({
    lines: () => sheetLines(sheets, options),
    context: {
      ...{ refuse, pace, isAlternative, maxKeptCells: MOST_CELLS, sheets: sheets.map(({ name }) => name) },
      ...{ path: source.path, name: source.name, cut: cutAt('tab', 'none') },
      options: withDateCells(options),
    },
  });
}

/** The lines of all sheets, one sheet after the other. */
export const sheetLines = (sheets: readonly Sheet[], options: ParseOptions): AsyncIterable<readonly Line[]> =>
  withEnds(replay(sheets), depthOf(options));

const MOST_CELLS = 2_000_000;

async function* replay(sheets: readonly Sheet[]): AsyncGenerator<readonly Line[]> {
  for (const [n, sheet] of sheets.entries()) yield linesOf(sheet, n);
}

/** A cell that holds a date says so itself, whatever the texts in other cells look like. */
const withDateCells = ({ dates, ...options }: ParseOptions): ParseOptions => ({
  ...options,
  dates: dates.format === undefined ? dates : { ...dates, format: [...dates.format, 'iso'] },
});
