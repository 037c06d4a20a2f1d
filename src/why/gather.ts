import { existsSync, lstatSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { nextStep } from '../commands/jobs.js';
import type { AccessRules, Claim, LoadedConfig } from '../config/load.js';
import { growingOf } from '../config/schema.js';
import { explain, explainProblem, FileError, isForbidden, systemCode } from '../errors.js';
import { runWithContent } from '../evidence.js';
import type { Job } from '../journal/jobs.js';
import type { JournalReader } from '../journal/reader.js';
import type { SettledSource } from '../journal/sources.js';
import type { Live } from '../live.js';
import { leaderOf, placesElsewhere } from '../members.js';
import { createGuard, explainPermission } from '../watch/guard.js';
import { identify, isAbsent, reasonOf, stampOf, standInFor } from '../watch/identify.js';
import { createGrouping, createMatcher, doneFileOf, pathInside } from '../watch/match.js';
import { quietMsOf } from '../watch/settle.js';

/** Everything that is known about one file. `why --json` prints it. */
export type Evidence = Awaited<ReturnType<typeof gather>>;

type FileEvidence =
  | {
      readonly state: 'present';
      readonly size: number;
      readonly modifiedMs: number;
      /** Undefined if it was not, or could not be, read. */
      readonly sha256: string | undefined;
      /** Why it was not read. */
      readonly unread: string | undefined;
    }
  | { readonly state: 'absent' | 'folder' }
  | { readonly state: 'unreadable'; readonly reason: string; readonly hint?: string };

export type InstrumentEvidence = ReturnType<typeof compareWith>;

/** The rule that decides whether an instrument takes the file. */
type Rule =
  | { readonly kind: 'taken'; readonly pattern: string }
  | { readonly kind: 'ignore' | 'doneFile' | 'run'; readonly pattern: string }
  /** `otherCase`: a glob that would match if case did not matter. */
  | { readonly kind: 'files'; readonly otherCase: string | undefined }
  /** `distance`: the number of folders between the watched folder and the file. */
  | { readonly kind: 'outside'; readonly distance: number };

export type KnownRun = Awaited<ReturnType<typeof searchJournal>>['runs'][number];

/** A file belongs to the first instrument that matches it. */
export const ownerOf = (instruments: readonly InstrumentEvidence[]): InstrumentEvidence | undefined =>
  instruments.find(({ rule }) => rule.kind === 'taken');

interface Searched {
  readonly path: string;
  readonly file: FileEvidence;
  readonly instruments: readonly InstrumentEvidence[];
}

/** The path of the run that the file is, or is part of. */
export const runPathOf = ({ path, instruments }: Omit<Searched, 'file'>): string =>
  ownerOf(instruments)?.partOf ?? path;

export interface Sources {
  readonly config: LoadedConfig;
  /** Undefined if there is no journal yet. */
  readonly reader: JournalReader | undefined;
  readonly running: boolean;
  /** The status of the daemon, if it is running. */
  readonly live: Live | undefined;
  readonly now: number;
  /** Whether the database of the fleet cannot be asked for runs that this machine does not keep. */
  readonly isFleetUnknown?: boolean;
}

/** `path` is absolute, below the watched folder as it is configured; or that of another machine of the fleet. */
export async function gather(path: string, sources: Sources) {
  const { config, reader, running, live, now } = sources;
  const elsewhere = elsewhereOf(path, sources);
  const file: FileEvidence = elsewhere.machine === undefined ? await readFile(path, config) : { state: 'absent' };
  const overview = await reader?.overview();
  const backlogs = new Map(overview?.instruments.map(({ name, asked }) => [name, asked]));
  /** In the order in which they claim files. */
  const claims = elsewhere.machine === undefined ? config.claims : [];
  const compared = claims.map((claim) => {
    const asked = backlogs.get(claim.name) ?? 0;
    return compareWith(claim, path, { config, live, asked, mayBeFolder: file.state !== 'present' });
  });
  const found = await searchJournal(path, file, compared, reader);
  const isRun = runOf({ path, file, instruments: compared, ...found }) !== undefined;
  return {
    path,
    now,
    file,
    instruments: isRun ? compared : await addMistakes(compared, config, live),
    ...found,
    elsewhere,
    /** Whether the file was taken, and its run is not in the fleet yet. */
    isKept: config.settings.fleet !== undefined && !isRun && isTaken(path, { instruments: compared, ...found }),
    /** Whether there is a journal. */
    journal: reader !== undefined,
    /** Whether the file is the journal or belongs to it. */
    isJournal: path.startsWith(config.settings.journal),
    daemon: { running, gate: running ? live?.notebook.gate : undefined },
    uploads: { url: config.notebook?.url, instruments: config.instruments.map(({ name }) => name) },
    // A halt of a notebook that is no longer configured keeps nothing from being sent.
    servers: (overview?.servers ?? []).map((server) =>
      server.url === config.notebook?.url ? server : { ...server, halted: undefined },
    ),
  };
}

/** Unchanged since, although no run that is known has its content. */
const isTaken = (
  path: string,
  { instruments, known, isUntouched }: Pick<Searched, 'instruments'> & Awaited<ReturnType<typeof searchJournal>>,
): boolean =>
  isUntouched &&
  known.some(
    (one) =>
      one.verdict === 'taken' &&
      one.run === undefined &&
      one.instrument === ownerOf(instruments)?.name &&
      one.path === path,
  );

/** `pc2:/srv/balance/a.csv`: a file of another machine of the fleet. */
export const splitMachine = (path: string): readonly [machine: string, path: string] | undefined => {
  const [, machine, inside] = /^([^/]+?):(\/.*)$/s.exec(path) ?? [];
  return machine === undefined || inside === undefined ? undefined : [machine, inside];
};

/** What the other machines of the fleet say about the folder of the file. */
function elsewhereOf(path: string, { live, isFleetUnknown = false }: Sources) {
  const [machine, inside = path] = splitMachine(path) ?? [];
  const places = placesElsewhere(live?.fleet).filter(
    ({ member, folder }) =>
      (machine === undefined || member.name === machine) && pathInside(folder.watch, inside) !== undefined,
  );
  const member = live?.fleet?.members.find(({ name }) => name === machine);
  return {
    /** The machine that has the file, if its path says so. */
    machine,
    /** Its path on that machine. */
    inside,
    seen: member && { isAway: member.isAway, at: member.seenAt },
    /** The instruments of other machines that watch this folder. */
    places: places.map(({ member: { name, isAway }, folder: { instrument, watch } }) => ({
      ...{ machine: name, isAway, instrument, watch },
    })),
    /** Who delivers; null: nobody. Undefined if this is not a fleet, or not known. */
    leader: live?.fleet && leaderOf(live.fleet),
    /** Why the database of the fleet is away, as far as the daemon knows. */
    trouble: live?.fleet?.trouble,
    /** Whether older runs of other machines are not known. */
    isFleetUnknown,
  };
}

/** Larger files are not hashed only to find out whether they are copies. */
const MAX_HASHED_BYTES = 256 * 1024 * 1024;

async function readFile(path: string, { instruments }: LoadedConfig): Promise<FileEvidence> {
  try {
    const stats = statSync(path, { bigint: true });
    if (stats.isDirectory()) return { state: 'folder' };
    if (!stats.isFile()) return { state: 'unreadable', reason: 'it is neither a file nor a folder' };
    const stamp = stampOf(stats);
    const { size } = stamp;
    const owner = instruments.find(({ watch }) => pathInside(watch, path) !== undefined);
    const access = owner?.access;
    const modifiedMs = Number(stamp.mtimeNs / 1_000_000n);
    if (owner && growingOf(owner.run))
      return { state: 'present', size, modifiedMs, sha256: undefined, unread: 'it keeps growing' };
    return { state: 'present', size, modifiedMs, ...(await hash({ path, location: path, ...stamp }, access)) };
  } catch (error) {
    if (isAbsent(error)) return isLink(path) ? { state: 'unreadable', reason: BROKEN_LINK } : { state: 'absent' };
    return {
      state: 'unreadable',
      ...(isForbidden(systemCode(error)) ? explainPermission(path) : { reason: reasonOf(error) }),
    };
  }
}

const BROKEN_LINK = 'it is a symbolic link without a valid target';

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

async function hash(file: Parameters<typeof identify>[0], access: AccessRules | undefined) {
  if (file.size > MAX_HASHED_BYTES) return { sha256: undefined, unread: 'it is larger than 256 MB' };
  try {
    const guard = access && createGuard(access);
    const { sha256 } = await identify(file, { keepBytes: 0, guard });
    return { sha256, unread: undefined };
  } catch (error) {
    // Such a file is quarantined, with this reason.
    if (error instanceof FileError) return { sha256: standInFor(file), unread: undefined };
    return { sha256: undefined, unread: explain(error) };
  }
}

async function searchJournal(
  path: string,
  file: FileEvidence,
  instruments: readonly InstrumentEvidence[],
  reader: JournalReader | undefined,
) {
  if (reader === undefined)
    return {
      known: [],
      runs: [],
      sources: new Map<number, SettledSource[]>(),
      contentRun: undefined,
      isUntouched: false,
      followed: undefined,
    };
  const owner = ownerOf(instruments);
  const followed = owner && (await reader.followedAt(owner.name, path));
  const paths = [...new Set([path, owner?.partOf ?? path])];
  const entries = await Promise.all(paths.map(reader.filesAt));
  /** What the journal has about this path. An instrument can occur twice. */
  const known = entries.flat();
  const sha256 = file.state === 'present' ? file.sha256 : undefined;
  const contentRun =
    owner && sha256
      ? await runWithContent({ instrument: owner.name, sha256, path, copies: owner.duplicates === 'ingest' }, reader)
      : undefined;
  const ids = new Set([...known.map(({ run }) => run), contentRun?.id].filter((id) => id !== undefined));
  const found = await Promise.all([...ids].map((id) => reader.job(id)));
  const same = sha256 === undefined ? [] : await reader.sameContent(sha256);
  const jobs = new Map([...found, ...same].flatMap((job) => (job ? [[job.id, job]] : [])));
  /** Runs with this path or with the content of the file, newest first. */
  const runs = await Promise.all(
    [...jobs.values()]
      .sort((a, b) => b.id - a.id)
      .map(async (job) => ({
        ...toKnownRun(job),
        attachments: await reader.attachmentsOf(job.id),
        /** How many contents its file has had, if it has changed. */
        versions: (await reader.job(job.id))?.versions.length ?? 0,
      })),
  );
  const stats = file.state === 'present' ? statSync(path, { bigint: true, throwIfNoEntry: false }) : undefined;
  const atPath = owner && stats ? await reader.atPath(owner.name, { path, ...stampOf(stats) }) : undefined;
  const isUntouched = atPath?.isUntouched === true && !atPath.isTouched;
  /** What became of the files of these runs. */
  const sources = new Map(
    await Promise.all([...jobs.keys()].map(async (id) => [id, await reader.sourcesOf(id)] as const)),
  );
  /**
   * `contentRun`: the run as which the daemon would recognise the content. `isUntouched`: as far as scans see.
   * `followed`: a file that keeps growing.
   */
  return { known, runs, sources, contentRun: contentRun?.id, isUntouched, followed };
}

function toKnownRun(job: Job) {
  const { id, instrument, state, path, sha256, server, experiment, failure, reason } = job;
  const { dueAt, addedAt, updatedAt } = job;
  const run = { id, instrument, state, path, sha256, server, experiment, failure, reason, dueAt, addedAt, updatedAt };
  return { ...run, nextStep: nextStep(job) };
}

interface Context extends Pick<Sources, 'config' | 'live'> {
  readonly asked: number;
  /** Whether the path may be that of a folder. */
  readonly mayBeFolder: boolean;
}

function compareWith(claim: Claim, path: string, { config, live, asked, mayBeFolder }: Context) {
  const { name, watch, files, ready } = claim;
  const inside = pathInside(watch, path);
  const partOf = inside === undefined ? undefined : multiFileRun(claim, inside, mayBeFolder);
  const reported = live?.instruments.find((instrument) => instrument.name === name);
  const instrument = config.instruments.find((one) => one.name === name);
  const existing = instrument?.existing;
  return {
    name,
    watch,
    files,
    rule: inside === undefined ? outside(watch, path) : ruleFor(claim, inside, partOf === path),
    /** The path of the run of several files to which the file belongs. */
    partOf,
    folder: readFolder(watch),
    /** A linked folder between the watched folder and the file. Links are not followed. */
    link: inside === undefined ? undefined : findLink(watch, inside),
    /** What stops it. Looked for only if the file is not a run. */
    mistakes: undefined as readonly string[] | undefined,
    quietMs: quietMsOf(ready),
    doneFile: doneFileFor(partOf ?? path, ready.doneFile),
    /** Undefined if the instrument has a mistake, as are the next two. */
    changed: instrument?.changed,
    existing: typeof existing === 'object' ? `since ${existing.since}` : existing,
    duplicates: instrument?.duplicates,
    /** The number of files in its backlog that wait for a decision. */
    asked,
    /** What the daemon reports about this file. */
    waiting:
      reported && [...reported.stuck.first, ...reported.waiting.first].find((one) => one.path === (partOf ?? path)),
  };
}

/** The path of the run of several files that the path belongs to; it can be the run's folder itself. */
function multiFileRun({ run, watch }: Claim, inside: string, mayBeFolder: boolean): string | undefined {
  const grouping = createGrouping(run);
  const member = grouping?.memberOf(inside) ?? (mayBeFolder ? grouping?.memberOf(`${inside}/any`) : undefined);
  return member && `${watch}/${member.run}`;
}

function ruleFor(claim: Claim, inside: string, isRunFolder: boolean): Rule {
  const { files, run } = claim;
  if (isRunFolder && run !== 'file' && 'folder' in run) return { kind: 'taken', pattern: run.folder };
  const verdict = createMatcher(claim).verdict(inside);
  if (verdict.taken) return { kind: 'taken', pattern: verdict.pattern };
  if (verdict.rule !== 'files') return { kind: verdict.rule, pattern: verdict.pattern };
  const otherCase = files.find((glob) => {
    const folded = createMatcher({ files: [glob.toLowerCase()], ignore: [] });
    return folded.verdict(inside.toLowerCase()).taken;
  });
  return { kind: 'files', otherCase };
}

const outside = (folder: string, path: string): Rule => ({
  kind: 'outside',
  distance: relative(folder, dirname(path)).split(sep).filter(Boolean).length,
});

function readFolder(watch: string): { state: 'present' | 'missing' | 'unreadable'; reason?: string } {
  try {
    return statSync(watch).isDirectory()
      ? { state: 'present' }
      : { state: 'unreadable', reason: 'it is a file, not a folder' };
  } catch (error) {
    return { state: isAbsent(error) ? 'missing' : 'unreadable', reason: reasonOf(error) };
  }
}

function findLink(watch: string, inside: string): string | undefined {
  const names = inside.split('/').slice(0, -1);
  return names.map((_, index) => join(watch, ...names.slice(0, index + 1))).find(isLink);
}

/** The mistakes that stop an instrument: in the configuration as it is now, and as the daemon reports them. */
async function addMistakes(
  instruments: readonly InstrumentEvidence[],
  config: LoadedConfig,
  live: Live | undefined,
): Promise<InstrumentEvidence[]> {
  // It takes a quarter of a second to load.
  const { checkMapping } = await import('../map/draft.js');
  return instruments.map((evidence) => {
    const { name } = evidence;
    const instrument = config.instruments.find((one) => one.name === name);
    const own = [...config.problems, ...(instrument ? checkMapping(instrument) : [])].filter(
      ({ stops }) => typeof stops === 'object' && stops.instrument === name,
    );
    const reported = live?.problems.filter((problem) => problem.instrument === name) ?? [];
    const texts = [...own.map(explainProblem), ...reported.map(({ at, message }) => `${at}: ${message}`)];
    return { ...evidence, mistakes: [...new Set(texts)] };
  });
}

function doneFileFor(path: string, pattern: string | undefined) {
  if (pattern === undefined) return undefined;
  const name = String(doneFileOf(path, pattern));
  return { name, isThere: existsSync(name) };
}

/** The run that the file is: by its content if that is known, otherwise by its path. */
export function runOf(
  evidence: Searched & Pick<Awaited<ReturnType<typeof searchJournal>>, 'runs' | 'contentRun'>,
): KnownRun | undefined {
  const { path, file, instruments, runs, contentRun } = evidence;
  const owner = ownerOf(instruments);
  const runPath = runPathOf(evidence);
  const own = runs.filter(({ instrument }) => owner === undefined || instrument === owner.name);
  // The content of one file does not identify a run of several files.
  if (runPath !== path || file.state !== 'present' || file.sha256 === undefined)
    return own.find((run) => run.path === runPath) ?? own[0];
  // The versions of two files may have the same content.
  const isOwn = (run: KnownRun): boolean => run.path === path && run.sha256 === file.sha256;
  if (owner) return own.find(isOwn) ?? runs.find(({ id }) => id === contentRun);
  const same = runs.filter(({ sha256 }) => sha256 === file.sha256);
  return same.find((run) => run.path === path) ?? same[0];
}
