import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { deliver } from '../../src/deliver/deliver.js';
import { migrate, openDatabase } from '../../src/journal/database.js';
import { createJournal, type Journal, openJournal, writeNote } from '../../src/journal/journal.js';
import { MIGRATIONS } from '../../src/journal/migrations.js';
import { openReader } from '../../src/journal/reader.js';
import { fakeNotebook } from '../support/fake-notebook.js';
import { contextOf } from '../support/filing.js';
import { due, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

async function journalAt(path = join(tempFolder(), 'state', 'journal.db')): Promise<Journal> {
  const journal = await openJournal(path, manualClock());
  onTestFinished(() => journal.close().catch(() => undefined));
  return journal;
}

const dueRuns = (journal: Journal, limit = 100): Promise<number[]> => due(journal, Number.MAX_SAFE_INTEGER, limit);

test('a journal of a newer version is refused and not changed', async () => {
  const path = join(tempFolder(), 'journal.db');
  await (await journalAt(path)).close();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
  const before = readFileSync(path);
  await expect(openJournal(path, manualClock())).rejects.toThrow(/version 99, written by a newer labfeed/);
  expect(readFileSync(path)).toEqual(before);
});

test('a journal that another daemon has locked is refused until that daemon ends', async () => {
  const path = join(tempFolder(), 'journal.db');
  const first = await journalAt(path);
  await expect(openJournal(path, manualClock())).rejects.toThrow(/in use by another daemon/);
  await take(first, newRun('a'), someDraft('A'));
  await first.close();
  expect(await dueRuns(await journalAt(path))).toHaveLength(1);
});

test('a file that is not a journal is refused and not changed', async () => {
  const path = join(tempFolder(), 'journal.db');
  writeFileSync(path, 'my thesis '.repeat(1000));
  await expect(openJournal(path, manualClock())).rejects.toThrow(/cannot open the journal/);
  expect(readFileSync(path, 'utf8')).toBe('my thesis '.repeat(1000));
});

test('a journal in a folder that cannot be written is refused with a hint', async () => {
  const file = join(tempFolder(), 'a-file');
  writeFileSync(file, '');
  await expect(openJournal(join(file, 'journal.db'), manualClock())).rejects.toMatchObject({
    message: expect.stringContaining(join(file, 'journal.db')),
    hint: expect.stringContaining('journal'),
  });
});

test('a journal on a network share is refused with a hint, and none is created there', async () => {
  const path = join(tempFolder(), 'journal.db');
  await expect(openDatabase(path, () => true)).rejects.toMatchObject({
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

const everything = (journal: Journal): Promise<number[]> => due(journal, Number.MAX_SAFE_INTEGER, 1000);

/** A journal on a disk that can be filled: it then gets no more pages than it has. */
function onFullDisk() {
  const database = new DatabaseSync(join(tempFolder(), 'journal.db'));
  migrate(database, 'journal.db');
  const clock = manualClock();
  const journal = createJournal({ database, clock, release: () => undefined });
  onTestFinished(() => journal.close());
  const { page_count: pages } = database.prepare('PRAGMA page_count').get() as { page_count: number };
  return {
    journal,
    clock,
    fill: () => database.exec(`PRAGMA max_page_count = ${pages}`),
    free: () => database.exec('PRAGMA max_page_count = 1000000'),
  };
}

test('on a full disk a record fails with a hint, and succeeds once there is space', async () => {
  const { journal, fill, free } = onFullDisk();
  const large = someDraft('A', ['x'.repeat(100_000)]);
  fill();
  await expect(take(journal, newRun('a'), large)).rejects.toMatchObject({
    message: expect.stringMatching(/full/),
    hint: expect.stringContaining('labfeed sends nothing that it cannot record'),
  });
  expect(await everything(journal)).toEqual([]);
  await journal.respond();
  free();
  await take(journal, newRun('a'), large);
  expect(await everything(journal)).toHaveLength(1);
});

test('records fail while the journal is read-only, and succeed once it is writable', async () => {
  const database = new DatabaseSync(join(tempFolder(), 'journal.db'));
  migrate(database, 'journal.db');
  const journal = createJournal({ database, clock: manualClock(), release: () => undefined });
  onTestFinished(() => journal.close());
  database.exec('PRAGMA query_only = ON');
  await expect(take(journal, newRun('a'), someDraft('A'))).rejects.toThrow(/read-?only/);
  expect(await everything(journal)).toEqual([]);
  database.exec('PRAGMA query_only = OFF');
  await take(journal, newRun('a'), someDraft('A'));
  expect(await everything(journal)).toHaveLength(1);
});

test('nothing is sent if its intent could not be recorded', async () => {
  const { journal, clock } = onFullDisk();
  await take(journal, newRun('a'), someDraft('A'));
  const [id = 0] = await everything(journal);
  const notebook = fakeNotebook();
  const context = contextOf(journal, notebook, clock);
  const full = { ...context, outbox: { ...context.outbox, record: () => Promise.reject(new Error('disk full')) } };
  await expect(deliver(await journal.outbox.load(id), full)).rejects.toThrow('disk full');
  expect(notebook.writes).toEqual([]);
  await deliver(await journal.outbox.load(id), context);
  expect(notebook.writes[0]).toBe('createExperiment');
});

/** The files as a power cut leaves them: the journal was not closed. */
async function cutOff(runs: number): Promise<string> {
  const folder = tempFolder();
  const journal = await openJournal(join(folder, 'journal.db'), manualClock());
  onTestFinished(() => journal.close());
  for (let n = 0; n < runs; n++) await take(journal, newRun(`run ${n}`), someDraft(`run ${n}`));
  const left = join(tempFolder(), 'journal.db');
  for (const ending of ['', '-wal']) {
    if (existsSync(join(folder, `journal.db${ending}`)))
      copyFileSync(join(folder, `journal.db${ending}`), left + ending);
  }
  return left;
}

test('garbage at the end of the write-ahead log after a power cut is ignored, and every durable record is there', async () => {
  const path = await cutOff(20);
  appendFileSync(`${path}-wal`, Buffer.alloc(3000, 0xaa));
  const journal = await openJournal(path, manualClock());
  onTestFinished(() => journal.close());
  expect(await everything(journal)).toHaveLength(20);
});

test('a truncated write-ahead log loses only the records that were in the missing part', async () => {
  const path = await cutOff(20);
  const whole = await everythingAt(path);
  const torn = await cutOff(20);
  truncateSync(`${torn}-wal`, 60_000);
  const left = await everythingAt(torn);
  expect(whole).toBe(20);
  expect(left).toBeLessThanOrEqual(20);
});

async function everythingAt(path: string): Promise<number> {
  const journal = await openJournal(path, manualClock());
  const runs = await everything(journal);
  await journal.close();
  return runs.length;
}

test('if the process is killed while the tables are created, the next start creates them', async () => {
  const path = join(tempFolder(), 'journal.db');
  const database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(`BEGIN IMMEDIATE; ${MIGRATIONS[0]}`);
  database.close();
  const journal = await openJournal(path, manualClock());
  onTestFinished(() => journal.close());
  await take(journal, newRun('a'), someDraft('A'));
  expect(await everything(journal)).toHaveLength(1);
});

test('a journal with damaged pages is refused with a hint', async () => {
  const path = join(tempFolder(), 'journal.db');
  const journal = await openJournal(path, manualClock());
  await journal.close();
  writeFileSync(path, Buffer.alloc(8192, 0x5a), { flag: 'r+' });
  await expect(openJournal(path, manualClock())).rejects.toMatchObject({
    hint: expect.stringContaining('Restore a backup'),
  });
});

test.each([0o000, 0o022])('the journal and its side files are private with the umask %o, new or not', async (umask) => {
  const path = join(tempFolder(), 'journal.db');
  const before = process.umask(umask);
  onTestFinished(() => void process.umask(before));
  for (const suffix of ['-wal', '.lock']) writeFileSync(path + suffix, '', { mode: 0o666 });
  const { database, release } = await openDatabase(path);
  database.exec('CREATE TABLE more (x)');
  const modes = ['', '-wal', '-shm', '.lock'].map((suffix) => statSync(path + suffix).mode & 0o777);
  expect(modes).toEqual([0o600, 0o600, 0o600, 0o600]);
  database.close();
  release();
});

test.skipIf(process.geteuid?.() !== 0)('root follows no link that the owner of the folder has put there', async () => {
  const folder = tempFolder();
  const [journals, secret] = [join(folder, 'journals'), join(folder, 'secret')];
  mkdirSync(journals, { mode: 0o700 });
  chmodSync(folder, 0o755);
  chownSync(journals, 65_534, 65_534);
  writeFileSync(secret, 'only for root', { mode: 0o644 });
  const path = join(journals, 'journal.db');
  symlinkSync(join(folder, 'created'), `${path}.lock`);
  await expect(openJournal(path, manualClock())).rejects.toThrow();
  expect(existsSync(join(folder, 'created'))).toBe(false);
  rmSync(`${path}.lock`);
  for (const name of ['seen.new', 'seen'].map((end) => `${path}.${end}`)) symlinkSync(secret, name);
  const journal = await openJournal(path, manualClock());
  await writeNote(path, { journal: journal.outbox.id, noted: 1 });
  await journal.close();
  expect(readFileSync(secret, 'utf8')).toBe('only for root');
  expect(statSync(secret)).toMatchObject({ uid: 0, gid: 0 });
  expect([path, `${path}.seen`, `${path}.lock`].map((file) => statSync(file).uid)).toEqual([65_534, 65_534, 65_534]);
});
