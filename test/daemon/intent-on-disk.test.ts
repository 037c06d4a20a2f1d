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
  const calls = 'trace=fdatasync,pwrite64,write,writev,sendto';
  const strace = ['-f', '-y', '-s', '5000', '-e', calls, '-o', trace, '-p', String(daemon.child.pid)];
  const tracer = spawn('strace', strace, { stdio: ['ignore', 'ignore', 'pipe'] });
  await until('strace attached', () => statSync(trace, { throwIfNoEntry: false }) !== undefined);
  await new Promise((resolve) => setTimeout(resolve, 500));
  for (let n = 0; n < 3; n++) {
    site.drop(`w${n}.csv`, weighing(n));
    await until('filed', () => daemon.lines.filter(({ msg }) => msg === 'run filed').length === n + 1);
  }
  await daemon.stop();
  tracer.kill();
  const events = readFileSync(trace, 'utf8').split('\n').flatMap(eventsOf);
  const posts = events.flatMap((event, index) => (event === 'posted' ? [index] : []));
  expect(posts).toHaveLength(3);
  for (const [n, post] of posts.entries()) {
    // The history of a few runs fits on one page, so the intent of the n-th run is on the first page with n of them.
    const written = events.findIndex((event) => typeof event === 'number' && event > n);
    expect(written, 'the intent is written').toBeGreaterThan(-1);
    const begun = events.indexOf('sync begins', written);
    const ended = events.indexOf('synced', begun);
    expect(begun, 'a sync begins after the intent is written').toBeGreaterThan(written);
    expect(ended, 'the sync ends').toBeGreaterThan(begun);
    expect(post, 'the POST follows').toBeGreaterThan(ended);
  }
});

/** A number is that of intents on a page that was written to the log. */
function eventsOf(line: string): ('sync begins' | 'synced' | 'posted' | number)[] {
  if (/POST \/api\/v2\/experiments HTTP/.test(line)) return ['posted'];
  if (/pwrite64\(\d+<[^>]*journal\.db-wal>/.test(line)) return [line.split('intended{').length - 1];
  // A call takes two lines if another thread makes one meanwhile.
  if (/fdatasync resumed/.test(line)) return ['synced'];
  if (!/fdatasync\(\d+<[^>]*journal\.db-wal>/.test(line)) return [];
  return line.includes('<unfinished') ? ['sync begins'] : ['sync begins', 'synced'];
}
