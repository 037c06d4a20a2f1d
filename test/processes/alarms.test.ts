import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { requireUsable } from '../../src/commands/options.js';
import { loadConfig } from '../../src/config/load.js';
import { createDaemon, type Daemon } from '../../src/daemon/daemon.js';
import { startDaemon, weighing } from '../support/daemon-process.js';
import { silentLog } from '../support/silent-log.js';
import { until } from '../support/until.js';
import { alarmScene } from './alarm-scene.js';

const LONG_MS = 60_000;

interface InProcess {
  readonly daemon: Daemon;
  forward(ms: number): void;
  /** Again and again: a grace period begins with the first check that finds the trouble. */
  forwardUntil(what: string, ms: number, holds: () => boolean): Promise<void>;
}

/** The daemon in this process, with a clock that can be advanced. */
async function startWithin(config: string): Promise<InProcess> {
  const loaded = loadConfig(config);
  requireUsable(loaded);
  let ahead = 0;
  const clock = {
    ...systemClock,
    now: () => Date.now() + ahead,
    monotonic: () => performance.now() + ahead,
  };
  const daemon = createDaemon({
    config: loaded,
    clock,
    log: silentLog(),
    conceal: () => undefined,
    isSecretIn: () => false,
  });
  onTestFinished(() => daemon.stop());
  await daemon.start();
  return {
    daemon,
    forward(ms) {
      ahead += ms;
    },
    async forwardUntil(what, ms, holds) {
      for (let n = 0; n < 20 && !holds(); n++) {
        ahead += ms;
        await until(what, holds, 3000).catch(() => undefined);
      }
      await until(what, holds);
    },
  };
}

const isRaised = (daemon: Daemon, kind: string): boolean => daemon.live().alarms.some((alarm) => alarm.kind === kind);

function unsent(journal: string): unknown {
  const database = new DatabaseSync(journal, { readOnly: true, timeout: 10_000 });
  try {
    return (database.prepare('SELECT count(*) AS notices FROM notices').get() as { notices: number }).notices;
  } finally {
    database.close();
  }
}

test('many quarantined files raise one alarm, which a restart does not repeat and reading them clears', async () => {
  const instruments = (decimal: string) =>
    `  balance: { watch: data/balance, ready: { quiet: 100ms }, parse: { delimiter: ";", ${decimal}table: {} } }`;
  const { site, webhook, commanded } = await alarmScene(instruments(''));
  const first = startDaemon(site.config);
  await first.logged('ready', LONG_MS);
  for (let n = 1; n <= 30; n += 1) site.drop(`w${n}.csv`, `Sample;Weight (mg)\nA;${n},234\nB;5,678\n`);
  await until('sent', () => webhook.messages.length > 0 && commanded().length > 0, LONG_MS);
  await until(
    'all quarantined',
    () => first.lines.filter(({ msg }) => msg === 'run quarantined').length === 30,
    LONG_MS,
  );
  // A notice that is being sent when labfeed stops is sent again.
  await until('sent, as the journal knows', () => unsent(site.journal) === 0, LONG_MS);
  await first.stop();
  expect(webhook.messages[0]).toMatchObject({
    state: 'raised',
    kind: 'quarantine',
    instrument: 'balance',
    text: expect.stringMatching(/^labfeed on .*: balance: .* quarantined; the latest is w\d+\.csv: line 2, column \d/),
  });

  const second = startDaemon(site.config);
  await second.logged('ready', LONG_MS);
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await second.stop();
  expect(webhook.received()).toEqual(['raised quarantine balance']);
  expect(commanded()).toEqual(['raised quarantine']);

  const fixed = readFileSync(site.config, 'utf8').replace('";", ', '";", decimal: ",", ');
  writeFileSync(site.config, fixed);
  const third = startDaemon(site.config);
  await until('cleared', () => webhook.messages.length > 1 && commanded().length > 1, LONG_MS);
  await third.stop();
  expect(webhook.received()).toEqual(['raised quarantine balance', 'over quarantine balance']);
  expect(commanded()).toEqual(['raised quarantine', 'over quarantine']);
  for (const { output } of [first, second, third]) expect(output()).not.toContain('TOPSECRET');
});

test('a webhook that was down receives the alarm later, although labfeed was killed in between', async () => {
  const { site, webhook, commanded } = await alarmScene();
  await webhook.stop();
  const first = startDaemon(site.config);
  await first.logged('ready', LONG_MS);
  site.drop('empty.csv', '');
  const { reason } = await first.logged('could not send an alarm, retrying', LONG_MS);
  expect(reason).toMatch(/^cannot reach the webhook at 127\.0\.0\.1:\d+: ECONNREFUSED$/);
  await until('the command was run', () => commanded().length > 0, LONG_MS);
  // Only the notice for the webhook is left.
  await until('that was run, as the journal knows', () => unsent(site.journal) === 1, LONG_MS);
  await first.kill();
  await webhook.start();
  const second = startDaemon(site.config);
  await until('sent', () => webhook.messages.length > 0, LONG_MS);
  await second.stop();
  expect(webhook.received()).toEqual(['raised quarantine balance']);
  expect(commanded()).toEqual(['raised quarantine']);
});

test('a mistake in a mapping, a failed test and a refused reload raise alarms with their location', async () => {
  const { site, webhook } = await alarmScene(
    [
      '  balance: { watch: data/balance, ready: { quiet: 100ms } }',
      '  typo: { watch: data/typo, pars: {} }',
      '  tested: { watch: data/tested, tests: [{ file: gone.csv, expect: { title: x } }] }',
    ].join('\n'),
  );
  const good = readFileSync(site.config, 'utf8').replace(/^ {2}(typo|tested):.*\n/gm, '');
  const daemon = startDaemon(site.config);
  await until('both sent', () => webhook.messages.length >= 2, LONG_MS);
  expect(webhook.received().sort()).toEqual(['raised configuration tested', 'raised configuration typo']);
  const text = (instrument: string) => webhook.messages.find((one) => one.instrument === instrument)?.text;
  expect(text('typo')).toMatch(/typo is stopped .*labfeed\.yaml:11:\d+: unknown key "pars"/);
  expect(text('tested')).toMatch(/tested is stopped .*labfeed\.yaml:12:\d+: gone\.csv/);

  writeFileSync(site.config, good.replace('instruments:', 'instrumnets:'));
  daemon.child.kill('SIGHUP');
  await until('the refusal sent', () => webhook.messages.length >= 3, LONG_MS);
  expect(webhook.messages[2]).toMatchObject({
    state: 'raised',
    kind: 'configuration',
    instrument: null,
    text: expect.stringMatching(
      /rejected; the previous one stays in effect: .*labfeed\.yaml:9:1: unknown key "instrumnets"/,
    ),
  });
  writeFileSync(site.config, good);
  daemon.child.kill('SIGHUP');
  await until('all cleared', () => webhook.messages.length >= 6, LONG_MS);
  await daemon.stop();
  expect(webhook.received().slice(3).sort()).toEqual([
    'over configuration -',
    'over configuration tested',
    'over configuration typo',
  ]);
});

test('a refused API key raises an alarm, which is cleared when the key is replaced and the waiting runs are filed', async () => {
  const { site, webhook, sandbox, folder } = await alarmScene();
  writeFileSync(join(folder, 'api-key'), 'wrong\n');
  const { daemon } = await startWithin(site.config);
  site.drop('a.csv', weighing(1));
  await until('sent', () => webhook.messages.length > 0, LONG_MS);
  expect(daemon.live().notebook.gate).toMatchObject({ kind: 'down', failure: 'auth' });
  writeFileSync(join(folder, 'api-key'), `${sandbox.key}\n`);
  await until('cleared', () => webhook.messages.length > 1, LONG_MS);
  expect(webhook.received()).toEqual(['raised auth -', 'over auth -']);
  await until('filed', () => sandbox.experiments().some(({ comments }) => comments.length > 0), LONG_MS);
  expect(daemon.live().notebook.requests).toContainEqual(expect.objectContaining({ method: 'POST', status: '201' }));
});

test('a missing folder raises an alarm after its grace period, which is cleared when the folder is back', async () => {
  const { webhook, folder, site } = await alarmScene(
    '  balance: { watch: data/balance, ready: { quiet: 100ms }, poll: 200ms }',
  );
  const { daemon, forwardUntil } = await startWithin(site.config);
  renameSync(join(folder, 'data/balance'), join(folder, 'away'));
  const state = () => daemon.live().instruments[0]?.folder.state;
  await until('missed', () => state() === 'missing', LONG_MS);
  // The next check comes within a second, but the grace period is not over.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(webhook.messages).toEqual([]);
  await forwardUntil('sent', 120_000, () => webhook.messages.length > 0);
  expect(webhook.messages[0]?.text).toContain(`the folder ${join(folder, 'data/balance')} is missing`);
  renameSync(join(folder, 'away'), join(folder, 'data/balance'));
  await until('cleared', () => webhook.messages.length > 1, LONG_MS);
  expect(webhook.received()).toEqual(['raised folder balance', 'over folder balance']);
});

test('silence and a long outage raise alarms, which the next file and the notebook clear', async () => {
  const { webhook, site, sandbox } = await alarmScene(
    '  balance: { watch: data/balance, ready: { quiet: 100ms }, silence: 24h }',
  );
  const { daemon, forward, forwardUntil } = await startWithin(site.config);
  forward(25 * 3_600_000);
  await until('silence raised', () => webhook.messages.length > 0, LONG_MS);
  sandbox.control.decide = () => 'cutBefore';
  site.drop('a.csv', weighing(1));
  await until('silence cleared', () => webhook.messages.length > 1, LONG_MS);
  await until('the breaker is open', () => daemon.live().notebook.gate.kind === 'down', LONG_MS);
  expect(isRaised(daemon, 'outage')).toBe(false);
  await new Promise((resolve) => setTimeout(resolve, 1200));
  await forwardUntil('outage raised', 6 * 60_000, () => webhook.messages.length > 2);
  sandbox.control.decide = () => 'pass';
  await until('outage cleared', () => webhook.messages.length > 3, LONG_MS);
  expect(webhook.received()).toEqual([
    'raised silence balance',
    'over silence balance',
    'raised outage -',
    'over outage -',
  ]);
});

test('a run that is not filed for more than an hour raises an alarm with the reason, which its filing clears', async () => {
  const { webhook, site, sandbox } = await alarmScene();
  sandbox.control.decide = ({ method }) => (method === 'PATCH' ? { answer: 400, json: BEING_EDITED } : 'pass');
  const { daemon, forward } = await startWithin(site.config);
  site.drop('a.csv', weighing(1));
  await until('a failed attempt', async () => (await daemon.count())['sending'] === 1, LONG_MS);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(webhook.messages).toEqual([]);
  forward(61 * 60_000);
  await until('raised', () => webhook.received().includes('raised overdue -'), LONG_MS);
  expect(webhook.messages.find(({ kind }) => kind === 'overdue')?.text).toMatch(
    /run 1 of balance \(a\.csv\) has not been filed for more than an hour \(since .*\); it is sending: .*being edited/,
  );
  sandbox.control.decide = () => 'pass';
  await until('cleared', () => webhook.received().includes('over overdue -'), LONG_MS);
  expect(await daemon.count()).toEqual({ done: 1 });
});

const BEING_EDITED = { code: 400, message: 'This entry is being edited by Ada', description: '' };

test('unmatched files raise an alarm on the third occasion, and a readme does not', async () => {
  const { webhook, site, folder } = await alarmScene(
    '  balance: { watch: data/balance, files: "*.tsv", ready: { quiet: 100ms }, poll: 100ms }',
  );
  const { daemon } = await startWithin(site.config);
  const seen = () => daemon.live().instruments[0]?.unmatched;
  for (const [n, name] of ['readme.txt', 'r2.csv', 'r3.csv'].entries()) {
    expect(webhook.messages).toEqual([]);
    site.drop(name, weighing(n));
    await until(`${name} seen`, () => seen()?.files === n + 1, LONG_MS);
    if (n < 2) await new Promise((resolve) => setTimeout(resolve, 1200));
  }
  expect(seen()).toEqual({ files: 3, example: join(folder, 'data/balance/readme.txt') });
  await until('sent', () => webhook.messages.length > 0, LONG_MS);
  expect(webhook.messages[0]?.text).toContain(join(folder, 'data/balance/r3.csv'));
  site.drop('r4.tsv', weighing(4));
  await until('cleared', () => webhook.messages.length > 1, LONG_MS);
  expect(webhook.received()).toEqual(['raised unmatched balance', 'over unmatched balance']);
});

test('a backlog that waits for a decision raises an alarm, which the decision clears', async () => {
  const { webhook, site } = await alarmScene();
  for (let n = 0; n < 51; n += 1) site.drop(`old${n}.csv`, weighing(n));
  const daemon = startDaemon(site.config);
  await until('sent', () => webhook.messages.length > 0, LONG_MS);
  expect(webhook.messages[0]?.text).toContain('51 existing files need a decision');
  writeFileSync(
    site.config,
    readFileSync(site.config, 'utf8').replace('quiet: 150ms }', 'quiet: 150ms }, existing: skip'),
  );
  daemon.child.kill('SIGHUP');
  await until('cleared', () => webhook.messages.length > 1, LONG_MS);
  await daemon.stop();
  expect(webhook.received()).toEqual(['raised held balance', 'over held balance']);
});
