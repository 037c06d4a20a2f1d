import { NotebookError } from '../errors.js';
import { originIn, provisionalTitle } from '../markers.js';
import type { OpenRun } from '../outbox.js';
import { dropComment, postComment, refuseTouched, reviseComment } from './comment.js';
import { type DeliverDeps, type ExperimentChanges, HaltedError, type Notebook } from './context.js';
import { promptly, StaleError, surelyNotDone } from './failures.js';
import { anchorOf, findLost, haltSetBack, isUntouched, learnTitles, sweep } from './reconcile.js';
import { changedBefore, edit, isRevised, outwaitEdits, setTags } from './revise.js';

/**
 * Brings one run into the notebook from wherever it stands. Record, then act, then record:
 * after a crash at any line, the next delivery of the same run does what is missing and nothing twice.
 * Resolves with the experiment's id.
 */
export async function deliver(run: OpenRun, deps: DeliverDeps): Promise<number> {
  try {
    return await bring(run, deps);
  } catch (error) {
    throw await blame(error, deps.notebook);
  }
}

async function bring(run: OpenRun, deps: DeliverDeps): Promise<number> {
  const { halted } = await deps.memory.facts();
  if (halted !== undefined) throw new HaltedError(halted);
  if (run.experiment !== undefined && run.server !== deps.server) throw atAnotherNotebook(run);
  const { experiment, fresh } =
    run.experiment === undefined ? await create(run, deps) : { experiment: run.experiment, fresh: false };
  if (run.step !== 'described') {
    deps.goOn();
    await describe(run, experiment, fresh, deps);
  }
  for (const comment of run.comments) {
    const isRevised = comment.earlier.length === 0;
    if (comment.comment !== undefined && isRevised) continue;
    deps.goOn();
    const id = comment.comment ?? (await postComment(run, comment, experiment, deps));
    if (!isRevised) await reviseComment(run, comment, id, experiment, deps);
  }
  for (const comment of run.surplus) {
    deps.goOn();
    await dropComment(run, comment, experiment, deps);
  }
  await deps.record(run.id, { kind: 'finished' });
  return experiment;
}

/** Its id means something else here. */
const atAnotherNotebook = ({ experiment, server }: OpenRun): NotebookError =>
  new NotebookError(
    'conflict',
    `the run was begun as experiment ${experiment} at another notebook, ${server}`,
    {
      hint: 'set notebook.url back to finish it there, or refile it to have it filed here as well',
    },
  );

/** The run's experiment. `fresh`: just made, so that nobody else can have touched it yet. */
interface Created {
  readonly experiment: number;
  readonly fresh: boolean;
}

/** Makes the run's experiment, or finds the one that an earlier creation made although its answer was lost. */
async function create(run: OpenRun, deps: DeliverDeps): Promise<Created> {
  const { creations, memory } = deps;
  const { highest, keepsTitle, sweep: pending } = await memory.facts();
  if (run.step === 'creating' || pending !== undefined)
    return creations.exclude(() => lookAndMake(run, deps));
  // Until one id is known there is no floor to look from, and until one title was read back, nothing to look by.
  const together = highest === undefined || keepsTitle === undefined ? creations.exclude : creations.share;
  return together(() => useSpareOrMake(run, 0, deps));
}

/** In one go: a creation in between could make known what the look had to do without. */
async function lookAndMake(run: OpenRun, deps: DeliverDeps): Promise<Created> {
  // Read once. Another run may learn meanwhile whether titles are kept; a sweep that was skipped for lack of that
  // followed by a search that has it would attribute to this run what other runs left behind.
  const facts = await deps.memory.facts();
  // First, lest what another run's lost creation left behind be taken for this one's.
  await sweep(facts, deps);
  if (run.step !== 'creating') return useSpareOrMake(run, 0, deps);
  const found = await findLost(run, facts, deps);
  if (found !== undefined) return { experiment: found, fresh: false };
  const isUnseen = anchorOf(run) === undefined || facts.keepsTitle === undefined;
  return useSpareOrMake(run, isUnseen ? run.unseen + 1 : 0, deps);
}

async function useSpareOrMake(run: OpenRun, unseen: number, deps: DeliverDeps): Promise<Created> {
  deps.goOn();
  const spare = await deps.memory.claimSpare(run);
  if (spare !== undefined) return { experiment: spare, fresh: false };
  return { experiment: await make(run, unseen, deps), fresh: true };
}

/** `unseen`: how many earlier creations of the run may have left behind what nobody could look for. */
async function make(run: OpenRun, unseen: number, deps: DeliverDeps): Promise<number> {
  const { notebook, record, memory, server, clock } = deps;
  const { highest, keepsTitle, halted } = await memory.facts();
  // While this one waited for its turn, another may have met what nothing more may be sent after.
  if (halted !== undefined) throw new HaltedError(halted);
  // Durable before the POST: a crash here looks for the experiment, never makes a second.
  await record(run.id, { kind: 'intended', server, floor: highest, unseen, at: clock.now() });
  const title = provisionalTitle(run.reference);
  const experiment = await notebook.createExperiment({ title }).catch(async (error: unknown) => {
    if (surelyNotDone(error)) await record(run.id, { kind: 'notCreated' });
    else deps.losses.note(run.id);
    if (highest === undefined) await haltWithoutIds(error, deps);
    throw error;
  });
  const isOld = highest !== undefined && experiment <= highest;
  if (isOld || (await memory.hasExperiment(experiment)))
    await haltSetBack(
      experiment,
      `it gave a new experiment the id ${experiment}, which was given out before`,
      deps,
    );
  const sweepBelow = unseen > 0 ? { sweepBelow: experiment } : {};
  await record(run.id, { kind: 'created', experiment, found: false, ...sweepBelow });
  if (keepsTitle === undefined) await learnTitles(await notebook.readExperiment(experiment), deps.memory);
  return experiment;
}

/** Before the first id is known. One such answer may be an accident on the way; each leaves a blank experiment behind. */
const MOST_WITHOUT_ID = 3;

/**
 * A notebook, or a proxy before it, that makes experiments and never says which cannot be looked through either, since
 * no id is known: to go on would fill it with blank ones.
 */
async function haltWithoutIds(error: unknown, { memory }: Pick<DeliverDeps, 'memory'>): Promise<void> {
  if (!(error instanceof NotebookError) || error.status !== 201) return;
  if ((await memory.countUnknown()) < MOST_WITHOUT_ID) return;
  const halted = `the notebook makes experiments and does not say which: ${error.message}. See whether a proxy takes the Location header away; then stop labfeed, run \`labfeed recover --ids A-B\` with the ids of the newest experiments, and start it again`;
  await memory.learn({ halted });
  throw new HaltedError(halted);
}

/** Gives the experiment its real title, date, body and tags. */
async function describe(run: OpenRun, experiment: number, fresh: boolean, deps: DeliverDeps): Promise<void> {
  const { dialect } = await deps.memory.facts();
  const { tags: _, ...fields } = run.draft;
  // eLabFTW's PATCH refuses tags after having saved the rest; and there, bodies are markdown unless told otherwise.
  const changes = dialect === 'elabftw' ? { ...fields, content_type: HTML } : run.draft;
  if (!fresh || !(await patchFresh(run, experiment, changes, deps))) {
    if (!(await isDescribed(run, experiment, deps)))
      await edit(run, deps, () => deps.notebook.patchExperiment(experiment, changes));
  }
  if (dialect === 'elabftw') await setTags(run, experiment, deps);
  await deps.record(run.id, { kind: 'described' });
}

/**
 * Only straight after our own 201 nobody can have touched it, and the PATCH may go without a look.
 * False where it waited at the gate until that was no longer sure.
 */
async function patchFresh(
  run: OpenRun,
  experiment: number,
  changes: ExperimentChanges,
  deps: DeliverDeps,
): Promise<boolean> {
  const { notebook, timeoutMs, clock } = deps;
  try {
    await edit(run, deps, () =>
      promptly(timeoutMs, clock, (signal) => notebook.patchExperiment(experiment, changes, signal)),
    );
    return true;
  } catch (error) {
    if (error instanceof StaleError) return false;
    throw error;
  }
}

const HTML = 1;

async function isDescribed(run: OpenRun, experiment: number, deps: DeliverDeps): Promise<boolean> {
  const { notebook, memory } = deps;
  if (run.earlier.length > 0) await outwaitEdits(run, deps);
  const record = await notebook.readExperiment(experiment);
  // A crash between the first creation and its reading back: with nothing in it, it is still as it was made.
  if ((await memory.facts()).keepsTitle === undefined && !record['body']) await learnTitles(record, memory);
  if (run.adopted || isUntouched(record, await memory.facts())) return false;
  // The file was read otherwise before: what became of that is replaced, where nobody has touched it.
  if (run.earlier.length > 0) {
    const { dialect } = await memory.facts();
    const isDone = isRevised(record, run, experiment, dialect);
    await refuseTouched(run, experiment, deps);
    return isDone;
  }
  // An earlier PATCH arrived, perhaps only in part, and its answer did not.
  if (record.title === run.draft.title && record.date === run.draft.date) {
    const { body } = record;
    // Servers clean the body they store, so only its last line is compared.
    if (typeof body !== 'string' || originIn(body)?.sha256 === originIn(run.draft.body)?.sha256) return true;
    if (body.trim() === '') return false;
  }
  throw changedBefore(experiment);
}

/**
 * What a failure is really about. A 404 concerns the run, but for one case: if the keys cannot be listed either, a
 * proxy has lost the notebook behind it; then nobody's run is to blame. (What a 403 is about, `proven` finds out.)
 */
async function blame(error: unknown, { listKeys }: Pick<Notebook, 'listKeys'>): Promise<unknown> {
  const isOfRun = error instanceof NotebookError && error.failure === 'conflict';
  if (!isOfRun || error.status !== 404) return error;
  return listKeys().then(
    () => error,
    (refusal: unknown) => refusal,
  );
}

/**
 * A notebook whose 403 concerns what was asked for. If the keys cannot be listed either, it is the key that is
 * refused, which is told instead. Only the second 403 counts: the proof may have waited at the gate until a key that
 * was refused was taken again. To ask twice is harmless, since a 403 is surely not done.
 */
export function proven<N extends Notebook>(notebook: N): N {
  const asked =
    <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      try {
        return await ask(...args);
      } catch (error) {
        if (!isForbidden(error)) throw error;
        await notebook.listKeys();
        return ask(...args);
      }
    };
  return {
    ...notebook,
    createExperiment: asked(notebook.createExperiment),
    readExperiment: asked(notebook.readExperiment),
    patchExperiment: asked(notebook.patchExperiment),
    addTag: asked(notebook.addTag),
    listTags: asked(notebook.listTags),
    removeTag: asked(notebook.removeTag),
    listComments: asked(notebook.listComments),
    readComment: asked(notebook.readComment),
    postComment: asked(notebook.postComment),
    patchComment: asked(notebook.patchComment),
    deleteComment: asked(notebook.deleteComment),
  };
}

const isForbidden = (error: unknown): boolean =>
  error instanceof NotebookError && error.failure === 'conflict' && error.status === 403;
