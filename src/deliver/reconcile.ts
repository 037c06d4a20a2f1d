import { NotebookError } from '../errors.js';
import { isProvisional, provisionalReference, provisionalTitle } from '../markers.js';
import type { OpenRun, ServerFacts } from '../outbox.js';
import { type DeliveryContext, type ExperimentRecord, gracePeriodMs, NotYetError, type Server } from './context.js';
import { isEntryStatus } from './failures.js';

/**
 * Adopts what an earlier POST of this run created. A match counts at once; absence counts only if the search began
 * after the grace period. Must run alone: with another creation in flight, its experiment could be adopted instead.
 */
export async function adoptCreated(
  run: OpenRun,
  facts: ServerFacts,
  context: DeliveryContext,
): Promise<number | undefined> {
  if (run.server !== context.server.url)
    throw undecided(`the outcome of creating its experiment on another notebook, ${run.server}, is unknown`);
  const checkGrace = await gracePeriod(run, 'a create request with an unknown outcome may still take effect', context);
  // With several creations of this run unaccounted for, adopting the first would leave the last one behind.
  if (run.unseen > 0) checkGrace();
  const candidates = await findCandidates(run, facts, context);
  // A title belongs to one run; a blank experiment can belong to any run with an unknown outcome.
  const expected = facts.keepsTitle === false ? await context.server.countUnknown() : 1 + run.unseen;
  if (candidates.length > expected)
    throw undecided(
      `the outcome of creating its experiment is unknown, and too many experiments match: ${candidates.join(', ')}`,
    );
  const [experiment] = candidates;
  if (experiment !== undefined) {
    const sweepBelow = run.unseen > 0 ? { sweepBelow: Math.max(...candidates) + 1 } : {};
    await context.outbox.record(run.id, { kind: 'created', experiment, found: true, ...sweepBelow });
    if (facts.keepsTitle === false) context.unknown.posts.adopted(run.id);
    return experiment;
  }
  // A proxy that has lost its backend answers 404 to everything.
  await context.notebook.listKeys();
  checkGrace();
  return undefined;
}

/**
 * The grace period of the last POST of this run; to be called before the search. The result throws if the period was not
 * over at that time.
 */
export async function gracePeriod(
  run: OpenRun,
  pending: string,
  { server, unknown, clock }: DeliveryContext,
): Promise<() => void> {
  const graceMs = await gracePeriodMs(server);
  const leftMs = (): number => graceMs - unknown.posts.elapsedMs(run.id);
  const isOver = leftMs() <= 0;
  return () => {
    if (!isOver) throw new NotYetError(pending, clock.now() + Math.max(0, leftMs()));
  };
}

/** Everything that creations of this run left behind has an id above this one; unknown if one was unseen. */
export const windowFloor = ({ floor, unseen }: OpenRun): number | undefined => (unseen > 0 ? undefined : floor);

/** In ascending order. */
async function findCandidates(run: OpenRun, facts: ServerFacts, context: DeliveryContext): Promise<number[]> {
  const candidates: number[] = [];
  const collect = async (experiments: AsyncGenerator<Seen>): Promise<void> => {
    for await (const { id, record } of experiments) {
      if (isOurCreation(record, run.reference, facts) && !(await context.server.hasExperiment(id))) candidates.push(id);
    }
  };
  const floor = windowFloor(run);
  if (floor !== undefined) {
    await collect(readUpward(floor, context));
  } else if (facts.highest !== undefined) {
    // Sent before any id or title was known. Another creation has since shown where the ids are.
    await collect(readDownward(facts.highest + 1, context));
    await collect(readUpward(facts.highest, context));
  }
  return candidates.sort((a, b) => a - b);
}

/** Unseen creations may lie below the first known id. What is found there is used by the next runs before any POST. */
export async function collectSpares(facts: ServerFacts, context: DeliveryContext): Promise<void> {
  const { server } = context;
  // Until it is known whether titles are kept, our experiments cannot be recognised.
  if (facts.sweep === undefined || facts.keepsTitle === undefined) return;
  for await (const { id, record } of readDownward(facts.sweep, context)) {
    if (!isUntouched(record, facts) || (await server.hasExperiment(id))) continue;
    const reference = typeof record.title === 'string' ? provisionalReference(record.title) : undefined;
    // Another labfeed may file into the same notebook; its references are not in our journal.
    if (reference === undefined || (await server.hasReference(reference))) await server.addSpare(id, reference);
  }
  await server.learn({ sweep: null });
}

const undecided = (message: string): NotebookError =>
  new NotebookError('conflict', message, {
    hint: 'find the experiment of this run in the notebook and assign it with `labfeed adopt`; labfeed does not guess',
  });

/** After this many missing ids in a row, the end of the server's ids is assumed. */
export const END_OF_IDS = 8;

/** How far below a known id an unseen creation is looked for. */
const MAX_DEPTH = 200;

interface Seen {
  readonly id: number;
  readonly record: ExperimentRecord;
}

/** A 403 is somebody else's private entry: the id exists, and is not ours. */
export async function tryRead<T>(
  id: number,
  { readExperiment }: { readExperiment(id: number): Promise<T> },
): Promise<T | 'missing' | 'private'> {
  try {
    return await readExperiment(id);
  } catch (error) {
    if (isEntryStatus(error, 404)) return 'missing';
    if (error instanceof NotebookError && error.failure === 'conflict') return 'private';
    throw error;
  }
}

/** The experiments above this id. There is no ceiling: a late creation can have a higher id. */
export const readUpward = (floor: number, context: DeliveryContext): AsyncGenerator<Seen> =>
  readFrom(floor + 1, 1, context);

const readDownward = (ceiling: number, context: DeliveryContext): AsyncGenerator<Seen> =>
  readFrom(ceiling - 1, -1, context);

async function* readFrom(first: number, step: 1 | -1, { notebook, stopping }: DeliveryContext): AsyncGenerator<Seen> {
  const end = step === 1 ? Number.POSITIVE_INFINITY : Math.max(0, first - MAX_DEPTH);
  for (let id = first, missing = 0; missing < END_OF_IDS && id !== end && id > 0; id += step) {
    stopping.throwIfAborted();
    const record = await tryRead(id, notebook);
    missing = record === 'missing' ? missing + 1 : 0;
    if (typeof record === 'object') yield { id, record };
  }
}

/** Fields in which two blank experiments of one user differ: ids, links, times, and the day of creation. */
const VARYING = /^(id|elabid|uuid|date|sharelink|.*link|.*_at|.*changelog.*|.*time.*|created.*|modified.*|updated.*)$/i;

/** An experiment without its ids and times. Owner and team are kept: another person's blank differs in those. */
function profileOf(record: ExperimentRecord): string {
  const kept = Object.entries(record).filter(([name]) => !VARYING.test(name));
  return JSON.stringify(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The first creation that is read back shows whether the server keeps its title. */
export async function learnTitles(record: ExperimentRecord, server: Server): Promise<void> {
  const keepsTitle = typeof record.title === 'string' && isProvisional(record.title);
  await server.learn(keepsTitle ? { keepsTitle } : { keepsTitle, blank: profileOf(record) });
}

/** Whether a creation with this reference leaves such an experiment behind. */
export const isOurCreation = (record: ExperimentRecord, reference: string, facts: ServerFacts): boolean =>
  facts.keepsTitle === false ? isBlank(record, facts) : record.title === provisionalTitle(reference);

/** Whether nobody has changed the experiment since a creation of ours, whichever it was. */
export function isUntouched(record: ExperimentRecord, facts: ServerFacts): boolean {
  if (facts.keepsTitle === false) return isBlank(record, facts);
  return typeof record.title === 'string' && isProvisional(record.title);
}

const isBlank = (record: ExperimentRecord, { blank }: ServerFacts): boolean =>
  blank !== undefined && profileOf(record) === blank;
