import type { ChildProcess } from 'node:child_process';
import { promisify } from 'node:util';
import { crc32, inflateRaw } from 'node:zlib';
import type { ParseOptions } from '../../config/vocabulary.js';
import { LabfeedError, systemCode } from '../../errors.js';
import type { FileRecord } from '../../model.js';
import { startHelper } from '../../system/process.js';
import { lineFormat } from '../cells.js';
import { MAX_KEPT_CELLS } from '../extract/context.js';
import { readLines } from '../extract/read-lines.js';
import { depthFromEnd, type Line, maxMsFor, numberFromEnd, type Refuse, raiseSeconds } from '../lines.js';
import { loadWhole, type OpenFile, type Sheet, type Workbook } from '../source.js';
import { createDecimalWriter } from '../values/value.js';

export async function readWorkbook(file: OpenFile): Promise<FileRecord> {
  const { sheets, extras } = await openSheets(file);
  const source = {
    lines: () => sheetLines(sheets, file.options),
    lineFormat: lineFormat('tab', 'none'),
    sheets: sheets.map(({ name }) => name),
    maxKeptCells: MAX_KEPT_CELLS,
  };
  const record = await readLines({ ...file, options: withDateCells(file.options) }, source);
  return { ...record, unread: [...record.unread, ...extras] };
}

export const sheetLines = (sheets: readonly Sheet[], options: ParseOptions): AsyncIterable<readonly Line[]> =>
  numberFromEnd(replay(sheets), depthFromEnd(options));

async function* replay(sheets: readonly Sheet[]): AsyncGenerator<readonly Line[]> {
  for (const [n, sheet] of sheets.entries()) yield linesOf(sheet, n);
}

export const linesOf = ({ lines }: Sheet, sheet: number): Line[] =>
  lines.map((cells, n) => ({ number: n + 1, text: cells.join('\t'), cells, sheet }));

/** Date cells are dates whatever `dates.format` says about texts. */
const withDateCells = ({ dates, ...options }: ParseOptions): ParseOptions => ({
  ...options,
  dates: dates.format === undefined ? dates : { ...dates, format: [...dates.format, 'iso'] },
});

/** Parts without cells, which can be large. */
const UNUSED =
  /^(?:docProps|customXml|xl\/(?:media|embeddings|printerSettings|drawings|charts|theme|activeX|ctrlProps))\/|vbaProject|calcChain/i;
/** An .xlsx may take 100 times its size unpacked, within these limits. */
const [MIN_UNPACKED_BYTES, MAX_UNPACKED_BYTES] = [16 * 2 ** 20, 256 * 2 ** 20];

/** The stored value of every cell of an .xlsx or .xls, as text. Charts are empty sheets, so that sheet numbers match. */
export async function openSheets(file: OpenFile): Promise<Workbook> {
  const { options, refuse, signal, known } = file;
  // Numbers get the decimal mark of the mapping.
  const decimal = createDecimalWriter(options)('.');
  if (known.workbook?.decimal === decimal) return known.workbook;
  const bytes = await loadWhole(file);
  try {
    const { parts, names } = await partsOf(bytes, refuse);
    const workbook = await readInProcess({ parts, names, decimal }, maxMsFor(options, bytes.byteLength), signal);
    known.workbook = { ...workbook, decimal };
    return workbook;
  } catch (error) {
    if (!(error instanceof WorkbookProblem)) throw error;
    throw refuse(`the workbook cannot be read: ${error.message}`, {
      hint: error.hint ?? 'if a spreadsheet program can open it, save it again as .xlsx',
    });
  }
}

class WorkbookProblem extends Error {
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

/** The parts of an .xlsx, unpacked, and the names of all of them; an .xls is a single part without a name. */
async function partsOf(bytes: Uint8Array, refuse: Refuse) {
  const signature = Buffer.from(bytes.subarray(0, 8)).toString('hex');
  if (signature === 'd0cf11e0a1b11ae1') {
    refuseLoops(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    return { parts: [{ name: '', content: bytes }], names: [] };
  }
  if (!signature.startsWith('504b0304')) {
    throw refuse('the file is not an .xlsx or .xls workbook', {
      hint: 'if it is text: `format: delimited`',
      isMismatch: true,
    });
  }
  const maxBytes = Math.min(MAX_UNPACKED_BYTES, Math.max(MIN_UNPACKED_BYTES, 100 * bytes.byteLength));
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries = entriesIn(buffer);
  const wanted = entries.filter(({ name }) => !UNUSED.test(name));
  const parts = await unzip(buffer, wanted, maxBytes);
  if (!parts.some(({ name }) => /^xl\//i.test(name))) {
    throw refuse('the file is a zip archive, but not an .xlsx workbook', { hint: 'unpack it into the watched folder' });
  }
  return { parts, names: entries.map(({ name }) => name) };
}

/**
 * An .xls is a small file system: each sector names the next of its stream, and each directory entry its neighbours. The
 * library follows them without end if they form a loop, and takes memory until the whole process ends.
 */
function refuseLoops(file: Buffer): void {
  if (file.length < 512) throw damaged();
  const size = file.readUInt16LE(30) === 12 ? 4096 : 512;
  const sectorAt = (sector: number) => file.subarray((sector + 1) * size, (sector + 2) * size);
  const numbersIn = (part: Buffer) => Array.from({ length: part.length >> 2 }, (_, n) => part.readInt32LE(4 * n));
  const tables = numbersIn(file.subarray(76, 512));
  // A long file has further sectors that list the sectors of its table. The last number in each is the next of them.
  const further = new Set<number>();
  for (let sector = file.readInt32LE(68); sector >= 0; ) {
    if (further.has(sector)) throw damaged();
    further.add(sector);
    const listed = numbersIn(sectorAt(sector));
    sector = listed.pop() ?? -1;
    tables.push(...listed);
  }
  const next = tables.flatMap((sector) => (sector < 0 ? [] : numbersIn(sectorAt(sector))));
  refuseLoop(next.map((sector) => [sector]));
  const directory: Buffer[] = [];
  for (let sector = file.readInt32LE(48); sector >= 0; sector = next[sector] ?? -1) directory.push(sectorAt(sector));
  const entries = Buffer.concat(directory);
  const neighbours = Array.from({ length: entries.length >> 7 }, (_, n) =>
    // The library stops at the root, the first entry.
    [68, 72, 76].map((place) => entries.readInt32LE(128 * n + place) || -1),
  );
  refuseLoop(neighbours);
}

/** `next`: the indexes to which each index leads; others are none. */
function refuseLoop(next: readonly (readonly number[])[]): void {
  const incoming = new Map<number, number>();
  for (const all of next) for (const one of all) incoming.set(one, (incoming.get(one) ?? 0) + 1);
  // Leaves out, again and again, what nothing leads to. A loop is never left out.
  const left = next.flatMap((_, index) => (incoming.has(index) ? [] : [index]));
  for (let at = 0; at < left.length; at++) {
    for (const one of next[left[at] ?? -1] ?? []) {
      const others = (incoming.get(one) ?? 0) - 1;
      incoming.set(one, others);
      if (others === 0 && one >= 0 && one < next.length) left.push(one);
    }
  }
  if (left.length < next.length) throw damaged();
}

type Answer = Workbook | { readonly problem: string };

/** An idle process keeps 40 MB. */
const IDLE_MS = 10_000;
/** Processes that wait for the next workbook, with the timers that end them. */
const idle = new Map<ChildProcess, NodeJS.Timeout>();

function startProcess(): ChildProcess {
  const started = startHelper(new URL('./sheet-process.js', import.meta.url));
  started.on('error', () => undefined).on('exit', () => idle.delete(started));
  // The file is not to blame, so it is read again later.
  if (started.pid === undefined)
    throw new LabfeedError('cannot start a process that reads workbooks', {
      hint: 'the machine may be short of memory, or have too many processes or open files',
    });
  return started;
}

function takeIdle(): ChildProcess | undefined {
  const [[waiting, timer] = []] = idle;
  if (!waiting) return undefined;
  clearTimeout(timer);
  idle.delete(waiting);
  waiting.channel?.ref();
  return waiting;
}

function putBack(child: ChildProcess): void {
  child.channel?.unref();
  const end = () => {
    idle.delete(child);
    child.kill('SIGKILL');
  };
  idle.set(child, setTimeout(end, IDLE_MS).unref());
}

/** Reads a workbook in another process, which is killed if it takes too long. */
async function readInProcess(workbook: object, maxMs: number, signal?: AbortSignal): Promise<Workbook> {
  signal?.throwIfAborted();
  const waiting = takeIdle();
  const first = waiting && (await ask(waiting, workbook, maxMs, signal));
  // An idle process may have ended before it got the workbook.
  const answer = !first || 'end' in first ? await ask(startProcess(), workbook, maxMs, signal) : first;
  if ('end' in answer) throw problemOf(answer.end);
  if ('problem' in answer) throw problemOf(answer.problem);
  return answer;
}

/** `end`: how the process ended, if it did. */
async function ask(
  child: ChildProcess,
  workbook: object,
  maxMs: number,
  signal?: AbortSignal,
): Promise<Answer | { readonly end: string }> {
  const over = new AbortController();
  const answer = await new Promise<Answer | { end: string }>((resolve, reject) => {
    const tooLong = setTimeout(() => {
      reject(new WorkbookProblem(`reading it took longer than ${maxMs / 1000} s`, raiseSeconds(maxMs)));
    }, maxMs);
    const onExit = (_code: unknown, killedBy: string | null) => resolve({ end: killedBy ?? '' });
    child.once('message', resolve).once('exit', onExit);
    signal?.addEventListener('abort', () => reject(signal.reason), { signal: over.signal });
    over.signal.addEventListener('abort', () => {
      clearTimeout(tooLong);
      child.off('message', resolve).off('exit', onExit);
    });
    child.send(workbook, (error) => error && resolve({ end: '' }));
  })
    .catch((error: unknown) => {
      child.kill('SIGKILL');
      throw error;
    })
    .finally(() => over.abort());
  if (!('end' in answer)) putBack(child);
  return answer;
}

/** How a thread or a process ends when memory runs out. The last is how Linux ends one. */
const OUT_OF_MEMORY = ['ERR_WORKER_OUT_OF_MEMORY', 'SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGKILL'];

/** `reason`: of the library, or how its process ended. */
function problemOf(reason: string): WorkbookProblem {
  if (OUT_OF_MEMORY.includes(reason))
    return new WorkbookProblem('it takes too much memory', 'split it, or export it as .csv');
  if (reason === '' || /^SIG[A-Z]+$/.test(reason)) return new WorkbookProblem('reading it stopped unexpectedly');
  if (/password|encrypt/i.test(reason)) return new WorkbookProblem('it is protected', 'save it without a password');
  if (/are filled$/.test(reason)) return new WorkbookProblem(reason, 'delete the cells far below the data');
  return new WorkbookProblem(reason);
}

interface ZipPart {
  readonly name: string;
  readonly content: Uint8Array;
}

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly checksum: number;
  readonly packed: number;
  readonly unpacked: number;
  readonly at: number;
}

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
/** The end record, after which a comment can follow. */
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 0xffff;
const MAX_PARTS = 10_000;

const inflate = promisify(inflateRaw);

/** Unpacks parts of an archive, at most `maxBytes`. The declared sizes are checked first, but not trusted. */
async function unzip(buffer: Buffer, entries: readonly Entry[], maxBytes: number): Promise<ZipPart[]> {
  const declared = entries.reduce((sum, { unpacked }) => sum + unpacked, 0);
  if (declared > maxBytes) throw tooLarge(maxBytes);
  const parts: ZipPart[] = [];
  let room = maxBytes;
  for (const entry of entries) {
    const content = await unpack(buffer, entry, room, maxBytes);
    // A changed digit of a number that is not compressed would be read as another number.
    if (crc32(content) !== entry.checksum) throw wrongChecksum(entry);
    room -= content.byteLength;
    parts.push({ name: entry.name, content });
  }
  return parts;
}

const tooLarge = (maxBytes: number) =>
  new WorkbookProblem(`it is larger than ${Math.floor(maxBytes / 2 ** 20)} MB when unpacked`);

const damaged = () => new WorkbookProblem('it is damaged or truncated');

const wrongChecksum = ({ name }: Entry) =>
  new WorkbookProblem(
    `its part ${name} is damaged: the checksum in the file is that of other content`,
    'copy it from the instrument again; if it was damaged there, open it in a spreadsheet program and save it again',
  );

/** The directory at the end of an archive. */
function entriesIn(buffer: Buffer): Entry[] {
  const end = endOf(buffer);
  const count = buffer.readUInt16LE(end + 10);
  if (count > MAX_PARTS) throw new WorkbookProblem(`it has ${count} parts, more than ${MAX_PARTS}`);
  const entries: Entry[] = [];
  let at = buffer.readUInt32LE(end + 16);
  for (let n = 0; n < count; n++) {
    if (at + 46 > buffer.length || buffer.readUInt32LE(at) !== ENTRY) throw damaged();
    const lengths = [28, 30, 32].map((place) => buffer.readUInt16LE(at + place));
    const [name = 0, extra = 0, comment = 0] = lengths;
    if (buffer.readUInt16LE(at + 8) % 2 === 1) throw new WorkbookProblem('it is encrypted');
    entries.push({
      name: buffer.toString('utf8', at + 46, at + 46 + name).replaceAll('\\', '/'),
      method: buffer.readUInt16LE(at + 10),
      checksum: buffer.readUInt32LE(at + 16),
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
  for (let at = last; at >= Math.max(0, last - MAX_COMMENT_BYTES); at--) {
    if (buffer.readUInt32LE(at) === END) return at;
  }
  throw damaged();
}

async function unpack(buffer: Buffer, entry: Entry, room: number, maxBytes: number): Promise<Uint8Array> {
  const { at, packed, method } = entry;
  if (at + 30 > buffer.length || buffer.readUInt32LE(at) !== LOCAL) throw damaged();
  const from = at + 30 + buffer.readUInt16LE(at + 26) + buffer.readUInt16LE(at + 28);
  if (from + packed > buffer.length) throw damaged();
  const content = buffer.subarray(from, from + packed);
  if (method === 0 && packed <= room) return content;
  if (method !== 8)
    throw method === 0 ? tooLarge(maxBytes) : new WorkbookProblem('it uses an unknown compression method');
  try {
    return await inflate(content, { maxOutputLength: Math.max(room, 1) });
  } catch (error) {
    throw systemCode(error) === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(maxBytes) : damaged();
  }
}
