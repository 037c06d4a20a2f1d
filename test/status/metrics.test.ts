import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Live } from '../../src/live.js';
import type { Overview } from '../../src/status/api.js';
import { someFolder, someMember } from '../support/page-states.js';
import { NO_RUNS, serve, someInstrument, someLive } from '../support/status-server.js';

const DOWN: Live['notebook'] = {
  url: 'https://eln.example.org',
  gate: { kind: 'down', since: 1, probeAt: 2, failure: 'server', reason: 'no connection' },
  requests: [],
};

const unreadable = () => Promise.reject(new Error('disk I/O error'));

describe('the names of the metrics', () => {
  const collect = async (): Promise<string> => {
    const { call } = await serve({ live: () => someLive({ instruments: [someInstrument('balance')] }) });
    return (await call('/metrics')).text;
  };

  test('follow the rules of Prometheus: only counters end in _total, and every metric has a help text', async () => {
    const text = await collect();
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => ({ name, type }));
    expect(types.length).toBeGreaterThan(20);
    for (const { name, type } of types) {
      expect({ name, isCounter: name.endsWith('_total') }).toEqual({ name, isCounter: type === 'counter' });
      expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, 'm'));
    }
  });

  const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
  test.skipIf(!hasPromtool)('promtool has nothing to complain about', async () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: await collect(),
      encoding: 'utf8',
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });
});

describe('/healthz', () => {
  test('is 200 while the notebook is down and the journal cannot be read', async () => {
    const { call } = await serve({ live: () => someLive({ notebook: DOWN }), overview: unreadable });
    expect(await call('/healthz')).toMatchObject({ status: 200, json: { status: 'ok' } });
    expect(await call('/healthz', { method: 'HEAD' })).toMatchObject({ status: 200 });
  });
});

describe('/readyz', () => {
  test('is 200 if nothing keeps runs from being filed', async () => {
    const { call } = await serve({ live: () => someLive({ instruments: [someInstrument('balance')] }) });
    expect(await call('/readyz')).toMatchObject({ status: 200, json: { status: 'ready' } });
  });

  test('without the database of a fleet, a machine that delivers is not ready; one that watches is, while it has room', async () => {
    const away = async (delivers: boolean, alarms: Live['alarms'] = []) => {
      const fleet = { name: 'pc1', delivers, trouble: 'ECONNREFUSED', kept: 3, members: [] };
      return (await (await serve({ live: () => someLive({ fleet, alarms }) })).call('/readyz')).json;
    };
    const reasons = [{ part: 'database', text: 'the database of the fleet is away: ECONNREFUSED' }];
    expect(await away(true)).toMatchObject({ reasons });
    expect(await away(false)).toEqual({ status: 'ready' });
    expect(await away(false, [{ kind: 'spool', instrument: undefined, since: 1, text: 'full' }])).toMatchObject({
      reasons,
    });
  });

  test.each(['unreadable', 'stuck'] as const)('is 503 with an alarm about %s files', async (kind) => {
    const alarms = [{ kind, instrument: 'balance', since: 1, text: 'a.csv is not filed' }];
    const { call } = await serve({ live: () => someLive({ instruments: [someInstrument('balance')], alarms }) });
    expect(await call('/readyz')).toMatchObject({
      status: 503,
      json: { reasons: [{ part: 'folder', instrument: 'balance', text: 'a.csv is not filed' }] },
    });
  });

  test('is 503 with every reason otherwise', async () => {
    const instruments = [
      someInstrument('balance', { folder: { state: 'missing', reason: 'ENOENT' } }),
      someInstrument('nanodrop', { line: 'stopped' }),
      someInstrument('logger', { line: 'starting' }),
      someInstrument('fine'),
    ];
    const { call } = await serve({
      live: () => someLive({ notebook: DOWN, instruments }),
      overview: async () => ({
        instruments: [],
        servers: [{ url: DOWN.url ?? '', halted: 'the notebook was restored' }],
      }),
      problem: async () => 'the disk of the journal is full',
    });
    expect(await call('/readyz')).toMatchObject({
      status: 503,
      json: {
        status: 'not ready',
        reasons: [
          { part: 'journal', text: 'the disk of the journal is full' },
          { part: 'notebook', text: 'the notebook was restored' },
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

  test('is 503 once for a halt, and for a run that is overdue', async () => {
    const notebook: Live['notebook'] = { ...DOWN, gate: { kind: 'halted', reason: 'it was restored' } };
    const { call } = await serve({
      live: () =>
        someLive({
          notebook,
          alarms: [
            { kind: 'held', instrument: undefined, since: 1, text: 'nothing is sent: it was restored' },
            { kind: 'overdue', instrument: undefined, since: 1, text: 'run 3 has not been filed' },
          ],
        }),
      overview: async () => ({ instruments: [], servers: [{ url: DOWN.url ?? '', halted: 'it was restored' }] }),
    });
    expect((await call('/readyz')).json).toEqual({
      status: 'not ready',
      reasons: [
        { part: 'notebook', text: 'it was restored' },
        { part: 'notebook', text: 'run 3 has not been filed' },
      ],
    });
    const { text } = await call('/metrics');
    expect(text).toContain('labfeed_gate_state{state="halted"} 1');
    expect(text).toContain('labfeed_gate_state{state="open"} 0');
  });

  test('is 503 if the journal cannot be read', async () => {
    const { call } = await serve({ overview: unreadable });
    expect((await call('/readyz')).json).toEqual({
      status: 'not ready',
      reasons: [{ part: 'journal', text: 'the journal cannot be read: disk I/O error' }],
    });
  });
});

describe('/metrics', () => {
  const NOW = Date.UTC(2026, 0, 1);

  const live: Live = someLive({
    spool: { bytes: 2048, maxBytes: 1e10 },
    notebook: {
      url: 'https://eln.example.org',
      gate: { kind: 'slowed', perSecond: 2.5 },
      requests: [
        { method: 'POST', status: '201', count: 7 },
        { method: 'GET', status: 'none', count: 2 },
      ],
    },
    instruments: [
      someInstrument('balance', {
        lastFileAt: NOW - 90_000,
        waiting: { files: 3, first: [], unreadable: 0 },
        stuck: { files: 2, first: [] },
      }),
      someInstrument('Gerät "2"\\', { folder: { state: 'missing' } }),
      someInstrument('new', { folder: { state: 'unknown' } }),
    ],
    alarms: [
      { kind: 'silence', instrument: 'balance', since: 1, text: 'nothing came' },
      { kind: 'auth', instrument: undefined, since: 1, text: 'the key is refused' },
    ],
  });

  const overview: Overview = {
    instruments: [
      {
        name: 'balance',
        runs: { ...NO_RUNS, done: 40, queued: 2, sending: 1 },
        asked: 0,
        hours: [],
        oldestAt: NOW - 5000,
      },
      {
        name: 'retired',
        runs: { ...NO_RUNS, quarantined: 6, queued: 1 },
        asked: 0,
        hours: [],
        oldestAt: NOW - 60_000,
      },
    ],
    servers: [],
    uploads: [
      { instrument: 'balance', server: 'https://eln.example.org', files: 2, bytes: 10, since: NOW - 30_000 },
      { instrument: 'retired', server: 'https://eln.example.org', files: 3, bytes: 10, since: NOW - 45_000 },
    ],
  };

  const clock = { now: () => NOW, monotonic: () => 0, sleep: () => new Promise<void>(() => undefined) };

  /** The samples of a scrape by name and labels. Every line must be valid for Prometheus. */
  function samplesOf(text: string): Map<string, number> {
    const samples = new Map<string, number>();
    for (const line of text.split('\n').filter((one) => one !== '' && !/^# (HELP|TYPE) /.test(one))) {
      const [, sample = '', value] =
        /^([a-z_][\w]*(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})?) (\S+)$/i.exec(line) ?? [];
      expect(value, line).toBeDefined();
      expect(samples.has(sample), line).toBe(false);
      samples.set(sample, Number(value));
    }
    return samples;
  }

  test('has the numbers that the page shows', async () => {
    const { call } = await serve({ clock, live: () => live, overview: async () => overview });
    const { status, headers, text } = await call('/metrics');
    expect({ status, type: headers['content-type'] }).toEqual({
      status: 200,
      type: 'text/plain; version=0.0.4; charset=utf-8',
    });
    const samples = samplesOf(text);
    expect(Object.fromEntries([...samples].filter(([name]) => name.startsWith('labfeed_')))).toMatchObject({
      [`labfeed_build_info{version="1.2.3",node="${process.versions.node}"}`]: 1,
      'labfeed_runs{instrument="balance",state="done"}': 40,
      'labfeed_runs{instrument="balance",state="queued"}': 2,
      'labfeed_runs{instrument="balance",state="waiting"}': 3,
      'labfeed_runs{instrument="retired",state="quarantined"}': 6,
      'labfeed_requests_total{method="POST",status="201"}': 7,
      'labfeed_requests_total{method="GET",status="none"}': 2,
      'labfeed_gate_state{state="slowed"}': 1,
      'labfeed_gate_state{state="open"}': 0,
      'labfeed_gate_state{state="down"}': 0,
      labfeed_gate_rate: 2.5,
      labfeed_queue_length: 4,
      labfeed_oldest_waiting_seconds: 60,
      'labfeed_last_file_age_seconds{instrument="balance"}': 90,
      'labfeed_stuck_files{instrument="balance"}': 2,
      labfeed_journal_bytes: 4096,
      labfeed_uploads_waiting: 5,
      labfeed_uploads_oldest_waiting_seconds: 45,
      labfeed_spool_bytes: 2048,
      labfeed_spool_max_bytes: 1e10,
      'labfeed_alarm{kind="silence",instrument="balance"}': 1,
      'labfeed_alarm{kind="auth",instrument=""}': 1,
      'labfeed_folder_up{instrument="balance"}': 1,
      'labfeed_folder_up{instrument="Gerät \\"2\\"\\\\"}': 0,
    });
    expect(samples.has('labfeed_folder_up{instrument="new"}')).toBe(false);
    expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1e6);
  });

  test('has no cleared alarms, and its counters continue', async () => {
    let now = live;
    const { call } = await serve({ clock, live: () => now, overview: async () => overview });
    await call('/metrics');
    now = someLive({
      notebook: { ...live.notebook, requests: [{ method: 'POST', status: '201', count: 9 }] },
    });
    const samples = samplesOf((await call('/metrics')).text);
    expect([...samples.keys()].filter((name) => name.startsWith('labfeed_alarm'))).toEqual([]);
    expect(samples.get('labfeed_requests_total{method="POST",status="201"}')).toBe(9);
  });

  test('leaves out the numbers from the journal if it cannot be read', async () => {
    const { call } = await serve({
      clock,
      live: () => live,
      overview() {
        throw new Error('disk I/O error');
      },
      bytes: () => Promise.reject(new Error('gone')),
    });
    const { status, text } = await call('/metrics');
    const names = [...samplesOf(text).keys()].map((sample) => sample.split('{')[0]);
    expect(status).toBe(200);
    expect(names).toContain('labfeed_gate_state');
    for (const unknown of ['labfeed_runs', 'labfeed_queue_length', 'labfeed_journal_bytes'])
      expect(names).not.toContain(unknown);
  });

  test('has a waiting time of 0 if nothing is waiting', async () => {
    const { call } = await serve({ clock });
    expect(samplesOf((await call('/metrics')).text).get('labfeed_oldest_waiting_seconds')).toBe(0);
  });

  test('every instrument of a fleet is measured by machine; of one that is away, only what is certain', async () => {
    const folder = someFolder('x', { lastFileAt: 1, silenceMs: 5, asked: 7, waiting: 2 });
    const silent = { kind: 'silence', instrument: 'x', text: 'x: no file' };
    const members = [
      someMember('pc1', { isAway: false, folders: [{ ...folder, runs: { queued: 3, quarantined: 1, held: 2 } }] }),
      someMember('pc2', { isAway: true, folders: [folder], alarms: [silent] }),
      someMember('pc3', { isAway: false, folders: [folder], alarms: [silent] }),
      someMember('old', { isAway: false, folders: [{ ...folder, silenceMs: null, asked: null, runs: null }] }),
    ];
    const fleet = { name: 'server', delivers: true, trouble: undefined, kept: 0, members };
    const { call } = await serve({ clock, live: () => ({ ...live, fleet }) });
    const samples = samplesOf((await call('/metrics')).text);
    const of = (name: string, member: string, more = '') =>
      samples.get(`labfeed_fleet_${name}{member="${member}",instrument="x"${more}}`);
    expect([of('silent', 'pc1'), of('silent', 'pc3'), of('silent', 'old')]).toEqual([0, 1, undefined]);
    expect([of('backlog_files', 'pc1'), of('backlog_files', 'old')]).toEqual([7, undefined]);
    expect([of('runs', 'pc1', ',state="held"'), of('runs', 'old', ',state="held"')]).toEqual([2, undefined]);
    expect(samples.get('labfeed_fleet_member_up{member="pc2"}')).toBe(0);
    for (const name of ['folder_up', 'waiting_files', 'silent', 'backlog_files'])
      expect(of(name, 'pc2')).toBeUndefined();
    expect(of('last_file_age_seconds', 'pc2')).toBeGreaterThan(0);
  });

  test('the documentation names every metric, and no other', async () => {
    const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
    const [, rules = ''] = /```yaml\n(groups:[\s\S]*?)```/.exec(page) ?? [];
    expect(parse(rules)).toMatchObject({ groups: [{ rules: { length: 6 } }] });
    const member = someMember('pc1', {
      isAway: false,
      folders: [someFolder('x', { lastFileAt: 1, silenceMs: 5 })],
    });
    const fleet = { name: 'pc1', delivers: true, trouble: undefined, kept: 0, members: [member] };
    const { call } = await serve({ clock, live: () => ({ ...live, fleet }), overview: async () => overview });
    const labelled = new Map<string, string>();
    for (const sample of samplesOf((await call('/metrics')).text).keys()) {
      const labels = [...sample.matchAll(/([a-z]+)="/g)].map(([, label]) => label);
      labelled.set(sample.split('{')[0] ?? '', labels.join(','));
    }
    const named = new Set(page.match(/\blabfeed_\w+/g));
    const own = [...labelled].filter(([name]) => name.startsWith('labfeed_'));
    expect([...named].sort()).toEqual(own.map(([name]) => name).sort());
    for (const [name, labels] of own) if (labels) expect(page).toContain(`\`${name}{${labels}}\``);
  });
});
