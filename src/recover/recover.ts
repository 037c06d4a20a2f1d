import { systemClock } from '../clock.js';
import type { ListedInstrument, UsableConfig } from '../config/load.js';
import { openNotebook } from '../connection.js';
import type { CommentRecord, ExperimentRecord } from '../deliver/context.js';
import { isOurCreation } from '../deliver/reconcile.js';
import { inspectNewest, RECOVER } from '../deliver/restored.js';
import { hasTags } from '../deliver/revise.js';
import { MAX_DEPTH } from '../deliver/window.js';
import { explain, LabfeedError, type NotebookError } from '../errors.js';
import { createNotebookReader, isTemporary, isUnreadable, type NotebookReader, readBack } from '../evidence.js';
import { refuseMoved } from '../journal/fleet-view.js';
import { type Journal, openJournal, writeNote } from '../journal/journal.js';
import type { MarkedComment, PlacedRun } from '../journal/recovery.js';
import { markIn, originIn, provisionalReference, readLabel } from '../markers.js';
import type { Dialect } from '../model.js';
import type { ServerFacts } from '../outbox.js';

/** After this many missing ids in a row, `recover` stops. Whether ids end there is shown by the next creation. */
export const MAX_MISSING = 200;

export interface IdRange {
  readonly from: number;
  readonly to: number;
}

export interface RecoverDeps {
  /** The URL of the notebook. */
  readonly server: string;
  /** All configured instruments. Experiments of other instruments are not recovered. */
  readonly instruments: readonly ListedInstrument[];
  readonly journal: Pick<Journal, 'outbox' | 'recovery'>;
  readonly notebook: NotebookReader;
  /** Reads every id in it. By default: from the first unknown id to the newest one, until `MAX_MISSING` ids in a row are missing. */
  readonly range?: IdRange | undefined;
  /** Whether to go on although some experiments cannot be read. If one is a run of labfeed, it is filed again. */
  readonly skipUnreadable?: boolean | undefined;
  /** Called before each experiment is read. */
  onProgress(id: number, result: Recovered): void;
}

/** The result, which `--json` prints. Lists contain ids of experiments, except for `gone`, `outdated` and `reopened`. */
export type Recovered = ReturnType<typeof emptyResult>;

const emptyResult = () => ({
  from: 0,
  /** The last experiment that exists. */
  to: 0,
  /** The last id that was read. */
  readThrough: 0,
  /** Whether nothing can be filed above it. If not, the next creation shows it, and sending halts again. */
  endConfirmed: false,
  /** Runs that were not in the journal. */
  recovered: 0,
  /** Runs that were unfinished in the journal. */
  completed: 0,
  known: 0,
  /** Experiments that labfeed created and did not fill in: the next runs use them. */
  spares: 0,
  /** Experiments of other people. */
  others: 0,
  /** The server fails to show them. Unless they are skipped, nothing is sent. */
  unreadable: [] as number[],
  /** Filed by labfeed from instruments that are not in this configuration. */
  unknownInstruments: [] as number[],
  /** Recovered without any comment of labfeed, although the instrument has comments, or with fewer than before. */
  withoutComments: [] as number[],
  /** Runs whose experiments no longer exist, because the server was restored. */
  gone: [] as number[],
  /** Runs whose experiments have an earlier version of their file, because the server was restored. They are held. */
  outdated: [] as number[],
  /** Runs whose experiments are incomplete because the server was restored: the rest is sent again. */
  reopened: [] as number[],
});

export interface RecoverOptions extends Pick<RecoverDeps, 'range' | 'skipUnreadable' | 'onProgress'> {
  readonly signal: AbortSignal;
  onRetry(message: string): void;
}

/** Opens the notebook and the journal, which must not be in use by a daemon, and recovers the journal. */
export async function recoverJournal(
  config: UsableConfig,
  { signal, onRetry, ...deps }: RecoverOptions,
): Promise<Recovered> {
  const server = config.notebook.url;
  // The key is read first: without a key, no journal is created.
  const notebook = openNotebook(config, { signal });
  const path = config.settings.journal;
  const journal = await openJournal(path, systemClock);
  try {
    refuseMoved(journal.store, path);
    const reader = createNotebookReader(notebook, { signal, onRetry });
    const result = await recover({ server, instruments: config.listed, journal, notebook: reader, ...deps });
    const { halted } = await journal.outbox.server(server).facts();
    const note = halted === undefined ? await journal.notes.take() : undefined;
    // From now on, the journal counts as the current one.
    if (note) await writeNote(path, note);
    return result;
  } catch (error) {
    if (!signal.aborted) throw error;
    throw await interrupted(server, journal);
  } finally {
    await notebook.close();
    await journal.close();
  }
}

export async function interrupted(server: string, { outbox }: Pick<Journal, 'outbox'>): Promise<LabfeedError> {
  const { halted } = await outbox.server(server).facts();
  return halted === undefined
    ? new LabfeedError('interrupted before anything was read or changed')
    : stoppedEarly('interrupted');
}

/** Fills the journal from the notebook. What was recovered is kept if it stops early. */
export async function recover(deps: RecoverDeps): Promise<Recovered> {
  // Before anything is changed, so that sending continues if the notebook cannot be reached.
  const dialect = await deps.notebook.checkPresence().catch((error: unknown) => {
    throw isTemporary(error) ? unreachable(error) : error;
  });
  try {
    return await refill(dialect, deps);
  } catch (error) {
    throw isTemporary(error) ? stoppedEarly(error.message, error) : error;
  }
}

const unreachable = (cause: NotebookError): LabfeedError =>
  new LabfeedError(`the notebook cannot be reached: ${cause.message}`, {
    hint: 'nothing was read or changed; run it again when the notebook is available',
    cause,
  });

const stoppedEarly = (reason: string, cause?: unknown): LabfeedError =>
  new LabfeedError(`recovery stopped early: ${reason}`, {
    hint: 'run it again: it continues where it stopped. Until then nothing is sent',
    cause,
  });

async function refill(dialect: Dialect, deps: RecoverDeps): Promise<Recovered> {
  const { server, journal, notebook, range } = deps;
  const { halted, restoredFrom: known } = await journal.recovery.begin(server);
  const result = emptyResult();
  const restoredFrom = known ?? (await detectRestored(deps));
  const unknown =
    restoredFrom === undefined
      ? await journal.recovery.firstUnknown(server, MAX_DEPTH)
      : await reconcileRestored(restoredFrom, result, deps);
  // If ids below the range were never read, the reason for the halt remains. If no id is known at all, the person who
  // gives the range knows where the ids begin.
  const leavesGap = range !== undefined && unknown !== undefined && range.from > unknown;
  const first = unknown ?? 1;
  // eLabFTW lists what our key may read, and so everything that was filed with it.
  const newest = dialect === 'elabftw' ? await notebook.newestId() : undefined;
  await readRange(range ?? { from: first, to: Number.MAX_SAFE_INTEGER }, newest, leavesGap, result, deps);
  const [unreadable] = deps.skipUnreadable ? [] : result.unreadable;
  const isIncomplete = leavesGap || unreadable !== undefined;
  // Otherwise the ids at the end may only have seemed to be missing.
  await notebook.checkPresence();
  if (range === undefined && restoredFrom === undefined && first === 1 && result.to === 0) {
    // Nobody recovers from an empty notebook without a reason: what would be sent may be filed there at higher ids.
    await journal.recovery.end(server, halted ?? explain(foundNothing(server)));
    throw foundNothing(server);
  }
  result.endConfirmed = !isIncomplete && newest !== undefined && newest <= result.readThrough;
  if (!isIncomplete) await journal.recovery.readThrough(server, result.endConfirmed ? null : result.readThrough);
  const reason = unreadable === undefined ? halted : (halted ?? unreadableHalt(unreadable));
  await journal.recovery.end(server, isIncomplete ? reason : undefined);
  return result;
}

const foundNothing = (server: string): LabfeedError =>
  new LabfeedError(`none of the first ${MAX_MISSING} ids is an experiment on ${server}`, {
    hint: `if its experiments begin at a higher id: labfeed recover --ids A-B; if it has no experiments: --ids 1-${MAX_MISSING}`,
  });

const unreadableHalt = (id: number): string =>
  `the journal is not complete: \`labfeed recover\` could not read experiment ${id}. ${RECOVER}`;

async function readRange(
  { from, to }: IdRange,
  newest = 0,
  leavesGap: boolean,
  result: Recovered,
  deps: RecoverDeps,
): Promise<void> {
  const { server, journal, range, skipUnreadable } = deps;
  Object.assign(result, { from, to: from - 1 });
  for (let id = from, missing = 0; id <= to && (range || missing < MAX_MISSING || id <= newest); id++) {
    deps.onProgress(id, result);
    const kind = await readOne(id, deps);
    result.readThrough = id;
    missing = kind === 'missing' ? missing + 1 : 0;
    if (kind === 'missing') continue;
    count(kind, id, result);
    result.to = id;
    // Above a gap, an id must not become the highest that is known.
    if (!leavesGap && (skipUnreadable || result.unreadable.length === 0)) await journal.recovery.saw(server, id);
  }
}

async function readOne(id: number, deps: RecoverDeps): Promise<Kind | 'missing'> {
  try {
    const record = await deps.notebook.readExperiment(id);
    if (record === 'missing') return record;
    return record === 'private' ? 'others' : await recoverExperiment(id, record, deps);
  } catch (error) {
    if (isUnreadable(error)) return 'unreadable';
    throw error;
  }
}

/** `bare`: recovered without the comments that it should have. */
type Kind = 'recovered' | 'completed' | 'known' | 'spares' | 'others' | 'unreadable' | 'unknownInstrument' | 'bare';

function count(kind: Kind, id: number, result: Recovered): void {
  if (kind === 'unreadable') return void result.unreadable.push(id);
  if (kind === 'unknownInstrument') return void result.unknownInstruments.push(id);
  if (kind === 'bare') result.withoutComments.push(id);
  result[kind === 'bare' ? 'recovered' : kind] += 1;
}

async function recoverExperiment(
  id: number,
  record: ExperimentRecord,
  { server, instruments, journal, notebook }: RecoverDeps,
): Promise<Kind> {
  const { title, body } = record;
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
  const comments = markedComments(await notebook.listComments(id));
  const copies = instrument.duplicates === 'ingest';
  const shown = { hasTags: (wanted: readonly string[]) => hasTags(record, wanted), comments };
  const revises = instrument.changed === 'revise';
  const run = { ...source, server, experiment: id, sha256: origin.sha256, copies, revises, ...shown };
  const kind = await journal.recovery.take(run);
  const { readings, text } = instrument.comments;
  const isBare = comments.length === 0 && (readings !== 'none' || text !== undefined);
  return kind === 'recovered' && isBare ? 'bare' : kind;
}

/** The contract names no field for the text of a comment, so the marker line may be in any of them. */
const markedComments = (records: readonly CommentRecord[]): MarkedComment[] =>
  records.flatMap((record) =>
    Object.values(record).flatMap((value) => {
      const mark = typeof value === 'string' ? markIn(value) : undefined;
      return mark ? [{ ...mark, id: record.id }] : [];
    }),
  );

/** A person can recover from a restored server before the daemon has noticed that it was restored. */
async function detectRestored({ server, journal, notebook }: RecoverDeps): Promise<number | undefined> {
  const outbox = journal.outbox.server(server);
  const { restored } = await inspectNewest(outbox, notebook);
  // Stored, because the last experiments no longer show it once the first runs are reconciled.
  if (restored) await outbox.learn({ restoredFrom: restored.from });
  return restored?.from;
}

/**
 * Compares the journal with a notebook that was restored to an older state. Ids from `restoredFrom` on are gone or
 * belong to other experiments; experiments below it are as they were then, perhaps unfinished. Resolves with the first
 * id that may be unknown. Afterwards the journal has no id that was not seen, and ids are reliable again.
 */
async function reconcileRestored(restoredFrom: number, result: Recovered, deps: RecoverDeps): Promise<number> {
  const { server, journal } = deps;
  const facts = await journal.outbox.server(server).facts();
  const reconcile = async (run: PlacedRun, isBelow: boolean): Promise<Reconciled> => {
    deps.onProgress(run.experiment, result);
    const outcome = await reconcileRun(run, isBelow, facts, deps);
    if (outcome === 'withoutComments') result.withoutComments.push(run.experiment);
    else if (outcome !== 'unchanged') result[outcome].push(run.id);
    return outcome;
  };
  const present: PlacedRun[] = [];
  let last: PlacedRun | undefined;
  for (const run of await journal.recovery.placedFrom(server, restoredFrom)) {
    // Spares are filled in late. If an experiment above is still there although it was created before this one was filled
    // in, the restored state was saved in between, and this id is the run's.
    const newer = present.find(({ createdAs }) => (createdAs ?? Number.MAX_VALUE) < (run.describedAs ?? 0));
    const outcome = await reconcile(run, newer !== undefined);
    if (outcome !== 'gone') present.push(run);
    if (outcome !== 'unchanged') last ??= newer;
  }
  let lowest = restoredFrom;
  while (last === undefined) {
    const below: PlacedRun | undefined = await journal.recovery.placedBelow(server, lowest);
    if (below === undefined) break;
    if ((await reconcile(below, false)) === 'gone') lowest = below.experiment;
    else last = below;
  }
  // The older state was saved after this run was added: only what has changed since then can be unfinished there.
  const suspects = last ? await journal.recovery.changedSince(server, last.experiment) : [];
  for (const run of suspects) if (run.experiment < restoredFrom) await reconcile(run, true);
  for (const { experiment, reference } of await journal.recovery.spares(server)) {
    const record = await deps.notebook.readExperiment(experiment);
    const isSpare = typeof record === 'object' && isOurCreation(record, reference ?? '', facts);
    if (!isSpare) await journal.recovery.dropSpare(server, experiment);
  }
  await journal.recovery.settle(server, last?.experiment ?? (await lastExisting(lowest, result, deps)));
  for (const runs of [result.gone, result.outdated, result.reopened]) runs.sort((a, b) => a - b);
  return last ? last.experiment + 1 : lowest;
}

type Reconciled = 'gone' | 'outdated' | 'reopened' | 'withoutComments' | 'unchanged';

/** `isBelow`: the id is older than the restored state, so the experiment is the run's, whether or not it was edited. */
async function reconcileRun(
  run: PlacedRun,
  isBelow: boolean,
  facts: ServerFacts,
  { server, journal, notebook }: RecoverDeps,
): Promise<Reconciled> {
  const found = await readBack(run, notebook);
  const { record, ...shown } = typeof found === 'string' ? { record: {}, hasOrigin: false } : found;
  const origin = typeof record['body'] === 'string' ? originIn(record['body']) : undefined;
  // Until the next version of its file is written, the experiment shows the one before.
  const hasOrigin =
    shown.hasOrigin || (origin !== undefined && (await journal.recovery.isReplacing(run, origin.sha256)));
  const provisional = provisionalReference(String(record.title));
  // Another run may have created it as a spare.
  const isBlank =
    provisional === run.reference ||
    (isBelow && !hasOrigin && (provisional !== undefined || isOurCreation(record, run.reference, facts)));
  if (isBlank && run.drafted) {
    await journal.recovery.refill(run);
    return 'reopened';
  }
  if (!hasOrigin && origin && run.drafted && (await journal.recovery.isVersion(run, origin.sha256))) {
    await journal.recovery.outdate(run);
    return 'outdated';
  }
  const marks = typeof found === 'string' ? [] : markedComments(await notebook.listComments(run.experiment));
  const present = new Set(marks.filter(({ reference }) => reference === run.reference).map(({ n }) => n));
  // A person may have removed the origin line, but not the comments.
  if (hasOrigin || present.size > 0) {
    if (run.drafted) return (await journal.recovery.keepComments(run, present)) ? 'reopened' : 'unchanged';
    // Without a draft nothing can be posted again.
    return (await journal.recovery.lacksComments(run, present)) ? 'withoutComments' : 'unchanged';
  }
  if (isBelow && !isBlank) return 'unchanged';
  await journal.recovery.release(run);
  if (isBlank) await journal.outbox.server(server).addSpare(run.experiment, run.reference);
  return 'gone';
}

/** The last experiment below this id that exists, of any owner; 0 if there is none. */
async function lastExisting(below: number, result: Recovered, { notebook, onProgress }: RecoverDeps): Promise<number> {
  for (let id = below - 1; id > 0; id--) {
    onProgress(id, result);
    if ((await notebook.readExperiment(id)) !== 'missing') return id;
  }
  return 0;
}
