import type { Clock } from '../clock.js';
import type { Claim, UsableConfig } from '../config/load.js';
import { openNotebook } from '../connection.js';
import { tryRead } from '../deliver/reconcile.js';
import { cellTexts } from '../deliver/revise.js';
import { explain, LabfeedError, NotebookError, UsageError } from '../errors.js';
import { type FiledRun, type JournalReader, openReader } from '../journal/reader.js';
import type { Notebook } from '../notebook/client.js';
import { createPatience, isFiled } from '../recover/reconcile.js';
import { nearest } from '../text.js';
import { claimedBy, claimsBefore, createMatcher } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';
import { list } from '../watch/scan.js';
import type { Finding, Repair, SafeFile } from './findings.js';
import { aFewAtATime, examineFolder, type FileCounts } from './folder.js';
import { type Examined, examineFiled, type FiledRunDeps, tellUnfiled, unproved } from './runs.js';

interface AuditOptions {
  readonly config: UsableConfig;
  /** Where the journal is. */
  readonly path: string;
  /** Only this one. */
  readonly instrument: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  progress(so: Progress): void;
  /** The notebook does not answer for now. */
  trouble(reason: string): void;
}

export type Progress =
  | { readonly part: 'notebook'; readonly runs: number; readonly of: number }
  | { readonly part: 'folder'; readonly instrument: string; readonly files: number };

/** What folders, journal and notebook say about each other. */
export interface Audited {
  readonly server: string;
  readonly findings: readonly Finding[];
  /** What can be mended without touching anything that a person did. */
  readonly repairs: readonly Repair[];
  readonly safe: readonly SafeFile[];
  /** Runs that the journal has as done, and those of them that the notebook proved. */
  readonly runs: { readonly filed: number; readonly proved: number };
  readonly folders: readonly (Readonly<FileCounts> & Pick<Claim, 'name' | 'watch'>)[];
  /** Why not all of it was looked at. */
  readonly brokenOff: string | undefined;
}

/** What is filled in on the way: whatever breaks it off, what was found so far is told. */
interface Findings {
  readonly findings: Finding[];
  readonly repairs: Repair[];
  readonly safe: SafeFile[];
  readonly proved: Set<number>;
  readonly folders: Audited['folders'][number][];
  filed: number;
}

/** Holds folders, journal and notebook against each other, beside a daemon or without one. Changes nothing. */
export async function audit(options: AuditOptions): Promise<Audited> {
  const { config, path, instrument, clock, signal } = options;
  const notebook = openNotebook(config, { clock, signal });
  const journal = openReader(path);
  const found: Findings = { findings: [], repairs: [], safe: [], proved: new Set(), folders: [], filed: 0 };
  try {
    requireKnown(instrument, [...config.claims.map(({ name }) => name), ...(await journal.instruments())]);
    const troubles = [
      await untilTrouble(signal, () => examineRuns(found, notebook, journal, options)),
      await untilTrouble(signal, () => examineFolders(found, journal, options)),
    ];
    const { findings, repairs, safe, folders, filed, proved } = found;
    return {
      server: config.notebook.url,
      findings,
      repairs,
      safe,
      runs: { filed, proved: proved.size },
      folders,
      brokenOff: troubles.find((trouble) => trouble !== undefined),
    };
  } finally {
    await journal.close();
    await notebook.close();
  }
}

function requireKnown(instrument: string | undefined, known: readonly string[]): void {
  if (instrument === undefined || known.includes(instrument)) return;
  const near = nearest(instrument, known);
  throw new UsageError(`there is no instrument ${JSON.stringify(instrument)}`, {
    hint: near ? `did you mean ${near}?` : `known are: ${[...new Set(known)].join(', ')}`,
  });
}

/** Where the notebook is away, the folders can still be looked at; nothing is then proved that was not before. */
async function untilTrouble(signal: AbortSignal, examine: () => Promise<void>): Promise<string | undefined> {
  try {
    await examine();
    return undefined;
  } catch (error) {
    if (signal.aborted) return 'it was stopped';
    if (error instanceof LabfeedError) return explain(error);
    throw error;
  }
}

async function examineRuns(
  found: Findings,
  notebook: Notebook,
  journal: JournalReader,
  { config, instrument, clock, signal, trouble, progress }: AuditOptions,
): Promise<void> {
  const { url, concurrency, dialect } = config.notebook;
  const server = await journal.server(url);
  if (server.halted !== undefined)
    found.findings.push({ kind: 'halted', text: `nothing is sent to ${url}: ${server.halted}` });
  for await (const run of journal.unfiled(instrument)) {
    const finding = tellUnfiled(run);
    found.findings.push(finding);
    if (finding.kind === 'interrupted') found.repairs.push({ run: run.id, comments: [] });
  }
  for (const experiment of instrument === undefined ? server.spares : [])
    found.findings.push({ kind: 'spare', experiment, text: 'the next run uses it' });
  // Without patience: whoever has the key or the address wrong need not wait to be told.
  await notebook.listKeys();
  const ask = createPatience({ clock, signal, trouble, brokenOff: (cause) => cause });
  const isElabftw = (dialect === 'auto' ? server.dialect : dialect) === 'elabftw';
  const deps: FiledRunDeps = {
    server: url,
    isDeleted: ({ state }) => isElabftw && Number(state) === ELABFTW_DELETED,
    look: (id) => ask(() => tryRead(id, notebook)),
    prove: () => ask(() => notebook.listKeys()),
    listComments: (id) => ask(() => notebook.listComments(id)),
    readComment: (id, comment) => ask(() => unlessMissing(() => notebook.readComment(id, comment))),
    filingOf: journal.filingOf,
    isFiled,
    textOf: cellTexts,
  };
  const of = await journal.countFiled(instrument);
  await aFewAtATime(journal.filed(instrument), concurrency, async (run) => {
    signal.throwIfAborted();
    progress({ part: 'notebook', runs: found.filed, of });
    const { findings, isProved, missing } = await examineFiled(run, deps).catch(unreadable(run));
    found.filed += 1;
    found.findings.push(...findings);
    if (isProved) found.proved.add(run.id);
    if (missing.length > 0) found.repairs.push({ run: run.id, comments: missing });
  });
}

const ELABFTW_DELETED = 3;

/** What the notebook says about one experiment alone does not keep the others from being read. */
const unreadable =
  (run: FiledRun) =>
  (error: unknown): Examined => {
    if (!(error instanceof NotebookError) || error.scope !== 'run') throw error;
    return unproved(run, 'unread', error.message);
  };

async function unlessMissing<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof NotebookError && error.status === 404) return undefined;
    throw error;
  }
}

async function examineFolders(found: Findings, journal: JournalReader, options: AuditOptions): Promise<void> {
  const { config, path: journalPath, instrument, signal, progress } = options;
  for (const claim of config.claims) {
    const { name, watch } = claim;
    if (instrument !== undefined && name !== instrument) continue;
    const isClaimed = claimedBy(claimsBefore(claim, config));
    const isOthers = (path: string): boolean => path.startsWith(journalPath) || isClaimed(path);
    const matcher = createMatcher(claim);
    const counts = await examineFolder({
      instrument: name,
      folder: watch,
      copies: config.listed.find((listed) => listed.name === name)?.duplicates === 'ingest',
      ignoresChanges: config.instruments.find((one) => one.name === name)?.changed === 'ignore',
      journal,
      list: () => list(watch, { matcher, signal }),
      isOthers,
      // Hashed in a stream: however large a file is, nothing of it stays in memory.
      ...createRuns({ root: watch, run: claim.run, matcher, signal, isClaimed: isOthers, keepBytes: 0 }),
      isProved: (run) => found.proved.has(run),
      tell: (finding) => void found.findings.push(finding),
      proved: (file) => void found.safe.push(file),
      progress: ({ files }) => progress({ part: 'folder', instrument: name, files }),
    });
    found.folders.push({ name, watch, ...counts });
  }
}
