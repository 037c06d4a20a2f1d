import { expect, test } from 'vitest';
import { type Call, playground } from './playground.ts';

const KEYS = '/api/v2/apikeys';
const DIALECTS = ['v2', 'elabftw'] as const;

test.each(
  DIALECTS.flatMap((dialect) => [
    [dialect, 'maintenance', 200, 405] as const,
    [dialect, 'database', 500, 500] as const,
    [dialect, 'php', 502, 502] as const,
  ]),
)(
  '%s, %s: GET gets %i and writing %i, both as pages, until it is over',
  async (dialect, outage, read, write) => {
    const { call, control } = await playground({ dialect });
    control.setOutage(outage);
    const html = { 'content-type': expect.stringMatching(/^text\/html/) };
    expect(await call(KEYS)).toMatchObject({ status: read, headers: html, json: undefined });
    for (const method of ['POST', 'PATCH']) {
      const answer = await call('/api/v2/experiments', { method, body: {} });
      expect(answer).toMatchObject({ status: write, headers: html, json: undefined });
    }
    expect(control.experiments()).toEqual([]);
    control.setOutage(undefined);
    expect(await call(KEYS)).toMatchObject({ status: 200, json: [{ id: 1 }] });
  },
);

async function limited(dialect: 'v2' | 'elabftw', retryAfter?: 'seconds' | 'date') {
  const startMs = Date.UTC(2026, 0, 1, 0, 0, 0, 500);
  const time = { elapsed: 0 };
  const clock = {
    now: () => startMs + time.elapsed,
    monotonic: () => time.elapsed,
    sleep: async () => undefined,
  };
  const { call, control } = await playground({ dialect, clock });
  control.limitRate({ requests: 2, perMs: 3_000, ...(retryAfter ? { retryAfter } : {}) });
  return { call, control, time };
}

const statuses = async (call: Call, times: number) => {
  const all = [];
  for (let n = 0; n < times; n += 1) all.push((await call(KEYS)).status);
  return all;
};

test.each(DIALECTS)(
  '%s: beyond the rate of a window requests get 429, and pass in the next',
  async (dialect) => {
    const { call, control, time } = await limited(dialect);
    expect(await statuses(call, 4)).toEqual([200, 200, 429, 429]);
    expect((await call(KEYS)).headers).not.toHaveProperty('retry-after');
    time.elapsed = 2_999;
    expect(await statuses(call, 1)).toEqual([429]);
    time.elapsed = 3_000;
    expect(await statuses(call, 3)).toEqual([200, 200, 429]);
    control.limitRate(undefined);
    expect(await statuses(call, 3)).toEqual([200, 200, 200]);
  },
);

test.each([
  ['seconds', '3', '1'],
  ['date', 'Thu, 01 Jan 2026 00:00:04 GMT', 'Thu, 01 Jan 2026 00:00:04 GMT'],
] as const)('a refusal says when to come again, in %s', async (form, first, last) => {
  const { call, time } = await limited('v2', form);
  await statuses(call, 2);
  expect((await call(KEYS)).headers).toMatchObject({ 'retry-after': first });
  time.elapsed = 2_500;
  expect((await call(KEYS)).headers).toMatchObject({ 'retry-after': last });
});

test('what the limit turns away uses up no fault', async () => {
  const { call, control } = await limited('v2');
  control.plan({ answer: 502 }, { skip: 2, times: 1 });
  expect(await statuses(call, 3)).toEqual([200, 200, 429]);
  control.limitRate(undefined);
  expect(await statuses(call, 2)).toEqual([502, 200]);
});
