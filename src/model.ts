/**
 * The words that every stage uses, in the order in which one run meets them:
 * a file is found, becomes a run with an identity, is read into a record,
 * and is mapped to the draft that the notebook will hold.
 */

/** What the quick look compares: if none of it changed, the bytes are taken to be the same. */
export interface FileStamp {
  readonly size: number;
  /** Nanoseconds, since instruments can write two files within one millisecond. */
  readonly mtimeNs: bigint;
  readonly inode: bigint;
}

/** A file in an instrument's folder, as the listing saw it. */
export interface FoundFile extends FileStamp {
  /** For people, journal and templates. Bytes that are not UTF-8 stand in it as `\xNN`. */
  readonly path: string;
  /** What the file system knows it by: the same text, or the very bytes where they are not UTF-8. */
  readonly location: string | Buffer;
}

/** A file that held still and whose whole content was hashed. */
export interface IdentifiedFile extends FoundFile {
  readonly sha256: string;
  /** The bytes that were hashed, where they were few enough to keep: parsing then reads exactly those. */
  readonly content?: Uint8Array;
}

/** One value of a file: what it means, and how it was written there. */
export interface Value {
  /** A number, a text, an ISO date or time, a boolean; null where the file says that there is none. */
  readonly value: string | number | boolean | null;
  /** As written in the file (`2.100`, `007`, `OVRFLW`): templates print this. */
  readonly text: string;
  readonly unit?: string;
}

export interface Column {
  readonly name: string;
  readonly unit?: string;
}

export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  /** One array a row, in the order of `columns`. */
  readonly rows: readonly (readonly Value[])[];
}

/** What a file says, once it was read. The first table is `readings` in templates. */
export interface FileRecord {
  readonly meta: ReadonlyMap<string, Value>;
  readonly tables: readonly Table[];
}

/** What the notebook is to hold for one run. Comments are still without their mark. */
export interface Draft {
  readonly title: string;
  /** YYYY-MM-DD. */
  readonly date: string;
  readonly body: string;
  readonly tags: readonly string[];
  readonly comments: readonly string[];
}

/**
 * How far a run has come. `creating` means: the intent is on disk and a POST may have left;
 * whether the experiment exists is not known until its id is recorded with `created`.
 */
export type RunStep = 'pending' | 'creating' | 'created' | 'described' | 'done';

/** The words that people see, the same in commands, page and metrics. */
export type RunState = 'waiting' | 'queued' | 'sending' | 'done' | 'quarantined' | 'held' | 'ignored';
