import type { BigIntStats } from 'node:fs';
import { backoffMs, type Clock } from '../clock.js';
import type { Instrument, UsableConfig } from '../config/load.js';
import { explain, NotebookError } from '../errors.js';
import type { Journal } from '../journal/journal.js';
import type { Log } from '../log.js';
import { erasedPath } from '../markers.js';
import { filesOf } from '../model.js';
import type { DueSource, FiledRunFiles, PlannedSource, SourceChange } from '../sources.js';
import * as disk from '../watch/dispose.js';
import { DisposalError, display, folderOf, inFolder, isInside, NotNow, toBytes, toText } from '../watch/file-moves.js';
import { stampOf } from '../watch/identify.js';
import type { Activity } from '../watch/intake.js';
import { createClaims, createMatcher, PRIVATE_PREFIX } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';
import { createFolders, isTargetThere, prepareTarget, requireMounted } from '../watch/target.js';

/** Moves or deletes the files of one filed run, see `sources.ts` for the steps. */
export interface DisposalContext {
  readonly config: Pick<UsableConfig, 'claims'>;
  readonly journal: {
    readonly outbox: Pick<Journal['outbox'], 'id' | 'sources' | 'hasContent'>;
    readonly intake: Pick<Journal['intake'], 'skip' | 'lastSeen' | 'see'>;
  };
  readonly instruments: readonly {
    readonly usable: Instrument | undefined;
    readonly activity: Pick<Activity, 'isPresent' | 'live' | 'waiting'>;
  }[];
  /** Throws unless the notebook has what was filed; with `delete`, all of the file. */
  prove(filed: FiledRunFiles, source: Instrument['source']): Promise<void>;
  /** For how long nothing may have been written to a file. */
  readonly unchangedMs: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}

type Context = DisposalContext;

/** `blocked`: the other files of the instrument would fail, too. */
export type Act = (filed: FiledRunFiles, context: Context) => Promise<'blocked' | undefined>;

export const BACKOFF = { firstMs: 10_000, maxMs: 3_600_000 };
/** People miss a file that has its private name. */
export const RESTORE_BACKOFF = { firstMs: 10_000, maxMs: 600_000 };
const DAY_MS = 86_400_000;
/** So that others of the instrument, which has a back-off of its own, are tried before this one. */
const BLOCKED_MS = 10_000;

/** A file is not found, and its disk or share may not be mounted. */
class Missing extends DisposalError {
  constructor(message: string, hint: string) {
    super('file', message, { hint });
  }
}

/** Records why files stay for now, and until when. */
async function withPostponement(
  { run, attempts }: FiledRunFiles,
  { journal, clock, log, signal }: Context,
  isRestoring: boolean,
  act: () => Promise<void>,
): Promise<'blocked' | undefined> {
  try {
    await act();
    return undefined;
  } catch (error) {
    if (signal.aborted) return undefined;
    const isDown = error instanceof NotebookError && error.scope === 'server';
    const isBlocked = isDown || (error instanceof DisposalError && error.scope === 'folder');
    // People need not know this, or another message says it.
    const isQuiet = isDown || error instanceof NotNow;
    const isLasting = error instanceof DisposalError && error.scope === 'lasting';
    const waitMs = isRestoring
      ? backoffMs(attempts, RESTORE_BACKOFF)
      : isBlocked
        ? BLOCKED_MS
        : isLasting
          ? DAY_MS
          : backoffMs(attempts, BACKOFF);
    const reason = explain(error);
    const isMissing = error instanceof Missing;
    await journal.outbox.sources.record(run.id, {
      ...{ kind: 'sourcePostponed', reason, isQuiet, dueAt: clock.now() + waitMs, isMissing },
    });
    const fields = { run: run.id, file: run.path, reason };
    log[isQuiet ? 'info' : 'warn'](fields, 'the filed file stays for now');
    return isBlocked ? 'blocked' : undefined;
  }
}

type Known = disk.FiledFile & Pick<DueSource, 'n' | 'sha256' | 'identity'>;

const toFile = (source: DueSource, journal: string): Known => {
  const location = toBytes(source.location);
  return { ...source, location, aside: disk.asideOf(location, journal) };
};

const settled = (
  { n, path }: Pick<DueSource, 'n' | 'path'>,
  outcome: Extract<SourceChange, { kind: 'sourceSettled' }>['outcome'],
  to?: Buffer,
): SourceChange => ({ kind: 'sourceSettled', n, path, outcome, to: to && display(to) });

const instrumentOf = (name: string, { instruments }: Context) =>
  instruments.find(({ usable }) => usable?.name === name);

/* After a crash, or if a file could not be put back: no file stays hidden. */

export function restoreRun(filed: FiledRunFiles, context: Context): Promise<'blocked' | undefined> {
  const { journal, log } = context;
  return withPostponement(filed, context, true, async () => {
    const changes: SourceChange[] = [];
    try {
      for (const source of filed.files) if (source.isHidden) changes.push(await restoreFile(source, filed, context));
    } finally {
      await journal.outbox.sources.record(filed.run.id, ...changes);
    }
    // Only now: the target may hang, and no file waits for it.
    await dropCopies(filed, context);
    log.info({ run: filed.run.id, file: filed.run.path }, 'completed or undid what was interrupted');
  });
}

async function restoreFile(source: DueSource, filed: FiledRunFiles, context: Context): Promise<SourceChange> {
  const { signal } = context;
  const file = toFile(source, context.journal.outbox.id);
  const target = source.target === undefined ? undefined : toBytes(source.target);
  const restored = await restore(file, filed, context);
  if (restored) return restored;
  if (target && (await disk.isAt(target, source.sha256, signal))) return settled(source, 'moved', target);
  // However long that takes: what is there now says nothing about the file.
  if (target && !(await isTargetThere(target, context.journal.intake)))
    throw new Missing(
      `cannot find ${source.path}: it was being moved to ${display(target)}, whose folder is missing or not mounted`,
      'mount the disk or share, or create the folder again',
    );
  const isOther = source.decided !== 'delete' && (await disk.exists(file.location));
  if (!isOther) await requireGone(file, filed, context);
  await dropCopies({ run: filed.run, files: [source] }, context);
  return settled(source, isOther ? 'changed' : source.decided === 'delete' ? 'deleted' : 'gone');
}

/** Undefined if the file has neither its private nor its own name. */
async function restore(file: Known, filed: FiledRunFiles, context: Context): Promise<SourceChange | undefined> {
  const { n, location, aside, identity, sha256 } = file;
  const { instrument, path: run } = filed.run;
  const at = await disk.putBack(aside, location, async (to, stats) => {
    if (await disk.isAt(aside, sha256)) await skipRenamed(to, stats, instrument, context, run === '');
  });
  if (at === undefined) {
    // What was moved or deleted may have left its name to a new file.
    const state = await disk.stateAt(location);
    const isBack = state !== undefined && (disk.isSameState(state, identity) || (await disk.isAt(location, sha256)));
    return isBack ? { kind: 'sourceRestored', n } : undefined;
  }
  if (at.equals(location)) return { kind: 'sourceRestored', n };
  return { kind: 'sourceRestored', n, renamed: { path: display(at), location: toText(at) } };
}

/** For a file that was filed: whatever the configuration says about copies, it is not filed under its new name. */
function skipRenamed(
  to: Buffer,
  stats: BigIntStats,
  instrument: string,
  { journal }: Context,
  isErased = false,
): Promise<void> {
  const path = isErased ? erasedPath(instrument, display(to)) : display(to);
  return journal.intake.skip(instrument, [{ path, location: to, ...stampOf(stats) }]);
}

/** Throws unless the file was certainly removed, or is missing for a day in a folder that is present. */
async function requireGone({ location, path, identity }: Known, filed: FiledRunFiles, context: Context) {
  const { usable, activity } = instrumentOf(filed.run.instrument, context) ?? {};
  const folder = activity?.live().folder.state;
  if (folder === 'unknown') throw new NotNow('its folder was not scanned yet');
  if (folder === 'missing' || folder === 'unreadable')
    throw new Missing(`cannot find ${path}: its folder is ${folder}`, 'mount the disk or share');
  const watch = usable && Buffer.from(usable.watch);
  if (await disk.isFolderThere(location, identity, watch)) return;
  requireLongMissing(filed, context, `cannot find ${path}: its folder is on another disk than before`);
}

function requireLongMissing({ missingSince }: FiledRunFiles, { clock }: Context, what: string): void {
  const isLong = missingSince !== undefined && clock.now() - missingSince >= DAY_MS;
  if (!isLong) throw new Missing(what, 'mount the disk or share; labfeed looks for the file for a day');
}

/** A private name that a scan has found. False if it stays: it belongs to another journal. */
export async function restoreFound(aside: Buffer, instrument: string, context: Context): Promise<boolean> {
  const { journal, log } = context;
  if (!(await disk.exists(aside))) return true;
  const location = disk.ownPlaceOf(aside, journal.outbox.id);
  if (!location) return false;
  if ((await journal.outbox.sources.found(toText(location))) !== 'unknown') return true;
  // The journal does not know it: its folder was renamed, or the run erased.
  const to = await disk.putBack(aside, location, async (at, stats) => {
    const isFiled = await journal.outbox.hasContent(instrument, await disk.hashOf(aside));
    if (isFiled) await skipRenamed(at, stats, instrument, context);
  });
  if (to) log.warn({ file: display(to) }, 'a file that was being moved or deleted has its name again');
  return true;
}

/* Moving and deleting. */

/** A file of a run, with where it goes; undefined if it is deleted. */
interface Planned extends Known {
  readonly goal: (disk.Goal & { readonly root: string; readonly device: bigint }) | undefined;
}

/** A name beside the target, unique among all runs of all instruments that are moved there, and no private name. */
const besideOf = (target: Buffer, run: number, n: number, { journal }: Context): Buffer =>
  inFolder(folderOf(target), `${PRIVATE_PREFIX}copy-${journal.outbox.id}-${run}-${n}`);

export function disposeOfRun(filed: FiledRunFiles, context: Context): Promise<'blocked' | undefined> {
  return withPostponement(filed, context, false, async () => {
    const { run } = filed;
    const { usable, activity } = instrumentOf(run.instrument, context) ?? {};
    // It was hidden when the claim was made: it is restored first.
    if (!usable || !activity || filed.files.some(({ isHidden }) => isHidden)) return;
    await dropCopies(filed, context);
    const files = filed.files.map((source) => toFile(source, context.journal.outbox.id));
    const watch = Buffer.from(usable.watch);
    // The configuration decides at the time of the move. It may also name another folder now.
    const kept = files.filter(({ location }) => usable.source === 'keep' || !isInside(location, watch));
    await record(
      filed,
      context,
      kept.map((file) => settled(file, 'kept')),
    );
    const rest = files.filter((file) => !kept.includes(file));
    if (rest.length === 0) return;
    // Something was written there: the run waits for its quiet period, and may be another one.
    if (!filed.isBegun && activity.waiting.has(run.path)) throw new NotNow('its path is being written to');
    const present = await findFiles(rest, filed, context);
    if (present.length === 0) return;
    for (const file of present) {
      await disk.refuseLinkedFolders(file, watch);
      await disk.requireRemovable(file);
    }
    const plan = await planFor(present, usable, filed, context);
    if (await hasNewState(plan, filed, context)) return;
    // Before everything is copied and hashed for nothing.
    await refuseLateFiles(plan, new Set(plan.map(({ path }) => path)), usable, context);
    await context.prove(filed, usable.source);
    const outcome = await disposeOfFiles(plan, usable, filed, context);
    context.log.info({ run: run.id, file: run.path, source: usable.source, outcome }, 'filed files settled');
  });
}

/** From before a crash: they may be incomplete, or second names of the files. */
async function dropCopies(
  { run, files }: { run: FiledRunFiles['run']; files: readonly PlannedSource[] },
  context: Context,
): Promise<void> {
  try {
    for (const { n, target } of files)
      if (target !== undefined) await disk.drop(besideOf(toBytes(target), run.id, n, context));
  } catch {
    // The others would fail, too, each perhaps after a long time. They are removed before the next attempt.
  }
}

const record = async (
  { run }: FiledRunFiles,
  { journal }: Context,
  changes: readonly SourceChange[],
): Promise<void> => {
  if (changes.length > 0) await journal.outbox.sources.record(run.id, ...changes);
};

/** Those that are there. The others are settled, if somebody has removed them. */
async function findFiles(files: readonly Known[], filed: FiledRunFiles, context: Context): Promise<Known[]> {
  const present: Known[] = [];
  for (const file of files) {
    if (await disk.exists(file.location)) present.push(file);
    else {
      await requireGone(file, filed, context);
      await record(filed, context, [settled(file, 'gone')]);
    }
  }
  return present;
}

async function planFor(
  files: readonly Known[],
  { source, watch }: Instrument,
  { run }: FiledRunFiles,
  context: Context,
): Promise<Planned[]> {
  if (typeof source === 'string') return files.map((file) => ({ ...file, goal: undefined }));
  const { config, journal, signal } = context;
  const watched = config.claims.map((claim) => claim.watch);
  const wasUsed = () => journal.outbox.sources.hasMovedTo(source.move);
  const { move: root } = source;
  const device = await prepareTarget(root, { watch, watched, wasUsed, memory: journal.intake });
  const taken = new Set<string>();
  const plan: Planned[] = [];
  for (const file of files) {
    const wanted = inFolder(Buffer.from(root), file.location.subarray(Buffer.byteLength(watch) + 1));
    refuseTarget(file.path, wanted, watched);
    const chosen = await disk.chooseTarget(wanted, file, taken, signal);
    taken.add(toText(chosen.target));
    const beside = besideOf(chosen.target, run.id, file.n, context);
    await disk.drop(beside);
    plan.push({ ...file, goal: { ...chosen, beside, root, device } });
  }
  return plan;
}

/** A subfolder may be named like the path from the target to a watched folder. */
function refuseTarget(path: string, target: Buffer, watched: readonly string[]): void {
  const root = watched.find((folder) => isInside(target, Buffer.from(folder)));
  if (root !== undefined)
    throw new DisposalError('lasting', `cannot move ${path} to ${display(target)}: ${root} is watched`, {
      hint: 'choose another folder in `source`',
    });
}

/** Whether something was written to a file since it was filed, or looked at: then it has to be unchanged for a while. */
async function hasNewState(plan: readonly Planned[], filed: FiledRunFiles, context: Context): Promise<boolean> {
  const readyAt = context.clock.now() + context.unchangedMs;
  const renewed: SourceChange[] = [];
  for (const { n, path, location, identity: before, goal } of plan) {
    const identity = await disk.look(path, location, goal?.isThere ? goal.target : undefined);
    if (identity === undefined) throw new NotNow(`${path} was removed just now`);
    if (!disk.isSameState(identity, before)) renewed.push({ kind: 'sourceRenewed', n, identity, readyAt });
  }
  await record(filed, context, renewed);
  return renewed.length > 0;
}

/** All files of the run are copied if need be, then renamed and hashed, before the first one is moved or deleted. */
async function disposeOfFiles(
  plan: readonly Planned[],
  usable: Instrument,
  filed: FiledRunFiles,
  context: Context,
): Promise<'done' | 'changed' | 'reopened'> {
  const { journal, signal } = context;
  const planned = plan.map(({ n, goal }) => ({ n, target: goal && toText(goal.target) }));
  const files = filed.files.filter(({ n }) => plan.some((file) => file.n === n));
  const begin = (step: 'bring' | 'hide' | 'remove') => journal.outbox.sources.begin(step, { ...filed, files }, planned);
  const changes: SourceChange[] = [];
  const isOther = ({ n, sha256 }: Pick<Known, 'n' | 'sha256'>): boolean =>
    plan.some((file) => file.n === n && file.sha256 !== sha256);
  const leave = (found: readonly Pick<Known, 'n' | 'sha256'>[]): void => {
    for (const file of plan) {
      const isChanged = found.some((one) => one.n === file.n && isOther(one));
      changes.push(settled(file, isChanged ? 'changed' : 'kept'));
    }
  };
  let open: readonly Planned[] = plan;
  let isHidden = false;
  signal.throwIfAborted();
  if (!(await begin('bring'))) return 'reopened';
  try {
    const copies = await bringAll(plan, usable, context);
    if (copies.some(isOther)) {
      leave(copies);
      return 'changed';
    }
    isHidden = await begin('hide');
    if (!isHidden) return 'reopened';
    const hidden = await hideAll(plan, Buffer.from(usable.watch), signal);
    if (hidden.some(isOther)) {
      leave(hidden);
      return 'changed';
    }
    for (const { n, path, state, identity, aside, goal } of hidden) {
      const isLinked = goal && !goal.isThere && !copies.some((copy) => copy.n === n);
      if (!disk.isSameState(state, identity) || (isLinked && !(await disk.haveOneFile(aside, goal.beside))))
        throw new NotNow(`${path} was written to just now`);
    }
    await refuseLateFiles(hidden, new Set(), usable, context);
    if (!(await begin('remove'))) return 'reopened';
    // From here on, each step takes hardly any time.
    for (const file of hidden) {
      const { goal } = file;
      if (goal) await requireMounted(goal.root, goal.device, journal.intake);
      await (goal ? disk.place(file, goal) : disk.deleteHidden(file));
      changes.push(settled(file, goal ? 'moved' : 'deleted', goal?.target));
      open = open.filter(({ n }) => n !== file.n);
    }
    return 'done';
  } finally {
    if (isHidden) await undo(open, changes, filed, context);
    else {
      await dropCopies({ run: filed.run, files: planned }, context);
      await record(filed, context, changes);
    }
  }
}

/** While the files have their own names: it can take long. Resolves with what was copied. */
async function bringAll(plan: readonly Planned[], { watch }: Instrument, { journal, signal }: Context) {
  const copies: Pick<Known, 'n' | 'sha256'>[] = [];
  for (const { goal, ...file } of plan) {
    if (!goal) continue;
    await createFolders(Buffer.from(goal.root), goal.target, Buffer.from(watch));
    const sha256 = await disk.bring(file, goal, signal);
    if (sha256 !== undefined) copies.push({ n: file.n, sha256 });
  }
  // What is copied beneath a share that is no longer mounted would be hidden by it later.
  const [first] = plan;
  if (first?.goal) await requireMounted(first.goal.root, first.goal.device, journal.intake);
  return copies;
}

async function hideAll(plan: readonly Planned[], watch: Buffer, signal: AbortSignal) {
  for (const file of plan) {
    signal.throwIfAborted();
    const { goal } = file;
    if (!(await disk.hide(file, goal?.isThere ? goal.target : goal?.beside)))
      throw new NotNow(`${file.path} was removed just now`);
  }
  const hidden: (Planned & disk.HiddenFile)[] = [];
  for (const file of plan) hidden.push({ ...file, ...(await disk.inspect(file, signal)) });
  // Once more: a folder may have been replaced by a link meanwhile.
  for (const file of plan) await disk.refuseLinkedFolders(file, watch);
  return hidden;
}

/** A file that was added to a run of several files makes it another run, which is not to be split. */
async function refuseLateFiles(
  files: readonly disk.FiledFile[],
  expected: ReadonlySet<string>,
  usable: Instrument,
  { config, signal }: Context,
): Promise<void> {
  if (usable.run === 'file') return;
  const claims = createClaims(config.claims);
  const { group, stat } = createRuns({
    ...{ root: usable.watch, run: usable.run, matcher: createMatcher(usable), signal },
    isClaimed: (path) => claims.before(usable, path) !== undefined,
  });
  const unknown = { size: 0, mtimeNs: 0n, ctimeNs: 0n, inode: 0n };
  for (const run of group(files.map(({ path, location }) => ({ path, location, ...unknown })))) {
    const now = await stat(run);
    if (now === 'no answer') throw new NotNow('its folder cannot be read');
    const late = now === 'absent' ? undefined : filesOf(now).find(({ path }) => !expected.has(path));
    if (late) throw new NotNow(`another file of its run has arrived: ${late.path}`);
  }
}

/** No file stays hidden. What cannot be put back now is put back as soon as it can be. */
async function undo(
  open: readonly Planned[],
  changes: readonly SourceChange[],
  filed: FiledRunFiles,
  context: Context,
): Promise<void> {
  const restored: SourceChange[] = [];
  for (const file of open) {
    try {
      const change = await restore(file, filed, context);
      if (change) restored.push(change);
    } catch (error) {
      const fields = { run: filed.run.id, file: file.path, reason: explain(error) };
      context.log.warn(fields, 'cannot give the file its name again, retrying');
    }
  }
  const isOpen = (n: number) =>
    open.some((file) => file.n === n) && !restored.some((change) => 'n' in change && change.n === n);
  // An outcome ends what is known of a file, so one that still has its private name gets none.
  await record(filed, context, [...restored, ...changes.filter((change) => !('n' in change && isOpen(change.n)))]);
  // Only now: the target may hang, and no file waits for it.
  const back = open.filter(({ n }) => !isOpen(n));
  const planned = back.map(({ n, goal }) => ({ n, target: goal && toText(goal.target) }));
  await dropCopies({ run: filed.run, files: planned }, context);
}
