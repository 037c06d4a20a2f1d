import type { LiveAlarm } from './live.js';
import { nearest } from './text.js';

/** The types that all stages share, in the order of the pipeline: found file, identified file, record, draft. */

/** If none of these changed since the last scan, the content is assumed to be unchanged. */
export interface FileStamp {
  readonly size: number;
  /** In nanoseconds: instruments can write two files within one millisecond. */
  readonly mtimeNs: bigint;
  readonly inode: bigint;
  /** When content or attributes last changed. Programs can set the other time back, but not this one. */
  readonly ctimeNs?: bigint;
  /** Not the same after a share was mounted again. */
  readonly device?: bigint;
}

/** A file in an instrument's folder at the time of a scan. */
export interface DiskFile extends FileStamp {
  /** For people, journal and templates. Bytes that are not UTF-8 are written as `\xNN`. */
  readonly path: string;
  /** For the file system: the path, or its bytes if it is not UTF-8. */
  readonly location: string | Buffer;
  /** On a disk of this machine, so that calls to it do not hang as those to a share can. */
  readonly isLocal?: boolean;
}

/** One file of a run that has several. */
export interface Part {
  /** Relative to the folder of the run, or to the folder of the joined files. */
  readonly name: string;
  /** The same in every run: its name in the folder, or its pattern such as `{stem}.csv`. Part of the fingerprint. */
  readonly role: string;
}

/**
 * A possible run: one file or several. For several, path and location are those of their folder or of the first joined
 * file, the size is the total, and the time is that of the latest.
 */
export interface FoundFile extends DiskFile {
  readonly parts?: readonly (DiskFile & Part)[];
}

export interface Hashed {
  /** For several files: the hash of the list of their hashes and roles. */
  readonly sha256: string;
  /** The bytes that were hashed, if they are few enough to keep. Parsing then reads exactly these. */
  readonly content?: Uint8Array;
}

/** A run whose files have settled and were hashed. */
export interface IdentifiedFile extends DiskFile, Hashed {
  readonly parts?: readonly (DiskFile & Part & Hashed)[];
}

/** No fingerprint starts like this: the stand-in for that of a file that must not be read, or is too large. */
export const STAND_IN = '0'.repeat(32);

export const filesOf = (run: FoundFile): readonly DiskFile[] => run.parts ?? [run];

export interface Value {
  /** Dates and times are ISO texts; null if the file marks the value as missing. */
  readonly value: string | number | boolean | null;
  /** As written in the file (`2.100`, `007`, `OVRFLW`): templates print this. */
  readonly text: string;
  readonly unit?: string;
}

export const NO_VALUE: Value = { value: null, text: '' };

export interface Column {
  readonly name: string;
  readonly unit?: string;
  /** `name`: the file has none, and labfeed called it `column 3`. `column`: labfeed added it, as `Dose text`. */
  readonly invented?: 'name' | 'column';
  /** Covers all rows; present if the table has more rows than are kept. */
  readonly summary?: ColumnSummary;
}

export interface ColumnSummary {
  /** The number of cells that hold a number. */
  readonly n: number;
  readonly min: Value;
  /** Of a random sample, if there are too many numbers to sort. */
  readonly median: number;
  readonly isMedianExact: boolean;
  readonly max: Value;
}

export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  /** The first rows, in the order of `columns`. */
  readonly rows: readonly (readonly Value[])[];
  /** The number of rows in the file. */
  readonly count: number;
}

/** A part of the file that is not in the record. Without lines: all of the file or sheet. */
export interface Unread {
  /**
   * `left out`: by `skip`, `where`, `columns` or `area` of the mapping. `partly read`: some words of it are missing.
   * `only facts`: lines that look like readings, but were read as facts, so that nothing of them is missing.
   */
  readonly kind: 'unread' | 'partly read' | 'left out' | 'only facts';
  /** The name of the file, if the run has several. */
  readonly file?: string;
  readonly sheet?: string;
  /** From 1; the lines of text, or of the sheet. */
  readonly from?: number;
  readonly to?: number;
  /** How many of the lines look like readings, or how many numbers at the path in `what`. */
  readonly readings?: number;
  /** Columns of a table, whose lines were read otherwise. */
  readonly table?: string;
  readonly columns?: readonly string[];
  /** What is not text: `2 pictures`, of the file or sheet. The path of values in JSON or XML: `/scan/intensities`. */
  readonly what?: string;
}

/** The result of parsing. The first table is `readings` in templates. */
export interface FileRecord {
  readonly meta: ReadonlyMap<string, Value>;
  readonly tables: readonly Table[];
  /** What the file has beside these. Empty only if all of it was read. */
  readonly unread: readonly Unread[];
  /** The number of lines that tables have, with their headers. Absent if the file is not made of lines. */
  readonly tableLines?: number;
  /** From the mapping, or measured. Dates that templates print are parsed with it, too. */
  readonly dates?: DateHabits;
  /** Whether no date in it is that of the run, not even a fact named `date`. */
  readonly isUndated?: boolean;
  /** What was assumed to read the file, as phrases for people. */
  readonly assumed?: readonly string[];
}

/** How a file writes dates. */
export interface DateHabits {
  readonly format?: readonly string[] | undefined;
  readonly zone?: string | { readonly from: string } | undefined;
  readonly locale?: string | undefined;
  /** Dates of another file of the run, which has its own format: from the text to the ISO date. */
  readonly known?: ReadonlyMap<string, string>;
}

/** An axis of a plot. `date`: milliseconds of the clock in the file; `clock`: milliseconds since midnight. */
export interface PlotAxis {
  readonly name: string;
  readonly unit: string | undefined;
  readonly type: 'number' | 'date' | 'clock';
  /** From large to small, as spectroscopists draw wavenumbers and chemical shifts. */
  readonly isReversed?: boolean;
  readonly isLogarithmic?: boolean;
}

/** NaN in `y` is a gap. */
export interface PlotSeries {
  readonly name: string;
  readonly x: Float64Array;
  readonly y: Float64Array;
}

/** The plot of a run's readings: plain data, which can be sent between threads. */
export type Plot = {
  readonly x: PlotAxis;
  readonly y: PlotAxis;
  /** What the plot does not show, as sentences for people. */
  readonly notes: readonly string[];
} & (
  | { readonly kind: 'line' | 'points'; readonly series: readonly PlotSeries[] }
  /** `x` of a series has the number of the category. */
  | { readonly kind: 'bar'; readonly series: readonly PlotSeries[]; readonly categories: readonly string[] }
  /** A plate: `values` has its wells row by row, NaN where nothing was measured. */
  | { readonly kind: 'heatmap'; readonly rows: number; readonly columns: number; readonly values: Float64Array }
);

/** The plot of a run as a picture, or why there is none. It can be sent between threads. */
export type PlotPicture =
  | {
      readonly png: Uint8Array;
      readonly sha256: string;
      /** In words, for people who cannot see it. */
      readonly description: string;
      /** Everything that is written in it. */
      readonly texts: string;
      /** Where it belongs in the body. */
      readonly at: number;
      readonly reason?: never;
    }
  /** `isFailed`: there should be one, but it could not be drawn. */
  | { readonly png?: never; readonly at: number; readonly reason: string; readonly isFailed: boolean };

/** One of eLabFTW's extra fields. */
export interface ExtraField {
  readonly value: string;
  readonly type: string;
  readonly unit?: string | undefined;
}

/** What only eLabFTW has. Names are resolved when the run is delivered. */
export interface Extras {
  readonly fields?: Readonly<Record<string, ExtraField>>;
  readonly category?: string | number | undefined;
  readonly status?: string | number | undefined;
  readonly template?: string | number | undefined;
  readonly link?: string | number | undefined;
  readonly canread?: string | undefined;
  readonly canwrite?: string | undefined;
}

/** What is sent to the notebook for one run. The comments have no marker lines yet. */
export interface Draft {
  readonly title: string;
  /** YYYY-MM-DD. */
  readonly date: string;
  readonly body: string;
  readonly tags: readonly string[];
  readonly extras?: Extras | undefined;
  readonly comments: readonly string[];
  /** What is sent instead if the raw file is attached: many readings are then only summarised. */
  readonly attached?: DraftVariant | undefined;
}

/** The parts of a draft that depend on whether the raw file is attached. */
export interface DraftVariant {
  readonly body: string;
  /** Where the plot belongs in this body. */
  readonly plotAt: number;
  readonly comments: readonly string[];
  /** What the file has and these do not. */
  readonly omits: readonly string[];
}

/** The same words in commands, page and metrics. `waiting`: the file has not settled and is not in the journal yet. */
export const RUN_STATES = ['waiting', 'queued', 'sending', 'done', 'quarantined', 'held', 'ignored'] as const;

export type RunState = (typeof RUN_STATES)[number];

/** `v2`: exactly the REST API v2. `elabftw`: with the deviations of eLabFTW. */
export type Dialect = 'v2' | 'elabftw';

/** The list of API keys tells them apart: only eLabFTW's records name the team. */
export const dialectOf = (keys: readonly Readonly<Record<string, unknown>>[]): Dialect =>
  keys.some((key) => 'team' in key && 'can_write' in key) ? 'elabftw' : 'v2';

/** What the runs of an instrument have in common: their tables, with the names and units of the columns. */
export interface Shape {
  readonly tables: readonly {
    readonly name: string;
    readonly columns: readonly {
      readonly name: string;
      readonly unit?: string | undefined;
      /** Its name is from labfeed. */
      readonly isInvented?: boolean | undefined;
    }[];
  }[];
}

type TableShape = Shape['tables'][number];

export const shapeOf = ({ tables }: FileRecord): Shape => ({
  tables: tables.map(({ name, columns }) => ({
    name,
    columns: columns.map(({ name, unit, invented }) => ({
      name,
      ...(unit !== undefined && { unit }),
      ...(invented && { isInvented: true }),
    })),
  })),
});

/** Describes columns and tables that are missing or have another unit. Added ones are not a change. */
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
  return before.columns.flatMap(({ name, unit, isInvented }) => {
    // The file has no such name, so it cannot have changed it.
    if (isInvented) return [];
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

/** The mean of the two in the middle if the count is even. */
export function medianOf(sorted: Float64Array): number {
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  // Halved before they are added: the sum of two large numbers can be infinite.
  return upper === lower ? upper : lower / 2 + upper / 2;
}
