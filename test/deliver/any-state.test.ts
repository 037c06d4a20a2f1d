import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { markComment, referenceOf } from '../../src/markers.js';
import { NOTEBOOK_KINDS } from '../support/fake-notebook.js';
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
const RUNS = Number(process.env['LABFEED_RUNS'] ?? 300);

/** What the notebook holds for these runs, whatever happened on the way. */
const wanted = (runs: readonly { title: string; comments: number }[]) =>
  runs.map(({ title, comments }) => {
    const { instrument, file, copy } = newRun(title);
    const reference = referenceOf({ instrument, sha256: file.sha256, copy, refiling: 0 });
    const texts = Array.from({ length: comments }, (_, index) =>
      markComment(`comment ${index + 1}`, reference, index + 1),
    );
    return { ...someDraft(title, texts) };
  });

/** Lives a last life in which nothing fails, uses up what is left over, and compares. */
async function expectTheEnd(
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
  'from every state, after a crash with whatever outcome, the end is the same ($kind, first run: $first)',
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
          await expectTheEnd(history, runs);
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

test('whatever lives a few processes have led, and whatever became of their requests, the end is the same', async () => {
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
        await expectTheEnd(history, runs);
      },
    ),
    { numRuns: RUNS, ...SEED },
  );
});
