import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/journal/database.js';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { openReader } from '../../src/journal/reader.js';
import type { FoundFile } from '../../src/model.js';
import { due, take } from '../support/journal.js';
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

const dueRuns = (journal: Journal, limit = 100): Promise<number[]> => due(journal, Number.MAX_SAFE_INTEGER, limit);

test('the quick look passes what was taken and stays as it was, and nothing else', async () => {
  const journal = await journalAt();
  const run = newRun('a');
  await take(journal, run, someDraft('A'));
  expect(await journal.intake.unknown('balance', [run.file])).toEqual([]);
  for (const change of [{ size: 2 }, { mtimeNs: run.file.mtimeNs + 1n }, { inode: 1n }, { path: '/data/b' }]) {
    expect(await journal.intake.unknown('balance', [{ ...run.file, ...change }])).toHaveLength(1);
  }
  expect(await journal.intake.unknown('other', [run.file])).toHaveLength(1);
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
