import { rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { backoffMs, type Clock } from '../clock.js';
import type { Instrument, UsableConfig } from '../config/load.js';
import { explain, LabfeedError, NotebookError } from '../errors.js';
import type { Journal } from '../journal/journal.js';
import type { Log } from '../log.js';
import type { DueSource, FiledRunFiles, SourceChange } from '../sources.js';
import * as disk from '../watch/dispose.js';
import type { Activity } from '../watch/intake.js';
import { quietMsOf } from '../watch/settle.js';
import { createFolders, prepareTarget } from '../watch/target.js';

/** Moves or deletes the files of one filed run, see `sources.ts` for the steps. */
export interface DisposalContext {
  readonly config: Pick<UsableConfig, 'claims'>;
  readonly journal: { readonly outbox: Pick<Journal['outbox'], 'id' | 'sources'> };
  readonly instruments: readonly {
    readonly usable: Instrument | undefined;
    readonly activity: Pick<Activity, 'isPresent' | 'waiting'>;
  }[];
  /** Throws unless the notebook has what was filed; with `delete`, all of the file. */
  prove(filed: FiledRunFiles, source: Instrument['source']): Promise<void>;
  /** Resolves after a scan that began after this call. */
  rescan(instrument: string): Promise<unknown>;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}

type Context = DisposalContext;

const BACKOFF = { firstMs: 10_000, maxMs: 3_600_000 };

/** `blocked`: the other files of the instrument would fail, too. */
export type Act = (filed: FiledRunFiles, context: Context) => Promise<'blocked' | undefined>;

/** A file of a run, with where it goes. */
interface Planned extends disk.FiledFile, Pick<DueSource, 'n' | 'sha256' | 'identity' | 'decided'> {
  /** Undefined: it is deleted. */
  readonly target: Buffer | undefined;
  /** Where an interrupted move may have left it. */
  readonly earlier: Buffer | undefined;
}

function planOf(
  { run, files }: FiledRunFiles,
  source: Instrument['source'],
  watch: string,
  journal: string,
): Planned[] {
  return files.map((file) => {
    const location = disk.toBytes(file.location);
    const relative = location.subarray(Buffer.byteLength(watch) + 1);
    return {
      ...file,
      location,
      privateName: disk.privateNameOf(journal, run.id, file.n),
      target: typeof source === 'string' ? undefined : disk.inFolder(Buffer.from(source.move), relative),
      earlier: file.target === undefined ? undefined : disk.toBytes(file.target),
    };
  });
}

const instrumentOf = (name: string, { instruments }: Context) =>
  instruments.find(({ usable }) => usable?.name === name);

/** Puts back what a crash has left under private names, and records what was completed before it. */
export async function restoreRun(filed: FiledRunFiles, context: Context): Promise<'blocked' | undefined> {
  const { journal, log } = context;
  const hidden = { ...filed, files: filed.files.filter(({ isHidden }) => isHidden) };
  const plan = planOf(hidden, 'keep', '', journal.outbox.id);
  return withPostponement(filed, context, async () => {
    const changes: SourceChange[] = [];
    try {
      for (const file of plan) changes.push(await restoreFile(file, filed, context));
    } finally {
      await journal.outbox.sources.record(filed.run.id, ...changes);
    }
    log.info({ run: filed.run.id, file: filed.run.path }, 'completed or undid what was interrupted');
  });
}

async function restoreFile(file: Planned, { run }: FiledRunFiles, context: Context): Promise<SourceChange> {
  const { n, path, decided, earlier, sha256 } = file;
  if (earlier) await disk.dropCopy(file, earlier).catch(() => undefined);
  const restored = await restore(file);
  if (restored) return restored;
  // A share that is not mounted looks the same.
  await requireFolder(run.instrument, context);
  const late = await restore(file);
  if (late) return late;
  const isMoved = decided === 'move' && earlier !== undefined && (await disk.isAt(earlier, sha256, context.signal));
  if (!decided)
    context.log.warn(
      { run: run.id, file: path, privateName: file.privateName },
      'the file is gone; if its folder was renamed meanwhile, it is there under its private name',
    );
  const outcome = isMoved ? 'moved' : decided === 'delete' ? 'deleted' : 'gone';
  return { kind: 'sourceSettled', n, path, outcome, to: isMoved ? disk.display(earlier) : undefined };
}

/** Undefined if the file has neither its private nor its own name. */
async function restore(file: Planned): Promise<SourceChange | undefined> {
  const { n, location, decided, sha256 } = file;
  const at = await disk.putBack(file);
  if (at === undefined) {
    // What was moved or deleted may have left its name to a new file.
    const isBack = await (decided ? disk.isAt(location, sha256, UNSTOPPABLE) : disk.exists(location));
    return isBack ? { kind: 'sourceRestored', n } : undefined;
  }
  if (at.equals(location)) return { kind: 'sourceRestored', n };
  return { kind: 'sourceRestored', n, renamed: { path: disk.display(at), location: disk.toText(at) } };
}

/** Throws unless a scan that begins now finds the folder. */
async function requireFolder(name: string, context: Context): Promise<void> {
  const instrument = instrumentOf(name, context);
  if (instrument) await context.rescan(name);
  context.signal.throwIfAborted();
  if (!instrument)
    throw new LabfeedError(
      `the instrument ${name} is not in the configuration, so labfeed cannot tell whether its folder is there`,
      {
        hint: 'configure it again until the file has its name back',
      },
    );
  if (!instrument.activity.isPresent()) throw new NotNow(`the folder of ${name} is not available`);
}

/** Nothing is wrong that people should know of, or they know of it otherwise. */
class NotNow extends LabfeedError {
  override readonly name = 'NotNow';
}

/** Records why files stay for now, with growing waits. */
async function withPostponement(
  { run, attempts }: FiledRunFiles,
  { journal, clock, log, signal }: Context,
  act: () => Promise<void>,
): Promise<'blocked' | undefined> {
  const { sources } = journal.outbox;
  try {
    await act();
    return undefined;
  } catch (error) {
    if (signal.aborted) return undefined;
    const isQuiet = error instanceof NotNow || (error instanceof NotebookError && error.scope === 'server');
    const reason = isQuiet ? undefined : explain(error);
    const dueAt = clock.now() + backoffMs(attempts, BACKOFF);
    await sources.record(run.id, { kind: 'sourcePostponed', reason, dueAt });
    log[isQuiet ? 'info' : 'warn'](
      { run: run.id, file: run.path, reason: explain(error) },
      'the filed file stays for now',
    );
    const isShared = error instanceof NotebookError ? error.scope === 'server' : error instanceof disk.DisposalError;
    if (!isShared || (error instanceof disk.DisposalError && error.scope === 'file')) return undefined;
    await sources.postponeAll(run.instrument, { reason, dueAt });
    return 'blocked';
  }
}

export function disposeOfRun(filed: FiledRunFiles, context: Context): Promise<'blocked' | undefined> {
  return withPostponement(filed, context, async () => {
    const { journal, config, log } = context;
    const { usable, activity } = instrumentOf(filed.run.instrument, context) ?? {};
    // It was hidden when the claim was made: it is restored first.
    if (!usable || !activity || filed.files.some(({ isHidden }) => isHidden)) return;
    const plan = planOf(filed, usable.source, usable.watch, journal.outbox.id);
    const settled = (file: Planned, outcome: 'kept' | 'gone'): SourceChange => ({
      ...{ kind: 'sourceSettled', n: file.n, path: file.path, outcome, to: undefined },
    });
    if (usable.source === 'keep')
      return keep(
        filed,
        plan.map((file) => settled(file, 'kept')),
        context,
      );
    // Something was written there: the run waits for its quiet period, and may be another one.
    if (!filed.isBegun && activity.waiting.has(filed.run.path)) throw new NotNow('its path is being written to');
    if (usable.source !== 'delete') {
      const watched = config.claims.map(({ watch }) => watch);
      const { move } = usable.source;
      await prepareTarget(move, { watched, wasUsed: () => journal.outbox.sources.hasMovedTo(move) });
      for (const { path, target } of plan) refuseTarget(path, target, watched);
    }
    await context.prove(filed, usable.source);
    const absent = await absentFiles(plan, filed, context);
    if (absent.length > 0)
      await keep(
        filed,
        absent.map((file) => settled(file, 'gone')),
        context,
      );
    const present = plan.filter((file) => !absent.includes(file));
    if (present.length === 0) return;
    const outcome = await disposeOfFiles(present, usable, filed, context);
    if (outcome === 'done' && usable.run !== 'file' && 'folder' in usable.run)
      await removeEmpty(present, filed.run.path);
    log.info({ run: filed.run.id, file: filed.run.path, source: usable.source, outcome }, 'filed files settled');
  });
}

const keep = ({ run }: FiledRunFiles, changes: readonly SourceChange[], { journal }: Context): Promise<void> =>
  journal.outbox.sources.record(run.id, ...changes);

/** A subfolder may be named like the path from the target to a watched folder. */
function refuseTarget(path: string, target: Buffer | undefined, watched: readonly string[]): void {
  const root =
    target &&
    watched.find((folder) => target.toString('latin1').startsWith(`${Buffer.from(folder).toString('latin1')}/`));
  if (root !== undefined)
    throw new disk.DisposalError(
      'file',
      `cannot move ${path} to ${disk.display(target as Buffer)}: ${root} is watched`,
      {
        hint: 'choose another folder in `source`',
      },
    );
}

/** Files that somebody else has removed: only a folder that is present can tell. */
async function absentFiles(plan: readonly Planned[], { run }: FiledRunFiles, context: Context): Promise<Planned[]> {
  const missing = async (files: readonly Planned[]): Promise<Planned[]> => {
    const there = await Promise.all(files.map(({ location }) => disk.exists(location)));
    return files.filter((_, index) => there[index] === false);
  };
  const absent = await missing(plan);
  if (absent.length === 0) return [];
  await requireFolder(run.instrument, context);
  return missing(absent);
}

/** All files of the run are renamed and hashed before the first one is moved or deleted. */
async function disposeOfFiles(
  plan: readonly Planned[],
  { source, ready, watch }: Instrument,
  { run, attempts }: FiledRunFiles,
  context: Context,
): Promise<'done' | 'changed' | 'replaced' | 'reopened'> {
  const { journal, signal, clock } = context;
  const { sources } = journal.outbox;
  const root = typeof source === 'string' ? undefined : Buffer.from(source.move);
  const toPlan = (files: readonly Planned[]) =>
    files.map(({ n, target }) => ({ n, target: target && disk.toText(target) }));
  const changes: SourceChange[] = [];
  let open: readonly Planned[] = plan;
  signal.throwIfAborted();
  if (!(await sources.hide(run.id, toPlan(plan)))) return 'reopened';
  try {
    const hidden = await hideAll(plan, Buffer.from(watch), signal);
    if (hidden.some(({ sha256 }, index) => sha256 !== plan[index]?.sha256)) {
      changes.push(...plan.map(({ n, path }) => ({ ...CHANGED, n, path })));
      return 'changed';
    }
    if (hidden.some(({ identity }, index) => identity !== plan[index]?.identity)) {
      const dueAt = clock.now() + Math.max(2 * quietMsOf(ready), backoffMs(attempts, BACKOFF));
      changes.push(...hidden.map(({ n, identity }) => ({ kind: 'sourceRenewed' as const, n, identity })));
      const reason = attempts < MAX_REPLACEMENTS ? undefined : REPLACED_OFTEN;
      changes.push({ kind: 'sourcePostponed', reason, dueAt });
      return 'replaced';
    }
    const chosen: (disk.HiddenFile & Planned)[] = [];
    for (const file of hidden) chosen.push(root && file.target ? await bring(file, file.target, root, signal) : file);
    if (!(await sources.decide(run.id, toPlan(chosen)))) return 'reopened';
    // From here on, it is completed: each step takes hardly any time.
    for (const file of chosen) {
      const to = await act(file, run.id, context);
      const outcome = to === undefined ? 'deleted' : 'moved';
      changes.push({ kind: 'sourceSettled', n: file.n, path: file.path, outcome, to: to && disk.display(to) });
      open = open.filter(({ n }) => n !== file.n);
    }
    return 'done';
  } finally {
    await undo(open, changes, run.id, context);
  }
}

/** Some file systems invent inodes or times. */
const MAX_REPLACEMENTS = 5;
const REPLACED_OFTEN =
  'its inode, device or time is another one each time, so labfeed cannot tell whether it is the file that was filed';

const CHANGED = { kind: 'sourceSettled', outcome: 'changed', to: undefined } as const;

async function hideAll(plan: readonly Planned[], watch: Buffer, signal: AbortSignal) {
  for (const file of plan) {
    signal.throwIfAborted();
    await disk.refuseLinkedFolders(file, watch);
    if (!(await disk.hide(file, file.earlier))) throw new NotNow(`${file.path} was removed just now`);
  }
  const hidden: (disk.HiddenFile & Planned)[] = [];
  for (const file of plan) hidden.push({ ...file, ...(await disk.inspect(file, signal)) });
  // Once more: a folder may have been replaced by a link meanwhile.
  for (const file of plan) await disk.refuseLinkedFolders(file, watch);
  return hidden;
}

/** Everything that can take long or fail, before it is decided. */
async function bring<T extends disk.HiddenFile>(file: T, target: Buffer, root: Buffer, signal: AbortSignal) {
  await createFolders(root, target);
  const to = await disk.chooseTarget(file, target, signal);
  if (!(await disk.exists(to))) await disk.copyBeside(file, to, signal);
  return { ...file, target: to };
}

/** Another signal than that of a stop: what was decided is completed. */
const UNSTOPPABLE = new AbortController().signal;

async function act(file: disk.HiddenFile & Planned, run: number, { journal }: Context): Promise<Buffer | undefined> {
  if (file.target === undefined) {
    await disk.deleteHidden(file);
    return undefined;
  }
  for (let to = file.target; ; ) {
    if (await disk.moveTo(file, to, UNSTOPPABLE)) return to;
    // Somebody took the name since it was chosen.
    to = await disk.chooseTarget(file, to, UNSTOPPABLE);
    await journal.outbox.sources.decide(run, [{ n: file.n, target: disk.toText(to) }]);
  }
}

/** No file stays hidden. What cannot be put back now is put back as soon as it can be. */
async function undo(
  open: readonly Planned[],
  changes: readonly SourceChange[],
  run: number,
  { journal, log }: Context,
): Promise<void> {
  const restored: SourceChange[] = [];
  for (const file of open) {
    try {
      if (file.target) await disk.dropCopy(file, file.target).catch(() => undefined);
      const change = await restore(file);
      if (change) restored.push(change);
    } catch (error) {
      log.warn({ run, file: file.path, reason: explain(error) }, 'cannot give the file its name again, retrying');
    }
  }
  const isOpen = (n: number) =>
    open.some((file) => file.n === n) && !restored.some((change) => 'n' in change && change.n === n);
  // An outcome ends what is known of a file, so one that still has its private name gets none.
  const recorded = changes.filter((change) => !('n' in change && isOpen(change.n)));
  await journal.outbox.sources.record(run, ...restored, ...recorded);
}

/** The folders of a run, innermost first, if nothing else is in them. */
async function removeEmpty(files: readonly Planned[], top: string): Promise<void> {
  const folders = new Set([top, ...files.map(({ path }) => dirname(path)).filter((one) => one.startsWith(`${top}/`))]);
  for (const folder of [...folders].sort((a, b) => b.length - a.length)) await rmdir(folder).catch(() => undefined);
}
