import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Claim } from '../config/load.js';
import type { RunKind } from '../config/schema.js';
import { LabfeedError, systemCode } from '../errors.js';
import type { FoundFile, IdentifiedFile } from '../model.js';
import { identify, stampOf } from '../watch/identify.js';
import { createMatcher } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';

const NEVER = new AbortController().signal;

/** Opens a file that a person names. It is taken at once, without a quiet period. */
export async function openSample(path: string, signal?: AbortSignal): Promise<IdentifiedFile> {
  const { file, isFile } = await statSample(path);
  if (!isFile) throw new LabfeedError('expected a file', { where: { file: path } });
  return identify(file, { signal });
}

/** Opens a run that a person names by its file, or if it has several, by its folder or one of its files. */
export async function openRun(
  path: string,
  instrument: Omit<Claim, 'name'>,
  signal: AbortSignal = NEVER,
): Promise<IdentifiedFile> {
  const { run } = instrument;
  if (run === 'file') return openSample(path, signal);
  const { file, isFile } = await statSample(path);
  const matcher = createMatcher(instrument);
  // Outside the watched folder, the globs may apply relative to any parent folder of the sample.
  const watched = path.startsWith(`${instrument.watch}/`) ? [instrument.watch] : [];
  for (const root of [...watched, ...foldersAbove(path)]) {
    const runs = createRuns({ root, run, matcher, signal, isClaimed: () => false });
    // A folder is found through any file in it.
    const inFolder = `${path}/x`;
    const [found] = runs.group([isFile ? file : { ...file, path: inFolder, location: inFolder }]);
    if (!found || (!isFile && found.path !== path)) continue;
    const current = await runs.stat(found);
    if (typeof current === 'string') continue;
    if (current.missing !== undefined) {
      throw new LabfeedError(`the run is incomplete: ${current.missing} is missing`, {
        where: { file: path },
      });
    }
    return runs.identify(current);
  }
  throw new LabfeedError(`expected ${describeRun(run)}`, {
    where: { file: path },
    hint: "the instrument's keys run, files and ignore define what belongs to a run",
  });
}

async function statSample(path: string): Promise<{ file: FoundFile; isFile: boolean }> {
  const stats = await stat(path, { bigint: true }).catch((error: unknown) => {
    const code = systemCode(error);
    const message = code === 'ENOENT' ? 'no such file' : `cannot be read (${code})`;
    throw new LabfeedError(message, { where: { file: path }, cause: error });
  });
  return { file: { path, location: path, ...stampOf(stats) }, isFile: stats.isFile() };
}

/** Nearest first. */
function foldersAbove(path: string): string[] {
  const parent = dirname(path);
  return parent === dirname(parent) ? [] : [parent, ...foldersAbove(parent)];
}

const describeRun = (run: Exclude<RunKind, 'file'>): string =>
  'folder' in run
    ? `the folder of a run, or a file in it (run: { folder: ${JSON.stringify(run.folder)} })`
    : `one of the joined files: ${'join' in run ? run.join.join(', ') : ''}`;
