import { DatabaseSync } from '@photostructure/sqlite';
import { expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { migrate } from '../../src/journal/database.js';
import { createJournal, openJournal } from '../../src/journal/journal.js';
import type { AlarmBook } from '../../src/model.js';
import { manualClock } from '../support/manual-clock.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

const ALARM = { kind: 'silence', instrument: 'balance', since: 1000, text: 'no file' } as const;
const GENERAL = { kind: 'auth', instrument: undefined, since: 2000, text: 'no key' } as const;

test('alarms and what is still to be told are there again when the journal is opened again', async () => {
  const path = `${tempFolder()}/journal.db`;
  const unsent = {
    ...GENERAL,
    channel: 'webhook',
    state: 'raised',
    at: 2000,
    attempts: 3,
    dueAt: 9000,
  } as const;
  const book: AlarmBook = { raised: [ALARM, GENERAL], unsent: [unsent, { ...unsent, state: 'over' }] };
  const first = await openJournal(path, manualClock());
  expect(await first.alarms.load()).toEqual({ raised: [], unsent: [] });
  await first.alarms.save({ raised: [ALARM], unsent: [] });
  await first.alarms.save(book);
  await first.close();
  const second = await openJournal(path, manualClock());
  expect(await second.alarms.load()).toEqual(book);
  await second.close();
});

test('what waits for a person is counted by instrument, with the newest of it', async () => {
  const journal = memoryJournal(manualClock());
  expect(await journal.resting.unsettled()).toEqual(new Map());
  await journal.runs.refuse(newRun('a'), new FileError('first'));
  await journal.runs.refuse(newRun('b'), new FileError('second'));
  await journal.runs.add(newRun('c', { instrument: 'other' }), someDraft('C'));
  await journal.runs.record(3, { kind: 'parked', as: 'held', failure: 'conflict', reason: 'changed' });
  await journal.files.ask('third', [{ ...newRun('d').file, path: '/data/d.csv' }]);
  await journal.files.endFirstScan('third');
  expect(await journal.resting.unsettled()).toEqual(
    new Map([
      [
        'balance',
        {
          quarantined: { runs: 2, path: '/data/b.csv', reason: expect.stringContaining('second') },
          held: undefined,
          asked: 0,
        },
      ],
      [
        'other',
        { quarantined: undefined, held: { runs: 1, path: '/data/c.csv', reason: 'changed' }, asked: 0 },
      ],
      ['third', { quarantined: undefined, held: undefined, asked: 1 }],
    ]),
  );
  await journal.runs.record(3, { kind: 'parked', as: 'quarantined', failure: 'request', reason: 'no' });
  expect((await journal.resting.unsettled()).get('other')).toMatchObject({
    held: undefined,
    quarantined: { runs: 1, reason: 'no' },
  });
});

test('the last file of an instrument, and its first scan, are known after a restart', async () => {
  const clock = manualClock(5000);
  const journal = memoryJournal(clock);
  expect(await journal.resting.lastFileAt('balance')).toBeUndefined();
  expect(await journal.resting.firstScanAt('balance')).toBeUndefined();
  await journal.files.endFirstScan('balance');
  clock.advance(10);
  await journal.runs.add(newRun('a'), someDraft('A'));
  clock.advance(10);
  await journal.runs.refuse(newRun('b'), new FileError('no'));
  expect(await journal.resting.firstScanAt('balance')).toBe(5000);
  expect(await journal.resting.lastFileAt('balance')).toBe(5020);
  expect(await journal.resting.lastFileAt('other')).toBeUndefined();
});

test('a journal that cannot be written says why, until it can again', async () => {
  const database = new DatabaseSync(':memory:');
  migrate(database, ':memory:');
  const journal = createJournal({ database, clock: manualClock(), release: () => undefined });
  expect(journal.trouble()).toBeUndefined();
  database.exec('PRAGMA query_only = ON');
  await expect(journal.alarms.save({ raised: [ALARM], unsent: [] })).rejects.toThrow();
  expect(journal.trouble()).toMatch(/readonly/);
  database.exec('PRAGMA query_only = OFF');
  await journal.alarms.save({ raised: [], unsent: [] });
  expect(journal.trouble()).toBeUndefined();
  await journal.close();
});
