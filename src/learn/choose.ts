import type { ParseMapping } from '../config/vocabulary.js';
import { explain, FileError } from '../errors.js';
import { changesBetween, type FileRecord, shapeOf } from '../model.js';

export interface LearnDeps<File> {
  /** How a file is to be read, by its looks. A FileError where that cannot be told. */
  measure(file: File): Promise<{ readonly mapping: ParseMapping; readonly doubts: readonly string[] }>;
  /** Reads a file as a mapping says. A FileError where it does not. */
  read(file: File, mapping: ParseMapping): Promise<FileRecord>;
}

/** The mapping that reads the most of the samples, and what is to be said about it. */
export interface Choice<File> {
  readonly mapping: ParseMapping;
  readonly doubts: readonly string[];
  readonly read: readonly { readonly file: File; readonly record: FileRecord }[];
  readonly unread: readonly { readonly file: File; readonly reason: string }[];
}

/** What one sample says by itself. */
interface Lesson<File> {
  readonly file: File;
  readonly mapping: ParseMapping;
  readonly doubts: readonly string[];
  readonly record: FileRecord;
}

/**
 * Measures each sample, tries each mapping on all of them, and takes the surest under which all read; if there is none,
 * the one that reads the most. Where no sample can be measured, the reasons are thrown.
 */
export async function choose<File>(files: readonly File[], deps: LearnDeps<File>): Promise<Choice<File>> {
  const lessons: Lesson<File>[] = [];
  const refusals: FileError[] = [];
  for (const file of files) {
    try {
      const measured = await deps.measure(file);
      lessons.push({ file, ...measured, record: await deps.read(file, measured.mapping) });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      refusals.push(error);
    }
  }
  let best: Choice<File> | undefined;
  for (const { mapping, doubts } of candidates(lessons)) {
    const choice = { mapping, doubts, ...(await tryOn(files, mapping, lessons, deps)) };
    if (choice.unread.length === 0) return choice;
    if (best === undefined || choice.unread.length < best.unread.length) best = choice;
  }
  if (best) return best;
  throw new FileError(refusals.map((refusal) => explain(refusal)).join('\n'));
}

/**
 * The mapping of each sample, the surest first: what one leaves open, another settles. Each also with the words for no
 * value that the other samples have.
 */
function candidates<File>(lessons: readonly Lesson<File>[]): Pick<Lesson<File>, 'mapping' | 'doubts'>[] {
  const wordsOf = ({ missing = [] }: ParseMapping) => [missing].flat();
  const words = [...new Set(lessons.flatMap(({ mapping }) => wordsOf(mapping)))];
  const surest = lessons.toSorted((a, b) => a.doubts.length - b.doubts.length);
  return surest.flatMap(({ mapping, doubts }) => [
    { mapping, doubts },
    ...(words.length > wordsOf(mapping).length ? [{ mapping: { ...mapping, missing: words }, doubts }] : []),
  ]);
}

async function tryOn<File>(
  files: readonly File[],
  mapping: ParseMapping,
  lessons: readonly Lesson<File>[],
  deps: LearnDeps<File>,
): Promise<Pick<Choice<File>, 'read' | 'unread'>> {
  const read: { file: File; record: FileRecord }[] = [];
  const unread: { file: File; reason: string }[] = [];
  for (const file of files) {
    try {
      const record = await deps.read(file, mapping);
      const own = lessons.find((lesson) => lesson.file === file)?.record;
      const lost = own && whatIsLost(own, record);
      if (lost === undefined) read.push({ file, record });
      else unread.push({ file, reason: lost });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      const { line } = error.where ?? {};
      unread.push({ file, reason: `${line === undefined ? '' : `line ${line}: `}${error.message}` });
    }
  }
  return { read, unread };
}

/** What a sample says under the mapping that was made for it, and not under another one. */
function whatIsLost(own: FileRecord, other: FileRecord): string | undefined {
  const [change] = changesBetween(shapeOf(own), shapeOf(other));
  if (change !== undefined) return `read so, ${change}`;
  const fewer = own.tables.find((table, n) => table.count !== other.tables[n]?.count);
  if (fewer) return `read so, ${JSON.stringify(fewer.name)} has another number of rows than it should`;
  const fact = [...own.meta.keys()].find((name) => !other.meta.has(name));
  if (fact !== undefined) return `read so, the fact ${JSON.stringify(fact)} is lost`;
  return countNumbers(other) < countNumbers(own) ? 'read so, some of its numbers are texts' : undefined;
}

const countNumbers = ({ tables }: FileRecord): number =>
  tables
    .flatMap(({ rows }) => rows.flat())
    .reduce((count, { value }) => count + (typeof value === 'number' ? 1 : 0), 0);
