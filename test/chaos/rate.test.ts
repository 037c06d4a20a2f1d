import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { watchArrivals } from '../support/arrivals.js';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import type { RateLimit } from '../support/faults.js';
import { createTestSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

/** Files runs with the real daemon. Returns the requests that the server received, and how many within a second. */
async function fileRuns(runs: number, rate: string, limit?: RateLimit) {
  const folder = tempFolder();
  const sandbox = createTestSandbox({ file: join(folder, 'notebook.db'), port: 0 });
  const { url, key } = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  sandbox.control.limitRate(limit);
  const fullestSecond = watchArrivals(sandbox.control);
  const instruments = '  balance: { watch: data/balance, ready: { quiet: 100ms }, existing: ingest }';
  const site = makeSite(folder, { url, key, timeout: '10s', instruments });
  writeFileSync(site.config, readFileSync(site.config, 'utf8').replace('2000/s', rate));
  for (let n = 0; n < runs; n++) site.drop(`w${n}.csv`, weighing(n));
  const daemon = startDaemon(site.config);
  await until('all filed', () => daemon.lines.filter(({ msg }) => msg === 'run filed').length === runs, 400_000);
  expect(await daemon.stop()).toBe(0);
  return { requests: sandbox.control.requests(), fullest: fullestSecond() };
}

/** The other chaos tests may take the processor away for seconds, which costs throughput. */
const BUSY = { retry: 2, timeout: 600_000 };

test('a server limit of 15 per second is learned: under 5 % refused, at least 80 % used', BUSY, async () => {
  const { requests } = await fileRuns(220, '100/s', { requests: 15, perMs: 1000 });
  const refused = requests.filter(({ status }) => status === 429).length;
  const seconds = ((requests.at(-1)?.atMs ?? 0) - (requests[0]?.atMs ?? 0)) / 1000;
  const used = (requests.length - refused) / (15 * seconds);
  console.log(
    `limit of 15/s: ${((100 * refused) / requests.length).toFixed(1)} % refused, ${(100 * used).toFixed(0)} % used`,
  );
  expect(refused / requests.length).toBeLessThan(0.05);
  expect(used).toBeGreaterThan(0.8);
});

test('at least 90 % of a ceiling of 20 per second is used, and no second exceeds it', BUSY, async () => {
  const { requests, fullest } = await fileRuns(120, '20/s');
  const times = requests.map(({ atMs }) => atMs);
  const seconds = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1000;
  console.log(
    `ceiling of 20/s: at most ${fullest} in a second, ${((100 * times.length) / (20 * seconds)).toFixed(0)} % used`,
  );
  expect(fullest).toBeLessThanOrEqual(20);
  expect(times.length / (20 * seconds)).toBeGreaterThan(0.9);
});
