import { type Existing, skipBeforeNs } from '../config/schema.js';
import { type FoundFile, filesOf } from '../model.js';
import { mergeRuns } from './runs.js';

/** More old files than this at an instrument's first scan are a question to a person, not a flood. */
export const FLOOD = 50;

/** Files of one instrument that are waited for at once, mostly until they are still; the listing waits for room. */
const MOST_UNDER_WAY = 10_000;

export interface IntakeDeps {
  readonly existing: Existing | undefined;
  /** The quick look: the runs of those of these files that are new or not as they were. */
  unknown(files: readonly FoundFile[]): Promise<FoundFile[]>;
  hadFirstScan(): Promise<boolean>;
  endFirstScan(): Promise<void>;
  /** Holds these files as part of one question. */
  ask(files: readonly FoundFile[]): Promise<void>;
  /** Remembers these files as passed over. */
  skip(files: readonly FoundFile[]): Promise<void>;
  /** Takes one file all the way into the journal. Does not reject. */
  take(file: FoundFile, backlog: boolean): Promise<void>;
  /** Told once, when the first scan ended with a question. */
  asked(files: number): void;
}

export interface Intake {
  offer(files: readonly FoundFile[], origin: 'scan' | 'event'): Promise<void>;
  scanned(result: { readonly complete: boolean }): Promise<void>;
  /** What scans find until this one has ended was there all the time: it goes after what comes in live. */
  asBacklog(scan: () => Promise<void>): Promise<void>;
  /** Resolves when no file is under way any more. */
  idle(): Promise<void>;
}

/** Decides which of the files that watching finds go on, and sees to it that they are not too many at once. */
export function createIntake(deps: IntakeDeps): Intake {
  const underWay = new Map<string, Promise<void>>();
  /** Who waits for room. */
  const waiting: (() => void)[] = [];
  /** Found by the first scan and not yet decided on: taken if they stay few, part of a question otherwise. */
  const undecided = new Map<string, FoundFile>();
  let first: boolean | undefined;
  let startUp = true;
  let askedFor = 0;
  let backlogScans = 0;

  async function start(file: FoundFile, backlog: boolean): Promise<void> {
    while (underWay.size >= MOST_UNDER_WAY) await new Promise<void>((resolve) => waiting.push(resolve));
    const work = deps.take(file, backlog).finally(() => {
      underWay.delete(file.path);
      waiting.shift()?.();
    });
    underWay.set(file.path, work);
  }

  async function startAll(files: Iterable<FoundFile>, backlog = startUp): Promise<void> {
    for (const file of files) if (!underWay.has(file.path)) await start(file, backlog);
  }

  /** What the configuration says about files that were there before labfeed was. */
  async function sortOld(files: readonly FoundFile[]): Promise<void> {
    if (deps.existing === undefined) return hold(files);
    const beforeNs = skipBeforeNs(deps.existing);
    const old = files.filter(({ mtimeNs }) => mtimeNs < beforeNs);
    if (old.length > 0) await deps.skip(old);
    await startAll(files.filter(({ mtimeNs }) => mtimeNs >= beforeNs));
  }

  async function hold(files: readonly FoundFile[]): Promise<void> {
    for (const file of files) undecided.set(file.path, mergeRuns(undecided.get(file.path), file));
    if (askedFor === 0 && undecided.size <= FLOOD) return;
    const batch = [...undecided.values()];
    await deps.ask(batch);
    askedFor += batch.flatMap(filesOf).length;
    undecided.clear();
  }

  return {
    async offer(files, origin) {
      first ??= !(await deps.hadFirstScan());
      const fresh = (await deps.unknown(files)).filter(({ path }) => !underWay.has(path));
      // What comes while the first scan still goes on was not there before.
      if (first && origin === 'scan') return sortOld(fresh);
      await startAll(fresh, startUp || (origin === 'scan' && backlogScans > 0));
    },
    async scanned({ complete }) {
      if (!complete) return;
      first ??= !(await deps.hadFirstScan());
      if (first) {
        await startAll(undecided.values());
        undecided.clear();
        await deps.endFirstScan();
        first = false;
        if (askedFor > 0) deps.asked(askedFor);
      }
      startUp = false;
    },
    async asBacklog(scan) {
      backlogScans += 1;
      await scan().finally(() => {
        backlogScans -= 1;
      });
    },
    async idle() {
      await Promise.all(underWay.values());
    },
  };
}
