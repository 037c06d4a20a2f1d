import { describe, expect, test } from 'vitest';
import type { Live } from '../../src/live.js';
import { NO_RUNS, serve, someInstrument, someJob, someLive } from './serving.js';

const away: Live['notebook'] = {
  url: 'https://eln.example.org',
  gate: { kind: 'down', since: 1, probeAt: 2, failure: 'server', reason: 'no connection' },
  requests: [],
};

function unreadable(): never {
  throw new Error('disk I/O error');
}

describe('/healthz', () => {
  test('is 200 while the notebook is away and the journal cannot be read', async () => {
    const { call } = await serve({ live: () => someLive({ notebook: away }), overview: unreadable });
    expect(await call('/healthz')).toMatchObject({ status: 200, json: { status: 'ok' } });
    expect(await call('/healthz', { method: 'HEAD' })).toMatchObject({ status: 200 });
  });
});

describe('/readyz', () => {
  test('is 200 where nothing keeps runs from being filed', async () => {
    const { call } = await serve({ live: () => someLive({ instruments: [someInstrument('balance')] }) });
    expect(await call('/readyz')).toMatchObject({ status: 200, json: { status: 'ready' } });
  });

  test('names every reason why not', async () => {
    const instruments = [
      someInstrument('balance', { folder: { state: 'missing', reason: 'ENOENT' } }),
      someInstrument('nanodrop', { line: 'stopped' }),
      someInstrument('logger', { line: 'starting' }),
      someInstrument('fine'),
    ];
    const { call } = await serve({
      live: () => someLive({ notebook: away, instruments }),
      overview: async () => ({
        instruments: [],
        servers: [{ url: away.url, halted: 'the notebook was set back' }],
      }),
      journalTrouble: async () => 'the disk of the journal is full',
    });
    expect(await call('/readyz')).toMatchObject({
      status: 503,
      json: {
        status: 'not ready',
        reasons: [
          { part: 'journal', text: 'the disk of the journal is full' },
          { part: 'notebook', text: 'the notebook was set back' },
          { part: 'notebook', text: 'no connection' },
          {
            part: 'folder',
            instrument: 'balance',
            text: 'the folder /srv/balance of balance is missing (ENOENT)',
          },
          { part: 'instrument', instrument: 'nanodrop', text: expect.stringContaining('is stopped') },
          { part: 'instrument', instrument: 'logger', text: expect.stringContaining('still starting') },
        ],
      },
    });
  });

  test('says that the journal cannot be read', async () => {
    const { call } = await serve({ overview: unreadable });
    expect((await call('/readyz')).json).toEqual({
      status: 'not ready',
      reasons: [{ part: 'journal', text: 'the journal cannot be read: disk I/O error' }],
    });
  });
});

describe('the state of the page', () => {
  test('is there without the journal, and says so', async () => {
    const { call } = await serve({ overview: unreadable });
    expect(await call('/api/state')).toMatchObject({
      status: 200,
      json: {
        version: '1.2.3',
        overview: { instruments: [], servers: [] },
        attention: [],
        live: {
          alarms: [{ kind: 'journal', text: 'the journal cannot be read: disk I/O error' }],
        },
      },
    });
  });

  test('names the hundred newest runs that need a person, and how many there are', async () => {
    const asked: unknown[] = [];
    const { call } = await serve({
      async jobs(query) {
        asked.push(query);
        const odd = query.state === 'held' ? 1 : 0;
        return Array.from({ length: query.limit }, (_, n) => someJob(1000 - 2 * n - odd));
      },
      overview: async () => ({
        instruments: [
          { name: 'a', runs: { ...NO_RUNS, quarantined: 300, done: 7 }, asked: 0, hours: [] },
          { name: 'b', runs: { ...NO_RUNS, held: 200 }, asked: 0, hours: [] },
        ],
        servers: [],
      }),
    });
    const { json } = await call('/api/state');
    const { attention, attentionCount } = json as { attention: { id: number }[]; attentionCount: number };
    expect(attention.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, n) => 1000 - n));
    expect(attentionCount).toBe(500);
    expect(asked).toHaveLength(2);
  });

  test('is made once a second at most, however often it is asked for', async () => {
    let made = 0;
    const { call } = await serve({
      clock: { now: () => 1, monotonic: () => 1, sleep: () => new Promise(() => undefined) },
      live() {
        made += 1;
        return someLive();
      },
    });
    for (let n = 0; n < 20; n++) await call('/api/state');
    expect(made).toBe(1);
  });
});

describe('runs', () => {
  test('are listed by state and instrument, page by page', async () => {
    const asked: unknown[] = [];
    const { call } = await serve({
      async jobs(query) {
        asked.push(query);
        return [someJob(4)];
      },
    });
    const filter = 'state=held&instrument=Ger%C3%A4t%202&before=9&limit=10';
    expect((await call(`/api/jobs?${filter}`)).json).toMatchObject({ jobs: [{ id: 4 }] });
    expect(asked).toEqual([{ state: 'held', instrument: 'Gerät 2', before: 9, limit: 10 }]);
    for (const wrong of ['state=lost', 'limit=0', 'limit=5000', 'before=x'])
      expect((await call(`/api/jobs?${wrong}`)).status, wrong).toBe(400);
  });

  test('that there are not are told as such', async () => {
    const { call } = await serve();
    for (const path of ['/api/jobs/7', '/api/jobs/x', '/api/jobs/7/body'])
      expect(await call(path)).toMatchObject({
        status: 404,
        json: { error: expect.stringContaining('there is no run') },
      });
  });
});
