import type { Clock } from '../clock.js';
import { type Existing, skipBeforeNs } from '../config/schema.js';
import type { LiveInstrument, WaitingFile } from '../live.js';
import { type FoundFile, filesOf } from '../model.js';
import { formatDuration } from '../text.js';
import { explainPermission } from './guard.js';
import { mergeRuns } from './runs.js';
import type { Unmatched } from './scan.js';
import { isSame, type Progress } from './settle.js';
import type { FileOrigin, ScanResult } from './watcher.js';

export type Activity = ReturnType<typeof createActivity>;

/** What one instrument is doing now, for status, page and alarms. Its size does not depend on the number of files. */
export function createActivity({ name, watch }: Pick<LiveInstrument, 'name' | 'watch'>, clock: Clock) {
  const waiting = createWaitingFiles(clock);
  const arrivals = createUnmatchedArrivals();
  let found = 0;
  const subfolders = createUnreadable(clock);
  let live: Omit<LiveInstrument, 'waiting' | 'unreadable' | 'stuck'> = {
    name,
    watch,
    line: 'starting',
    folder: { state: 'unknown' },
    scannedAt: undefined,
    files: 0,
    unmatched: summaryOf(new Map()),
    lastFileAt: undefined,
    polling: undefined,
  };

  return {
    waiting,
    unmatchedArrivals: arrivals.seen,
    setState(line: LiveInstrument['line']): void {
      live = { ...live, line };
    },
    setPolling(polling: LiveInstrument['polling']): void {
      live = { ...live, polling };
    },
    isPresent: (): boolean => live.folder.state === 'present',
    setFolder(state: LiveInstrument['folder']['state'], reason?: string): void {
      live = { ...live, folder: { state, reason } };
    },
    scanned({ files, unmatched, unread, complete }: ScanResult): void {
      subfolders.replace(unread);
      arrivals.scanned(unmatched, files, found);
      live = { ...live, files, unmatched: summaryOf(unmatched), scannedAt: complete ? clock.now() : live.scannedAt };
    },
    /** A file was found that the journal does not know. */
    found(): void {
      found += 1;
    },
    /** A file of the instrument arrived. */
    fileArrived(at: number): void {
      live = { ...live, lastFileAt: Math.max(at, live.lastFileAt ?? at) };
    },
    live: (): LiveInstrument => {
      const [files, folders] = [waiting.unreadable(), subfolders.list()];
      const unreadable = { files: files.files + folders.files, first: [...files.first, ...folders.first] };
      return { ...live, waiting: waiting.list(), unreadable, stuck: waiting.stuck() };
    },
  };
}

function summaryOf(unmatched: Unmatched): LiveInstrument['unmatched'] {
  const counts = [...unmatched.values()];
  return {
    files: counts.reduce((sum, { files }) => sum + files, 0),
    example: counts.map(({ example }) => example).reduce((a, b) => (a > b ? a : b), '') || undefined,
  };
}

/** Why a file that was found is not in the journal yet. */
type Wait =
  | ({ readonly for: 'quiet period' } & Progress)
  /** It is complete and will be read when a reader is free. */
  | { readonly for: 'reader' }
  /** It keeps growing. `untilMs`: in monotonic time. */
  | { readonly for: 'next update'; readonly untilMs: number }
  | { readonly for: 'retry'; readonly reason: string };

const MAX_LISTED = 20;

/** The files of one instrument that are on their way into the journal. */
export function createWaitingFiles(clock: Clock) {
  const files = new Map<string, { readonly since: number; readonly sinceMs: number; wait: Wait }>();
  const unreadable = createUnreadable(clock);

  function describe(path: string): WaitingFile {
    const { since = 0, wait = { for: 'reader' } as const } = files.get(path) ?? {};
    // Each attempt begins with the quiet period, but that is not what the file waits for.
    const problem = unreadable.reasonOf(path);
    const reason = isStuck(path) ? describeStuck(wait) : describeWait(wait, clock.monotonic());
    return { path, since, reason: problem ?? reason };
  }

  function isStuck(path: string): boolean {
    const { wait, sinceMs = 0 } = files.get(path) ?? {};
    if (!wait || wait.for === 'reader' || wait.for === 'next update' || unreadable.reasonOf(path) !== undefined)
      return false;
    return clock.monotonic() - sinceMs >= STUCK_MS + (wait.for === 'quiet period' ? wait.quietMs : 0);
  }

  return {
    begin: (path: string) =>
      void files.set(path, { since: clock.now(), sinceMs: clock.monotonic(), wait: { for: 'reader' } }),
    update(path: string, wait: Wait): void {
      const file = files.get(path);
      if (file) file.wait = wait;
    },
    has: (path: string): boolean => files.has(path),
    /** It exists but cannot be read; without a reason, it can be read again or has changed. */
    setUnreadable: unreadable.set,
    end(path: string): void {
      files.delete(path);
      unreadable.set(path, undefined);
    },
    list: (): LiveInstrument['waiting'] => ({
      files: files.size,
      first: firstByName(files.keys()).map(describe),
      unreadable: unreadable.list().files,
    }),
    unreadable: unreadable.list,
    stuck(): LiveInstrument['stuck'] {
      const paths = [...files.keys()].filter(isStuck);
      return { files: paths.length, first: firstByName(paths).map(describe) };
    },
  };
}

/** Long acquisitions write to their file for many hours. */
const STUCK_MS = 24 * 3_600_000;

function describeStuck(wait: Wait): string {
  if (wait.for !== 'quiet period') return describeWait(wait, 0);
  if (wait.missing)
    return `${describeWait(wait, 0)} for more than a day\n  → if it will never come, move or delete the file, or add it to \`ignore\``;
  return 'it has kept changing for more than a day\n  → if it never ends, such as a log, set `run: growing`';
}

/** Folders of the file system that only its administrator may enter. */
const SYSTEM_FOLDER = /\/(?:lost\+found|System Volume Information|\$RECYCLE\.BIN)$/i;

/** Paths that exist but cannot be read, each with the time since when. */
function createUnreadable(clock: Clock) {
  const paths = new Map<string, { readonly since: number; readonly reason: string }>();
  const set = (path: string, reason: string | undefined): void => {
    if (reason === undefined) paths.delete(path);
    else paths.set(path, { since: paths.get(path)?.since ?? clock.now(), reason });
  };
  return {
    set,
    /** After a scan, of which these are all. */
    replace(unread: ScanResult['unread']): void {
      const current = new Set(unread.map(({ path }) => path));
      for (const path of paths.keys()) if (!current.has(path)) paths.delete(path);
      for (const { path, reason, forbidden } of unread) {
        if (paths.has(path) || SYSTEM_FOLDER.test(path)) continue;
        const refusal = explainPermission(path, true);
        set(path, forbidden ? `${refusal.reason}\n  → ${refusal.hint}` : reason);
      }
    },
    reasonOf: (path: string) => paths.get(path)?.reason,
    list: (): LiveInstrument['unreadable'] => ({
      files: paths.size,
      first: firstByName(paths.keys()).flatMap((path) => ({ path, since: 0, reason: '', ...paths.get(path) })),
    }),
  };
}

function describeWait(wait: Wait, nowMs: number): string {
  switch (wait.for) {
    case 'quiet period': {
      if (wait.missing) return `waiting for ${wait.missing.kind} ${wait.missing.name}`;
      // The same unit on both sides keeps the two comparable: 0 s of 5 s, not 400 ms of 5 s.
      const unchangedMs = Math.max(0, Math.min(nowMs - wait.unchangedSinceMs, wait.quietMs));
      return wait.quietMs < 1000
        ? `unchanged for ${Math.round(unchangedMs)} ms of ${wait.quietMs} ms`
        : `unchanged for ${Math.floor(unchangedMs / 1000)} s of ${wait.quietMs / 1000} s`;
    }
    case 'retry':
      return `cannot be read yet: ${wait.reason}`;
    case 'reader':
      return 'waiting to be read';
    case 'next update':
      return `it keeps growing: new lines are filed in ${formatDuration(Math.max(0, wait.untilMs - nowMs))}`;
  }
}

/** In one pass: thousands of files may wait. */
function firstByName(paths: Iterable<string>): string[] {
  const first: string[] = [];
  for (const path of paths) {
    const last = first.at(-1);
    if (first.length === MAX_LISTED && last !== undefined && path > last) continue;
    const at = first.findIndex((other) => path < other);
    first.splice(at < 0 ? first.length : at, 0, path);
    if (first.length > MAX_LISTED) first.pop();
  }
  return first;
}

/** The runs that are on their way into the journal, and which of them change meanwhile. */
export function createUnderWay() {
  const runs = new Map<string, FoundFile>();
  const changed = new Map<string, FoundFile>();
  return {
    /** In its latest state: as it was found, then as it has settled. */
    set: (run: FoundFile): void => void runs.set(run.path, run),
    /** Whether it is under way. If so, its state is noted. */
    sees(run: FoundFile): boolean {
      if (runs.has(run.path)) changed.set(run.path, run);
      return runs.has(run.path);
    },
    /** Returns its state if that changed after it had settled. While it was written, it had older states. */
    end({ path }: FoundFile): FoundFile | undefined {
      const [settled, last] = [runs.get(path), changed.get(path)];
      runs.delete(path);
      changed.delete(path);
      return settled && last && last.mtimeNs >= settled.mtimeNs && !isSame(last, settled) ? last : undefined;
    },
  };
}

/**
 * Distinguishes files that arrive in place of runs from files that an instrument always writes next to its runs.
 * Extensions that are in the folder when a run arrives are expected: logs and pictures of the instrument. All others
 * are unexpected, and so is everything until a run has arrived. A scan that finds more unexpected files than the one
 * before counts once: a hundred files copied at the same time are one arrival.
 */
export function createUnmatchedArrivals() {
  let expected: ReadonlySet<string> = new Set();
  let before: Unmatched | undefined;
  let foundBefore = 0;
  let occasions = 0;
  let example: string | undefined;

  return {
    /** Called after a scan with the unmatched files, the number of matching files, and how many of those ever arrived. */
    scanned(unmatched: Unmatched, files: number, found: number): void {
      const hasRuns = before === undefined ? files > 0 : found > foundBefore;
      if (hasRuns) {
        expected = new Set(unmatched.keys());
        occasions = 0;
        example = undefined;
      } else if (before !== undefined) {
        const more = [...unmatched].filter(
          ([extension, { files }]) => !expected.has(extension) && files > (before?.get(extension)?.files ?? 0),
        );
        if (more.length > 0) occasions += 1;
        example = more.at(-1)?.[1].example ?? example;
      }
      before = unmatched;
      foundBefore = found;
    },
    /** How often unexpected files have arrived since the last run, and one of them. */
    seen: () => ({ occasions, example }),
  };
}

/** With more runs than this in the backlog and no `existing` rule, a person decides. */
const MAX_UNDECIDED = 50;

/** What to do with a batch of runs. Runs in no list wait for the end of the first scan. */
interface Sorted {
  readonly take: readonly FoundFile[];
  readonly skip: readonly FoundFile[];
  /** Until a person decides. */
  readonly hold: readonly FoundFile[];
  /** Whether live runs are delivered first. */
  readonly isBacklog: boolean;
}

/** The backlog decision: what to do with runs from before the first scan of an instrument. */
export function createBacklog(existing: Existing | undefined, hadFirstScan: () => Promise<boolean>) {
  let hadOne = false;
  /** Until the first complete scan of this process, everything is backlog. */
  let isStarting = true;
  let backlogScans = 0;
  const undecided = new Map<string, FoundFile>();
  let heldFiles = 0;

  async function isFirstScan(): Promise<boolean> {
    hadOne ||= await hadFirstScan();
    return !hadOne;
  }

  function takeUndecided(): FoundFile[] {
    const runs = [...undecided.values()];
    undecided.clear();
    return runs;
  }

  function sortFirstScan(found: readonly FoundFile[]): Sorted {
    const none = { take: [], skip: [], hold: [], isBacklog: true };
    if (existing !== undefined) {
      const sinceNs = skipBeforeNs(existing);
      const isWanted = ({ mtimeNs }: FoundFile): boolean => mtimeNs >= sinceNs;
      return { ...none, take: found.filter(isWanted), skip: found.filter((run) => !isWanted(run)) };
    }
    for (const run of found) undecided.set(run.path, mergeRuns(undecided.get(run.path), run));
    if (heldFiles === 0 && undecided.size <= MAX_UNDECIDED) return none;
    const hold = takeUndecided();
    heldFiles += hold.flatMap(filesOf).length;
    return { ...none, hold };
  }

  return {
    async sort(found: readonly FoundFile[], origin: FileOrigin): Promise<Sorted> {
      // A file that an event reports during the first scan was not there before.
      if (origin === 'scan' && (await isFirstScan())) return sortFirstScan(found);
      const isBacklog = isStarting || (origin === 'scan' && backlogScans > 0);
      return { take: found, skip: [], hold: [], isBacklog };
    },
    /** After a complete scan, until the first scan is recorded: the runs to take and the number of files held. */
    async endScan() {
      isStarting = false;
      return (await isFirstScan()) ? { take: takeUndecided(), heldFiles } : undefined;
    },
    /** Treats what scans find until then as backlog. */
    async during(scan: () => Promise<void>): Promise<void> {
      backlogScans += 1;
      await scan();
      backlogScans -= 1;
    },
  };
}

/** Every old file is hashed again about once in this time. */
const RECHECK_MS = 30 * 86_400_000;
/** `chmod -R` on a large folder must not delay new files: 50,000 files take eight hours. */
const MAX_RECHECKS_PER_MINUTE = 100;

/**
 * Decides which files are hashed again although their size and time have not changed: a program may have written to
 * them and set the time back. All whose attributes changed since, which archive tools also do, and a few others.
 */
export function createRechecks(now: () => number, random: () => number = Math.random) {
  let scannedAt = now();
  /** The share of the files that are rechecked in a scan, so that it depends on the time and not on how often. */
  let share = 0;
  let minute = -1;
  let left = 0;

  function isAllowed(): boolean {
    const current = Math.floor(now() / 60_000);
    if (current !== minute) left = MAX_RECHECKS_PER_MINUTE;
    minute = current;
    return left > 0 && left-- > 0;
  }

  return {
    wants: (isTouched: boolean): boolean => (isTouched || random() < share) && isAllowed(),
    endScan(): void {
      share = Math.max(0, Math.min(1, (now() - scannedAt) / RECHECK_MS));
      scannedAt = now();
    },
  };
}
