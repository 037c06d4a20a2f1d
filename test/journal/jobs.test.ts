import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { type JournalReader, openReader } from '../../src/journal/reader.js';
import { createRunPaths } from '../../src/watch/match.js';
import { take } from '../support/journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

async function open(): Promise<{ path: string; journal: Journal; reader: JournalReader }> {
  const path = join(tempFolder(), 'journal.db');
  const journal = await openJournal(path, systemClock);
  const reader = openReader(path);
  onTestFinished(async () => {
    await reader.close();
    await journal.close();
  });
  return { path, journal, reader };
}

/** Each file is a run. */
const single = (_instrument: string, path: string): string => path;

test('a run is found by file name, title, instrument, tag, field and sample, whatever the case, if all words match', async () => {
  const { journal, reader } = await open();
  const draft = {
    ...someDraft('Weighing'),
    body: '<td>Caf&amp;Co &lt;x&gt; Ärztin</td>',
    tags: ['pH meter'],
    extras: { fields: { Hazard: { value: 'GHS-02' } } } as never,
  };
  await take(journal, newRun('a', { path: '/data/50%_Run-17.csv', instrument: 'scale' }), draft);
  await take(journal, newRun('b'), someDraft('Other'));
  const found = async (search: string, more: object = {}): Promise<number[]> =>
    (await reader.search({ search, limit: 10, ...more }, 1000)).jobs.map(({ id }) => id);
  for (const words of [
    'GHS-02',
    'run-17',
    '50%_',
    'weigh',
    'SCALE',
    'ph meter',
    'caf&co',
    '<x>',
    'ÄRZTIN',
    'run-17 weighing',
  ])
    expect([words, await found(words)]).toEqual([words, [1]]);
  // Wildcards of SQL are ordinary characters.
  for (const words of ['5%Run', 'Run_17', 'weighing other', "'", '\\'])
    expect([words, await found(words)]).toEqual([words, []]);
  expect(await found('.csv')).toEqual([2, 1]);
  expect(await found('.csv', { before: 2 })).toEqual([1]);
  expect(await found('.csv', { limit: 1 })).toEqual([2]);
  expect(await found('.csv', { state: 'done' })).toEqual([]);
  expect(await found('.csv', { instrument: 'scale', state: 'queued' })).toEqual([1]);
});

test('if time runs out, a search says how far it came, can go on there, and blocks nothing for long', async () => {
  const { path, journal, reader } = await open();
  await take(journal, newRun('needle'), someDraft('needle'));
  const database = new DatabaseSync(path);
  database.exec(`
    WITH RECURSIVE n (id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM n WHERE id < 20000)
    INSERT INTO runs (id, instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping, step,
      added_at, updated_at) SELECT id, 'bulk', id, '', 0, id, '/data/' || id, 1, 1, 0, '', 'done', 1, 1 FROM n;
    INSERT INTO drafts (run, title, date, body, tags) SELECT id, 'bulk', '', printf('%.3000c', 'x'), '[]' FROM runs
      WHERE id > 1;`);
  database.close();
  // A piece has two megabytes at most.
  const first = await reader.search({ search: 'needle', limit: 10 }, 0);
  expect(first).toEqual({ jobs: [], searchedTo: 20_001 - 666 });
  const twoWords = await reader.search({ search: 'needle haystack', limit: 10 }, 0);
  expect(twoWords).toEqual({ jobs: [], searchedTo: 20_001 - 333 });
  let longestMs = 0;
  let last = performance.now();
  const beat = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last);
    last = performance.now();
  }, 1);
  const rest = await reader.search({ search: 'needle', limit: 10, before: first.searchedTo }, 60_000);
  clearInterval(beat);
  expect(rest.searchedTo).toBeUndefined();
  expect(rest.jobs.map(({ id }) => id)).toEqual([1]);
  expect(longestMs).toBeGreaterThan(0);
  expect(longestMs).toBeLessThan(500);
});

test('a search finds copies, skipped files and the backlog, each with what became of it', async () => {
  const { journal, reader } = await open();
  const original = newRun('a', { path: '/data/scale/run-17.csv', instrument: 'scale' });
  const added = await take(journal, original, someDraft('Weighing'));
  const taken = { sha256: original.file.sha256, copy: '', isErased: false };
  const at = (path: string) => ({ ...original.file, path, location: path });
  await journal.intake.remember('scale', at('/data/scale/run-17.csv'), taken);
  await journal.intake.remember('scale', at('/data/scale/Copy of Run-17.csv'), taken);
  await journal.intake.skip('scale', [at('/data/scale/old-17.csv')]);
  await journal.intake.holdBacklog('scale', [at('/data/scale/older-17.csv')]);
  const find = async (search: string, more: object = {}) => {
    const query = { search, limit: 10, ...more };
    const { files, hasMoreFiles } = await reader.searchFiles(query, await reader.search(query, 1000), 1000, single);
    return [...files.map(({ path, verdict, run }) => [path.slice(12), verdict, run?.id]), hasMoreFiles];
  };
  const run = added.run;
  const [copy, skipped, asked] = [
    ['Copy of Run-17.csv', 'taken', run],
    ['old-17.csv', 'skipped', undefined],
    ['older-17.csv', 'asked', undefined],
  ];
  expect(await find('17.CSV scale')).toEqual([copy, skipped, asked, false]);
  expect(await find('copy 17')).toEqual([copy, false]);
  expect(await find('17', { instrument: 'other' })).toEqual([false]);
  expect(await find('17', { limit: 2 })).toEqual([copy, skipped, true]);
  // A run that is older than those searched is found by its file.
  const { files } = await reader.searchFiles(
    { search: 'run-17', limit: 9 },
    { jobs: [], searchedTo: run + 1 },
    1000,
    single,
  );
  expect(files.map(({ path, isOwn }) => [path, isOwn])).toEqual([
    ['/data/scale/Copy of Run-17.csv', false],
    ['/data/scale/run-17.csv', true],
  ]);
});

test('the files of a joined run belong to it, and only those of another folder are copies', async () => {
  const { journal, reader } = await open();
  const original = newRun('a', { path: '/data/a/x.csv', instrument: 'scale' });
  const { run } = await take(journal, original, someDraft('Weighing'));
  const taken = { sha256: original.file.sha256, copy: '', isErased: false };
  for (const path of ['/data/a/x.csv', '/data/a/x.xml', '/data/b/x.csv', '/data/b/x.xml'])
    journal.intake.remember('scale', { ...original.file, path, location: path }, taken);
  await journal.intake.skip('scale', []);
  const runPath = createRunPaths({ watch: '/data', run: { join: ['{stem}.csv', '{stem}.xml'] } });
  const find = async (searchedTo: number | undefined) => {
    const found = { jobs: [], searchedTo };
    const { files } = await reader.searchFiles({ search: 'x.', limit: 9 }, found, 1000, (_, path) => runPath(path));
    return files.map(({ path, isOwn }) => [path, isOwn]);
  };
  const copies = [
    ['/data/b/x.csv', false],
    ['/data/b/x.xml', false],
  ];
  expect(await find(undefined)).toEqual(copies);
  expect(await find(run + 1)).toEqual(expect.arrayContaining([['/data/a/x.xml', true], ...copies]));
  expect(await find(run + 1)).toHaveLength(3);
});

test('all files are searched in pieces, and every match is found once', async () => {
  const { path, reader } = await open();
  const database = new DatabaseSync(path);
  database.exec(`
    WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 7000)
    INSERT INTO files SELECT iif(id % 2, 'odd', 'even'), '/data/' || id || iif(id % 10, '.csv', '.txt'), 1, 1, 1, 'skipped',
      NULL, '', NULL, NULL FROM n;`);
  database.close();
  const query = { search: '.txt', limit: 10_000 };
  const { files } = await reader.searchFiles(query, { jobs: [] }, 60_000, single);
  expect(files).toHaveLength(700);
  expect(await reader.searchFiles({ ...query, search: '.none' }, { jobs: [] }, 0, single)).toEqual({
    files: [],
    hasMoreFiles: true,
  });
});
