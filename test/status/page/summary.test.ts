import { expect, test } from 'vitest';
import { splitHint } from '../../../src/errors.js';
import type { LimiterState } from '../../../src/live.js';
import type { PageState } from '../../../src/status/api.js';
import { parseRoute, runsHref } from '../../../src/status/page/route.js';
import {
  conditionOf,
  describeNotebook,
  fileName,
  healthOf,
  instrumentsOf,
  runsByDay,
} from '../../../src/status/page/summary.js';
import { someFolder, someMember, someSummary } from '../../support/page-states.js';
import { NO_RUNS, someInstrument, someLive } from '../../support/status-server.js';

const NOW = new Date(2026, 2, 4, 14, 30).getTime();
const MINUTE = 60_000;

const stateOf = (changes: Partial<PageState> = {}): PageState => ({
  at: NOW,
  version: '1.2.3',
  live: someLive({ instruments: [someInstrument('balance')] }),
  overview: { instruments: [], servers: [] },
  attention: [],
  attentionCount: 0,
  ...changes,
});

const withRuns = (runs: Partial<typeof NO_RUNS>, changes: Parameters<typeof someSummary>[1] = {}) => ({
  servers: [],
  instruments: [someSummary('balance', { runs: { ...NO_RUNS, ...runs }, ...changes })],
});

const down = (failure: string): LimiterState => ({
  kind: 'down',
  since: NOW - 12 * MINUTE,
  probeAt: NOW + 10_000,
  failure,
  reason: 'no answer',
});

const withGate = (gate: LimiterState) =>
  someLive({
    notebook: { url: 'https://eln.example.org', gate, requests: [] },
    instruments: [someInstrument('balance')],
  });

test('the sentence at the top summarises the state', () => {
  const sentenceOf = (changes: Partial<PageState>) => healthOf(stateOf(changes), NOW).sentence;
  expect(sentenceOf({ live: someLive() })).toBe('No instruments configured yet');
  expect(sentenceOf({})).toBe('All good: watching 1 folder, no runs yet');
  expect(sentenceOf({ overview: withRuns({ done: 1312 }) })).toBe('All good: 1,312 runs filed, none waiting');
  expect(sentenceOf({ overview: withRuns({ done: 1, queued: 3, sending: 1 }) })).toBe(
    'All good: 1 run filed, 4 in progress',
  );
  const paused = withGate({ kind: 'held', until: NOW + 1000, reason: 'too many requests' });
  expect(sentenceOf({ live: paused, overview: withRuns({ done: 1, sending: 1 }) })).toBe(
    'All good: 1 run filed, 1 waiting',
  );
  expect(sentenceOf({ overview: withRuns({ held: 3 }), attentionCount: 3 })).toBe('3 runs need a decision');
  expect(sentenceOf({ overview: withRuns({}, { asked: 60 }) })).toBe('1 backlog needs a decision');
  expect(sentenceOf({ overview: withRuns({ held: 1 }, { asked: 60 }), attentionCount: 1 })).toBe(
    '1 run and 1 backlog need a decision',
  );
  expect(sentenceOf({ live: withGate(down('server')), overview: withRuns({ queued: 40 }) })).toBe(
    'The notebook has been unavailable for 12 minutes; 40 runs are waiting, nothing is lost',
  );
  expect(sentenceOf({ live: withGate(down('auth')) })).toBe('The notebook rejects the API key; no runs are waiting');
  const halted = [{ url: 'https://eln.example.org', halted: 'the journal is older than the notebook' }];
  expect(sentenceOf({ overview: { instruments: [], servers: halted } })).toBe(
    'Sending is halted until you run labfeed recover: the journal is older than the notebook',
  );
});

test('the worst problem comes first, and no problem is left out', () => {
  const live = someLive({
    instruments: [someInstrument('balance', { line: 'stopped' })],
    alarms: [
      { kind: 'silence', instrument: 'hplc', since: 1, text: 'hplc is silent' },
      { kind: 'quarantine', instrument: 'hplc', since: 1, text: 'shown in the list of runs' },
    ],
  });
  expect(healthOf(stateOf({ live, attentionCount: 1, overview: withRuns({ quarantined: 1 }) }), NOW)).toEqual({
    tone: 'error',
    sentence: 'balance is stopped by a configuration error',
    others: ['1 run needs a decision', 'hplc is silent'],
  });
});

test('the notebook panel says why runs wait, and until when', () => {
  const describe = (gate: LimiterState) => describeNotebook(gate, NOW).join(' ');
  expect(describe({ kind: 'open', perSecond: 10 })).toBe(
    'The notebook is available. Runs are filed as soon as their files are complete.',
  );
  expect(describe({ kind: 'slowed', perSecond: 0.5 })).toContain('one request every 2 seconds');
  expect(describe({ kind: 'slow start', perSecond: 1 })).toContain('labfeed now sends 1 request per second');
  expect(describe({ kind: 'held', until: NOW + MINUTE, reason: 'it answered 429' })).toBe(
    'The notebook asked for a pause until 14:31:00. It answered 429.',
  );
  expect(describe({ kind: 'halted', reason: 'the server was restored' })).toMatch(
    /^Nothing is sent .*labfeed recover\.$/,
  );
  expect(describe(down('server'))).toContain('unavailable for 12 minutes. No answer. Next attempt at 14:30:10.');
  expect(describe(down('auth'))).toContain('A new key in the same place is used automatically.');
});

test('a reason is separated from its hints', () => {
  expect(splitHint('/srv/a.csv:7:4: two ways\n  → say which\n  → or skip it')).toEqual({
    what: '/srv/a.csv:7:4: two ways',
    hint: 'say which\nor skip it',
  });
  expect(splitHint('no rows')).toEqual({ what: 'no rows', hint: undefined });
  expect(['/srv/a.csv', 'C:\\data\\a.csv', 'a.csv'].map(fileName)).toEqual(['a.csv', 'a.csv', 'a.csv']);
});

test('instruments are listed as configured, then those that only the journal knows', () => {
  const live = someLive({
    instruments: [someInstrument('hplc'), someInstrument('balance')],
    alarms: [
      { kind: 'silence', instrument: 'hplc', since: 1, text: 'hplc is silent' },
      { kind: 'held', instrument: 'hplc', since: 1, text: 'shown in the list of runs' },
    ],
  });
  const overview = { servers: [], instruments: [someSummary('balance'), someSummary('retired')] };
  const found = instrumentsOf(stateOf({ live, overview }));
  expect(found.map(({ name, live, summary, alarms }) => [name, !!live, !!summary, alarms.length])).toEqual([
    ['hplc', true, false, 1],
    ['balance', true, true, 0],
    ['retired', false, true, 0],
  ]);
});

test('runs are counted per local day, ending today', () => {
  const hour = (at: number) => Math.floor(at / 3_600_000);
  const days = runsByDay(
    [
      { hour: hour(NOW - 40 * 86_400_000), runs: 9 },
      { hour: hour(NOW - 86_400_000), runs: 2 },
      { hour: hour(NOW) - 1, runs: 3 },
      { hour: hour(NOW), runs: 4 },
    ],
    NOW,
  );
  expect(days).toHaveLength(30);
  expect(days.slice(-2)).toEqual([
    { day: '2026-03-03', runs: 2 },
    { day: '2026-03-04', runs: 7 },
  ]);
  expect(days.slice(0, -2).every(({ runs }) => runs === 0)).toBe(true);
});

test('an address leads to its view, and an unknown one to the overview', () => {
  const href = runsHref({ state: 'held', instrument: 'a&b=c', before: 17 });
  expect(parseRoute(href)).toEqual({ view: 'runs', state: 'held', instrument: 'a&b=c', before: 17 });
  expect(parseRoute('#/runs/17')).toEqual({ view: 'run', id: 17 });
  expect(parseRoute('#/runs?before=x')).toMatchObject({ view: 'runs', before: undefined });
  for (const other of ['', '#', '#/runs/x', '#main']) expect(parseRoute(other)).toEqual({ view: 'overview' });
});

test('the instruments of all machines of a fleet are listed, and one that is away is never well', () => {
  const here = { isAway: false, alarms: [], folders: [someFolder('hplc')] };
  const stateWith = (...members: ReturnType<typeof someMember>[]) => {
    const fleet = { name: 'pc1', delivers: false, trouble: undefined, kept: 0, members };
    return stateOf({ live: someLive({ instruments: [someInstrument('balance')], fleet }) });
  };
  const conditionsIn = (state: PageState) => instrumentsOf(state).map((one) => [one.name, conditionOf(one)] as const);
  const conditions = (...members: ReturnType<typeof someMember>[]) =>
    Object.fromEntries(conditionsIn(stateWith(...members)).map(([name, { tone, text }]) => [name, `${tone}: ${text}`]));
  const [two, three] = [someMember('pc2', here), someMember('pc3', here)];
  const away = someMember('pc4', { ...here, isAway: true });
  expect(conditions(two)).toEqual({ balance: 'ok: watching', hplc: 'ok: watching' });
  expect(conditions(two, three)['hplc']).toBe('ok: watching on 2 machines');
  expect(conditions(two, away)['hplc']).toBe('warning: watching on 1 of 2 machines');
  expect(conditions(away)['hplc']).toBe('warning: its machine is away');
  const missing = someMember('pc5', { ...here, folders: [someFolder('balance', { state: 'missing' })] });
  expect(conditions(missing)['balance']).toBe('error: folder missing on pc5');
  // What the other machine says, and that one is away, is in the sentence at the top.
  expect(healthOf(stateWith(two, three), NOW).sentence).toBe('All good: watching 3 folders, no runs yet');
  expect(healthOf(stateWith(two, away), NOW)).toMatchObject({
    tone: 'warning',
    sentence: '1 of 2 machines is away: pc4',
  });
  const silent = { kind: 'silence', instrument: 'hplc', text: 'hplc: no file' };
  const both = [someMember('pc2', { ...here, alarms: [silent] }), someMember('pc3', { ...here, alarms: [silent] })];
  expect(healthOf(stateWith(...both), NOW).sentence).toBe('pc2, pc3: hplc: no file');
});
