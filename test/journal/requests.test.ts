import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { FileError } from '../../src/errors.js';
import { isFree } from '../../src/journal/database.js';
import { createJournal } from '../../src/journal/journal.js';
import { openClient } from '../../src/journal/requests.js';
import type { RunChange } from '../../src/outbox.js';
import { decide, due, knows, refuse, take } from '../support/journal.js';
import { emptyDatabase } from '../support/memory-journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { openTestJournal, type TestJournal } from '../support/test-journal.js';

const SERVER = 'https://eln.example.org';
const INTENDED: RunChange = { kind: 'intended', server: SERVER, floor: 9, at: 1 };
const HELD: RunChange = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' };

/** A run of this content after these changes. */
async function run({ journal }: TestJournal, content: string, ...changes: RunChange[]): Promise<number> {
  await take(journal, newRun(content), someDraft(content, ['one', 'two']));
  const id = (await due(journal)).at(-1) ?? 0;
  if (changes.length > 0) await journal.outbox.record(id, ...changes);
  return id;
}

const events = ({ rows }: TestJournal, id: number): unknown[] =>
  rows(`SELECT event FROM history WHERE run = ${id} ORDER BY id`).flatMap((row) => Object.values(row as object));

test('a command leaves its request while a daemon runs, and does not take the lock', async () => {
  const scene = await openTestJournal();
  const id = await run(scene, 'a', INTENDED, HELD);
  expect(isFree(scene.path)).toBe(false);
  const client = openClient(scene.path);
  await client.ask([{ kind: 'retry', run: id }], 1);
  await client.close();
  expect(await due(scene.journal)).toEqual([]);
  expect(await decide(scene.journal)).toMatchObject([{ done: true, request: { kind: 'retry', run: id } }]);
  expect(await due(scene.journal)).toEqual([id]);
  expect(await decide(scene.journal)).toEqual([]);
  await scene.journal.close();
  expect(isFree(scene.path)).toBe(true);
});

test('requests that cannot be answered because the journal cannot be synced fail, and the process continues', async () => {
  const database = emptyDatabase();
  for (const run of [1, 2])
    database.exec(`INSERT INTO inbox (at, request) VALUES (1, '{"kind":"retry","run":${run}}')`);
  const sync = async () => {
    throw new Error('input/output error');
  };
  const journal = createJournal({ database, clock: systemClock, sync, release: () => undefined });
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', note);
  onTestFinished(() => {
    process.off('unhandledRejection', note);
    for (const other of others) process.on('unhandledRejection', other);
  });
  await expect(decide(journal)).rejects.toThrow('input/output error');
  await new Promise(setImmediate);
  expect(unhandled).toEqual([]);
});

test('a command that asks whether a daemon runs does not see another command that asks', async () => {
  const scene = await openTestJournal();
  await scene.journal.close();
  const asking = new DatabaseSync(`${scene.path}.lock`);
  asking.exec('BEGIN; SELECT count(*) FROM sqlite_master');
  expect(isFree(scene.path)).toBe(true);
  asking.close();
});

test('retry continues a held run where it stopped, with its experiment', async () => {
  const scene = await openTestJournal();
  const postponed: RunChange = { kind: 'postponed', dueAt: 10 ** 14, failure: 'server', reason: 'away' };
  const created: RunChange = { kind: 'created', experiment: 12, found: false };
  const id = await run(scene, 'a', INTENDED, created, postponed, HELD);
  expect(await scene.ask({ kind: 'retry', run: id })).toMatchObject({
    done: true,
    text: expect.stringMatching(/^run 1 \(a\.csv\) continues.*keeps experiment 12/),
  });
  expect(await due(scene.journal, 0, 10)).toEqual([id]);
  expect(await scene.journal.outbox.load(id)).toMatchObject({ step: 'created', experiment: 12, attempts: 0 });
  expect(events(scene, id).at(-1)).toBe('retried');
});

test('retry reads a quarantined file again, under the same mapping too', async () => {
  const scene = await openTestJournal();
  const file = newRun('a');
  await refuse(scene.journal, file, new FileError('no table'));
  expect(await knows(scene.journal, file)).toBe(true);
  expect(await scene.ask({ kind: 'retry', run: 1 })).toMatchObject({ done: true, rescan: 'balance' });
  expect(await scene.journal.intake.unknown('balance', [file.file])).toHaveLength(1);
  expect(await knows(scene.journal, file)).toBe(false);
  expect(await scene.journal.outbox.count()).toEqual({ quarantined: 1 });
  await take(scene.journal, file, someDraft('A'));
  expect(await due(scene.journal)).toEqual([1]);
});

test('a request that does not fit the state of the run is refused with the reason and changes nothing', async () => {
  const scene = await openTestJournal();
  const onItsWay = await run(scene, 'a');
  const done = await run(
    scene,
    'b',
    INTENDED,
    { kind: 'created', experiment: 12, found: false },
    {
      kind: 'finished',
    },
  );
  const before = scene.rows('SELECT * FROM runs');
  for (const [request, reason] of [
    [{ kind: 'retry', run: 99 }, /there is no run 99/],
    [{ kind: 'retry', run: onItsWay }, /is being delivered/],
    [
      { kind: 'retry', run: done },
      /is done \(experiment 12\); .*labfeed retry 2 --remap; to file it again: labfeed refile 2/,
    ],
    [
      { kind: 'adopt', run: onItsWay, server: SERVER, experiment: 5 },
      /is being delivered; an experiment can be assigned only to a held run/,
    ],
    [
      { kind: 'adopt', run: done, server: SERVER, experiment: 5 },
      /is done.*; an experiment can be assigned only to a held run/,
    ],
    [{ kind: 'refile', run: onItsWay }, /is being delivered; only a run that is done, quarantined, held or ignored/],
  ] as const) {
    expect(await scene.ask(request)).toMatchObject({ done: false, text: expect.stringMatching(reason) });
  }
  expect(scene.rows('SELECT * FROM runs')).toEqual(before);
});

test('a request that this version cannot read is answered and does not stop the next one', async () => {
  const scene = await openTestJournal();
  const id = await run(scene, 'a', HELD);
  const database = new DatabaseSync(scene.path);
  database.exec(`INSERT INTO inbox (at, request) VALUES (1, '{"kind":"dance"}'), (1, 'not JSON')`);
  database.close();
  expect(await scene.ask({ kind: 'retry', run: id })).toMatchObject({ done: true });
  expect(scene.rows('SELECT 1 FROM inbox WHERE answer IS NULL')).toEqual([]);
});

test('adopt gives a held run the named experiment, and looks for its comments before posting', async () => {
  const scene = await openTestJournal();
  const id = await run(scene, 'a', INTENDED, HELD);
  await scene.journal.outbox.server(SERVER).addSpare(11);
  expect(await scene.ask({ kind: 'adopt', run: id, server: SERVER, experiment: 11 })).toMatchObject({
    done: true,
  });
  expect(await scene.journal.outbox.load(id)).toMatchObject({
    step: 'created',
    experiment: 11,
    adopted: true,
    server: SERVER,
    comments: [{ intentAt: 0, comment: undefined }, { intentAt: 0 }],
  });
  expect(await due(scene.journal)).toEqual([id]);
  expect(scene.rows('SELECT * FROM spares')).toEqual([]);
  // A mistyped number must not become the highest known id.
  expect((await scene.journal.outbox.server(SERVER).facts()).highest).toBeUndefined();
  expect(events(scene, id).at(-1)).toBe('adopted');
});

test('an experiment of another run cannot be adopted', async () => {
  const scene = await openTestJournal();
  const owner = await run(scene, 'a', INTENDED, { kind: 'created', experiment: 12, found: false });
  const id = await run(scene, 'b', INTENDED, HELD);
  expect(await scene.ask({ kind: 'adopt', run: id, server: SERVER, experiment: 12 })).toMatchObject({
    done: false,
    text: expect.stringContaining(`experiment 12, which belongs to run ${owner}`),
  });
  expect(await due(scene.journal)).toEqual([owner]);
});

test('refile adds a run with the same draft, another reference and no ids', async () => {
  const scene = await openTestJournal();
  const id = await run(
    scene,
    'a',
    INTENDED,
    { kind: 'created', experiment: 12, found: false },
    { kind: 'commented', n: 1, comment: 7, found: false },
    { kind: 'finished' },
  );
  expect(await scene.ask({ kind: 'refile', run: id })).toMatchObject({
    done: true,
    text: expect.stringMatching(/as run 2$/),
  });
  const [refiled = 0] = await due(scene.journal);
  const first = await scene.journal.outbox.load(id);
  const second = await scene.journal.outbox.load(refiled);
  expect(second).toMatchObject({ step: 'pending', experiment: undefined, draft: first.draft });
  expect(second.comments).toMatchObject([{ text: 'one', comment: undefined }, { text: 'two' }]);
  expect(second.reference).not.toBe(first.reference);
  expect(await knows(scene.journal, newRun('a'))).toBe(true);
  expect([events(scene, id).at(-1), events(scene, refiled)]).toEqual(['refiled', ['refiled']]);
  // A second refile by mistake does not file it a third time.
  expect(await scene.ask({ kind: 'refile', run: id })).toMatchObject({
    done: false,
    text: expect.stringContaining('refiled as run 2'),
  });
});

test('a held run that was refiled is never delivered', async () => {
  const scene = await openTestJournal();
  const id = await run(scene, 'a', INTENDED, HELD);
  await scene.ask({ kind: 'refile', run: id });
  expect(await due(scene.journal)).toEqual([2]);
  for (const request of [
    { kind: 'retry', run: id },
    { kind: 'adopt', run: id, server: SERVER, experiment: 5 },
    { kind: 'refile', run: id },
  ] as const)
    expect(await scene.ask(request)).toMatchObject({ done: false });
  expect(await scene.journal.outbox.count()).toEqual({ ignored: 1, queued: 1 });
});

test('a run without a draft is refiled once its file is read again', async () => {
  const scene = await openTestJournal();
  const file = newRun('a');
  await scene.journal.recovery.begin(SERVER);
  const filed = { server: SERVER, experiment: 12, file: 'a.csv', copies: false, comments: [] };
  await scene.journal.recovery.take({ ...filed, instrument: 'balance', sha256: file.file.sha256 });
  expect(await knows(scene.journal, file)).toBe(true);
  expect(await scene.journal.intake.unknown('balance', [file.file])).toEqual([]);
  expect(await scene.ask({ kind: 'refile', run: 1 })).toMatchObject({ done: true, rescan: 'balance' });
  expect(await scene.journal.outbox.count()).toEqual({ done: 1, quarantined: 1 });
  expect(await scene.journal.intake.unknown('balance', [file.file])).toHaveLength(1);
  expect(await knows(scene.journal, file)).toBe(false);
  await take(scene.journal, file, someDraft('A'));
  expect(await due(scene.journal)).toEqual([2]);
  const [first, second] = scene.rows('SELECT reference, experiment FROM runs ORDER BY id');
  expect(second).not.toEqual(first);
});

const FILED: readonly RunChange[] = [
  { kind: 'intended', server: SERVER, floor: 9, at: 1 },
  { kind: 'created', experiment: 12, found: false },
  { kind: 'described' },
  { kind: 'commentIntended', n: 1, at: 2 },
  { kind: 'commented', n: 1, comment: 71, found: false },
  { kind: 'commentIntended', n: 2, at: 3 },
  { kind: 'commented', n: 2, comment: 72, found: false },
  { kind: 'finished' },
];

async function withRun(...changes: readonly RunChange[]): Promise<TestJournal> {
  const scene = await openTestJournal();
  await take(scene.journal, newRun('a'), someDraft('a', ['one', 'two']));
  if (changes.length > 0) await scene.journal.outbox.record(1, ...changes);
  return scene;
}

const missing = (n: number, comment: number) => ({ kind: 'repair', run: 1, comments: [{ n, comment }] }) as const;

test('repair reopens a done run only for the missing comment', async () => {
  const scene = await withRun(...FILED);
  expect(await scene.ask(missing(2, 72))).toEqual({
    done: true,
    text: 'run 1 (a.csv): comment 2 on experiment 12 will be posted again',
  });
  expect(await due(scene.journal)).toEqual([1]);
  expect(await scene.journal.outbox.load(1)).toMatchObject({
    step: 'described',
    experiment: 12,
    comments: [
      { n: 1, comment: 71 },
      { n: 2, comment: undefined, intentAt: undefined, gone: 72 },
    ],
  });
  expect(scene.rows('SELECT event, detail FROM history ORDER BY id DESC LIMIT 1')).toEqual([
    { event: 'repaired', detail: '{"comments":[{"n":2,"comment":72}]}' },
  ]);
});

test('a repeated repair changes nothing, nor does one of a comment that has another id by now', async () => {
  const scene = await withRun(...FILED);
  await scene.ask(missing(2, 72));
  expect(await scene.ask(missing(2, 72))).toEqual({
    done: true,
    text: 'run 1 (a.csv) is already being delivered',
  });
  await scene.journal.outbox.record(1, { kind: 'commented', n: 2, comment: 99, found: false }, { kind: 'finished' });
  expect(await scene.ask(missing(2, 72))).toEqual({ done: true, text: 'run 1 (a.csv) is already repaired' });
  expect(await due(scene.journal)).toEqual([]);
  expect((await scene.journal.outbox.load(1)).comments).toMatchObject([{ comment: 71 }, { comment: 99 }]);
});

test('repair continues a postponed run at once and keeps its number of attempts', async () => {
  const postponed: RunChange = { kind: 'postponed', dueAt: 10 ** 14, failure: 'server', reason: 'away' };
  const scene = await withRun(...FILED.slice(0, 2), postponed);
  expect(await due(scene.journal, 10 ** 13, 9)).toEqual([]);
  expect(await scene.ask({ kind: 'repair', run: 1, comments: [] })).toEqual({
    done: true,
    text: 'run 1 (a.csv) continues now',
  });
  expect(await due(scene.journal, 10 ** 13, 9)).toEqual([1]);
  expect(await scene.journal.outbox.load(1)).toMatchObject({ step: 'created', attempts: 1 });
});

test('a run that waits for a person is not repaired', async () => {
  const scene = await withRun(...FILED.slice(0, 3), {
    kind: 'parked',
    as: 'held',
    failure: 'conflict',
    reason: 'somebody changed it',
  });
  expect(await scene.ask(missing(1, 71))).toMatchObject({
    done: false,
    text: expect.stringMatching(/is held/),
  });
  expect(await due(scene.journal)).toEqual([]);
});

test('a comment whose text is not in the journal is not repaired', async () => {
  const scene = await openTestJournal();
  await scene.journal.recovery.begin(SERVER);
  const { sha256 } = newRun('a').file;
  const comments = [{ id: 71, reference: '0123456789abcdef', n: 1 }];
  const filed = { server: SERVER, experiment: 12, file: 'a.csv', copies: false, comments };
  await scene.journal.recovery.take({ ...filed, instrument: 'balance', sha256 });
  expect(await scene.ask(missing(1, 71))).toMatchObject({
    done: false,
    text: expect.stringMatching(/has no draft.* refile 1$/),
  });
  expect(await due(scene.journal)).toEqual([]);
});
