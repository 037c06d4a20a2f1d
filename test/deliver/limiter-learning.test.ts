import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LoadOptions, type LoadResult, load } from '../support/load.js';
import { changing, fixedWindow, type ServerLimit, slidingWindow, tokenBucket } from '../support/server-limits.js';

const refusedShare = ({ refusedAt, servedAt }: LoadResult): number =>
  refusedAt.length / (refusedAt.length + servedAt.length);

/** Throughput from that time on, as a share of what server and workers could handle. */
function use({ servedAt, ms }: LoadResult, cap: number, options: LoadOptions, fromMs = 0): number {
  const { concurrency = 4, latencyMs = 20, jitterMs = 0 } = options;
  const reach = Math.min(cap, (concurrency * 1000) / (latencyMs + jitterMs / 2));
  return (servedAt.filter((at) => at >= fromMs).length * 1000) / (ms - fromMs) / reach;
}

/** From a local to a distant server, from slightly to far above its limit. */
const conditions = fc.record({
  timesTooFast: fc.double({ min: 1.2, max: 10, noNaN: true }),
  concurrency: fc.integer({ min: 1, max: 16 }),
  latencyMs: fc.integer({ min: 5, max: 500 }),
  jitterMs: fc.integer({ min: 0, max: 30 }),
  retryAfter: fc.constantFrom('seconds' as const, 'never' as const),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
});

const offset = (windowMs: number, seed: number): number => seed % windowMs;

describe.each<{ kind: string; caps: [number, number]; serverLimit(cap: number, seed: number): ServerLimit }>([
  {
    kind: 'fixed seconds',
    caps: [3, 30],
    serverLimit: (cap, seed) => fixedWindow(cap, 1000, offset(1000, seed)),
  },
  { kind: 'a sliding second', caps: [3, 30], serverLimit: (cap) => slidingWindow(cap, 1000) },
  { kind: 'a token bucket', caps: [3, 30], serverLimit: (cap, seed) => tokenBucket(cap, 5 + (seed % 100)) },
  {
    kind: 'fixed minutes',
    caps: [1, 10],
    serverLimit: (cap, seed) => fixedWindow(60 * cap, 60_000, offset(60_000, seed)),
  },
  { kind: 'a sliding minute', caps: [1, 10], serverLimit: (cap) => slidingWindow(60 * cap, 60_000) },
])('a server that limits by $kind', ({ caps: [min, max], serverLimit }) => {
  test('refuses under 5 % and is at least 80 % used from the first request', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min, max }), conditions, async (cap, { timesTooFast, ...others }) => {
        const requests = Math.max(1000, cap * 100);
        const perSecond = Math.ceil(cap * timesTooFast);
        const options = { ...others, perSecond, requests, serverLimit: serverLimit(cap, others.seed) };
        const result = await load(options);
        expect(refusedShare(result)).toBeLessThan(0.05);
        expect(use(result, cap, options)).toBeGreaterThan(0.8);
      }),
      { numRuns: 12 },
    );
  });

  test('is at least 85 % used in the long run, with very few refusals', async () => {
    const cap = Math.round((min + max) / 2);
    const options = {
      perSecond: 4 * cap,
      requests: 500 * cap,
      latencyMs: 50,
      serverLimit: serverLimit(cap, 1),
    };
    const result = await load(options);
    expect(refusedShare(result)).toBeLessThan(0.015);
    expect(use(result, cap, options, 100_000)).toBeGreaterThan(0.85);
  });
});

test('with a server limit of 15 per second and a ceiling of 20, the rate settles at the limit', async () => {
  const options = { perSecond: 20, requests: 1000, serverLimit: fixedWindow(15, 1000, 300) };
  const result = await load(options);
  expect(refusedShare(result)).toBeLessThan(0.01);
  expect(use(result, 15, options)).toBeGreaterThan(0.9);
  expect(result.limiter.state()).toMatchObject({ kind: 'slowed' });
});

test.each([
  { status: 429, retryAfter: 'never' },
  { status: 503, retryAfter: 'seconds' },
] as const)('a proxy that limits with $status and Retry-After: $retryAfter is used well', async (refusal) => {
  const options = { perSecond: 20, requests: 2000, serverLimit: tokenBucket(15, 10), ...refusal };
  const result = await load(options);
  expect(refusedShare(result)).toBeLessThan(0.01);
  expect(use(result, 15, options)).toBeGreaterThan(0.8);
});

test('a server whose refusals ask for a minute rarely refuses and is 75 % used', async () => {
  const options = { perSecond: 20, requests: 20_000, serverLimit: fixedWindow(15, 1000), retryAfter: 60_000 };
  const result = await load(options);
  expect(result.refusedAt.length).toBeLessThan(10);
  expect(use(result, 15, options, 300_000)).toBeGreaterThan(0.75);
});

test.each([
  { what: 'fourfold', before: fixedWindow(15, 1000), after: 60, withinMs: 2 * 60_000 },
  {
    what: 'twentyfold, from one by the minute,',
    before: fixedWindow(300, 60_000),
    after: 100,
    withinMs: 8 * 60_000,
  },
])('a limit that was raised $what is learned again within minutes', async ({ before, after, withinMs }) => {
  const raisedAt = 300_000;
  const serverLimit = changing(before, fixedWindow(after, 1000), raisedAt);
  const { servedAt } = await load({ perSecond: 1000, requests: 60_000, concurrency: 8, serverLimit });
  const tenSecondsFrom = (at: number): number =>
    servedAt.filter((served) => served >= at && served < at + 10_000).length;
  const starts = Array.from({ length: withinMs / 10_000 }, (_, n) => raisedAt + 10_000 * n);
  expect(Math.max(...starts.map(tenSecondsFrom))).toBeGreaterThan(0.8 * 10 * after);
});

test('a limit that was lowered to a twentieth is learned within seconds', async () => {
  const serverLimit = changing(fixedWindow(60, 1000), slidingWindow(3, 1000), 60_000);
  const { servedAt, refusedAt } = await load({ perSecond: 100, requests: 4000, concurrency: 8, serverLimit });
  expect(refusedAt.filter((at) => at > 60_000 && at <= 90_000).length).toBeLessThan(25);
  expect(servedAt.filter((at) => at > 75_000 && at <= 85_000).length).toBeGreaterThan(0.8 * 30);
});
