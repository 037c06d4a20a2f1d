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

const { instrument, file, copy } = newRun('run');
const reference = referenceOf({ instrument, sha256: file.sha256, copy, refiling: 0 });

/** The run as it was filed, and as it is to be. */
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
  'redone $reading, a run comes to the same end after a crash at every record, with whatever outcome ($kind)',
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
        // It was described, two comments were changed, added or dropped, and it was finished.
        expect(records).toBeGreaterThan(4);
      }
    }
  },
);

test('redone several times, whatever lives a few processes have led in between, a run ends as it was last read', async () => {
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
          // A last life, and time enough for all that is late, before somebody has it redone once more.
          await history.process();
          await history.carryOutLate();
          expectOnly(history, draft);
        }
      },
    ),
    { numRuns: 200 },
  );
});
