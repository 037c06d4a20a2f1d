import type { LiveAlarm } from './live.js';
import { nearest } from './text.js';

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
export interface DiskFile extends FileStamp {
  /** For people, journal and templates. Bytes that are not UTF-8 stand in it as `\xNN`. */
  readonly path: string;
  /** What the file system knows it by: the same text, or the very bytes where they are not UTF-8. */
  readonly location: string | Buffer;
}

/** Which of a run's files one is. */
export interface Part {
  /** Seen from the run's folder, or from where the files lie that are joined. */
  readonly name: string;
  /** What it is in every run of its kind, whatever that is called: by this and its bytes the run is known. */
  readonly role: string;
}

/**
 * What may become a run: a file, or several. Of several, path and location are those of their folder, or of the first
 * of those that are joined; the size is that of all together, the time that of the latest.
 */
export interface FoundFile extends DiskFile {
  readonly parts?: readonly (DiskFile & Part)[];
}

export interface Hashed {
  /** Of several files: of the list of their hashes and roles. */
  readonly sha256: string;
  /** The bytes that were hashed, where they were few enough to keep: parsing then reads exactly those. */
  readonly content?: Uint8Array;
}

/** A file that held still and whose whole content was hashed; or several. */
export interface IdentifiedFile extends DiskFile, Hashed {
  readonly parts?: readonly (DiskFile & Part & Hashed)[];
}

/** What of a run is on the disk: itself, or its parts. */
export const filesOf = (run: FoundFile): readonly DiskFile[] => run.parts ?? [run];

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
  /** Of all numbers of the column, where the table has more rows than are kept. */
  readonly summary?: ColumnSummary;
}

/** What very many readings come to. Least and greatest are as the file writes them. */
export interface ColumnSummary {
  /** How many cells hold a number. */
  readonly n: number;
  readonly min: Value;
  /** Of a fair sample of the numbers, where there are too many to sort. */
  readonly median: number;
  readonly isMedianExact: boolean;
  readonly max: Value;
}

export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  /** One array a row, in the order of `columns`. The first ones only, where there are very many. */
  readonly rows: readonly (readonly Value[])[];
  /** How many rows the file has. */
  readonly count: number;
}

/** What a file says, once it was read. The first table is `readings` in templates. */
export interface FileRecord {
  readonly meta: ReadonlyMap<string, Value>;
  readonly tables: readonly Table[];
  /** As the mapping says it, or as it was measured: what templates print is read in the same way. */
  readonly dates?: DateHabits;
}

/** How a file writes dates. */
export interface DateHabits {
  readonly format?: readonly string[] | undefined;
  readonly zone?: string | { readonly from: string } | undefined;
  readonly locale?: string | undefined;
  /** Texts that another file of the run, which writes dates in its own way, means as these. */
  readonly known?: ReadonlyMap<string, string>;
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
 * Where a run is, in the words that people see in commands, page and metrics. `waiting`: its file is not yet still, so
 * that the journal does not know it. `sending`: its delivery has begun. `held`: it needs a decision.
 */
export const RUN_STATES = ['waiting', 'queued', 'sending', 'done', 'quarantined', 'held', 'ignored'] as const;

export type RunState = (typeof RUN_STATES)[number];

/** `v2` is the contract to the letter; eLabFTW departs from it here and there. */
export type Dialect = 'v2' | 'elabftw';

/** A documented request whose answer differs: eLabFTW's records of API keys name the team. */
export const dialectOf = (keys: readonly Readonly<Record<string, unknown>>[]): Dialect =>
  keys.some((key) => 'team' in key && 'can_write' in key) ? 'elabftw' : 'v2';

/** What the runs of an instrument have in common: their tables, with the names and units of the columns. */
export interface Shape {
  readonly tables: readonly {
    readonly name: string;
    readonly columns: readonly { readonly name: string; readonly unit?: string | undefined }[];
  }[];
}

type TableShape = Shape['tables'][number];

export const shapeOf = ({ tables }: FileRecord): Shape => ({
  tables: tables.map(({ name, columns }) => ({
    name,
    columns: columns.map(({ name, unit }) => ({ name, ...(unit !== undefined && { unit }) })),
  })),
});

/** What of an earlier shape is gone or has another unit, in words. What was added is no change. */
export function changesBetween(before: Shape, now: Shape): string[] {
  const several = before.tables.length > 1 || now.tables.length > 1;
  return before.tables.flatMap((table) => {
    const same = now.tables.find(({ name }) => name === table.name);
    if (!same) return [`the table ${quote(table.name)} is missing`];
    return columnChanges(table, same, several ? ` in the table ${quote(table.name)}` : '');
  });
}

function columnChanges(before: TableShape, now: TableShape, ofTable: string): string[] {
  const units = new Map(now.columns.map(({ name, unit }) => [name, unit]));
  const known = new Set(before.columns.map(({ name }) => name));
  const added = now.columns.map(({ name }) => name).filter((name) => !known.has(name));
  return before.columns.flatMap(({ name, unit }) => {
    if (!units.has(name)) {
      const renamed = nearest(name, added);
      const guess = renamed === undefined ? '' : ` (renamed to ${quote(renamed)}?)`;
      return [`the column ${quote(name)}${ofTable} is missing${guess}`];
    }
    const unitNow = units.get(name);
    if (unitNow === unit) return [];
    return [`the unit of ${quote(name)}${ofTable} changed from ${unit ?? 'none'} to ${unitNow ?? 'none'}`];
  });
}

const quote = (name: string): string => JSON.stringify(name);

export const CHANNELS = ['webhook', 'command'] as const;

export type Channel = (typeof CHANNELS)[number];

/** A message that an alarm was raised or cleared, still to be sent over one channel. */
export interface Notice extends LiveAlarm {
  readonly channel: Channel;
  /** `over`: cleared. */
  readonly state: 'raised' | 'over';
  /** When it was raised or cleared. */
  readonly at: number;
  /** The number of failed attempts, and when to try again. */
  readonly attempts: number;
  readonly dueAt: number;
}

/** Saved, so that a restart neither repeats nor forgets an alarm. */
export interface AlarmBook {
  readonly raised: readonly LiveAlarm[];
  /** In the order in which they are sent. */
  readonly unsent: readonly Notice[];
}

/** The middle one of numbers in their order; between the two in the middle, where there are two. */
export function medianOf(sorted: Float64Array): number {
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  // Halved before they are added: the sum of two great numbers is infinite.
  return upper === lower ? upper : lower / 2 + upper / 2;
}
