import type { Clock } from '../clock.js';
import type { ListedInstrument, UsableConfig } from '../config/load.js';
import { openNotebook } from '../connection.js';
import { END_OF_IDS, isRestored, tryRead } from '../deliver/reconcile.js';
import { explain, LabfeedError } from '../errors.js';
import { type Journal, openJournal } from '../journal/journal.js';
import { originIn, provisionalReference, readLabel } from '../markers.js';
import {
  type Ask,
  createPatience,
  marksOf,
  type ReadableExperiment,
  type ReadableNotebook,
  type Reconciled,
  reconcile,
} from './reconcile.js';

export interface IdRange {
  readonly from: number;
  readonly to: number;
}

export interface RecoverDeps {
  readonly server: string;
  /** All that there are: what comes from another is not ours to know. */
  readonly instruments: readonly ListedInstrument[];
  readonly journal: Pick<Journal, 'outbox' | 'recovery'>;
  readonly notebook: ReadableNotebook;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Every id in it, however many are missing; without it, from what the journal knows to the end. */
  readonly range?: IdRange | undefined;
  progress(id: number, so: Recovered): void;
  /** The notebook does not answer for now. */
  trouble(reason: string): void;
}

/** What was found, in numbers or ids of experiments. */
export interface Recovered extends Omit<Reconciled, 'first'> {
  from: number;
  /** The last one that is there. */
  to: number;
  /** Runs that the journal did not know. */
  recovered: number;
  /** Runs that the journal had as unfinished. */
  completed: number;
  known: number;
  /** Experiments of ours that were made and never filled in: the next runs use them. */
  spares: number;
  /** Of other people. */
  others: number;
  /** Filed by a labfeed, from instruments that this configuration does not have. */
  unknownInstruments: number[];
  /** Recovered ones without any comment of labfeed's: perhaps it was broken off there. */
  withoutComments: number[];
}

/** Refills the journal from the notebook. Whatever was taken in stays, should it be broken off. */
export async function recover(deps: RecoverDeps): Promise<Recovered> {
  const { server, journal, notebook, range } = deps;
  // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
  // Asked before anything is begun: who cannot reach the notebook has changed nothing.
  await createPatience({ ...deps, brokenOff: notReached })(() => notebook.listKeys());
  const ask = createPatience({ ...deps, brokenOff });
  const { halted, restoredFrom: noticed } = await journal.recovery.begin(server);
  const result: Recovered = { from: 0, to: 0, ...NOTHING, ...emptyLists() };
  const setBack = noticed ?? (await findSetBack(ask, deps));
  const unknown =
    setBack === undefined
      ? await journal.recovery.firstUnknown(server)
      : await putRight(setBack, result, ask, deps);
  // A part of the notebook proves nothing about the rest: what kept labfeed from sending still does. But where nothing
  // is known, whoever names the ids knows where they begin.
  const isPart = range !== undefined && unknown !== undefined && range.from > unknown;
  const first = unknown ?? 1;
  await readAll(range ?? { from: first, to: Number.MAX_SAFE_INTEGER }, isPart, result, ask, deps);
  await ask(() => notebook.listKeys());
  const isVain = range === undefined && setBack === undefined && first === 1 && result.to === 0;
  if (isVain) {
    // Somebody has reason to think that there is something: what would be sent now may be filed there already.
    await journal.recovery.end(server, halted ?? explain(inVain(server)));
    throw inVain(server);
  }
  await journal.recovery.end(server, isPart ? halted : undefined);
  return result;
}

/** Resolves with the first id that may be unknown. */
async function putRight(setBack: number, result: Recovered, ask: Ask, deps: RecoverDeps): Promise<number> {
  const progress = (id: number): void => watchOver(id, result, deps);
  const { first, ...became } = await reconcile(setBack, { ...deps, ask, progress });
  Object.assign(result, became);
  return first;
}

/** Whoever knows that the notebook was set back need not wait until the daemon has met it. */
async function findSetBack(
  ask: Ask,
  { server, journal, notebook }: RecoverDeps,
): Promise<number | undefined> {
  const last = await journal.outbox.server(server).lastExperiments(END_OF_IDS);
  if (!(await isRestored(last, (id) => ask(() => tryRead(id, notebook))))) return undefined;
  const setBack = Math.min(...last);
  // Once runs were put right, the last ones no longer tell: broken off, it is to go on.
  await journal.outbox.server(server).learn({ restoredFrom: setBack });
  return setBack;
}

async function readAll(
  { from, to }: IdRange,
  isPart: boolean,
  result: Recovered,
  ask: Ask,
  deps: RecoverDeps,
): Promise<void> {
  const { server, journal, notebook, range } = deps;
  Object.assign(result, { from, to: from - 1 });
  for (let id = from, missing = 0; id <= to && (range || missing < END_OF_IDS); id++) {
    watchOver(id, result, deps);
    const seen = await ask(() => tryRead(id, notebook));
    missing = seen === 'missing' ? missing + 1 : 0;
    if (seen === 'missing') continue;
    tally(result, id, seen === 'private' ? 'others' : await takeIn(id, seen, ask, deps));
    result.to = id;
    // Beyond a part that was not read, no id is counted from.
    if (!isPart) await journal.recovery.saw(server, id);
  }
}

function watchOver(id: number, result: Recovered, { signal, progress }: RecoverDeps): void {
  signal.throwIfAborted();
  progress(id, result);
}

/** An empty notebook looks just like one whose first experiments are gone, and taking the latter for it files all twice. */
const inVain = (server: string): LabfeedError =>
  new LabfeedError(`none of the first ${END_OF_IDS} ids is an experiment on ${server}`, {
    hint: `if its experiments begin later, say which to read: labfeed recover --ids A-B; if it has none at all: --ids 1-${END_OF_IDS}`,
  });

const NOTHING = { recovered: 0, completed: 0, known: 0, spares: 0, others: 0 };

const emptyLists = () => ({ unknownInstruments: [], withoutComments: [], gone: [], reopened: [] });

/** What an experiment turned out to be. `bare`: recovered, and without the comments that it should have. */
type Kind = keyof typeof NOTHING | 'unknownInstrument' | 'bare';

function tally(result: Recovered, id: number, kind: Kind): void {
  if (kind === 'unknownInstrument') return void result.unknownInstruments.push(id);
  if (kind === 'bare') result.withoutComments.push(id);
  result[kind === 'bare' ? 'recovered' : kind] += 1;
}

async function takeIn(
  id: number,
  { title, body }: ReadableExperiment,
  ask: Ask,
  deps: RecoverDeps,
): Promise<Kind> {
  const { server, instruments, journal, notebook } = deps;
  const reference = provisionalReference(String(title));
  if (reference !== undefined) {
    if (await journal.outbox.server(server).hasExperiment(id)) return 'known';
    await journal.outbox.server(server).addSpare(id, reference);
    return 'spares';
  }
  const origin = typeof body === 'string' ? originIn(body) : undefined;
  if (origin === undefined) return 'others';
  const names = instruments.map(({ name }) => name);
  const source = readLabel(origin.label, names);
  const instrument = instruments.find(({ name }) => name === source?.instrument);
  if (source === undefined || instrument === undefined) return 'unknownInstrument';
  if (await journal.recovery.owns(server, id)) return 'known';
  const comments = marksOf(await ask(() => notebook.listComments(id)));
  const copies = instrument.duplicates === 'ingest';
  const run = { ...source, server, experiment: id, sha256: origin.sha256, copies, comments };
  const became = await journal.recovery.take(run);
  const { readings, text } = instrument.comments;
  const isBare = comments.length === 0 && (readings !== 'none' || text !== undefined);
  return became === 'recovered' && isBare ? 'bare' : became;
}

const notReached = (cause: unknown): LabfeedError =>
  new LabfeedError(`the notebook cannot be reached: ${cause instanceof Error ? cause.message : cause}`, {
    hint: 'nothing was read or changed: run it again when the notebook is there',
    cause,
  });

const brokenOff = (cause: unknown): LabfeedError =>
  new LabfeedError(`recovery was broken off: ${cause instanceof Error ? cause.message : cause}`, {
    hint: 'what was recovered is kept; run it again, and it goes on where it stopped. Until then nothing is sent',
    cause,
  });

interface RecoveryOptions {
  readonly config: UsableConfig;
  /** Where the journal is. */
  readonly path: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly range: IdRange | undefined;
  progress(id: number, so: Recovered): void;
  trouble(reason: string): void;
}

/** From the notebook to the journal: the client, the gate and the journal that no daemon holds, put together. */
export async function recoverJournal(options: RecoveryOptions): Promise<Recovered> {
  const { config, path, clock, signal } = options;
  // The key is read first: where there is none, no journal is made.
  const notebook = openNotebook(config, { clock, signal });
  const journal = await openJournal(path, clock);
  try {
    return await recover({
      ...options,
      server: config.notebook.url,
      instruments: config.listed,
      journal,
      notebook,
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    const { halted } = await journal.outbox.server(config.notebook.url).facts();
    throw halted === undefined
      ? new LabfeedError('stopped before anything was read or changed')
      : brokenOff('it was stopped');
  } finally {
    await notebook.close();
    await journal.close();
  }
}
