import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

test('a backlog of thousands of files delays a live file of another instrument only by seconds', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, {
    url: sandbox.url,
    key: sandbox.key,
    instruments: `  balance: { watch: data/balance, ready: { quiet: 100ms }, existing: ingest }
  scale: { watch: data/scale, ready: { quiet: 100ms } }`,
  });
  // At this rate the backlog takes minutes.
  writeFileSync(site.config, readFileSync(site.config, 'utf8').replace('2000/s', '60/s'));
  for (let n = 0; n < 3000; n++) site.drop(`w${n}.csv`, weighing(n));
  const daemon = startDaemon(site.config);
  await until(
    'the backlog on its way',
    () => daemon.lines.filter(({ msg }) => msg === 'run filed').length > 20,
    120_000,
  );
  const droppedAt = Date.now();
  site.drop('live.csv', weighing(9999), 'scale');
  await daemon.logged((line) => line.msg === 'run filed' && line['instrument'] === 'scale');
  // A busy machine takes longer. What matters is that the file did not wait for the 3,000.
  expect(Date.now() - droppedAt).toBeLessThan(30_000);
  expect(daemon.lines.filter(({ msg }) => msg === 'run filed').length).toBeLessThan(1500);
  expect(await daemon.stop()).toBe(0);
});
