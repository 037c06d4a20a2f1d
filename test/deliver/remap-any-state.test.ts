import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { markComment, referenceOf } from '../../src/markers.js';
import type { Draft } from '../../src/model.js';
import { ReusableDatabase } from '../support/reusable-database.js';
import { newRun, someDraft } from '../support/runs.js';
import type { SimulationOptions } from '../support/simulated-notebook.js';
import { anyLife } from './any-life.js';
import { createLives, type Lives } from './lives.js';

const KINDS: readonly SimulationOptions[] = [{}, { keepsTitle: false }, { dialect: 'elabftw' }];

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

async function filed(database: ReusableDatabase, kind: SimulationOptions, chance = 1): Promise<Lives> {
  const lives = createLives(database, kind, chance);
  await lives.add('run', 2);
  await lives.live({ outcomes: [] });
  return lives;
}

function expectOnly({ notebook }: Lives, { comments, tags, ...draft }: Draft): void {
  const entries = [...notebook.experiments.values()].map((entry) => ({
    ...entry,
    tags: [...entry.tags].sort(),
    comments: [...entry.comments.values()],
  }));
  const texts = comments.map((text, index) => markComment(text, reference, index + 1));
  expect(entries).toEqual([expect.objectContaining({ ...draft, tags: [...tags].sort(), comments: texts })]);
}

test.each(KINDS.flatMap((kind) => Object.keys(READINGS).map((reading) => ({ kind, reading }))))(
  'redone $reading, a run comes to the same end after a crash at every record, with whatever outcome ($kind)',
  async ({ kind, reading }) => {
    const database = openDatabase();
    const draft = READINGS[reading] ?? BEFORE;
    for (const atDeath of ['lost', 'never', 'late'] as const) {
      for (const lateness of atDeath === 'late' ? [0, 3, 99] : [0]) {
        let records = 0;
        for (let state = ''; state !== 'done'; records++) {
          const lives = await filed(database, kind);
          await lives.remap('run', draft);
          state = (await lives.live({ outcomes: [], records, atDeath, lateness })).at(-1) ?? '';
          await lives.live({ outcomes: [] });
          expectOnly(lives, draft);
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
      fc.constantFrom(...KINDS),
      fc.array(fc.tuple(reading, fc.array(anyLife, { maxLength: 3 })), { minLength: 1, maxLength: 3 }),
      fc.nat(),
      async (kind, readings, chance) => {
        const lives = await filed(database, kind, chance);
        for (const [draft, pasts] of readings) {
          await lives.remap('run', draft);
          for (const past of pasts) await lives.live(past);
          // A last life, and time enough for all that is late, before somebody has it redone once more.
          await lives.live({ outcomes: [] });
          await lives.rest();
          expectOnly(lives, draft);
        }
      },
    ),
    { numRuns: 200 },
  );
});
