import { atMost, backoffMs, type Clock, every, type Loop } from '../clock.js';
import type { Instrument, UsableConfig } from '../config/load.js';
import type { Notebook } from '../deliver/context.js';
import type { AttachOptions } from '../deliver/uploads.js';
import { explain } from '../errors.js';
import { createNotebookReader, isSafe, verifyRun } from '../evidence.js';
import type { Journal } from '../journal/journal.js';
import { openReader } from '../journal/reader.js';
import type { Log } from '../log.js';
import { type IdentifiedFile, STAND_IN } from '../model.js';
import type { FiledRunFiles, NewSource } from '../sources.js';
import type { Spool } from '../spool.js';
import { identityOf } from '../watch/dispose.js';
import { DisposalError, display, toText } from '../watch/file-moves.js';
import { openContent } from '../watch/identify.js';
import { createRawFiles, type RawFiles } from '../watch/raw-files.js';
import {
  type Act,
  BACKOFF,
  type DisposalContext,
  disposeOfRun,
  RESTORE_BACKOFF,
  restoreFound,
  restoreRun,
} from './disposal.js';

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
  proof(signal: AbortSignal): DisposalContext['prove'];
}

interface ProofDeps extends Pick<DisposalContext, 'signal' | 'clock' | 'log'> {
  readonly config: Pick<UsableConfig, 'notebook' | 'settings'>;
  readonly journal: Pick<Journal, 'outbox'>;
  readonly notebook: Notebook;
}

const CHECK_MS = 5000;
const AT_A_TIME = 100;
/** How long stopping waits for a share that may never respond. */
const STOP_MS = 5000;

/**
 * Moves or deletes the files of filed runs, after `prove` has read back from the notebook what that needs, and only if a
 * file still has the bytes that were filed. Each instrument by itself, because its share may hang.
 */
export function disposeOfSources(deps: SourcesDeps) {
  const { config, clock, log, instruments } = deps;
  const { sources, server } = deps.journal.outbox;
  const busy = new Map<string, Promise<void>>();
  const disposals = createBlocks(BACKOFF, clock);
  const restores = createBlocks(RESTORE_BACKOFF, clock);
  /** Files with private names that scans have found. */
  const found = new Map<string, FoundHidden>();
  const isSteady = createSteadiness(deps.unchangedMs, clock);
  const stopping = new AbortController();
  const { signal } = stopping;
  const context = { ...deps, signal, prove: deps.proof(signal) };

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
    const blocks = act === restoreRun ? restores : disposals;
    if (isBlocked) blocks.add(instrument);
    else blocks.remove(instrument);
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
      if (busy.has(instrument) || (act === restoreRun && restores.has(instrument)))
        for (const run of own) await sources.release(run);
      else busy.set(instrument, work(instrument, own, act));
    }
  }

  /** While nothing of this instrument is hidden on purpose. */
  async function restoreAll(instrument: string, own: readonly FoundHidden[]): Promise<void> {
    for (const one of own) {
      try {
        if (await restoreFound(one.aside, instrument, context)) found.delete(keyOf(one.aside));
      } catch (error) {
        log.warn({ file: String(one.aside), reason: explain(error) }, 'cannot give the file its name again, retrying');
      }
      one.failures += 1;
      one.dueAt = clock.monotonic() + backoffMs(one.failures - 1, RESTORE_BACKOFF);
    }
    busy.delete(instrument);
    loop.wake();
  }

  function startRestoring(): void {
    const due = [...found.values()].filter(({ dueAt }) => dueAt <= clock.monotonic());
    for (const instrument of new Set(due.map((one) => one.instrument)))
      if (!busy.has(instrument)) {
        const own = due.filter((one) => one.instrument === instrument);
        busy.set(instrument, restoreAll(instrument, own));
      }
  }

  const loop = every(CHECK_MS, clock, async () => {
    try {
      if (signal.aborted) return undefined;
      // First of all, whatever the configuration says: no file stays hidden after a crash.
      await start(await sources.claimHidden(clock.now()), restoreRun);
      startRestoring();
      // After a halt, it is not certain what was filed.
      if (!isSteady() || (await server(config.notebook.url).facts()).halted !== undefined) return undefined;
      const isFree = (name: string): boolean => !busy.has(name) && !disposals.has(name);
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
      const now = clock.monotonic();
      if (!found.has(keyOf(aside))) found.set(keyOf(aside), { instrument, aside, since: now, failures: 0, dueAt: now });
    },
    /** Files that keep private names: they belong to another journal, for example one that was lost. */
    strays(): string[] {
      const isLate = ({ since, failures }: FoundHidden): boolean =>
        failures > 0 && clock.monotonic() - since >= STRAY_MS;
      return [...found.values()].filter(isLate).map(({ aside }) => display(aside));
    },
    /** Completes or undoes what was begun. */
    async stop(): Promise<void> {
      stopping.abort();
      await loop.stop();
      await atMost(STOP_MS, clock, Promise.all(busy.values()));
    },
  };
}

interface FoundHidden {
  readonly instrument: string;
  readonly aside: Buffer;
  /** Monotonic, as `dueAt`. */
  readonly since: number;
  failures: number;
  dueAt: number;
}

const keyOf = (aside: Buffer): string => aside.toString('latin1');

/** Another daemon that watches the same share hides no file for so long. */
const STRAY_MS = 10 * 60_000;

/** Instruments whose next file would fail like the last one. Not durable: after a start, the cause may be gone. */
function createBlocks(backoff: typeof BACKOFF, clock: Clock) {
  const blocked = new Map<string, { readonly failures: number; readonly until: number }>();
  return {
    has: (instrument: string): boolean => (blocked.get(instrument)?.until ?? 0) > clock.monotonic(),
    add(instrument: string): void {
      const failures = (blocked.get(instrument)?.failures ?? 0) + 1;
      blocked.set(instrument, { failures, until: clock.monotonic() + backoffMs(failures - 1, backoff) });
    },
    remove: (instrument: string): boolean => blocked.delete(instrument),
  };
}

/** More than a clock is adjusted by between two looks, unless somebody sets it. */
const JUMP_MS = 2000;

/**
 * Whether the clock was not set for as long as nothing may be written to a file: the times in the journal would say
 * nothing about how long ago that was. Before the start, it may have been set, too.
 */
function createSteadiness(unchangedMs: number, clock: Clock): () => boolean {
  const read = () => clock.now() - clock.monotonic();
  let [since, offset] = [clock.monotonic(), read()];
  return () => {
    const before = offset;
    offset = read();
    if (Math.abs(offset - before) > JUMP_MS) since = clock.monotonic();
    return clock.monotonic() - since >= unchangedMs;
  };
}

/** Returns a function that reads a run back from the notebook, and throws unless that has what is needed. */
export function createProof({
  config,
  notebook,
  journal: { outbox },
  clock,
  log,
  signal,
}: ProofDeps): DisposalContext['prove'] {
  const { url } = config.notebook;
  const onRetry = (reason: string) => log.debug({ reason }, 'reading back is delayed');
  const reads = createNotebookReader({ ...notebook, newestExperiments: async () => [] }, { clock, signal, onRetry });
  return async ({ run }: FiledRunFiles, source: Instrument['source']): Promise<void> => {
    const { dialect } = await outbox.server(url).facts();
    const journal = openReader(config.settings.journal);
    try {
      const checked = await verifyRun(run, { server: url, notebook: reads, journal, dialect });
      // Without the draft, nothing was compared.
      const hasDraft = (await journal.filingOf(run.id)).draft !== undefined;
      if (isSafe(checked) || (source !== 'delete' && checked.isVerified && hasDraft)) return;
      const what = checked.findings[0]?.text ?? 'the body or a comment differs';
      throw new DisposalError('lasting', `not everything was read back from the notebook: ${what}`, {
        hint: `see \`labfeed show ${run.id}\` and \`labfeed audit\`; labfeed checks again once a day`,
      });
    } finally {
      await journal.close();
    }
  };
}

/** How raw files get from intake to delivery: through the spool, or from where they were read. */
interface AttachDeps {
  readonly config: UsableConfig;
  readonly journal: Pick<Journal, 'outbox'>;
  readonly spool: Spool;
  isSecretIn(text: string): boolean;
}

/** `config` decides about new runs, and about those that are not attached yet. */
export function attachFrom({ config, journal: { outbox }, spool, isSecretIn }: AttachDeps): AttachOptions {
  const named = (wanted: Instrument['attach']) =>
    config.instruments.filter(({ attach }) => attach === wanted).map(({ name }) => name);
  const plotted = new Set(config.instruments.flatMap((one) => (one.experiment.plot === 'never' ? [] : one.name)));
  return {
    isSecretIn,
    instruments: { attached: named('auto'), dropped: named('never') },
    isPlotted: (instrument) => plotted.has(instrument),
    async openSource(file) {
      const copy = await spool.open(file.sha256);
      if (!copy) return file.kind === 'raw' ? openContent(file.path, file) : undefined;
      return {
        read: () => copy.createReadStream({ start: 0, autoClose: false, highWaterMark: UPLOAD_CHUNK_BYTES }),
        close: () => copy.close(),
      };
    },
    uploaded: ({ sha256 }) => spool.remove(sha256, () => outbox.uploads.needs(sha256)),
  };
}

/** Looking for secrets in a chunk takes a few milliseconds. */
const UPLOAD_CHUNK_BYTES = 128 * 1024;

/** Until the dialect is known, files are copied: the notebook may be eLabFTW. */
export function rawFilesOf(
  { attach, experiment }: Instrument,
  { config, journal: { outbox }, spool }: AttachDeps,
): RawFiles | undefined {
  const { url, dialect } = config.notebook;
  if (attach === 'never' || dialect === 'v2') return undefined;
  const server = outbox.server(url);
  return createRawFiles({
    spool,
    maxBytes: config.settings.spool,
    isPlotted: experiment.plot !== 'never',
    isWanted: async () => dialect === 'elabftw' || (await server.facts()).dialect !== 'v2',
    isNeeded: outbox.uploads.needs,
  });
}

const SWEEP_MS = 10 * 60_000;

/** Removes copies of runs that were erased or ignored. */
export const sweepSpool = ({
  journal: { outbox },
  spool,
  clock,
  log,
}: AttachDeps & { readonly clock: Clock; readonly log: Log }): Loop =>
  every(SWEEP_MS, clock, async () => {
    const failed = (error: unknown) => log.warn({ reason: explain(error) }, 'cannot clean the spool, retrying later');
    await spool.sweep(outbox.uploads.needed).catch(failed);
    return undefined;
  });
