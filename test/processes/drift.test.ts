import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSite, startDaemon } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const HELD = /^run held: columns or units have changed/;

async function setUp(drift: string) {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const instruments = `  balance: { watch: data/balance, ready: { quiet: 100ms }, drift: ${drift} }`;
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments });
  const filed = (count: number) =>
    until(`${count} filed`, () => sandbox.experiments().filter((one) => one.comments.length > 0).length === count);
  return { sandbox, site, filed };
}

const weighing = (n: number, heading: string): string => `${heading}\nS${n},${n}.125\nS${n}b,${n}.5\n`;

test('a run with a changed unit stays held through a kill, until retry accepts the new unit', async () => {
  const { sandbox, site, filed } = await setUp('hold');
  const first = startDaemon(site.config);
  await first.logged('ready');
  site.drop('a.csv', weighing(1, 'Sample,Weight (mg)'));
  await first.logged('run filed');
  site.drop('b.csv', weighing(2, 'Sample,Weight (g)'));
  expect(await first.logged(({ msg }) => HELD.test(msg))).toMatchObject({
    run: 2,
    since: 1,
    changes: ['the unit of "Weight" changed from mg to g'],
  });
  await first.kill();

  const second = startDaemon(site.config);
  expect(await second.logged('ready')).toMatchObject({ runs: { done: 1, held: 1 } });
  site.drop('c.csv', weighing(3, 'Sample,Weight (g)'));
  await second.logged(({ msg, run }) => HELD.test(msg) && run === 3);
  site.drop('d.csv', weighing(4, 'Sample,Weight (mg)'));
  await filed(2);
  const { stdout } = await labfeed(['retry', '2', '--config', site.config]);
  expect(stdout).toMatch(/^run 2 \(b\.csv\) starts again.*; 1 other run held for the same drift/);
  await filed(4);
  site.drop('e.csv', weighing(5, 'Sample,Weight (g)'));
  await filed(5);
  await second.stop();
  expect(sandbox.experiments().map(({ title }) => title)).toContain('c (balance)');
});

test('a missing column is only reported by default, and a changed mapping starts a new comparison', async () => {
  const { site, filed } = await setUp('warn');
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  site.drop('a.csv', weighing(1, 'Sample,Weight (mg)'));
  await filed(1);
  site.drop('b.csv', weighing(2, 'Sample,Mass (mg)'));
  expect(await daemon.logged('columns or units have changed since the previous run')).toMatchObject({
    level: 40,
    run: 2,
    changes: ['the column "Weight" is missing'],
  });
  await filed(2);
  const config = readFileSync(site.config, 'utf8');
  writeFileSync(site.config, config.replace('drift: warn', 'drift: hold, parse: { table: {} }'));
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  site.drop('c.csv', weighing(3, 'Sample,Length (mm)'));
  await filed(3);
  await daemon.stop();
});
