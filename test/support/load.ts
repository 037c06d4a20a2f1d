import { Limiter } from '../../src/deliver/limiter.js';
import { NotebookError } from '../../src/errors.js';
import { seeded } from './random.js';
import type { ServerLimit } from './server-limits.js';
import { silentLog } from './silent-log.js';
import { simulatedClock } from './simulated-clock.js';

export interface LoadOptions {
  readonly perSecond: number;
  readonly serverLimit: ServerLimit;
  readonly requests: number;
  readonly concurrency?: number;
  /** Round trip. */
  readonly latencyMs?: number;
  /** How much longer a request may take to reach the server. */
  readonly jitterMs?: number;
  /** The Retry-After of a refusal: the true wait rounded up to seconds, none, or a constant. */
  readonly retryAfter?: 'seconds' | 'never' | number;
  readonly status?: 429 | 503;
  readonly seed?: number;
}

export interface LoadResult {
  readonly ms: number;
  /** In the order of arrival at the server. */
  readonly servedAt: readonly number[];
  readonly refusedAt: readonly number[];
  readonly limiter: Limiter;
}

/** Busy workers, a network with latency, and a server with a limit. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const { perSecond, serverLimit, requests, concurrency = 4, latencyMs = 20, jitterMs = 0 } = options;
  const { retryAfter = 'never', status = 429, seed = 1 } = options;
  const clock = simulatedClock();
  const random = seeded(seed).next;
  const limiter = new Limiter({ perSecond, clock, log: silentLog(), random });
  const servedAt: number[] = [];
  const refusedAt: number[] = [];
  let left = requests;

  async function request(): Promise<void> {
    await clock.sleep(latencyMs / 2 + random() * jitterMs);
    const at = clock.monotonic();
    const { served, waitMs } = serverLimit(at);
    (served ? servedAt : refusedAt).push(at);
    await clock.sleep(latencyMs / 2);
    if (!served) throw refusal(waitMs);
  }

  function refusal(waitMs: number): NotebookError {
    const asked = retryAfter === 'seconds' ? Math.ceil(waitMs / 1000) * 1000 : retryAfter;
    return new NotebookError(status === 429 ? 'rate' : 'server', 'too many requests', {
      status,
      ...(asked === 'never' ? {} : { retryAfterMs: asked }),
    });
  }

  async function worker(): Promise<void> {
    while (left > 0) {
      left -= 1;
      await limiter.schedule(request).catch(() => undefined);
    }
  }

  await clock.run(Promise.all(Array.from({ length: concurrency }, worker)));
  return { ms: clock.monotonic(), servedAt, refusedAt, limiter };
}
