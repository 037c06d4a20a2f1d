import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Limiter } from '../../src/deliver/limiter.js';
import { type FailureClass, NotebookError } from '../../src/errors.js';
import { seeded } from '../support/random.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';

const away = () => new NotebookError('server', 'connection refused');

function setUp(perSecond = 100, random = () => 1) {
  const clock = simulatedClock();
  const limiter = new Limiter({ perSecond, clock, log: silentLog(), random });
  const sentAt: number[] = [];
  /** A request that takes this long, and fails if an error is given. */
  const send = (latencyMs = 0, failure?: () => Error): Promise<void> =>
    limiter
      .schedule(async () => {
        sentAt.push(clock.monotonic());
        await clock.sleep(latencyMs);
        const error = failure?.();
        if (error) throw error;
      })
      .catch(() => undefined);
  const many = (count: number, latencyMs?: number, failure?: () => Error): Promise<unknown> =>
    Promise.all(Array.from({ length: count }, () => send(latencyMs, failure)));
  return { clock, limiter, sentAt, send, many };
}

test('waits grow during an outage, up to five minutes', async () => {
  const { clock, sentAt, send } = setUp();
  for (let attempt = 0; attempt < 12; attempt++) await clock.run(send(0, away));
  const waits = sentAt.slice(1).map((at, index) => at - (sentAt[index] ?? 0));
  expect(waits.slice(0, 4)).toEqual([1000, 2000, 4000, 8000]);
  expect(waits.slice(-2)).toEqual([300_000, 300_000]);
});

test('waits are random, so that many daemons do not return together', async () => {
  const firstWait = async (seed: number): Promise<number> => {
    const { clock, sentAt, send } = setUp(100, seeded(seed).next);
    await clock.run(send(0, away).then(() => send()));
    return sentAt[1] ?? 0;
  };
  const waits = await Promise.all([1, 2, 3, 4, 5].map(firstWait));
  expect(new Set(waits).size).toBe(5);
  for (const wait of waits) expect(wait).toSatisfy((ms: number) => ms >= 500 && ms <= 1000);
});

test.each<FailureClass>(['server', 'auth'])('simultaneous failures (%s) count once', async (failure) => {
  const { clock, sentAt, send, many } = setUp();
  await clock.run(many(8, 300, () => new NotebookError(failure, 'no')));
  const lastAnswered = (sentAt[0] ?? 0) + 300;
  await clock.run(send());
  expect(sentAt[8]).toBe(lastAnswered + 1000);
});

test('a time-out of a request from before the outage does not trip the breaker again', async () => {
  const { clock, limiter, send } = setUp();
  const slow = send(30_000, away);
  await clock.run(send(10, away).then(() => send()));
  await clock.run(Promise.all([slow, clock.sleep(20_000).then(() => send())]));
  expect(limiter.state().kind).not.toBe('down');
});

test('after an outage the rate starts low and recovers within seconds', async () => {
  const { clock, sentAt, many, send } = setUp(100);
  await clock.run(many(200, 20));
  await clock.run(send(20, away));
  const before = sentAt.length;
  await clock.run(many(900, 20));
  const [back = 0, ...others] = sentAt.slice(before);
  const inSecond = (n: number): number =>
    others.filter((at) => at >= back + 1000 * n && at < back + 1000 * (n + 1)).length;
  expect(inSecond(0)).toBeLessThan(10);
  expect(inSecond(1)).toBeGreaterThanOrEqual(inSecond(0));
  expect(inSecond(2)).toBeGreaterThan(inSecond(1));
  expect(inSecond(7)).toBeGreaterThan(90);
});

test('an unstable notebook is probed ever more rarely until it stays available', async () => {
  const { clock, sentAt, send, many } = setUp();
  const waitAfter = async (): Promise<number> => {
    await clock.run(send(0, away));
    const failedAt = sentAt.at(-1) ?? 0;
    await clock.run(send());
    return (sentAt.at(-1) ?? 0) - failedAt;
  };
  expect(await waitAfter()).toBe(1000);
  expect(await waitAfter()).toBe(2000);
  expect(await waitAfter()).toBe(4000);
  await clock.run(many(1000));
  expect(await waitAfter()).toBe(1000);
});

test('the Retry-After of an outage is respected, and requests in flight cannot shorten it', async () => {
  const { clock, sentAt, send } = setUp();
  const maintenance = () =>
    new NotebookError('server', 'back soon', { status: 503, outcomeUnknown: true, retryAfterMs: 60_000 });
  await clock.run(Promise.all([send(10, maintenance), send(500), send(900, away)]));
  await clock.run(send());
  expect(sentAt.at(-1)).toBeGreaterThanOrEqual(60_000);
});

/** Requests at arbitrary times: accepted, refused with or without Retry-After, or without a response. */
const requests = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.nat(5000)),
    latencyMs: fc.nat(3000),
    failure: fc.option(
      fc.record({
        failure: fc.constantFrom<FailureClass>('rate', 'server'),
        retryAfterMs: fc.option(fc.nat(120_000), { nil: undefined }),
      }),
      { nil: undefined },
    ),
  }),
  { minLength: 1, maxLength: 60 },
);

test('no request is sent before the time that any response asked for, and all are sent eventually', async () => {
  await fc.assert(
    fc.asyncProperty(requests, fc.integer(), async (all, seed) => {
      const clock = simulatedClock();
      const limiter = new Limiter({ perSecond: 20, clock, log: silentLog(), random: seeded(seed).next });
      let heldUntil = 0;
      let left = 0;
      const request = async ({ latencyMs, failure }: (typeof all)[number]): Promise<void> => {
        expect(clock.monotonic()).toBeGreaterThanOrEqual(heldUntil);
        left += 1;
        await clock.sleep(latencyMs);
        if (!failure) return;
        const { retryAfterMs } = failure;
        heldUntil = Math.max(heldUntil, clock.monotonic() + (retryAfterMs ?? 0));
        const wish = retryAfterMs === undefined ? {} : { retryAfterMs };
        throw new NotebookError(failure.failure, 'not now', { ...wish });
      };
      const comeAndGo = async (): Promise<void> => {
        const sent: Promise<unknown>[] = [];
        for (const one of all) {
          await clock.sleep(one.afterMs);
          sent.push(
            limiter
              .schedule(() => request(one))
              .catch((error: unknown) => {
                if (!(error instanceof NotebookError)) throw error;
              }),
          );
        }
        await Promise.all(sent);
      };
      await clock.run(comeAndGo());
      expect(left).toBe(all.length);
    }),
    { numRuns: 100 },
  );
});

test.each([
  new NotebookError('request', 'bad date', { status: 422 }),
  new NotebookError('conflict', 'locked', { status: 403 }),
  new NotebookError('file', 'gone'),
  new NotebookError('server', 'being edited', { status: 400, scope: 'run' }),
])('a probe that fails for its own run ($message) closes the breaker', async (refused) => {
  const { clock, limiter, send } = setUp();
  await clock.run(send(0, away));
  expect(limiter.state()).toMatchObject({ kind: 'down' });
  await clock.run(send(0, () => refused));
  expect(limiter.state()).toMatchObject({ kind: 'slow start' });
});

test('a probe that fails locally proves nothing', async () => {
  const { clock, limiter, sentAt, send } = setUp();
  await clock.run(send(0, away));
  await clock.run(send(0, () => new TypeError('a bug of ours')));
  expect(limiter.state()).toMatchObject({ kind: 'down', reason: 'connection refused' });
  await clock.run(send());
  expect(sentAt).toEqual([0, 1000, 3000]);
});

test('during an outage at most one request is in flight, and none waits forever', async () => {
  const outages = fc.array(fc.record({ fromMs: fc.nat(60_000), forMs: fc.nat(20_000) }), { maxLength: 5 });
  const latency = fc.record({ leastMs: fc.nat(100), spreadMs: fc.nat(2000) });
  const workers = fc.integer({ min: 1, max: 16 });
  await fc.assert(
    fc.asyncProperty(outages, latency, workers, fc.integer(), async (times, { leastMs, spreadMs }, count, seed) => {
      const random = seeded(seed).next;
      const { clock, limiter } = setUp(20, random);
      const isAway = (at: number): boolean => times.some(({ fromMs, forMs }) => at >= fromMs && at < fromMs + forMs);
      let failures = 0;
      let down = false;
      let probes = 0;
      const request = async (): Promise<void> => {
        const [probe, seen] = [down, failures];
        if (probe) probes += 1;
        expect(probes).toBeLessThanOrEqual(1);
        await clock.sleep(leastMs + random() * spreadMs);
        if (probe) probes -= 1;
        if (isAway(clock.monotonic())) {
          // A request from before the last failure is part of it.
          if (!probe && !down && seen === failures) [down, failures] = [true, failures + 1];
          throw away();
        }
        if (probe) down = false;
      };
      const worker = async (): Promise<void> => {
        while (clock.monotonic() < 100_000) {
          const error: unknown = await limiter.schedule(request).catch((failure: unknown) => failure);
          if (error && !(error instanceof NotebookError)) throw error;
        }
      };
      await clock.run(Promise.all(Array.from({ length: count }, worker)));
    }),
    { numRuns: 50 },
  );
});
