import type { Clock } from '../clock.js';
import type { CannedAnswer } from './faults.js';
import type { SeenRequest } from './requests.js';

/** What a proxy in front lets through: so many requests in a window, which begins with the first of them. */
export interface RateLimit {
  readonly requests: number;
  readonly perMs: number;
  /** How a refusal says when to come again; it says nothing where this is left out. */
  readonly retryAfter?: 'seconds' | 'date';
  readonly when?: (request: SeenRequest) => boolean;
}

export function createRateLimit({ requests, perMs, retryAfter, when = () => true }: RateLimit, clock: Clock) {
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
