import { existsSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { openJournal } from '../../src/journal/journal.js';
import { allFiled } from '../daemon/scene.js';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { take } from '../support/journal.js';
import { labfeed } from '../support/labfeed.js';
import { newRun, someDraft } from '../support/runs.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

test('a backlog waits for a decision, and the running daemon files only what backfill names', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  for (let n = 0; n < 60; n++) {
    site.drop(`w${n}.csv`, weighing(n));
    const day = new Date(n < 57 ? '2020-01-01' : '2026-01-01');
    utimesSync(join(folder, 'data/balance', `w${n}.csv`), day, day);
  }
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const run = (...args: string[]) => labfeed([...args, '--config', site.config]);
  expect((await run('status')).stdout).toContain('a backlog of 60 files needs a decision → labfeed backfill balance');
  expect((await run('jobs', '--state', 'held')).stdout).toBe(
    'no held runs\nbalance: a backlog of 60 files needs a decision → labfeed backfill balance\n',
  );
  expect((await run('jobs', '--state', 'done')).stdout).toBe('no done runs\n');
  expect(await run('backfill', 'balance', '--since', '2025-01-01')).toEqual({
    status: 0,
    stdout:
      'balance: 3 files of the backlog will be filed, after new files; 57 files of the backlog skipped; to undo this: labfeed backfill balance --undo\n',
    stderr: '',
  });
  await allFiled(daemon, 3);
  const titles = sandbox.experiments().map(({ title }) => title);
  expect(titles.sort()).toEqual(['w57 (balance)', 'w58 (balance)', 'w59 (balance)']);

  // While the daemon is running and the files still exist.
  const erased = await run('erase', '1', '2', '3');
  expect(erased).toMatchObject({ status: 0, stderr: '' });
  expect(erased.stdout.match(/is erased; .*its file is still in the folder of balance/g)).toHaveLength(3);
  const stands = (text: string): boolean =>
    ['', '-wal'].some(
      (ending) => existsSync(site.journal + ending) && readFileSync(site.journal + ending).includes(text),
    );
  expect(stands('w57.csv')).toBe(false);
  await daemon.stop();
  const again = startDaemon(site.config);
  await again.logged('ready');
  await again.stop();
  expect(sandbox.experiments()).toHaveLength(3);
  expect(stands('w57.csv')).toBe(false);
  expect(stands('w0.csv')).toBe(true);
});

test('the history of runs older than keep is removed at start-up', async () => {
  const site = makeSite(tempFolder(), { url: 'http://127.0.0.1:9', key: 'k', settings: 'keep: 1d\n' });
  let daysAgo = 10;
  const now = () => Date.now() - daysAgo * 86_400_000;
  const journal = await openJournal(site.journal, { ...systemClock, now });
  await take(journal, newRun('old'), someDraft('old'));
  await journal.outbox.record(1, { kind: 'finished' });
  // The clock alone proves nothing: runs on seven later days do.
  for (daysAgo = 9; daysAgo > 1; daysAgo--) await take(journal, newRun(`day ${daysAgo}`), someDraft(`day ${daysAgo}`));
  await journal.close();
  const daemon = startDaemon(site.config);
  await daemon.logged('removed the history of old runs');
  await daemon.stop();
  const { stdout } = await labfeed(['show', '1', '--config', site.config]);
  expect(stdout).toMatch(/^run 1: done/);
  expect(stdout).toContain('removed, because the run is older than `keep`');
});
