import { parentPort, workerData } from 'node:worker_threads';
import { CFB, read, SSF } from '@e965/xlsx';

// @ts-check
/**
 * Reads a workbook in a thread of `sheet-process.ts`: the library cannot be interrupted, a damaged .xls can make it loop,
 * and its memory has no limit. A process can be killed, and the memory of a thread is limited.
 * Plain JavaScript, so that the thread can start from the sources as well as from the build.
 */

/** @import { CellObject, WorkBook } from '@e965/xlsx' */
/** @import { Unread } from '../../model.js' */

/** One long text can be in any number of cells. */
const MAX_CHARACTERS = 100_000_000;
/** Includes empty cells: a single cell in the last column makes a long line. */
const MAX_CELLS = 10_000_000;
const MAX_EMPTY_ROWS = 100_000;

const ERRORS = new Map([
  [0, '#NULL!'],
  [7, '#DIV/0!'],
  [15, '#VALUE!'],
  [23, '#REF!'],
  [29, '#NAME?'],
  [36, '#NUM!'],
  [42, '#N/A'],
  [43, '#GETTING_DATA'],
]);

/** Past the end of a part, the library reads a length that is not a number, and extends a text until no memory is left. */
Object.defineProperty(Buffer.prototype, 'read_shift', {
  /** @param {(this: Buffer, size: number, type: unknown) => unknown} read */
  set(read) {
    const value = function (/** @type {number} */ size, /** @type {unknown} */ type) {
      if (!(size >= 0)) throw new Error('it is damaged or truncated');
      return read.call(this, size, type);
    };
    Object.defineProperty(this, 'read_shift', { value, writable: true });
  },
});

/**
 * All sheets, with rows and cells at their places.
 * @param {WorkBook} book
 */
function linesOf(book) {
  const is1904 = book.Workbook?.WBProps?.date1904 === true;
  const sheets = book.SheetNames.map((name) => ({ name, rows: rowsOf(book, name) }));
  const cells = sheets.reduce((sum, { rows }) => rows.reduce((all, row) => all + row.length, sum), 0);
  if (cells > MAX_CELLS) throw new Error(`its sheets span more than ${MAX_CELLS} cells`);
  for (const { name, rows } of sheets) refuseSparse(name, rows);
  let characters = 0;
  return sheets.map(({ name, rows }) => {
    const lines = Array.from(rows, (row = []) => {
      const line = Array.from(row, (cell) => (cell ? textOf(cell, is1904) : ''));
      while (line.at(-1) === '') line.pop();
      for (const text of line) characters += text.length;
      if (characters > MAX_CHARACTERS) throw new Error(`it has more than ${MAX_CHARACTERS} characters`);
      return line;
    });
    while (lines.at(-1)?.length === 0) lines.pop();
    return { name, lines };
  });
}

/**
 * @param {WorkBook} book
 * @param {string} name
 * @returns {(CellObject | undefined)[][]}
 */
function rowsOf(book, name) {
  return book.Sheets[name]?.['!data'] ?? [];
}

/**
 * A single cell at the end of a sheet makes a million lines of nothing.
 * @param {string} name
 * @param {(CellObject | undefined)[][]} rows
 */
function refuseSparse(name, rows) {
  // Rows without cells are missing from the array, and `reduce` skips them.
  const filled = rows.reduce((sum) => sum + 1, 0);
  if (rows.length > MAX_EMPTY_ROWS + 10 * filled)
    throw new Error(`the sheet ${JSON.stringify(name)} has ${rows.length} rows, but only ${filled} of them are filled`);
}

/**
 * The stored value, not the displayed one.
 * @param {CellObject} cell
 * @param {boolean} is1904
 * @returns {string}
 */
function textOf({ t, v, z, f }, is1904) {
  if (v === undefined || v === null || t === 'z') return f ? `=${f}` : '';
  if (t === 'e') return ERRORS.get(Number(v)) ?? '#ERROR!';
  if (typeof v === 'number') {
    const format = typeof z === 'string' ? z : '';
    return (SSF.is_date(format) ? momentOf(v, format, is1904) : undefined) ?? `${v}`.replace('.', workerData.decimal);
  }
  return String(v).trim();
}

/**
 * A number that is displayed as a date, a time or a duration.
 * @param {number} serial
 * @param {string} format
 * @param {boolean} is1904
 */
function momentOf(serial, format, is1904) {
  const signs = format.replace(/"[^"]*"|\\.|_./g, '');
  const isElapsed = /\[[hms]+\]/i.test(signs);
  const hasTime = /[hs]/i.test(signs);
  const hasDay = /[dye]|m{3}/i.test(signs) || !hasTime;
  const wholeMs = Math.round(serial * 86_400_000);
  // Milliseconds are the last digits of such a number and not exact.
  const ms = Math.abs((wholeMs % 1000) - 500) > 498 ? Math.round(wholeMs / 1000) * 1000 : wholeMs;
  if (ms < 0) return undefined;
  const day = Math.floor(ms / 86_400_000) + (is1904 ? 1462 : 0);
  if (isElapsed || day === 0 || (!hasDay && ms < 86_400_000)) return clockOf(ms);
  // Spreadsheets have a 29 February 1900, so later days are one too high.
  const date = new Date(Date.UTC(1899, 11, day < 60 ? 31 : 30) + day * 86_400_000);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999) return undefined;
  const text = date.toISOString().slice(0, 10);
  return hasTime || ms % 86_400_000 !== 0 ? `${text}T${clockOf(ms % 86_400_000)}` : text;
}

/** @param {number} ms */
function clockOf(ms) {
  const pad = (/** @type {number} */ n) => String(n).padStart(2, '0');
  const seconds = Math.floor(ms / 1000);
  const fraction = ms % 1000 === 0 ? '' : `.${String(ms % 1000).padStart(3, '0')}`;
  return `${pad(Math.floor(seconds / 3600))}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}${fraction}`;
}

/**
 * The parts are unpacked within limits, so the library gets an archive without compression.
 * @param {readonly { name: string, content: Uint8Array }[]} parts
 * @returns {Uint8Array}
 */
function archiveOf(parts) {
  const [only] = parts;
  if (only?.name === '') return Buffer.from(only.content);
  const archive = CFB.utils.cfb_new();
  for (const { name, content } of parts) CFB.utils.cfb_add(archive, `/${name}`, content);
  return CFB.write(archive, { type: 'buffer', fileType: 'zip', compression: false });
}

/**
 * A formula without a value. The library skips it unless it keeps all cells without a value, of which some workbooks
 * have very many.
 * @param {readonly { name: string, content: Uint8Array }[]} parts
 */
function hasBareFormula(parts) {
  return parts.some(
    ({ name, content }) =>
      /worksheets\//i.test(name) &&
      BARE_FORMULA.test(Buffer.from(content.buffer, content.byteOffset, content.byteLength).latin1Slice()),
  );
}

const BARE_FORMULA = /(?:<\/(?:\w+:)?f>|<(?:\w+:)?f\s[^<>]*\/>)(?!\s*<(?:\w+:)?v\b[^<>]*>[^<])/;

/** By the names of the parts of an .xlsx. */
const EXTRA_PARTS = /** @type {const} */ ([
  ['picture', /^xl\/media\//i],
  ['chart', /^xl\/charts\/chart[^/]*\.xml$/i],
  ['embedded object', /^xl\/(?:embeddings|activeX)\/[^/]+$/i],
  ['diagram', /^xl\/diagrams\/data[^/]*$/i],
  ['macro project', /vbaProject\.bin$/i],
  ['list of custom properties', /^docProps\/custom\.xml$/i],
]);
const DRAWING = /^xl\/drawings\/drawing[^/]*\.xml$/i;

/** By the number that an object on a sheet of an .xls has for its kind. Notes are counted as such; arrows of filters are nothing. */
const OBJECTS = new Map([
  [5, 'chart'],
  [8, 'picture'],
  [0x19, ''],
  [0x14, ''],
]);

/**
 * What a workbook has beside the values of its cells.
 * @param {WorkBook} book
 * @param {readonly string[]} names
 * @returns {Unread[]}
 */
function extrasOf(book, names) {
  const counts = names.length > 0 ? countParts(names) : countObjects();
  const onSheets = book.SheetNames.flatMap((sheet) => {
    const notes = countCells(rowsOf(book, sheet), ({ c }) => c !== undefined && c.length > 0);
    const bare = countCells(rowsOf(book, sheet), ({ t, v, f }) => Boolean(f) && (v === undefined || t === 'z'));
    return [
      ...counted(notes, 'cell note'),
      ...counted(bare, 'formula without a value', 'formulas without a value'),
    ].map((what) => ({ sheet, what }));
  });
  const inBook = [...counts].flatMap(([thing, count]) => counted(count, thing)).map((what) => ({ what }));
  return [...inBook, ...onSheets].map((extra) => ({ kind: 'unread', ...extra }));
}

/**
 * @param {(CellObject | undefined)[][]} rows
 * @param {(cell: CellObject) => boolean} isCounted
 */
function countCells(rows, isCounted) {
  const inRow = (/** @type {number} */ sum, /** @type {CellObject | undefined} */ cell) =>
    cell && isCounted(cell) ? sum + 1 : sum;
  return rows.reduce((sum, row) => row.reduce(inRow, sum), 0);
}

/**
 * @param {number} count
 * @param {string} one
 */
const counted = (count, one, many = `${one}s`) => (count === 0 ? [] : [`${count} ${count === 1 ? one : many}`]);

/** @param {readonly string[]} names */
function countParts(names) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const [thing, pattern] of EXTRA_PARTS) counts.set(thing, names.filter((name) => pattern.test(name)).length);
  // Pictures and charts are on drawings, which can also have shapes with text.
  const hasOther = [...counts.values()].some((count) => count > 0);
  if (!hasOther) counts.set('drawing', names.filter((name) => DRAWING.test(name)).length);
  return counts;
}

/** In the records of an .xls: two bytes for its kind, two for its length. */
function countObjects() {
  /** @type {Map<string, number>} */
  const counts = new Map();
  const file = CFB.read(Buffer.from(parts[0]?.content ?? []), { type: 'buffer' });
  const content = Buffer.from((CFB.find(file, 'Workbook') ?? CFB.find(file, 'Book'))?.content ?? []);
  for (let at = 0; at + 10 <= content.length; at += 4 + content.readUInt16LE(at + 2)) {
    const isObject = content.readUInt16LE(at) === 0x5d && content.readUInt16LE(at + 4) === 0x15;
    const thing = isObject ? (OBJECTS.get(content.readUInt16LE(at + 8)) ?? 'drawing') : '';
    if (thing !== '') counts.set(thing, (counts.get(thing) ?? 0) + 1);
  }
  return counts;
}

/** @type {{ parts: { name: string, content: Uint8Array }[], names: string[] }} */
const { parts, names } = workerData;
const book = read(archiveOf(parts), {
  ...{ type: 'buffer', dense: true, cellNF: true, cellText: false, cellHTML: false, nodim: true },
  sheetStubs: hasBareFormula(parts),
});
parentPort?.postMessage({ sheets: linesOf(book), extras: extrasOf(book, names) });
