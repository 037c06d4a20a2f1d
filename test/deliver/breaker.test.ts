import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Limiter } from '../../src/deliver/limiter.js';
import { type FailureClass, NotebookError } from '../../src/errors.js';
import { seeded } from '../support/random.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';

const away = () => new NotebookError('server', 'connection refused');
const unauthorized = () => new NotebookError('auth', 'unauthorized', { status: 401 });

function setUp(perSecond = 100, random = () => 1) {
  const clock = simulatedClock();
  const sentAt: number[] = [];
  const probedAt: number[] = [];
  const server = {
    /** How a probe fails; it succeeds by default. */
    probe: undefined as (() => Error) | undefined,
    isKeyReplaced: false,
    available: 0,
  };
  const limiter = new Limiter({
    perSecond,
    clock,
    log: silentLog(),
    random,
    probe: {
      async send() {
        probedAt.push(clock.monotonic());
        const error = server.probe?.();
        if (error) throw error;
      },
      isKeyReplaced: () => server.isKeyReplaced,
      onAvailable: () => {
        server.available += 1;
      },
    },
  });
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
  /** The server goes down and stays down: three requests fail, and so does every probe. */
  async function goDown(failure = away): Promise<void> {
    server.probe = failure;
    await clock.run(many(3, 0, failure));
    // The ceiling applies to probes too.
    for (let n = 0; n < 30 && limiter.state().kind !== 'down'; n++) await clock.run(clock.sleep(50));
    expect(limiter.state()).toMatchObject({ kind: 'down' });
  }
  return { clock, limiter, server, sentAt, probedAt, send, many, goDown };
}

test('a single failure neither stops nor slows other requests, and sends no probe', async () => {
  const { clock, limiter, sentAt, probedAt, send } = setUp(1000);
  await clock.run(send(0, away));
  await clock.run(send(0, away));
  await clock.run(send());
  expect(sentAt).toEqual([0, 0, 0]);
  expect(probedAt).toEqual([]);
  expect(limiter.state()).toMatchObject({ kind: 'open' });
});

test('with a tenth of all requests failing, the full rate is used', async () => {
  const { clock, limiter, sentAt, many, send } = setUp(50);
  const random = seeded(7);
  const failing = () => (random.chance(0.15) ? send(20, away) : send(20));
  await clock.run(Promise.all(Array.from({ length: 1000 }, failing)));
  expect(sentAt.at(-1)).toBeLessThan(1.2 * (1000 / 50) * 1000);
  await clock.run(many(1));
  expect(limiter.state()).toMatchObject({ kind: 'open' });
});

test('three failures in a row are followed by a probe, and if that is answered the breaker stays closed', async () => {
  const { clock, limiter, sentAt, probedAt, send } = setUp();
  for (let n = 0; n < 12; n++) await clock.run(send(10, away));
  expect(probedAt).toHaveLength(4);
  expect(limiter.state()).toMatchObject({ kind: 'open' });
  expect(sentAt.at(-1)).toBeLessThan(200);
});

test('a success in between, and the failures do not add up', async () => {
  const { clock, probedAt, send } = setUp();
  for (let n = 0; n < 10; n++) {
    await clock.run(send(0, away));
    await clock.run(send());
    await clock.run(send());
  }
  expect(probedAt).toEqual([]);
});

test('if most of the last 20 requests failed, the server is probed and the breaker opens', async () => {
  const { clock, limiter, server, probedAt, send } = setUp();
  server.probe = away;
  for (let n = 0; n < 8 && probedAt.length === 0; n++) {
    for (const failure of [away, away, undefined]) await clock.run(send(0, failure));
  }
  await clock.run(clock.sleep(500));
  expect(probedAt).toHaveLength(2);
  expect(limiter.state()).toMatchObject({ kind: 'down' });
});

test('while the breaker is open only probes are sent, at most 30 s apart', async () => {
  const { clock, server, sentAt, probedAt, goDown, send } = setUp();
  await goDown();
  const waiting = send();
  await clock.run(clock.sleep(300_000));
  const waits = probedAt.slice(2).map((at, index) => at - (probedAt[index + 1] ?? 0));
  expect(waits.slice(0, 5)).toEqual([1000, 2000, 4000, 8000, 16_000]);
  expect(waits.slice(5)).toEqual(waits.slice(5).map(() => 30_000));
  expect(sentAt).toHaveLength(3);
  server.probe = undefined;
  await clock.run(waiting);
  expect(sentAt).toHaveLength(4);
  expect(server.available).toBe(1);
});

test('waits are random, so that many daemons do not return together', async () => {
  const firstWait = async (seed: number): Promise<number> => {
    const { clock, probedAt, goDown } = setUp(100, seeded(seed).next);
    await goDown();
    await clock.run(clock.sleep(1100));
    return (probedAt[2] ?? 0) - (probedAt[1] ?? 0);
  };
  const waits = await Promise.all([1, 2, 3, 4, 5].map(firstWait));
  expect(new Set(waits).size).toBe(5);
  for (const wait of waits) expect(wait).toSatisfy((ms: number) => ms >= 500 && ms <= 1000);
});

test('a refused key stops everything at once, and a probe follows at once and then at most every 30 s', async () => {
  const { clock, limiter, server, sentAt, probedAt, send, many } = setUp();
  server.probe = unauthorized;
  await clock.run(send(0, unauthorized));
  const waiting = many(20);
  await clock.run(clock.sleep(120_000));
  expect(sentAt).toHaveLength(1);
  expect(probedAt[0]).toBe(0);
  expect(Math.max(...probedAt.slice(1).map((at, index) => at - (probedAt[index] ?? 0)))).toBe(30_000);
  expect(limiter.state()).toMatchObject({ kind: 'down', failure: 'auth' });
  server.probe = undefined;
  await clock.run(waiting);
  expect(sentAt).toHaveLength(21);
});

test('a key that was replaced is tried within a second', async () => {
  const { clock, server, sentAt, send } = setUp();
  server.probe = unauthorized;
  await clock.run(send(0, unauthorized));
  const waiting = send();
  await clock.run(clock.sleep(100_000));
  server.probe = undefined;
  server.isKeyReplaced = true;
  const replacedAt = clock.monotonic();
  await clock.run(waiting);
  expect((sentAt.at(-1) ?? 0) - replacedAt).toBeLessThanOrEqual(2000);
});

test('a key that is refused only for one request does not open the breaker', async () => {
  const { clock, limiter, server, sentAt, probedAt, send } = setUp();
  await clock.run(send(0, unauthorized));
  await clock.run(send());
  expect([sentAt, probedAt]).toEqual([[0, 0], [0]]);
  expect(limiter.state()).toMatchObject({ kind: 'open' });
  expect(server.available).toBe(0);
});

test('a time-out of a request from before the outage does not trip the breaker again', async () => {
  const { clock, limiter, server, many, send, goDown } = setUp();
  const slow = many(10, 30_000, away);
  await goDown();
  server.probe = undefined;
  await clock.run(send());
  server.probe = away;
  await clock.run(slow);
  expect(limiter.state().kind).not.toBe('down');
});

test('after an outage the rate starts low and recovers within seconds', async () => {
  const { clock, server, sentAt, many, goDown } = setUp(100);
  await clock.run(many(200, 20));
  await goDown();
  server.probe = undefined;
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

test('an unstable notebook is probed more rarely until it stays available', async () => {
  const { clock, server, probedAt, goDown, send, many } = setUp();
  const waitAfter = async (): Promise<number> => {
    await goDown();
    const openedAt = probedAt.at(-1) ?? 0;
    server.probe = undefined;
    await clock.run(send());
    return (probedAt.at(-1) ?? 0) - openedAt;
  };
  expect(await waitAfter()).toBe(1000);
  expect(await waitAfter()).toBe(2000);
  expect(await waitAfter()).toBe(4000);
  await clock.run(many(1000));
  expect(await waitAfter()).toBe(1000);
});

test('the Retry-After of an outage is respected, by probes too', async () => {
  const { clock, server, sentAt, probedAt, send } = setUp();
  const maintenance = () =>
    new NotebookError('server', 'back soon', { status: 503, outcomeUnknown: true, retryAfterMs: 60_000 });
  server.probe = maintenance;
  await clock.run(Promise.all([send(10, maintenance), send(500), send(900, away)]));
  const waiting = send();
  await clock.run(clock.sleep(70_000));
  server.probe = undefined;
  await clock.run(waiting);
  expect(probedAt[0]).toBeGreaterThanOrEqual(60_000);
  expect((probedAt[1] ?? 0) - (probedAt[0] ?? 0)).toBeGreaterThanOrEqual(60_000);
  expect(sentAt.at(-1)).toBeGreaterThanOrEqual(120_000);
});

test('a 503 with Retry-After is a limit at first, and an outage if a probe gets it too', async () => {
  const { clock, limiter, server, send } = setUp();
  const busy = () => new NotebookError('server', 'too many', { status: 503, retryAfterMs: 1000 });
  await clock.run(send(0, busy));
  expect(limiter.state()).toMatchObject({ kind: 'held' });
  await clock.run(send());
  expect(limiter.state()).toMatchObject({ kind: 'slowed' });
  server.probe = busy;
  await clock.run(send(0, busy));
  await clock.run(clock.sleep(5000));
  expect(limiter.state()).toMatchObject({ kind: 'down' });
});

/** Requests at arbitrary times: accepted, refused with or without Retry-After, or without a response. */
const requests = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.nat(5000)),
    latencyMs: fc.nat(3000),
    failure: fc.option(
      fc.record({
        failure: fc.constantFrom<FailureClass>('rate', 'server', 'auth'),
        retryAfterMs: fc.option(fc.nat(120_000), { nil: undefined }),
        status: fc.constantFrom(502, 503),
      }),
      { nil: undefined },
    ),
  }),
  { minLength: 1, maxLength: 60 },
);

test('no request is sent before the time that any response asked for, and all are sent eventually', async () => {
  await fc.assert(
    fc.asyncProperty(requests, fc.integer(), fc.boolean(), async (all, seed, hasProbe) => {
      const clock = simulatedClock();
      const random = seeded(seed);
      let heldUntil = 0;
      let left = 0;
      const inTime = () => expect(clock.monotonic()).toBeGreaterThanOrEqual(heldUntil);
      const probe = {
        async send() {
          inTime();
          await clock.sleep(random.below(500));
          if (random.chance(0.5)) throw away();
        },
      };
      const limiter = new Limiter({
        perSecond: 20,
        clock,
        log: silentLog(),
        random: random.next,
        probe: hasProbe ? probe : undefined,
      });
      const request = async ({ latencyMs, failure }: (typeof all)[number]): Promise<void> => {
        inTime();
        left += 1;
        await clock.sleep(latencyMs);
        if (!failure) return;
        const { retryAfterMs, status } = failure;
        heldUntil = Math.max(heldUntil, clock.monotonic() + (retryAfterMs ?? 0));
        const wish = retryAfterMs === undefined ? {} : { retryAfterMs };
        throw new NotebookError(failure.failure, 'not now', { ...wish, status });
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

test('a failed request of a run counts as an answer if it concerns only that run', async () => {
  const { clock, probedAt, send } = setUp();
  const refusals = [
    new NotebookError('request', 'bad date', { status: 422 }),
    new NotebookError('conflict', 'locked', { status: 403 }),
    new NotebookError('server', 'being edited', { status: 400, scope: 'run' }),
  ];
  for (const refused of refusals) {
    await clock.run(send(0, away));
    await clock.run(send(0, away));
    await clock.run(send(0, () => refused));
  }
  expect(probedAt).toEqual([]);
});

test('a probe that fails on our side proves nothing', async () => {
  const { clock, limiter, server, goDown, send } = setUp();
  await goDown();
  server.probe = () => new TypeError('a bug of ours');
  await clock.run(clock.sleep(1500));
  expect(limiter.state()).toMatchObject({ kind: 'down', reason: 'connection refused' });
  server.probe = undefined;
  await clock.run(send());
  expect(limiter.state().kind).not.toBe('down');
});

test('stopping ends the probing', async () => {
  const { clock, limiter, probedAt, goDown } = setUp();
  await goDown();
  limiter.stop();
  await clock.run(clock.sleep(100_000));
  expect(probedAt).toHaveLength(2);
});

test('during an outage only the probe is in flight, and no request waits forever', async () => {
  const outages = fc.array(fc.record({ fromMs: fc.nat(60_000), forMs: fc.nat(20_000) }), { maxLength: 5 });
  const latency = fc.record({ leastMs: fc.nat(100), spreadMs: fc.nat(2000) });
  const workers = fc.integer({ min: 1, max: 16 });
  await fc.assert(
    fc.asyncProperty(outages, latency, workers, fc.integer(), async (times, { leastMs, spreadMs }, count, seed) => {
      const random = seeded(seed).next;
      const clock = simulatedClock();
      const isAway = (): boolean =>
        times.some(({ fromMs, forMs }) => clock.monotonic() >= fromMs && clock.monotonic() < fromMs + forMs);
      let probes = 0;
      const exchange = async (): Promise<void> => {
        await clock.sleep(leastMs + random() * spreadMs);
        if (isAway()) throw away();
      };
      const probe = {
        async send() {
          probes += 1;
          // Not with `expect`, which takes longer than all the rest.
          if (probes > 1) throw new Error('two probes are in flight');
          await exchange().finally(() => {
            probes -= 1;
          });
        },
      };
      const limiter = new Limiter({ perSecond: 20, clock, log: silentLog(), random, probe });
      const request = async (): Promise<void> => {
        if (limiter.state().kind === 'down') throw new Error('a request is sent during the outage');
        await exchange();
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
