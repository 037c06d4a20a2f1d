import { expect, test } from 'vitest';
import type { LiveGate } from '../../../src/live.js';
import type { PageState } from '../../../src/status/api.js';
import { gateInWords } from '../../../src/status/page/gate-words.js';
import { healthOf } from '../../../src/status/page/health.js';
import { inWords } from '../../../src/status/page/history-words.js';
import { readRoute, runsHash } from '../../../src/status/page/route.js';
import { runsByDay } from '../../../src/status/page/runs-by-day.js';
import { ago, bytes, duration, listed, splitReason, withinFile } from '../../../src/status/page/words.js';
import { NO_RUNS, someInstrument, someLive } from '../serving.js';
import { someSummary } from './states.js';

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

const down = (failure: string): LiveGate => ({
  kind: 'down',
  since: NOW - 12 * MINUTE,
  probeAt: NOW + 10_000,
  failure,
  reason: 'no answer',
});

const withGate = (gate: LiveGate) =>
  someLive({
    notebook: { url: 'https://eln.example.org', gate, requests: [] },
    instruments: [someInstrument('balance')],
  });

test('the sentence at the top says in plain words how it is', () => {
  const sentenceOf = (changes: Partial<PageState>) => healthOf(stateOf(changes), NOW).sentence;
  expect(sentenceOf({ live: someLive() })).toBe('Ready, but no instrument is configured yet');
  expect(sentenceOf({})).toBe('All is well: watching 1 folder, no runs yet');
  expect(sentenceOf({ overview: withRuns({ done: 1312 }) })).toBe(
    'All is well: 1,312 runs filed, none waiting',
  );
  expect(sentenceOf({ overview: withRuns({ done: 1, queued: 3, sending: 1 }) })).toBe(
    'All is well: 1 run filed, 4 on the way',
  );
  expect(sentenceOf({ overview: withRuns({ held: 3 }), attentionCount: 3 })).toBe('3 runs need you');
  expect(sentenceOf({ overview: withRuns({}, { asked: 60 }) })).toBe('1 question about old files needs you');
  expect(sentenceOf({ live: withGate(down('server')), overview: withRuns({ queued: 40 }) })).toBe(
    'The notebook has been away for 12 minutes; 40 runs wait, nothing is lost',
  );
  expect(sentenceOf({ live: withGate(down('auth')) })).toBe('The notebook refuses the key; no run waits');
});

test('the worst comes first, and nothing that is wrong is left out', () => {
  const live = someLive({
    instruments: [someInstrument('balance', { line: 'stopped' })],
    alarms: [
      { kind: 'silence', instrument: 'hplc', since: 1, text: 'hplc is silent' },
      { kind: 'quarantine', instrument: 'hplc', since: 1, text: 'told by the list of runs' },
    ],
  });
  expect(healthOf(stateOf({ live, attentionCount: 1, overview: withRuns({ quarantined: 1 }) }), NOW)).toEqual(
    {
      tone: 'broken',
      sentence: 'balance is stopped by a mistake in the configuration',
      also: ['1 run needs you', 'hplc is silent'],
    },
  );
});

test('the gate says why runs wait, and until when', () => {
  const inPlainWords = (gate: LiveGate) => Object.values(gateInWords(gate, NOW)).join(' ');
  expect(inPlainWords({ kind: 'open', perSecond: 10 })).toBe(
    'The notebook takes runs. At most 10 requests a second.',
  );
  expect(inPlainWords({ kind: 'slowed', perSecond: 0.5 })).toContain('a request every 2 seconds for now');
  expect(inPlainWords({ kind: 'held', until: NOW + MINUTE, reason: 'it answered 429' })).toBe(
    'The notebook asked for a pause until 14:31:00. It answered 429.',
  );
  expect(inPlainWords(down('server'))).toContain(
    'away for 12 minutes. No answer. The next attempt is at 14:30:10.',
  );
  expect(inPlainWords(down('auth'))).toContain('a new key in the same place is picked up by itself');
});

test('numbers and times are said as people say them', () => {
  expect([1000, 59_000, MINUTE, 119 * MINUTE, 50 * 60 * MINUTE].map(duration)).toEqual([
    '1 second',
    '59 seconds',
    '1 minute',
    '1 hour',
    '2 days',
  ]);
  expect([ago(NOW - 3000, NOW), ago(NOW - 5 * MINUTE, NOW), ago(NOW + 5000, NOW)]).toEqual([
    'just now',
    '5 minutes ago',
    'just now',
  ]);
  expect([1, 99_999, 250_000, 12_300_000].map(bytes)).toEqual([
    '1 byte',
    '99,999 bytes',
    '250.0 kB',
    '12.3 MB',
  ]);
  expect([listed(['a']), listed(['a', 'b', 'c'])]).toEqual(['a', 'a, b and c']);
});

test('a reason is told apart from what to do, and names the line rather than the path', () => {
  const { what, toDo } = splitReason('/srv/a.csv:7:4: two ways\n  → say which');
  expect([withinFile(what, '/srv/a.csv'), toDo]).toEqual(['line 7, column 4: two ways', 'say which']);
  expect(withinFile('/srv/a.csv: no rows', '/srv/a.csv')).toBe('no rows');
  expect(withinFile('/etc/other: no rows', '/srv/a.csv')).toBe('/etc/other: no rows');
});

test('runs are counted by the day of who looks, the last being today', () => {
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

test('an address leads back to what was looked at, and a wrong one to the overview', () => {
  const hash = runsHash({ state: 'held', instrument: 'a&b=c', before: 17 });
  expect(readRoute(hash)).toEqual({ view: 'runs', state: 'held', instrument: 'a&b=c', before: 17 });
  expect(readRoute('#/runs/17')).toEqual({ view: 'run', id: 17 });
  expect(readRoute('#/runs?before=x')).toMatchObject({ view: 'runs', before: undefined });
  for (const other of ['', '#', '#/runs/x', '#main']) expect(readRoute(other)).toEqual({ view: 'overview' });
});

test('what happened to a run is told in words, also an event that this page does not know', () => {
  expect(inWords({ at: 1, event: 'created', detail: { experiment: 7, found: true } })).toContain(
    'found again as experiment 7',
  );
  expect(inWords({ at: 1, event: 'finished' })).toBe('filed');
  expect(inWords({ at: 1, event: 'revised', detail: { from: 3 } })).toBe('revised: from 3');
});
