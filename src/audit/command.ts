import type { Command } from 'commander';
import { NO_DAEMON, type RequestResult, sendRequests } from '../commands/decisions.js';
import { type JsonOption, requireInstrument, usableConfigFrom, withJson } from '../commands/options.js';
import { createProgressLine, terminalWidth } from '../commands/terminal.js';
import type { UsableConfig } from '../config/load.js';
import { openNotebook } from '../connection.js';
import { EXIT, explain, explainProblem, LabfeedError, NotebookError, UsageError } from '../errors.js';
import { createNotebookReader } from '../evidence.js';
import { isFree } from '../journal/database.js';
import { type FiledRun, type JournalReader, openReader, type UnfiledRun } from '../journal/reader.js';
import { onStopRequest } from '../system/process.js';
import { plural } from '../text.js';
import { isSafe, unverified, type Verification, verifyRun } from '../verify.js';
import { compareFolders, inParallel } from './folders.js';
import {
  type AuditDeps,
  type AuditResult,
  differs,
  emptyResult,
  type Finding,
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
