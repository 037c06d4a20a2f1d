import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

/** The daemon within this process, with a clock that can be put forward. */
async function startWithin(config: string): Promise<{ daemon: Daemon; forward(ms: number): void }> {
  const loaded = loadConfig(config);
  requireUsable(loaded);
  let ahead = 0;
  const clock = {
    ...systemClock,
    now: () => Date.now() + ahead,
    monotonic: () => performance.now() + ahead,
  };
  const daemon = createDaemon({ config: loaded, clock, log: silentLog(), conceal: () => undefined });
  onTestFinished(() => daemon.stop());
  await daemon.start();
  return {
    daemon,
    forward(ms) {
      ahead += ms;
    },
  };
}

const isRaised = (daemon: Daemon, kind: string): boolean =>
  daemon.live().alarms.some((alarm) => alarm.kind === kind);

test('a flood of quarantined files is one alarm; a restart does not repeat it; once they are read it is over', async () => {
  const instruments = (decimal: string) =>
    `  balance: { watch: data/balance, ready: { quiet: 100ms }, parse: { delimiter: ";", ${decimal}table: {} } }`;
  const { site, webhook, commanded } = await alarmScene(instruments(''));
  const first = startDaemon(site.config);
  await first.logged('ready', LONG_MS);
  for (let n = 1; n <= 30; n += 1) site.drop(`w${n}.csv`, `Sample;Weight (mg)\nA;${n},234\nB;5,678\n`);
  await until('told', () => webhook.messages.length > 0 && commanded().length > 0, LONG_MS);
  await until(
    'all quarantined',
    () => first.lines.filter(({ msg }) => msg === 'run quarantined').length === 30,
    LONG_MS,
  );
  await first.stop();
  expect(webhook.messages[0]).toMatchObject({
    state: 'raised',
    kind: 'quarantine',
    instrument: 'balance',
    text: expect.stringMatching(
      /^labfeed on .*: balance: .* quarantined; the newest is w\d+\.csv: line 2, column \d/,
    ),
  });

  const second = startDaemon(site.config);
  await second.logged('ready', LONG_MS);
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await second.stop();
  expect(webhook.told()).toEqual(['raised quarantine balance']);
  expect(commanded()).toEqual(['raised quarantine']);

  const mended = readFileSync(site.config, 'utf8').replace('";", ', '";", decimal: ",", ');
  writeFileSync(site.config, mended);
  const third = startDaemon(site.config);
  await until('over', () => webhook.messages.length > 1 && commanded().length > 1, LONG_MS);
  await third.stop();
  expect(webhook.told()).toEqual(['raised quarantine balance', 'over quarantine balance']);
  expect(commanded()).toEqual(['raised quarantine', 'over quarantine']);
  for (const { output } of [first, second, third]) expect(output()).not.toContain('TOPSECRET');
}, 180_000);

test('a webhook that is down is told later, in order, although labfeed was killed in between', async () => {
  const { site, webhook, commanded } = await alarmScene();
  await webhook.stop();
  const first = startDaemon(site.config);
  await first.logged('ready', LONG_MS);
  site.drop('empty.csv', '');
  const { reason } = await first.logged('an alarm could not be told, trying again', LONG_MS);
  expect(reason).toMatch(/^the webhook at 127\.0\.0\.1:\d+ cannot be reached: ECONNREFUSED$/);
  await until('the command was told', () => commanded().length > 0, LONG_MS);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await first.kill();
  await webhook.start();
  const second = startDaemon(site.config);
  await until('told', () => webhook.messages.length > 0, LONG_MS);
  await second.stop();
  expect(webhook.told()).toEqual(['raised quarantine balance']);
  expect(commanded()).toEqual(['raised quarantine']);
}, 180_000);

test('a mistake in one mapping, a failed test and a refused reload are alarms, with the place; mended, they are over', async () => {
  const { site, webhook } = await alarmScene(
    [
      '  balance: { watch: data/balance, ready: { quiet: 100ms } }',
      '  typo: { watch: data/typo, pars: {} }',
      '  tested: { watch: data/tested, tests: [{ file: gone.csv, expect: { title: x } }] }',
    ].join('\n'),
  );
  const good = readFileSync(site.config, 'utf8').replace(/^ {2}(typo|tested):.*\n/gm, '');
  const daemon = startDaemon(site.config);
  await until('both told', () => webhook.messages.length >= 2, LONG_MS);
  expect(webhook.told().sort()).toEqual(['raised configuration tested', 'raised configuration typo']);
  const text = (instrument: string) => webhook.messages.find((one) => one.instrument === instrument)?.text;
  expect(text('typo')).toMatch(/typo is stopped .*labfeed\.yaml:11:\d+: unknown key "pars"/);
  expect(text('tested')).toMatch(/tested is stopped .*labfeed\.yaml:12:\d+: gone\.csv/);

  writeFileSync(site.config, good.replace('instruments:', 'instrumnets:'));
  daemon.child.kill('SIGHUP');
  await until('the refusal told', () => webhook.messages.length >= 3, LONG_MS);
  expect(webhook.messages[2]).toMatchObject({
    state: 'raised',
    kind: 'configuration',
    instrument: null,
    text: expect.stringMatching(
      /refused, the old one goes on: .*labfeed\.yaml:9:1: unknown key "instrumnets"/,
    ),
  });
  writeFileSync(site.config, good);
  daemon.child.kill('SIGHUP');
  await until('all over', () => webhook.messages.length >= 6, LONG_MS);
  await daemon.stop();
  expect(webhook.told().slice(3).sort()).toEqual([
    'over configuration -',
    'over configuration tested',
    'over configuration typo',
  ]);
}, 180_000);

test('a key that is refused is told, and is over when a better one is in its place; what waited is filed', async () => {
  const { site, webhook, sandbox, folder } = await alarmScene();
  writeFileSync(join(folder, 'api-key'), 'wrong\n');
  const { daemon } = await startWithin(site.config);
  site.drop('a.csv', weighing(1));
  await until('told', () => webhook.messages.length > 0, LONG_MS);
  expect(daemon.live().notebook.gate).toMatchObject({ kind: 'down', failure: 'auth' });
  writeFileSync(join(folder, 'api-key'), `${sandbox.key}\n`);
  await until('over', () => webhook.messages.length > 1, LONG_MS);
  expect(webhook.told()).toEqual(['raised auth -', 'over auth -']);
  await until('filed', () => sandbox.experiments().some(({ comments }) => comments.length > 0), LONG_MS);
  expect(daemon.live().notebook.requests).toContainEqual(
    expect.objectContaining({ method: 'POST', status: '201' }),
  );
}, 180_000);

test('a folder that is renamed away is told after its grace, and is over when it is back', async () => {
  const { webhook, folder, site } = await alarmScene(
    '  balance: { watch: data/balance, ready: { quiet: 100ms }, poll: 200ms }',
  );
  const { daemon, forward } = await startWithin(site.config);
  renameSync(join(folder, 'data/balance'), join(folder, 'away'));
  const state = () => daemon.live().instruments[0]?.folder.state;
  await until('missed', () => state() === 'missing', LONG_MS);
  // A moment later it is looked at; it was not gone for long enough.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(webhook.messages).toEqual([]);
  forward(120_000);
  await until('told', () => webhook.messages.length > 0, LONG_MS);
  expect(webhook.messages[0]?.text).toContain(`the folder ${join(folder, 'data/balance')} is missing`);
  renameSync(join(folder, 'away'), join(folder, 'data/balance'));
  await until('over', () => webhook.messages.length > 1, LONG_MS);
  expect(webhook.told()).toEqual(['raised folder balance', 'over folder balance']);
}, 180_000);

test('silence and a long outage are told; the next file, and the notebook, make an end of them', async () => {
  const { webhook, site, sandbox } = await alarmScene(
    '  balance: { watch: data/balance, ready: { quiet: 100ms }, silence: 24h }',
  );
  const { daemon, forward } = await startWithin(site.config);
  forward(25 * 3_600_000);
  await until('silence told', () => webhook.messages.length > 0, LONG_MS);
  sandbox.control.decide = () => 'cutBefore';
  site.drop('a.csv', weighing(1));
  await until('silence over', () => webhook.messages.length > 1, LONG_MS);
  await until('the gate is shut', () => daemon.live().notebook.gate.kind === 'down', LONG_MS);
  expect(isRaised(daemon, 'outage')).toBe(false);
  await new Promise((resolve) => setTimeout(resolve, 1200));
  forward(6 * 60_000);
  await until('outage told', () => webhook.messages.length > 2, LONG_MS);
  sandbox.control.decide = () => 'pass';
  await until('outage over', () => webhook.messages.length > 3, LONG_MS);
  expect(webhook.told()).toEqual([
    'raised silence balance',
    'over silence balance',
    'raised outage -',
    'over outage -',
  ]);
}, 180_000);

test('files that none of the globs fit are told on the third occasion; a readme is none of their business', async () => {
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
  await until('told', () => webhook.messages.length > 0, LONG_MS);
  expect(webhook.messages[0]?.text).toContain(join(folder, 'data/balance/r3.csv'));
  site.drop('r4.tsv', weighing(4));
  await until('over', () => webhook.messages.length > 1, LONG_MS);
  expect(webhook.told()).toEqual(['raised unmatched balance', 'over unmatched balance']);
}, 180_000);

test('a decision that is waited for is told, and is over with it', async () => {
  const { webhook, site } = await alarmScene();
  for (let n = 0; n < 51; n += 1) site.drop(`old${n}.csv`, weighing(n));
  const daemon = startDaemon(site.config);
  await until('told', () => webhook.messages.length > 0, LONG_MS);
  expect(webhook.messages[0]?.text).toContain('51 old files wait for an answer');
  writeFileSync(
    site.config,
    readFileSync(site.config, 'utf8').replace('quiet: 150ms }', 'quiet: 150ms }, existing: skip'),
  );
  daemon.child.kill('SIGHUP');
  await until('over', () => webhook.messages.length > 1, LONG_MS);
  await daemon.stop();
  expect(webhook.told()).toEqual(['raised held balance', 'over held balance']);
}, 180_000);
