import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Instrument } from '../config/load.js';
import type { InstrumentConfig, RunKind } from '../config/schema.js';
import { LabfeedError, systemCode } from '../errors.js';
import type { Mapped } from '../map/draft.js';
import { markComment, referenceOf } from '../markers.js';
import type { FileRecord, FoundFile, IdentifiedFile } from '../model.js';
import { identify, stampOf } from '../watch/identify.js';
import { createMatcher } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';
import { createMapping } from './mapping.js';

/** What of an instrument says which files make one run. */
type SampleOf = Pick<InstrumentConfig, 'watch' | 'files' | 'ignore' | 'ready' | 'run'>;

/** A file that a person names, taken as it is: who names it knows that nobody writes to it. */
export async function openSample(
  path: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<IdentifiedFile> {
  const { file, isFile } = await find(path);
  if (!isFile) throw new LabfeedError('expected a file', { where: { file: path } });
  return identify(file, { signal });
}

/** The run that a person names by its file, or by its folder or one of its files where it has several. */
export async function openRun(
  path: string,
  instrument: SampleOf,
  signal: AbortSignal = new AbortController().signal,
): Promise<IdentifiedFile> {
  const { run } = instrument;
  if (run === 'file') return openSample(path, signal);
  const { file, isFile } = await find(path);
  const inside = path.startsWith(`${instrument.watch}/`) ? [instrument.watch] : [];
  // A sample lies where it lies: what the globs say of folders is held against any of those above it.
  for (const root of [...inside, ...foldersAbove(path)]) {
    const matcher = createMatcher({ ...instrument, doneFile: instrument.ready.doneFile });
    const runs = createRuns({ root, run, matcher, signal, isClaimed: () => false });
    // Of a folder, whatever it holds stands for it.
    const [found] = runs.group([
      isFile ? file : { ...file, path: `${path}/${ANY}`, location: `${path}/${ANY}` },
    ]);
    if (!found || (!isFile && found.path !== path)) continue;
    const now = await runs.stat(found);
    if (typeof now === 'string') continue;
    if (now.missing !== undefined) {
      throw new LabfeedError(`the run is not whole: there is no ${now.missing}`, { where: { file: path } });
    }
    return runs.identify(now);
  }
  throw new LabfeedError(`expected ${describeRun(run)}`, {
    where: { file: path },
    hint: 'what belongs to a run is said by run, files and ignore of the instrument',
  });
}

const ANY = 'x';

async function find(path: string): Promise<{ file: FoundFile; isFile: boolean }> {
  const stats = await stat(path, { bigint: true }).catch((error: unknown) => {
    const message =
      systemCode(error) === 'ENOENT' ? 'there is no such file' : `cannot be read (${systemCode(error)})`;
    throw new LabfeedError(message, { where: { file: path }, cause: error });
  });
  return { file: { path, location: path, ...stampOf(stats) }, isFile: stats.isFile() };
}

/** The nearest first. */
function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === dirname(above) ? [] : [above, ...foldersAbove(above)];
}

const describeRun = (run: Exclude<RunKind, 'file'>): string =>
  'folder' in run
    ? `a folder with files of a run, or one of them (run: { folder: ${JSON.stringify(run.folder)} })`
    : `one of the files that are joined: ${run.join.join(', ')}`;

/** What would be filed for a file: tried, neither sent nor recorded. */
export interface Trial extends Mapped {
  readonly instrument: Instrument;
  readonly file: IdentifiedFile;
  readonly record: FileRecord;
}

/** Reads and maps a file as the daemon would. A FileError where it would be quarantined. */
export async function tryFile(
  instrument: Instrument,
  file: IdentifiedFile,
  nowMs: number,
  signal?: AbortSignal,
): Promise<Trial> {
  const mapping = createMapping(instrument);
  const record = await mapping.parse(file, signal);
  return { instrument, file, record, ...mapping.map(record, file, nowMs) };
}

/** The comments with their marks: exactly what would be sent. */
export function markedComments({ instrument, file, draft }: Trial): string[] {
  const copy = instrument.duplicates === 'ingest' ? file.path : '';
  const reference = referenceOf({ instrument: instrument.name, sha256: file.sha256, copy, refiling: 0 });
  return draft.comments.map((text, index) => markComment(text, reference, index + 1));
}

/** Where a date came from, for people. */
export const DATE_FROM: Readonly<Record<Mapped['dateFrom'], string>> = {
  template: 'from the template',
  fact: 'from the fact "date"',
  modified: 'the day the file was modified',
};
