import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { Claim, LoadedConfig } from './config/load.js';
import { journalOf } from './config/locations.js';
import { explain, explainProblem } from './errors.js';
import type { Job } from './journal/job.js';
import type { JournalReader } from './journal/reader.js';
import type { Live } from './live.js';
import { checkMapping } from './mapping.js';
import { nextStep } from './next-step.js';
import { doneFileOf } from './watch/done-file.js';
import { identify } from './watch/identify.js';
import { createMatcher } from './watch/match.js';
import { reasonOf } from './watch/reason.js';
import { DEFAULT_QUIET_MS } from './watch/settle.js';
import { isAbsent, stampOf } from './watch/stamp.js';
import type { Evidence, FileEvidence, InstrumentEvidence, KnownRun, Rule } from './why/evidence.js';

export interface Witnesses {
  readonly config: LoadedConfig;
  /** Undefined where there is no journal yet. */
  readonly reader: JournalReader | undefined;
  readonly running: boolean;
  /** What the running daemon tells. */
  readonly live: Live | undefined;
  readonly now: number;
}

/** More than this is not read only to tell whether it is a copy. */
const MOST_HASHED_BYTES = 256 * 1024 * 1024;

/** So many entries of one path, or of paths that hold it, are looked through. */
const MOST_KNOWN = 1000;

/** Asks everybody who may know something about a file. Its path is absolute, as the instruments' folders name it. */
export async function gather(path: string, witnesses: Witnesses): Promise<Evidence> {
  const { config, reader, running, live, now } = witnesses;
  const file = await lookAt(path);
  const overview = reader?.overview();
  const known = reader?.files(path, MOST_KNOWN).filter((one) => one.path === path) ?? [];
  const askedOf = (name: string): number =>
    overview?.instruments.find((instrument) => instrument.name === name)?.asked ?? 0;
  return {
    path,
    now,
    file,
    instruments: config.claims.map((claim) =>
      instrumentEvidence(claim, path, askedOf(claim.name), witnesses),
    ),
    known,
    runs: runsOf(
      known.flatMap(({ run }) => (run === undefined ? [] : [run])),
      file,
      reader,
    ),
    journal: reader !== undefined,
    isJournal: path.startsWith(journalOf(config)),
    daemon: { running, gate: running ? live?.notebook.gate : undefined },
    servers: overview?.servers ?? [],
  };
}

function runsOf(ids: readonly number[], file: FileEvidence, reader: JournalReader | undefined): KnownRun[] {
  if (reader === undefined) return [];
  const byPath = [...new Set(ids)].flatMap((id) => reader.job(id) ?? []);
  const sha256 = file.state === 'present' ? file.sha256 : undefined;
  const byContent = sha256 === undefined ? [] : reader.sameContent(sha256);
  const runs = new Map([...byPath, ...byContent].map((job) => [job.id, asKnown(job)]));
  return [...runs.values()].sort((a, b) => b.id - a.id);
}

function asKnown(job: Job): KnownRun {
  const { id, instrument, state, path, sha256, server, experiment, reason } = job;
  const { dueAt, addedAt, updatedAt } = job;
  const about = { id, instrument, state, path, sha256, server, experiment, reason };
  return { ...about, dueAt, addedAt, updatedAt, nextStep: nextStep(job) };
}

async function lookAt(path: string): Promise<FileEvidence> {
  try {
    const stats = statSync(path, { bigint: true });
    if (stats.isDirectory()) return { state: 'folder' };
    if (!stats.isFile()) return { state: 'unreadable', reason: 'it is neither a file nor a folder' };
    const found = { path, location: path, ...stampOf(stats) };
    const about = {
      state: 'present',
      size: found.size,
      modifiedMs: Number(found.mtimeNs / 1_000_000n),
    } as const;
    if (found.size > MOST_HASHED_BYTES)
      return { ...about, sha256: undefined, unread: 'it is too large to be read for a question' };
    try {
      const { sha256 } = await identify(found, { signal: new AbortController().signal, keepBytes: 0 });
      return { ...about, sha256, unread: undefined };
    } catch (error) {
      return { ...about, sha256: undefined, unread: explain(error) };
    }
  } catch (error) {
    return isAbsent(error) ? { state: 'absent' } : { state: 'unreadable', reason: reasonOf(error) };
  }
}

function instrumentEvidence(
  claim: Claim,
  path: string,
  asked: number,
  { config, live }: Witnesses,
): InstrumentEvidence {
  const { name, watch, files, ready } = claim;
  const inside = insideOf(watch, path);
  const told = live?.instruments.find((instrument) => instrument.name === name);
  const instrument = config.instruments.find((one) => one.name === name);
  const existing = instrument?.existing;
  return {
    name,
    watch,
    files,
    rule:
      inside === undefined ? { kind: 'outside', distance: distance(watch, path) } : ruleFor(claim, inside),
    folder: folderState(watch),
    link: inside === undefined ? undefined : linkOnTheWay(watch, inside),
    mistakes: mistakesOf(name, config, live),
    quietMs: ready.quiet ?? (ready.doneFile === undefined ? DEFAULT_QUIET_MS : 0),
    doneFile: doneFileFor(path, ready.doneFile),
    changed: instrument?.changed,
    existing: typeof existing === 'object' ? `since ${existing.since}` : existing,
    duplicates: instrument?.duplicates,
    asked,
    waiting: told?.waiting.first.find((one) => one.path === path),
  };
}

/** The path as seen from a folder, with `/` between names; undefined where it is not in it. */
export function insideOf(folder: string, path: string): string | undefined {
  const inside = relative(folder, path);
  if (inside === '' || inside.startsWith('..') || inside === path) return undefined;
  return sep === '/' ? inside : inside.replaceAll(sep, '/');
}

function ruleFor({ files, ignore, ready, run }: Claim, inside: string): Rule {
  const verdict = createMatcher({ files, ignore, run, doneFile: ready.doneFile }).verdict(inside);
  if (verdict.taken) return { kind: 'taken', pattern: verdict.pattern };
  if (verdict.rule !== 'files') return { kind: verdict.rule, pattern: verdict.pattern };
  const otherCase = files.find((glob) => {
    const folded = createMatcher({ files: [glob.toLowerCase()], ignore: [] });
    return folded.verdict(inside.toLowerCase()).taken;
  });
  return { kind: 'files', otherCase };
}

/** How many steps lead from one place to the other: who mistook the folder mistook the last names of it. */
const distance = (folder: string, path: string): number =>
  relative(folder, dirname(path)).split(sep).filter(Boolean).length;

function folderState(watch: string): InstrumentEvidence['folder'] {
  try {
    return statSync(watch).isDirectory()
      ? { state: 'present' }
      : { state: 'unreadable', reason: 'it is a file and not a folder' };
  } catch (error) {
    return { state: isAbsent(error) ? 'missing' : 'unreadable', reason: reasonOf(error) };
  }
}

function linkOnTheWay(watch: string, inside: string): string | undefined {
  const names = inside.split('/').slice(0, -1);
  return names
    .map((_, index) => join(watch, ...names.slice(0, index + 1)))
    .find((folder) => lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true);
}

function mistakesOf(name: string, config: LoadedConfig, live: Live | undefined): string[] {
  const instrument = config.instruments.find((one) => one.name === name);
  const own = [...config.problems, ...(instrument ? checkMapping(instrument) : [])].filter(
    ({ stops }) => typeof stops === 'object' && stops.instrument === name,
  );
  const told = live?.problems.filter((problem) => problem.instrument === name) ?? [];
  return [...new Set([...own.map(explainProblem), ...told.map(({ at, message }) => `${at}: ${message}`)])];
}

function doneFileFor(path: string, pattern: string | undefined): InstrumentEvidence['doneFile'] {
  if (pattern === undefined) return undefined;
  const name = String(doneFileOf(path, pattern));
  return { name, isThere: existsSync(name) };
}

/** The same file under the name by which an instrument's folder leads to it: people may come by a link. */
export function asWatched(path: string, claims: readonly Claim[]): string {
  if (claims.some(({ watch }) => insideOf(watch, path) !== undefined)) return path;
  const real = realOf(path);
  for (const { watch } of claims) {
    const inside = insideOf(realOf(watch), real);
    if (inside !== undefined) return join(watch, inside);
  }
  return path;
}

/** Of a file that is gone, the folder that it was in still leads somewhere. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : resolve(realOf(above), relative(above, path));
  }
}
