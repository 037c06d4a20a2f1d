import type { Draft } from './model.js';
import type { Added, NewRun, Reading } from './outbox.js';
import { formatTime, plural } from './text.js';
import type { NewAttachment } from './uploads.js';

/** From intake to outbox, for the runs of growing files: each batch of lines adds comments and another body. */
export interface Growths {
  /** How far the lines of a generation were handed over; undefined if none were. */
  upto(generation: number): Promise<HandedOver | undefined>;
  /** The runs of a generation, by day, with what was accumulated for these days or, by default, for the last ones. */
  runs(generation: number, days?: readonly string[]): Promise<GrownRuns>;
  /** The fingerprint of the run of a generation that got the last lines, as a list of one or none. */
  newest(generation: number): Promise<string[]>;
  /** Stores what a batch of lines adds. Repeating it after a crash changes nothing: it is identified by its end. */
  append(batch: NewBatch): Promise<Appended>;
  /** Attaches the file, which is complete, to the run that got its last lines. */
  attach(generation: number, files: readonly NewAttachment[]): Promise<boolean>;
  /** Whether nothing more is expected of its file. */
  hasEnded(generation: number): Promise<boolean>;
  /**
   * What was appended may be delivered now, in one update of each run. `isEnd`: nothing is kept of the readings; of later
   * ones, only comments are added.
   */
  flush(generation: number, isEnd?: boolean): Promise<boolean>;
  /** Adds to the history of the newest run of a generation how its file changed; `isEnd`: it gets no more lines. */
  report(generation: number, what: string, isEnd: boolean): Promise<void>;
}

interface HandedOver {
  readonly upto: number;
  readonly lines: number;
  /** The last bytes before it. */
  readonly tail: Uint8Array;
}

interface GrownRuns {
  /** Empty if all of the file is one run. */
  readonly days: readonly string[];
  /** As JSON, by day. */
  readonly accumulated: ReadonlyMap<string, string>;
}

/** The complete lines of a generation from one offset to another. */
export interface NewBatch extends HandedOver {
  readonly generation: number;
  readonly from: number;
  /** For people: which lines, and what is noteworthy about them. */
  readonly range: string;
  readonly notes: readonly string[];
  readonly parts: readonly NewGrowth[];
}

/** What a batch adds to one run. The comments of the draft are those of the new lines. */
export interface NewGrowth {
  readonly day: string;
  readonly run: NewRun;
  readonly reading: Extract<Reading, { readonly draft: Draft }>;
  readonly rows: number;
  readonly accumulated: string;
}

/** `blocked`: it is not known how much of the file is in the notebook. A person decides about this run first. */
export type Appended =
  | { readonly blocked: number; readonly reason: string }
  | { readonly blocked?: never; readonly added: readonly Added[] };

/** A growing file as status, page and `why` show it. */
export interface FollowedFile {
  readonly instrument: string;
  readonly path: string;
  /** Where it is since it was rotated. */
  readonly place?: string | undefined;
  /** Up to here, its lines were taken. */
  readonly offset: number;
  readonly lines: number;
  /** Bytes of the line at its end that is not finished. */
  readonly unfinished: number;
  /** Why its lines wait, or how it ended. */
  readonly note?: string | undefined;
  readonly lookedAt: number;
  readonly grownAt?: number | undefined;
}

export function describeFollowed({ offset, lines, unfinished, note, lookedAt, grownAt, place }: FollowedFile): string {
  const last = grownAt === undefined ? '' : `, the last of them on ${formatTime(grownAt)}`;
  return [
    `${plural(offset, 'byte')} taken, ${plural(lines, 'line')}${last}`,
    ...(lookedAt === 0 ? [] : [`looked at on ${formatTime(lookedAt)}`]),
    ...(place === undefined ? [] : [`it is now ${place}`]),
    ...(unfinished === 0
      ? []
      : [`its last line (${plural(unfinished, 'byte')}) has no line end yet: it is filed when it is complete`]),
    ...(note === undefined ? [] : [note]),
  ].join('; ');
}

/** How far a run of a growing file has come. */
export interface RunGrowth {
  /** Empty if all of the file is one run. */
  readonly day: string;
  readonly upto: number;
  readonly lines: number;
  readonly rows: number;
  readonly grownAt: number;
  /** Whether only comments are added: somebody changed the experiment, or nothing is kept of its readings. */
  readonly isKept: boolean;
  readonly endedAt?: number | undefined;
}

export const describeGrowth = ({ day, upto, lines, rows, grownAt, isKept, endedAt }: RunGrowth): string =>
  [
    `${plural(rows, 'reading')}${day === '' ? '' : ` of ${day}`}, up to byte ${upto} (line ${lines}) of the file, the last on ${formatTime(grownAt)}`,
    ...(isKept ? ['only comments are added: somebody changed the experiment, or it was complete'] : []),
    ...(endedAt === undefined ? [] : [`the file ended on ${formatTime(endedAt)}`]),
  ].join('; ');
