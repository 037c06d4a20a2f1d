import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { type JournalReader, openReader } from '../../src/journal/reader.js';
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

test('a run is found by file name, title, instrument, tag and sample, in any case, and by all words together', async () => {
  const { journal, reader } = await open();
  const draft = { ...someDraft('Weighing'), body: '<td>Caf&amp;Co &lt;x&gt; Ärztin</td>', tags: ['pH meter'] };
  await take(journal, newRun('a', { path: '/data/50%_Run-17.csv', instrument: 'scale' }), draft);
  await take(journal, newRun('b'), someDraft('Other'));
  const found = async (search: string, more: object = {}): Promise<number[]> =>
    (await reader.search({ search, limit: 10, ...more }, 1000)).jobs.map(({ id }) => id);
  for (const words of ['run-17', '50%_', 'weigh', 'SCALE', 'ph meter', 'caf&co', '<x>', 'ÄRZTIN', 'run-17 weighing'])
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
  const first = await reader.search({ search: 'needle', limit: 10 }, 0);
  expect(first).toEqual({ jobs: [], searchedTo: 19_001 });
  let longestMs = 0;
  let last = performance.now();
  const beat = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last);
    last = performance.now();
  }, 1);
  const rest = await reader.search({ search: 'needle', limit: 10, before: 19_001 }, 60_000);
  clearInterval(beat);
  expect(rest.searchedTo).toBeUndefined();
  expect(rest.jobs.map(({ id }) => id)).toEqual([1]);
  expect(longestMs).toBeGreaterThan(0);
  expect(longestMs).toBeLessThan(500);
});
