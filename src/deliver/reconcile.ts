import { NotebookError } from '../errors.js';
import { isProvisional, originIn, provisionalReference, provisionalTitle } from '../markers.js';
import type { OpenRun, ServerFacts, UnknownCreation } from '../outbox.js';
import {
  type Absence,
  type DeliveryContext,
  type ExperimentRecord,
  gracePeriodMs,
  NotYetError,
  ownerOf,
  type Server,
} from './context.js';
import { END_OF_IDS, MAX_GAP, MAX_SKIPPED, type Seen, tryRead, UNREADABLE_RETRY_MS, WindowReader } from './window.js';

/** What became of the creations of a run: an experiment, or nothing that could be found. */
export type Settled = { readonly experiment: number } | { readonly absence: Absence };

/**
 * Finds out what became of all creations with an unknown outcome, in one pass over their windows, and records what is
 * found. A match counts at once; absence counts only if the pass began after the grace period. Must run alone: with
 * another creation in flight, its experiment could be adopted instead. Throws if nothing can be decided about `run`.
 */
export async function settleCreations(run: OpenRun, facts: ServerFacts, context: DeliveryContext): Promise<Settled> {
  const { server, unknown } = context;
  if (run.server !== server.url)
    throw undecided(`the outcome of creating its experiment on another notebook, ${run.server}, is unknown`);
  const known = unknown.window.absent.get(run.id);
  if (known !== undefined) return { absence: known };
  const graceMs = await gracePeriodMs(server);
  const leftMs = (id: number): number => graceMs - unknown.posts.elapsedMs(id);
  const creations = await server.unknownCreations();
  const open = creations.flatMap((creation) => {
    const absence = unknown.window.absent.get(creation.run);
    if (creation.run !== run.id && (creation.isParked || absence?.isProved)) return [];
    return absence ? { ...creation, floor: absence.through } : creation;
  });
  const late = new Set(open.map((creation) => creation.run).filter((id) => leftMs(id) > 0));
  const reader = new WindowReader(context, await isAnyLate(creations, context));
  const searched = await searchTitles(open, late, facts, context);
  // Before a run creates again, what may be above a gap is looked for, unless a later creation shows that nothing is.
  const { highest = 0 } = facts;
  const isLast = open.some(({ run: id }) => !late.has(id) && !isBelowCeiling(id, highest, graceMs, context));
  const end = isLast ? MAX_SKIPPED : END_OF_IDS;
  const found = searched ?? (await readWindows(open, end, facts, reader, context));
  const total = creations.reduce((sum, { unseen }) => sum + 1 + unseen, 0);
  const { adopted, disputed, withheld } = await adopt(run.id, open, { found, late, total, reader, facts }, context);
  const missing = open.filter(({ run: id }) => !adopted.has(id) && !disputed.has(id) && !withheld.has(id));
  if (missing.length > 0 || disputed.size > 0) await reader.finish();
  const problem = disputed.get(run.id);
  if (problem !== undefined) throw undecided(`the outcome of creating its experiment is unknown, and ${problem}`);
  const experiment = adopted.get(run.id);
  const isWaiting = (id: number): boolean => late.has(id) || leftMs(id) > 0;
  for (const creation of missing) {
    if (isWaiting(creation.run) || dependsOn(creation, reader.unreadable)) continue;
    // What could not be recognised must be read again when more is known.
    if (!searched && (creation.floor === undefined || facts.keepsTitle === undefined)) continue;
    const isProved = searched !== undefined || isBelowCeiling(creation.run, reader.end, graceMs, context);
    unknown.window.absent.set(creation.run, { through: reader.end, isProved });
  }
  if (experiment !== undefined) return { experiment };
  const isUnread = dependsOn(run, reader.unreadable);
  // With a spare that has its title, it need not wait: what it may have left elsewhere is looked for later.
  const isUndecided = isUnread || withheld.has(run.id);
  if (isWaiting(run.id) || (isUndecided && !(await server.hasSpare(run.reference))))
    throw notYet(run, leftMs(run.id), reader.unreadable, context);
  const through = isUnread ? (run.floor ?? 0) : reader.end;
  return { absence: unknown.window.absent.get(run.id) ?? { through, isProved: false } };
}

/** Whether one of these creations may still take effect. */
async function isAnyLate(
  creations: readonly UnknownCreation[],
  { server, unknown }: DeliveryContext,
): Promise<boolean> {
  const graceMs = await gracePeriodMs(server);
  return creations.some(({ run }) => unknown.posts.elapsedMs(run) < graceMs);
}

/** Whether its experiment could be one of those that cannot be read. */
const dependsOn = ({ floor }: { floor: number | undefined }, unreadable: readonly number[]): boolean =>
  unreadable.some((id) => id > (floor ?? 0));

function notYet(run: OpenRun, leftMs: number, unreadable: readonly number[], { clock }: DeliveryContext): NotYetError {
  if (leftMs <= 0 && dependsOn(run, unreadable))
    return new NotYetError(
      `the outcome of creating its experiment is unknown, and it may be experiment ${unreadable.join(', ')}, which cannot be read`,
      clock.now() + UNREADABLE_RETRY_MS,
    );
  return new NotYetError(
    'a create request with an unknown outcome may still take effect',
    clock.now() + Math.max(0, leftMs),
  );
}

/** A creation that took effect did so before its grace period ended, so its id is below that of one sent afterwards. */
function isBelowCeiling(
  run: number,
  through: number,
  graceMs: number,
  { unknown: { posts, window }, clock }: DeliveryContext,
): boolean {
  const { ceiling } = window;
  if (ceiling === undefined || ceiling.id > through) return false;
  return posts.elapsedMs(run) - (clock.monotonic() - ceiling.sentAt) >= graceMs;
}

/** Experiments that creations of unknown outcome may have left behind, in ascending order. */
interface Candidates {
  /** By reference. */
  readonly titled: ReadonlyMap<string, readonly number[]>;
  /** By run: those with its origin line under another title. On eLabFTW, the creation carries the body. */
  readonly renamed: ReadonlyMap<number, readonly number[]>;
  /** Where titles are dropped: any of these creations may have left them behind. */
  readonly blank: readonly number[];
  /** Whether somebody else uses the account: then a blank experiment may be theirs. */
  readonly isShared: boolean;
}

/** More than a notebook has of them at any time, unless people use the word in their titles. */
const MAX_FOUND = 100;

/**
 * On eLabFTW, the search replaces the windows. Results are substring matches, so they are compared exactly. Undefined
 * if the search proves nothing: titles may be dropped, or it does not find what is known to exist.
 */
async function searchTitles(
  open: readonly UnknownCreation[],
  late: ReadonlySet<number>,
  { dialect, keepsTitle }: ServerFacts,
  context: DeliveryContext,
): Promise<Candidates | undefined> {
  if (dialect !== 'elabftw' || keepsTitle !== true) return undefined;
  const { notebook, server } = context;
  try {
    const all = await notebook.searchTitles('labfeed ', MAX_FOUND);
    const titled = new Map<string, number[]>();
    const renamed = new Map<number, number[]>();
    let isReliable: boolean | undefined;
    for (const creation of open) {
      const { run, reference } = creation;
      const title = provisionalTitle(reference);
      const found = all.length < MAX_FOUND ? all : await notebook.searchTitles(title, MAX_FOUND);
      const ids: number[] = [];
      for (const { id, ...record } of found)
        if (record.title === title && !(await server.hasExperiment(id))) ids.push(id);
      if (ids.length === 0 && !late.has(run)) isReliable ??= await findsKnown(context);
      if (isReliable === false) return undefined;
      // Before the creation may be repeated.
      if (ids.length === 0 && !late.has(run)) renamed.set(run, await searchRenamed(creation, context));
      titled.set(
        reference,
        ids.sort((a, b) => a - b),
      );
    }
    return { titled, renamed, blank: [], isShared: false };
  } catch (error) {
    // Older versions do not support this search.
    if (error instanceof NotebookError && !error.retryable) return undefined;
    throw error;
  }
}

/** A person may have given the unfinished experiment of this creation another title. Lists have no bodies. */
async function searchRenamed(creation: UnknownCreation, context: DeliveryContext): Promise<number[]> {
  const { notebook, server } = context;
  const renamed: number[] = [];
  for (const { id } of await notebook.searchBodies([` sha256:${creation.sha256}`])) {
    if (await server.hasExperiment(id)) continue;
    const record = await tryRead(id, notebook);
    if (typeof record === 'object' && isRenamed(id, record, creation, context)) renamed.push(id);
  }
  return renamed;
}

function isRenamed(
  id: number,
  { title, body }: ExperimentRecord,
  { sha256, floor = 0 }: UnknownCreation,
  { outbox }: DeliveryContext,
): boolean {
  const origin = typeof body === 'string' ? originIn(body) : undefined;
  return (
    id > floor &&
    !isProvisional(String(title)) &&
    origin?.sha256 === sha256 &&
    (origin.journal ?? outbox.id) === outbox.id
  );
}

/** Of how many of our experiments one must be found. */
const MAX_KNOWN = 3;

/** Whether the search finds one of our last experiments by the title that it has now. */
async function findsKnown({ notebook, server }: DeliveryContext): Promise<boolean> {
  for (const { experiment: known } of await server.lastFiled(MAX_KNOWN)) {
    const record = await tryRead(known, notebook);
    // Quotes end the text of a search, and some other characters have a meaning in it.
    const words = typeof record === 'object' && String(record.title ?? '').match(/[\p{L}\p{N} .,:-]+/gu);
    const text = (words || []).sort((a, b) => b.length - a.length)[0]?.trim() ?? '';
    if (text.length < MIN_TEXT) continue;
    const found = await notebook.searchTitles(text, MAX_FOUND);
    if (found.some(({ id }) => id === known)) return true;
  }
  return false;
}

/** Shorter texts would match too many titles. */
const MIN_TEXT = 3;

/** One walk over the union of the windows. */
async function readWindows(
  open: readonly UnknownCreation[],
  end: number,
  facts: ServerFacts,
  reader: WindowReader,
  context: DeliveryContext,
): Promise<Candidates> {
  const titled = new Map<string, number[]>(open.map(({ reference }) => [reference, []]));
  const renamed = new Map<number, number[]>(open.map(({ run }) => [run, []]));
  const blank: number[] = [];
  let { shared: isShared = false } = facts;
  const collect = async (experiments: AsyncGenerator<Seen>): Promise<void> => {
    for await (const { id, record } of experiments) {
      const reference = referenceIn(record);
      const other = open.find((creation) => isRenamed(id, record, creation, context));
      const matches = reference === undefined ? other && renamed.get(other.run) : titled.get(reference);
      if (matches) matches.push(id);
      // The server keeps titles by now, or a run has used what another run left behind.
      else if (await keepStray(id, record, context.server)) continue;
      else if (isCandidate(record, facts)) blank.push(id);
      else if (facts.keepsTitle === false && facts.owner !== undefined && ownerOf(record) === facts.owner)
        isShared = true;
      // Until it is known whether titles are kept, our experiments cannot be recognised.
      else if (facts.keepsTitle !== undefined) context.unknown.window.foreign.add(id);
    }
  };
  const floors = open.map(({ floor }) => floor);
  const { highest } = facts;
  // Sent before any id was known. Another creation has since shown where the ids are.
  if (floors.includes(undefined) && highest !== undefined) await collect(reader.downward(highest + 1));
  const lowest = Math.min(...floors.map((floor) => floor ?? highest ?? Number.POSITIVE_INFINITY));
  if (Number.isFinite(lowest)) await collect(reader.upward(lowest, end, highest));
  if (isShared && !facts.shared) await context.server.learn({ shared: true });
  const ascending = (ids: readonly number[]) => [...new Set(ids)].sort((a, b) => a - b);
  return {
    titled: new Map([...titled].map(([reference, ids]) => [reference, ascending(ids)])),
    renamed,
    blank: ascending(blank),
    isShared,
  };
}

const referenceIn = ({ title }: ExperimentRecord): string | undefined =>
  typeof title === 'string' ? provisionalReference(title) : undefined;

interface Pass {
  readonly found: Candidates;
  /** Runs whose grace period was not over when the pass began. */
  readonly late: ReadonlySet<number>;
  /** The number of all creations with an unknown outcome. */
  readonly total: number;
  readonly reader: WindowReader;
  readonly facts: ServerFacts;
}

/**
 * Gives each run what it may have; among equals, run `asked` first. `disputed`: why a person has to decide, by run.
 * `withheld`: runs that get nothing yet, although there is something for them, which is kept for them if it has their
 * title. They must not create another.
 */
async function adopt(
  asked: number,
  open: readonly UnknownCreation[],
  pass: Pass,
  context: DeliveryContext,
): Promise<{
  adopted: ReadonlyMap<number, number>;
  disputed: ReadonlyMap<number, string>;
  withheld: ReadonlySet<number>;
}> {
  const adopted = new Map<number, number>();
  const disputed = new Map<number, string>();
  const withheld = new Set<number>();
  let { total } = pass;
  let blank = pass.found.blank;
  // Windows differ only in their floors: the smallest one chooses first.
  const rank = ({ run, floor = 0 }: UnknownCreation): number => floor + (run === asked ? 0.5 : 0);
  for (const creation of [...open].sort((a, b) => rank(b) - rank(a))) {
    const { run, reference, floor, unseen } = creation;
    const titled = pass.found.titled.get(reference) ?? [];
    const isTitled = titled.length > 0 || pass.facts.keepsTitle !== false;
    const candidates = isTitled ? titled : blank.filter((id) => id > (floor ?? 0));
    // A title belongs to one run; a blank experiment can belong to any run with an unknown outcome.
    const problem =
      disputeOf(candidates, isTitled ? 1 + unseen : total, !isTitled && pass.found.isShared) ??
      (candidates.length === 0 ? renamedProblem(pass.found.renamed.get(run) ?? []) : undefined);
    if (problem !== undefined) {
      disputed.set(run, problem);
      continue;
    }
    const [experiment, ...others] = candidates.slice(0, 1 + unseen);
    // With several creations of this run unaccounted for, adopting the first would leave the last one behind.
    if (experiment === undefined) continue;
    const isUnread = dependsOn(creation, pass.reader.unreadable);
    if (unseen > 0 && (pass.late.has(run) || isUnread)) {
      withheld.add(run);
      // An entry may stay unreadable, while new ids move the window past what was found.
      if (isTitled && !pass.late.has(run)) for (const id of candidates) await context.server.addSpare(id, reference);
      continue;
    }
    await adoptOne(creation, experiment, isTitled, others, pass, context);
    adopted.set(run, experiment);
    total -= 1 + unseen;
    blank = blank.filter((id) => id !== experiment && !others.includes(id));
  }
  return { adopted, disputed, withheld };
}

/** Why none of these can be given to a run without guessing; undefined if there is no reason, or nothing to give. */
function disputeOf(candidates: readonly number[], expected: number, isShared: boolean): string | undefined {
  if (candidates.length > expected) return `too many experiments match: ${candidates.join(', ')}`;
  if (candidates.length === 0 || !isShared) return undefined;
  return `somebody else also creates experiments as this user, so ${candidates.join(', ')} may be theirs`;
}

const renamedProblem = (ids: readonly number[]): string | undefined =>
  ids.length === 0
    ? undefined
    : `somebody seems to have changed the title of its unfinished experiment: ${ids.join(', ')} shows its origin line`;

async function adoptOne(
  { run, reference, unseen }: UnknownCreation,
  experiment: number,
  isTitled: boolean,
  others: readonly number[],
  { reader, facts }: Pass,
  { server, outbox, unknown }: DeliveryContext,
): Promise<void> {
  for (const id of others) await server.addSpare(id, isTitled ? reference : undefined);
  const left = unseen - others.length;
  // A search has found all there is.
  if (left > 0 && reader.end > 0)
    await server.learn({ sweepFrom: reader.end + 1, sweepCount: (facts.sweepCount ?? 0) + left });
  await outbox.record(run, { kind: 'created', experiment, found: true });
  unknown.window.absent.delete(run);
  if (!isTitled) unknown.posts.adopted(run);
}

/**
 * The grace period of the last POST of this run; to be called before the search. The result throws if the period was not
 * over at that time.
 */
export async function gracePeriod(
  run: Pick<OpenRun, 'id'>,
  pending: string,
  { server, unknown, clock }: DeliveryContext,
): Promise<() => void> {
  const graceMs = await gracePeriodMs(server);
  const leftMs = (): number => graceMs - unknown.posts.elapsedMs(run.id);
  const isOver = leftMs() <= 0;
  return () => {
    if (!isOver) throw new NotYetError(pending, clock.now() + Math.max(0, leftMs()));
  };
}

/**
 * Unseen creations may have left experiments between the end of an earlier pass and the next creation. What is found
 * there is used by the next runs before any POST. Must run alone.
 */
export async function collectSpares(facts: ServerFacts, context: DeliveryContext): Promise<void> {
  const { server, unknown, clock } = context;
  const { sweep, sweepFrom = 0, sweepCount = 0, keepsTitle } = facts;
  // Until it is known whether titles are kept, our experiments cannot be recognised.
  if (sweep === undefined || keepsTitle === undefined || !unknown.window.maySweep(clock.monotonic())) return;
  const reader = new WindowReader(context, await isAnyLate(await server.unknownCreations(), context));
  const blank: number[] = [];
  for await (const { id, record } of sweepFrom > 0
    ? reader.between(Math.max(sweepFrom, sweep - MAX_GAP), sweep)
    : reader.downward(sweep)) {
    if (await keepStray(id, record, server)) continue;
    if (isCandidate(record, facts)) blank.push(id);
    else unknown.window.foreign.add(id);
  }
  await reader.finish();
  // With more of them, some are a person's. Creations of unknown outcome then use them as spares, too.
  if (!facts.shared && blank.length <= sweepCount + (await server.countUnknown()))
    for (const id of blank) await server.addSpare(id);
  if (reader.unreadable.length === 0) return server.learn({ sweepFrom: null, sweep: null, sweepCount: null });
  unknown.window.sweepAgainAt = clock.monotonic() + UNREADABLE_RETRY_MS;
}

/**
 * A creation that the journal does not know, because the journal is older or the server was late. Its run uses it
 * before it creates another, even if its file is found later; a run in step `creating` finds it by itself. Another PC's
 * creations are kept, too, but no run here has their references.
 */
export async function keepStray(id: number, { title, state }: ExperimentRecord, server: Server): Promise<boolean> {
  const reference = typeof title === 'string' ? provisionalReference(title) : undefined;
  // On eLabFTW, a person may have archived or deleted it.
  if (reference === undefined || Number(state ?? 1) > 1) return false;
  if (!(await server.isCreating(reference))) await server.addSpare(id, reference);
  return true;
}

const undecided = (message: string): NotebookError =>
  new NotebookError('conflict', message, {
    hint: 'find the experiment of this run in the notebook and assign it with `labfeed adopt`; labfeed does not guess',
  });

/** Fields in which two blank experiments of one user differ: ids, links, times, and the day of creation. */
const VARYING = /^(id|elabid|uuid|date|sharelink|.*link|.*_at|.*changelog.*|.*time.*|created.*|modified.*|updated.*)$/i;

/** An experiment without its ids and times. Owner and team are kept: another person's blank differs in those. */
function profileOf(record: ExperimentRecord): string {
  const kept = Object.entries(record).filter(([name]) => !VARYING.test(name));
  return JSON.stringify(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The first creation that is read back shows whether the server keeps its title. A server may start to keep titles: the
 * first creation of each process is read back there, and counts once no outcome from before can be unknown.
 */
export async function learnTitles(
  record: ExperimentRecord,
  { server, unknown }: Pick<DeliveryContext, 'server' | 'unknown'>,
): Promise<void> {
  const keepsTitle = referenceIn(record) !== undefined;
  const { keepsTitle: before, sweepFrom } = await server.facts();
  const owner = ownerOf(record) ?? null;
  if (before === undefined)
    await server.learn(keepsTitle ? { keepsTitle, owner } : { keepsTitle, owner, blank: profileOf(record) });
  else if (keepsTitle && (sweepFrom !== undefined || (await server.countUnknown()) > 0)) return;
  else if (keepsTitle) await server.learn({ keepsTitle });
  unknown.window.isTitleChecked = true;
}

/** Whether a creation with this reference leaves such an experiment behind. */
export const isOurCreation = (record: ExperimentRecord, reference: string, facts: ServerFacts): boolean =>
  record.title === provisionalTitle(reference) || isBlank(record, facts);

/** Whether nobody has changed the experiment since a creation of ours, whichever it was. */
export function isUntouched(record: ExperimentRecord, facts: ServerFacts): boolean {
  return isBlank(record, facts) || (typeof record.title === 'string' && isProvisional(record.title));
}

/** Ours from before the server kept titles included: they stay blank until they are filled in. */
const isBlank = (record: ExperimentRecord, { blank }: ServerFacts): boolean =>
  blank !== undefined && profileOf(record) === blank;

/** Whether a creation of unknown outcome may have left it behind. */
const isCandidate = (record: ExperimentRecord, facts: ServerFacts): boolean =>
  facts.keepsTitle === false && isBlank(record, facts);
