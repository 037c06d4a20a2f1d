import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { RunKind } from '../config/run.js';
import type { InstrumentConfig } from '../config/schema.js';
import { LabfeedError, systemCode } from '../errors.js';
import type { FoundFile, IdentifiedFile } from '../model.js';
import { identify, stampOf } from '../watch/identify.js';
import { createMatcher } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';

/** What of an instrument says which files make one run. */
export type SampleOf = Pick<InstrumentConfig, 'watch' | 'files' | 'ignore' | 'ready' | 'run'>;

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
    const [found] = runs.gather([
      isFile ? file : { ...file, path: `${path}/${ANY}`, location: `${path}/${ANY}` },
    ]);
    if (!found || (!isFile && found.path !== path)) continue;
    const now = await runs.look(found);
    if (typeof now === 'string') continue;
    if (now.lacks !== undefined) {
      throw new LabfeedError(`the run is not whole: there is no ${now.lacks}`, { where: { file: path } });
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
