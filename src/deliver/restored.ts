import type { Clock } from '../clock.js';
import { LabfeedError, NotebookError } from '../errors.js';
import { markIn, originIn, provisionalTitle } from '../markers.js';
import type { FiledRun, LearntFacts, ServerOutbox } from '../outbox.js';
import {
  type CommentRecord,
  type DeliveryContext,
  type ExperimentRecord,
  type Filing,
  HaltedError,
  ownerOf,
  type Server,
  type WindowMemory,
} from './context.js';
import { isUntouched } from './reconcile.js';
import { END_OF_IDS, tryRead } from './window.js';

/** After a longer pause between two writes, the server may have been restored without a failed request. */
const MAX_PAUSE_MS = 30_000;

/**
 * Holds back every write until `check` has succeeded: after the start, after each outage, and after a pause. A write that
 * waited for the end of an outage must not reach a server that was restored meanwhile.
 */
export function createWriteGuard(check: () => Promise<void>, clock: Clock) {
  let checked: Promise<void> | undefined;
  let usedAt = clock.monotonic();

  async function ensure(): Promise<void> {
    for (let current: unknown; current !== checked || checked === undefined; ) {
      checked ??= check().then(() => {
        usedAt = clock.monotonic();
      });
      current = checked;
      await checked.catch((error: unknown) => {
        if (current === checked) checked = undefined;
        throw error;
      });
    }
  }

  function distrustAfterPause(): void {
    const now = clock.monotonic();
    if (now - usedAt > MAX_PAUSE_MS) checked = undefined;
    usedAt = now;
  }

  /** Sends in its turn, unless the server is distrusted since the check. */
  async function sendChecked<T>(send: () => Promise<T>): Promise<T> {
    distrustAfterPause();
    if (checked === undefined) throw new UncheckedError('the server has to be checked first');
    try {
      return await send();
    } catch (error) {
      // Nothing listened there for a moment, perhaps during a restore.
      if (error instanceof NotebookError && error.status === undefined && !error.outcomeUnknown) checked = undefined;
      throw error;
    }
  }

  return {
    ensure,
    /** The server may have been restored since the last check. */
    distrust(): void {
      checked = undefined;
    },
    /**
     * Sends a write when `schedule` says. The check needs turns of its own: a write that waited for it in its turn
     * would block the limiter if it admits only one request at a time, as after a 429.
     */
    async write<T>(send: () => Promise<T>, schedule: (send: () => Promise<T>) => Promise<T>): Promise<T> {
      distrustAfterPause();
      for (;;) {
        await ensure();
        try {
          return await schedule(() => sendChecked(send));
        } catch (error) {
          if (!(error instanceof UncheckedError)) throw error;
        }
      }
    },
  };
}

/** The write was not sent. */
class UncheckedError extends LabfeedError {
  override readonly name = 'UncheckedError';
}

/** Throws if sending is halted. Halts it if our newest experiments show that the server was restored. */
export async function checkRestored(context: DeliveryContext): Promise<void> {
  const { server, notebook } = context;
  const { halted } = await server.facts();
  if (halted !== undefined) throw new HaltedError(halted);
  const { restored } = await inspectNewest(server, readerOf(context));
  if (!restored) return;
  // A proxy that has lost its backend answers 404 to everything.
  await notebook.listKeys();
  await haltRestored(restored.from, restored.sign, server);
}

const readerOf = ({ notebook }: DeliveryContext): EntryReader => ({
  readExperiment: (id) => tryRead(id, notebook),
  listComments: notebook.listComments,
});

/**
 * For an experiment that was known before, ahead of the first write to it: whether it shows anything of the run. False if
 * a person has rewritten it. Halts if the server was restored, so that the id belongs to another experiment.
 */
export async function isStillOurs(record: ExperimentRecord, filing: Filing): Promise<boolean> {
  const { run, experiment, server } = filing;
  const reader = readerOf(filing);
  if (run.step === 'described' && isUntouched(record, await server.facts()))
    await haltRestored(experiment, emptied(experiment).sign, server);
  // Until its next version is written, the experiment shows an earlier one.
  const shown = [run.draft, ...run.earlier].map(({ title, body }) => ({
    title,
    sha256: originIn(body)?.sha256 ?? run.sha256,
  }));
  for (const version of shown) if (showsVersion(record, version)) return true;
  if (await isOurs(record, { ...run, experiment, title: run.draft.title }, reader)) return true;
  const { restored, ours } = await inspectNewest(server, reader);
  // Ids ascend: if a later one is still ours, this one is too.
  const isLaterOurs = ours !== undefined && ours > experiment;
  const { owner } = await server.facts();
  if (!restored && (isLaterOurs || owner === undefined || ownerOf(record) === owner)) return false;
  const from = Math.min(experiment, restored?.from ?? experiment);
  return haltRestored(from, restored?.sign ?? reassigned([experiment]), server);
}

export const rewritten = ({ run: { id }, experiment }: Filing): NotebookError =>
  new NotebookError(
    'conflict',
    `somebody rewrote experiment ${experiment}: nothing of what labfeed wrote is left in it`,
    {
      hint: `labfeed adds nothing to it. Restore it and run \`labfeed retry ${id}\`, or file the run again: \`labfeed refile ${id}\``,
    },
  );

interface EntryReader {
  readExperiment(id: number): Promise<ExperimentRecord | 'missing' | 'private'>;
  listComments(id: number): Promise<readonly CommentRecord[]>;
}

/** How many of our newest experiments are looked at. */
const NEWEST = 8;

/** Nobody rewrites more of our newest experiments until nothing of ours is left in them. */
const MAX_REWRITTEN = 2;

type Inspected = Pick<ServerOutbox, 'facts' | 'learn' | 'lastFiled' | 'lastDescribed'>;

/**
 * Reads our newest experiments, from the highest id down to the first that is still ours, and from the one that was
 * filled in last back to the first that still is: usually one request. A spare has a low id, but may be filled in late.
 * Those that were deleted or made private prove nothing. `restored`: from which id on the server assigned ids again, and
 * how it shows. If only the last few are gone, the id of the next creation shows it.
 */
export async function inspectNewest(server: Inspected, reader: EntryReader) {
  const remembering = rememberRead(reader);
  const inspected = await inspectHighest(server, remembering);
  if (inspected.restored) return inspected;
  const facts = await server.facts();
  for (const run of await server.lastDescribed(NEWEST)) {
    const record = await remembering.readExperiment(run.experiment);
    if (typeof record === 'string') continue;
    if (isUntouched(record, facts)) return { ours: undefined, restored: emptied(run.experiment) };
    if (await isOurs(record, run, remembering)) break;
  }
  return inspected;
}

/** Reads each experiment once. */
function rememberRead(reader: EntryReader): EntryReader {
  const known = new Map<number, ReturnType<EntryReader['readExperiment']>>();
  return {
    ...reader,
    readExperiment(id) {
      const record = known.get(id) ?? reader.readExperiment(id);
      known.set(id, record);
      return record;
    },
  };
}

async function inspectHighest(server: Inspected, reader: EntryReader) {
  const newest = await server.lastFiled(NEWEST);
  const others: { id: number; owner: string | undefined }[] = [];
  const facts = await server.facts();
  let missing = 0;
  for (const run of newest) {
    const record = await reader.readExperiment(run.experiment);
    if (record === 'missing') missing += 1;
    if (typeof record === 'string') continue;
    if (isUntouched(record, facts)) return { ours: undefined, restored: emptied(run.experiment) };
    const owner = ownerOf(record);
    if (await isOurs(record, run, reader)) {
      if (owner !== facts.owner) await server.learn({ owner: owner ?? null });
      return { ours: run.experiment, restored: restoredFrom(others, owner) };
    }
    others.push({ id: run.experiment, owner });
    // That is enough to be certain, and each one costs two requests.
    if (others.length > MAX_REWRITTEN) break;
  }
  return { ours: undefined, restored: restoredFrom(others, facts.owner) ?? (await allGone(newest, missing, reader)) };
}

interface Restored {
  readonly from: number;
  readonly sign: string;
}

const emptied = (id: number): Restored => ({
  from: id,
  sign: `experiment ${id}, which labfeed filled in, is empty again`,
});

/** `owner`: of our experiments. A person with the same account may have rewritten one. */
function restoredFrom(
  others: readonly { readonly id: number; readonly owner: string | undefined }[],
  owner: string | undefined,
): Restored | undefined {
  const isRewritten = (other: { owner: string | undefined }) => owner !== undefined && other.owner === owner;
  if (others.length <= MAX_REWRITTEN && others.every(isRewritten)) return undefined;
  const ids = others.map(({ id }) => id).reverse();
  return { from: Math.min(...ids), sign: reassigned(ids) };
}

const reassigned = (ids: readonly number[]): string =>
  `${ids.length === 1 ? 'experiment' : 'experiments'} ${ids.join(', ')}, filed by labfeed, now ${ids.length === 1 ? 'has' : 'have'} other content`;

/** All of them are missing, and nothing is above them. A few may have been deleted by people. */
async function allGone(
  newest: readonly FiledRun[],
  missing: number,
  { readExperiment }: EntryReader,
): Promise<Restored | undefined> {
  const ids = newest.map(({ experiment }) => experiment);
  const [highest = 0] = ids;
  if (missing < NEWEST) return undefined;
  for (let id = highest + 1; id <= highest + END_OF_IDS; id++)
    if ((await readExperiment(id)) !== 'missing') return undefined;
  const from = Math.min(...ids);
  return { from, sign: `the last experiments that labfeed created, ${from} to ${highest}, no longer exist` };
}

/** Whether the experiment shows anything of the run: its origin line, one of its titles or a comment. */
async function isOurs(record: ExperimentRecord, run: FiledRun, { listComments }: EntryReader): Promise<boolean> {
  if (record.title === provisionalTitle(run.reference) || showsVersion(record, run)) return true;
  const comments = await listComments(run.experiment);
  return comments.some((comment) =>
    Object.values(comment).some((text) => typeof text === 'string' && markIn(text)?.reference === run.reference),
  );
}

/** Another PC can file a file of the same name, so a title counts only if there is no other origin. */
function showsVersion({ title, body }: ExperimentRecord, version: Pick<FiledRun, 'title' | 'sha256'>): boolean {
  const origin = typeof body === 'string' ? originIn(body) : undefined;
  return origin ? origin.sha256 === version.sha256 : title === version.title;
}

/** From this id on, at the latest, ids may refer to other experiments, and no id window can be trusted. */
export async function haltRestored(id: number, sign: string, server: Server): Promise<never> {
  const what = 'the notebook was restored to an older state, or does not assign ascending ids';
  return halt(server, `${what}: ${sign}`, { restoredFrom: id });
}

/**
 * The server's facts, with halts that take effect even if the journal cannot be written: they are kept in memory until
 * it can. Otherwise runs would continue, and what they create would hide that the server was restored.
 */
export function rememberHalts<S extends ServerOutbox>(server: S, memory: WindowMemory): S {
  const learn = async (facts: LearntFacts): Promise<void> => {
    if (typeof facts.halted === 'string') memory.halt ??= facts;
    await server.learn(facts);
    if (facts === memory.halt) memory.halt = undefined;
  };
  return {
    ...server,
    learn,
    async facts() {
      const { halt } = memory;
      if (halt === undefined) return server.facts();
      await learn(halt).catch(() => undefined);
      const facts = await server.facts();
      return { ...facts, halted: facts.halted ?? halt.halted ?? undefined };
    },
  };
}

export const RECOVER = 'Stop labfeed, run `labfeed recover` and start labfeed again';

/** Durable before it takes effect, so that no restart forgets it. Only `recover` ends it. */
export async function halt(server: Server, reason: string, facts: LearntFacts = {}): Promise<never> {
  const halted = `${reason}. ${RECOVER}`;
  await server.learn({ ...facts, halted });
  throw new HaltedError(halted);
}
