import { posix } from 'node:path';
import picomatch from 'picomatch';
import type { ParseOptions } from '../config/vocabulary.js';
import type { FileError } from '../errors.js';
import type { DateHabits, FileRecord, Unread, Value } from '../model.js';
import { openLines } from './cells.js';
import { describeDetected } from './encoding.js';
import { createUniqueNames } from './extract/columns.js';
import { compileLinePattern, HINT_LINES, lineNotFound } from './extract/context.js';
import { FORMATS, type FormatReader, formatOf } from './formats/formats.js';
import { createRefuse, type Line, MismatchError, type Refuse } from './lines.js';
import { type OpenFile, openFile, type Part, type Source } from './source.js';

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
