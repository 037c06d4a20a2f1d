import { NotebookError } from '../errors.js';
import { isProvisional, type Origin, originIn } from '../markers.js';
import { type Dialect, dialectOf } from '../model.js';
import { type DeliveryContext, type ExperimentRecord, type Filing, HaltedError } from './context.js';
import { keepStray } from './reconcile.js';
import { halt } from './restored.js';
import { WindowReader } from './window.js';

interface Preparation {
  /** As configured. */
  readonly dialect: 'auto' | Dialect;
  /** The names of all instruments. */
  readonly instruments: readonly string[];
  readonly isUnknownRun: IsUnknownRun;
}

/** Whether an experiment with this origin line was filed from this journal and is not in it. */
type IsUnknownRun = (origin: Origin) => Promise<boolean>;

/** Before anything is sent: finds out the dialect, and whether journal and notebook are of the same age. */
export async function prepareServer(preparation: Preparation, context: DeliveryContext): Promise<void> {
  const { dialect, isUnknownRun } = preparation;
  const { notebook, server } = context;
  const facts = await server.facts();
  if (facts.halted !== undefined) throw new HaltedError(facts.halted);
  const spoken = dialect === 'auto' ? (facts.dialect ?? dialectOf(await notebook.listKeys())) : dialect;
  if (spoken !== facts.dialect) await server.learn({ dialect: spoken });
  if (spoken === 'elabftw') await searchFiledRuns(preparation, facts.highest === undefined, context);
  if (facts.highest !== undefined) await checkNewerEntries(facts.highest, isUnknownRun, context);
}

/** How many instruments, and how many runs that wait, are searched for on an unknown server. */
const MAX_SEARCHES = 10;

/**
 * Entries that were filed from this journal and are not in it. On an unknown server there may have been a journal before
 * this one, with another id if the PC was set up again: an entry with the content of a run that waits would be filed
 * twice. Each instrument is searched for on its own, since other PCs may have filed everything that is newer.
 */
async function searchFiledRuns(
  { instruments, isUnknownRun }: Preparation,
  isUnknownServer: boolean,
  context: DeliveryContext,
): Promise<void> {
  const { outbox } = context;
  const waiting = isUnknownServer ? await outbox.unfiled(MAX_SEARCHES) : [];
  const isWaiting = ({ label, sha256 }: Origin): boolean =>
    waiting.some((run) => run.sha256 === sha256 && label.startsWith(`${run.instrument} `));
  const isUnknown = async (origin: Origin) => isWaiting(origin) || isUnknownRun(origin);
  const searched = isUnknownServer ? instruments.slice(0, MAX_SEARCHES) : [];
  const texts = [
    ` journal:${outbox.id}`,
    ...waiting.map(({ sha256 }) => ` sha256:${sha256}`),
    ...searched.map((name) => `labfeed ${searchable(name)}`),
  ];
  const read = new Set<number>();
  const reader = new WindowReader(context);
  for (const text of texts) {
    for (const { id } of await search(text, context)) {
      if (read.has(id)) continue;
      read.add(id);
      // Lists have no bodies. What the journal knows is not read.
      for await (const { record } of reader.between(id, id + 1)) {
        await checkKnown(id, record, isUnknown, context);
        await keepStray(id, record, context.server);
      }
    }
  }
}

/** The beginning of a name, up to a character that means something else in a search or in markup. */
const searchable = (name: string): string => /^[A-Za-z0-9 .-]*/.exec(name)?.[0] ?? '';

/** Substrings match, so results must be compared. An empty result proves nothing. */
const search = (text: string, { notebook }: DeliveryContext) =>
  notebook.searchBodies([text]).catch((error: unknown) => {
    // Older versions do not support this search.
    if (error instanceof NotebookError && !error.retryable) return [];
    throw error;
  });

/**
 * `recover` stops where ids seem to end. The first creation afterwards shows whether they do: before it is filled in,
 * the ids in between are read. If a run is filed there, `recover` has to continue.
 */
export async function confirmEnd({ experiment, ...context }: Filing, isNew: boolean): Promise<void> {
  const { server, isUnknownRun = async () => false } = context;
  const { unconfirmed } = await server.facts();
  if (unconfirmed === undefined || (experiment <= unconfirmed && !isNew)) return;
  const reader = new WindowReader(context);
  for await (const { id, record } of reader.between(unconfirmed + 1, experiment))
    await checkKnown(id, record, isUnknownRun, context);
  await reader.finish();
  if (reader.unreadable.length === 0) await server.learn({ unconfirmed: null });
}

/** How many ids are read at a start, however many entries are new. On eLabFTW, each request costs it 0.3 s. */
const SAMPLE = 34;
const ELABFTW_SAMPLE = 11;

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
  { title, body }: ExperimentRecord,
  isUnknownRun: IsUnknownRun,
  { server }: DeliveryContext,
): Promise<void> {
  // A creation carries the body on eLabFTW. Until the title is set, it is a spare.
  const isFiled = typeof body === 'string' && !isProvisional(String(title));
  const origin = isFiled ? originIn(body) : undefined;
  if (!origin || !(await isUnknownRun(origin))) return;
  const sign = `experiment ${id} was filed by labfeed, but it is not in the journal`;
  await halt(server, `the journal is older than the notebook: ${sign}`);
}
