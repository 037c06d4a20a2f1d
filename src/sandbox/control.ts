import type { Dialect } from './dialect.js';
import type { Upload } from './elabftw/upload-store.js';
import { type Entry, type StateName, stateName } from './entries.js';
import type { Fault, Faults, Outage, PlannedFault, Scope } from './faults.js';
import { type Hand, handOf } from './hands.js';
import { type Who, whoIs } from './people.js';
import type { RateLimit } from './rate-limit.js';
import type { RequestLog, SeenRequest } from './requests.js';
import type { Comment, Store } from './store.js';

/** An experiment with all that belongs to it. */
export interface HeldExperiment extends Omit<Entry, 'state' | 'private'> {
  readonly state: StateName;
  readonly locked: boolean;
  readonly private: boolean;
  readonly owner: Who;
  readonly comments: readonly Comment[];
  readonly uploads: readonly Upload[];
}

/**
 * What the network, the server's keeper and other people do to a notebook, and a view of all it holds:
 * for tests in the same process, and not to be reached over HTTP.
 */
export interface Control {
  /** Lets requests fail from now on. Of several that fit, the one planned first is met. */
  plan(fault: Fault, scope?: Scope): PlannedFault;
  /** 429 beyond this rate; undefined lifts the limit. */
  limitRate(limit: RateLimit | undefined): void;
  /** Takes the whole server down; undefined brings it back. */
  setOutage(outage: Outage | undefined): void;
  /** Somebody at the notebook's own pages; `owner` is the user whose keys they are. */
  as(who: Who): Hand;
  /** Everything, deleted ones too, by id. */
  experiments(): readonly HeldExperiment[];
  /** The requests to the API so far, by arrival. The oldest are forgotten beyond 64 MB. */
  requests(): readonly SeenRequest[];
  forgetRequests(): void;
  /** Resolves when every request so far was carried out, or never will be: also those whose connection was cut. */
  settled(): Promise<void>;
}

export interface ControlDeps {
  readonly dialect: Dialect;
  readonly faults: Faults;
  readonly requests: RequestLog;
  /** Throws while the notebook is not running. */
  store(): Store;
}

export function createControl({ dialect, faults, requests, store }: ControlDeps): Control {
  return {
    plan: faults.plan,
    limitRate: faults.limitRate,
    setOutage: faults.setOutage,
    as: (who) => handOf(who, store, dialect),
    experiments: () =>
      store()
        .entries.all()
        .map((entry) => held(entry, store())),
    requests: requests.list,
    forgetRequests: requests.forget,
    settled: requests.settled,
  };
}

function held(entry: Entry, { comments, uploads }: Store): HeldExperiment {
  return {
    ...entry,
    state: stateName(entry.state),
    locked: entry.lockedby !== null,
    private: entry.private === 1,
    owner: whoIs(entry.userid),
    comments: comments.list(entry.id),
    uploads: uploads.list(entry.id),
  };
}
