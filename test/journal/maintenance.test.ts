import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { backUp } from '../../src/journal/maintenance.js';
import { openReader } from '../../src/journal/reader.js';
import { openClient } from '../../src/journal/requests.js';
import type { RunChange } from '../../src/outbox.js';
import { decide, knows, refuse, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';
import { openTestJournal } from '../support/test-journal.js';

const SERVER = 'https://eln.example.org';

async function open(path: string): Promise<Journal> {
  const journal = await openJournal(path, manualClock());
  onTestFinished(() => journal.close().catch(() => undefined));
  return journal;
}

async function setUp() {
  const folder = tempFolder();
  const path = join(folder, 'journal.db');
  const journal = await open(path);
  await take(journal, newRun('a'), someDraft('A', ['one', 'two']));
  return { journal, path, copy: join(folder, 'copy.db'), folder };
}

test('a backup of a journal in use is complete, private and a valid journal', async () => {
  const { journal, path, copy, folder } = await setUp();
  const writing = take(journal, newRun('b'), someDraft('B'));
  expect(backUp(path, copy, SERVER)).toEqual({ runs: 1, bytes: statSync(copy).size });
  await writing;
  expect(statSync(copy).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder).filter((name) => name.startsWith('copy'))).toEqual(['copy.db']);
  const restored = await open(copy);
  expect(await restored.outbox.count()).toEqual({ queued: 1 });
  expect(await restored.outbox.load(1)).toMatchObject({ draft: { title: 'A' }, comments: [{}, {}] });
});

test('a restored backup is halted, and has none of the requests of the original', async () => {
  const { path, copy } = await setUp();
  const client = openClient(path);
  await client.ask([{ kind: 'refile', run: 1 }], 1);
  await client.close();
  backUp(path, copy, SERVER);
  const restored = await open(copy);
  expect((await restored.outbox.server(SERVER).facts()).halted).toMatch(/labfeed recover/);
  expect(await decide(restored)).toEqual([]);
});

test('a backup overwrites nothing, and a failed one leaves no file', async () => {
  const { path, copy, folder } = await setUp();
  writeFileSync(copy, 'my thesis');
  expect(() => backUp(path, copy, SERVER)).toThrow(/already exists/);
  expect(readFileSync(copy, 'utf8')).toBe('my thesis');
  writeFileSync(join(folder, 'other.db.part'), '');
  expect(() => backUp(path, join(folder, 'other.db'), SERVER)).toThrow(/part already exists/);
  expect(() => backUp(path, join(folder, 'nowhere', 'copy.db'), SERVER)).toThrow(/cannot write/);
  expect(() => backUp(join(folder, 'none.db'), join(folder, 'third.db'), SERVER)).toThrow(/no journal at/);
  expect(existsSync(join(folder, 'third.db.part'))).toBe(false);
});

const DONE = (experiment: number): RunChange[] => [
  { kind: 'intended', server: 'https://eln.example.org', floor: 9, at: 1 },
  { kind: 'created', experiment, found: false },
  { kind: 'commented', n: 1, comment: experiment, found: false },
  { kind: 'finished' },
];
const HELD: RunChange = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' };
const LATER = Number.MAX_SAFE_INTEGER;

test('pruning removes history, draft and texts of finished runs; fingerprints, paths and ids stay', async () => {
  const { journal, path, ask } = await openTestJournal();
  for (const content of ['done', 'open', 'held']) await take(journal, newRun(content), someDraft(content));
  await refuse(journal, newRun('refused'), new FileError('no table'));
  await refuse(journal, newRun('ignored'), new FileError('no table'));
  await journal.outbox.record(1, ...DONE(12));
  await journal.outbox.record(3, HELD);
  await ask({ kind: 'ignore', run: 5 });
  expect(await journal.outbox.prune(0, 0)).toEqual({ runs: 0, next: undefined });
  expect(await journal.outbox.prune(LATER, 0)).toEqual({ runs: 2, next: undefined });
  const reader = openReader(path);
  expect(await reader.job(1)).toMatchObject({
    state: 'done',
    path: '/data/done.csv',
    experiment: 12,
    draft: undefined,
    history: [],
    comments: [{ n: 1, text: '', comment: 12 }],
    paths: ['/data/done.csv'],
  });
  for (const id of [2, 3]) expect((await reader.job(id))?.draft).toBeDefined();
  for (const id of [2, 3, 4]) expect((await reader.job(id))?.history).not.toEqual([]);
  await reader.close();
  for (const content of ['done', 'open', 'held', 'refused', 'ignored'])
    expect(await knows(journal, newRun(content))).toBe(true);
  expect(await journal.outbox.prune(LATER, 0)).toEqual({ runs: 0, next: undefined });
});

test('pruning keeps the draft of a run whose raw file is still to be attached', async () => {
  const { journal } = await openTestJournal();
  const attachments = [{ name: 'a.csv', path: '/data/a.csv', sha256: 'aa', size: 1 }];
  await take(journal, newRun('a', { attachments }), someDraft('a'));
  await journal.outbox.record(1, ...DONE(12));
  expect(await journal.outbox.prune(LATER, 0)).toMatchObject({ runs: 0 });
  await journal.outbox.uploads.record(1, { kind: 'uploaded', n: 1, upload: 7, found: false });
  expect(await journal.outbox.prune(LATER, 0)).toMatchObject({ runs: 1 });
});

test('pruning keeps the draft of a run whose file is still to be moved or deleted: it is compared with that', async () => {
  const { journal } = await openTestJournal();
  const [path, location] = ['/data/a.csv', '/data/a.csv'];
  const sources = [{ path, location, sha256: 'aa', identity: '1:2:3', readyAt: 0 }];
  await take(journal, newRun('a', { sources }), someDraft('a'));
  await journal.outbox.record(1, ...DONE(12));
  expect(await journal.outbox.prune(LATER, 0)).toMatchObject({ runs: 0 });
  const settled = { kind: 'sourceSettled', n: 1, path, outcome: 'moved', to: '/filed/a.csv' } as const;
  await journal.outbox.sources.record(1, settled);
  expect(await journal.outbox.prune(LATER, 0)).toMatchObject({ runs: 1 });
});

test('pruning works in small batches, each from the end of the previous one', async () => {
  const { journal } = await openTestJournal();
  for (let n = 1; n <= 100; n++) {
    await take(journal, newRun(`r${n}`), someDraft(`r${n}`));
    await journal.outbox.record(n, ...DONE(n));
  }
  let removed = 0;
  let batches = 0;
  for (let from: number | undefined = 0; from !== undefined; batches++) {
    const { runs, next } = await journal.outbox.prune(LATER, from);
    expect(runs).toBeLessThan(50);
    removed += runs;
    from = next;
  }
  expect(removed).toBe(100);
  expect(batches).toBeGreaterThan(2);
});

test('a pruned journal becomes smaller, and knows every file as before', async () => {
  const path = join(tempFolder(), 'journal.db');
  const journal = await open(path);
  const contents = Array.from({ length: 100 }, (_, n) => `r${n}`);
  for (const [n, content] of contents.entries()) {
    await take(journal, newRun(content), someDraft(content, ['x'.repeat(50_000)]));
    await journal.outbox.record(n + 1, ...DONE(n + 1));
  }
  for (let from: number | undefined = 0; from !== undefined; ) from = (await journal.outbox.prune(LATER, from)).next;
  expect(await Promise.all(contents.map((content) => knows(journal, newRun(content))))).not.toContain(false);
  await journal.close();
  // 5 MB of comments are gone.
  expect(statSync(path).size).toBeLessThan(1_500_000);
  const again = await open(path);
  expect(await knows(again, newRun('r7'))).toBe(true);
});

test('a pruned run can be refiled from its file', async () => {
  const { journal, ask } = await openTestJournal();
  await take(journal, newRun('a'), someDraft('a'));
  await journal.outbox.record(1, ...DONE(12));
  await journal.outbox.prune(LATER, 0);
  expect(await ask({ kind: 'refile', run: 1 })).toMatchObject({ done: true, rescan: 'balance' });
  expect(await knows(journal, newRun('a'))).toBe(false);
});

test('quarantined and held runs are counted by instrument, with the newest reason', async () => {
  const journal = memoryJournal(manualClock());
  expect(await journal.outbox.waitingForPeople()).toEqual(new Map());
  await refuse(journal, newRun('a'), new FileError('first'));
  await refuse(journal, newRun('b'), new FileError('second'));
  await take(journal, newRun('c', { instrument: 'other' }), someDraft('C'));
  await journal.outbox.record(3, { kind: 'parked', as: 'held', failure: 'conflict', reason: 'changed' });
  await journal.intake.holdBacklog('third', [{ ...newRun('d').file, path: '/data/d.csv' }]);
  await journal.intake.endFirstScan('third');
  expect(await journal.outbox.waitingForPeople()).toEqual(
    new Map([
      [
        'balance',
        {
          quarantined: { runs: 2, path: '/data/b.csv', reason: expect.stringContaining('second') },
          held: undefined,
        },
      ],
      ['other', { quarantined: undefined, held: { runs: 1, path: '/data/c.csv', reason: 'changed' } }],
    ]),
  );
  expect(await journal.intake.backlogs()).toEqual(new Map([['third', 1]]));
  await journal.outbox.record(3, { kind: 'parked', as: 'quarantined', failure: 'request', reason: 'no' });
  expect((await journal.outbox.waitingForPeople()).get('other')).toMatchObject({
    held: undefined,
    quarantined: { runs: 1, reason: 'no' },
  });
});

test('repeated postponements for the same reasons are one history event each, until something else happens', async () => {
  const { journal, path } = await setUp();
  const history = async () => {
    const reader = openReader(path);
    const job = await reader.job(1);
    await reader.close();
    return (job?.history ?? []).slice(1).map(({ event, detail }) => {
      const { reason = '', times = 1 } = (detail ?? {}) as { reason?: string; times?: number };
      return `${event} ${reason} ${times}`;
    });
  };
  const postponed = (reason: string): RunChange => ({ kind: 'postponed', dueAt: 5, failure: 'server', reason });
  const intended: RunChange = { kind: 'intended', server: SERVER, floor: 1, at: 1 };
  for (let n = 0; n < 37; n += 1) await journal.outbox.record(1, postponed('down'));
  expect(await history()).toEqual(['postponed down 37']);
  for (let n = 0; n < 3; n += 1)
    for (const reason of ['no answer', 'down']) await journal.outbox.record(1, postponed(reason));
  expect(await history()).toEqual(['postponed down 40', 'postponed no answer 3']);
  // Attempts that certainly created nothing are part of the repetition.
  await journal.outbox.record(1, intended);
  await journal.outbox.record(1, { kind: 'notCreated' });
  await journal.outbox.record(1, postponed('down'));
  expect(await history()).toEqual(['postponed down 41', 'postponed no answer 3']);
  // A creation with an unknown outcome stays on record.
  await journal.outbox.record(1, intended);
  await journal.outbox.record(1, postponed('down'));
  await journal.outbox.record(1, postponed('down'));
  expect(await history()).toEqual(['postponed down 41', 'postponed no answer 3', 'intended  1', 'postponed down 2']);
});

test('a run that a person retries after weeks is overdue an hour later, not at once', async () => {
  const clock = manualClock();
  const journal = memoryJournal(clock);
  await take(journal, newRun('a'), someDraft('a'));
  const addedAt = clock.now();
  await journal.outbox.record(1, HELD);
  clock.advance(30 * 86_400_000);
  await journal.requests.decide({ kind: 'retry', run: 1 }, { path: '/data/a.csv', has: 'itsBytes' });
  expect(await journal.outbox.overdue(clock.now())).toBeUndefined();
  clock.advance(1);
  expect(await journal.outbox.overdue(clock.now())).toMatchObject({ run: 1, since: addedAt + 30 * 86_400_000 });
});
