import { NotebookError } from '../errors.js';
import { originIn, provisionalTitle } from '../markers.js';
import type { OpenRun, PlannedComment, ServerFacts } from '../outbox.js';
import { checkComments, dropComment, postComment, reviseComment } from './comments.js';
import {
  type DeliveryContext,
  type ExperimentChanges,
  type ExperimentRecord,
  type Filing,
  HaltedError,
} from './context.js';
import { attributeNotFound, certainlyNotDone, ExpiredError, sendEdit } from './failures.js';
import { adoptCreated, collectSpares, isUntouched, learnTitles, windowFloor } from './reconcile.js';
import {
  awaitEarlierEdits,
  changedBeforeFilled,
  checkUnedited,
  setTags,
  showsDraft,
  storedDifferently,
} from './revise.js';
import { haltRestored } from './server.js';

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
  const { experiment, isNew } = await obtainExperiment(run, context);
  const filing: Filing = { ...context, run, experiment };
  if (run.step !== 'described') {
    stopping.throwIfAborted();
    await describe(filing, isNew);
  }
  for (const comment of run.comments) await deliverComment(comment, filing);
  for (const comment of run.surplus) {
    stopping.throwIfAborted();
    await dropComment(comment, filing);
  }
  await outbox.record(run.id, { kind: 'finished' });
  return experiment;
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
}

/** The run's experiment: known, found by reconciliation, a spare, or a new one. */
async function obtainExperiment(run: OpenRun, context: DeliveryContext): Promise<Obtained> {
  if (run.experiment !== undefined) return { experiment: run.experiment, isNew: false };
  const { creations } = context.unknown;
  const { highest, keepsTitle, sweep } = await context.server.facts();
  if (run.step === 'creating' || sweep !== undefined) return creations.exclude(() => reconcileAndCreate(run, context));
  const create = () => useSpareOrCreate(run, 0, context);
  // Without an id there is no floor, and without a title that was read back nothing can be recognised.
  const isFirst = highest === undefined || keepsTitle === undefined;
  return isFirst ? creations.exclude(create) : creations.share(create);
}

/** Runs alone from the first read to the creation, since another creation could add to what was read. */
async function reconcileAndCreate(run: OpenRun, context: DeliveryContext): Promise<Obtained> {
  // Read once: another run may learn meanwhile whether titles are kept. Without that, the collection of spares is
  // skipped, and the search that follows would attribute to this run what others left behind.
  const facts = await context.server.facts();
  await collectSpares(facts, context);
  if (run.step !== 'creating') return useSpareOrCreate(run, 0, context);
  const found = await adoptCreated(run, facts, context);
  if (found !== undefined) return { experiment: found, isNew: false };
  const isUnseen = windowFloor(run) === undefined || facts.keepsTitle === undefined;
  return useSpareOrCreate(run, isUnseen ? run.unseen + 1 : 0, context);
}

async function useSpareOrCreate(run: OpenRun, unseen: number, context: DeliveryContext): Promise<Obtained> {
  context.stopping.throwIfAborted();
  const spare = await context.server.claimSpare(run);
  if (spare !== undefined) return { experiment: spare, isNew: false };
  return { experiment: await create(run, unseen, context), isNew: true };
}

/** `unseen`: earlier creations of this run that may have left experiments which could not be looked for. */
async function create(run: OpenRun, unseen: number, context: DeliveryContext): Promise<number> {
  const { notebook, outbox, server, clock } = context;
  const facts = await server.facts();
  // Another run may have halted the server while this one waited for the lock.
  checkHalt(facts);
  const { highest, keepsTitle } = facts;
  const intent = { server: server.url, floor: highest, unseen, at: clock.now() };
  // Durable before the POST: after a crash, delivery looks for the experiment instead of creating a second one.
  await outbox.record(run.id, { kind: 'intended', ...intent });
  const experiment = await notebook
    .createExperiment({ title: provisionalTitle(run.reference) })
    .catch((error: unknown) => creationFailed(error, run, highest, context));
  if ((highest !== undefined && experiment <= highest) || (await server.hasExperiment(experiment)))
    await haltRestored(experiment, `it assigned the id ${experiment} a second time`, server);
  const sweepBelow = unseen > 0 ? { sweepBelow: experiment } : {};
  await outbox.record(run.id, { kind: 'created', experiment, found: false, ...sweepBelow });
  if (keepsTitle === undefined) await learnTitles(await notebook.readExperiment(experiment), server);
  return experiment;
}

/** A single 201 without an id may be an accident. Each one leaves a blank experiment behind. */
const MAX_WITHOUT_ID = 3;

async function creationFailed(
  error: unknown,
  run: OpenRun,
  highest: number | undefined,
  { outbox, server, unknown }: DeliveryContext,
): Promise<never> {
  if (certainlyNotDone(error)) await outbox.record(run.id, { kind: 'notCreated' });
  else unknown.posts.note(run.id);
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
async function describe(filing: Filing, isNew: boolean): Promise<void> {
  const { run, experiment, notebook, server, outbox } = filing;
  const { dialect } = await server.facts();
  const { tags: _, ...fields } = run.draft;
  // eLabFTW refuses a PATCH with tags after saving the rest, and may take bodies for markdown.
  const changes = dialect === 'elabftw' ? { ...fields, content_type: HTML } : run.draft;
  let patched = isNew ? await patchNew(changes, filing) : undefined;
  if (!patched && !(await isDescribed(filing)))
    patched = { record: await sendEdit(filing, () => notebook.patchExperiment(experiment, changes)) };
  if (dialect === 'elabftw') await setTags(filing);
  await outbox.record(run.id, { kind: 'described', stored: storedDifferently(patched?.record, run.draft) });
}

/** `record`: the experiment after the PATCH, if the server returned it. */
interface Patched {
  readonly record: ExperimentRecord | undefined;
}

/**
 * Immediately after our own 201, nobody can have changed the experiment, so it is patched without a read.
 * Undefined if the limiter held the request back for longer than that.
 */
async function patchNew(changes: ExperimentChanges, filing: Filing): Promise<Patched | undefined> {
  const { experiment, notebook, server, clock } = filing;
  const expired = new AbortController();
  const sent = new AbortController();
  void clock.sleep(server.timeoutMs, sent.signal).then(() => {
    if (!sent.signal.aborted) expired.abort(new ExpiredError('not sent in time'));
  });
  try {
    return { record: await sendEdit(filing, () => notebook.patchExperiment(experiment, changes, expired.signal)) };
  } catch (error) {
    if (error instanceof ExpiredError) return undefined;
    throw error;
  } finally {
    sent.abort();
  }
}

/** Whether the experiment already shows the draft. Throws if a person has changed it. */
async function isDescribed(filing: Filing): Promise<boolean> {
  const { run, experiment, notebook, server } = filing;
  const isRevision = run.earlier.length > 0;
  if (isRevision) await awaitEarlierEdits(filing);
  const record = await notebook.readExperiment(experiment);
  // A crash between the first creation and its read: while the body is empty, it is as it was created.
  if ((await server.facts()).keepsTitle === undefined && !record['body']) await learnTitles(record, server);
  const facts = await server.facts();
  if (run.adopted || isUntouched(record, facts)) return false;
  if (isRevision) {
    checkUnedited(record, filing, facts.dialect);
    await checkComments(filing);
    return showsDraft(record, run, facts.dialect);
  }
  // The outcome of an earlier PATCH is unknown; it may have been applied in part.
  if (record.title === run.draft.title && record.date === run.draft.date) {
    const { body } = record;
    // Servers sanitise the body, so only its origin line is compared.
    if (typeof body !== 'string' || originIn(body)?.sha256 === originIn(run.draft.body)?.sha256) return true;
    if (body.trim() === '') return false;
  }
  throw changedBeforeFilled(experiment);
}

async function deliverComment(planned: PlannedComment, filing: Filing): Promise<void> {
  const isCurrent = planned.earlier.length === 0;
  if (planned.comment !== undefined && isCurrent) return;
  filing.stopping.throwIfAborted();
  const comment = planned.comment ?? (await postComment(planned, filing));
  if (!isCurrent) await reviseComment(planned, comment, filing);
}
