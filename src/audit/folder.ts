import { LabfeedError } from '../errors.js';
import type { JournalReader, KnownPath, KnownRun } from '../journal/reader.js';
import { type FoundFile, filesOf, type IdentifiedFile } from '../model.js';
import type { Finding, FindingKind, SafeFile } from './findings.js';

/** How the listing of a folder ended. */
type Ended =
  | {
      readonly state: 'present';
      readonly unread: readonly { readonly path: string; readonly reason: string }[];
    }
  | { readonly state: 'missing' | 'unreadable'; readonly reason: string };

export interface FolderDeps {
  readonly instrument: string;
  readonly folder: string;
  /** Whether equal bytes at other paths are runs of their own. */
  readonly copies: boolean;
  /** Whether a file whose bytes have changed is passed over. */
  readonly ignoresChanges: boolean;
  readonly journal: Pick<JournalReader, 'atPath' | 'ofContent'>;
  list(): AsyncGenerator<FoundFile[], Ended>;
  /** The runs of these files, as far as these show them. */
  group(files: readonly FoundFile[]): FoundFile[];
  /** A run of several files as it is now. */
  stat(run: FoundFile): Promise<(FoundFile & { readonly missing?: string }) | 'absent' | 'no answer'>;
  /** Whether the file belongs to another instrument, or is the journal itself. */
  isOthers(path: string): boolean;
  /** Hashes it. Rejects with a LabfeedError where it cannot be read, or changes meanwhile. */
  identify(run: FoundFile): Promise<IdentifiedFile>;
  /** Whether the run's experiment and comments were read back. */
  isProved(run: number): boolean;
  tell(finding: Finding): void;
  /** Told of each file that was proved. */
  proved(file: SafeFile): void;
  /** Told after each file. */
  progress(so: FileCounts): void;
}

/** Files of an instrument, by what became of them. */
export interface FileCounts {
  files: number;
  /** Their content was read back from the notebook. */
  proved: number;
  /** The journal has them as filed, and the notebook did not prove it. */
  unproved: number;
  onTheirWay: number;
  /** Quarantined, held or ignored. */
  resting: number;
  /** Changed since, never taken, passed over, or not to be read. */
  notTaken: number;
}

/** Hashes under way at once: a share that hangs must not keep every thread that reads files. */
const HASHES_AT_ONCE = 2;

/** Holds the files in an instrument's folder against the journal. */
export async function examineFolder(deps: FolderDeps): Promise<FileCounts> {
  const counts = { files: 0, proved: 0, unproved: 0, onTheirWay: 0, resting: 0, notTaken: 0 };
  const tell = (kind: FindingKind, path: string, text: string): void =>
    deps.tell({ kind, instrument: deps.instrument, path, text });

  async function examine(run: FoundFile): Promise<void> {
    const became = await examineRun(run, deps);
    if (became.kind === 'gone') return;
    const as = became.kind === 'told' ? 'notTaken' : standingOf(became.run, deps);
    const files = became.kind === 'told' ? filesOf(run) : filesOf(became.file);
    counts.files += files.length;
    counts[as] += files.length;
    if (became.kind === 'told') tell(became.finding, run.path, became.text);
    else if (as === 'proved') for (const file of safeFiles(became)) deps.proved(file);
    deps.progress(counts);
  }

  /** Of several files, a batch may show only some: they are looked at when all were listed. */
  const several = new Map<string, FoundFile>();
  const listing = deps.list();
  for (;;) {
    const next = await listing.next();
    if (!next.done) {
      const runs = deps.group(next.value.filter(({ path }) => !deps.isOthers(path)));
      for (const run of runs) if (run.parts) several.set(run.path, run);
      await aFewAtATime(
        runs.filter(({ parts }) => !parts),
        HASHES_AT_ONCE,
        examine,
      );
      continue;
    }
    await aFewAtATime(several.values(), HASHES_AT_ONCE, examine);
    const ended = next.value;
    if (ended.state !== 'present') tell('folder', deps.folder, `it is ${ended.state}: ${ended.reason}`);
    else for (const { path, reason } of ended.unread) tell('unread', path, reason);
    return counts;
  }
}

type Became =
  | { readonly kind: 'gone' }
  | { readonly kind: 'told'; readonly finding: FindingKind; readonly text: string }
  | { readonly kind: 'taken'; readonly run: KnownRun; readonly file: IdentifiedFile };

async function examineRun(found: FoundFile, deps: FolderDeps): Promise<Became> {
  const whole = found.parts ? await deps.stat(found) : found;
  if (whole === 'absent') return { kind: 'gone' };
  if (whole === 'no answer') return told('unread', 'the disk or share does not answer');
  if ('missing' in whole) return told('never taken', `${whole.missing} is not there`);
  const known = await Promise.all(filesOf(whole).map((file) => deps.journal.atPath(deps.instrument, file)));
  if (known.some((one) => one?.verdict === 'asked'))
    return told('asked', 'it waits for an answer about old files');
  if (known.every((one) => one?.verdict === 'skipped')) return told('skipped', PASSED_OVER);
  try {
    return await examineContent(await deps.identify(whole), known, deps);
  } catch (error) {
    if (!(error instanceof LabfeedError)) throw error;
    return told('unread', error.message);
  }
}

const PASSED_OVER = 'it was passed over, as the configuration says';

async function examineContent(
  file: IdentifiedFile,
  known: readonly (KnownPath | undefined)[],
  { instrument, copies, ignoresChanges, journal }: FolderDeps,
): Promise<Became> {
  const { sha256, path } = file;
  const before = known.flatMap((one) => one?.run ?? []);
  const run =
    before.find((one) => one.sha256 === sha256) ??
    (await journal.ofContent({ instrument, sha256, copy: copies ? path : '' }));
  if (run) return { kind: 'taken', run, file };
  const [other] = before;
  if (!other) return told('never taken', 'the journal does not know it');
  // What is left of several files is known as it is, and no run by itself.
  if (file.parts && known.every((one) => one?.isUntouched && one.run?.id === other.id))
    return told('thinned out', `some files of run ${other.id} are gone`);
  return ignoresChanges
    ? told('skipped', PASSED_OVER)
    : told('changed', `its bytes are no longer those of run ${other.id}`);
}

const safeFiles = ({ run, file }: Extract<Became, { kind: 'taken' }>): SafeFile[] =>
  (file.parts ?? [file]).map(({ path, location, sha256 }) => ({
    path,
    location,
    sha256,
    run: run.id,
    experiment: run.experiment,
  }));

const told = (finding: FindingKind, text: string): Became => ({ kind: 'told', finding, text });

function standingOf({ id, state }: KnownRun, { isProved }: FolderDeps): Exclude<keyof FileCounts, 'files'> {
  if (state === 'queued' || state === 'sending') return 'onTheirWay';
  if (state !== 'done') return 'resting';
  return isProved(id) ? 'proved' : 'unproved';
}

/**
 * Does this for each of them, so many at a time; the next one is only asked for when somebody is free. After a failure
 * no more are begun; it is thrown when those under way have ended.
 */
export async function aFewAtATime<T>(
  items: Iterable<T> | AsyncIterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let hasFailed = false;

  async function worker(): Promise<void> {
    try {
      for (let next = await rest.next(); !next.done && !hasFailed; next = await rest.next())
        await work(next.value);
    } catch (error) {
      hasFailed = true;
      throw error;
    }
  }

  const ended = await Promise.allSettled(Array.from({ length: atOnce }, worker));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
}
