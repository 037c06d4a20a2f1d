import { atMost, every } from '../clock.js';
import { type Instrument, journalOf, type UsableConfig } from '../config/load.js';
import type { Notebook } from '../deliver/context.js';
import { explain, LabfeedError } from '../errors.js';
import { createNotebookReader } from '../evidence.js';
import type { Journal } from '../journal/journal.js';
import { openReader } from '../journal/reader.js';
import { type IdentifiedFile, STAND_IN } from '../model.js';
import type { FiledRunFiles, NewSource } from '../sources.js';
import { isSafe, verifyRun } from '../verify.js';
import { identityOf, toText } from '../watch/dispose.js';
import { type Act, type DisposalContext, disposeOfRun, restoreRun } from './disposal.js';

/** The files of a run that are to be moved or deleted; undefined if they stay. */
export function sourcesOf({ source }: Instrument, file: IdentifiedFile): readonly NewSource[] | undefined {
  if (source === 'keep' || file.sha256.startsWith(STAND_IN)) return undefined;
  return (file.parts ?? [file]).map(({ path, location, sha256, ...stamp }) => ({
    ...{ path, sha256, location: toText(location), identity: identityOf(stamp) },
  }));
}

interface SourcesDeps extends Omit<DisposalContext, 'prove' | 'signal'> {
  readonly config: UsableConfig;
  readonly journal: Pick<Journal, 'outbox'>;
  readonly notebook: Notebook;
}

const CHECK_MS = 5000;
const AT_A_TIME = 100;
/** How long stopping waits for a share that may never respond. */
const STOP_MS = 5000;

/**
 * Moves or deletes the files of filed runs: only after everything was read back from the notebook, and only if a file
 * still has the bytes that were filed. Each instrument by itself, because its share may hang.
 */
export function disposeOfSources(deps: SourcesDeps) {
  const { config, clock, log, instruments } = deps;
  const { sources, server } = deps.journal.outbox;
  const busy = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  const { signal } = stopping;
  const context = { ...deps, signal, prove: createProof({ signal, ...deps }) };

  async function work(instrument: string, runs: readonly FiledRunFiles[], act: Act, areMore: boolean): Promise<void> {
    let isBlocked = false;
    for (const filed of runs) {
      try {
        if (!isBlocked && !stopping.signal.aborted) isBlocked = (await act(filed, context)) === 'blocked';
      } catch (error) {
        isBlocked = true;
        log.error({ run: filed.run.id, reason: explain(error) }, 'cannot record what became of a filed file, retrying');
      } finally {
        await sources.release(filed.run.id);
      }
    }
    busy.delete(instrument);
    if (areMore && !isBlocked) loop.wake();
  }

  async function start(runs: readonly number[], act: Act): Promise<void> {
    const filed = await Promise.all(runs.map((run) => sources.load(run)));
    for (const instrument of new Set(filed.map(({ run }) => run.instrument))) {
      const own = filed.filter(({ run }) => run.instrument === instrument);
      if (busy.has(instrument)) for (const { run } of own) await sources.release(run.id);
      else busy.set(instrument, work(instrument, own, act, runs.length === AT_A_TIME));
    }
  }

  let isFirst = true;
  const loop = every(CHECK_MS, clock, async () => {
    try {
      if (stopping.signal.aborted) return undefined;
      if (isFirst) await sources.retryNow();
      isFirst = false;
      // First of all, whatever the configuration says: no file stays hidden after a crash.
      await start(await sources.claimHidden(clock.now()), restoreRun);
      // After a halt, it is not certain what was filed.
      if ((await server(config.notebook.url).facts()).halted !== undefined) return undefined;
      const present = instruments.filter(({ activity }) => activity.isPresent());
      const names = present.flatMap(({ usable }) => (usable && !busy.has(usable.name) ? usable.name : []));
      if (names.length > 0) await start(await sources.claim(clock.now(), AT_A_TIME, names), disposeOfRun);
    } catch (error) {
      log.error({ reason: explain(error) }, 'cannot look for filed files to move or delete, retrying');
    }
    return undefined;
  });
  return {
    /** A run was filed. */
    wake: loop.wake,
    /** Completes or undoes what was begun. */
    async stop(): Promise<void> {
      stopping.abort();
      await loop.stop();
      await atMost(STOP_MS, clock, Promise.all(busy.values()));
    },
  };
}

/** Returns a function that reads a run back from the notebook, and throws unless that has what is needed. */
function createProof({
  config,
  notebook,
  journal: { outbox },
  clock,
  log,
  signal,
}: SourcesDeps & { signal: AbortSignal }) {
  const { url } = config.notebook;
  const onRetry = (reason: string) => log.debug({ reason }, 'reading back is delayed');
  const reads = createNotebookReader({ ...notebook, newestExperiments: async () => [] }, { clock, signal, onRetry });
  return async ({ run }: FiledRunFiles, source: Instrument['source']): Promise<void> => {
    const { dialect } = await outbox.server(url).facts();
    const journal = openReader(journalOf(config));
    try {
      const checked = await verifyRun(run, { server: url, notebook: reads, journal, dialect });
      if (isSafe(checked) || (source !== 'delete' && checked.isVerified)) return;
      const what = checked.findings[0]?.text ?? 'the body or a comment differs';
      throw new LabfeedError(`not everything was read back from the notebook: ${what}`, {
        hint: `see \`labfeed show ${run.id}\` and \`labfeed audit\`; labfeed checks again later`,
      });
    } finally {
      await journal.close();
    }
  };
}
