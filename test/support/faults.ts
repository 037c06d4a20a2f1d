import type { Clock } from '../../src/clock.js';
import type { SeenRequest } from './request-log.js';

export type Wait = { readonly ms: number } | { readonly until: Promise<unknown> };

/** An answer that is not the notebook's own. With neither `html` nor `json`, an error of the usual form. */
export interface CannedAnswer {
  readonly answer: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly html?: string;
  readonly json?: unknown;
  /** Whether the notebook does what was asked all the same. */
  readonly carriedOut?: boolean;
}

/** What goes wrong with a request. */
export type Fault =
  /** The connection is cut, and the notebook never hears of it. */
  | 'cutBefore'
  /** Carried out; then the connection is cut instead of an answer. */
  | 'cutAfter'
  /** The connection is cut at once, and the request carried out only after a while. */
  | { readonly cutThen: Wait }
  /** It reaches the notebook, or its answer the client, only after a while. */
  | { readonly holdRequest: Wait }
  | { readonly holdAnswer: Wait }
  | CannedAnswer;

/** Which requests meet a fault. */
export interface Scope {
  readonly when?: (request: SeenRequest) => boolean;
  /** How many of them: 1 where nothing is said, all where `forMs` is. */
  readonly times?: number;
  /** Lets this many of them pass first. */
  readonly skip?: number;
  /** For how long from now. */
  readonly forMs?: number;
}

export interface PlannedFault {
  /** How many requests met it. */
  readonly met: number;
  lift(): void;
}

/** A server that is down as a whole: what its proxy, or what is left of it, answers. */
export type Outage = 'maintenance' | 'database' | 'php';

export type Faults = ReturnType<typeof createFaults>;

export function createFaults(clock: Clock) {
  const plans = new Set<Plan>();
  let limit: ((request: SeenRequest) => CannedAnswer | undefined) | undefined;
  let outage: Outage | undefined;

  return {
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
    /** A proxy's limit comes first: what it turns away meets nothing else. */
    next(request: SeenRequest): Fault | undefined {
      const refused = limit?.(request);
      if (refused) return refused;
      for (const plan of plans) {
        if (plan.takes(request)) return plan.fault;
      }
      return outage && answerOf(outage, request.method);
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
      // A file that the proxy serves: it can be read, and not written to.
      return method === 'GET'
        ? { answer: 200, html: page('Maintenance in progress') }
        : { answer: 405, html: page('405 Not Allowed') };
    case 'database':
      return { answer: 500, html: page('Error connecting to the database') };
    case 'php':
      return { answer: 502, html: page('502 Bad Gateway') };
  }
}

/** What a proxy in front lets through: so many requests in a window, which begins with the first of them. */
export interface RateLimit {
  readonly requests: number;
  readonly perMs: number;
  /** How a refusal says when to come again; it says nothing where this is left out. */
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

/** Rounded up in both forms: to come again when it says so is never too early. */
function format(form: 'seconds' | 'date', remainingMs: number, clock: Clock): string {
  if (form === 'seconds') return String(Math.ceil(remainingMs / 1_000));
  return new Date(Math.ceil((clock.now() + remainingMs) / 1_000) * 1_000).toUTCString();
}
