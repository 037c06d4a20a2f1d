import { NotebookError } from '../errors.js';
import { isProvisional, originIn, provisionalTitle } from '../markers.js';
import type { OpenRun, PlannedComment, ServerFacts, UnseenCreations } from '../outbox.js';
import { checkComments, dropComment, postComment, reviseComment } from './comments.js';
import {
  type Absence,
  type DeliveryContext,
  type ExperimentChanges,
  type ExperimentRecord,
  type Filing,
  HaltedError,
} from './context.js';
import { metadataOf, type ResolvedExtras, resolveExtras, setExtras } from './extras.js';
import {
  attributeNotFound,
  certainlyNotDone,
  confirmForbidden,
  ExpiredError,
  isContentRefused,
  isRefusedTag,
  sendEdit,
} from './failures.js';
import { collectSpares, isUntouched, learnTitles, settleCreations } from './reconcile.js';
import { haltRestored, isStillOurs, rewritten } from './restored.js';
import {
  awaitEarlierEdits,
  changedBeforeFilled,
  checkOpen,
  checkUnedited,
  clearSpare,
  EditedError,
  hasTags,
  setTags,
  showsDraft,
  storedDifferently,
} from './revise.js';
import { confirmEnd } from './server.js';

/**
 * Delivers one run from whatever step it has reached. Record, act, record: after a crash at any point, the next
 * delivery does what is missing and nothing twice. Resolves with the experiment's id.
 */
export async function deliver(run: OpenRun, context: DeliveryContext): Promise<number> {
  try {
    return await deliverSteps(run, context);
  } catch (error) {
    throw await attributeNotFound(error, context.notebook);
  }
}

async function deliverSteps(run: OpenRun, context: DeliveryContext): Promise<number> {
  const { server, outbox, stopping } = context;
  checkHalt(await server.facts());
  if (run.experiment !== undefined && run.server !== server.url) throw startedElsewhere(run);
  const { experiment, isNew, isFilled = false } = await obtainExperiment(run, context);
  const filing: Filing = { run, experiment, ...context };
  if (run.step !== 'described') {
    await confirmEnd(filing, isNew);
    stopping.throwIfAborted();
    await describe(filing, isNew, isFilled).catch((error: unknown) => withdrawAddition(error, filing));
    context.filled?.();
  } else if (!(await isStillOurs(await readOwn(experiment, context), filing))) throw rewritten(filing);
  for (const comment of run.comments) await deliverComment(comment, filing);
  for (const comment of run.surplus) {
    stopping.throwIfAborted();
    await dropComment(comment, filing);
  }
  // After a power failure, the next delivery finds all of it in the notebook.
  await outbox.apply(run.id, { kind: 'finished' });
  return experiment;
}

/** A plot or a note about the files never keeps a run from being done: without it, the run is as it was. */
async function withdrawAddition(error: unknown, { run, outbox, notebook }: Filing): Promise<void> {
  // The lines of a growing file go on as comments, and the rest stays as a person wrote it.
  if (run.isGrowing && error instanceof EditedError)
    return outbox.record(run.id, { kind: 'bodyKept', reason: error.message });
  const cause = run.isAddition ? await attributeNotFound(error, notebook) : error;
  const isFinal = cause instanceof NotebookError && (cause.failure === 'conflict' || cause.failure === 'request');
  if (!run.isAddition || !isFinal) throw cause;
  await outbox.record(run.id, { kind: 'additionDropped' });
}

function checkHalt({ halted }: ServerFacts): void {
  if (halted !== undefined) throw new HaltedError(halted);
}

const startedElsewhere = ({ experiment, server }: OpenRun): NotebookError =>
  new NotebookError('conflict', `delivery of this run started on ${server}, as experiment ${experiment}`, {
    hint: 'to finish it there, set `notebook.url` back. To file it here as well, run `labfeed refile`',
  });

/** `isNew`: created just now, so that nobody else can have changed it. */
interface Obtained {
  readonly experiment: number;
  readonly isNew: boolean;
  /** Whether its creation carried the body, and perhaps the tags. */
  readonly isFilled?: boolean;
}

/** The run's experiment: known, found by reconciliation, a spare, or a new one. */
async function obtainExperiment(run: OpenRun, context: DeliveryContext): Promise<Obtained> {
  if (run.experiment !== undefined) return { experiment: run.experiment, isNew: false };
  const { creations } = context.unknown;
  const { highest, keepsTitle, sweep, unconfirmed } = await context.server.facts();
  const mustSweep = sweep !== undefined && context.unknown.window.maySweep(context.clock.monotonic());
  if (run.step === 'creating' || mustSweep) return creations.exclude(() => reconcileAndCreate(run, context));
  const create = () => useSpareOrCreate(run, FIRST_CREATION, context);
  // Without an id there is no floor, and without a title that was read back nothing can be recognised.
  const isFirst = highest === undefined || keepsTitle === undefined || unconfirmed !== undefined;
  return isFirst ? creations.exclude(create) : creations.share(create);
}

/** Runs alone from the first read to the creation, since another creation could add to what was read. */
async function reconcileAndCreate({ id }: OpenRun, context: DeliveryContext): Promise<Obtained> {
  // Read once: another run may learn meanwhile whether titles are kept. Without that, the collection of spares is
  // skipped, and the search that follows would attribute to this run what others left behind.
  const facts = await context.server.facts();
  checkHalt(facts);
  await collectSpares(facts, context);
  // The pass of another run may have found its experiment.
  const run = await context.outbox.load(id);
  if (run.experiment !== undefined) return { experiment: run.experiment, isNew: false };
  if (run.step !== 'creating') return useSpareOrCreate(run, FIRST_CREATION, context);
  const settled = await settleCreations(run, facts, context);
  if ('experiment' in settled) return { experiment: settled.experiment, isNew: false };
  const obtained = await useSpareOrCreate(run, repeatedCreation(run, settled.absence, facts), context);
  await collectSpares(await context.server.facts(), context);
  return obtained;
}

interface Earlier extends UnseenCreations {
  /** These have higher ids; undefined if nothing is known about their ids. */
  readonly above?: number | undefined;
}

const FIRST_CREATION: Earlier = { unseen: 0 };

function repeatedCreation(run: OpenRun, { through, isProved }: Absence, { keepsTitle }: ServerFacts): Earlier {
  if (isProved) return FIRST_CREATION;
  const isReadable = run.floor !== undefined && keepsTitle !== undefined;
  const above = isReadable ? through : run.floor;
  return { unseen: run.unseen + 1, above, sweepFrom: above === undefined ? 0 : above + 1 };
}

async function useSpareOrCreate(run: OpenRun, earlier: Earlier, context: DeliveryContext): Promise<Obtained> {
  context.stopping.throwIfAborted();
  const spare = await context.server.claimSpare(run, earlier);
  if (spare !== undefined) {
    context.unknown.window.absent.delete(run.id);
    return { experiment: spare, isNew: false };
  }
  return create(run, earlier, context);
}

async function create(run: OpenRun, earlier: Earlier, context: DeliveryContext): Promise<Obtained> {
  const { outbox, server, unknown, clock } = context;
  const facts = await server.facts();
  // Another run may have halted the server while this one waited for the lock.
  checkHalt(facts);
  const { highest, keepsTitle } = facts;
  const { unseen, above, sweepFrom } = earlier;
  const floor = unseen === 0 || highest === undefined ? highest : above && Math.min(above, highest);
  const extras = await extrasOf(run, facts, context);
  // Durable before the POST: after a crash, delivery looks for the experiment instead of creating a second one.
  await outbox.record(run.id, { kind: 'intended', server: server.url, floor, unseen, sweepFrom, at: clock.now() });
  const sentAt = clock.monotonic();
  const { experiment, isFilled } = await post(run, facts, extras, context).catch((error: unknown) =>
    creationFailed(error, run, highest, context),
  );
  // Before its id is recorded: if that fails, the experiment has to be looked for.
  unknown.window.noteCreation(run.id, experiment, sentAt);
  const isKnown = await server.hasExperiment(experiment);
  // Found by reconciliation while the response was on its way, after a reload.
  if (isKnown && (await server.runWith(experiment)) === run.id) return { experiment, isNew: false };
  if (isKnown || (highest !== undefined && experiment <= highest))
    await haltRestored(experiment, `it assigned the id ${experiment} a second time`, server);
  await outbox.record(run.id, { kind: 'created', experiment, found: false });
  if (keepsTitle === undefined || (keepsTitle === false && !unknown.window.isTitleChecked))
    await learnTitles(await readOwn(experiment, context), context);
  return { experiment, isNew: true, isFilled };
}

async function extrasOf(
  { draft, earlier }: OpenRun,
  { dialect }: ServerFacts,
  context: DeliveryContext,
): Promise<ResolvedExtras | undefined> {
  // The fields of an earlier reading are emptied.
  const extras = draft.extras ?? (earlier.some((reading) => reading.extras) ? {} : undefined);
  return extras && dialect === 'elabftw' ? resolveExtras(extras, context) : undefined;
}

/** On eLabFTW, the creation carries all it can: each request costs the server 0.3 s. */
async function post(
  run: OpenRun,
  { dialect, keepsTitle }: ServerFacts,
  extras: ResolvedExtras | undefined,
  { notebook, unknown: { window } }: DeliveryContext,
): Promise<{ experiment: number; isFilled: boolean }> {
  const title = provisionalTitle(run.reference);
  const { body, tags } = run.draft;
  const template = extras?.template;
  // With a template, eLabFTW ignores the rest.
  if (dialect === 'elabftw' && keepsTitle === true && !template && window.filled.isPossible(run.id)) {
    const carried = window.filled.areAccepted(tags) ? tags : undefined;
    const metadata = extras && metadataOf(extras.fields);
    const content = { title, body, content_type: HTML, tags: carried, metadata, ...extras?.attributes };
    try {
      return { experiment: await notebook.createFilledExperiment(content), isFilled: true };
    } catch (error) {
      if (isRefusedTag(error, carried)) {
        window.filled.noteFailed(run.id);
        throw new NotebookError('server', error.message, { status: 400, outcomeUnknown: true, cause: error });
      }
      if (!isContentRefused(error)) throw error;
      window.filled.noteFailed(run.id);
    }
  }
  return { experiment: await notebook.createExperiment({ title, template }), isFilled: false };
}

/** With 403, checks the key: unlike in a window of ids, the entry is ours. */
const readOwn = (experiment: number, { notebook }: DeliveryContext) =>
  confirmForbidden(notebook, () => notebook.readExperiment(experiment));

/** A single 201 without an id may be an accident. Each one leaves a blank experiment behind. */
const MAX_WITHOUT_ID = 3;

async function creationFailed(
  error: unknown,
  run: OpenRun,
  highest: number | undefined,
  { outbox, server, unknown }: DeliveryContext,
): Promise<never> {
  if (certainlyNotDone(error)) await outbox.record(run.id, { kind: 'notCreated' });
  else {
    unknown.window.filled.noteFailed(run.id);
    unknown.posts.note(run.id);
    unknown.window.noteUnknown(run.id);
  }
  const lacksId = error instanceof NotebookError && error.status === 201;
  if (!lacksId || highest !== undefined || (await server.countUnknown()) < MAX_WITHOUT_ID) throw error;
  // Without any id the experiments cannot be looked for either: continuing would create ever more of them.
  const halted = `the notebook creates experiments but does not report their ids: ${error.message}. Check whether a proxy removes the Location header. Then stop labfeed, run \`labfeed recover --ids A-B\` with the ids of the newest experiments, and start labfeed again`;
  await server.learn({ halted });
  throw new HaltedError(halted);
}

/** eLabFTW's code for HTML. */
const HTML = 1;

/** Gives the experiment its title, date, body and tags. */
async function describe(filing: Filing, isNew: boolean, isFilled: boolean): Promise<void> {
  const { run, experiment, notebook, server, outbox, unknown } = filing;
  const { dialect } = await server.facts();
  const { title, date, body, tags } = run.draft;
  // eLabFTW refuses a PATCH with tags after saving the rest, and may take bodies for markdown.
  const all = { title, date, body, ...(dialect === 'elabftw' ? { content_type: HTML } : { tags }) };
  const patch = async (changes: ExperimentChanges): Promise<Patched> => ({
    record: await sendEdit(filing, () => notebook.patchExperiment(experiment, changes)),
  });
  const untilMs = untilWhen(isNew, filing);
  let patched = untilMs === undefined ? undefined : await patchUntil(untilMs, isFilled ? { title, date } : all, filing);
  let written: 'all' | 'body' | 'none' = isFilled ? 'body' : 'none';
  if (!patched) {
    written = await writtenParts(filing);
    if (written !== 'all') patched = await patch(written === 'body' ? { title, date } : all);
  } else if (isFilled && !hasOrigin(patched.record, run)) {
    unknown.window.filled.isKept = false;
    written = 'none';
    patched = await patch(all);
  }
  const isTagged = (isFilled || hasSameTags(run)) && patched?.record && hasTags(patched.record, tags, false);
  if (dialect === 'elabftw' && !isTagged) {
    await setTags(filing);
    unknown.window.filled.noteAccepted(tags);
  }
  const extras = await extrasOf(run, await server.facts(), filing);
  if (extras) {
    const record = patched?.record ?? (await readOwn(experiment, filing));
    await setExtras(record, extras, written === 'none', filing);
  }
  // Stored together with the intent of the first comment.
  const stored = storedDifferently(patched?.record, run.draft, written === 'none');
  outbox.recordLater(run.id, { kind: 'described', stored });
}

/** Whether the body shows the origin line of the run. */
function hasOrigin(record: ExperimentRecord | undefined, { draft }: OpenRun): boolean {
  const origin = typeof record?.['body'] === 'string' ? originIn(record['body']) : undefined;
  const ours = originIn(draft.body);
  return origin !== undefined && origin.sha256 === ours?.sha256 && origin.journal === ours.journal;
}

/** `record`: the experiment after the PATCH, if the server returned it. */
interface Patched {
  readonly record: ExperimentRecord | undefined;
}

/** No tag is to be removed, unless an earlier reading had others. */
const hasSameTags = ({ draft, earlier }: OpenRun): boolean =>
  earlier.length > 0 && earlier.every(({ tags }) => JSON.stringify(tags) === JSON.stringify(draft.tags));

/** After such a time, a person may have changed what was read. */
const JUST_READ_MS = 2000;

/**
 * Immediately after our own 201, nobody can have changed the experiment, so it is patched without a read. So is one
 * that was just read in order to add its plot. Until when, on the monotonic clock.
 */
function untilWhen(isNew: boolean, { run, unknown, server, clock }: Filing): number | undefined {
  const readAt = unknown.window.takeChecked(run.id);
  if (isNew) return clock.monotonic() + server.timeoutMs;
  if (readAt === undefined || !run.isAddition || unknown.edits.has(run.id)) return undefined;
  return readAt + JUST_READ_MS;
}

/** Undefined if it was not sent before this time, for example because the limiter held it back. */
async function patchUntil(untilMs: number, changes: ExperimentChanges, filing: Filing): Promise<Patched | undefined> {
  const { experiment, notebook, clock } = filing;
  function checkTime(): void {
    if (clock.monotonic() > untilMs) throw new ExpiredError('not sent in time');
  }
  try {
    return { record: await sendEdit(filing, () => notebook.patchExperiment(experiment, changes, checkTime)) };
  } catch (error) {
    if (error instanceof ExpiredError) return undefined;
    throw error;
  }
}

/** What the experiment already shows of the draft. Throws if a person has changed it. */
async function writtenParts(filing: Filing): Promise<'all' | 'body' | 'none'> {
  const { run, experiment, server, outbox } = filing;
  const isRevision = run.earlier.length > 0;
  if (isRevision) {
    // The new draft must be on disk: if a power failure undid it, what it wrote would look like a person's edit.
    await outbox.record(run.id, { kind: 'describing' });
    await awaitEarlierEdits(filing);
  }
  const record = await readOwn(experiment, filing);
  // A crash between the first creation and its read: it is as it was created, unless somebody gave it a title.
  if ((await server.facts()).keepsTitle === undefined && isBare(record)) await learnTitles(record, filing);
  const facts = await server.facts();
  if (run.adopted) {
    checkOpen(record, experiment, facts.dialect);
    return 'none';
  }
  if (isUntouched(record, facts)) {
    // A person may have changed the body that the creation carried, and keeps it.
    if (!isRevision && record.title === provisionalTitle(run.reference) && hasOrigin(record, run)) return 'body';
    if (isProvisional(String(record.title)) && record.title !== provisionalTitle(run.reference))
      await clearSpare(record, filing);
    return 'none';
  }
  await isStillOurs(record, filing);
  if (isRevision) {
    checkUnedited(record, filing, facts.dialect);
    // Those of a growing file are never changed, and there may be thousands.
    if (!run.isGrowing) await checkComments(filing, record);
    return showsDraft(record, run, facts.dialect) ? 'all' : 'none';
  }
  // The outcome of an earlier PATCH is unknown; it may have been applied in part.
  if (record.title === run.draft.title && record.date === run.draft.date) {
    const { body } = record;
    // Servers sanitise the body, so only its origin line is compared.
    if (typeof body !== 'string' || originIn(body)?.sha256 === originIn(run.draft.body)?.sha256) return 'all';
    if (body.trim() === '') return 'none';
  }
  throw changedBeforeFilled(experiment);
}

/** Without a body, and with a title of ours or none. */
const isBare = ({ title, body }: ExperimentRecord): boolean =>
  !body && (/^(untitled)?$/i.test(String(title ?? '')) || isProvisional(String(title)));

async function deliverComment(planned: PlannedComment, filing: Filing): Promise<void> {
  const isCurrent = planned.earlier.length === 0;
  if (planned.comment !== undefined && isCurrent) return;
  filing.stopping.throwIfAborted();
  const comment = planned.comment ?? (await postComment(planned, filing));
  if (!isCurrent) await reviseComment(planned, comment, filing);
}
