import { createGate, type Gate } from '../../src/deliver/gate.js';
import { NotebookError } from '../../src/errors.js';
import type { Limiter } from './limiters.js';
import { silentLog } from './silent-log.js';
import { type SimulatedClock, simulatedClock } from './simulated-clock.js';

export interface LoadOptions {
  readonly perSecond: number;
  readonly limiter: Limiter;
  readonly requests: number;
  readonly concurrency?: number;
  /** There and back. */
  readonly latencyMs?: number;
  /** How much longer than that the way there may take. */
  readonly jitterMs?: number;
  /** What the server says with a refusal. */
  readonly retryAfter?: 'seconds' | 'never' | number;
  readonly status?: number;
  readonly seed?: number;
  readonly log?: ReturnType<typeof silentLog>;
}

export interface LoadResult {
  readonly served: number;
  readonly refused: number;
  readonly ms: number;
  readonly sentAt: readonly number[];
  readonly arrivedAt: readonly number[];
  readonly servedAt: readonly number[];
  readonly refusedAt: readonly number[];
  readonly gate: Gate;
  readonly clock: SimulatedClock;
}

/** Workers that always have something to send, over a network that takes its time, to a server with a limit. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const { perSecond, limiter, requests, concurrency = 4, latencyMs = 20, jitterMs = 0 } = options;
  const { retryAfter = 'never', status = 429, seed = 1 } = options;
  const clock = simulatedClock();
  const random = randomFrom(seed);
  const gate = createGate({ perSecond, clock, log: options.log ?? silentLog(), random });
  const sentAt: number[] = [];
  const arrivedAt: number[] = [];
  const servedAt: number[] = [];
  let left = requests;
  const refusedAt: number[] = [];

  async function request(): Promise<void> {
    sentAt.push(clock.monotonic());
    await clock.sleep(latencyMs / 2 + random() * jitterMs);
    const at = clock.monotonic();
    arrivedAt.push(at);
    const { served, waitMs } = limiter(at);
    await clock.sleep(latencyMs / 2);
    if (served) {
      servedAt.push(at);
      return;
    }
    refusedAt.push(at);
    const seconds = retryAfter === 'seconds' ? Math.ceil(waitMs / 1000) * 1000 : retryAfter;
    throw new NotebookError(status === 429 ? 'rate' : 'server', 'too many', {
      status,
      lost: false,
      ...(seconds === 'never' ? {} : { retryAfterMs: seconds }),
    });
  }

  async function worker(): Promise<void> {
    while (left > 0) {
      left -= 1;
      await gate.admit(request).catch(() => undefined);
    }
  }

  await clock.run(Promise.all(Array.from({ length: concurrency }, worker)));
  const counts = { served: servedAt.length, refused: refusedAt.length };
  return { ...counts, ms: clock.monotonic(), sentAt, arrivedAt, servedAt, refusedAt, gate, clock };
}

/** Chance that comes out alike every time (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
