/**
 * The files that are moved or deleted after their run is filed (`source`), as a part of the outbox.
 *
 * A file goes through these steps, each recorded before the next one begins:
 *
 *   due → hidden (renamed to a private name, and hashed) → decided (what becomes of it, and where it goes) → settled
 *
 * Whatever goes wrong before the last step, the file gets its own name again. After a crash, that comes first.
 */
export interface Sources {
  /** Takes up to `limit` runs whose files are due. Nobody else gets them until they are released. */
  claim(now: number, limit: number, instruments: readonly string[]): Promise<number[]>;
  /** Takes the runs whose files may have private names since an earlier process ended or failed to put them back. */
  claimHidden(now: number): Promise<number[]>;
  release(run: number): Promise<void>;
  /** The files of a run that are not settled. */
  load(run: number): Promise<FiledRunFiles>;
  /** Durable before the first rename. False if the run is no longer settled itself: then nothing may be renamed. */
  hide(run: number, planned: readonly PlannedSource[]): Promise<boolean>;
  /** Durable before the first file is moved or deleted. False as above: then the files are put back. */
  decide(run: number, planned: readonly PlannedSource[]): Promise<boolean>;
  /** All changes of one call become durable together. */
  record(run: number, ...changes: SourceChange[]): Promise<void>;
  /** Postpones all files of an instrument that are due: each would fail for the same reason. */
  postponeAll(instrument: string, by: { readonly reason: string | undefined; readonly dueAt: number }): Promise<void>;
  /** Makes everything due that was postponed: after a start, what was wrong may be corrected. */
  retryNow(): Promise<void>;
  /** Whether the file that was last filed from this path was moved or deleted, so that the next one is another file. */
  hasLeft(instrument: string, path: string): Promise<boolean>;
  /** Whether a file was moved to this folder before, so that the folder must exist. */
  hasMovedTo(folder: string): Promise<boolean>;
  /** Files that could not be moved or deleted, if there are any. */
  trouble(): Promise<SourceTrouble | undefined>;
}

/** A file as intake hands it over. */
export interface NewSource {
  readonly path: string;
  /** For the file system: the path, or its bytes as `hex:…` if they are not UTF-8. */
  readonly location: string;
  readonly sha256: string;
  /** Device, inode and time of the file that was hashed: another file at the path has others. */
  readonly identity: string;
}

/** What becomes of one file. */
export interface PlannedSource {
  readonly n: number;
  /** Where it is moved to, as `location`. Undefined: it is deleted. */
  readonly target: string | undefined;
}

export interface DueSource extends NewSource {
  readonly n: number;
  /** Whether it may have its private name. */
  readonly isHidden: boolean;
  /** What was decided before it was moved or deleted. */
  readonly decided: 'move' | 'delete' | undefined;
  /** Where it is, or was, to be moved. */
  readonly target: string | undefined;
}

export interface FiledRunFiles {
  readonly run: {
    readonly id: number;
    readonly instrument: string;
    readonly sha256: string;
    readonly reference: string;
    /** Empty if the run was erased. */
    readonly path: string;
    readonly server: string | undefined;
    readonly experiment: number | undefined;
  };
  readonly attempts: number;
  /** Whether others of its files were moved or deleted: then the rest follows, even if it looks like an incomplete run. */
  readonly isBegun: boolean;
  readonly files: readonly DueSource[];
}

export interface SourceTrouble {
  readonly files: number;
  /** One of them, and why. */
  readonly path: string;
  readonly reason: string;
}

/** `gone`: somebody else removed it. `changed`: it has other content than what was filed, and stays. */
type SourceOutcome = 'moved' | 'deleted' | 'gone' | 'changed' | 'kept';

export type SourceChange =
  /** The file has its own name again; or another one, if a new file has taken its name meanwhile. */
  | { readonly kind: 'sourceRestored'; readonly n: number; readonly renamed?: Pick<NewSource, 'path' | 'location'> }
  /** Another file with the same content has taken its place: it has to be quiet for a while, too. */
  | { readonly kind: 'sourceRenewed'; readonly n: number; readonly identity: string }
  /** Without a reason, nobody needs to know. */
  | { readonly kind: 'sourcePostponed'; readonly reason: string | undefined; readonly dueAt: number }
  | {
      readonly kind: 'sourceSettled';
      readonly n: number;
      readonly outcome: SourceOutcome;
      readonly path: string;
      /** For people. */
      readonly to: string | undefined;
    };
