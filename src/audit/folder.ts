import { LabfeedError } from '../errors.js';
import type { Content, Evidence, KnownRun } from '../journal/evidence.js';
import type { FoundFile } from '../model.js';
import { aFewAtATime } from './a-few-at-a-time.js';
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
  readonly journal: Pick<Evidence, 'atPath' | 'ofContent'>;
  list(): AsyncGenerator<FoundFile[], Ended>;
  /** Whether the file belongs to another instrument, or is the journal itself. */
  isOthers(path: string): boolean;
  /** SHA-256 of the file's bytes. Rejects with a LabfeedError where it cannot be read, or changes meanwhile. */
  hash(file: FoundFile): Promise<string>;
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

  async function examine(file: FoundFile): Promise<void> {
    const became = await examineFile(file, deps);
    const as = became.kind === 'told' ? 'notTaken' : standingOf(became.run, deps);
    counts.files += 1;
    counts[as] += 1;
    if (became.kind === 'told') tell(became.finding, file.path, became.text);
    else if (as === 'proved') {
      const { run, sha256 } = became;
      const { path, location } = file;
      deps.proved({ path, location, sha256, run: run.id, experiment: run.experiment });
    }
    deps.progress(counts);
  }

  const listing = deps.list();
  for (;;) {
    const next = await listing.next();
    if (!next.done) {
      const own = next.value.filter(({ path }) => !deps.isOthers(path));
      await aFewAtATime(own, HASHES_AT_ONCE, examine);
      continue;
    }
    const ended = next.value;
    if (ended.state !== 'present') tell('folder', deps.folder, `it is ${ended.state}: ${ended.reason}`);
    else for (const { path, reason } of ended.unread) tell('unread', path, reason);
    return counts;
  }
}

type Became =
  | { readonly kind: 'told'; readonly finding: FindingKind; readonly text: string }
  | { readonly kind: 'taken'; readonly run: KnownRun; readonly sha256: string };

async function examineFile(
  file: FoundFile,
  { instrument, copies, journal, hash }: FolderDeps,
): Promise<Became> {
  const { path } = file;
  const known = journal.atPath(instrument, path);
  if (known?.verdict === 'asked') return told('asked', 'it waits for an answer about old files');
  if (known?.verdict === 'skipped') return told('skipped', 'it was passed over, as the configuration says');
  let sha256: string;
  try {
    sha256 = await hash(file);
  } catch (error) {
    if (!(error instanceof LabfeedError)) throw error;
    return told('unread', error.message);
  }
  const content: Content = { instrument, sha256, copy: copies ? path : '' };
  const run = known?.run?.sha256 === sha256 ? known.run : journal.ofContent(content);
  if (run) return { kind: 'taken', run, sha256 };
  if (known?.run) return told('changed', `its bytes are no longer those of run ${known.run.id}`);
  return told('never taken', 'the journal does not know it');
}

const told = (finding: FindingKind, text: string): Became => ({ kind: 'told', finding, text });

function standingOf({ id, state }: KnownRun, { isProved }: FolderDeps): Exclude<keyof FileCounts, 'files'> {
  if (state === 'queued' || state === 'sending') return 'onTheirWay';
  if (state !== 'done') return 'resting';
  return isProved(id) ? 'proved' : 'unproved';
}
