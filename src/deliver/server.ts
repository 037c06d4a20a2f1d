import { NotebookError } from '../errors.js';
import { type Origin, originIn, provisionalReference } from '../markers.js';
import { type Dialect, dialectOf } from '../model.js';
import type { LearntFacts } from '../outbox.js';
import { type DeliveryContext, type ExperimentRecord, HaltedError, type Server } from './context.js';
import { END_OF_IDS, tryRead, WindowReader } from './window.js';

interface Preparation {
  /** As configured. */
  readonly dialect: 'auto' | Dialect;
  readonly isUnknownRun: IsUnknownRun;
}

/** Whether an experiment with this origin line was filed from this journal and is not in it. */
type IsUnknownRun = (origin: Origin) => Promise<boolean>;

/** Before anything is sent: finds out the dialect, and whether journal and notebook are of the same age. */
export async function prepareServer({ dialect, isUnknownRun }: Preparation, context: DeliveryContext): Promise<void> {
  const { notebook, server } = context;
  const facts = await server.facts();
  if (facts.halted !== undefined) throw new HaltedError(facts.halted);
  const spoken = dialect === 'auto' ? (facts.dialect ?? dialectOf(await notebook.listKeys())) : dialect;
  if (spoken !== facts.dialect) await server.learn({ dialect: spoken });
  if (facts.highest !== undefined) {
    await checkNewerEntries(facts.highest, isUnknownRun, context);
    await checkRestored(context);
  } else if (spoken === 'elabftw') {
    await searchUnknownRuns(isUnknownRun, context);
  }
}

/** On an unknown server: there may have been a journal before this one. An empty result proves nothing. */
async function searchUnknownRuns(isUnknownRun: IsUnknownRun, context: DeliveryContext): Promise<void> {
  const found = await context.notebook.searchBodies(['labfeed ', ' sha256:']).catch((error: unknown) => {
    // Older versions do not support this search.
    if (error instanceof NotebookError && !error.retryable) return [];
    throw error;
  });
  for (const { id, ...record } of found) await checkKnown(id, record, isUnknownRun, context);
}

/** Our runs above our highest id that are not in the journal: the journal is older than the notebook. */
async function checkNewerEntries(highest: number, isUnknownRun: IsUnknownRun, context: DeliveryContext): Promise<void> {
  const reader = new WindowReader(context);
  for await (const { id, record } of reader.sample(highest)) {
    await checkKnown(id, record, isUnknownRun, context);
    await keepStray(id, record, context.server);
  }
  await reader.finish();
}

async function checkKnown(
  id: number,
  { body }: ExperimentRecord,
  isUnknownRun: IsUnknownRun,
  { server }: DeliveryContext,
): Promise<void> {
  const origin = typeof body === 'string' ? originIn(body) : undefined;
  if (!origin || !(await isUnknownRun(origin))) return;
  const sign = `experiment ${id} was filed by labfeed, but it is not in the journal`;
  await halt(server, `the journal is older than the notebook: ${sign}`);
}

/** If fewer experiments are gone, the id of the next creation shows that the server was restored. */
async function checkRestored({ server, notebook }: DeliveryContext): Promise<void> {
  const last = await server.lastExperiments(END_OF_IDS);
  if (!(await isRestored(last, (id) => tryRead(id, notebook)))) return;
  // A proxy that has lost its backend answers 404 to everything.
  await notebook.listKeys();
  const from = Math.min(...last);
  await haltRestored(from, `the last experiments that labfeed created, ${from} to ${last[0]}, no longer exist`, server);
}

/**
 * A creation that the journal does not know, because the journal is older or the server was late. Its run uses it
 * before it creates another; a run in step `creating` finds it by itself.
 */
async function keepStray(id: number, { title }: ExperimentRecord, server: Server): Promise<void> {
  const reference = typeof title === 'string' ? provisionalReference(title) : undefined;
  if (reference === undefined || (await server.isCreating(reference))) return;
  if (!(await server.hasExperiment(id))) await server.addSpare(id, reference);
}

/** Whether the last experiments that we filed are missing and none is above them. A few may have been deleted by people. */
export async function isRestored(last: readonly number[], read: (id: number) => Promise<unknown>): Promise<boolean> {
  const [highest = 0] = last;
  if (last.length < END_OF_IDS) return false;
  for (const id of [...last, ...Array.from({ length: END_OF_IDS }, (_, n) => highest + 1 + n)])
    if ((await read(id)) !== 'missing') return false;
  return true;
}

/** From this id on, at the latest, ids may refer to other experiments, and no id window can be trusted. */
export async function haltRestored(id: number, sign: string, server: Server): Promise<never> {
  const what = 'the notebook was restored to an older state, or does not assign ascending ids';
  return halt(server, `${what}: ${sign}`, { restoredFrom: id });
}

export const RECOVER = 'Stop labfeed, run `labfeed recover` and start labfeed again';

/** Durable before it takes effect, so that no restart forgets it. Only `recover` ends it. */
async function halt(server: Server, reason: string, facts: LearntFacts = {}): Promise<never> {
  const halted = `${reason}. ${RECOVER}`;
  await server.learn({ ...facts, halted });
  throw new HaltedError(halted);
}
