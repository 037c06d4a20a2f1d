import { z } from 'zod';
import type { Clock } from '../clock.js';
import { backfillSchema } from '../config/schema.js';
import type { Live } from '../live.js';
import type { Log } from '../log.js';
import { RUN_STATES, type RunState } from '../model.js';
import type { WaitingUploads } from '../uploads.js';

/** What the page and its server exchange as JSON, and what the server needs. Times are milliseconds since 1970. */

/** `GET /api/state`, and each `state` event of `GET /api/events`. */
export interface PageState {
  readonly at: number;
  readonly version: string;
  readonly live: Live;
  readonly overview: Overview;
  /** The quarantined and held runs, newest first; at most 100. */
  readonly attention: readonly Job[];
  /** How many there are in total. */
  readonly attentionCount: number;
}

export interface Overview {
  readonly instruments: readonly InstrumentSummary[];
  readonly servers: readonly {
    readonly url: string;
    readonly dialect?: string | undefined;
    /** Why nothing is sent until somebody runs `labfeed recover`. */
    readonly halted?: string | undefined;
  }[];
  /** Raw files of filed runs that wait to be attached. */
  readonly uploads?: readonly WaitingUploads[];
}

export interface InstrumentSummary {
  readonly name: string;
  readonly runs: Readonly<Record<RunState, number>>;
  /** The most recently added run. */
  readonly last?: Job | undefined;
  /** How many files of the backlog wait for a decision. */
  readonly asked: number;
  /** Runs per hour, counted since 1970; hours without runs are absent. */
  readonly hours: readonly { readonly hour: number; readonly runs: number }[];
  /** When the run that has waited longest for delivery was added. */
  readonly oldestAt?: number | undefined;
}

/** A run as it appears in lists. */
export interface Job {
  readonly id: number;
  readonly instrument: string;
  readonly state: RunState;
  readonly step: string;
  /** Empty if it was erased. */
  readonly path: string;
  readonly size: number;
  readonly modifiedMs: number;
  readonly sha256: string;
  readonly backlog: boolean;
  readonly title?: string | undefined;
  readonly server?: string | undefined;
  readonly experiment?: number | undefined;
  readonly failure?: string | undefined;
  /** Why it is parked, or why its last attempt failed. */
  readonly reason?: string | undefined;
  readonly attempts: number;
  readonly dueAt: number;
  readonly addedAt: number;
  readonly updatedAt: number;
}

/** `GET /api/jobs/:id`. `GET /api/jobs/:id/body` serves the body of the draft for a sandboxed frame. */
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
  /** What happened to it, oldest first, as sentences. */
  readonly history: readonly { readonly at: number; readonly words: string }[];
  readonly paths: readonly string[];
  readonly drift: readonly string[];
  /** What became of its files after it was filed; empty if they stay. */
  readonly sources: readonly {
    readonly path: string;
    readonly outcome?: string | undefined;
    readonly movedTo?: string | undefined;
    readonly reason?: string | undefined;
  }[];
  /** The versions of its file, newest last, in words; empty if it has never changed. */
  readonly versions: readonly string[];
  /** How far it has come, if its file keeps growing, in words. */
  readonly growing?: string | undefined;
}

const run = z.int().positive();

/** `POST /api/decide`. */
export const decisionSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(['retry', 'refile']), run }),
  z.strictObject({ kind: z.literal('ignore'), run, undo: z.literal(true).exactOptional() }),
  z.strictObject({ kind: z.literal('adopt'), run, experiment: z.int().positive() }),
  z.strictObject({ kind: z.literal('backfill'), instrument: z.string().min(1).max(200), existing: backfillSchema }),
]);

export type DecisionRequest = z.output<typeof decisionSchema>;

export interface DecisionAnswer {
  /** Whether the decision was carried out. */
  readonly done: boolean;
  /** The outcome, for people. */
  readonly text: string;
}

/** `POST /api/preview`. */
export type Preview =
  | {
      readonly ok: true;
      /** A configured instrument, or the one that `learn` suggests. */
      readonly instrument: string;
      readonly draft: {
        readonly title: string;
        readonly date: string;
        /** Where the date comes from, in words. */
        readonly dateFrom: string;
        readonly tags: readonly string[];
        readonly body: string;
        readonly comments: readonly string[];
      };
      /** What the file has and the notebook will not, in words. */
      readonly omits: readonly string[];
      /** As SVG, with its description; or why there is none. */
      readonly plot: { readonly svg: string; readonly description: string } | { readonly reason: string };
      /** YAML to copy: the instrument as it is written in a configuration. */
      readonly mapping: string;
      /** What `learn` was not sure about, and what people should check. */
      readonly doubts: readonly string[];
      readonly tables: readonly PreviewTable[];
      /** The tests of the mapping for this sample, by name, with what failed. */
      readonly tests: readonly { readonly file: string; readonly failures: readonly string[] }[];
      readonly meta: readonly { readonly name: string; readonly text: string; readonly unit?: string }[];
    }
  | {
      readonly ok: false;
      /** For people; with line and column if known. */
      readonly reason: string;
      /** Whether the mapping that is being edited has a mistake; `reason` then begins with `mapping:LINE:COLUMN:`. */
      readonly isMistake?: boolean;
      readonly mapping?: string;
      readonly doubts?: readonly string[];
    };

export interface PreviewTable {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly unit?: string }[];
  /** The first 50, as written in the file. */
  readonly rows: readonly (readonly string[])[];
  /** How many rows there are in total. */
  readonly count: number;
}

/** Every response that is not 2xx. */
export interface ApiError {
  readonly error: string;
}

/** What the daemon provides to the page's server. */
export interface StatusDeps {
  readonly clock: Clock;
  readonly log: Log;
  live(): Live;
  readonly journal: JournalView;
  /** Resolves when the decision has been carried out or refused. */
  decide(request: DecisionRequest): Promise<DecisionAnswer>;
  preview(sample: UploadedSample, signal: AbortSignal): Promise<Preview>;
  /** Saves an instrument that was set up on the page with this sample. */
  save(draft: InstrumentDraft, sample: UploadedSample): Promise<DecisionAnswer>;
  /** Undefined if the instrument has no file of its own. */
  instrumentFile(name: string): Promise<InstrumentFile | undefined>;
}

/** `POST /api/instrument`. */
export interface InstrumentDraft {
  /** YAML with one instrument. */
  readonly text: string;
  /** The hash of the file that was opened; undefined for a new one. */
  readonly replaces: string | undefined;
}

/** `GET /api/instrument?name=`. */
export interface InstrumentFile {
  readonly text: string;
  readonly hash: string;
}

/** Rejects if the journal cannot be read. */
export interface JournalView {
  overview(): Promise<Overview>;
  /** Newest first. */
  jobs(query: Omit<JobsQuery, 'search'>): Promise<readonly Job[]>;
  search(query: JobsQuery & { readonly search: string }): Promise<JobsAnswer>;
  job(id: number): Promise<JobDetail | undefined>;
  /** Its size on disk. */
  bytes(): Promise<number>;
  /** Why the journal cannot be written, for people; undefined if it can. */
  problem(): Promise<string | undefined>;
}

export const idSchema = z.coerce.number().pipe(z.int().positive());

const MAX_JOBS = 500;

/** `GET /api/jobs`. `before`: only runs with a smaller id, for the next page. */
export const jobsQuerySchema = z.object({
  state: z.enum(RUN_STATES).optional(),
  instrument: z.string().max(200).optional(),
  before: idSchema.optional(),
  limit: idSchema.pipe(z.number().max(MAX_JOBS)).default(50),
  /** Words, all of which the run has in its file name, title, instrument, tags, fields or body. */
  search: z.string().trim().max(200).optional(),
});

export type JobsQuery = z.output<typeof jobsQuerySchema>;

export interface JobsAnswer {
  readonly jobs: readonly Job[];
  /** The oldest run that was searched, if there was not enough time for all of them. */
  readonly searchedTo?: number | undefined;
  /** Files that match and are not those of the runs. */
  readonly files?: readonly FileAnswer[];
  /** Whether there are more such files, or may be. */
  readonly hasMoreFiles?: boolean;
}

export interface FileAnswer {
  readonly instrument: string;
  readonly path: string;
  /** `asked`: part of a backlog that waits for a decision. */
  readonly verdict: 'taken' | 'skipped' | 'asked';
  /** The run that has its content. */
  readonly run?: Job | undefined;
  /** Whether it belongs to that run. Otherwise, it is a copy. */
  readonly isOwn: boolean;
}

/** A file that somebody dropped on the page. It exists only in memory. */
export interface UploadedSample {
  readonly name: string;
  readonly content: Uint8Array;
  readonly modifiedMs: number;
  /** The instrument whose mapping to use; by default the first one whose globs match the name. */
  readonly instrument?: string | undefined;
  /** Learn a mapping from the file instead of using a configured one. */
  readonly learn?: boolean;
  /** YAML with the instrument to use, as it was edited on the page. */
  readonly mapping?: string | undefined;
}

/** Where the page listens, and for whom. */
export interface StatusAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Names by which the page is opened, in addition to its address and localhost. */
  readonly names: readonly string[];
  /** Without a token, everybody who can reach the address can read the page. */
  readonly token?: string | undefined;
  /** A token that allows to read, but not to decide. */
  readonly readToken?: string | undefined;
  /** Whether instruments can be changed on the page even without a token. */
  readonly edit?: boolean | undefined;
  /** Signs login links. Without a token, decisions need such a login. */
  readonly login?: string | undefined;
}
