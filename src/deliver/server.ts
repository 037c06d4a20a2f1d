import { NotebookError } from '../errors.js';
import { type Origin, originIn, provisionalReference } from '../markers.js';
import { type Dialect, dialectOf } from '../model.js';
import { type DeliverDeps, type ExperimentRecord, HaltedError } from './context.js';
import { END_OF_IDS, haltSetBack, isSetBack, lookAt, readUpward } from './reconcile.js';

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
