import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { markComment, referenceOf } from '../../src/markers.js';
import type { Draft } from '../../src/model.js';
import { NOTEBOOK_KINDS, type NotebookKind } from '../support/fake-notebook.js';
import { ReusableDatabase } from '../support/reusable-database.js';
import { newRun, someDraft } from '../support/runs.js';
import { anyProcess, createHistory, type History } from './history.js';

function openDatabase(): ReusableDatabase {
  const database = new ReusableDatabase();
  onTestFinished(() => database.close());
  return database;
}

/** LABFEED_SEED=n repeats one series of histories, LABFEED_RUNS=n sets its length. */
const SEED = process.env['LABFEED_SEED'] ? { seed: Number(process.env['LABFEED_SEED']) } : {};
const RUNS = Number(process.env['LABFEED_RUNS'] ?? 120);

/** What the notebook must hold for these runs. */
const wanted = (runs: readonly { title: string; comments: number }[]) =>
  runs.map(({ title, comments }) => {
    const { instrument, file, copy } = newRun(title);
    const reference = referenceOf({ instrument, sha256: file.sha256, copy, refiling: 0 });
    const texts = Array.from({ length: comments }, (_, index) =>
      markComment(`comment ${index + 1}`, reference, index + 1),
    );
    return { ...someDraft(title, texts) };
  });

/** Runs a last process without faults, uses up the spares, and compares. */
async function expectExactlyOnce(
  history: History,
  runs: readonly { title: string; comments: number }[],
): Promise<void> {
  const all = [...runs];
  await history.process();
  while (history.hasSpares()) {
    all.push({ title: `later ${all.length}`, comments: 1 });
    await history.add(`later ${all.length - 1}`, 1);
    await history.process();
  }
  const entries = [...history.notebook.experiments.values()].map((entry) => ({
    ...entry,
    comments: [...entry.comments.values()],
  }));
  const found = entries
    .filter(({ userid }) => userid === 1)
    .map(({ title, date, body, tags, comments }) => ({ title, date, body, tags, comments }));
  const byTitle = (a: { title: string }, b: { title: string }): number => (a.title < b.title ? -1 : 1);
  expect(found.sort(byTitle)).toEqual(wanted(all).sort(byTitle));
  for (const theirs of entries.filter(({ userid }) => userid !== 1))
    expect(theirs).toMatchObject({ title: 'Untitled', body: '', tags: [], comments: [] });
}

test.each(NOTEBOOK_KINDS.flatMap((kind) => [true, false].map((first) => ({ kind, first }))))(
  'a crash in any state, with any outcome, leaves each run filed exactly once ($kind, first run: $first)',
  async ({ kind, first }) => {
    const database = openDatabase();
    const states = new Set<string>();
    for (const atDeath of ['lost', 'dropped', 'late'] as const) {
      for (const lateness of atDeath === 'late' ? [0, 3, 9, 99] : [0]) {
        for (let records = 0, state = ''; state !== 'done'; records++) {
          const history = createHistory(database, kind);
          const runs = [{ title: 'run', comments: 2 }];
          if (!first) {
            await history.add('known', 1);
            await history.process();
            runs.unshift({ title: 'known', comments: 1 });
          }
          await history.add('run', 2);
          state = (await history.process({ outcomes: [], records, atDeath, lateness })).at(-1) ?? '';
          states.add(state);
          await expectExactlyOnce(history, runs);
        }
      }
    }
    expect([...states].sort()).toEqual([
      'comment 1 intended',
      'comment 1 posted',
      'comment 2 intended',
      'comment 2 posted',
      'created',
      'creating',
      'described',
      'done',
      'pending',
    ]);
  },
);

test('each run is filed exactly once, whatever happens to a few processes and their requests', async () => {
  const database = openDatabase();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...NOTEBOOK_KINDS),
      fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }),
      fc.array(anyProcess, { maxLength: 5 }),
      fc.nat(),
      async (kind, comments, pasts, chance) => {
        const history = createHistory(database, kind, chance);
        const runs = comments.map((count, index) => ({ title: `run ${index}`, comments: count }));
        for (const { title, comments: count } of runs) await history.add(title, count);
        for (const past of pasts) {
          await history.process(past);
          history.notebook.addExperiment('Untitled');
        }
        await expectExactlyOnce(history, runs);
      },
    ),
    { numRuns: RUNS, ...SEED },
  );
});

const { instrument, file, copy } = newRun('run');
const reference = referenceOf({ instrument, sha256: file.sha256, copy, refiling: 0 });

/** The run as it was filed, and its remaps. */
const BEFORE = { ...someDraft('run', ['comment 1', 'comment 2']) };
const READINGS: Readonly<Record<string, Draft>> = {
  'with another comment': {
    title: 'redone',
    date: '2026-03-04',
    body: '<p>redone</p>',
    tags: ['balance', 'new'],
    comments: ['comment 1', 'edited', 'added'],
  },
  'with a comment less': { ...BEFORE, body: '<p>redone</p>', tags: ['new'], comments: ['edited'] },
};

async function filed(database: ReusableDatabase, kind: NotebookKind, chance = 1): Promise<History> {
  const history = createHistory(database, kind, chance);
  await history.add('run', 2);
  await history.process();
  return history;
}

function expectOnly({ notebook }: History, { comments, tags, ...draft }: Draft): void {
  const entries = [...notebook.experiments.values()].map((entry) => ({
    ...entry,
    tags: [...entry.tags].sort(),
    comments: [...entry.comments.values()],
  }));
  const texts = comments.map((text, index) => markComment(text, reference, index + 1));
  expect(entries).toEqual([expect.objectContaining({ ...draft, tags: [...tags].sort(), comments: texts })]);
}

test.each(NOTEBOOK_KINDS.flatMap((kind) => Object.keys(READINGS).map((reading) => ({ kind, reading }))))(
  'a crash at any record of a remap $reading leaves the run with its new reading ($kind)',
  async ({ kind, reading }) => {
    const database = openDatabase();
    const draft = READINGS[reading] ?? BEFORE;
    for (const atDeath of ['lost', 'dropped', 'late'] as const) {
      for (const lateness of atDeath === 'late' ? [0, 3, 99] : [0]) {
        let records = 0;
        for (let state = ''; state !== 'done'; records++) {
          const history = await filed(database, kind);
          await history.remap('run', draft);
          state = (await history.process({ outcomes: [], records, atDeath, lateness })).at(-1) ?? '';
          await history.process();
          expectOnly(history, draft);
        }
        // Described, two comments revised, added or dropped, and finished.
        expect(records).toBeGreaterThan(4);
      }
    }
  },
);

test('after several remaps, a run has its last draft, whatever happens to processes in between', async () => {
  const database = openDatabase();
  const reading = fc.record({
    title: fc.constantFrom('run', 'redone', 'again'),
    date: fc.constantFrom('2026-01-02', '2026-03-04'),
    body: fc.constantFrom('<p>run</p>', '<p>redone</p>', '<p><b>redone</b></p>'),
    tags: fc.subarray(['balance', 'new', 'other']),
    comments: fc.array(fc.constantFrom('comment 1', 'edited', 'other'), { maxLength: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...NOTEBOOK_KINDS),
      fc.array(fc.tuple(reading, fc.array(anyProcess, { maxLength: 3 })), { minLength: 1, maxLength: 3 }),
      fc.nat(),
      async (kind, readings, chance) => {
        const history = await filed(database, kind, chance);
        for (const [draft, pasts] of readings) {
          await history.remap('run', draft);
          for (const past of pasts) await history.process(past);
          // A last process without faults. Everything late arrives before the next remap.
          await history.process();
          await history.carryOutLate();
          expectOnly(history, draft);
        }
      },
    ),
    { numRuns: Math.ceil((2 * RUNS) / 3), ...SEED },
  );
});
