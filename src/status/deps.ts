import type { Clock } from '../clock.js';
import type { Live } from '../live.js';
import type { Log } from '../log.js';
import type { RunState } from '../model.js';
import type { DecisionAnswer, DecisionRequest, Job, JobDetail, Overview, Preview } from './api.js';

/** What the page shows and does, handed in by the daemon. */
export interface StatusDeps {
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  live(): Live;
  /** This and the next two reject if the journal cannot be read. */
  overview(): Promise<Overview>;
  /** The newest first. */
  jobs(query: JobsQuery): Promise<readonly Job[]>;
  job(id: number): Promise<JobDetail | undefined>;
  /** What the journal takes on the disk. */
  journalBytes(): Promise<number>;
  /** Why the journal could not be written, for people; undefined where it can be. */
  journalTrouble(): Promise<string | undefined>;
  /** Resolves when it was carried out, or refused. */
  decide(request: DecisionRequest): Promise<DecisionAnswer>;
  preview(sample: UploadedSample, signal: AbortSignal): Promise<Preview>;
}

export interface JobsQuery {
  readonly state?: RunState | undefined;
  readonly instrument?: string | undefined;
  readonly limit: number;
  /** Only runs with a smaller number: the next page. */
  readonly before?: number | undefined;
}

/** A file that somebody dropped on the page. */
export interface UploadedSample {
  readonly name: string;
  readonly content: Uint8Array;
  readonly modifiedMs: number;
  readonly instrument?: string | undefined;
  /** Not by an instrument, but as it would be learnt. */
  readonly learn?: boolean;
}

/** Where the page listens, and for whom. */
export interface Place {
  readonly host: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** Names under which it is opened, beside its address and localhost. */
  readonly names: readonly string[];
  /** Without it, whoever can reach the address is let in. */
  readonly token?: string | undefined;
}
