import type { Clock } from '../../src/clock.js';
import type { SeenRequest } from './request-log.js';

export type Wait = { readonly ms: number } | { readonly until: Promise<unknown> };

/** An answer in place of the notebook's own. Without `html` and `json`, an error in the usual form. */
export interface CannedAnswer {
  readonly answer: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly html?: string;
  readonly json?: unknown;
  /** Whether the notebook carries out the request first. */
  readonly carriedOut?: boolean;
}

/** What goes wrong with a request. */
export type Fault =
  /** The connection is cut; the notebook never sees the request. */
  | 'cutBefore'
  /** The request is carried out; the connection is cut instead of an answer. */
  | 'cutAfter'
  /** The connection is cut at once; the request is carried out later. */
  | { readonly cutThen: Wait }
  /** The request, or its answer, is delayed. */
  | { readonly holdRequest: Wait }
  | { readonly holdAnswer: Wait }
  | CannedAnswer;

/** Which requests a fault applies to. */
export interface Scope {
  readonly when?: (request: SeenRequest) => boolean;
  /** How many of them. Default: 1, or all if `forMs` is set. */
  readonly times?: number;
  /** Lets this many pass first. */
  readonly skip?: number;
  /** For how long, from now. */
  readonly forMs?: number;
}

export interface PlannedFault {
  /** How many requests it was applied to. */
  readonly met: number;
  lift(): void;
}

/** The whole server is down: its proxy answers, or PHP without a database. */
export type Outage = 'maintenance' | 'database' | 'php';

export type Decide = (request: SeenRequest) => Fault | 'pass' | Promise<Fault | 'pass'>;

export type Faults = ReturnType<typeof createFaults>;

export function createFaults(clock: Clock) {
  const plans = new Set<Plan>();
  let limit: ((request: SeenRequest) => CannedAnswer | undefined) | undefined;
  let outage: Outage | undefined;

  return {
    decide: (() => 'pass') as Decide,
    plan(fault: Fault, scope: Scope = {}): PlannedFault {
      const plan = createPlan(fault, scope, clock);
      plans.add(plan);
      return {
        get met() {
          return plan.met();
        },
        lift: () => void plans.delete(plan),
      };
    },
    limitRate(rate: RateLimit | undefined): void {
      limit = rate && createRateLimit(rate, clock);
    },
    setOutage(kind: Outage | undefined): void {
      outage = kind;
    },
    /** The rate limit comes first, as in a proxy: a request that it rejects uses up no fault. */
    async next(request: SeenRequest): Promise<Fault | undefined> {
      const rejected = limit?.(request);
      if (rejected) return rejected;
      for (const plan of plans) {
        if (plan.takes(request)) return plan.fault;
      }
      if (outage) return answerOf(outage, request.method);
      const decided = await this.decide(request);
      return decided === 'pass' ? undefined : decided;
    },
  };
}

interface Plan {
  readonly fault: Fault;
  takes(request: SeenRequest): boolean;
  met(): number;
}

function createPlan(fault: Fault, scope: Scope, clock: Clock): Plan {
  const { when = () => true, forMs, times = forMs === undefined ? 1 : Infinity, skip = 0 } = scope;
  const endsAt = clock.monotonic() + (forMs ?? Infinity);
  let matched = 0;
  let met = 0;
  return {
    fault,
    takes(request) {
      if (met >= times || clock.monotonic() >= endsAt || !when(request)) return false;
      matched += 1;
      if (matched <= skip) return false;
      met += 1;
      return true;
    },
    met: () => met,
  };
}

const page = (heading: string) =>
  `<!doctype html>\n<html><head><title>${heading}</title></head><body><h1>${heading}</h1></body></html>\n`;

function answerOf(outage: Outage, method: string): CannedAnswer {
  switch (outage) {
    case 'maintenance':
      // The proxy serves a static file, which it does for GET only.
      return method === 'GET'
        ? { answer: 200, html: page('Maintenance in progress') }
        : { answer: 405, html: page('405 Not Allowed') };
    case 'database':
      return { answer: 500, html: page('Error connecting to the database') };
    case 'php':
      return { answer: 502, html: page('502 Bad Gateway') };
  }
}

/** A proxy's limit: this many requests per window. A window begins with its first request. */
export interface RateLimit {
  readonly requests: number;
  readonly perMs: number;
  /** The form of Retry-After. No header by default. */
  readonly retryAfter?: 'seconds' | 'date';
  readonly when?: (request: SeenRequest) => boolean;
}

function createRateLimit({ requests, perMs, retryAfter, when = () => true }: RateLimit, clock: Clock) {
  let windowEnds = -Infinity;
  let passed = 0;

  return (request: SeenRequest): CannedAnswer | undefined => {
    if (!when(request)) return undefined;
    const now = clock.monotonic();
    if (now >= windowEnds) {
      windowEnds = now + perMs;
      passed = 0;
    }
    passed += 1;
    if (passed <= requests) return undefined;
    return {
      answer: 429,
      html: '<html><head><title>429 Too Many Requests</title></head><body>429 Too Many Requests</body></html>\n',
      headers: retryAfter ? { 'retry-after': format(retryAfter, windowEnds - now, clock) } : {},
    };
  };
}

/** Rounded up in both forms, so that a retry at that time is never too early. */
function format(form: 'seconds' | 'date', remainingMs: number, clock: Clock): string {
  if (form === 'seconds') return String(Math.ceil(remainingMs / 1_000));
  return new Date(Math.ceil((clock.now() + remainingMs) / 1_000) * 1_000).toUTCString();
}
