import type { Live } from '../live.js';
import type { RunState } from '../model.js';

/** What the page and its server say to each other, in JSON. Times are milliseconds since 1970. */

/** `GET /api/state`, and each `state` event of `GET /api/events`. */
export interface PageState {
  readonly at: number;
  readonly version: string;
  readonly live: Live;
  readonly overview: Overview;
  /** The runs that need a person, the newest first; no more than 100. */
  readonly attention: readonly Job[];
  /** How many there are. */
  readonly attentionCount: number;
}

export interface Overview {
  readonly instruments: readonly InstrumentSummary[];
  readonly servers: readonly {
    readonly url: string;
    readonly dialect?: string | undefined;
    /** Why nothing is sent there until a person has recovered the journal. */
    readonly halted?: string | undefined;
  }[];
}

export interface InstrumentSummary {
  readonly name: string;
  readonly runs: Readonly<Record<RunState, number>>;
  /** The run that came last. */
  readonly last?: Job | undefined;
  /** How many old files wait for an answer. */
  readonly asked: number;
  /** How many runs came in each hour since 1970 that had any. */
  readonly hours: readonly { readonly hour: number; readonly runs: number }[];
  /** When the run was added that has waited longest for its delivery. */
  readonly oldestAt?: number | undefined;
}

/** A run as a list shows it. */
export interface Job {
  readonly id: number;
  readonly instrument: string;
  readonly state: RunState;
  readonly step: string;
  /** Empty where it was erased. */
  readonly path: string;
  readonly size: number;
  readonly modifiedMs: number;
  readonly sha256: string;
  readonly backlog: boolean;
  readonly title?: string | undefined;
  readonly server?: string | undefined;
  readonly experiment?: number | undefined;
  readonly failure?: string | undefined;
  /** Why it rests, or why its last attempt failed. */
  readonly reason?: string | undefined;
  readonly attempts: number;
  readonly dueAt: number;
  readonly addedAt: number;
  readonly updatedAt: number;
}

/** `GET /api/jobs/:id`. The draft's body is shown by `GET /api/jobs/:id/body`, in a frame of its own. */
export interface JobDetail extends Job {
  readonly draft?:
    | {
        readonly title: string;
        readonly date: string;
        readonly body: string;
        readonly tags: readonly string[];
      }
    | undefined;
  readonly comments: readonly {
    readonly n: number;
    readonly text: string;
    readonly comment?: number | undefined;
  }[];
  /** What happened to it, in words, the oldest first. */
  readonly history: readonly { readonly at: number; readonly words: string }[];
  readonly paths: readonly string[];
  readonly drift: readonly string[];
}

/** `POST /api/decide`. */
export type DecisionRequest =
  | { readonly kind: 'retry' | 'refile' | 'ignore'; readonly run: number }
  | { readonly kind: 'adopt'; readonly run: number; readonly experiment: number }
  | { readonly kind: 'backfill'; readonly instrument: string; readonly existing: ExistingAnswer };

/** What becomes of an instrument's old files; `since` is a day, YYYY-MM-DD. */
export type ExistingAnswer = 'ingest' | 'skip' | { readonly since: string };

export interface DecisionAnswer {
  /** Whether it was carried out. */
  readonly done: boolean;
  /** What became of it, for people. */
  readonly text: string;
}

/** `POST /api/preview`. */
export type Preview =
  | {
      readonly ok: true;
      /** The configured one, or the one that was learnt. */
      readonly instrument: string;
      readonly draft: {
        readonly title: string;
        readonly date: string;
        /** Where the date was found, in words. */
        readonly dateFrom: string;
        readonly tags: readonly string[];
        readonly body: string;
        readonly comments: readonly string[];
      };
      /** YAML to copy: an instrument's part of the configuration. */
      readonly mapping: string;
      /** What it was unsure of. */
      readonly doubts: readonly string[];
      readonly tables: readonly PreviewTable[];
      readonly meta: readonly { readonly name: string; readonly text: string; readonly unit?: string }[];
    }
  | {
      readonly ok: false;
      /** For people, with line and column where there is one. */
      readonly reason: string;
      readonly mapping?: string;
      readonly doubts?: readonly string[];
    };

export interface PreviewTable {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly unit?: string }[];
  /** As written in the file; the first 50. */
  readonly rows: readonly (readonly string[])[];
  /** How many rows the file has. */
  readonly count: number;
}

/** Every answer that is not 2xx. */
export interface ApiError {
  readonly error: string;
}
