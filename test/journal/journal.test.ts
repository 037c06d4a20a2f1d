import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { openDatabase } from '../../src/journal/database.js';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { openReader } from '../../src/journal/reader.js';
import type { FoundFile } from '../../src/model.js';
import { due, knows, recheck, refuse, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

async function journalAt(path = join(tempFolder(), 'state', 'journal.db')): Promise<Journal> {
  const journal = await openJournal(path, manualClock());
  onTestFinished(() => journal.close().catch(() => undefined));
  return journal;
}

const found = (path: string, mtimeNs = 5n): FoundFile => ({
  path,
  location: path,
  size: 1,
  mtimeNs,
  inode: 9n,
});

const dueRuns = (journal: Journal, limit = 100): Promise<number[]> =>
  due(journal, Number.MAX_SAFE_INTEGER, limit);

test('a run and its draft come back as they were added, after a restart too', async () => {
  const path = join(tempFolder(), 'journal.db');
  const first = await journalAt(path);
  await take(first, newRun('a'), someDraft('A', ['one', 'two']));
  await first.close();
  const again = await journalAt(path);
  const [id = 0] = await dueRuns(again);
  expect(await again.outbox.load(id)).toMatchObject({
    step: 'pending',
    instrument: 'balance',
    experiment: undefined,
    draft: { title: 'A', date: '2026-01-02', body: '<p>A</p>', tags: ['balance'] },
    comments: [
      { n: 1, text: 'one', comment: undefined },
      { n: 2, text: 'two', comment: undefined },
    ],
  });
});

test('the same bytes are known under another path, unless copies are runs of their own', async () => {
  const journal = await journalAt();
  await take(journal, newRun('a'), someDraft('A'));
  expect(await knows(journal, newRun('a', { path: '/data/copy.csv' }))).toBe(true);
  expect(await knows(journal, newRun('a', { copy: '/data/copy.csv' }))).toBe(false);
  expect(await knows(journal, newRun('a', { instrument: 'other' }))).toBe(false);
  expect(await knows(journal, newRun('b'))).toBe(false);
});

test('two equal files that arrive together make one run', async () => {
  const journal = await journalAt();
  await Promise.all([
    take(journal, newRun('a'), someDraft('A')),
    take(journal, newRun('a', { path: '/data/copy.csv' }), someDraft('A')),
  ]);
  expect(await dueRuns(journal)).toHaveLength(1);
});

test('the quick look passes what was taken and stays as it was, and nothing else', async () => {
  const journal = await journalAt();
  const run = newRun('a');
  await take(journal, run, someDraft('A'));
  expect(await journal.intake.unknown('balance', [run.file])).toEqual([]);
  for (const change of [
    { size: 2 },
    { mtimeNs: run.file.mtimeNs + 1n },
    { inode: 1n },
    { path: '/data/b' },
  ]) {
    expect(await journal.intake.unknown('balance', [{ ...run.file, ...change }])).toHaveLength(1);
  }
  expect(await journal.intake.unknown('other', [run.file])).toHaveLength(1);
});

test('a file that could not be read is known under the same mapping and read anew under another', async () => {
  const journal = await journalAt();
  const run = newRun('a');
  await refuse(
    journal,
    run,
    new FileError('no table', { where: { file: run.file.path, line: 3 }, hint: 'say header: none' }),
  );
  expect(await dueRuns(journal)).toEqual([]);
  expect(await journal.outbox.count()).toEqual({ quarantined: 1 });
  expect(await knows(journal, run)).toBe(true);

  const mended = { ...run, mapping: 'm2' };
  expect(await recheck(journal, 'balance', 'm1')).toBe(0);
  expect(await recheck(journal, 'balance', 'm2')).toBe(1);
  expect(await journal.intake.unknown('balance', [run.file])).toHaveLength(1);
  expect(await knows(journal, mended)).toBe(false);
  await take(journal, mended, someDraft('A'));
  expect(await dueRuns(journal)).toHaveLength(1);
});

test('live runs go before backlog, and instruments take turns', async () => {
  const journal = await journalAt();
  for (const content of ['1', '2', '3'])
    await take(journal, newRun(content, { instrument: 'many', backlog: true }), someDraft(content));
  for (const content of ['4', '5'])
    await take(journal, newRun(content, { instrument: 'few', backlog: true }), someDraft(content));
  await take(journal, newRun('6', { instrument: 'many' }), someDraft('6'));
  const order = await Promise.all(
    (await dueRuns(journal)).map(async (id) => (await journal.outbox.load(id)).draft.title),
  );
  expect(order[0]).toBe('6');
  expect(order.slice(1)).toEqual(['4', '1', '5', '2', '3']);
  expect(await due(journal, Number.MAX_SAFE_INTEGER, 2)).toHaveLength(2);
});

test('a postponed run is not due before its time, and its time is known', async () => {
  const journal = await journalAt();
  await take(journal, newRun('a'), someDraft('A'));
  const [id = 0] = await dueRuns(journal);
  await journal.outbox.record(id, { kind: 'postponed', dueAt: 5000, failure: 'server', reason: 'away' });
  expect(await due(journal, 4999, 10)).toEqual([]);
  expect(await due(journal, 5000, 10)).toEqual([id]);
  expect(await journal.outbox.nextDueAt()).toBe(5000);
  expect((await journal.outbox.load(id)).attempts).toBe(1);
});

test('the highest id is remembered per server, and an experiment belongs to one run only', async () => {
  const journal = await journalAt();
  await take(journal, newRun('a'), someDraft('A'));
  await take(journal, newRun('b'), someDraft('B'));
  const [a = 0, b = 0] = await dueRuns(journal);
  const intent = { kind: 'intended', server: 's', floor: undefined, at: 1 } as const;
  await journal.outbox.record(a, intent, { kind: 'created', experiment: 41, found: false });
  expect((await journal.outbox.server('s').facts()).highest).toBe(41);
  await expect(
    journal.outbox.record(b, intent, { kind: 'created', experiment: 41, found: true }),
  ).rejects.toThrow(/UNIQUE/);
  expect((await journal.outbox.load(b)).step).toBe('pending');
});

test('one bad record does not take the records of the same commit down', async () => {
  const journal = await journalAt();
  await take(journal, newRun('a'), someDraft('A'));
  await take(journal, newRun('b'), someDraft('B'));
  const [a = 0, b = 0] = await dueRuns(journal);
  const created = { kind: 'created', experiment: 7, found: false } as const;
  const intent = { kind: 'intended', server: 's', floor: 1, at: 1 } as const;
  const results = await Promise.allSettled([
    journal.outbox.record(a, intent, created),
    journal.outbox.record(b, intent, created),
    journal.outbox.record(a, { kind: 'described' }),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect((await journal.outbox.load(a)).step).toBe('described');
});

test('many old files are one question, which the configuration answers later', async () => {
  const journal = await journalAt();
  const files = [found('/data/1', 1n), found('/data/2', BigInt(Date.UTC(2026, 5, 1)) * 1_000_000n)];
  await journal.intake.holdBacklog('balance', files);
  await journal.intake.endFirstScan('balance');
  expect(await journal.intake.firstScanAt('balance')).toBeDefined();
  expect(await journal.intake.unknown('balance', files)).toEqual([]);
  expect(await journal.intake.decideBacklog('balance', { since: '2026-01-01' })).toEqual({
    files: 2,
    toFile: 1,
  });
  expect((await journal.intake.unknown('balance', files)).map(({ path }) => path)).toEqual(['/data/2']);
  expect(await journal.intake.decideBacklog('balance', 'ingest')).toEqual({ files: 0, toFile: 0 });
});

test('a journal from a newer version is refused and left as it is', async () => {
  const path = join(tempFolder(), 'journal.db');
  await (await journalAt(path)).close();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
  const before = readFileSync(path);
  await expect(openJournal(path, manualClock())).rejects.toThrow(/version 99, written by a newer labfeed/);
  expect(readFileSync(path)).toEqual(before);
});

test('a journal that another daemon holds is refused, and free again when that one ends', async () => {
  const path = join(tempFolder(), 'journal.db');
  const first = await journalAt(path);
  await expect(openJournal(path, manualClock())).rejects.toThrow(/in use by another daemon/);
  await take(first, newRun('a'), someDraft('A'));
  await first.close();
  expect(await dueRuns(await journalAt(path))).toHaveLength(1);
});

test('a file that is no journal is refused and left as it is', async () => {
  const path = join(tempFolder(), 'journal.db');
  writeFileSync(path, 'my thesis '.repeat(1000));
  await expect(openJournal(path, manualClock())).rejects.toThrow(/cannot open the journal/);
  expect(readFileSync(path, 'utf8')).toBe('my thesis '.repeat(1000));
});

test('a journal in a place that cannot be written is refused with what to do', async () => {
  const file = join(tempFolder(), 'a-file');
  writeFileSync(file, '');
  await expect(openJournal(join(file, 'journal.db'), manualClock())).rejects.toMatchObject({
    message: expect.stringContaining(join(file, 'journal.db')),
    hint: expect.stringContaining('journal'),
  });
});

test('a journal on a network share is refused with what to do, and none is made there', async () => {
  const path = join(tempFolder(), 'journal.db');
  await expect(openDatabase(path, async () => true)).rejects.toMatchObject({
    message: expect.stringContaining('is on a network share'),
    hint: expect.stringContaining('put it on a local disk'),
  });
  expect(existsSync(path)).toBe(false);
});

test('a journal that may exist but cannot be reached is not reported as missing', () => {
  const folder = tempFolder();
  symlinkSync('loop', join(folder, 'loop'));
  expect(() => openReader(join(folder, 'loop', 'journal.db'))).toThrow(/cannot open the journal .*ELOOP/);
  expect(() => openReader(join(folder, 'journal.db'))).toThrow(/there is no journal/);
});

test.skipIf(process.geteuid?.() === 0)('a journal in a private folder is reported as not permitted', () => {
  const folder = join(tempFolder(), 'private');
  mkdirSync(folder, { mode: 0 });
  expect(() => openReader(join(folder, 'journal.db'))).toThrow(/journal\.db: permission denied/);
});
