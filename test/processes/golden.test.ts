import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

const instruments = (rows: number) => `  balance: { watch: data/balance, ready: { quiet: 100ms } }
  tested:
    watch: data/tested
    ready: { quiet: 100ms }
    tests: [{ file: sample.csv, expect: { readings: ${rows} } }]
  catchall: { watch: data, files: "**/*.csv", ready: { quiet: 100ms } }`;

async function setUp(rows: number) {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  writeFileSync(join(folder, 'sample.csv'), weighing(1));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments: instruments(rows) });
  return { sandbox, site };
}

test('an instrument whose tests fail is stopped with the reason and its files wait; the others run', async () => {
  const { sandbox, site } = await setUp(7);
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const failed = daemon.lines.filter(({ msg }) => msg.startsWith('mapping test failed'));
  expect(failed).toMatchObject([
    {
      level: 50,
      instrument: 'tested',
      problem: expect.stringMatching(
        /labfeed\.yaml:\d+:\d+: sample\.csv, readings: differs\n {4}expected {2}7 rows\n {4}actual {4}2 rows/,
      ),
    },
  ]);
  site.drop('t.csv', weighing(7), 'tested');
  site.drop('a.csv', weighing(1));
  await daemon.logged('run filed');
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(sandbox.experiments().map(({ title }) => title)).toEqual(['a (balance)']);

  // Once it is fixed and reloaded, it takes the waiting files.
  writeFileSync(site.config, readFileSync(site.config, 'utf8').replace('readings: 7', 'readings: 2'));
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  await daemon.logged(({ msg, instrument }) => msg === 'run filed' && instrument === 'tested');
  expect(await daemon.stop()).toBe(0);
});

test('a reload whose tests fail is rejected, and the old mapping stays in use', async () => {
  const { sandbox, site } = await setUp(2);
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  writeFileSync(site.config, readFileSync(site.config, 'utf8').replace('readings: 2', 'readings: 3'));
  daemon.child.kill('SIGHUP');
  const { problems } = await daemon.logged('new configuration rejected, keeping the current one');
  expect(problems).toMatch(/sample\.csv, readings: differs\n {4}expected {2}3 rows/);
  site.drop('t.csv', weighing(7), 'tested');
  await daemon.logged('run filed');
  expect(await daemon.stop()).toBe(0);
  expect(sandbox.experiments().map(({ title }) => title)).toEqual(['t (tested)']);
});
