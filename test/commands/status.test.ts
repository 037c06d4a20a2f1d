import { expect, test } from 'vitest';
import { needsAttention, type Status, statusAsText } from '../../src/commands/status.js';
import type { InstrumentSummary } from '../../src/journal/reader.js';
import type { LiveMember } from '../../src/live.js';
import { RUN_STATES, type RunState } from '../../src/model.js';
import { someLive } from '../support/live.js';
import { someFolder, someMember } from '../support/page-states.js';

const NONE = Object.fromEntries(RUN_STATES.map((state) => [state, 0])) as Record<RunState, number>;
const NOW = Date.now();

const summary = (name: string, runs: Partial<Record<RunState, number>>, asked = 0): InstrumentSummary => ({
  name,
  runs: { ...NONE, ...runs },
  last: undefined,
  asked,
  hours: [],
  oldestAt: (runs.queued ?? 0) > 0 ? NOW - 300_000 : undefined,
});

const status = (changes: Partial<Status> = {}): Status => ({
  at: NOW,
  journal: '/var/lib/labfeed/journal.db',
  running: true,
  problems: [],
  live: someLive(),
  notebook: 'https://eln.example.org',
  listed: ['balance'],
  overview: { instruments: [summary('balance', { done: 7 })], servers: [], uploads: [], growing: [] },
  usable: ['balance'],
  isWatcher: false,
  ...changes,
});

test('a healthy daemon needs only a few lines', () => {
  const text = statusAsText(status(), 80);
  expect(text).toMatch(/^daemon +running since .*pid/m);
  expect(text).toContain('notebook  https://eln.example.org: accepts requests, at most 10/s');
  expect(text).toContain('queue     empty');
  expect(text).toMatch(/^INSTRUMENT +WAITING +DONE +LAST FILE +FOLDER$/m);
  expect(text).toMatch(/^balance +1 +7 +- +\/srv\/balance$/m);
  expect(text).not.toMatch(/needs attention|alarms|mistakes/);
});

test('a stopped daemon is reported first, and its last status is not shown as current', () => {
  const text = statusAsText(status({ running: false }), 80);
  expect(text).toMatch(/^daemon +not running; it stopped unexpectedly \(last report /);
  expect(text).toContain('the daemon is not running → systemctl start labfeed, or labfeed run');
  expect(text).not.toMatch(/accepts requests|WAITING/);
});

test('a file that has waited for more than a day needs attention', () => {
  const [instrument] = someLive().instruments;
  const stuck = { files: 1, first: [{ path: '/srv/balance/a.log', since: 0, reason: 'it keeps changing' }] };
  const live = someLive({ instruments: instrument ? [{ ...instrument, stuck }] : [] });
  expect(needsAttention(status({ live }))).toEqual([
    {
      instrument: 'balance',
      text: 'balance: 1 file has been waiting for more than a day, such as /srv/balance/a.log',
      command: 'labfeed why /srv/balance/a.log',
    },
  ]);
});

test('everything that needs attention is shown with the command to run next', () => {
  const overview = {
    instruments: [summary('pH meter', { quarantined: 1, held: 2, queued: 3 }), summary('logger', {}, 120)],
    servers: [{ url: 'https://eln.example.org', dialect: undefined, halted: 'the journal is older', spares: [] }],
    uploads: [],
    growing: [],
  };
  expect(needsAttention(status({ overview })).map(({ text, command }) => `${text}: ${command}`)).toEqual([
    'nothing is sent: the journal is older: labfeed recover',
    "pH meter: 1 run quarantined: labfeed jobs --state quarantined --instrument 'pH meter'",
    "pH meter: 2 runs held: labfeed jobs --state held --instrument 'pH meter'",
    'logger: a backlog of 120 files needs a decision: labfeed backfill logger',
  ]);
  const text = statusAsText(status({ overview }), 80);
  expect(text).toMatch(/^queue +3 runs, oldest from .*5 minutes ago/m);
  expect(text).toMatch(/^pH meter +0 +3 +0 +1 +2 .*not in the con/m);
});

test('empty experiments that the next runs use are mentioned', () => {
  const server = { url: 'https://eln.example.org', dialect: undefined, halted: undefined, spares: [41, 43] };
  const text = statusAsText(status({ overview: { instruments: [], servers: [server], uploads: [], growing: [] } }), 80);
  expect(text).toMatch(/^spares +2 empty experiments created by labfeed, to be used by the next runs: 41, 43$/m);
});

test('alarms, configuration errors, a missing folder and a notebook that is down are shown', () => {
  const [line] = someLive().instruments;
  if (!line) throw new Error('no instrument');
  const live = someLive({
    notebook: {
      url: 'https://eln.example.org',
      gate: { kind: 'down', since: NOW, probeAt: NOW + 12_000, failure: 'server', reason: 'no answer' },
      requests: [],
    },
    alarms: [{ kind: 'silence', instrument: 'balance', since: NOW, text: 'no file for a day' }],
    problems: [{ at: 'labfeed.yaml:3:1', message: 'unknown key', hint: 'remove it', instrument: 'x' }],
    refused: {
      at: NOW,
      problems: [{ at: 'b.yaml:1:1', message: 'empty', hint: undefined, instrument: 'y' }],
    },
    instruments: [{ ...line, folder: { state: 'missing', reason: 'not mounted' } }],
  });
  const text = statusAsText(status({ live }), Number.POSITIVE_INFINITY);
  expect(text).toMatch(/^notebook .*: unavailable since .*, next attempt in 12 seconds: no answer$/m);
  expect(text).toContain('/srv/balance is missing: not mounted');
  expect(text).toMatch(/^alarms\n {2}since .*: no file for a day$/m);
  expect(text).toMatch(/^configuration errors\n {2}labfeed\.yaml:3:1: unknown key\n {4}→ remove it\n/m);
  expect(text).toMatch(/the reload at .* was rejected:\n {2}b\.yaml:1:1: empty$/m);
});

test('a halt is shown once, with its reason and the command that ends it, and nothing says that all is well', () => {
  const url = 'https://eln.example.org';
  const halted = 'the journal is older than the notebook';
  const live = someLive({
    notebook: { url, gate: { kind: 'halted', reason: halted }, requests: [] },
    alarms: [{ kind: 'held', instrument: undefined, since: NOW, text: `nothing is sent to ${url}: ${halted}` }],
  });
  const overview = {
    instruments: [],
    servers: [{ url, dialect: undefined, halted, spares: [] }],
    uploads: [],
    growing: [],
  };
  const text = statusAsText(status({ live, overview }), Number.POSITIVE_INFINITY);
  expect(text).toMatch(/^notebook .*: halted, nothing is sent \(see below\)$/m);
  expect(text.split(halted)).toHaveLength(2);
  expect(text).toContain(`nothing is sent: ${halted} → labfeed recover`);
  expect(text).not.toContain('accepts requests');
});

test('without a daemon, errors in the current configuration are shown, and check is suggested before start', () => {
  const mistake = {
    at: '/etc/labfeed/config.yaml:3:5',
    message: 'unknown key "rat"',
    hint: undefined,
    instrument: undefined,
  };
  const text = statusAsText(status({ running: false, live: undefined, problems: [mistake] }), 80);
  expect(text).toContain('configuration errors\n  /etc/labfeed/config.yaml:3:5: unknown key "rat"');
  expect(text).toContain('the daemon is not running → labfeed check, then systemctl start labfeed, or labfeed run');
});

test('raw files that wait to be attached are shown, with what keeps them and what to do', () => {
  const waiting = { server: 'https://eln.example.org', files: 2, bytes: 3_000_000, since: NOW - 7_200_000 };
  const uploads = [
    { ...waiting, instrument: 'balance' },
    { ...waiting, instrument: 'balance', server: 'https://old.example.org', files: 1 },
    { ...waiting, instrument: 'retired' },
  ];
  const overview = { instruments: [], servers: [], uploads, growing: [] };
  const live = someLive({ spool: { bytes: 9_000_000, maxBytes: 10_000_000_000 } });
  const text = statusAsText(status({ overview, live }), 80);
  expect(text).toMatch(
    /^uploads +5 raw files \(9\.0 MB\) to be attached, oldest from .* \(2 hours ago\); copies take 9\.0 MB of 10\.0 GB$/m,
  );
  expect(needsAttention(status({ overview })).map((one) => one.text)).toEqual([
    'balance: 1 raw file waits to be attached: the run was filed at https://old.example.org, which is not the configured notebook',
    'retired: 2 raw files wait to be attached: retired is not in the configuration, or has an error there',
  ]);
});

test('machines that deliver with different addresses of the notebook need attention', () => {
  const needs = (...members: LiveMember[]) =>
    needsAttention(
      status({ live: someLive({ fleet: { name: 'pc1', delivers: true, trouble: undefined, kept: 0, members } }) }),
    ).filter(({ command }) => command.includes('notebook.url'));
  const machine = (name: string, notebook?: string, isAway = false) =>
    someMember(name, { notebook, isAway, alarms: [], folders: [] });
  const [one, two] = ['https://eln.example.org', 'https://eln.example.org:443'];
  expect(needs(machine('pc1', one), machine('pc2', one), machine('pc3'), machine('pc4', two, true))).toEqual([]);
  expect(needs(machine('pc1', one), machine('pc2', two), machine('pc3', one))).toEqual([
    {
      instrument: undefined,
      text: `the machines that deliver have different addresses of the notebook: ${one} (pc1, pc3) and ${two} (pc2)`,
      command: expect.stringContaining('set exactly the same `notebook.url` on all of them'),
    },
  ]);
});

test('every machine of the fleet is listed with what it last reported, and one that is away is called so', () => {
  const members = [
    someMember('pc1', { isAway: false, seenAt: NOW, skewMs: 0, waiting: 0, failures: 0, alarms: [], folders: [] }),
    someMember('pc2', {
      ...{ seenAt: NOW - 7_200_000, skewMs: -9000, failures: 0, version: '0.2.0' },
      alarms: [{ kind: 'silence', instrument: 'hplc', text: 'hplc: no file has arrived' }],
      folders: [
        someFolder('hplc', {
          ...{ lastFileAt: NOW - 90_000_000, silenceMs: 86_400_000, waiting: 1, asked: 60 },
          runs: { queued: 3, quarantined: 0, held: 1 },
        }),
      ],
    }),
    someMember('old', { isAway: false, folders: [someFolder('balance', { runs: null, lastFileAt: NOW })], alarms: [] }),
  ];
  const fleet = { name: 'pc1', delivers: false, trouble: undefined, kept: 0, members };
  const text = statusAsText(status({ live: someLive({ fleet }) }), 160);
  expect(text).toMatch(/^balance +1 +7 +\S+ \S+ +\/srv\/balance; on old$/m);
  expect(text).toMatch(/^hplc +1 +0 +.* on pc2 \(away\)$/m);
  expect(text).toContain(
    'pc2: watch, version 0.2.0, away, last seen 2 hours ago, its clock is 9 seconds behind, 3 runs queued, 2 operations waiting; it last reported:',
  );
  expect(text).toContain(
    'hplc: /srv/hplc, last file 25 hours ago, silent for more than 24 hours, 1 file not ready, 60 existing files need a decision, 3 runs queued, 1 run held',
  );
  expect(text).toContain('pc1: watch, version pc1, last seen just now, clock correct');
  expect(text).toMatch(/old: .*its version does not report silence, runs and backlogs/);
  expect(needsAttention(status({ live: someLive({ fleet }) }))).toContainEqual({
    instrument: 'hplc',
    text: 'hplc: a backlog of 60 files needs a decision on pc2, which is away',
    command: 'labfeed backfill hplc (on pc2)',
  });
  expect(text).toContain('no machine of the fleet delivers at present');
  const starting = { ...fleet, members: [] };
  expect(statusAsText(status({ live: someLive({ fleet: starting }) }), 160)).toContain('who delivers is not known yet');
  const away = { ...fleet, trouble: 'ECONNREFUSED', kept: 4, listedAt: NOW };
  expect(statusAsText(status({ live: someLive({ fleet: away }) }), 160)).toMatch(
    /who delivers is not known: the database of the fleet is away\n[\s\S]*pc1: the database is away \(ECONNREFUSED\); 4 operations kept here; the machines below are those of /,
  );
});
