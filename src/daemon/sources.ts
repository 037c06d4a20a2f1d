import { atMost, backoffMs, every } from '../clock.js';
import type { Instrument, UsableConfig } from '../config/load.js';
import type { Notebook } from '../deliver/context.js';
import { explain } from '../errors.js';
import { createNotebookReader } from '../evidence.js';
import type { Journal } from '../journal/journal.js';
import { openReader } from '../journal/reader.js';
import { type IdentifiedFile, STAND_IN } from '../model.js';
import type { FiledRunFiles, NewSource } from '../sources.js';
import { isSafe, verifyRun } from '../verify.js';
import { identityOf } from '../watch/dispose.js';
import { DisposalError, toText } from '../watch/file-moves.js';
import { type Act, BACKOFF, type DisposalContext, disposeOfRun, restoreFound, restoreRun } from './disposal.js';

/**
 * For how long nothing may have been written to a file before it is moved or deleted: much longer than a quiet period,
 * because what a program adds through a handle that it keeps open is lost with the file. Shorter in tests.
 */
const UNCHANGED_MS = 10 * 60_000;

export const unchangedMs = (env: NodeJS.ProcessEnv = process.env): number =>
  Number(env['LABFEED_TEST_UNCHANGED_MS'] ?? UNCHANGED_MS);

/** The files of a run that are to be moved or deleted; undefined if they stay. */
export function sourcesOf(
  { source }: Instrument,
  file: IdentifiedFile,
  readyAt: number,
): readonly NewSource[] | undefined {
  if (source === 'keep' || file.sha256.startsWith(STAND_IN)) return undefined;
  return (file.parts ?? [file]).map(({ path, location, sha256, ...stamp }) => ({
    ...{ path, sha256, location: toText(location), identity: identityOf(stamp), readyAt },
  }));
}

interface SourcesDeps extends Omit<DisposalContext, 'prove' | 'signal'> {
  readonly config: UsableConfig;
  readonly journal: Pick<Journal, 'outbox' | 'intake'>;
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
  /** Instruments whose next file would fail like the last one. Not durable: after a start, the cause may be gone. */
  const blocked = new Map<string, { readonly failures: number; readonly until: number }>();
  /** Files with private names, by instrument. */
  const found = new Map<string, Map<string, Buffer>>();
  const stopping = new AbortController();
  const { signal } = stopping;
  const context = { ...deps, signal, prove: createProof({ signal, ...deps }) };

  function block(instrument: string): void {
    const failures = (blocked.get(instrument)?.failures ?? 0) + 1;
    blocked.set(instrument, { failures, until: clock.now() + backoffMs(failures - 1, BACKOFF) });
  }

  async function work(instrument: string, runs: readonly number[], act: Act): Promise<void> {
    let isBlocked = false;
    for (const run of runs) {
      try {
        // Loaded only now: the run may have taken the next version of its file.
        if (!isBlocked && !signal.aborted) isBlocked = (await act(await sources.load(run), context)) === 'blocked';
      } catch (error) {
        isBlocked = true;
        log.error({ run, reason: explain(error) }, 'cannot record what became of a filed file, retrying');
      } finally {
        await sources.release(run);
      }
    }
    if (isBlocked) block(instrument);
    else blocked.delete(instrument);
    busy.delete(instrument);
    if (!isBlocked && (runs.length === AT_A_TIME || act === restoreRun)) loop.wake();
  }

  async function start(runs: readonly number[], act: Act): Promise<void> {
    const byInstrument = new Map<string, number[]>();
    for (const id of runs) {
      const { instrument } = (await sources.load(id)).run;
      byInstrument.set(instrument, [...(byInstrument.get(instrument) ?? []), id]);
    }
    for (const [instrument, own] of byInstrument) {
      if (busy.has(instrument)) for (const run of own) await sources.release(run);
      else busy.set(instrument, work(instrument, own, act));
    }
  }

  /** While nothing of this instrument is hidden on purpose. */
  function restoreAll(instrument: string, asides: Iterable<Buffer>): void {
    const restoring = async (): Promise<void> => {
      for (const aside of asides)
        try {
          if (await restoreFound(aside, context)) continue;
        } catch (error) {
          log.warn({ file: String(aside), reason: explain(error) }, 'cannot give the file its name again, retrying');
        }
      busy.delete(instrument);
      loop.wake();
    };
    found.delete(instrument);
    busy.set(instrument, restoring());
  }

  const loop = every(CHECK_MS, clock, async () => {
    try {
      if (signal.aborted) return undefined;
      // First of all, whatever the configuration says: no file stays hidden after a crash.
      await start(await sources.claimHidden(clock.now()), restoreRun);
      for (const [instrument, asides] of found) if (!busy.has(instrument)) restoreAll(instrument, asides.values());
      // After a halt, it is not certain what was filed.
      if ((await server(config.notebook.url).facts()).halted !== undefined) return undefined;
      const isFree = (name: string): boolean =>
        !busy.has(name) && (blocked.get(name)?.until ?? Number.NEGATIVE_INFINITY) <= clock.now();
      const present = instruments.filter(({ activity }) => activity.isPresent());
      const names = present.flatMap(({ usable }) => (usable && isFree(usable.name) ? usable.name : []));
      if (names.length > 0) await start(await sources.claim(clock.now(), AT_A_TIME, names), disposeOfRun);
    } catch (error) {
      log.error({ reason: explain(error) }, 'cannot look for filed files to move or delete, retrying');
    }
    return undefined;
  });
  return {
    /** A scan of the instrument's folder has found a file with a private name. */
    foundHidden(instrument: string, location: string | Buffer): void {
      const aside = Buffer.from(location);
      const own = found.get(instrument) ?? new Map<string, Buffer>();
      found.set(instrument, own.set(aside.toString('latin1'), aside));
    },
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
    const journal = openReader(config.settings.journal);
    try {
      const checked = await verifyRun(run, { server: url, notebook: reads, journal, dialect });
      if (isSafe(checked) || (source !== 'delete' && checked.isVerified)) return;
      const what = checked.findings[0]?.text ?? 'the body or a comment differs';
      throw new DisposalError('lasting', `not everything was read back from the notebook: ${what}`, {
        hint: `see \`labfeed show ${run.id}\` and \`labfeed audit\`; labfeed checks again once a day`,
      });
    } finally {
      await journal.close();
    }
  };
}
