import type { Command } from 'commander';
import { NO_DAEMON, type RequestResult, sendRequests } from '../commands/decisions.js';
import { type JsonOption, requireInstrument, usableConfigFrom, withJson } from '../commands/options.js';
import { createProgressLine, terminalWidth } from '../commands/terminal.js';
import type { Claim, UsableConfig } from '../config/load.js';
import { growingOf } from '../config/schema.js';
import { NO_MAPPING } from '../config/vocabulary.js';
import { openNotebook } from '../connection.js';
import { EXIT, explain, explainProblem, LabfeedError, NotebookError, UsageError } from '../errors.js';
import { createNotebookReader, isSafe, runWithContent, unverified, type Verification, verifyRun } from '../evidence.js';
import { describeFollowed } from '../growth.js';
import { isFree } from '../journal/database.js';
import {
  type FiledRun,
  type JournalReader,
  type KnownPath,
  type KnownRun,
  openReader,
  type UnfiledRun,
} from '../journal/reader.js';
import { type FoundFile, filesOf, type IdentifiedFile } from '../model.js';
import { refuseSize } from '../parse/source.js';
import { onStopRequest } from '../system/process.js';
import { plural } from '../text.js';
import { withStandIns } from '../watch/identify.js';
import { type Claims, createClaims, createMatcher } from '../watch/match.js';
import { createRuns, type Runs } from '../watch/runs.js';
import { type Listing, list } from '../watch/scan.js';
import {
  type AuditDeps,
  type AuditResult,
  differs,
  emptyResult,
  type FileCounts,
  type Finding,
  type FindingKind,
  type Repair,
  report,
  type SafeFile,
  toJson,
} from './report.js';

interface AuditOptions extends JsonOption {
  readonly repair?: boolean;
  readonly instrument?: string;
  readonly safe?: boolean;
  readonly null?: boolean;
}

export function addAudit(command: Command): void {
  withJson(command, ['labfeed audit', 'labfeed audit --safe -0 --instrument nanodrop | xargs -0 rm --'], EXIT_STATUS)
    .option('--instrument <instrument>', 'Audit only this instrument')
    .option(
      '--repair',
      'Post missing comments and attach missing raw files again, and retry waiting runs at once; never overwrites edits made in the notebook',
    )
    .option('--safe', 'Print only the paths of the files that are safe to delete')
    .option('-0, --null', 'With --safe: end each path with a NUL byte, for xargs -0')
    .action(runAudit);
}

const EXIT_STATUS = `Exit status: 0 if there are no differences, 1 if there are differences or if
something could not be checked.`;

async function runAudit(options: AuditOptions): Promise<void> {
  checkOptions(options);
  const { repair, instrument, json, safe, null: zero } = options;
  const config = usableConfigFrom(options);
  for (const problem of config.problems) process.stderr.write(`${explainProblem(problem)}\n`);
  const result = await audit(config, instrument);
  const repaired = repair ? await requestRepairs(result.repairs, config.settings.journal) : undefined;
  if (safe) printSafe(result.safe, zero ? '\0' : '\n');
  else if (json) console.log(JSON.stringify(toJson(result, repaired), null, 2));
  else console.log(report(result, repaired, terminalWidth()));
  if (repaired?.length && !json && isFree(config.settings.journal)) process.stderr.write(`${NO_DAEMON}\n`);
  if (result.stoppedBy !== undefined) process.stderr.write(`labfeed: the audit stopped early: ${result.stoppedBy}\n`);
  if (result.stoppedBy !== undefined || result.findings.some(differs)) process.exitCode = EXIT.failed;
}

function checkOptions({ safe, json, repair, null: zero }: AuditOptions): void {
  if (safe && (json || repair)) throw new UsageError(`--safe cannot be combined with ${json ? '--json' : '--repair'}`);
  if (zero && !safe) throw new UsageError('-0 requires --safe');
}

/** Compares folders, journal and notebook, whether or not a daemon runs. Changes nothing. */
async function audit(config: UsableConfig, instrument: string | undefined): Promise<AuditResult> {
  const signal = onStopRequest();
  const progress = createProgressLine();
  const notebook = openNotebook(config, { signal });
  const journal = openReader(config.settings.journal);
  const result = emptyResult(config.notebook.url);
  try {
    if (instrument !== undefined) await requireInstrument(instrument, { config, reader: journal });
    const deps = { config, instrument, journal, notebook, signal, progress };
    // If the notebook is unavailable, the folders can still be compared with the journal.
    const failures = [
      await failureOf(compareRuns(deps, result), signal),
      await failureOf(compareFolders(deps, result), signal),
    ];
    result.stoppedBy = failures.find((failure) => failure !== undefined);
    return result;
  } finally {
    progress.end();
    await journal.close();
    await notebook.close();
  }
}

async function failureOf(comparison: Promise<void>, signal: AbortSignal): Promise<string | undefined> {
  try {
    await comparison;
    return undefined;
  } catch (error) {
    if (signal.aborted) return 'interrupted';
    if (error instanceof LabfeedError) return explain(error);
    throw error;
  }
}

/** The daemon does the repairs; this command sends nothing to the notebook. */
const requestRepairs = async (repairs: readonly Repair[], journal: string): Promise<RequestResult[]> =>
  repairs.length === 0
    ? []
    : sendRequests(journal, async () => repairs.map((repair) => ({ kind: 'repair', ...repair })));

/** Prints the bytes of each path. A path with a line break would look like two paths, so it is left out without -0. */
function printSafe(files: readonly SafeFile[], end: '\0' | '\n'): void {
  const printable = files.filter(({ location }) => end === '\0' || !location.includes('\n'));
  const paths = printable.flatMap(({ location }) => [Buffer.from(location), Buffer.from(end)]);
  process.stdout.write(Buffer.concat(paths));
  const left = files.length - printable.length;
  if (left > 0)
    process.stderr.write(`left out ${plural(left, 'file')} with a line break in the name; use -0 to list all\n`);
}

/** Compares the runs in the journal with the notebook. Adds to the result as it goes, in case it stops early. */
export async function compareRuns(deps: AuditDeps, result: AuditResult): Promise<void> {
  const server = await deps.journal.server(deps.config.notebook.url);
  try {
    await verifyRuns(deps, server.dialect, result);
  } finally {
    // Last, because runs go on: one that is filed meanwhile must not be listed as on its way and as safe.
    await reportUnfiled(deps, server, result);
  }
}

async function verifyRuns(
  { config, instrument, journal, notebook, signal, progress }: AuditDeps,
  knownDialect: string | undefined,
  result: AuditResult,
): Promise<void> {
  const { url, concurrency, dialect } = config.notebook;
  // Without retries: a wrong key or address is reported at once.
  await notebook.listKeys();
  const verifyDeps = {
    server: url,
    dialect: dialect === 'auto' ? knownDialect : dialect,
    notebook: createNotebookReader(notebook, { signal, onRetry: progress.print }),
    journal,
  };
  const total = await journal.countFiled(instrument);
  await inParallel(journal.filed(instrument), concurrency, async (run) => {
    signal.throwIfAborted();
    progress.show(`reading back run ${result.filed + 1} of ${total}`);
    const checked = await verifyRun(run, verifyDeps).catch(unreadable(run));
    const { findings, isVerified, missing, uploads = [] } = checked;
    result.filed += 1;
    result.findings.push(...findings);
    if (isVerified) result.verified.add(run.id);
    if (isSafe(checked)) result.proved.add(run.id);
    if (missing.length + uploads.length > 0)
      result.repairs.push({ run: run.id, comments: missing, ...(uploads.length > 0 && { uploads }) });
  });
}

/** Findings that need no request: a halt, runs that are not filed, and spares. */
async function reportUnfiled(
  { config, instrument, journal }: AuditDeps,
  server: Awaited<ReturnType<JournalReader['server']>>,
  { findings, repairs, verified, proved }: AuditResult,
): Promise<void> {
  if (server.halted !== undefined)
    findings.push({ kind: 'halted', text: `nothing is sent to ${config.notebook.url}: ${server.halted}` });
  for await (const run of journal.unfiled(instrument)) {
    const finding = describeUnfiled(run);
    findings.push(finding);
    // It was reopened after it was read back.
    verified.delete(run.id);
    proved.delete(run.id);
    if (finding.kind === 'interrupted') repairs.push({ run: run.id, comments: [] });
  }
  for (const experiment of instrument === undefined ? server.spares : [])
    findings.push({ kind: 'spare', experiment, text: 'the next run will use it' });
}

function describeUnfiled({ id, instrument, path, experiment, state, reason, attempts }: UnfiledRun): Finding {
  const isParked = state === 'held' || state === 'quarantined';
  return {
    kind: isParked ? state : attempts > 0 ? 'interrupted' : 'on its way',
    instrument,
    run: id,
    experiment,
    path,
    // The other lines of a reason say what to do; `show` prints them.
    text: reason === undefined ? `it is ${state}` : (reason.split('\n', 1)[0] ?? ''),
  };
}

/** A failure that concerns one experiment does not keep the others from being read. */
const unreadable =
  (run: FiledRun) =>
  (error: unknown): Verification => {
    if (!(error instanceof NotebookError) || error.scope !== 'run') throw error;
    return unverified(run, 'unread', error.message);
  };

/** Compares the files in the folders with the journal. Adds to the result as it goes, in case it stops early. */
export async function compareFolders(deps: AuditDeps, result: AuditResult): Promise<void> {
  const { config, instrument, journal, progress } = deps;
  const claims = createClaims(config.claims);
  for (const claim of config.claims) {
    const { name, watch } = claim;
    if (instrument !== undefined && name !== instrument) continue;
    const counts = await compareFolder(
      {
        instrument: name,
        copies: config.listed.find((listed) => listed.name === name)?.duplicates === 'ingest',
        ignoresChanges: config.instruments.find((one) => one.name === name)?.changed === 'ignore',
        journal,
        folder: openFolder(claim, claims, deps),
        isGrowing: growingOf(claim.run) !== undefined,
        onProgress: ({ files }) => progress.show(`reading the files of ${name}: ${files}`),
      },
      result,
    );
    result.folders.push({ name, watch, ...counts });
  }
}

function openFolder(claim: Claim, claims: Claims, { config, signal }: AuditDeps): Folder {
  const { watch, run } = claim;
  const isOthers = (path: string): boolean =>
    path.startsWith(config.settings.journal) || claims.before(claim, path) !== undefined;
  const matcher = createMatcher(claim);
  const { access, parse = [NO_MAPPING] } = config.instruments.find(({ name }) => name === claim.name) ?? {};
  return {
    path: watch,
    list: () => list(watch, { matcher, signal }),
    isOthers,
    // Hashed as a stream: however large a file is, its content is not kept in memory.
    ...createRuns({
      ...{ root: watch, run, matcher, signal, isClaimed: isOthers, keepBytes: 0, access },
      refuse: (file) => refuseSize(file, parse),
    }),
  };
}

interface Folder extends Runs {
  readonly path: string;
  list(): AsyncGenerator<FoundFile[], Listing>;
  /** Whether the file belongs to another instrument or to the journal. */
  isOthers(path: string): boolean;
}

export interface FolderDeps {
  readonly instrument: string;
  /** Whether equal bytes at other paths are runs of their own. */
  readonly copies: boolean;
  /** Whether a file whose content has changed is skipped. */
  readonly ignoresChanges: boolean;
  /** Whether the files keep growing. */
  readonly isGrowing?: boolean;
  readonly journal: Pick<JournalReader, 'atPath' | 'ofContent'> & Partial<Pick<JournalReader, 'followedAt'>>;
  readonly folder: Folder;
  /** Called after each run. */
  onProgress(counts: FileCounts): void;
}

/** If a share hangs, this many of Node's threads for file access hang with it, and some must remain. */
const MAX_HASHES = 2;

export async function compareFolder(
  deps: FolderDeps,
  result: Pick<AuditResult, 'findings' | 'safe' | 'verified' | 'proved'>,
): Promise<FileCounts> {
  const { folder, instrument } = deps;
  const counts = {
    files: 0,
    proved: 0,
    incomplete: 0,
    unproved: 0,
    onTheirWay: 0,
    resting: 0,
    growing: 0,
    notTaken: 0,
  };
  const report = (kind: FindingKind, path: string, text: string): void =>
    void result.findings.push({ kind, instrument, path, text });

  async function compare(run: FoundFile): Promise<void> {
    const match = await matchRun(run, deps);
    if (match === 'gone') return;
    const files = filesOf('kind' in match ? run : match.file).length;
    const as = 'run' in match ? countAs(match.run, result) : match.kind === 'growing' ? 'growing' : 'notTaken';
    counts.files += files;
    counts[as] += files;
    if ('kind' in match) report(match.kind, run.path, match.text);
    else if (as === 'proved') result.safe.push(...safeFiles(match));
    deps.onProgress(counts);
  }

  // One batch may contain only some of a run's files, so such runs are compared after the last batch.
  const multiFile = new Map<string, FoundFile>();
  const batches = folder.list();
  let next = await batches.next();
  for (; !next.done; next = await batches.next()) {
    const runs = folder.group(next.value.filter(({ path }) => !folder.isOthers(path)));
    for (const run of runs) if (run.parts) multiFile.set(run.path, run);
    const singleFile = runs.filter(({ parts }) => !parts);
    await inParallel(singleFile, MAX_HASHES, compare);
  }
  await inParallel(multiFile.values(), MAX_HASHES, compare);
  const listing = next.value;
  if (listing.state !== 'present') report('folder', folder.path, `it is ${listing.state}: ${listing.reason}`);
  else for (const { path, reason } of listing.unread) report('unread', path, reason);
  return counts;
}

/** A run of the journal with the content of these files, or why there is none. */
type Match =
  | 'gone'
  | { readonly run: KnownRun; readonly file: IdentifiedFile }
  | { readonly kind: FindingKind; readonly text: string };

async function matchRun(found: FoundFile, deps: FolderDeps): Promise<Match> {
  const run = found.parts ? await deps.folder.stat(found) : found;
  if (run === 'absent') return 'gone';
  if (run === 'no answer') return { kind: 'unread', text: 'the disk or share does not respond' };
  if ('missing' in run) return { kind: 'never taken', text: `${run.missing} is missing` };
  const known = await Promise.all(filesOf(run).map((file) => deps.journal.atPath(deps.instrument, file)));
  if (known.some((one) => one?.verdict === 'asked')) return { kind: 'asked', text: 'it is part of the backlog' };
  if (known.every((one) => one?.verdict === 'skipped')) return SKIPPED;
  // However much of it is in the notebook, the next line is not: it never is safe to delete.
  if (deps.isGrowing) {
    const followed = await deps.journal.followedAt?.(deps.instrument, run.path);
    return followed
      ? { kind: 'growing', text: `it keeps growing: ${describeFollowed(followed)}` }
      : { kind: 'never taken', text: 'it is not in the journal' };
  }
  try {
    return await matchContent(await deps.folder.identify(run), known, deps);
  } catch (error) {
    if (!(error instanceof LabfeedError)) throw error;
    const file = withStandIns(run);
    const quarantined = known.find((one) => one?.run?.sha256 === file.sha256)?.run;
    return quarantined ? { run: quarantined, file } : { kind: 'unread', text: error.message };
  }
}

const SKIPPED: Match = { kind: 'skipped', text: 'skipped, as configured' };

async function matchContent(
  file: IdentifiedFile,
  known: readonly (KnownPath | undefined)[],
  { instrument, copies, ignoresChanges, journal }: FolderDeps,
): Promise<Match> {
  const { sha256, path } = file;
  const earlier = known.flatMap((one) => one?.run ?? []);
  const run =
    earlier.find((one) => one.sha256 === sha256) ??
    (await runWithContent({ instrument, sha256, path, copies }, journal));
  if (run) return { run, file };
  const [last] = earlier;
  if (!last) return { kind: 'never taken', text: 'it is not in the journal' };
  // The remaining files of a run are unchanged, but are not a run by themselves.
  if (file.parts && known.every((one) => one?.isUntouched && one.run?.id === last.id))
    return { kind: 'thinned out', text: `some files of run ${last.id} are gone` };
  return ignoresChanges ? SKIPPED : { kind: 'changed', text: `its content differs from that of run ${last.id}` };
}

function countAs(
  { id, state }: KnownRun,
  { verified, proved }: Pick<AuditResult, 'verified' | 'proved'>,
): Exclude<keyof FileCounts, 'files'> {
  if (state === 'queued' || state === 'sending') return 'onTheirWay';
  if (state !== 'done') return 'resting';
  if (proved.has(id)) return 'proved';
  return verified.has(id) ? 'incomplete' : 'unproved';
}

const safeFiles = ({ run, file }: Extract<Match, { run: KnownRun }>): SafeFile[] =>
  (file.parts ?? [file]).map(({ path, location, sha256 }) => ({
    path,
    location,
    sha256,
    run: run.id,
    experiment: run.experiment,
  }));

/**
 * Handles the items with at most `limit` at a time; an item is requested only when one can be handled. After a failure
 * no further item is started, and the failure is thrown when those in progress have ended.
 */
export async function inParallel<T>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  handle: (item: T) => Promise<void>,
): Promise<void> {
  const rest = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let hasFailed = false;

  async function worker(): Promise<void> {
    try {
      for (let next = await rest.next(); !next.done && !hasFailed; next = await rest.next()) await handle(next.value);
    } catch (error) {
      hasFailed = true;
      throw error;
    }
  }

  const ended = await Promise.allSettled(Array.from({ length: limit }, worker));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
}
