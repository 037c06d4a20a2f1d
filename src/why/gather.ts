import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { nextStep } from '../commands/jobs.js';
import { type Claim, journalOf, type LoadedConfig } from '../config/load.js';
import { explain, explainProblem } from '../errors.js';
import type { Job, JournalReader } from '../journal/reader.js';
import type { Live } from '../live.js';
import { checkMapping } from '../mapping/mapping.js';
import { identify, isAbsent, reasonOf, stampOf } from '../watch/identify.js';
import { createGrouping, createMatcher, doneFileOf } from '../watch/match.js';
import { list } from '../watch/scan.js';
import { DEFAULT_QUIET_MS } from '../watch/settle.js';
import {
  type Evidence,
  type FileEvidence,
  type InstrumentEvidence,
  type KnownRun,
  type Rule,
  runPathOf,
} from './evidence.js';

interface Witnesses {
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
  const overview = await reader?.overview();
  const askedOf = (name: string): number =>
    overview?.instruments.find((instrument) => instrument.name === name)?.asked ?? 0;
  const mayBeFolder = file.state !== 'present';
  const instruments = config.claims.map((claim) =>
    instrumentEvidence(claim, path, { config, live, asked: askedOf(claim.name), mayBeFolder }),
  );
  const paths = new Set([path, runPathOf({ path, instruments })]);
  const entries = await Promise.all([...paths].map((one) => reader?.files(one, MOST_KNOWN) ?? []));
  const known = entries.flat().filter((entry) => paths.has(entry.path));
  return {
    path,
    now,
    file,
    instruments,
    known,
    runs: await runsOf(
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

async function runsOf(
  ids: readonly number[],
  file: FileEvidence,
  reader: JournalReader | undefined,
): Promise<KnownRun[]> {
  if (reader === undefined) return [];
  const found = await Promise.all([...new Set(ids)].map((id) => reader.job(id)));
  const byPath = found.flatMap((job) => job ?? []);
  const sha256 = file.state === 'present' ? file.sha256 : undefined;
  const byContent = sha256 === undefined ? [] : await reader.sameContent(sha256);
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

interface About {
  readonly config: LoadedConfig;
  readonly live: Live | undefined;
  /** How many old files of the instrument wait for an answer. */
  readonly asked: number;
  /** Whether it may be a folder. */
  readonly mayBeFolder: boolean;
}

/** How a file stands to one instrument: its folder, its globs, and what it waits for. */
function instrumentEvidence(
  claim: Claim,
  path: string,
  { config, live, asked, mayBeFolder }: About,
): InstrumentEvidence {
  const { name, watch, files, ready } = claim;
  const inside = insideOf(watch, path);
  const partOf = inside === undefined ? undefined : runOfSeveral(claim, inside, mayBeFolder);
  const told = live?.instruments.find((instrument) => instrument.name === name);
  const instrument = config.instruments.find((one) => one.name === name);
  const existing = instrument?.existing;
  return {
    name,
    watch,
    files,
    rule: inside === undefined ? outside(watch, path) : ruleFor(claim, inside, partOf === path),
    partOf,
    folder: folderState(watch),
    link: inside === undefined ? undefined : linkOnTheWay(watch, inside),
    mistakes: mistakesOf(name, config, live),
    quietMs: ready.quiet ?? (ready.doneFile === undefined ? DEFAULT_QUIET_MS : 0),
    doneFile: doneFileFor(partOf ?? path, ready.doneFile),
    changed: instrument?.changed,
    existing: typeof existing === 'object' ? `since ${existing.since}` : existing,
    duplicates: instrument?.duplicates,
    asked,
    waiting: told?.waiting.first.find((one) => one.path === (partOf ?? path)),
  };
}

/** Where several files are one run: the path of that run. A folder may be the run itself. */
function runOfSeveral({ run, watch }: Claim, inside: string, mayBeFolder: boolean): string | undefined {
  const grouping = createGrouping(run);
  const member = grouping?.memberOf(inside) ?? (mayBeFolder ? grouping?.memberOf(`${inside}/any`) : undefined);
  return member && `${watch}/${member.run}`;
}

function ruleFor({ files, ignore, ready, run }: Claim, inside: string, isRunFolder: boolean): Rule {
  if (isRunFolder && run !== 'file' && 'folder' in run) return { kind: 'taken', pattern: run.folder };
  const verdict = createMatcher({ files, ignore, run, ready }).verdict(inside);
  if (verdict.taken) return { kind: 'taken', pattern: verdict.pattern };
  if (verdict.rule !== 'files') return { kind: verdict.rule, pattern: verdict.pattern };
  const otherCase = files.find((glob) => {
    const folded = createMatcher({ files: [glob.toLowerCase()], ignore: [] });
    return folded.verdict(inside.toLowerCase()).taken;
  });
  return { kind: 'files', otherCase };
}

/** How many steps lead from one place to the other: who mistook the folder mistook the last names of it. */
const outside = (folder: string, path: string): Rule => ({
  kind: 'outside',
  distance: relative(folder, dirname(path)).split(sep).filter(Boolean).length,
});

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

interface Places {
  readonly claims: readonly Claim[];
  readonly reader: JournalReader | undefined;
  readonly live: Live | undefined;
  /** Where a relative path begins. */
  readonly folder: string;
}

interface FoundFiles {
  readonly paths: readonly string[];
  /** There are more than these. */
  readonly more: boolean;
  /** Folders that did not answer in time, or could not be read to the end. */
  readonly unsearched: readonly string[];
}

/** More nobody reads. */
const MOST = 100;
/** How long a folder may take to be searched: a share may not answer at all. */
const SEARCH_MS = 10_000;

/**
 * The files that somebody means by a path, a name or a part of one: the very file where there is one, else all that the
 * journal, the daemon and the folders know by that text. Also files that are gone.
 */
export async function findFile(asked: string, places: Places): Promise<FoundFiles> {
  const { claims, reader, live, folder } = places;
  const path = asWatched(resolve(folder, asked), claims);
  const isKnown = (await reader?.files(path, MOST))?.some((one) => one.path === path) ?? false;
  if (isKnown || lstatSync(path, { throwIfNoEntry: false })) return only(path);
  const remembered = (await reader?.files(asked, MOST + 1))?.map((one) => one.path) ?? [];
  const waiting = live?.instruments.flatMap(({ waiting }) => waiting.first.map((one) => one.path)) ?? [];
  const searched = await Promise.all([...new Set(claims.map(({ watch }) => watch))].map((root) => search(root, asked)));
  const all = new Set([
    ...remembered,
    ...waiting.filter((one) => one.includes(asked)),
    ...searched.flatMap(({ found }) => found),
  ]);
  const unsearched = searched.flatMap(({ root, ended }) => (ended ? [] : [root]));
  if (all.size === 0 && asked.includes('/')) return { ...only(path), unsearched };
  const paths = [...all].sort((a, b) => rank(a, asked) - rank(b, asked) || (a < b ? -1 : 1));
  return { paths: paths.slice(0, MOST), more: paths.length > MOST, unsearched };
}

const only = (path: string): FoundFiles => ({ paths: [path], more: false, unsearched: [] });

/** The very name first, then names that hold it, then folders that do. */
function rank(path: string, asked: string): number {
  const name = basename(path);
  return name === asked ? 0 : name.includes(asked) ? 1 : 2;
}

async function search(root: string, asked: string) {
  const found: string[] = [];
  const signal = AbortSignal.timeout(SEARCH_MS);
  const tooLate = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  try {
    const listing = list(root, { matcher: createMatcher({ files: ['**'], ignore: [] }), signal });
    for (;;) {
      const next = await Promise.race([listing.next(), tooLate]);
      if (next.done) return { root, found, ended: next.value.state === 'present' };
      found.push(...next.value.map(({ path }) => path).filter((path) => path.includes(asked)));
    }
  } catch {
    return { root, found, ended: false };
  }
}

/** The path as seen from a folder, with `/` between names; undefined where it is not in it. */
function insideOf(folder: string, path: string): string | undefined {
  const inside = relative(folder, path);
  if (inside === '' || inside.startsWith('..') || inside === path) return undefined;
  return sep === '/' ? inside : inside.replaceAll(sep, '/');
}

/** The same file under the name by which an instrument's folder leads to it: people may come by a link. */
function asWatched(path: string, claims: readonly Claim[]): string {
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
