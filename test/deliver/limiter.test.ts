import { expect, test } from 'vitest';
import { StoppedError } from '../../src/deliver/context.js';
import { Limiter } from '../../src/deliver/limiter.js';
import { NotebookError } from '../../src/errors.js';
import { createLog } from '../../src/log.js';
import { manualClock } from '../support/manual-clock.js';
import { simulatedClock } from '../support/simulated-clock.js';

const busy = (retryAfterMs?: number) =>
  new NotebookError('rate', 'slow down', {
    status: 429,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
const away = () => new NotebookError('server', 'connection refused');

interface Line {
  readonly level: number;
  readonly msg: string;
}

const LEVELS: Readonly<Record<number, string>> = { 20: 'debug', 30: 'info', 40: 'warn' };

function setUp(perSecond: number) {
  const clock = simulatedClock();
  const lines: Line[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const { log } = createLog({ level: 'debug', destination });
  const limiter = new Limiter({ perSecond, clock, log, random: () => 1 });
  const sentAt: number[] = [];
  const send = (latencyMs = 0, failure?: () => Error): Promise<void> =>
    limiter.schedule(async () => {
      sentAt.push(clock.monotonic());
      await clock.sleep(latencyMs);
      const error = failure?.();
      if (error) throw error;
    });
  const fail = (failure: () => Error, latencyMs = 0): Promise<void> => send(latencyMs, failure).catch(() => undefined);
  const logged = (...levels: string[]): string[] =>
    lines
      .map(({ level, msg }) => `${LEVELS[level]}: ${msg}`)
      .filter((line) => levels.some((level) => line.startsWith(level)));
  /** Without a probe of its own, the limiter takes five failures in a row for an outage. */
  const goDown = (): Promise<unknown> => clock.run(Promise.all(Array.from({ length: 5 }, () => fail(away))));
  return { clock, limiter, sentAt, send, fail, goDown, logged };
}

test('results and errors are passed on unchanged', async () => {
  const { clock, limiter, send } = setUp(1000);
  const refused = new NotebookError('request', 'bad date', { status: 422 });
  await expect(clock.run(send(0, () => refused))).rejects.toBe(refused);
  await expect(clock.run(limiter.schedule(async () => 42))).resolves.toBe(42);
});

test('a request that throws before it is sent does not break the limiter', async () => {
  const { clock, limiter, send } = setUp(1000);
  const broken = new TypeError('no such key');
  const sent = limiter.schedule(() => {
    throw broken;
  });
  await expect(clock.run(sent)).rejects.toBe(broken);
  await clock.run(send());
});

test('a failure of scope run neither stops nor slows other requests', async () => {
  const { clock, sentAt, send, fail } = setUp(1000);
  await clock.run(fail(() => new NotebookError('request', 'bad date', { status: 422 })));
  await clock.run(send());
  expect(sentAt).toEqual([0, 0]);
});

test('requests are sent in the order of arrival', async () => {
  const { clock, limiter } = setUp(10);
  const order: number[] = [];
  const all = [1, 2, 3, 4, 5].map((n) => limiter.schedule(async () => void order.push(n)));
  await clock.run(Promise.all(all));
  expect(order).toEqual([1, 2, 3, 4, 5]);
});

test('the Retry-After of one request holds back all others, and one probe is sent first', async () => {
  const { clock, sentAt, send, fail } = setUp(1000);
  await clock.run(fail(() => busy(30_000)));
  await clock.run(Promise.all([send(200), send(), send(), send()]));
  const [, probe = 0, ...others] = sentAt;
  expect(probe).toBeGreaterThanOrEqual(30_000);
  expect(Math.min(...others)).toBeGreaterThanOrEqual(probe + 200);
});

test('after a Retry-After, requests follow at the learned rate and not at once', async () => {
  const { clock, sentAt, send, fail } = setUp(50);
  await clock.run(Promise.all(Array.from({ length: 100 }, () => send(20))));
  await clock.run(fail(() => busy(30_000)));
  const before = sentAt.length;
  await clock.run(Promise.all(Array.from({ length: 20 }, () => send(20))));
  const gaps = sentAt.slice(before + 1).map((at, index) => at - (sentAt[before + index] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(20);
});

test('the longest Retry-After of the requests in flight counts, and none counts twice', async () => {
  const { clock, sentAt, send, fail } = setUp(1000);
  await clock.run(Promise.all([fail(() => busy(2000), 10), fail(() => busy(8000), 20), fail(busy, 30)]));
  await clock.run(send());
  // Up to a tenth is added at random.
  expect(sentAt[3]).toBeGreaterThanOrEqual(8020);
  expect(sentAt[3]).toBeLessThanOrEqual(8850);
});

test.each([0, undefined])('a 429 with a Retry-After of %s also causes a pause', async (retryAfterMs) => {
  const { clock, sentAt, send, fail } = setUp(1000);
  await clock.run(fail(() => busy(retryAfterMs)));
  await clock.run(send());
  expect(sentAt[1]).toBe(1000);
});

test('simultaneous refusals reduce the rate once', async () => {
  const paceAfter = async (refusals: number): Promise<number> => {
    const { clock, limiter, send, fail } = setUp(100);
    await clock.run(Promise.all(Array.from({ length: 500 }, () => send(100))));
    const last = Array.from({ length: 10 }, (_, n) => (n < refusals ? fail(busy, 100) : send(100)));
    await clock.run(Promise.all(last).then(() => send(100)));
    const state = limiter.state();
    return 'perSecond' in state ? state.perSecond : 0;
  };
  const [one, ten] = [await paceAfter(1), await paceAfter(10)];
  expect(one).toBeGreaterThan(70);
  expect(ten).toBeGreaterThan(0.9 * one);
});

test('stopping rejects waiting requests without sending them', async () => {
  const { clock, limiter, sentAt, send } = setUp(1);
  await clock.run(send());
  const waiting = [send(), send()];
  limiter.stop();
  for (const one of waiting) await expect(one).rejects.toBeInstanceOf(StoppedError);
  await expect(send()).rejects.toBeInstanceOf(StoppedError);
  expect(sentAt).toHaveLength(1);
});

test('stopping also rejects requests that wait for a probe or the end of an outage', async () => {
  const { clock, limiter, send, goDown } = setUp(1000);
  await goDown();
  const probe = send(60_000);
  const behind = send();
  await clock.run(clock.sleep(5000));
  limiter.stop();
  await expect(behind).rejects.toBeInstanceOf(StoppedError);
  await clock.run(probe);
});

test('the limiter works with a clock that jumps at each sleep', async () => {
  const clock = manualClock();
  const { log } = createLog({ level: 'silent' });
  const limiter = new Limiter({ perSecond: 5, clock, log });
  await Promise.all(Array.from({ length: 20 }, () => limiter.schedule(async () => undefined)));
  expect(clock.monotonic()).toBeGreaterThan(3000);
});

test('an outage is logged once at its start and once at its end', async () => {
  const { clock, send, fail, goDown, logged } = setUp(1000);
  await goDown();
  for (let probe = 0; probe < 5; probe++) await clock.run(fail(away));
  await clock.run(Promise.all([send(), send(), send()]));
  expect(logged('warn', 'info')).toEqual(['warn: notebook unavailable, waiting', 'info: notebook available again']);
});

test('a limit is logged once, and again only if the wait is long', async () => {
  const { clock, send, fail, logged } = setUp(100);
  for (let time = 0; time < 5; time++) await clock.run(fail(busy).then(() => send()));
  const told = ['warn: rate limit reached, waiting', 'info: notebook available again'];
  expect(logged('warn', 'info')).toEqual(told);
  await clock.run(fail(() => busy(60_000)).then(() => send()));
  expect(logged('warn', 'info')).toEqual([...told, ...told]);
  expect(logged('debug')).toContain('debug: rate limit learned');
});

test('the state explains why requests wait', async () => {
  const { clock, limiter, send, fail, goDown } = setUp(20);
  expect(limiter.state()).toEqual({ kind: 'open', perSecond: expect.closeTo(18.9, 1) });
  await goDown();
  const [since, probeAt] = [clock.now(), clock.now() + 1000];
  expect(limiter.state()).toEqual({
    kind: 'down',
    since,
    probeAt,
    failure: 'server',
    reason: 'connection refused',
  });
  await clock.run(send());
  expect(limiter.state()).toEqual({ kind: 'slow start', perSecond: 1 });
  await clock.run(Promise.all(Array.from({ length: 100 }, () => send())));
  expect(limiter.state().kind).toBe('open');
  await clock.run(fail(() => busy(10_000)));
  expect(limiter.state()).toEqual({ kind: 'held', until: clock.now() + 11_000, reason: 'slow down' });
  await clock.run(send());
  expect(limiter.state().kind).toBe('slowed');
});

test('no more requests are in flight than there are connections', async () => {
  const clock = simulatedClock();
  const { log } = createLog({ level: 'silent' });
  const limiter = new Limiter({ perSecond: 1000, connections: () => 2, clock, log });
  let inFlight = 0;
  let most = 0;
  const request = async (): Promise<void> => {
    inFlight += 1;
    most = Math.max(most, inFlight);
    await clock.sleep(100);
    inFlight -= 1;
  };
  await clock.run(Promise.all(Array.from({ length: 10 }, () => limiter.schedule(request))));
  expect(most).toBe(2);
});

test('a request that waits for a connection is sent when one more is allowed', async () => {
  const clock = simulatedClock();
  const { log } = createLog({ level: 'silent' });
  let connections = 1;
  const limiter = new Limiter({ perSecond: 1000, connections: () => connections, clock, log });
  const sent: string[] = [];
  void limiter.schedule(() => clock.sleep(30_000));
  void limiter.schedule(async () => void sent.push('second'));
  await clock.run(clock.sleep(5000));
  expect(sent).toEqual([]);
  connections = 2;
  limiter.admit();
  await clock.run(clock.sleep(100));
  expect(sent).toEqual(['second']);
});
