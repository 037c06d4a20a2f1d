import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const HAS_STRACE = spawnSync('strace', ['-V']).status === 0;
if (!HAS_STRACE) console.warn('strace is not installed: skipping the test that intents are on disk before the POST');

test.skipIf(!HAS_STRACE)('the intent is on disk before the POST is sent', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const trace = join(folder, 'trace');
  const strace = [
    '-f',
    '-y',
    '-s',
    '60',
    '-e',
    'trace=fdatasync,fsync,write,writev,sendto',
    '-o',
    trace,
    '-p',
    String(daemon.child.pid),
  ];
  const tracer = spawn('strace', strace, { stdio: ['ignore', 'ignore', 'pipe'] });
  await until('strace attached', () => statSync(trace, { throwIfNoEntry: false }) !== undefined);
  await new Promise((resolve) => setTimeout(resolve, 500));
  // One after the other: concurrent runs may share one sync.
  for (let n = 0; n < 3; n++) {
    site.drop(`w${n}.csv`, weighing(n));
    await until('filed', () => daemon.lines.filter(({ msg }) => msg === 'run filed').length === n + 1);
  }
  await daemon.stop();
  tracer.kill();
  const lines = readFileSync(trace, 'utf8').split('\n');
  const events = lines.flatMap((line) => {
    if (/f(data)?sync\(\d+<[^>]*journal\.db-wal>/.test(line)) return ['synced'];
    return /POST \/api\/v2\/experiments HTTP/.test(line) ? ['posted'] : [];
  });
  const posts = events.flatMap((event, index) => (event === 'posted' ? [index] : []));
  expect(posts).toHaveLength(3);
  // Directly before each creation: recording the run is synced too, and must not be mistaken for the intent.
  for (const post of posts) expect(events.slice(Math.max(0, post - 2), post)).toEqual(['synced', 'synced']);
});
