import { posix } from 'node:path';
import picomatch from 'picomatch';
import type { ParseOptions } from '../config/vocabulary.js';
import type { FileError } from '../errors.js';
import type { DateHabits, FileRecord, Value } from '../model.js';
import { openLines } from './cells.js';
import { createUniqueNames } from './extract/columns.js';
import { compileLinePattern, HINT_LINES, lineNotFound } from './extract/context.js';
import { FORMATS, type FormatReader, formatOf } from './formats/formats.js';
import { createRefuse, type Line, MismatchError, type Refuse } from './lines.js';
import { type OpenFile, openFile, type Part, type Source } from './source.js';

/**
 * Reads a run by the first of its alternative mappings whose patterns are all found in it.
 * Throws a FileError if the run does not match them, or if a value would have to be guessed.
 */
export async function parse(
  source: Source,
  alternatives: readonly ParseOptions[],
  signal?: AbortSignal,
): Promise<FileRecord> {
  signal?.throwIfAborted();
  const refuse = createRefuse(source.path);
  const refusals: FileError[] = [];
  for (const [n, options] of alternatives.entries()) {
    try {
      return await readAll(source, options, { refuse, signal, isAlternative: n + 1 < alternatives.length });
    } catch (error) {
      if (alternatives.length === 1 || !(error instanceof MismatchError)) throw error;
      refusals.push(error);
    }
  }
  const reasons = refusals.map(({ message }, n) => `${n + 1}: ${message}`).join('; ');
  throw refuse(`none of the ${refusals.length} alternatives of the mapping fits: ${reasons}`);
}

/** The main file, and what `also` names beside it. */
async function readAll(
  source: Source,
  options: ParseOptions,
  {
    refuse,
    signal,
    isAlternative,
  }: { refuse: Refuse; signal: AbortSignal | undefined; isAlternative: boolean },
): Promise<FileRecord> {
  const main = mainFile(source, options);
  const record = await readFile(
    { ...openFile(main, options, signal), hasAlternatives: isAlternative },
    options,
  );
  const others: FileRecord[] = [];
  for (const [name, readings] of Object.entries(options.also ?? {})) {
    others.push(await parse(otherOf(source, main, name, refuse), readings, signal));
  }
  return join(record, others);
}

/** Reads one file by one mapping. */
export async function readFile(file: OpenFile, options: ParseOptions): Promise<FileRecord> {
  const format = FORMATS[await formatOf(file, options)];
  await requireWhen(file, options, format);
  const record = await format.read(file, options);
  return { ...record, dates: options.dates };
}

/** The file of a run that its mapping reads first; the run itself where it is one file. */
export function mainFile(run: Source, options: Pick<ParseOptions, 'main' | 'also' | 'format'>): Source {
  const { parts } = run;
  if (!parts) return run;
  const refuse = createRefuse(run.path);
  if (options.main !== undefined) return onlyOne(parts, options.main, '`main`', refuse);
  // Whoever joins files says which is the first.
  const first = parts.find(({ path }) => path === run.path);
  const others = Object.keys(options.also ?? {}).filter((name) => !name.includes('{stem}'));
  const left = parts.filter(({ relativePath: within }) => !others.some((name) => fits(name, within)));
  const only = first ?? (left.length === 1 ? left[0] : undefined);
  if (only) return only;
  // What is not read need not be one of them: the folder's own name is known.
  if (options.format === 'none') return run;
  throw refuse(
    `the run has ${parts.length} files, and the mapping does not say which one is read: ${namesOf(parts)}`,
    {
      hint: `name it: \`main: ${JSON.stringify(left[0]?.relativePath ?? '*.csv')}\``,
    },
  );
}

/** A further file of a run, as `also` names it. */
function otherOf({ parts = [] }: Source, main: Source, name: string, refuse: Refuse): Source {
  const { name: stem } = posix.parse(main.name);
  // As it stands: a stem may hold what a glob takes for a sign.
  const glob = name.replaceAll('{stem}', () => stem.replace(/[\\*?[\]{}()!+@|]/g, '\\$&'));
  return onlyOne(parts, glob, `\`also: { ${JSON.stringify(name)}: … }\``, refuse);
}

function onlyOne(parts: readonly Part[], glob: string, word: string, refuse: Refuse): Source {
  const found = parts.filter(({ relativePath: within }) => fits(glob, within));
  const [only] = found;
  if (!only) {
    throw refuse(
      `no file of the run is what ${word} names, ${JSON.stringify(glob)}; there are ${namesOf(parts)}`,
      {
        isMismatch: true,
      },
    );
  }
  if (found.length > 1) {
    throw refuse(
      `${found.length} files of the run are what ${word} names, ${JSON.stringify(glob)}: ${namesOf(found)}`,
      {
        hint: 'write it so that it fits one of them alone',
      },
    );
  }
  return only;
}

const fits = (glob: string, name: string): boolean => picomatch.isMatch(name, glob, { dot: true });

const MOST_NAMED = 5;

function namesOf(parts: readonly Part[]): string {
  const names = parts.slice(0, MOST_NAMED).map(({ relativePath: within }) => within);
  return parts.length > MOST_NAMED
    ? `${names.join(', ')} and ${parts.length - MOST_NAMED} more`
    : names.join(', ');
}

/** What several files of one run say, as one record. A name that comes again gets ` (2)`. */
function join(main: FileRecord, others: readonly FileRecord[]): FileRecord {
  if (others.length === 0) return main;
  const records = [main, ...others];
  const factName = createUniqueNames();
  const tableName = createUniqueNames();
  return {
    meta: new Map(
      records.flatMap(({ meta }) => [...meta].map(([name, value]) => [factName(name), value] as const)),
    ),
    tables: records.flatMap(({ tables }) =>
      tables.map((table) => ({ ...table, name: tableName(table.name) })),
    ),
    dates: { ...main.dates, known: datesIn(others, main.dates) },
  };
}

const ISO = /^\d{4}-\d{2}-\d{2}(?!\d)/;

/** What files that write dates in another way than the main one mean by theirs. */
function datesIn(others: readonly FileRecord[], mains: DateHabits | undefined): ReadonlyMap<string, string> {
  const differing = others.filter(({ dates }) => JSON.stringify(dates) !== JSON.stringify(mains));
  return new Map(differing.flatMap(({ meta }) => [...meta.values()].flatMap(asDate)));
}

const asDate = ({ value, text }: Value): [string, string][] =>
  typeof value === 'string' && ISO.test(value) && text !== value ? [[text.trim(), value]] : [];

/** Refuses a file that has no such line as `when` says: the mapping is not for it. */
async function requireWhen(file: OpenFile, options: ParseOptions, format: FormatReader): Promise<void> {
  const { when } = options;
  if (when === undefined) return;
  const isMeant = compileLinePattern(when);
  const lines = format.lines ? await format.lines(file, options) : (await openLines(file, options)).lines;
  const first: Line[] = [];
  for await (const batch of lines()) {
    if (batch.some(isMeant)) return;
    if (first.length < HINT_LINES) for (const line of batch) first.push(line);
    if (file.slice.isOver()) await file.slice.renew();
  }
  throw lineNotFound('when', when, { firstLines: first, refuse: file.refuse });
}
