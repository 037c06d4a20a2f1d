import { rmdir } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { type Clock, every, type Loop } from '../clock.js';
import { type Instrument, journalOf, type UsableConfig } from '../config/load.js';
import type { Notebook } from '../deliver/context.js';
import { explain, LabfeedError } from '../errors.js';
import { createNotebookReader } from '../evidence.js';
import type { Journal } from '../journal/journal.js';
import { type JournalReader, openReader } from '../journal/reader.js';
import type { Log } from '../log.js';
import type { IdentifiedFile } from '../model.js';
import type { DueSource, FiledRunFiles, NewSource } from '../outbox.js';
import { verifyRun } from '../verify.js';
import { dispose, PRIVATE_PREFIX, undispose } from '../watch/dispose.js';

/** The files of a run that are to be moved or deleted; undefined if they stay. */
export function sourcesOf({ source, watch }: Instrument, file: IdentifiedFile): readonly NewSource[] | undefined {
  if (source === 'keep') return undefined;
  const targetOf = (path: string) => (source === 'delete' ? undefined : resolve(source.move, relative(watch, path)));
  return (file.parts ?? [file]).map(({ path, sha256 }) => ({ path, sha256, target: targetOf(path) }));
}

interface SourcesDeps {
  readonly config: UsableConfig;
  readonly journal: Pick<Journal, 'outbox'>;
  readonly notebook: Notebook;
  readonly clock: Clock;
  readonly log: Log;
}

const CHECK_MS = 5000;
const AT_A_TIME = 20;
/** Nobody is waiting, and what is wrong is rarely corrected sooner. */
const RETRY_MS = 3_600_000;

/**
 * Moves or deletes the files of filed runs: only after everything was read back from the notebook, and only if a file
 * still has the bytes that were filed.
 */
export function disposeOfSources(deps: SourcesDeps): Loop {
  const { config, clock, log } = deps;
  const { sources, server } = deps.journal.outbox;
  return every(CHECK_MS, clock, async (signal) => {
    try {
      // After a halt, it is not certain what was filed.
      if ((await server(config.notebook.url).facts()).halted !== undefined) return undefined;
      const runs = await sources.due(clock.now(), AT_A_TIME);
      if (runs.length === 0) return undefined;
      const reader = openReader(journalOf(config));
      try {
        for (const id of runs) if (!signal.aborted) await disposeOfRun(await sources.load(id), reader, signal, deps);
      } finally {
        await reader.close();
      }
      return runs.length === AT_A_TIME ? 0 : undefined;
    } catch (error) {
      if (!signal.aborted) log.error({ reason: explain(error) }, 'cannot move or delete filed files, retrying');
      return undefined;
    }
  });
}

async function disposeOfRun(
  filed: FiledRunFiles,
  reader: JournalReader,
  signal: AbortSignal,
  deps: SourcesDeps,
): Promise<void> {
  const { config, clock, log } = deps;
  const { sources } = deps.journal.outbox;
  const { run, files } = filed;
  const instrument = config.instruments.find(({ name }) => name === run.instrument);
  const isWanted = instrument !== undefined && instrument.source !== 'keep';
  try {
    if (instrument === undefined)
      throw new LabfeedError(`the instrument ${run.instrument} is not in the configuration`);
    if (isWanted) await requireProof(filed, reader, signal, deps);
    for (const file of files) {
      const { outcome, to } = await (isWanted ? disposeOfFile(run.id, file) : keepFile(run.id, file));
      await sources.record(run.id, { kind: 'sourceSettled', outcome, n: file.n, path: file.path, to });
      log.info({ run: run.id, file: file.path, to, outcome }, 'filed file settled');
    }
    if (instrument.run !== 'file' && 'folder' in instrument.run) await removeEmpty(files, instrument.watch);
  } catch (error) {
    if (signal.aborted || !(error instanceof LabfeedError)) throw error;
    const reason = explain(error);
    await sources.record(run.id, { kind: 'sourcePostponed', reason, dueAt: clock.now() + RETRY_MS });
    log.warn({ run: run.id, file: run.path, reason }, 'the filed file stays where it is for now');
  }
}

const fileOf = (run: number, { n, path, sha256 }: DueSource) => ({
  ...{ path, sha256, privateName: `${PRIVATE_PREFIX}${run}-${n}` },
});

async function disposeOfFile(run: number, file: DueSource) {
  const result = await dispose(fileOf(run, file), file.target);
  return { outcome: result.outcome, to: 'to' in result ? result.to : undefined };
}

/** The configuration has changed to `source: keep` since the run was taken. */
async function keepFile(run: number, file: DueSource) {
  await undispose(fileOf(run, file));
  return { outcome: 'kept' as const, to: undefined };
}

/** The folders of a run, innermost first, if nothing else is in them. */
async function removeEmpty(files: readonly DueSource[], watch: string): Promise<void> {
  const folders = new Set(files.map(({ path }) => dirname(path)).filter((folder) => folder.startsWith(`${watch}/`)));
  for (const folder of [...folders].sort((a, b) => b.length - a.length)) await rmdir(folder).catch(() => undefined);
}

/** Throws unless everything was read back. A file is deleted only if the notebook has all of it. */
async function requireProof(
  { run, files }: FiledRunFiles,
  journal: JournalReader,
  signal: AbortSignal,
  { config: { notebook: settings }, notebook, clock, log, journal: { outbox } }: SourcesDeps,
): Promise<void> {
  const onRetry = (reason: string) => log.debug({ run: run.id, reason }, 'reading back is delayed');
  const reads = createNotebookReader({ ...notebook, newestExperiments: async () => [] }, { clock, signal, onRetry });
  const { dialect } = await outbox.server(settings.url).facts();
  const checked = await verifyRun(run, { server: settings.url, notebook: reads, journal, dialect });
  const isDeletion = files.some(({ target }) => target === undefined);
  const isProved = isDeletion ? checked.isAttached || (checked.isVerified && checked.isComplete) : checked.isVerified;
  if (isProved) return;
  const [finding] = checked.findings;
  const what = finding?.text ?? 'the body or a comment differs';
  throw new LabfeedError(`not everything was read back from the notebook: ${what}`, {
    hint: `look at \`labfeed show ${run.id}\` and \`labfeed audit\`; labfeed checks again every hour`,
  });
}
