import { posix } from 'node:path';
import type { Instrument } from '../config/load.js';
import { NO_MAPPING, withDefaults } from '../config/vocabulary.js';
import { bugWith, FileError, LabfeedError } from '../errors.js';
import { measureFile } from '../learn/formats.js';
import { type Measured, noRunDate, withMapping } from '../learn/measure.js';
import { createMapper, type Mapped, type NewPart } from '../map/draft.js';
import { findUnused } from '../map/omissions.js';
import { choosePlot, type PlotChoice } from '../map/plot.js';
import type { SourceFile } from '../map/scope.js';
import type { ReadDate } from '../map/templates.js';
import { markComment, referenceOf } from '../markers.js';
import type { DateHabits, DiskFile, FileRecord, Hashed, IdentifiedFile } from '../model.js';
import { mainFile, parse, withEncoding, withOtherFiles } from '../parse/parse.js';
import { openFile, type Source } from '../parse/source.js';
import { readDate } from '../parse/values/date.js';
import { createGuard, type Guard } from '../watch/guard.js';
import { contentOf } from '../watch/identify.js';

/** How one instrument's files become drafts. The daemon, `try`, `check`, `learn` and the page's preview all use this. */
export interface Mapping {
  /** Refuses files of the watched folder that must not be read. */
  readonly guard: Guard | undefined;
  /** Throws a FileError if the run must be quarantined. */
  parse(file: IdentifiedFile, signal?: AbortSignal): Promise<FileRecord>;
  /** Throws a FileError if the run must be quarantined. */
  map(record: FileRecord, file: IdentifiedFile, nowMs: number, part?: NewLines): Mapped;
  /** What to plot. */
  choosePlot(record: FileRecord): PlotChoice;
}

/** `lines`: which of the file, in words. */
type NewLines = Omit<NewPart, 'file'> & { readonly lines: string };

/** What a mapping needs of an instrument: plain data, which can be sent to a thread. */
export type MappingOptions = Pick<Instrument, 'name' | 'parse' | 'experiment' | 'comments' | 'access'> &
  Partial<Pick<Instrument, 'attach' | 'unread'>>;

/** Throws a TemplateError if `checkMapping` finds a problem. `journal`: its id, for the origin line. */
export function createMapping(instrument: MappingOptions, journal?: string): Mapping {
  // Each alternative has its own date formats. `map` is synchronous, so one variable serves all files.
  let dates: DateHabits = {};
  const complete = rememberLast(withDefaults);
  const map = createMapper({
    ...instrument,
    instrument: instrument.name,
    journal,
    readDate: (text) => readDateWith(dates, text),
  });
  return {
    guard: instrument.access && createGuard(instrument.access),
    async parse(file, signal) {
      try {
        return await parseRun(toSource(file), instrument.parse, signal, complete);
      } catch (error) {
        signal?.throwIfAborted();
        throw toFileError(error, file);
      }
    },
    map(record, file, nowMs, part) {
      dates = record.dates ?? {};
      try {
        // The lines of a file that grows are taken as they come; the entry says which were not used.
        if (!part) refuseUnused(record, file, instrument);
        const described = describeFile(file);
        if (!part) return map(record, described, nowMs);
        const { lines, ...rest } = part;
        return map(record, described, nowMs, { file: { ...described, name: `${described.name}, ${lines}` }, ...rest });
      } catch (error) {
        throw toFileError(error, file);
      }
    },
    choosePlot: (record) => choosePlot(record, instrument.experiment.plot),
  };
}

/** Nobody has checked how the file is read if there is no mapping, or if the mapping is as `learn` drafted it. */
function refuseUnused(record: FileRecord, { path }: IdentifiedFile, { parse, unread }: MappingOptions): void {
  const unused = (unread ?? (parse ? 'warn' : 'quarantine')) === 'quarantine' ? findUnused(record) : undefined;
  if (!unused) return;
  throw new FileError(unused.message, {
    where: { file: path, ...(unused.line !== undefined && { line: unused.line }) },
    hint: `${parse ? 'add a table for them to the mapping' : 'add a mapping that reads them (`labfeed learn` drafts one)'}; to file such runs without these lines: \`unread: warn\``,
  });
}

/** The draft of a file, made for display: nothing is sent or recorded. */
export interface Trial extends Mapped {
  readonly instrument: TrialInstrument;
  readonly file: IdentifiedFile;
  readonly record: FileRecord;
}

type TrialInstrument = MappingOptions & Pick<Instrument, 'duplicates'>;

/** Throws a FileError if the daemon would quarantine the file. */
export async function tryFile(
  instrument: TrialInstrument,
  file: IdentifiedFile,
  nowMs: number,
  signal?: AbortSignal,
): Promise<Trial> {
  const mapping = createMapping(instrument);
  const record = await mapping.parse(file, signal);
  return { instrument, file, record, ...mapping.map(record, file, nowMs) };
}

/** A trial of a file that the daemon would quarantine, although it can be read. */
export interface QuarantinedTrial extends Trial {
  readonly quarantine: FileError;
  /** Its date could not be found out. That of the draft is only the day the file was modified. */
  readonly isUndated: boolean;
}

/**
 * What was read of a file that would be quarantined because lines were not used or its date is unclear. Throws a
 * FileError if the file cannot be read.
 */
export async function tryQuarantined(
  instrument: TrialInstrument,
  file: IdentifiedFile,
  nowMs: number,
): Promise<Trial | QuarantinedTrial> {
  const record = await createMapping(instrument).parse(file);
  const { experiment } = instrument;
  const undated = { ...experiment, date: '{{ file.modified }}' };
  const attempts = [
    { changed: {}, isUndated: false },
    { changed: { unread: 'warn' as const }, isUndated: false },
    { changed: { unread: 'warn' as const, experiment: undated }, isUndated: true },
  ];
  let quarantine: FileError | undefined;
  for (const { changed, isUndated } of attempts) {
    try {
      const mapped = createMapping({ ...instrument, ...changed }).map(record, file, nowMs);
      const trial = { instrument, file, record, ...mapped };
      return quarantine ? { ...trial, quarantine, isUndated } : trial;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      quarantine ??= error;
    }
  }
  throw quarantine ?? new Error('no attempt was made');
}

/** The comments exactly as they would be sent, with their marker lines. */
export function markedComments({ instrument, file, draft }: Trial): string[] {
  const copy = instrument.duplicates === 'ingest' ? file.path : '';
  const reference = referenceOf({ instrument: instrument.name, sha256: file.sha256, copy, refiling: 0 });
  return draft.comments.map((text, index) => markComment(text, reference, index + 1));
}

export const DATE_FROM: Readonly<Record<Mapped['dateFrom'], string>> = {
  template: 'from the template',
  fact: 'from the fact "date"',
  modified: 'the day the file was modified',
};

/** Without `parse`, the file is measured and read with the resulting mapping. */
export async function parseRun(
  source: Source,
  alternatives: Instrument['parse'],
  signal?: AbortSignal,
  complete = withDefaults,
): Promise<FileRecord> {
  signal?.throwIfAborted();
  if (alternatives) return parse(source, alternatives, signal);
  const options = NO_MAPPING;
  const main = mainFile(source, options);
  const file = openFile(main, options, signal);
  const { mapping, firstRow, undated, objections, ambiguity, read } = await measureFile(file, complete);
  if (ambiguity) throw ambiguity;
  try {
    const dated = withoutDate(withFirstDate(await read(mapping), firstRow), undated);
    const record = withEncoding(withObjections(dated, objections), file);
    return allUnread(withOtherFiles(record, source, [main]));
  } catch (error) {
    throw error instanceof FileError ? withMapping(error, mapping) : error;
  }
}

/** The date of the first reading is the date of the run, if the file has no other. */
function withFirstDate(record: FileRecord, from: Measured['firstRow']): FileRecord {
  const { columns = [], rows: [row] = [] } = record.tables.find(({ name }) => name === from?.table) ?? {};
  const at = [from?.joined, from?.column].map((wanted) => columns.findIndex(({ name }) => name === wanted));
  const value = row?.[at.find((n) => n >= 0) ?? -1];
  return value === undefined || record.meta.has('date')
    ? record
    : { ...record, meta: new Map([...record.meta, ['date', value]]) };
}

/** A date of an export or a calibration must not become that of the run. */
function withoutDate(record: FileRecord, undated: Measured['undated']): FileRecord {
  if (undated === undefined) return record;
  const assumed = [...(record.assumed ?? []), `${noRunDate(undated)}, so the date is the day the file was modified`];
  return { ...record, isUndated: true, assumed };
}

/** Without a mapping, nobody has seen the doubts of `learn`. */
const withObjections = (record: FileRecord, objections: Measured['objections'] = []): FileRecord =>
  objections.length === 0 ? record : { ...record, assumed: [...(record.assumed ?? []), ...objections] };

/** Without a mapping, nobody chose to leave anything out. */
const allUnread = (record: FileRecord): FileRecord => ({
  ...record,
  unread: record.unread.map((each) => (each.kind === 'left out' ? { ...each, kind: 'unread' } : each)),
});

/** Most files of an instrument yield the same mapping, and checking it costs as much as reading a small file. */
function rememberLast(read: typeof withDefaults): typeof withDefaults {
  let last: { json: string; options: ReturnType<typeof withDefaults> } | undefined;
  return (mapping) => {
    const json = JSON.stringify(mapping);
    if (last?.json !== json) last = { json, options: read(mapping) };
    return last.options;
  };
}

/** For an ambiguous date, the map stage needs only the formats that would settle it. */
function readDateWith(dates: DateHabits, text: string): ReturnType<ReadDate> {
  const read = readDate(text, dates);
  return read && 'ambiguous' in read ? { ambiguous: read.ambiguous.map(({ format }) => format) } : read;
}

function toFileError(error: unknown, { path }: IdentifiedFile): Error {
  // Where only a part of the file is known, nobody knows its path.
  if (error instanceof FileError && !error.where)
    return new FileError(error.message, { where: { file: path }, hint: error.hint });
  return error instanceof LabfeedError ? error : bugWith(path, error);
}

const toSource = ({ parts, ...file }: IdentifiedFile): Source => ({
  content: parts ? new Uint8Array() : contentOf(file),
  ...nameAndSize(file),
  parts: parts?.map((part) => ({ ...nameAndSize(part), relativePath: part.name, content: contentOf(part) })),
});

const nameAndSize = ({ path, size, mtimeNs }: DiskFile) => ({
  path,
  size,
  name: posix.basename(path),
  modifiedMs: Number(mtimeNs / 1_000_000n),
});

function describeFile(file: IdentifiedFile): SourceFile {
  const name = posix.basename(file.path);
  return {
    name,
    ...describeContent(file),
    stem: posix.parse(name).name,
    path: file.path,
    parts: file.parts?.map((part) => ({ ...describeContent(part), name: part.name })),
  };
}

const describeContent = ({ size, mtimeNs, sha256 }: DiskFile & Hashed) => ({
  size,
  modifiedMs: Number(mtimeNs / 1_000_000n),
  sha256,
});
