import { posix } from 'node:path';
import type { Instrument } from '../config/load.js';
import { withDefaults } from '../config/vocabulary.js';
import { FileError, LabfeedError, type Problem } from '../errors.js';
import { measureFile } from '../learn/formats.js';
import { withMapping } from '../learn/measure.js';
import { checkTemplates, createMapper, type Mapped } from '../map/draft.js';
import type { ReadDate } from '../map/templates.js';
import type { DateHabits, DiskFile, FileRecord, Hashed, IdentifiedFile } from '../model.js';
import { mainFile, parse, readFile } from '../parse/parse.js';
import { openFile, type Source } from '../parse/source.js';
import { type DateReading, readDate } from '../parse/values/date.js';
import { contentOf } from '../watch/identify.js';

/** How one instrument's files become drafts: the same for the daemon, for `try` and for `check`. */
export interface Mapping {
  parse(file: IdentifiedFile, signal?: AbortSignal): Promise<FileRecord>;
  map(record: FileRecord, file: IdentifiedFile, nowMs: number): Mapped;
}

/** What is wrong with an instrument's templates, at its place in the configuration. */
export function checkMapping(instrument: Instrument): Problem[] {
  return checkTemplates(instrument).map(({ path, line, column, message, hint }) => {
    const within = line > 1 ? `line ${line} of the template` : `character ${column} of the template`;
    return {
      where: instrument.placeOf(path),
      message: `${path.join('.')}: ${message}, at ${within}`,
      ...(hint === undefined ? {} : { hint }),
      stops: { instrument: instrument.name },
    };
  });
}

export function createMapping(instrument: Instrument): Mapping {
  // Of several alternatives, each file has the dates of the one that read it. Mapping never waits, so one is enough.
  let dates: DateHabits = {};
  const map = createMapper({
    ...instrument,
    instrument: instrument.name,
    readDate: (text) => withFormats(readDate(text, dates)),
  });
  return {
    async parse(file, signal) {
      try {
        return await parseRun(sourceOf(file), instrument.parse, signal);
      } catch (error) {
        signal?.throwIfAborted();
        throw asFileError(error, file);
      }
    },
    map(record, file, nowMs) {
      dates = record.dates ?? {};
      try {
        return map(record, describeFile(file), nowMs);
      } catch (error) {
        throw asFileError(error, file);
      }
    },
  };
}

/** Reads a run by its mapping. An instrument without `parse` has each file measured before it is read. */
export async function parseRun(
  source: Source,
  alternatives: Instrument['parse'],
  signal?: AbortSignal,
): Promise<FileRecord> {
  signal?.throwIfAborted();
  if (alternatives) return parse(source, alternatives, signal);
  const options = withDefaults({});
  const file = openFile(mainFile(source, options), options, signal);
  const { mapping, refusal } = await measureFile(file);
  if (refusal) throw refusal;
  try {
    return await readFile(file, withDefaults(mapping));
  } catch (error) {
    throw error instanceof FileError ? withMapping(error, mapping) : error;
  }
}

/** The map stage wants to name the formats that settle an ambiguous date, and nothing more of them. */
const withFormats = (read: DateReading | undefined): ReturnType<ReadDate> =>
  read && 'ambiguous' in read ? { ambiguous: read.ambiguous.map(({ format }) => format) } : read;

/** A fault of ours that one file brings to light concerns that file: it is set aside, and the others go on. */
function asFileError(error: unknown, { path }: IdentifiedFile): Error {
  if (error instanceof LabfeedError) return error;
  return new FileError(`labfeed failed on this file: ${error instanceof Error ? error.message : error}`, {
    where: { file: path },
    hint: 'this is a fault in labfeed; please report it, with the file if you can',
    cause: error,
  });
}

/** What is read of a file, or of those that make the run. */
const sourceOf = ({ parts, ...file }: IdentifiedFile): Source => ({
  ...pick(file),
  content: parts ? new Uint8Array() : contentOf(file),
  parts: parts?.map((part) => ({ ...pick(part), relativePath: part.name, content: contentOf(part) })),
});

const pick = ({ path, size }: DiskFile) => ({ path, size, name: posix.basename(path) });

/** What templates and messages know of a file. */
function describeFile(file: IdentifiedFile) {
  const name = posix.basename(file.path);
  return {
    ...describe(file),
    name,
    stem: posix.parse(name).name,
    path: file.path,
    parts: file.parts?.map((part) => ({ ...describe(part), name: part.name })),
  };
}

const describe = ({ size, mtimeNs, sha256 }: DiskFile & Hashed) => ({
  size,
  modifiedMs: Number(mtimeNs / 1_000_000n),
  sha256,
});
