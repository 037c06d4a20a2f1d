import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { STATE } from '../../src/journal/database.js';
import type { Request } from '../../src/journal/decisions.js';
import { createJournal, type Journal, openJournal } from '../../src/journal/journal.js';
import { createReader, type JournalReader, openReader } from '../../src/journal/reader.js';
import { RUN_STATES } from '../../src/model.js';
import type { RunChange } from '../../src/outbox.js';
import { decide, knows, refuse, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { emptyDatabase } from '../support/memory-journal.js';
import { ReusableDatabase } from '../support/reusable-database.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

const SERVER = 'https://eln.example.org';
const HOUR_MS = 3_600_000;
const INTENDED: RunChange = { kind: 'intended', server: SERVER, floor: 9, at: 1 };
const HELD: RunChange = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' };

interface Opened {
  readonly journal: Journal;
  readonly reader: JournalReader;
  readonly clock: ReturnType<typeof manualClock>;
}

async function open(): Promise<Opened> {
  const path = join(tempFolder(), 'journal.db');
  const clock = manualClock();
  const journal = await openJournal(path, clock);
  const reader = openReader(path);
  onTestFinished(async () => {
    await reader.close();
    await journal.close();
  });
  return { journal, reader, clock };
}

async function add({ journal }: Opened, content: string, ...changes: RunChange[]): Promise<number> {
  const added = await take(journal, newRun(content), someDraft(content));
  const id = added.run;
  if (changes.length > 0) await journal.outbox.record(id, ...changes);
  return id;
}

test('jobs are found by state and instrument, newest first, and page by page', async () => {
  const scene = await open();
  const { journal, reader } = scene;
  await add(scene, 'queued');
  await add(scene, 'sending', INTENDED);
  await add(scene, 'done', INTENDED, { kind: 'created', experiment: 12, found: false }, { kind: 'finished' });
  await add(scene, 'held', HELD);
  await refuse(journal, newRun('refused', { instrument: 'other' }), new FileError('no table'));
  const found = async (filter: object): Promise<number[]> =>
    (await reader.jobs({ limit: 10, ...filter })).map(({ id }) => id);
  expect(await found({})).toEqual([5, 4, 3, 2, 1]);
  expect(await found({ limit: 2, before: 4 })).toEqual([3, 2]);
  expect(await found({ instrument: 'other' })).toEqual([5]);
  expect(await Promise.all(RUN_STATES.map((state) => found({ state })))).toEqual([[], [1], [2], [3], [5], [4], []]);
  expect(await found({ state: 'held', instrument: 'other' })).toEqual([]);
  expect((await reader.jobs({ state: 'done', limit: 1 }))[0]).toMatchObject({
    instrument: 'balance',
    state: 'done',
    title: 'done',
    server: SERVER,
    experiment: 12,
    path: '/data/done.csv',
  });
});

test('a run is shown with its draft, comments, history, paths and drift', async () => {
  const scene = await open();
  const shape = (...columns: string[]) => ({
    shape: { tables: [{ name: 'readings', columns: columns.map((name) => ({ name })) }] },
    drift: 'warn' as const,
    kinds: 1,
  });
  await take(scene.journal, newRun('a'), someDraft('A'), shape('x', 'y'));
  await take(scene.journal, newRun('b'), someDraft('B', ['one', 'two']), shape('x'));
  await knows(scene.journal, newRun('b', { path: '/data/copy of b.csv' }));
  expect(await scene.reader.job(2)).toMatchObject({
    state: 'queued',
    draft: { title: 'B', tags: ['balance'] },
    comments: [
      { n: 1, text: 'one', comment: undefined },
      { n: 2, text: 'two' },
    ],
    history: [{ event: 'read', detail: { path: '/data/b.csv' } }, { event: 'drifted' }],
    paths: ['/data/b.csv', '/data/copy of b.csv'],
    drift: [expect.stringContaining('y')],
  });
  expect(await scene.reader.job(3)).toBeUndefined();
});

test('files are found by a part of their path, whether or not they became runs', async () => {
  const scene = await open();
  await add(scene, 'plate 7');
  const skipped = { path: '/data/plate 8.csv', location: '', size: 1, mtimeNs: 1n, inode: 1n };
  await scene.journal.intake.skip('balance', [skipped]);
  expect(await scene.reader.files('plate', 10)).toEqual([
    { instrument: 'balance', path: '/data/plate 7.csv', verdict: 'taken', run: 1 },
    { instrument: 'balance', path: '/data/plate 8.csv', verdict: 'skipped', run: undefined },
  ]);
  expect(await scene.reader.files('plate 9', 10)).toEqual([]);
});

test('the overview has runs by hour, the last run, the oldest waiting run, backlogs and servers', async () => {
  const database = emptyDatabase();
  const clock = manualClock();
  const journal = createJournal({ database, clock, release: () => undefined });
  const reader = createReader(database, clock.now);
  const hour = clock.now() / HOUR_MS;
  await take(journal, newRun('long ago'), someDraft('long ago'));
  clock.advance(40 * 24 * HOUR_MS);
  await take(journal, newRun('a'), someDraft('A'));
  await take(journal, newRun('b', { instrument: 'asked' }), someDraft('B'));
  await journal.intake.holdBacklog('asked', [{ path: '/1', location: '/1', size: 1, mtimeNs: 1n, inode: 1n }]);
  await journal.intake.endFirstScan('asked');
  await journal.outbox.server(SERVER).learn({ halted: 'recover first' });
  expect(await reader.overview()).toMatchObject({
    instruments: [
      { name: 'asked', asked: 1, runs: { queued: 1 }, last: { id: 3 } },
      {
        name: 'balance',
        asked: 0,
        runs: { queued: 2, done: 0 },
        last: { id: 2 },
        hours: [{ hour: hour + 40 * 24, runs: 1 }],
        oldestAt: hour * HOUR_MS,
      },
    ],
    servers: [{ url: SERVER, halted: 'recover first' }],
  });
  await journal.close();
});

const CHANGES: readonly RunChange[] = [
  INTENDED,
  { kind: 'notCreated' },
  { kind: 'described' },
  { kind: 'commented', n: 1, comment: 5, found: false },
  { kind: 'finished' },
  { kind: 'postponed', dueAt: 5, failure: 'server', reason: 'away' },
  HELD,
  { kind: 'parked', as: 'quarantined', failure: 'request', reason: 'too long' },
];
const KINDS = ['retry', 'refile', 'ignore', 'erase', 'adopt'] as const;

const content = fc.integer({ min: 0, max: 6 }).map(String);
const instrument = fc.constantFrom('balance', 'other');
const run = fc.integer({ min: 1, max: 8 });
const operation = fc.oneof(
  fc.record({ op: fc.constant('add' as const), content, instrument, mapping: fc.constantFrom('m1', 'm2') }),
  fc.record({ op: fc.constant('refuse' as const), content, instrument }),
  fc.record({ op: fc.constant('record' as const), run, change: fc.constantFrom(...CHANGES) }),
  fc.record({ op: fc.constant('create' as const), run }),
  fc.record({ op: fc.constant('ask' as const), run, kind: fc.constantFrom(...KINDS) }),
  fc.record({ op: fc.constant('recover' as const), content, instrument, experiment: run }),
  fc.record({ op: fc.constant('release' as const), run }),
  fc.record({ op: fc.constant('prune' as const) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

async function perform(one: Operation, journal: Journal, database: ReusableDatabase): Promise<unknown> {
  switch (one.op) {
    case 'add':
      return take(journal, newRun(one.content, one), someDraft(one.content));
    case 'refuse':
      return refuse(journal, newRun(one.content, one), new FileError('no table'));
    case 'record':
      return journal.outbox.record(one.run, one.change);
    case 'create':
      return journal.outbox.record(one.run, INTENDED, { kind: 'created', experiment: one.run, found: false });
    case 'ask': {
      const request: Request =
        one.kind === 'adopt'
          ? { kind: 'adopt', run: one.run, server: SERVER, experiment: 20 + one.run }
          : { kind: one.kind, run: one.run };
      database.prepare('INSERT INTO inbox (at, request) VALUES (1, ?)').run(JSON.stringify(request));
      return decide(journal);
    }
    case 'recover': {
      const filed = {
        server: SERVER,
        file: 'x.csv',
        copies: false,
        comments: [],
        experiment: one.experiment,
      };
      return journal.recovery.take({ ...filed, instrument: one.instrument, sha256: sha256(one.content) });
    }
    case 'release': {
      const placed = { id: one.run, reference: '', instrument: '', sha256: '', experiment: 1, addedAt: 1 };
      return journal.recovery.release({ ...placed, drafted: true, createdAs: null, describedAs: null });
    }
    case 'prune':
      return journal.outbox.prune(Number.MAX_SAFE_INTEGER, 0);
  }
}

test('after any sequence of changes, the counts equal a full count', async () => {
  const database = new ReusableDatabase();
  const counted = database.prepare(
    `SELECT instrument, ${STATE} AS state, count(*) AS runs FROM runs GROUP BY 1, 2 ORDER BY 1, 2`,
  );
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 40 }), async (operations) => {
      database.empty();
      const clock = manualClock();
      const journal = createJournal({ database, clock, release: () => undefined });
      for (const one of operations) {
        clock.advance(HOUR_MS / 3);
        // A change that the tables reject is not counted either.
        await perform(one, journal, database).catch(() => undefined);
      }
      const { instruments } = await createReader(database, clock.now).overview();
      const told = instruments.flatMap(({ name, runs }) =>
        Object.entries(runs).map(([state, count]) => ({ instrument: name, state, runs: count })),
      );
      const sorted = told
        .filter(({ runs }) => runs !== 0)
        .sort((a, b) => a.instrument.localeCompare(b.instrument) || a.state.localeCompare(b.state));
      expect(sorted).toEqual(counted.all());
      const all = instruments.map(({ hours }) => hours.reduce((sum, { runs }) => sum + runs, 0));
      const kept = instruments.map(({ runs }) => Object.values(runs).reduce((sum, count) => sum + count, 0));
      expect(all).toEqual(kept);
    }),
    { numRuns: 60 },
  );
});

/** A reader that records its statements. */
function watched(): { reader: JournalReader; ran: string[]; plans(): string[] } {
  const database = emptyDatabase();
  const ran: string[] = [];
  const spy = new Proxy(database, {
    get(target, name) {
      if (name !== 'prepare') return Reflect.get(target, name);
      return (sql: string) => {
        const statement = target.prepare(sql);
        const noting =
          (how: 'get' | 'all') =>
          (...values: never[]) => {
            ran.push(sql);
            return statement[how](...values);
          };
        statement.setReturnArrays(true);
        return {
          get: noting('get'),
          all: noting('all'),
          setReturnArrays: () => undefined,
          columns: () => statement.columns(),
        };
      };
    },
  });
  const insert = createJournal({ database, clock: manualClock(), release: () => undefined });
  onTestFinished(() => insert.close());
  return {
    reader: createReader(spy),
    ran,
    plans: () =>
      ran.flatMap((sql) =>
        (database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(
          ({ detail }) => `${detail} in ${sql}`,
        ),
      ),
  };
}

test('neither the overview nor the list of waiting runs reads all runs', async () => {
  const { reader, ran, plans } = watched();
  await reader.overview();
  for (const state of ['queued', 'sending', 'quarantined', 'held', 'ignored'] as const) {
    await reader.jobs({ state, limit: 10 });
    await reader.jobs({ state, instrument: 'balance', limit: 10, before: 7 });
  }
  await reader.jobs({ instrument: 'balance', limit: 10 });
  await reader.job(1);
  expect(ran.length).toBeGreaterThan(10);
  // These have one row per instrument or server, or only open runs and uploads.
  const small =
    /^SCAN (growing USING INDEX growing_open|tallies|instruments|servers|runs USING INDEX runs_(open|due)|attachments USING INDEX attachments_(waiting|due)) /;
  const scans = plans().filter((plan) => plan.startsWith('SCAN') && !small.test(plan));
  expect(scans).toEqual([]);
});

/** A journal with this number of runs of two instruments, every fifth one quarantined. */
function manyRuns(runs: number) {
  const database = emptyDatabase();
  database
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO runs (id, instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping,
                         step, parked, server, experiment, added_at, updated_at)
         SELECT i, iif(i % 2, 'odd', 'even'), printf('%064x', i), '', 0, printf('%016x', i), '/data/' || i, 1, 1, 0, 'm',
                iif(i % 5, 'done', 'pending'), iif(i % 5, NULL, 'quarantined'), '${SERVER}', 1000 + i, 1, 1 FROM n`,
    )
    .run(runs);
  return { database, evidence: createReader(database) };
}

test('done runs are listed once, oldest first, and read page by page', async () => {
  const { database, evidence } = manyRuns(3000);
  expect(await evidence.countFiled(undefined)).toBe(2400);
  const ids: number[] = [];
  for await (const { id } of evidence.filed(undefined)) {
    ids.push(id);
    // Parked after the first page was read, and before its own page.
    if (id === 1) database.exec("UPDATE runs SET parked = 'held' WHERE id = 2999");
  }
  expect(ids).toHaveLength(2399);
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
  expect(ids).not.toContain(2999);
});

test('lists for one instrument contain only its runs, filed or not', async () => {
  const { evidence } = manyRuns(1500);
  const filed = await all(evidence.filed('odd'));
  expect(filed).toHaveLength(600);
  expect(filed.every(({ id }) => id % 2 === 1)).toBe(true);
  expect(await evidence.countFiled('odd')).toBe(600);
  expect((await all(evidence.unfiled('odd'))).map(({ state }) => state)).toEqual(Array(150).fill('quarantined'));
});

test('a content is represented by its last filing', async () => {
  const { database, evidence } = manyRuns(10);
  database.exec(
    `INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping, step,
                       added_at, updated_at)
       SELECT instrument, sha256, copy, 1, 'again', path, size, modified_ms, backlog, mapping, 'pending', 2, 2
         FROM runs WHERE id = 1`,
  );
  const content = { instrument: 'odd', sha256: '1'.padStart(64, '0'), copy: '' };
  expect(await evidence.ofContent(content)).toMatchObject({ id: 11, state: 'queued' });
  expect(await evidence.ofContent({ ...content, copy: '/data/1' })).toBeUndefined();
});

test('a done run that waits for a remap counts as queued: its file is still needed', async () => {
  const { database, evidence } = manyRuns(10);
  database.exec("INSERT INTO remaps (run, instrument, path) VALUES (1, 'odd', '/data/1')");
  const content = (id: number) => ({ instrument: 'odd', sha256: `${id}`.padStart(64, '0'), copy: '' });
  expect(await evidence.ofContent(content(1))).toMatchObject({ id: 1, state: 'queued' });
  expect(await evidence.ofContent(content(3))).toMatchObject({ id: 3, state: 'done' });
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
