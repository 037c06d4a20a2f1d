import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { inflateRaw } from 'node:zlib';
import type { ParseOptions } from '../../config/vocabulary.js';
import { systemCode } from '../../errors.js';
import type { FileRecord } from '../../model.js';
import { lineFormat } from '../cells.js';
import { readRecord } from '../extract/lines.js';
import { depthFromEnd, type Line, numberFromEnd, type Refuse } from '../lines.js';
import { loadWhole, type OpenFile, refuseTooLarge } from '../source.js';
import { createDecimalWriter } from '../values/value.js';

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
  const { source, hasAlternatives: isAlternative, refuse, slice: pace } = file;
  const sheets = await openSheets(file, options);
  return readRecord({
    lines: () => sheetLines(sheets, options),
    context: {
      ...{
        refuse,
        slice: pace,
        hasAlternatives: isAlternative,
        maxKeptCells: MOST_CELLS,
        sheets: sheets.map(({ name }) => name),
      },
      ...{ path: source.path, name: source.name, lineFormat: lineFormat('tab', 'none') },
      options: withDateCells(options),
    },
  });
}

/** The lines of all sheets, one sheet after the other. */
export const sheetLines = (sheets: readonly Sheet[], options: ParseOptions): AsyncIterable<readonly Line[]> =>
  numberFromEnd(replay(sheets), depthFromEnd(options));

const MOST_CELLS = 2_000_000;

async function* replay(sheets: readonly Sheet[]): AsyncGenerator<readonly Line[]> {
  for (const [n, sheet] of sheets.entries()) yield linesOf(sheet, n);
}

/** A cell that holds a date says so itself, whatever the texts in other cells look like. */
const withDateCells = ({ dates, ...options }: ParseOptions): ParseOptions => ({
  ...options,
  dates: dates.format === undefined ? dates : { ...dates, format: [...dates.format, 'iso'] },
});

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
  refuseTooLarge({ bytes, refuse }, options);
  try {
    const parts = await partsOf(bytes, refuse);
    const decimal = createDecimalWriter(options)('.');
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
      isMismatch: true,
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

/** A sheet as lines of cells, where the spreadsheet has them. Empty ones at the ends are left out. */
export interface Sheet {
  readonly name: string;
  readonly lines: readonly (readonly string[])[];
}

/** What the thread is to read: the parts of an .xlsx, or an .xls as a single part without a name. */
interface Workbook {
  readonly parts: readonly ZipPart[];
  readonly decimal: string;
}

/** Why a workbook could not be read: for people. */
class ThreadProblem extends Error {
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

const MEMORY_MB = 1024;

/** Reads a workbook in a thread of its own, which ends when it takes too long or too much. */
function readInThread(workbook: Workbook, maxMs: number, signal?: AbortSignal): Promise<Sheet[]> {
  signal?.throwIfAborted();
  const worker = new Worker(new URL('./sheet-worker.js', import.meta.url), {
    workerData: workbook,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    // The library complains about what it does not know.
    ...{ stdout: true, stderr: true },
  });
  return new Promise<Sheet[]>((resolve, reject) => {
    const tooLong = setTimeout(() => {
      const hint = 'if such files are to be read, allow more: `limits: { seconds: 300 }`';
      reject(new ThreadProblem(`it took longer than ${maxMs / 1000} s`, hint));
    }, maxMs);
    const onAbort = () => reject(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    worker.once('message', resolve);
    worker.once('error', (error) => reject(problemOf(error)));
    worker.once('exit', () => {
      clearTimeout(tooLong);
      signal?.removeEventListener('abort', onAbort);
      reject(new ThreadProblem('its reading ended early'));
    });
  }).finally(() => worker.terminate());
}

function problemOf(error: unknown): ThreadProblem {
  if (systemCode(error) === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new ThreadProblem(
      `it takes more than ${MEMORY_MB} MB of memory`,
      'split it, or export it as .csv',
    );
  }
  const message = error instanceof Error ? error.message : String(error);
  if (/password|encrypt/i.test(message))
    return new ThreadProblem('it is protected', 'save it without a password');
  return new ThreadProblem(message);
}

/** A part of a zip archive, unpacked. */
interface ZipPart {
  readonly name: string;
  readonly content: Uint8Array;
}

/** Why an archive is not unpacked: for people. */
class ZipProblem extends Error {
  readonly hint = undefined;
}

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly packed: number;
  readonly unpacked: number;
  readonly at: number;
}

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
/** The end of an archive, after which a comment of any length can stand. */
const END_BYTES = 22;
const LONGEST_COMMENT = 0xffff;
const MOST_PARTS = 10_000;

const inflate = promisify(inflateRaw);

/**
 * Unpacks those parts of an archive that are wanted, and never more than `mostBytes`:
 * what the archive says of itself is looked at first, and not believed afterwards.
 */
async function unzip(
  bytes: Uint8Array,
  isWanted: (name: string) => boolean,
  mostBytes: number,
): Promise<ZipPart[]> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries = entriesIn(buffer).filter(({ name }) => isWanted(name));
  const declared = entries.reduce((sum, { unpacked }) => sum + unpacked, 0);
  if (declared > mostBytes) throw tooLarge(mostBytes);
  const parts: ZipPart[] = [];
  let room = mostBytes;
  for (const entry of entries) {
    const content = await unpack(buffer, entry, room, mostBytes);
    room -= content.byteLength;
    parts.push({ name: entry.name, content });
  }
  return parts;
}

const tooLarge = (mostBytes: number) =>
  new ZipProblem(`unpacked it has more than ${Math.floor(mostBytes / 2 ** 20)} MB, more than are read`);

const damaged = () => new ZipProblem('it is damaged or cut short');

/** The list of contents, which stands at the end of an archive. */
function entriesIn(buffer: Buffer): Entry[] {
  const end = endOf(buffer);
  const count = buffer.readUInt16LE(end + 10);
  if (count > MOST_PARTS) throw new ZipProblem(`it has ${count} parts, more than are read`);
  const entries: Entry[] = [];
  let at = buffer.readUInt32LE(end + 16);
  for (let n = 0; n < count; n++) {
    if (at + 46 > buffer.length || buffer.readUInt32LE(at) !== ENTRY) throw damaged();
    const lengths = [28, 30, 32].map((place) => buffer.readUInt16LE(at + place));
    const [name = 0, extra = 0, comment = 0] = lengths;
    if (buffer.readUInt16LE(at + 8) % 2 === 1) throw new ZipProblem('it is encrypted');
    entries.push({
      name: buffer.toString('utf8', at + 46, at + 46 + name).replaceAll('\\', '/'),
      method: buffer.readUInt16LE(at + 10),
      packed: buffer.readUInt32LE(at + 20),
      unpacked: buffer.readUInt32LE(at + 24),
      at: buffer.readUInt32LE(at + 42),
    });
    at += 46 + name + extra + comment;
  }
  return entries;
}

function endOf(buffer: Buffer): number {
  const last = buffer.length - END_BYTES;
  for (let at = last; at >= Math.max(0, last - LONGEST_COMMENT); at--) {
    if (buffer.readUInt32LE(at) === END) return at;
  }
  throw damaged();
}

async function unpack(buffer: Buffer, entry: Entry, room: number, mostBytes: number): Promise<Uint8Array> {
  const { at, packed, method } = entry;
  if (at + 30 > buffer.length || buffer.readUInt32LE(at) !== LOCAL) throw damaged();
  const from = at + 30 + buffer.readUInt16LE(at + 26) + buffer.readUInt16LE(at + 28);
  if (from + packed > buffer.length) throw damaged();
  const content = buffer.subarray(from, from + packed);
  if (method === 0 && packed <= room) return content;
  if (method !== 8)
    throw method === 0 ? tooLarge(mostBytes) : new ZipProblem('it is packed in an unknown way');
  try {
    return await inflate(content, { maxOutputLength: Math.max(room, 1) });
  } catch (error) {
    throw systemCode(error) === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(mostBytes) : damaged();
  }
}
