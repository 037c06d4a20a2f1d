import type { ParseOptions } from '../../config/vocabulary.js';
import type { Refuse } from '../refuse.js';
import { createPointWriter } from './decimal-mark.js';
import { refuseLarge } from './whole.js';
import { readInThread, type Sheet, ThreadProblem } from './workbook/sheet-thread.js';
import { unzip, type ZipPart, ZipProblem } from './workbook/zip.js';

/** Only what holds cells: pictures and the like can be large, and say nothing. */
const UNWANTED =
  /^(?:docProps|customXml|xl\/(?:media|embeddings|printerSettings|drawings|charts|theme|activeX|ctrlProps))\/|vbaProject|calcChain/i;
const [LEAST_ROOM, MOST_ROOM] = [16 * 2 ** 20, 256 * 2 ** 20];

const ZIP = [0x50, 0x4b, 0x03, 0x04];
const COMPOUND = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

/**
 * Reads .xlsx and .xls workbooks: the stored value of every cell, as text.
 * Sheets without cells, such as charts, are there and empty, so that sheets count as in the spreadsheet.
 */
export async function readSheets(
  bytes: Uint8Array,
  options: ParseOptions,
  refuse: Refuse,
  signal?: AbortSignal,
): Promise<Sheet[]> {
  refuseLarge({ bytes, refuse }, options);
  try {
    const parts = await partsOf(bytes, refuse);
    const decimal = createPointWriter(options)('.');
    return await readInThread({ parts, decimal }, options.limits.maxMs, signal);
  } catch (error) {
    if (error instanceof ZipProblem || error instanceof ThreadProblem) {
      throw refuse(`the workbook cannot be read: ${error.message}`, {
        hint: error.hint ?? 'if a spreadsheet program can open it, save it anew as .xlsx',
      });
    }
    throw error;
  }
}

/** An .xlsx is a zip archive of parts; an .xls is one piece, and not packed. */
async function partsOf(bytes: Uint8Array, refuse: Refuse): Promise<ZipPart[]> {
  if (begins(bytes, COMPOUND)) return [{ name: '', content: bytes }];
  if (!begins(bytes, ZIP)) {
    throw refuse('the file is no workbook, neither .xlsx nor .xls', {
      hint: 'if it is text whatever its name says: `format: delimited`',
      isAbsent: true,
    });
  }
  const room = Math.min(MOST_ROOM, Math.max(LEAST_ROOM, 100 * bytes.byteLength));
  const parts = await unzip(bytes, (name) => !UNWANTED.test(name), room);
  if (!parts.some(({ name }) => /^xl\//i.test(name))) {
    throw refuse('the file is a zip archive, but no .xlsx workbook', {
      hint: 'unpack it, and let the files in it be watched',
    });
  }
  return parts;
}

const begins = (bytes: Uint8Array, start: readonly number[]): boolean =>
  start.every((byte, n) => bytes[n] === byte);
