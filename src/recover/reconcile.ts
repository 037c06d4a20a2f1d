import { backoffMs, type Clock } from '../clock.js';
import { isOurCreation, tryRead } from '../deliver/reconcile.js';
import { NotebookError } from '../errors.js';
import type { Journal } from '../journal/journal.js';
import type { MarkedComment, PlacedRun } from '../journal/recovery.js';
import { markIn, originIn, provisionalReference, readLabel } from '../markers.js';
import type { ServerFacts } from '../outbox.js';

interface ReconcileDeps {
  readonly server: string;
  readonly journal: Pick<Journal, 'outbox' | 'recovery'>;
  readonly notebook: ReadableNotebook;
  readonly ask: Ask;
  /** Which experiment is looked at; throws when it is time to stop. */
  progress(id: number): void;
}

/** What became of the runs that the journal had as filed, by their numbers. */
export interface Reconciled {
  /** Below this id, all that there is was looked at or is as the journal has it. */
  readonly first: number;
  /** Their experiments are gone. */
  readonly gone: number[];
  /** Their experiments lack what was written since: it is written again. */
  readonly reopened: number[];
}

type Became = 'gone' | 'reopened' | 'asItWas';

/**
 * Holds the journal against a notebook that was set back to an older state. From `setBack` on, at the latest, its ids
 * have gone or were given out again; below, it holds things as they were, some of them unfinished. Afterwards the
 * journal knows no id that it did not see, and ids can be counted on again.
 */
export async function reconcile(setBack: number, deps: ReconcileDeps): Promise<Reconciled> {
  const { server, journal } = deps;
  const result = { gone: [] as number[], reopened: [] as number[] };
  const facts = await journal.outbox.server(server).facts();
  const settle = async (run: PlacedRun, isBelow: boolean): Promise<Became> => {
    const became = await examine(run, isBelow, facts, deps);
    if (became !== 'asItWas') result[became].push(run.id);
    return became;
  };
  for (const run of await journal.recovery.placedFrom(server, setBack)) await settle(run, false);
  let lowest = setBack;
  let last = await journal.recovery.placedBelow(server, lowest);
  while (last !== undefined && (await settle(last, false)) === 'gone') {
    lowest = last.experiment;
    last = await journal.recovery.placedBelow(server, lowest);
  }
  // The older state was saved after this run had come in: only what has changed since can be unfinished there.
  const suspects = last ? await journal.recovery.changedSince(server, last.addedAt, last.experiment) : [];
  for (const run of suspects) await settle(run, true);
  await journal.recovery.settle(server, last?.experiment ?? (await lastBelow(lowest, deps)));
  for (const runs of Object.values(result)) runs.sort((a, b) => a - b);
  return { ...result, first: last ? last.experiment + 1 : lowest };
}

/** `isBelow`: the id is from before the older state, so that whatever is there is the run's, edited or not. */
async function examine(
  run: PlacedRun,
  isBelow: boolean,
  facts: ServerFacts,
  { journal, notebook, ask, progress }: ReconcileDeps,
): Promise<Became> {
  progress(run.experiment);
  const page = await ask(() => tryRead(run.experiment, notebook));
  // As with any absence: a proxy that has lost the notebook behind it answers 404 to everything.
  if (page === 'missing') await ask(() => notebook.listKeys());
  const record = typeof page === 'object' ? page : {};
  const isBlank =
    provisionalReference(String(record.title)) === run.reference ||
    (isBelow && isOurCreation(record, run.reference, facts));
  if (isBlank && run.drafted) {
    await journal.recovery.refill(run);
    return 'reopened';
  }
  if (isFiled(record.body, run)) {
    const marks = marksOf(await ask(() => notebook.listComments(run.experiment)));
    const present = new Set(marks.filter(({ reference }) => reference === run.reference).map(({ n }) => n));
    return run.drafted && (await journal.recovery.keepComments(run, present)) ? 'reopened' : 'asItWas';
  }
  if (isBelow) return 'asItWas';
  await journal.recovery.release(run);
  return 'gone';
}

/** Whether a body ends with the line that says that it came from this run. */
export function isFiled(
  body: unknown,
  { instrument, sha256 }: Pick<PlacedRun, 'instrument' | 'sha256'>,
): boolean {
  const origin = typeof body === 'string' ? originIn(body) : undefined;
  return origin?.sha256 === sha256 && readLabel(origin.label, [instrument]) !== undefined;
}

/** The last experiment that is there before this one, whoever's it is; 0 where there is none. */
async function lastBelow(experiment: number, { notebook, ask, progress }: ReconcileDeps): Promise<number> {
  for (let id = experiment - 1; id > 0; id--) {
    progress(id);
    if ((await ask(() => tryRead(id, notebook))) !== 'missing') return id;
  }
  return 0;
}

/** What recovery asks of the notebook: nothing but to be read. */
export interface ReadableNotebook {
  listKeys(): Promise<unknown>;
  readExperiment(id: number): Promise<ReadableExperiment>;
  listComments(experiment: number): Promise<readonly ReadableComment[]>;
}

export type ReadableExperiment = {
  readonly title?: unknown;
  readonly date?: unknown;
  readonly body?: unknown;
} & Readonly<Record<string, unknown>>;

export type ReadableComment = { readonly id: number } & Readonly<Record<string, unknown>>;

/** Sends a request, and again for as long as it may yet succeed. */
export type Ask = <T>(request: () => Promise<T>) => Promise<T>;

/** The comments that bear a mark. The contract names no fields: it may stand in any text of the record. */
export function marksOf(records: readonly ReadableComment[]): MarkedComment[] {
  return records.flatMap((record) =>
    Object.values(record).flatMap((value) => {
      const mark = typeof value === 'string' ? markIn(value) : undefined;
      return mark ? [{ ...mark, id: record.id }] : [];
    }),
  );
}

interface PatienceDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The notebook does not answer for now. */
  trouble(reason: string): void;
  /** What is thrown when it was tried often enough. */
  brokenOff(cause: NotebookError): Error;
}

/** So often in a row a request is tried that could succeed: with the waits between, some minutes. */
const MOST_ATTEMPTS = 8;

/** Lets a long work of many requests outlast a notebook that is away for some minutes. */
export function createPatience({ clock, signal, trouble, brokenOff }: PatienceDeps): Ask {
  return async (request) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await request();
      } catch (error) {
        if (!(error instanceof NotebookError) || !error.retryable || error.failure === 'auth') throw error;
        if (attempt === MOST_ATTEMPTS) throw brokenOff(error);
        trouble(error.message);
        // Where everybody waits, the gate sees to it.
        if (error.scope === 'run') await clock.sleep(backoffMs(attempt), signal);
        signal.throwIfAborted();
      }
    }
  };
}
