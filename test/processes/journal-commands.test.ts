import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { FileError } from '../../src/errors.js';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { liveFileOf } from '../../src/live.js';
import type { RunChange } from '../../src/outbox.js';
import { makeSite, type Site } from '../support/daemon-process.js';
import { decide, refuse, take } from '../support/journal.js';
import { labfeed } from '../support/labfeed.js';
import { someLive } from '../support/live.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

const DONE: readonly RunChange[] = [
  { kind: 'intended', server: 'https://eln.example.org', floor: 9, at: 1 },
  { kind: 'created', experiment: 12, found: false },
  { kind: 'commented', n: 1, comment: 7, found: false },
  { kind: 'finished' },
];

interface Steered {
  readonly site: Site;
  /** Held, as by a daemon. */
  readonly journal: Journal;
  run(...args: string[]): ReturnType<typeof labfeed>;
}

/** A journal with one done and one quarantined run. */
async function withRuns(): Promise<Steered> {
  const site = makeSite(tempFolder(), { url: 'http://127.0.0.1:9', key: 'k' });
  const journal = await openJournal(site.journal, systemClock);
  onTestFinished(() => journal.close().catch(() => undefined));
  await take(journal, newRun('smith'), someDraft('Weighing of smith'));
  await journal.outbox.record(1, ...DONE);
  await refuse(journal, newRun('b'), new FileError('no table', { hint: 'say header: none' }));
  return { site, journal, run: (...args) => labfeed([...args, '--config', site.config]) };
}

test('jobs, show and status work while a daemon holds the journal, and show files that have not settled', async () => {
  const { site, run } = await withRuns();
  writeFileSync(liveFileOf(site.journal), JSON.stringify(someLive()));
  const [jobs, waiting, quarantined, show, status] = await Promise.all([
    run('jobs'),
    run('jobs', '--state', 'waiting', '--json'),
    run('jobs', '--state', 'quarantined', '--instrument', 'balance', '--json'),
    run('show', '1'),
    run('status', '--json'),
  ]);
  expect(jobs).toMatchObject({ status: 0, stderr: '' });
  expect(jobs.stdout).toMatch(/^RUN +STATE +INSTRUMENT +FILE .*\n +- +waiting +balance +new\.csv .*unchanged for 2 s/);
  expect(jobs.stdout).toMatch(/^ +2 +quarantined +balance +b\.csv .*no table\n +1 +done .* 12 +Weighing of smith$/m);
  expect(JSON.parse(waiting.stdout)).toEqual([
    expect.objectContaining({ state: 'waiting', instrument: 'balance', path: '/srv/balance/new.csv' }),
  ]);
  expect(JSON.parse(quarantined.stdout)).toMatchObject([{ id: 2, state: 'quarantined', failure: 'file' }]);
  const [found, none] = await Promise.all([
    run('jobs', '--search', 'SMITH weighing'),
    run('jobs', '--search', 'nobody'),
  ]);
  expect(found.stdout).toMatch(/^RUN .*\n +1 +done +balance +smith\.csv .*Weighing of smith\n$/);
  expect(none).toMatchObject({ status: 0, stdout: expect.stringContaining('no runs match "nobody"') });
  expect(show.stdout).toMatch(/^run 1: done, experiment 12 at https:\/\/eln\.example\.org\n/);
  expect(show.stdout).toMatch(
    /Experiment 12 created\n.*Comment 1 posted, id 7\n.*Filed: everything is in the notebook/,
  );
  expect(show.stdout).toMatch(/^title +Weighing of smith$/m);
  expect(JSON.parse(status.stdout)).toMatchObject({
    running: true,
    live: { pid: process.pid },
    overview: { instruments: [{ name: 'balance', runs: { done: 1, quarantined: 1 } }] },
    attention: [{ instrument: 'balance', command: expect.stringContaining('--state quarantined') }],
  });
});

test('without a daemon, jobs, show and status use the journal and say what to do', async () => {
  const { site, journal, run } = await withRuns();
  writeFileSync(liveFileOf(site.journal), JSON.stringify(someLive()));
  await journal.close();
  const [status, jobs, show, none] = await Promise.all([
    run('status'),
    labfeed(['jobs', '--config', site.config], site.folder, { COLUMNS: '50' }),
    run('show', '2', '--json'),
    run('show', '77'),
  ]);
  expect(status.stdout).toMatch(/^daemon +not running/);
  expect(status.stdout).toContain('balance: 1 run quarantined → labfeed jobs --state quarantined');
  expect(jobs.stdout).not.toContain('waiting');
  expect(Math.max(...jobs.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(50);
  expect(JSON.parse(show.stdout)).toMatchObject({
    id: 2,
    history: [{ event: 'refused' }],
    next: expect.stringContaining('labfeed retry 2'),
  });
  expect(none).toMatchObject({ status: 1, stderr: expect.stringMatching(/no run 77\n.*the last run is 2/) });
});

test('an unknown state or instrument is reported with the nearest match', async () => {
  const { run } = await withRuns();
  const [state, instrument, backfill] = await Promise.all([
    run('jobs', '--state', 'quarantned'),
    run('jobs', '--instrument', 'balnce'),
    run('backfill', 'balanc'),
  ]);
  expect(state).toMatchObject({ status: 2, stderr: expect.stringContaining('Did you mean quarantined?') });
  for (const { status, stderr } of [instrument, backfill])
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringContaining('did you mean balance?'),
    });
});

const stands = ({ journal }: Site, text: string): boolean =>
  ['', '-wal'].some((ending) => existsSync(journal + ending) && readFileSync(journal + ending).includes(text));

const LATER = 'the daemon is not running; the rest will be done once you start it: `labfeed run`\n';

test('a decision without a daemon says that labfeed run will do the rest, except for refusals and JSON', async () => {
  const { journal, run } = await withRuns();
  await journal.close();
  expect(await run('retry', '2')).toMatchObject({ status: 0, stderr: LATER });
  expect(await run('ignore', '2')).toMatchObject({ status: 0, stderr: LATER });
  expect(await run('refile', '1')).toMatchObject({ status: 0, stderr: LATER });
  const refused = await run('ignore', '1');
  expect(refused).toMatchObject({ status: 1, stdout: '', stderr: expect.not.stringContaining(LATER) });
  const json = await run('retry', '2', '--json');
  expect(json.stderr).toBe('');
  expect(JSON.parse(json.stdout)).toEqual([{ run: 2, outcome: 'done', text: expect.any(String) }]);
});

test('erase and ignore work without a daemon, and erased data is in no file of the journal', async () => {
  const { site, journal, run } = await withRuns();
  await journal.close();
  expect(stands(site, 'smith')).toBe(true);
  const early = await run('erase', '--before', '2020-01-01');
  expect(early).toMatchObject({ status: 0, stdout: expect.stringContaining('no runs to erase before') });
  const ignored = await run('ignore', '2');
  expect(ignored).toMatchObject({ status: 0, stdout: expect.stringMatching(/^run 2 \(b\.csv\) is ignored/) });
  const erased = await run('erase', '--before', '2999-01-01');
  expect(erased).toMatchObject({ status: 0, stderr: '', stdout: expect.stringMatching(/^2 runs erased/) });
  expect(stands(site, 'smith')).toBe(false);
  const show = await run('show', '1');
  expect(show.stdout).toMatch(/^file +\(erased\)$/m);
  expect(show.stdout).toContain('File name, draft and history erased');
});

test('data erased while a daemon runs is in no file of the journal', async () => {
  const { site, journal, run } = await withRuns();
  let isOver = false;
  const erasing = run('erase', '1').finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await decide(journal);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(await erasing).toMatchObject({ status: 0, stderr: '' });
  expect(stands(site, 'smith')).toBe(false);
});

test('control characters in names do not reach the terminal', async () => {
  const { journal, run } = await withRuns();
  await take(journal, newRun('c', { path: '/data/\u001b[31mred.csv' }), someDraft('\u001b]0;x\u0007'));
  for (const args of [['jobs'], ['show', '3']]) {
    const { status, stdout } = await run(...args);
    expect(status).toBe(0);
    expect(stdout).toContain('red.csv');
    expect(stdout.replace(/\n/g, '')).not.toMatch(/\p{Cc}/u);
  }
});
