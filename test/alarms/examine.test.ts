import { expect, test } from 'vitest';
import { examine, type Facts } from '../../src/alarms/conditions.js';
import type { Weekday } from '../../src/config/schema.js';
import type { LimiterState } from '../../src/live.js';
import { facts, instrument, NOW } from './facts.js';

const HOUR = 3_600_000;
const EVERY_DAY = new Set<Weekday>([1, 2, 3, 4, 5, 6, 7]);

const found = (given: Facts, raisedAt?: number) =>
  examine(given, () => raisedAt).map(({ kind, instrument, verdict, text }) =>
    verdict === 'unsure' ? `${kind} unsure` : `${kind} ${instrument ?? '-'}: ${text}`,
  );
const ofInstrument = (overrides: Parameters<typeof instrument>[0], raisedAt?: number) =>
  found(facts({ instruments: [instrument(overrides)] }), raisedAt);
const withGate = (gate: LimiterState, answered = true) =>
  facts({ notebook: { ...facts().notebook, gate, answered } });
const down = (failure: string): LimiterState => ({
  kind: 'down',
  since: NOW,
  probeAt: NOW,
  failure,
  reason: 'the server says why',
});

test('where all is well, nothing is found', () => {
  expect(found(facts())).toEqual([]);
});

test('silence is told once it has lasted, but not of a folder that is gone or an instrument that is stopped', () => {
  const silence = { afterMs: 24 * HOUR, days: EVERY_DAY };
  const quietSince = NOW - 24 * HOUR;
  expect(ofInstrument({ silence, quietSince: quietSince + 1 })).toEqual([]);
  expect(ofInstrument({ silence, quietSince })).toEqual([
    expect.stringMatching(
      /^silence nanodrop: nanodrop: no file has come since 2026-01-0\d \d\d:00, .* 24 hours$/,
    ),
  ]);
  expect(ofInstrument({ silence, quietSince: undefined })).toEqual(['silence unsure']);
  expect(ofInstrument({ silence, quietSince, live: { line: 'stopped' } })).toEqual(['silence unsure']);
  expect(ofInstrument({ silence, quietSince, live: { folder: { state: 'missing' } } })).toContain(
    'silence unsure',
  );
});

test('files that none of the globs fit are told on the third occasion', () => {
  const unmatched = { files: 9, example: '/data/x.txt' };
  const on = (occasions: number, raisedAt?: number, lastFileAt = NOW - HOUR) =>
    ofInstrument(
      { live: { unmatched, lastFileAt }, unmatchedArrivals: { occasions, example: '/data/y.txt' } },
      raisedAt,
    );
  expect(on(2)).toEqual(['unmatched unsure']);
  expect(on(3)).toEqual([expect.stringContaining('files arrive, but none is taken')]);
  expect(on(3)[0]).toContain('/data/y.txt');
  // Raised before a restart, which starts to count anew: it stands until a file comes that fits.
  expect(on(0, NOW - 10)).toEqual(['unmatched unsure']);
  expect(on(0, NOW - 10, NOW - 5)).toEqual([]);
});

test('a folder that was not looked for yet says nothing; one that is gone is told with its reason', () => {
  expect(ofInstrument({ live: { folder: { state: 'unknown' } } })).toEqual(['folder unsure']);
  expect(ofInstrument({ live: { folder: { state: 'missing', reason: 'it does not exist' } } })).toEqual([
    'folder nanodrop: nanodrop: the folder /data/nanodrop is missing: it does not exist',
  ]);
});

test('quarantined runs are one finding, with their number and the newest reason', () => {
  const path = '/data/nanodrop/run-17.tsv';
  const newest = { path, reason: `${path}:3: 1,234 can be read in two ways` };
  expect(ofInstrument({ quarantined: { runs: 1000, ...newest } })).toEqual([
    'quarantine nanodrop: nanodrop: 1000 runs are quarantined; the newest is run-17.tsv: line 3: 1,234 can be read in two ways',
  ]);
});

test('held runs and the question of old files are told together; a journal to be recovered on its own', () => {
  const held = { runs: 1, path: '/data/a.tsv', reason: 'somebody changed it' };
  expect(ofInstrument({ asked: 80, held })).toEqual([
    expect.stringMatching(
      /^held nanodrop: nanodrop: 80 old files wait .*\. a run waits .* somebody changed it$/,
    ),
  ]);
  expect(found(facts({ notebook: { ...facts().notebook, halted: 'it was set back' } }))).toEqual([
    'held -: nothing is sent to https://eln.example.org: it was set back',
  ]);
});

test('a refused key and a notebook that is away are two things', () => {
  expect(found(withGate(down('auth')))).toEqual([expect.stringMatching(/^auth -: .*refuses the key.* why$/)]);
  expect(found(withGate(down('server')))).toEqual([
    expect.stringMatching(/^outage -: the notebook is away.* why$/),
    'auth unsure',
  ]);
  expect(examine(withGate(down('server')), () => undefined)[0]?.graceMs).toBeGreaterThanOrEqual(60_000);
});

test('an open gate through which nothing went proves nothing', () => {
  expect(found(withGate({ kind: 'open', perSecond: 10 }, false))).toEqual(['auth unsure', 'outage unsure']);
  expect(found(withGate({ kind: 'slow start', perSecond: 1 }))).toEqual([]);
});

test('mistakes of the configuration stop the instrument that they are in, and are told with their place', () => {
  const problem = { at: 'labfeed.yaml:10:5', message: 'unknown key "pars"', hint: undefined };
  const mine = { ...problem, instrument: 'nanodrop' };
  expect(found(facts({ problems: [mine, mine] }))).toEqual([
    'configuration nanodrop: nanodrop is stopped by its configuration, its files wait: labfeed.yaml:10:5: unknown key "pars" (and 1 more)',
  ]);
  const general = { ...problem, instrument: undefined };
  expect(found(facts({ problems: [general] }))).toEqual([
    'configuration -: the configuration has a mistake: labfeed.yaml:10:5: unknown key "pars"',
  ]);
  expect(found(facts({ refused: { at: NOW, problems: [mine] } }))).toEqual([
    'configuration -: the new configuration is refused, the old one goes on: labfeed.yaml:10:5: unknown key "pars"',
  ]);
});

test('a status page that cannot be served is told', () => {
  expect(found(facts({ page: 'the port 7780 is taken' }))).toEqual([
    'configuration -: the port 7780 is taken',
  ]);
});

test('a journal that cannot be written is told with the reason', () => {
  expect(found(facts({ journal: 'database or disk is full' }))).toEqual([
    expect.stringContaining('journal -: the journal cannot be written: database or disk is full'),
  ]);
});
