import { NotebookError } from '../errors.js';
import { isProvisional, type Origin, originIn, provisionalReference, provisionalTitle } from '../markers.js';
import { type Dialect, dialectOf } from '../model.js';
import type { OpenRun, ServerFacts, ServerOutbox } from '../outbox.js';
import { type DeliverDeps, type ExperimentRecord, HaltedError, lookWithGrace } from './context.js';

interface Preparation {
  /** As configured; `auto` finds out. */
  readonly dialect: 'auto' | Dialect;
  /** Whether a filed experiment that says so is one that this journal should know. */
  isUnknownRun(origin: Origin): Promise<boolean>;
}

/** What has to be known of a server before anything is sent to it. */
export async function prepare({ dialect, isUnknownRun }: Preparation, deps: DeliverDeps): Promise<void> {
  const { memory } = deps;
  const facts = await memory.facts();
  if (facts.halted !== undefined) throw new HaltedError(facts.halted);
  const spoken = dialect === 'auto' ? (facts.dialect ?? dialectOf(await deps.notebook.listKeys())) : dialect;
  if (spoken !== facts.dialect) await memory.learn({ dialect: spoken });
  if (facts.highest !== undefined) await compareAges(facts.highest, isUnknownRun, deps);
  else if (spoken === 'elabftw') await searchOlder(isUnknownRun, deps);
}

/**
 * Nothing is known of this server yet: perhaps there was a journal before this one. That a search finds nothing proves
 * nothing; but what it finds counts.
 */
async function searchOlder(
  isUnknownRun: Preparation['isUnknownRun'],
  { notebook }: DeliverDeps,
): Promise<void> {
  const found = await notebook.searchBodies(['labfeed ', ' sha256:']).catch((error: unknown) => {
    // Older versions cannot search so.
    if (error instanceof NotebookError && !error.retryable) return [];
    throw error;
  });
  for (const { id, ...record } of found) {
    const origin = originOf(record);
    if (origin && (await isUnknownRun(origin))) throw journalIsOlder(id);
  }
}

/**
 * Runs above our highest id that bear our mark and are not in the journal: the journal is older than the notebook.
 * A numbering that ends below what we have filed: the notebook is the older one.
 */
async function compareAges(
  highest: number,
  isUnknownRun: Preparation['isUnknownRun'],
  deps: DeliverDeps,
): Promise<void> {
  const { memory, notebook } = deps;
  for await (const { id, record } of readUpward(highest, deps)) {
    const origin = originOf(record);
    if (origin && (await isUnknownRun(origin))) throw journalIsOlder(id);
    await keepStray(id, record, deps);
  }
  // Where fewer are gone, the next creation's id tells.
  const last = await memory.lastExperiments(END_OF_IDS);
  if (!(await isSetBack(last, (id) => lookAt(id, notebook)))) return;
  // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
  await notebook.listKeys();
  const from = Math.min(...last);
  await haltSetBack(from, `our last experiments there, ${from} to ${last[0]}, are gone`, deps);
}

/**
 * A creation that this journal does not know of, since it is older or the server was late: the run that it was made for
 * takes it before it makes another. One that still waits for its answer looks for it by itself.
 */
async function keepStray(id: number, { title }: ExperimentRecord, { memory }: DeliverDeps): Promise<void> {
  const reference = typeof title === 'string' ? provisionalReference(title) : undefined;
  if (reference === undefined || (await memory.isCreating(reference))) return;
  if (!(await memory.hasExperiment(id))) await memory.addSpare(id, reference);
}

const originOf = ({ body }: ExperimentRecord): Origin | undefined =>
  typeof body === 'string' ? originIn(body) : undefined;

const journalIsOlder = (id: number): HaltedError =>
  new HaltedError(
    `experiment ${id} was filed by labfeed, but the journal does not know it: the journal is older than the notebook`,
    {
      hint: 'stop labfeed, run `labfeed recover`, which refills the journal from the notebook, and start it again; nothing is sent until then',
    },
  );

/**
 * Looks for what an earlier POST of this run may have made. To be called alone: with another creation unanswered,
 * that one's experiment could be taken for this one's.
 */
export const findLost = (run: OpenRun, facts: ServerFacts, deps: DeliverDeps): Promise<number | undefined> =>
  lookWithGrace(run, 'a creation whose answer was lost may still be carried out', deps, () =>
    findCreated(run, facts, deps),
  );

async function findCreated(run: OpenRun, facts: ServerFacts, deps: DeliverDeps): Promise<number | undefined> {
  const { notebook, record, memory, server } = deps;
  if (run.server !== server) throw held(`the creation's answer was lost at another notebook, ${run.server}`);
  const candidates = await findCandidates(run, facts, deps);
  // A title is one run's; blank experiments can be anybody's whose creation was lost. More of them than losses: hold.
  const explained = facts.keepsTitle === false ? await memory.countUnknown() : 1 + run.unseen;
  if (candidates.length > explained) {
    const ids = candidates.join(', ');
    throw held(`the creation's answer was lost, and more experiments than that could be it: ${ids}`);
  }
  const [experiment, ...others] = candidates;
  if (experiment === undefined) {
    // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
    await notebook.listKeys();
    return undefined;
  }
  const sweepBelow = run.unseen > 0 ? { sweepBelow: (others.at(-1) ?? experiment) + 1 } : {};
  await record(run.id, { kind: 'created', experiment, found: true, ...sweepBelow });
  if (facts.keepsTitle === false) deps.losses.adopted(run.id);
  return experiment;
}

/** The id above which all that creations of this run left behind must lie; none if one was lost unseen. */
export const anchorOf = ({ floor, unseen }: OpenRun): number | undefined => (unseen > 0 ? undefined : floor);

async function findCandidates(run: OpenRun, facts: ServerFacts, deps: DeliverDeps): Promise<number[]> {
  const { highest } = facts;
  const candidates: number[] = [];
  const collect = async (experiments: AsyncGenerator<Seen>): Promise<void> => {
    for await (const { id, record } of experiments) {
      if (isOurCreation(record, run.reference, facts) && !(await deps.memory.hasExperiment(id)))
        candidates.push(id);
    }
  };
  const anchor = anchorOf(run);
  if (anchor !== undefined) {
    await collect(readUpward(anchor, deps));
  } else if (highest !== undefined) {
    // Lost before any id or title was known: since then somebody's creation has shown where the ids are.
    await collect(readDownward(highest + 1, deps));
    await collect(readUpward(highest, deps));
  }
  return candidates.sort((a, b) => a - b);
}

/**
 * After the very first creation on a server was lost and another one made, the lost one may lie below it.
 * What is found there is used by the next run before any POST.
 */
export async function sweep(facts: ServerFacts, deps: DeliverDeps): Promise<void> {
  const { memory } = deps;
  // Without knowing whether titles are kept, ours cannot be told from others: later, then.
  if (facts.sweep === undefined || facts.keepsTitle === undefined) return;
  for await (const { id, record } of readDownward(facts.sweep, deps)) {
    if (!isUntouched(record, facts) || (await memory.hasExperiment(id))) continue;
    const reference = typeof record.title === 'string' ? provisionalReference(record.title) : undefined;
    // Another labfeed may file into the same notebook: its creations bear references that are not in our journal.
    if (reference === undefined || (await memory.hasReference(reference)))
      await memory.addSpare(id, reference);
  }
  await memory.learn({ sweep: null });
}

const held = (message: string): NotebookError =>
  new NotebookError('conflict', message, {
    hint: 'look in the notebook which one it is; labfeed does not guess',
  });

/** After so many missing ids in a row, the end of the server's numbering is taken to be reached. */
export const END_OF_IDS = 8;

/** Without a floor, how far below a known id a lost experiment is looked for: others may have created many since. */
const DEEPEST = 200;

interface Seen {
  readonly id: number;
  readonly record: ExperimentRecord;
}

/** What is under an id. A 403 is somebody else's private entry: an id that exists, and is not ours. */
export async function lookAt<T>(
  id: number,
  { readExperiment }: { readExperiment(id: number): Promise<T> },
): Promise<T | 'missing' | 'private'> {
  try {
    return await readExperiment(id);
  } catch (error) {
    if (!(error instanceof NotebookError) || error.failure !== 'conflict') throw error;
    return error.status === 404 ? 'missing' : 'private';
  }
}

/** Every experiment above this id. The window has no ceiling: what was cut off can come late, with a higher id. */
const readUpward = (floor: number, deps: DeliverDeps): AsyncGenerator<Seen> => read(floor + 1, 1, deps);

/** The experiments below this id, as far as a lost one can lie. */
const readDownward = (ceiling: number, deps: DeliverDeps): AsyncGenerator<Seen> =>
  read(ceiling - 1, -1, deps);

async function* read(from: number, step: 1 | -1, { notebook, goOn }: DeliverDeps): AsyncGenerator<Seen> {
  const end = step === 1 ? Number.POSITIVE_INFINITY : Math.max(0, from - DEEPEST);
  for (let id = from, missing = 0; missing < END_OF_IDS && id !== end && id > 0; id += step) {
    goOn();
    const record = await lookAt(id, notebook);
    missing = record === 'missing' ? missing + 1 : 0;
    if (typeof record === 'object') yield { id, record };
  }
}

/**
 * Whether the server's numbering ends below what we have filed: so many of our last experiments are missing, and nothing
 * is above them. Fewer may well have been deleted by people.
 */
export async function isSetBack(
  last: readonly number[],
  look: (id: number) => Promise<unknown>,
): Promise<boolean> {
  const [highest = 0] = last;
  if (last.length < END_OF_IDS) return false;
  for (const id of [...last, ...Array.from({ length: END_OF_IDS }, (_, n) => highest + 1 + n)])
    if ((await look(id)) !== 'missing') return false;
  return true;
}

/** Fields in which two blank experiments of the same user differ: ids, links, times, and the day they were made. */
const VARYING =
  /^(id|elabid|uuid|date|sharelink|.*link|.*_at|.*changelog.*|.*time.*|created.*|modified.*|updated.*)$/i;

/** What an experiment looks like in all but ids and times. Owner and team stay in: a person's blank differs in those. */
function profileOf(record: ExperimentRecord): string {
  const kept = Object.entries(record).filter(([name]) => !VARYING.test(name));
  return JSON.stringify(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether the server keeps a creation's title is seen on the first one that is read back, and remembered. */
export async function learnTitles(record: ExperimentRecord, memory: ServerOutbox): Promise<void> {
  const keepsTitle = typeof record.title === 'string' && isProvisional(record.title);
  await memory.learn(keepsTitle ? { keepsTitle } : { keepsTitle, blank: profileOf(record) });
}

/** Whether this is what a creation of ours with this reference leaves behind. */
export function isOurCreation(
  record: ExperimentRecord,
  reference: string,
  { keepsTitle, blank }: ServerFacts,
): boolean {
  if (keepsTitle !== false) return record.title === provisionalTitle(reference);
  return blank !== undefined && profileOf(record) === blank;
}

/** Whether nobody has touched an experiment since a creation of ours made it, whichever one it was. */
export function isUntouched(record: ExperimentRecord, { keepsTitle, blank }: ServerFacts): boolean {
  if (keepsTitle !== false) return typeof record.title === 'string' && isProvisional(record.title);
  return blank !== undefined && profileOf(record) === blank;
}

/**
 * Ids only ever grow, unless the server was set back to an older state: then no window can be trusted there.
 * From this id on, at the latest, it may hold anything.
 */
export async function haltSetBack(id: number, sign: string, { memory }: DeliverDeps): Promise<never> {
  const halted = `the notebook was set back to an older state, or does not count upwards: ${sign}. Stop labfeed, run \`labfeed recover\` and start it again`;
  await memory.learn({ halted, restoredFrom: id });
  throw new HaltedError(halted);
}
