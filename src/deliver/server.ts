import { NotebookError } from '../errors.js';
import { type Origin, originIn, provisionalReference } from '../markers.js';
import { type Dialect, dialectOf } from '../model.js';
import { type DeliveryContext, type ExperimentRecord, HaltedError, type Server } from './context.js';
import { halt } from './restored.js';
import { WindowReader } from './window.js';

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

/** How many ids are read at a start, however many entries are new. On eLabFTW, each request costs it 0.3 s. */
const SAMPLE = 40;
const ELABFTW_SAMPLE = 12;

/** Our runs above our highest id that are not in the journal: the journal is older than the notebook. */
async function checkNewerEntries(highest: number, isUnknownRun: IsUnknownRun, context: DeliveryContext): Promise<void> {
  const reader = new WindowReader(context);
  const { dialect } = await context.server.facts();
  for await (const { id, record } of reader.sample(highest, dialect === 'elabftw' ? ELABFTW_SAMPLE : SAMPLE)) {
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

/**
 * A creation that the journal does not know, because the journal is older or the server was late. Its run uses it
 * before it creates another; a run in step `creating` finds it by itself.
 */
async function keepStray(id: number, { title }: ExperimentRecord, server: Server): Promise<void> {
  const reference = typeof title === 'string' ? provisionalReference(title) : undefined;
  if (reference === undefined || (await server.isCreating(reference))) return;
  if (!(await server.hasExperiment(id))) await server.addSpare(id, reference);
}
