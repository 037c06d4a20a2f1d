import { describe, expect, test } from 'vitest';
import { examine, type Facts, isSilent } from '../../src/alarms/conditions.js';
import type { LimiterState } from '../../src/live.js';
import { facts, instrument, NOW } from './facts.js';

const HOUR = 3_600_000;
const EVERY_DAY = new Set([1, 2, 3, 4, 5, 6, 7]);

const found = (given: Facts, raisedAt?: number) =>
  examine(given, () => raisedAt).map(({ kind, instrument, text }) =>
    text === undefined ? `${kind} unknown` : `${kind} ${instrument ?? '-'}: ${text}`,
  );
const ofInstrument = (overrides: Parameters<typeof instrument>[0], raisedAt?: number) =>
  found(facts({ instruments: [instrument(overrides)] }), raisedAt);
const withGate = (gate: LimiterState, answered = true) => facts({ notebook: { ...facts().notebook, gate, answered } });
const down = (failure: string): LimiterState => ({
  kind: 'down',
  since: NOW,
  probeAt: NOW,
  failure,
  reason: 'the server says why',
});

test('nothing is found in a healthy daemon', () => {
  expect(found(facts())).toEqual([]);
});

test('silence is found after the configured time, but not for a missing folder or a stopped instrument', () => {
  const silence = { afterMs: 24 * HOUR, days: EVERY_DAY };
  const quietSince = NOW - 24 * HOUR;
  expect(ofInstrument({ silence, quietSince: quietSince + 1 })).toEqual([]);
  expect(ofInstrument({ silence, quietSince })).toEqual([
    expect.stringMatching(
      /^silence nanodrop: nanodrop: no file has arrived for more than 24 hours \(since 2026-01-0\d \d\d:00\)$/,
    ),
  ]);
  expect(ofInstrument({ silence, quietSince: undefined })).toEqual(['silence unknown']);
  expect(ofInstrument({ silence, quietSince, live: { line: 'stopped' } })).toEqual(['silence unknown']);
  expect(ofInstrument({ silence, quietSince, live: { folder: { state: 'missing' } } })).toContain('silence unknown');
});

test('without the database of its fleet, nothing is said about the notebook', () => {
  const given = { ...withGate(down('server')), database: 'connect ECONNREFUSED' };
  expect(found(given)).toEqual([
    'outage -: the database of the fleet is unavailable (new files are recorded and sent later): connect ECONNREFUSED',
    'auth unknown',
    // A halt is neither found nor over.
    'held unknown',
  ]);
});

test('an operation that was set aside is found; unknown while the copy of the fleet is loaded', () => {
  const setAside = { member: 'pc1', number: 7, reason: 'no such column', isGrowth: false };
  expect(found(facts({ setAside }))).toEqual([
    expect.stringMatching(/^operation -: operation 7 of pc1 cannot be applied and was set aside.*: no such column\./),
  ]);
  expect(found(facts({ setAside: 'unknown' }))).toEqual(['operation unknown']);
  expect(examine(facts({ setAside: { ...setAside, isGrowth: true } }), () => undefined)).toMatchObject([
    { kind: 'operation', graceMs: 180_000 },
  ]);
});

test('unmatched files are found on the third occasion', () => {
  const unmatched = { files: 9, example: '/data/x.txt' };
  const on = (occasions: number, raisedAt?: number, lastFileAt = NOW - HOUR) =>
    ofInstrument(
      { live: { unmatched, lastFileAt }, unmatchedArrivals: { occasions, example: '/data/y.txt' } },
      raisedAt,
    );
  expect(on(2)).toEqual(['unmatched unknown']);
  expect(on(3)).toEqual([expect.stringContaining('files are arriving, but `files` matches none of them')]);
  expect(on(3)[0]).toContain('/data/y.txt');
  // Raised before a restart, which resets the count: the alarm stays until a matching file arrives.
  expect(on(0, NOW - 10)).toEqual(['unmatched unknown']);
  expect(on(0, NOW - 10, NOW - 5)).toEqual([]);
});

test('a file that cannot be read is found after a minute, with the reason and what to do', () => {
  const first = [{ path: '/data/a.csv', since: NOW, reason: '/data/a.csv: locked\n  → run: chmod o+r' }];
  const [finding] = examine(
    facts({ instruments: [instrument({ live: { unreadable: { files: 3, first } } })] }),
    () => 0,
  );
  expect(finding).toEqual({
    ...{ kind: 'unreadable', instrument: 'nanodrop', graceMs: 60_000 },
    text: 'nanodrop: a.csv (and 2 more) cannot be read: locked\n  → run: chmod o+r',
  });
});

test('a file that has waited for more than a day is found, and stays found after a restart while files wait', () => {
  const reason = 'it has kept changing for more than a day\n  → set `run: growing`';
  const stuck = { files: 2, first: [{ path: '/data/a.log', since: 0, reason }] };
  expect(ofInstrument({ live: { stuck } })).toEqual([
    `stuck nanodrop: nanodrop: a.log (and 1 more) cannot be filed: ${reason}`,
  ]);
  const waiting = { files: 1, first: [], unreadable: 0 };
  expect(ofInstrument({ live: { waiting } }, NOW - HOUR)).toContain('stuck unknown');
  expect(ofInstrument({ live: { waiting } })).toEqual([]);
  expect(ofInstrument({}, NOW - HOUR)).not.toContain('stuck unknown');
});

test('files that could not be moved or deleted are found, with one of them and the reason', () => {
  const sources = { files: 2, path: '/data/a.csv', reason: 'cannot move it (ENOSPC)' };
  expect(found(facts({ sources }))).toEqual([
    'source -: 2 filed files are neither moved nor deleted; for example a.csv: cannot move it (ENOSPC)',
  ]);
  expect(found(facts({ sources: { ...sources, files: 1, reason: undefined } }))).toEqual([
    expect.stringMatching(/1 filed file is .*a\.csv: it still has the private name/),
  ]);
  expect(found(facts({ strays: ['/data/.labfeed-0123abcd-b.csv'] }))).toEqual([
    expect.stringMatching(
      /^source -: 1 file has a name that labfeed gave with another journal, such as .*-b\.csv\. If/,
    ),
  ]);
});

test('a folder that has not been checked is unknown, and a missing one is found with the reason', () => {
  expect(ofInstrument({ live: { folder: { state: 'unknown' } } })).toEqual(['folder unknown']);
  expect(ofInstrument({ live: { folder: { state: 'missing', reason: 'it does not exist' } } })).toEqual([
    'folder nanodrop: nanodrop: the folder /data/nanodrop is missing: it does not exist',
  ]);
});

test('a run that is open for too long is one finding, with its state and what it waits for', () => {
  const overdue = { run: 17, instrument: 'nanodrop', path: '/data/a.tsv', state: 'sending', since: NOW - 2 * HOUR };
  expect(found(facts({ overdue: { ...overdue, reason: 'no answer' } }))).toEqual([
    expect.stringMatching(
      /^overdue -: run 17 of nanodrop \(a\.tsv\) has not been filed for more than an hour \(since .*\); it is sending: no answer$/,
    ),
  ]);
  expect(found(facts({ overdue: { ...overdue, reason: undefined } }))[0]).toMatch(/waits for its turn$/);
});

test('a raw file that is not attached for too long is one finding, with what it waits for and what to do', () => {
  const run = { run: 17, instrument: 'nanodrop', path: '/data/a.tsv', state: 'done', since: NOW - 2 * HOUR };
  const late = (server: string, instrument = 'nanodrop') =>
    found(facts({ overdue: { ...run, instrument, reason: undefined, upload: { file: 'a.tsv', server } } }))[0];
  expect(late('https://eln.example.org')).toMatch(
    /^overdue -: the raw file a\.tsv of run 17 of nanodrop has not been attached for more than an hour \(since .*\): it waits for its turn$/,
  );
  expect(late('https://old.example.org')).toMatch(
    /: the run was filed at https:\/\/old\.example\.org, which is not the configured notebook; set `notebook\.url` back/,
  );
  expect(late('https://eln.example.org', 'retired')).toMatch(/: retired is not in the configuration.*`attach: never`/);
});

test('a full spool is one finding, with what happens then and what to do', () => {
  const spool = { bytes: 9.9e9, maxBytes: 1e10 };
  expect(found(facts({ spool: { ...spool, shortage: 'limit' } }))).toEqual([
    'spool -: the copies of raw files take 9.9 GB of 10.0 GB (`spool`): new files are attached from their folder, if they are still there. See in `labfeed status` why files wait, or raise `spool`',
  ]);
  expect(found(facts({ spool: { ...spool, shortage: 'disk' } }))[0]).toMatch(/too little space.*make space$/);
});

test('quarantined runs are one finding, with their number and the latest reason', () => {
  const path = '/data/nanodrop/run-17.tsv';
  const newest = { path, reason: `${path}:3: 1,234 can be read in two ways` };
  expect(ofInstrument({ quarantined: { runs: 1000, ...newest } })).toEqual([
    'quarantine nanodrop: nanodrop: 1,000 runs are quarantined; the latest is run-17.tsv: line 3: 1,234 can be read in two ways',
  ]);
});

test('held runs and a held backlog are one finding, and a halt is another', () => {
  const held = { runs: 1, path: '/data/a.tsv', reason: 'somebody changed it' };
  expect(ofInstrument({ asked: 80, held })).toEqual([
    expect.stringMatching(/^held nanodrop: nanodrop: 80 existing files need .*\. 1 run needs .* somebody changed it$/),
  ]);
  expect(found(withGate({ kind: 'halted', reason: 'it was set back' }))).toEqual([
    'held -: nothing is sent to https://eln.example.org: it was set back',
    'auth unknown',
    'outage unknown',
  ]);
});

test('a refused API key and an outage are different conditions', () => {
  expect(found(withGate(down('auth')))).toEqual([expect.stringMatching(/^auth -: .*rejects the API key.* why$/)]);
  expect(found(withGate(down('server')))).toEqual([
    expect.stringMatching(/^outage -: the notebook is unavailable.* why$/),
    'auth unknown',
  ]);
  expect(examine(withGate(down('server')), () => undefined)[0]?.graceMs).toBeGreaterThanOrEqual(60_000);
});

test('an open limiter proves nothing before the first answer', () => {
  expect(found(withGate({ kind: 'open', perSecond: 10 }, false))).toEqual(['auth unknown', 'outage unknown']);
  expect(found(withGate({ kind: 'slow start', perSecond: 1 }))).toEqual([]);
});

test('configuration errors are found with their location and the instrument they stop', () => {
  const problem = { at: 'labfeed.yaml:10:5', message: 'unknown key "pars"', hint: undefined };
  const mine = { ...problem, instrument: 'nanodrop' };
  expect(found(facts({ problems: [mine, mine] }))).toEqual([
    'configuration nanodrop: nanodrop is stopped by a configuration error, and its files are waiting: labfeed.yaml:10:5: unknown key "pars" (and 1 more)',
  ]);
  const general = { ...problem, instrument: undefined };
  expect(found(facts({ problems: [general] }))).toEqual([
    'configuration -: the configuration has an error: labfeed.yaml:10:5: unknown key "pars"',
  ]);
  expect(found(facts({ refused: { at: NOW, problems: [mine] } }))).toEqual([
    'configuration -: the new configuration was rejected; the previous one stays in effect: labfeed.yaml:10:5: unknown key "pars"',
  ]);
});

test('a status page that cannot be served is found', () => {
  expect(found(facts({ page: 'the port 7780 is taken' }))).toEqual(['configuration -: the port 7780 is taken']);
});

test('a journal that cannot be written is found with the reason', () => {
  expect(found(facts({ journal: 'database or disk is full' }))).toEqual([
    expect.stringContaining('journal -: cannot write the journal: database or disk is full'),
  ]);
});

describe('time without files', () => {
  const ZURICH = 'Europe/Zurich';
  const WORKDAYS = new Set([1, 2, 3, 4, 5]);

  /** Whether 24 hours on these days have passed between two times. */
  const after24h = (days: ReadonlySet<number>, from: string, to: string): boolean =>
    isSilent({ afterMs: 24 * HOUR, days }, Date.parse(from), Date.parse(to), ZURICH);

  test('all time counts by default', () => {
    expect(after24h(EVERY_DAY, '2026-01-03T12:00:00+01:00', '2026-01-04T11:59:59+01:00')).toBe(false);
    expect(after24h(EVERY_DAY, '2026-01-03T12:00:00+01:00', '2026-01-04T12:00:00+01:00')).toBe(true);
  });

  test('a weekend does not count if days are mon-fri', () => {
    const friday = '2026-01-02T18:00:00+01:00';
    expect(after24h(WORKDAYS, friday, '2026-01-05T17:59:59+01:00')).toBe(false);
    expect(after24h(WORKDAYS, friday, '2026-01-05T18:00:00+01:00')).toBe(true);
  });

  test('days are local days, not UTC days', () => {
    // 23:30 UTC on Sunday is 00:30 on Monday in Zurich.
    const days = new Set([1]);
    const from = Date.parse('2026-01-04T23:30:00Z');
    expect(isSilent({ afterMs: HOUR, days }, from, from + HOUR, ZURICH)).toBe(true);
    expect(isSilent({ afterMs: HOUR, days }, from, from + HOUR, 'UTC')).toBe(false);
  });

  test('a day of 23 hours counts as 23 hours', () => {
    const sunday = new Set([7]);
    const from = Date.parse('2026-03-29T00:00:00+01:00');
    const silent = (afterMs: number) => isSilent({ afterMs, days: sunday }, from, from + 100 * HOUR, ZURICH);
    expect(silent(23 * HOUR)).toBe(true);
    expect(silent(23 * HOUR + 1)).toBe(false);
  });

  test('setting the clock back does not count as silence', () => {
    expect(after24h(EVERY_DAY, '2026-01-04T12:00:00Z', '2026-01-01T12:00:00Z')).toBe(false);
    expect(after24h(WORKDAYS, '1970-01-01T12:00:00Z', '2026-01-01T12:00:00Z')).toBe(true);
  });
});
