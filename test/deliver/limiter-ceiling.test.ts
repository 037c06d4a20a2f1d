import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Clock } from '../../src/clock.js';
import { Limiter } from '../../src/deliver/limiter.js';
import { NotebookError } from '../../src/errors.js';
import { seeded } from '../support/random.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';

/** The maximum number in any second. */
function mostInASecond(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  let first = 0;
  let most = 0;
  for (const [last, at] of sorted.entries()) {
    while (at - (sorted[first] ?? at) >= 1000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

const answers = {
  taken: () => undefined,
  refused: () => new NotebookError('request', 'bad date', { status: 422 }),
  limited: () => new NotebookError('rate', 'too many', { status: 429 }),
  held: () => new NotebookError('rate', 'too many', { status: 429, retryAfterMs: 3000 }),
  away: () => new NotebookError('server', 'connection refused'),
  broken: () => new TypeError('a bug of ours'),
};

/** Requests at arbitrary times with arbitrary latencies and outcomes. */
const schedule = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3000 })),
    answer: fc.oneof(
      { weight: 20, arbitrary: fc.constant('taken' as const) },
      { weight: 1, arbitrary: fc.constantFrom('refused' as const, 'limited', 'held', 'away', 'broken') },
    ),
    latencyMs: fc.integer({ min: 0, max: 800 }),
    jitterMs: fc.integer({ min: 0, max: 59 }),
  }),
  { minLength: 1, maxLength: 200 },
);

test('the ceiling is never exceeded in any second, here or at the server, and every request is sent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 60 }), schedule, fc.integer(), async (perSecond, requests, seed) => {
      const clock = simulatedClock();
      const limiter = new Limiter({ perSecond, clock, log: silentLog(), random: seeded(seed).next });
      const sentAt: number[] = [];
      const arrivedAt: number[] = [];
      const settled: Promise<unknown>[] = [];
      const comeAndGo = async (): Promise<void> => {
        for (const { afterMs, answer, latencyMs, jitterMs } of requests) {
          await clock.sleep(afterMs);
          const request = limiter.schedule(async () => {
            sentAt.push(clock.monotonic());
            arrivedAt.push(clock.monotonic() + 100 + jitterMs);
            await clock.sleep(latencyMs);
            const failure = answers[answer]();
            if (failure) throw failure;
          });
          settled.push(request.catch(() => undefined));
        }
        await Promise.all(settled);
      };
      await clock.run(comeAndGo());
      expect(sentAt).toHaveLength(requests.length);
      expect(mostInASecond(sentAt)).toBeLessThanOrEqual(perSecond);
      expect(mostInASecond(arrivedAt)).toBeLessThanOrEqual(perSecond);
    }),
    { numRuns: 100 },
  );
});

/** Timers with a resolution of a millisecond that fire late. */
function coarse(clock: Clock, seed: number): Clock {
  const random = seeded(seed).next;
  return { ...clock, sleep: (ms, signal) => clock.sleep(Math.max(1, Math.trunc(ms)) + random(), signal) };
}

test.each([
  { perSecond: 0.1, requests: 100 },
  { perSecond: 1, requests: 100 },
  { perSecond: 7, requests: 500 },
  { perSecond: 20, requests: 200 },
  { perSecond: 2000, requests: 10_000 },
  { perSecond: 30_000, requests: 100_000 },
])('a ceiling of $perSecond per second is used to 90 % with coarse timers', async ({ perSecond, requests }) => {
  const simulated = simulatedClock();
  const limiter = new Limiter({ perSecond, clock: coarse(simulated, 1), log: silentLog() });
  const sentAt: number[] = [];
  let left = requests;
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      await limiter.schedule(async () => {
        sentAt.push(simulated.monotonic());
      });
    }
  };
  await simulated.run(Promise.all(Array.from({ length: 16 }, worker)));
  expect(mostInASecond(sentAt)).toBeLessThanOrEqual(Math.max(1, perSecond));
  expect((sentAt.length * 1000) / simulated.monotonic() / perSecond).toBeGreaterThan(0.9);
});

test('a pause saves up tokens for at most a tenth of a second', async () => {
  const clock = simulatedClock();
  const limiter = new Limiter({ perSecond: 50, clock, log: silentLog() });
  const sentAt: number[] = [];
  const send = () => limiter.schedule(async () => void sentAt.push(clock.monotonic()));
  await clock.run(send().then(() => clock.sleep(60_000)));
  await clock.run(Promise.all(Array.from({ length: 20 }, send)));
  const [lull = 0] = sentAt.slice(1);
  expect(sentAt.filter((at) => at === lull).length).toBeLessThanOrEqual(5);
});
