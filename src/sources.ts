/**
 * The files that are moved or deleted after their run is filed (`source`), as a part of the outbox.
 *
 * A file goes through these steps. Each is recorded before it begins, so a crash leaves behind what is named there:
 *
 *   due      unchanged for a while, and proved to be in the notebook. The file has its own name.
 *   bring    it is linked or copied to a private name beside its target. After a crash, that is removed and made again.
 *   hide     it is renamed to a private name in its folder and hashed. After a crash, it gets its own name again.
 *   remove   the copy gets its name at the target, and the file is removed. After a crash, it is at the target, or gone
 *            if it was to be deleted, or still has its private name and gets its own again.
 *   settled  moved or deleted, or it stays for good.
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
  /**
   * Durable before the step begins. False if the run is no longer settled itself, or has other content than what was
   * loaded: then nothing may be moved or deleted.
   */
  begin(step: 'bring' | 'hide' | 'remove', filed: FiledRunFiles, planned: readonly PlannedSource[]): Promise<boolean>;
  /** All changes of one call become durable together. */
  record(run: number, ...changes: SourceChange[]): Promise<void>;
  /**
   * A scan has found a file with the private name of the file at this location. `hidden`: it will be claimed. `claimed`: it
   * is being moved or deleted. `unknown`: the journal has no file that could be there.
   */
  found(location: string): Promise<'hidden' | 'claimed' | 'unknown'>;
  /** Whether a file of the run last filed from this path was moved or deleted, so that the next one is another file. */
  hasLeft(instrument: string, path: string): Promise<boolean>;
  /** Whether files of the run at this path have private names just now. */
  isHiding(instrument: string, path: string): Promise<boolean>;
  /** Whether a file was moved to this folder before, so that the folder must exist. */
  hasMovedTo(folder: string): Promise<boolean>;
  /** Files of these instruments that could not be moved or deleted, and those of all that may be hidden. */
  trouble(instruments: readonly string[]): Promise<SourceTrouble | undefined>;
}

/** A file as intake hands it over. */
export interface NewSource {
  readonly path: string;
  /** For the file system: the path, or its bytes as `hex:…` if they are not UTF-8. */
  readonly location: string;
  readonly sha256: string;
  /** Device, size and time of the file that was hashed: if something is written to it, they differ. */
  readonly identity: string;
  /** Until then, nothing may be written to it. */
  readonly readyAt: number;
}

/** What becomes of one file. */
export interface PlannedSource {
  readonly n: number;
  /** Where it is moved to, as `location`. Undefined: it is deleted. */
  readonly target: string | undefined;
}

export interface DueSource extends Omit<NewSource, 'readyAt'> {
  readonly n: number;
  /** Whether it may have its private name. */
  readonly isHidden: boolean;
  /** What was to become of it once it was hidden and had the bytes that were filed. */
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
  /** Since when a file was missing whose disk or share may not be mounted. */
  readonly missingSince: number | undefined;
  /** Whether others of its files were moved or deleted: then the rest follows, even if it looks like an incomplete run. */
  readonly isBegun: boolean;
  readonly files: readonly DueSource[];
}

export interface SourceTrouble {
  readonly files: number;
  /** One of them, and why. Without a reason, it has its private name for too long. */
  readonly path: string;
  readonly reason: string | undefined;
}

/** `gone`: somebody else removed it. `changed`: it has other content than what was filed, and stays. */
type SourceOutcome = 'moved' | 'deleted' | 'gone' | 'changed' | 'kept';

export type SourceChange =
  /** The file has its own name again; or another one, if a new file has taken its name meanwhile. */
  | { readonly kind: 'sourceRestored'; readonly n: number; readonly renamed?: Pick<NewSource, 'path' | 'location'> }
  /** Something was written to the file, or its disk is mounted again: it has to stay unchanged for a while, too. */
  | { readonly kind: 'sourceRenewed'; readonly n: number; readonly identity: string; readonly readyAt: number }
  /** `isQuiet`: for a day, nobody needs to know, and an earlier reason stays. */
  | {
      readonly kind: 'sourcePostponed';
      readonly reason: string;
      readonly isQuiet?: boolean;
      readonly dueAt: number;
      /** A file is missing whose disk or share may not be mounted. */
      readonly isMissing?: boolean;
    }
  | {
      readonly kind: 'sourceSettled';
      readonly n: number;
      readonly outcome: SourceOutcome;
      readonly path: string;
      /** For people. */
      readonly to: string | undefined;
    };
