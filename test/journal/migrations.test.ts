import { join } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openJournal } from '../../src/journal/journal.js';
import { MIGRATIONS } from '../../src/journal/migrations.js';
import { openReader } from '../../src/journal/reader.js';
import { lockForLife } from '../../src/system/filesystem.js';
import { knows } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, sha256 } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

/** A journal as an older version left it, with these rows. */
function olderJournal(version: number, rows: string): string {
  const path = join(tempFolder(), 'journal.db');
  const database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = WAL');
  for (const step of MIGRATIONS.slice(0, version)) database.exec(step);
  database.exec(`${rows} PRAGMA user_version = ${version};`);
  database.close();
  return path;
}

const COLUMNS = `id, instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping, step,
  added_at, updated_at`;

const ONE_RUN = `INSERT INTO runs (${COLUMNS})
  VALUES (1, 'balance', 'x', '', 0, 'r', '/a', 1, 1, 0, 'm', 'pending', 1, 1);`;

test('every new journal of a process has the tables that all steps lead to, and they are empty', async () => {
  const tablesOf = (database: DatabaseSyncInstance) =>
    database.prepare('SELECT name, sql FROM sqlite_schema ORDER BY name').all() as { name: string; sql: string }[];
  const stepped = new DatabaseSync(':memory:');
  for (const step of MIGRATIONS) stepped.exec(step);
  for (let count = 0; count < 2; count++) {
    const path = join(tempFolder(), 'journal.db');
    await (await openJournal(path, manualClock())).close();
    const created = new DatabaseSync(path);
    const tables = tablesOf(created);
    expect(tables).toEqual(tablesOf(stepped));
    expect(created.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: MIGRATIONS.length });
    for (const { name } of tables.filter((one) => one.sql?.startsWith('CREATE TABLE') && one.name !== 'identity'))
      expect([name, created.prepare(`SELECT * FROM ${name}`).all()]).toEqual([name, []]);
    created.close();
  }
});

test('a journal of any older version is migrated when somebody reads it', async () => {
  for (let version = 1; version < MIGRATIONS.length; version++) {
    const reader = openReader(olderJournal(version, ONE_RUN));
    expect((await reader.overview()).instruments).toMatchObject([{ name: 'balance', runs: { queued: 1 } }]);
    await reader.close();
  }
});

test('a journal that a daemon of an older version uses is left to it', () => {
  const path = olderJournal(1, ONE_RUN);
  const lock = new DatabaseSync(`${path}.lock`);
  expect(lockForLife(lock)).toBe(true);
  expect(() => openReader(path)).toThrow(
    expect.objectContaining({
      message: expect.stringContaining('older version'),
      hint: expect.stringContaining('restart the daemon'),
    }),
  );
  lock.close();
  const database = new DatabaseSync(path, { readOnly: true });
  expect(database.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: 1 });
  database.close();
});

const { mtimeNs, inode } = newRun('a').file;
const file = (path: string, size: number, verdict: string, run: number | null): string =>
  `INSERT INTO files VALUES ('balance', '${path}', ${size}, ${mtimeNs}, ${BigInt.asIntN(64, inode)}, '${verdict}', ${run});`;

/** Version 7: files referred to runs, and parked runs were called resting. */
const VERSION_7 = `
  INSERT INTO runs (${COLUMNS}, resting, failure, reason, server, experiment) VALUES
    (1, 'balance', '${sha256('a')}', '', 0, 'r1', '/data/a.csv', 1, 1, 0, 'm1', 'done', 1, 1, NULL, NULL, NULL, 's', 12),
    (2, 'balance', '${sha256('bb')}', '', 0, 'r2', '/data/bb.csv', 2, 1, 0, 'm1', 'pending', 1, 1,
       'quarantined', 'file', 'no table', NULL, NULL),
    (3, 'balance', '${sha256('ccc')}', '', 0, 'r3', 'ccc.csv', 0, 0, 0, '', 'done', 1, 1, NULL, NULL, NULL, 's', 13),
    (4, 'balance', '${sha256('dddd')}', '/data/dddd.csv', 0, 'r4', '/data/dddd.csv', 4, 1, 0, 'm1', 'created', 1, 1,
       'held', 'conflict', 'changed', 's', 14);
  INSERT INTO drafts VALUES (1, 'A', '2026-01-02', '<p>A</p>', '[]');
  INSERT INTO history (run, at, event, detail) VALUES (4, 1, 'rested', '{"as":"held","reason":"changed"}');
  INSERT INTO instruments VALUES ('balance', 5, 1);
  INSERT INTO servers (url, highest, set_back) VALUES ('s', 14, 13);
  ${file('/data/a.csv', 1, 'taken', 1)} ${file('/data/copy of a.csv', 1, 'taken', 1)}
  ${file('/data/bb.csv', 2, 'taken', 2)} ${file('/data/ccc.csv', 3, 'taken', 3)}
  ${file('/data/dddd.csv', 4, 'taken', 4)}
  ${file('/data/skipped.csv', 9, 'skipped', null)} ${file('/data/old.csv', 9, 'asked', null)}`;

test('a journal of the previous version keeps its files, runs, history and server facts', async () => {
  const path = olderJournal(7, VERSION_7);
  const journal = await openJournal(path, manualClock());
  const reader = openReader(path);
  onTestFinished(async () => {
    await reader.close();
    await journal.close();
  });
  const { intake, outbox } = journal;
  const files = ['a', 'bb', 'ccc', 'dddd'].map((content) => newRun(content).file);
  expect(await intake.unknown('balance', files)).toEqual([]);
  expect(await intake.firstScanAt('balance')).toBe(5);
  expect(await intake.backlogs()).toEqual(new Map([['balance', 1]]));
  expect(await outbox.count()).toEqual({ done: 2, quarantined: 1, held: 1 });
  for (const content of ['a', 'bb', 'ccc']) expect(await knows(journal, newRun(content))).toBe(true);
  expect(await knows(journal, newRun('dddd', { copy: '/data/dddd.csv' }))).toBe(true);
  expect(await intake.wasTaken('balance', { ...newRun('other').file, path: '/data/a.csv' })).toBe(true);
  expect(await intake.recheck('balance', await outbox.unread('balance', 'm2'))).toBe(1);
  expect((await intake.unknown('balance', files)).map((one) => one.path)).toEqual(['/data/bb.csv']);
  expect(await outbox.server('s').facts()).toMatchObject({ highest: 14, restoredFrom: 13 });
  expect((await reader.job(1))?.paths).toEqual(['/data/a.csv', '/data/copy of a.csv']);
  expect(await reader.job(4)).toMatchObject({
    state: 'held',
    history: [{ event: 'rested', detail: { as: 'held' } }],
  });
  expect(await reader.files('/data/', 10)).toHaveLength(7);
  expect((await reader.files('old', 10))[0]).toMatchObject({ verdict: 'asked', run: undefined });
});

test('a recovered run that a file was matched with before the migration is not claimed by a copy', async () => {
  const journal = await openJournal(olderJournal(7, VERSION_7), manualClock());
  onTestFinished(() => journal.close());
  const copy = '/elsewhere/ccc.csv';
  expect(await journal.outbox.match(newRun('ccc', { path: copy, copy }))).toEqual({ kind: 'new' });
});

test('the counts of runs by state survive the migration and are kept up to date by it', async () => {
  const path = olderJournal(7, VERSION_7);
  const journal = await openJournal(path, manualClock());
  const reader = openReader(path);
  onTestFinished(async () => {
    await reader.close();
    await journal.close();
  });
  await journal.outbox.record(2, { kind: 'parked', as: 'held', failure: 'conflict', reason: 'r' });
  const [balance] = (await reader.overview()).instruments;
  expect(balance?.runs).toMatchObject({ done: 2, held: 2, quarantined: 0 });
});
