import { expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { createJournal, openJournal } from '../../src/journal/journal.js';
import type { AlarmBook } from '../../src/model.js';
import { noteStatements, refuse, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { emptyDatabase, memoryJournal } from '../support/memory-journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

const ALARM = { kind: 'silence', instrument: 'balance', since: 1000, text: 'no file' } as const;
const GENERAL = { kind: 'auth', instrument: undefined, since: 2000, text: 'no key' } as const;

test('raised alarms and unsent notices survive a restart', async () => {
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

test('the last file of an instrument and its first scan survive a restart', async () => {
  const clock = manualClock(5000);
  const journal = memoryJournal(clock);
  expect(await journal.outbox.lastAddedAt('balance')).toBeUndefined();
  expect(await journal.intake.firstScanAt('balance')).toBeUndefined();
  await journal.intake.endFirstScan('balance');
  clock.advance(10);
  await take(journal, newRun('a'), someDraft('A'));
  clock.advance(10);
  await refuse(journal, newRun('b'), new FileError('no'));
  expect(await journal.intake.firstScanAt('balance')).toBe(5000);
  expect(await journal.outbox.lastAddedAt('balance')).toBe(5020);
  expect(await journal.outbox.lastAddedAt('other')).toBeUndefined();
});

test('the journal reports why it cannot be written until a write succeeds', async () => {
  const database = emptyDatabase();
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

test('after a failed sync the journal does not respond any more', async () => {
  const database = emptyDatabase();
  let isBroken = false;
  const sync = async () => {
    if (isBroken) throw new Error('EIO');
  };
  const journal = createJournal({ database, clock: manualClock(), release: () => undefined, sync });
  await journal.respond();
  isBroken = true;
  await expect(journal.respond()).rejects.toThrow('cannot write the journal to disk: EIO');
  isBroken = false;
  await expect(journal.respond()).rejects.toThrow('cannot write the journal to disk: EIO');
  await journal.close();
});

test('what the daemon asks again and again does not read all runs', async () => {
  const database = emptyDatabase();
  const statements = new Set<string>();
  const noting = noteStatements(database, statements);
  const { outbox, close } = createJournal({
    database: noting,
    clock: manualClock(),
    release: () => undefined,
  });
  statements.clear();
  const scope = { server: 'https://notebook', attached: ['balance'], dropped: ['balance'] };
  await outbox.claim(5000, 8);
  await outbox.nextDueAt();
  await outbox.waitingForPeople();
  await outbox.overdue(5000);
  await outbox.pullForward(5000);
  await outbox.uploads.claim(5000, 8, scope);
  await outbox.uploads.nextDueAt(scope);
  await outbox.sources.claim(5000, 8, ['balance']);
  await outbox.sources.claimHidden(5000);
  await outbox.sources.trouble(['balance']);
  const plans = [...statements]
    .filter((sql) => /^\s*(SELECT|UPDATE)/.test(sql))
    .flatMap((sql) =>
      (database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(
        ({ detail }) => `${detail}: ${sql}`,
      ),
    );
  expect(plans.length).toBeGreaterThan(10);
  // Single rows, or an index that has only rows that are open.
  const open = /USING (INTEGER PRIMARY KEY|PRIMARY KEY|(COVERING )?INDEX \w+_(open|due|waiting|hidden|parked)\b)/;
  expect(plans.filter((plan) => /^(SCAN|SEARCH) (runs|attachments|sources)\b/.test(plan) && !open.test(plan))).toEqual(
    [],
  );
  await close();
});
