import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import type { DeliveryContext } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { FileError, NotebookError } from '../../src/errors.js';
import type { RunRequest } from '../../src/journal/decisions.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';
import { commentMark, referenceOf } from '../../src/markers.js';
import type { Dialect } from '../../src/model.js';
import type { Added, NewRun } from '../../src/outbox.js';
import { FAULTS, type FakeNotebook, type Fault, fakeNotebook, intercept } from '../support/fake-notebook.js';
import { contextOf, draftOf, recoverInto, SERVER } from '../support/filing.js';
import { due, noteStatements } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { emptyDatabase } from '../support/memory-journal.js';
import { newRun, sha256 } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';

const PATH = '/data/run.csv';
const KINDS = [{ dialect: 'v2' }, { dialect: 'elabftw' }] as const;

/** Versions have different numbers of comments. */
const commentsOf = (content: string): string[] =>
  ['one', 'two', 'three'].slice(0, content.length).map((n) => `${n} of ${content}`);

class Crash extends Error {}

type Seen = Parameters<typeof newRun>[1] & { readonly problem?: FileError; readonly comments?: readonly string[] };

/** A journal and a notebook, and what intake and delivery do with the versions of one file. */
async function setUp(kind: { readonly dialect: Dialect } = { dialect: 'v2' }, notebook = fakeNotebook(kind)) {
  const clock = manualClock();
  let database = emptyDatabase();
  const statements = new Set<string>();
  let process = 0;
  const open = (): Journal => {
    process += 1;
    const own = process;
    // What a process has not written when it ends is lost.
    const schedule = (act: () => void) => void setImmediate(() => own === process && act());
    const noting = noteStatements(database, statements);
    return createJournal({ database: noting, clock, schedule, release: () => undefined });
  };
  let journal = open();
  await journal.outbox.server(SERVER).learn(kind);
  let context = contextOf(journal, notebook, clock);
  onTestFinished(() => journal.close());

  const scene = {
    clock,
    notebook,
    /** Where intake sees the file, unless said otherwise. */
    path: PATH,
    journal: (): Journal => journal,
    /** How SQLite finds the rows of all statements so far. */
    plans: () =>
      [...statements]
        .filter((sql) => /^\s*(SELECT|UPDATE|DELETE|INSERT)/.test(sql))
        .flatMap((sql) =>
          scene.rows<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => `${detail} in ${sql}`),
        ),
    rows: <T = Record<string, unknown>>(sql: string): T[] => database.prepare(sql).all() as T[],
    /** The file has this content, and intake sees it. */
    async see(
      content: string,
      { problem, comments = commentsOf(content), ...changes }: Seen = {},
    ): Promise<Added['outcome']> {
      const file = newRun(content, { path: scene.path, ...changes });
      const run: NewRun = {
        ...file,
        revises: { last: await journal.intake.lastTaken(file.instrument, file.file) },
      };
      const match = await journal.outbox.match(run);
      if (match.kind === 'known') journal.intake.remember(run.instrument, run.file, match);
      if (match.kind === 'known') return 'known';
      if (match.kind === 'version' && match.isBusy) return 'busy';
      const reading = problem ? { problem } : { draft: draftOf(content, run, [...comments]) };
      const added = await journal.outbox.add(run, reading);
      if (added.outcome !== 'busy') journal.intake.remember(run.instrument, run.file, added);
      return added.outcome;
    },
    async deliver(change: (context: DeliveryContext) => DeliveryContext = (same) => same): Promise<void> {
      for (let attempt = 0; attempt < 50; attempt++) {
        const [id] = await due(journal, Number.MAX_SAFE_INTEGER, 1);
        if (id === undefined) return;
        const run = await journal.outbox.load(id);
        try {
          await deliver(run, change(context));
        } catch (error) {
          if (error instanceof Crash) throw error;
          const failed = afterFailure(error, { attempts: run.attempts }, clock.now());
          await journal.outbox.record(id, failed);
          if (failed.kind === 'postponed') clock.advance(Math.max(0, failed.dueAt - clock.now()));
        }
      }
      throw new Error('the run is never done');
    },
    restart(): void {
      journal = open();
      context = contextOf(journal, notebook, clock);
    },
    /** The result replaces the journal by what it is now. */
    backUp(): () => void {
      const copy = join(tempFolder(), 'copy.db');
      database.prepare('VACUUM INTO ?').run(copy);
      return () => {
        database = new DatabaseSync(copy);
        scene.restart();
      };
    },
    async decide(request: RunRequest) {
      const { answer } = await journal.requests.decide(request, { path: PATH, has: 'itsBytes' });
      return answer;
    },
    entries: () => [...notebook.experiments.values()],
    /** What the only experiment shows. */
    shown() {
      const [only, ...others] = scene.entries();
      expect(others).toEqual([]);
      return { title: only?.title, comments: [...(only?.comments.values() ?? [])].map((text) => text.split('\n')[0]) };
    },
    states: () => scene.rows<{ id: number; state: string }>('SELECT id, ifnull(parked, step) AS state FROM runs'),
    reasonOf: (run: number) => String(scene.rows(`SELECT reason FROM runs WHERE id = ${run}`)[0]?.['reason']),
  };
  return scene;
}

type Scene = Awaited<ReturnType<typeof setUp>>;

const asFiled = (content: string) => ({ title: content, comments: commentsOf(content) });

async function withVersions(kind: { readonly dialect: Dialect }, ...contents: string[]): Promise<Scene> {
  const scene = await setUp(kind);
  for (const content of contents) {
    await scene.see(content);
    await scene.deliver();
  }
  return scene;
}

for (const kind of KINDS) {
  test(`other bytes at the same path update the experiment, and A → B → A ends at A (${kind.dialect})`, async () => {
    const scene = await setUp(kind);
    expect(await scene.see('a')).toBe('queued');
    await scene.deliver();
    for (const content of ['bb', 'ccc', 'a']) {
      expect(await scene.see(content)).toBe('changed');
      await scene.deliver();
      expect(scene.shown()).toEqual(asFiled(content));
      expect(scene.entries()[0]?.body).toContain(sha256(content));
    }
    expect(await scene.see('a')).toBe('known');
    expect(scene.states()).toEqual([{ id: 1, state: 'done' }]);
  });

  test(`the marker lines keep the reference that was derived from the first version (${kind.dialect})`, async () => {
    const first = referenceOf({ instrument: 'balance', sha256: sha256('a'), copy: '', refiling: 0 });
    const scene = await withVersions(kind, 'a', 'bb');
    const lines = [...(scene.entries()[0]?.comments.values() ?? [])].map((text) => text.split('\n').at(-1));
    expect(lines).toEqual([commentMark(first, 1), commentMark(first, 2)]);
  });

  test(`a version that replaces one that was never sent is the only one that is sent (${kind.dialect})`, async () => {
    const scene = await setUp(kind);
    await scene.see('a');
    await scene.see('bb');
    await scene.see('ccc');
    await scene.deliver();
    expect(scene.shown()).toEqual(asFiled('ccc'));
    expect(scene.notebook.writes.filter((write) => write === 'createExperiment')).toHaveLength(1);
  });

  test(`while a version is being sent, the next one waits, and only the newest is sent then (${kind.dialect})`, async () => {
    const scene = await withVersions(kind, 'a');
    await scene.see('bb');
    const [id = 0] = await scene.journal().outbox.claim(Number.MAX_SAFE_INTEGER, 1);
    expect(await scene.see('ccc')).toBe('busy');
    expect(await scene.see('dd')).toBe('busy');
    await scene.journal().outbox.release(id);
    await scene.deliver();
    expect(scene.shown()).toEqual(asFiled('bb'));
    expect(await scene.see('dd')).toBe('changed');
    await scene.deliver();
    expect(scene.shown()).toEqual(asFiled('dd'));
  });

  for (const [before, after] of [
    ['a', 'ccc'],
    ['ccc', 'a'],
    ['bb', 'dd'],
  ] as const)
    test(`after a crash at any point of ${before} → ${after} → ${before}, everything is there once (${kind.dialect})`, async () => {
      let points = 0;
      for (let crashAt = 1; ; crashAt++) {
        const scene = await withVersions(kind, before);
        let step = 0;
        for (const content of [after, before]) {
          await scene.see(content);
          await scene.deliver(crashing(() => ++step === crashAt)).catch(async (error: unknown) => {
            if (!(error instanceof Crash)) throw error;
            scene.restart();
            await scene.see(content);
            await scene.deliver();
          });
          expect(scene.shown()).toEqual(asFiled(content));
        }
        expect(scene.states()).toEqual([{ id: 1, state: 'done' }]);
        points = crashAt;
        if (step < crashAt) break;
      }
      expect(points).toBeGreaterThan(8);
    });

  test(`after a crash at any point, a newer version than the one that was being sent wins (${kind.dialect})`, async () => {
    for (let crashAt = 1, step = 0; step >= crashAt - 1; crashAt++) {
      const scene = await withVersions(kind, 'bb');
      step = 0;
      await scene.see('ccc');
      const isCrashed = await scene.deliver(crashing(() => ++step === crashAt)).then(
        () => false,
        () => true,
      );
      if (isCrashed) scene.restart();
      await scene.see('a');
      await scene.deliver();
      expect(scene.shown()).toEqual(asFiled('a'));
      if (!isCrashed) break;
    }
  });

  for (const operation of ['patchExperiment', 'patchComment', 'deleteComment', 'postComment'] as const)
    for (const fault of ['lost', 'dropped'] as const satisfies Fault[])
      test(`a ${fault} of ${operation} leaves every version once (${kind.dialect})`, async () => {
        const scene = await withVersions(kind, 'bb');
        for (const content of ['ccc', 'a']) {
          let isFirst = true;
          const faulty = intercept(scene.notebook, async ({ operation: named, isWrite, carryOut }) => {
            if (named !== operation || !isFirst) return carryOut();
            isFirst = false;
            if (FAULTS[fault].carriedOut === 'now') await carryOut();
            throw FAULTS[fault].error(isWrite);
          });
          await scene.see(content);
          await scene.deliver((context) => ({ ...context, notebook: faulty }));
          expect(scene.shown()).toEqual(asFiled(content));
        }
        expect(scene.states()).toEqual([{ id: 1, state: 'done' }]);
      });
}

for (const kind of KINDS) {
  const edits: readonly [string, (scene: Scene) => void, RegExp][] = [
    ['title', ({ notebook }) => edit(notebook, { title: 'mine' }), /title: “mine”; labfeed wrote “a”/],
    [
      'date',
      ({ notebook }) => edit(notebook, { date: '2020-01-01' }),
      /date: “2020-01-01”; labfeed wrote “2026-01-02”/,
    ],
    [
      'body',
      ({ notebook }) => edit(notebook, { body: '<p>all mine</p>' }),
      /body: “all mine”; labfeed wrote “labfeed bal/,
    ],
    ['comment', ({ notebook }) => editComment(notebook, 'mine\n'), /comment: “mine”; labfeed wrote “one of a”/],
  ];
  for (const [what, change, difference] of edits)
    test(`a version is held if somebody changed the ${what}, and shows the difference (${kind.dialect})`, async () => {
      const scene = await withVersions(kind, 'a');
      const kept = structuredClone(scene.notebook.experiments);
      change(scene);
      const left = structuredClone(scene.notebook.experiments);
      await scene.see('bb');
      await scene.deliver();
      expect(scene.states()).toEqual([{ id: 1, state: 'held' }]);
      expect(scene.reasonOf(1)).toMatch(difference);
      expect(scene.notebook.experiments).toEqual(left);
      // A later version does not change that, and is the one that is sent once the edit is undone.
      expect(await scene.see('ccc')).toBe('parked');
      await scene.deliver();
      expect(scene.states()).toEqual([{ id: 1, state: 'held' }]);
      for (const [id, entry] of kept) scene.notebook.experiments.set(id, entry);
      await scene.decide({ kind: 'retry', run: 1 });
      await scene.deliver();
      expect(scene.shown()).toEqual(asFiled('ccc'));
    });

  test(`a held version overwrites what somebody changed if the experiment is adopted (${kind.dialect})`, async () => {
    const scene = await withVersions(kind, 'a');
    edit(scene.notebook, { title: 'mine' });
    await scene.see('bb');
    await scene.deliver();
    await scene.decide({ kind: 'adopt', run: 1, server: SERVER, experiment: 101 });
    await scene.deliver();
    expect(scene.shown()).toEqual(asFiled('bb'));
    edit(scene.notebook, { title: 'mine again' });
    await scene.see('a');
    await scene.deliver();
    expect(scene.states()).toEqual([{ id: 1, state: 'held' }]);
  });

  test(`an experiment that somebody deleted is not created again (${kind.dialect})`, async () => {
    const scene = await withVersions(kind, 'a');
    scene.notebook.experiments.clear();
    await scene.see('bb');
    await scene.deliver();
    expect(scene.states()).toEqual([{ id: 1, state: 'held' }]);
    expect(scene.entries()).toEqual([]);
  });

  test(`a run that was refiled takes the next version, and the earlier experiment stays as it is (${kind.dialect})`, async () => {
    const scene = await withVersions(kind, 'a', 'bb');
    await scene.decide({ kind: 'refile', run: 1 });
    await scene.deliver();
    for (const content of ['a', 'bb', 'ccc']) {
      expect(await scene.see(content)).toBe(content === 'bb' ? 'changed' : 'changed');
      await scene.deliver();
      expect(scene.entries().map(({ title }) => title)).toEqual(['bb', content]);
    }
    await scene.decide({ kind: 'refile', run: 2 });
    await scene.deliver();
    expect(scene.entries().map(({ title }) => title)).toEqual(['bb', 'ccc', 'ccc']);
  });

  test(`a run that the notebook refused is sent with its next version (${kind.dialect})`, async () => {
    const scene = await setUp(kind);
    await scene.see('a');
    const refusing = intercept(scene.notebook, async ({ operation, carryOut }) => {
      if (operation === 'patchExperiment') throw new NotebookError('request', 'refused', { status: 422 });
      return carryOut();
    });
    await scene.deliver((context) => ({ ...context, notebook: refusing }));
    expect(scene.states()).toEqual([{ id: 1, state: 'quarantined' }]);
    expect(await scene.see('bb')).toBe('changed');
    await scene.deliver();
    expect(scene.shown()).toEqual(asFiled('bb'));
  });
}

for (const [state, shown] of [
  ['locked', { locked: 1 }],
  ['archived', { state: 2 }],
  ['deleted', { state: 3 }],
] as const)
  test(`a version of an experiment that is ${state} in eLabFTW is held, even if a person adopts it`, async () => {
    const scene = await withVersions({ dialect: 'elabftw' }, 'a');
    await scene.see('bb');
    const writes = scene.notebook.writes.length;
    const readExperiment: FakeNotebook['readExperiment'] = async (id) => ({
      ...(await scene.notebook.readExperiment(id)),
      ...shown,
    });
    const deliver = () => scene.deliver((context) => ({ ...context, notebook: { ...scene.notebook, readExperiment } }));
    await deliver();
    expect(scene.reasonOf(1)).toContain(`experiment 101 is ${state}`);
    await scene.decide({ kind: 'adopt', run: 1, server: SERVER, experiment: 101 });
    await deliver();
    expect(scene.reasonOf(1)).toContain(`experiment 101 is ${state}`);
    expect(scene.notebook.writes).toHaveLength(writes);
  });

for (const kind of KINDS)
  test(`while it is not known whether the first version was created, the next one waits (${kind.dialect})`, async () => {
    const scene = await setUp(kind);
    await scene.see('x', { path: '/data/first.csv' });
    await scene.deliver();
    await scene.see('a');
    const crashed = intercept(scene.notebook, async ({ operation, carryOut }) => {
      const result = await carryOut();
      if (operation.startsWith('create')) throw new Crash();
      return result;
    });
    await expect(scene.deliver((context) => ({ ...context, notebook: crashed }))).rejects.toThrow(Crash);
    scene.restart();
    expect(await scene.see('bb')).toBe('busy');
    await scene.deliver();
    await scene.see('bb');
    await scene.deliver();
    expect(scene.entries().map(({ title }) => title)).toEqual(['x', 'bb']);
  });

test('a version takes the place of a remap that was asked for', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'a');
  expect(await scene.decide({ kind: 'remap', run: 1 })).toMatchObject({ done: true });
  expect(await scene.see('bb')).toBe('changed');
  expect(scene.rows('SELECT * FROM remaps')).toEqual([]);
  await scene.deliver();
  expect([await scene.see('bb'), scene.shown()]).toEqual(['known', asFiled('bb')]);
});

test('an unreadable version of a run that the notebook refused leaves it its draft', async () => {
  const scene = await setUp();
  await scene.see('a');
  const createExperiment = async () => {
    throw new NotebookError('request', 'refused', { status: 422 });
  };
  await scene.deliver((context) => ({ ...context, notebook: { ...scene.notebook, createExperiment } }));
  expect(await scene.see('bad', { problem: new FileError('unreadable') })).toBe('quarantined');
  const contents = scene.rows('SELECT sha256, parked FROM runs ORDER BY id');
  expect(contents).toEqual(['a', 'bad'].map((one) => ({ sha256: sha256(one), parked: 'quarantined' })));
  expect(await scene.see('bb')).toBe('changed');
  await scene.deliver();
  expect([scene.shown(), scene.states()[1]?.state]).toEqual([asFiled('bb'), 'ignored']);
});

test('a run that a person ignored stays ignored with its next version, unless nothing of it is in the notebook', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'a');
  edit(scene.notebook, { title: 'mine' });
  await scene.see('bb');
  await scene.deliver();
  await scene.decide({ kind: 'ignore', run: 1 });
  expect(await scene.see('ccc')).toBe('parked');
  expect(scene.states()).toEqual([{ id: 1, state: 'ignored' }]);
  edit(scene.notebook, { title: 'a' });
  await scene.decide({ kind: 'retry', run: 1 });
  await scene.deliver();
  expect(scene.shown()).toEqual(asFiled('ccc'));
  const other = await setUp();
  await other.see('a', { problem: new FileError('unreadable') });
  await other.decide({ kind: 'ignore', run: 1 });
  expect(await other.see('bb')).toBe('changed');
  await other.deliver();
  expect(other.shown()).toEqual(asFiled('bb'));
});

test('a content that a run had before gets a run and a reference of its own at another path', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'a', 'bb');
  expect(await scene.see('a', { path: '/data/other.csv' })).toBe('queued');
  await scene.deliver();
  expect(scene.entries().map(({ title }) => title)).toEqual(['bb', 'a']);
  const marks = scene.entries().map(({ comments }) => [...comments.values()][0]?.split('\n').at(-1));
  expect(new Set(marks).size).toBe(2);
});

test('the journal no longer has what was written: the next version is held, and adopting the experiment updates all of it', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'ccc');
  scene.clock.advance(86_400_000);
  expect(await scene.journal().outbox.prune(scene.clock.now(), 0)).toMatchObject({ runs: 1 });
  expect(await scene.see('bb')).toBe('parked');
  await scene.deliver();
  expect(scene.reasonOf(1)).toContain('cannot tell what people changed');
  expect(scene.shown()).toEqual(asFiled('ccc'));
  await scene.decide({ kind: 'adopt', run: 1, server: SERVER, experiment: 101 });
  await scene.deliver();
  expect(scene.shown()).toEqual(asFiled('bb'));
});

const LISTED = {
  name: 'balance',
  changed: 'revise',
  duplicates: 'skip',
  comments: { readings: 'table', maxBytes: 60_000, maxComments: 5 },
} as const;

test('after the journal was lost, the newest version is known, and the first one is a version of the same run', async () => {
  const { notebook } = await withVersions({ dialect: 'v2' }, 'a', 'bb');
  const scene = await setUp({ dialect: 'v2' }, notebook);
  expect(await recoverInto(scene.journal(), notebook, { instruments: [LISTED] })).toMatchObject({ recovered: 1 });
  const lost = await setUp({ dialect: 'v2' }, notebook);
  await recoverInto(lost.journal(), notebook, { instruments: [LISTED] });
  const first = referenceOf({ instrument: 'balance', sha256: sha256('a'), copy: '', refiling: 0 });
  expect(scene.rows('SELECT reference, sha256 FROM runs')).toEqual([{ reference: first, sha256: sha256('bb') }]);
  expect(await scene.see('bb', { path: '/data/bb.csv' })).toBe('known');
  await scene.deliver();
  expect(scene.shown()).toEqual(asFiled('bb'));
  // The notebook names the file of the draft, which the tests call after its content.
  expect(await lost.see('a', { path: '/data/bb.csv' })).toBe('parked');
  await lost.deliver();
  expect([lost.states(), lost.shown()]).toEqual([[{ id: 1, state: 'held' }], asFiled('bb')]);
});

test('a journal from before the run was filed is completed with the version that a later journal filed', async () => {
  const { notebook } = await withVersions({ dialect: 'v2' }, 'a', 'bb');
  const scene = await setUp({ dialect: 'v2' }, notebook);
  await scene.see('a');
  await recoverInto(scene.journal(), notebook, { instruments: [LISTED] });
  await scene.deliver();
  expect(await scene.see('bb')).toBe('known');
  await scene.deliver();
  expect(scene.shown()).toEqual(asFiled('bb'));
});

test('a journal from before the last version takes it as it is in the notebook', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'a');
  const restore = scene.backUp();
  await scene.see('bb');
  await scene.deliver();
  restore();
  await recoverInto(scene.journal(), scene.notebook, { instruments: [LISTED] });
  const writes = scene.notebook.writes.length;
  await scene.see('bb');
  await scene.deliver();
  expect(scene.shown()).toEqual(asFiled('bb'));
  expect(scene.notebook.writes).toHaveLength(writes);
});

test('a server that was restored to an earlier version is updated once a person has adopted the experiment', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'a');
  const restore = scene.notebook.snapshot();
  await scene.see('bb');
  await scene.deliver();
  restore();
  await scene.journal().outbox.server(SERVER).learn({ restoredFrom: 101 });
  expect(await recoverInto(scene.journal(), scene.notebook, { instruments: [LISTED] })).toMatchObject({
    outdated: [1],
    gone: [],
  });
  expect(scene.states()).toEqual([{ id: 1, state: 'held' }]);
  await scene.decide({ kind: 'adopt', run: 1, server: SERVER, experiment: 101 });
  await scene.deliver();
  expect(scene.shown()).toEqual(asFiled('bb'));
});

test.each([[commentsOf('a')], [[]]])(
  'a version that was not sent yet when the server was restored is sent without a decision (comments: %j)',
  async (comments) => {
    for (const isBelow of [false, true]) {
      const scene = await setUp();
      await scene.see('a', { comments });
      await scene.deliver();
      if (isBelow) await scene.see('b', { path: '/data/other.csv' });
      await scene.deliver();
      await scene.see('cc', { comments: [] });
      await scene
        .journal()
        .outbox.server(SERVER)
        .learn({ restoredFrom: isBelow ? 102 : 101 });
      expect(await recoverInto(scene.journal(), scene.notebook, { instruments: [LISTED] })).toMatchObject({
        ...{ outdated: [], gone: [] },
      });
      await scene.deliver();
      expect(scene.states().map(({ state }) => state)).toEqual(isBelow ? ['done', 'done'] : ['done']);
      expect(scene.entries()[0]).toMatchObject({ title: 'cc', comments: new Map() });
    }
  },
);

test('versions that were never sent leave no texts behind, however many there are', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'bb');
  // The text of the second comment stays the same for a while.
  const texts = (n: number) => [`first ${n}`, n < 3 ? 'two of bb' : `second ${n}`];
  for (let n = 0; n < 10; n++) await scene.see(`version ${n}`, { comments: texts(n) });
  expect(scene.rows('SELECT n, text FROM earlier_comments ORDER BY n')).toEqual([
    { n: 1, text: 'one of bb' },
    { n: 2, text: 'two of bb' },
  ]);
  expect(scene.rows('SELECT title FROM earlier_drafts')).toEqual([{ title: 'bb' }]);
  await scene.deliver();
  expect(scene.shown().comments).toEqual(texts(9));
});

test('a version is not overdue because its run is old', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'a');
  scene.clock.advance(86_400_000);
  const before = scene.clock.now();
  scene.clock.advance(1000);
  await scene.see('bb');
  expect(await scene.journal().outbox.overdue(before)).toBeUndefined();
  expect(await scene.journal().outbox.overdue(before + 2000)).toMatchObject({ run: 1, since: before + 1000 });
});

test('a version counts as a file of its instrument, also after a restart', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'a');
  await scene.see('c', { path: '/data/other.csv' });
  const since = await scene.journal().outbox.lastAddedAt('balance');
  scene.clock.advance(5000);
  await scene.see('bb');
  scene.restart();
  expect(await scene.journal().outbox.lastAddedAt('balance')).toBe((since ?? 0) + 5000);
  expect(await scene.journal().outbox.lastAddedAt('other')).toBeUndefined();
});

test('an experiment that shows an earlier version is no sign of a lost journal', async () => {
  const scene = await withVersions({ dialect: 'v2' }, 'a', 'bb');
  const isKnown = (content: string) => scene.journal().outbox.hasContent('balance', newRun(content).file.sha256);
  expect(await isKnown('a')).toBe(true);
  expect(await isKnown('bb')).toBe(true);
  expect(await isKnown('ccc')).toBe(false);
});

test('however many runs there are, a version costs no more', async () => {
  const scene = await withVersions({ dialect: 'elabftw' }, 'a', 'bb', 'a', 'ccc');
  await scene.see('bad', { problem: new FileError('unreadable') });
  await scene.see('ccc');
  await scene.see('a', { path: '/data/other.csv', copy: '/data/other.csv' });
  await scene.see('d', { path: '/data/other.csv' });
  await scene.journal().outbox.move(1, '/data/moved.csv');
  await scene.deliver();
  const plans = scene.plans();
  expect(plans.filter((plan) => plan.includes('FROM runs')).length).toBeGreaterThan(10);
  // Other tables have a row for each instrument; an index of instruments or states would still lead to many runs.
  const costly = plans.filter((plan) => /^SCAN (?!identity|shapes)|runs_instrument|runs_resting/.test(plan));
  expect(costly).toEqual([]);
});

const edit = (notebook: FakeNotebook, changes: object): void => {
  for (const entry of notebook.experiments.values()) Object.assign(entry, changes);
};

const editComment = (notebook: FakeNotebook, text: string): void => {
  for (const { comments } of notebook.experiments.values()) for (const id of comments.keys()) comments.set(id, text);
};

/** Ends the process before or after a request or a change of the journal. */
const crashing =
  (isNow: () => boolean) =>
  (context: DeliveryContext): DeliveryContext => {
    let isOver = false;
    const check = (): void => {
      isOver ||= isNow();
      if (isOver) throw new Crash();
    };
    const around = async <T>(act: () => Promise<T>): Promise<T> => {
      check();
      const result = await act();
      check();
      return result;
    };
    const { outbox } = context;
    return {
      ...context,
      notebook: intercept(context.notebook as FakeNotebook, ({ isWrite, carryOut }) =>
        isWrite ? around(carryOut) : carryOut(),
      ),
      outbox: {
        ...outbox,
        record: (...change) => around(() => outbox.record(...change)),
        apply: (...change) => around(() => outbox.apply(...change)),
      },
    };
  };
