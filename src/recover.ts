import type { Clock } from './clock.js';
import type { InstrumentConfig } from './config/schema.js';
import { backoffMs } from './deliver/backoff.js';
import { END_OF_IDS } from './deliver/window.js';
import { LabfeedError, NotebookError } from './errors.js';
import type { Journal } from './journal/journal.js';
import type { MarkedComment } from './journal/recovery.js';
import { markIn, type Origin, originIn, provisionalReference, readLabel } from './reference.js';

/** What recovery asks of the notebook: nothing but to be read. */
export interface ReadableNotebook {
  listKeys(): Promise<unknown>;
  readExperiment(id: number): Promise<{ readonly title?: unknown; readonly body?: unknown }>;
  listComments(
    experiment: number,
  ): Promise<readonly ({ readonly id: number } & Readonly<Record<string, unknown>>)[]>;
}

export interface IdRange {
  readonly from: number;
  readonly to: number;
}

export type RecoverableInstrument = Pick<InstrumentConfig, 'duplicates'> & {
  readonly name: string;
  readonly comments: Pick<InstrumentConfig['comments'], 'readings' | 'text'>;
};

export interface RecoverDeps {
  readonly server: string;
  /** All that there are: what comes from another is not ours to know. */
  readonly instruments: readonly RecoverableInstrument[];
  readonly journal: Pick<Journal, 'recovery' | 'servers'>;
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
export interface Recovered {
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
  const { server, journal, notebook, range, signal } = deps;
  const ask = createPatience(deps);
  const { first, halted } = await journal.recovery.begin(server);
  // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
  await ask(() => notebook.listKeys());
  const { from, to } = range ?? { from: first, to: Number.MAX_SAFE_INTEGER };
  const result: Recovered = { from, to: from - 1, ...NOTHING, unknownInstruments: [], withoutComments: [] };
  for (let id = from, missing = 0; id <= to && (range || missing < END_OF_IDS); id++) {
    signal.throwIfAborted();
    deps.progress(id, result);
    const seen = await ask(() => look(notebook, id));
    missing = seen === 'missing' ? missing + 1 : 0;
    if (seen === 'missing') continue;
    tally(result, id, seen === 'private' ? 'others' : await takeIn(id, seen, ask, deps));
    result.to = id;
    await journal.recovery.saw(server, id);
  }
  await ask(() => notebook.listKeys());
  const isVain = range === undefined && from === 1 && result.to === 0;
  // A part of the notebook proves nothing about the rest: what kept labfeed from sending still does.
  const isPart = range !== undefined && range.from > first;
  await journal.recovery.end(server, isVain || isPart ? halted : undefined);
  if (isVain) throw inVain(server);
  return result;
}

/** An empty notebook looks just like one whose first experiments are gone, and taking the latter for it files all twice. */
const inVain = (server: string): LabfeedError =>
  new LabfeedError(`none of the first ${END_OF_IDS} ids is an experiment on ${server}`, {
    hint: `if its experiments begin later, say which to read: labfeed recover --ids A-B; if it has none at all: --ids 1-${END_OF_IDS}`,
  });

const NOTHING = { recovered: 0, completed: 0, known: 0, spares: 0, others: 0 };

interface Page {
  readonly title: string;
  readonly origin: Origin | undefined;
}

/** A 403 is somebody else's private entry: an id that exists, and is not ours. */
async function look(notebook: ReadableNotebook, id: number): Promise<Page | 'missing' | 'private'> {
  try {
    const { title, body } = await notebook.readExperiment(id);
    return {
      title: typeof title === 'string' ? title : '',
      origin: typeof body === 'string' ? originIn(body) : undefined,
    };
  } catch (error) {
    if (!(error instanceof NotebookError) || error.failure !== 'conflict') throw error;
    return error.status === 404 ? 'missing' : 'private';
  }
}

/** What an experiment turned out to be. `bare`: recovered, and without the comments that it should have. */
type Kind = keyof typeof NOTHING | 'unknownInstrument' | 'bare';

function tally(result: Recovered, id: number, kind: Kind): void {
  if (kind === 'unknownInstrument') return void result.unknownInstruments.push(id);
  if (kind === 'bare') result.withoutComments.push(id);
  result[kind === 'bare' ? 'recovered' : kind] += 1;
}

async function takeIn(id: number, { title, origin }: Page, ask: Ask, deps: RecoverDeps): Promise<Kind> {
  const { server, instruments, journal, notebook } = deps;
  const reference = provisionalReference(title);
  if (reference !== undefined) {
    if (await journal.servers.hasExperiment(server, id)) return 'known';
    await journal.servers.addSpare(server, id, reference);
    return 'spares';
  }
  if (origin === undefined) return 'others';
  const names = instruments.map(({ name }) => name);
  const source = readLabel(origin.label, names);
  const instrument = instruments.find(({ name }) => name === source?.instrument);
  if (source === undefined || instrument === undefined) return 'unknownInstrument';
  if (await journal.recovery.owns(server, id)) return 'known';
  const comments = marked(await ask(() => notebook.listComments(id)));
  const copies = instrument.duplicates === 'ingest';
  const run = { ...source, server, experiment: id, sha256: origin.sha256, copies, comments };
  const became = await journal.recovery.take(run);
  const { readings, text } = instrument.comments;
  const isBare = comments.length === 0 && (readings !== 'none' || text !== undefined);
  return became === 'recovered' && isBare ? 'bare' : became;
}

/** The contract names no fields: the mark may stand in any text of the record. */
function marked(records: Awaited<ReturnType<ReadableNotebook['listComments']>>): MarkedComment[] {
  return records.flatMap((record) =>
    Object.values(record).flatMap((value) => {
      const mark = typeof value === 'string' ? markIn(value) : undefined;
      return mark ? [{ ...mark, id: record.id }] : [];
    }),
  );
}

type Ask = <T>(request: () => Promise<T>) => Promise<T>;

/** So often in a row a request is tried that could succeed: with the waits between, some minutes. */
const MOST_ATTEMPTS = 8;

function createPatience({ clock, signal, trouble }: RecoverDeps): Ask {
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
      }
    }
  };
}

export const brokenOff = (cause: unknown): LabfeedError =>
  new LabfeedError(`recovery was broken off: ${cause instanceof Error ? cause.message : cause}`, {
    hint: 'what was recovered is kept; run it again, and it goes on where it stopped. Until then nothing is sent',
    cause,
  });
