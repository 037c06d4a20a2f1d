import { NotebookError } from '../errors.js';
import { createNotebookReader } from '../evidence.js';
import type { FiledRun, JournalReader, UnfiledRun } from '../journal/reader.js';
import { isSafe, unverified, type Verification, verifyRun } from '../verify.js';
import { inParallel } from './folders.js';
import type { AuditDeps, AuditResult, Finding } from './report.js';

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
