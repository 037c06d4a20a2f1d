import { posix } from 'node:path';
import iconv from 'iconv-lite';
import picomatch from 'picomatch';
import { SaxesParser } from 'saxes';
import type { Format, ParseOptions } from '../config/vocabulary.js';
import type { FileError } from '../errors.js';
import type { DateHabits, FileRecord, Unread, Value } from '../model.js';
import { lineFormat, openLines } from './cells.js';
import { describeDetected } from './encoding.js';
import { createUniqueNames } from './extract/columns.js';
import { compileLinePattern, HINT_LINES, lineNotFound, MAX_KEPT_CELLS } from './extract/context.js';
import { readLines } from './extract/read-lines.js';
import { readLabelled, readTree } from './extract/read-tree.js';
import { looksLikeJson, readJson, readXml } from './formats/documents.js';
import { readJcamp } from './formats/jcamp.js';
import { delimitersIn, readRecords } from './formats/records.js';
import { openSheets, readWorkbook, sheetLines } from './formats/workbook.js';
import { createRefuse, type Line, MismatchError, type Refuse } from './lines.js';
import { binaryKind, NOT_READ, type OpenFile, openFile, type Part, readHead, type Source } from './source.js';

/**
 * Reads a run with the first of its alternative mappings whose patterns are all found in it.
 * Throws a FileError if the run does not match them, or if a value would have to be guessed.
 */
export async function parse(
  source: Source,
  alternatives: readonly ParseOptions[],
  signal?: AbortSignal,
): Promise<FileRecord> {
  signal?.throwIfAborted();
  const mismatches: FileError[] = [];
  for (const [n, options] of alternatives.entries()) {
    try {
      return await readRun(source, options, n + 1 < alternatives.length, signal);
    } catch (error) {
      if (alternatives.length === 1 || !(error instanceof MismatchError)) throw error;
      mismatches.push(error);
    }
  }
  const reasons = mismatches.map(({ message }, n) => `${n + 1}: ${message}`).join('; ');
  throw createRefuse(source.path)(
    `none of the ${mismatches.length} alternatives of the mapping matches the file: ${reasons}`,
  );
}

/** Reads the main file of a run, and the further files that `also` names. */
async function readRun(
  run: Source,
  options: ParseOptions,
  hasAlternatives: boolean,
  signal: AbortSignal | undefined,
): Promise<FileRecord> {
  const main = mainFile(run, options);
  const record = inFile(await readFile({ hasAlternatives, ...openFile(main, options, signal) }), run, main);
  const others: FileRecord[] = [];
  const also: Source[] = [];
  for (const [name, alternatives] of Object.entries(options.also ?? {})) {
    const further = furtherFile(run, main, name);
    also.push(further);
    others.push(inFile(await parse(further, alternatives, signal), run, further));
  }
  return withOtherFiles(mergeRecords(record, others), run, [main, ...also]);
}

/** The files of a run that nothing was read from. */
export function withOtherFiles(record: FileRecord, { parts = [] }: Source, read: readonly Source[]): FileRecord {
  const others = parts.filter((part) => !read.some(({ path }) => path === part.path));
  const left = others.map(({ relativePath: file }): Unread => ({ kind: 'left out', file }));
  return left.length === 0 ? record : { ...record, unread: [...record.unread, ...left] };
}

/** Names the file of what was not read, if the run has several. */
const inFile = (record: FileRecord, { parts }: Source, { path }: Source): FileRecord => {
  const file = parts?.find((part) => part.path === path)?.relativePath;
  return file === undefined ? record : { ...record, unread: record.unread.map((each) => ({ file, ...each })) };
};

/** Reads one file with one mapping. */
export async function readFile(file: OpenFile): Promise<FileRecord> {
  const format = FORMATS[await formatOf(file)];
  await requireWhen(file, format);
  const record = { dates: file.options.dates, ...(await format.read(file)) };
  return file.options.encoding === 'auto' ? withEncoding(record, file) : record;
}

/** Says which encoding was detected, unless it is a usual one. */
export function withEncoding(record: FileRecord, { known }: Pick<OpenFile, 'known'>): FileRecord {
  const detected = describeDetected(known.encoding);
  return detected === undefined ? record : { ...record, assumed: [...(record.assumed ?? []), detected] };
}

/** Refuses a file without a line that matches `when`. */
async function requireWhen(file: OpenFile, format: FormatReader): Promise<void> {
  const { when } = file.options;
  if (when === undefined) return;
  const matches = compileLinePattern(when);
  const lines = format.lines ? await format.lines(file) : (await openLines(file)).lines;
  const firstLines: Line[] = [];
  for await (const batch of lines()) {
    if (batch.some(matches)) return;
    if (firstLines.length < HINT_LINES) for (const line of batch) firstLines.push(line);
    if (file.slice.isOver()) await file.slice.renew();
  }
  throw lineNotFound('when', when, { firstLines, refuse: file.refuse });
}

/** The file of a run that its mapping reads first. */
export function mainFile(run: Source, options: Pick<ParseOptions, 'main' | 'also' | 'format'>): Source {
  const { parts } = run;
  if (!parts) return run;
  const refuse = createRefuse(run.path);
  if (options.main !== undefined) return onlyMatch(parts, options.main, '`main`', refuse);
  // The path of joined files is that of the first.
  const first = parts.find(({ path }) => path === run.path);
  const others = Object.keys(options.also ?? {}).filter((name) => !name.includes('{stem}'));
  const left = parts.filter(({ relativePath }) => !others.some((name) => isMatch(relativePath, name)));
  const only = first ?? (left.length === 1 ? left[0] : undefined);
  if (only) return only;
  // If no content is read, the folder's name and path are enough.
  if (options.format === 'none') return run;
  throw refuse(`the run has ${parts.length} files, and the mapping does not select one: ${listOf(parts)}`, {
    hint: `select it: \`main: ${JSON.stringify(left[0]?.relativePath ?? '*.csv')}\``,
  });
}

/** A further file of a run, by its name in `also`. */
function furtherFile(run: Source, main: Source, name: string): Source {
  const { name: stem } = posix.parse(main.name);
  const glob = name.replaceAll('{stem}', () => stem.replace(/[\\*?[\]{}()!+@|]/g, '\\$&'));
  const key = `\`also: { ${JSON.stringify(name)}: … }\``;
  return onlyMatch(run.parts ?? [], glob, key, createRefuse(run.path));
}

function onlyMatch(parts: readonly Part[], glob: string, key: string, refuse: Refuse): Source {
  const found = parts.filter(({ relativePath }) => isMatch(relativePath, glob));
  const [only] = found;
  const pattern = JSON.stringify(glob);
  if (!only) {
    throw refuse(`no file of the run matches ${key}, ${pattern}; its files are ${listOf(parts)}`, { isMismatch: true });
  }
  if (found.length > 1) {
    throw refuse(`${found.length} files of the run match ${key}, ${pattern}: ${listOf(found)}`, {
      hint: 'make the pattern match only one of them',
    });
  }
  return only;
}

const isMatch = (name: string, glob: string): boolean => picomatch.isMatch(name, glob, { dot: true });

const MAX_LISTED = 5;

function listOf(parts: readonly Part[]): string {
  const names = parts.slice(0, MAX_LISTED).map(({ relativePath }) => relativePath);
  const more = parts.length > MAX_LISTED ? ` and ${parts.length - MAX_LISTED} more` : '';
  return names.join(', ') + more;
}

/** Adds ` (2)` to names that occur in several files. */
function mergeRecords(main: FileRecord, others: readonly FileRecord[]): FileRecord {
  if (others.length === 0) return main;
  const records = [main, ...others];
  const factName = createUniqueNames();
  const tableName = createUniqueNames();
  return {
    meta: new Map(records.flatMap(({ meta }) => [...meta].map(([name, value]) => [factName(name), value] as const))),
    tables: records.flatMap(({ tables }) => tables.map((table) => ({ ...table, name: tableName(table.name) }))),
    unread: records.flatMap(({ unread }) => unread),
    ...(records.some(({ assumed }) => assumed) && {
      assumed: [...new Set(records.flatMap(({ assumed = [] }) => assumed))],
    }),
    tableLines: records.reduce((sum, { tableLines = 0 }) => sum + tableLines, 0),
    dates: { ...main.dates, known: datesIn(others, main.dates) },
  };
}

const ISO = /^\d{4}-\d{2}-\d{2}(?!\d)/;

/** The dates, by their texts, in files that write dates differently from the main file. */
function datesIn(others: readonly FileRecord[], main: DateHabits | undefined): ReadonlyMap<string, string> {
  const differing = others.filter(({ dates }) => JSON.stringify(dates) !== JSON.stringify(main));
  const asDate = ({ value, text }: Value): [string, string][] =>
    typeof value === 'string' && ISO.test(value) && text !== value ? [[text.trim(), value]] : [];
  return new Map(differing.flatMap(({ meta }) => [...meta.values()].flatMap(asDate)));
}

interface FormatReader {
  read(file: OpenFile): Promise<FileRecord>;
  /** The lines that `when` searches, if they are not the lines of the file's text. */
  lines?(file: OpenFile): Promise<() => AsyncIterable<readonly Line[]>>;
}

/** Plain text is delimited text that is split only where the mapping says so. */
const FORMATS: Readonly<Record<Format, FormatReader>> = {
  delimited: { read: readDelimited },
  text: { read: readDelimited },
  json: { read: async (file) => readTree(file, await readJson(file)) },
  xml: { read: async (file) => readTree(file, await readXml(file)) },
  jcamp: { read: async (file) => readLabelled(file, await readJcamp(file)) },
  records: {
    async read(file) {
      const { tree, lines } = await readRecords(file);
      return readTree(file, tree, lines);
    },
  },
  xlsx: {
    read: readWorkbook,
    async lines(file) {
      const { sheets } = await openSheets(file);
      return () => sheetLines(sheets, file.options);
    },
  },
  none: { read: readNothing },
};

/** A streamed file is larger than one in memory, so fewer of its cells are kept. */
const MAX_STREAM_CELLS = 40_000;

async function readDelimited(file: OpenFile): Promise<FileRecord> {
  const maxKeptCells = file.source.content instanceof Uint8Array ? MAX_KEPT_CELLS : MAX_STREAM_CELLS;
  return readLines(file, { sheets: [], maxKeptCells, ...(await openLines(file)) });
}

/** `format: none`: only the file name and path are read. */
async function readNothing(file: OpenFile): Promise<FileRecord> {
  const source = { lines: () => [], lineFormat: lineFormat(undefined, 'none'), sheets: [], maxKeptCells: 0 };
  const record = await readLines({ ...file, options: { ...file.options, format: 'none', tables: {} } }, source);
  return { ...record, unread: [{ kind: 'left out' }] };
}

/** Enough bytes to recognise the format of a file. */
const HEAD_BYTES = 64 * 1024;

/** The format in the mapping; with `auto`, the one that is recognised. */
export async function formatOf(file: OpenFile): Promise<Format> {
  const { format, limits } = file.options;
  if (format !== 'auto') return format;
  if (file.known.format) return file.known.format;
  const head = await readHead(file, HEAD_BYTES, limits.maxBytes ?? Number.POSITIVE_INFINITY);
  const recognised = recognise(head, file.source.name);
  if ('format' in recognised) {
    file.known.format = recognised.format;
    return recognised.format;
  }
  throw file.refuse(`the file is not text: it is ${recognised.unreadable}`, {
    hint: NOT_READ,
    isMismatch: true,
  });
}

/** The format of a file, or what kind of unreadable file it is. */
type Recognised = { readonly format: Format } | { readonly unreadable: string };

/** Recognises a file by its content, then by its name: an .xls can be text, and a .csv a workbook. */
export function recognise(head: Uint8Array, name: string): Recognised {
  const bytes = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, HEAD_BYTES));
  const raw = bytes.toString('latin1');
  if (raw.startsWith('PK\x03\x04')) return archive(raw);
  if (raw.startsWith('\xd0\xcf\x11\xe0')) return { format: 'xlsx' };
  const unreadable = binaryKind(bytes);
  if (unreadable !== undefined) return { unreadable };
  const isUtf16 = /^(?:\xff\xfe|\xfe\xff)/.test(raw);
  const text = iconv.decode(bytes, isUtf16 ? 'utf-16' : 'utf-8');
  // Some programs write a table as a web page and name it .xls.
  if (/^\s*<(?:!doctype\s+)?html\b/i.test(text)) return { unreadable: 'a web page: save it as .xlsx' };
  return { format: textFormat(text, name) };
}

/** The names of an archive's parts are not compressed. */
function archive(raw: string): Recognised {
  if (/\bxl\//.test(raw)) return { format: 'xlsx' };
  if (/\bword\//.test(raw)) return { unreadable: 'a Word document (.docx)' };
  if (/opendocument\.spreadsheet/.test(raw)) return { unreadable: 'an .ods workbook: save it as .xlsx' };
  // The head of a large workbook may contain only its first part.
  return /\[Content_Types\]\.xml|_rels\//.test(raw) ? { format: 'xlsx' } : { unreadable: 'a zip archive' };
}

function textFormat(text: string, name: string): Format {
  const start = text.trimStart();
  if (start.startsWith('<')) return /\.xml$/i.test(name) || looksLikeXml(start) ? 'xml' : 'delimited';
  if (start.startsWith('{') || start.startsWith('[')) {
    return /\.json$/i.test(name) || looksLikeJson(text) ? 'json' : 'delimited';
  }
  if (/^(?:\$\$[^\n]*\n\s*)*##\s*(?:TITLE|JCAMP)/i.test(start) && JCAMP_LABEL.test(start)) return 'jcamp';
  return isRecords(text) ? 'records' : 'delimited';
}

/** Other programs also write a title that starts with ##. Only JCAMP-DX has a version, data and an end. */
const JCAMP_LABEL = /^\s*##\s*(?:JCAMP|END\s*=|DATA[ _-]?(?:TYPE|TABLE)|XY ?DATA|XY ?POINTS|PEAK ?TABLE|NTUPLES)/im;

/** Whether the text starts with an element and is well-formed up to its end. */
function looksLikeXml(start: string): boolean {
  if (start.startsWith('<?xml')) return true;
  // `<Identifier>: 12` is a name and a value.
  if (/^<[^<>]*>\s*[:=]/.test(start)) return false;
  // Names on lines of their own, each above its value.
  if (/^<[^<>]*>\s*[^<>\s][^<>]*</.test(start) && !/<\/|\/>/.test(start)) return false;
  const parser = new SaxesParser();
  let isWellFormed = /^<[\p{L}_!?]/u.test(start);
  parser.on('error', () => {
    isWellFormed = false;
  });
  parser.write(start);
  return isWellFormed;
}

/** The header of an ASTM or HL7 message, possibly inside a transmission frame. */
function isRecords(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: frames start with control characters.
  const start = text.replace(/^[\s\x02\x05\x0b]+/, '');
  const [line = ''] = start.slice(0, 200).split(/[\r\n]/);
  return delimitersIn(line) !== undefined || (/^[0-7]H/.test(line) && delimitersIn(line.slice(1)) !== undefined);
}
