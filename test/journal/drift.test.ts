import { expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import type { Shape } from '../../src/model.js';
import type { Added, Shaped } from '../../src/outbox.js';
import { due, knows, recheck, refuse, take } from '../support/journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { openTestJournal, type TestJournal } from '../support/test-journal.js';

const OLD = ['Well', 'A260'];
const NEW = ['Well', 'A280'];

const shape = (columns: readonly string[]): Shape => ({
  tables: [{ name: 'readings', columns: columns.map((name) => ({ name })) }],
});

interface Scene extends TestJournal {
  /** Files a run of this content with these columns. */
  add(
    content: string,
    columns: readonly string[],
    more?: Partial<Omit<Shaped, 'shape'>> & { mapping?: string },
  ): Promise<Added | undefined>;
}

async function setUp(): Promise<Scene> {
  const opened = await openTestJournal();
  return {
    ...opened,
    add: (content, columns, { mapping = 'm1', drift = 'hold', kinds = 1, layout = mapping } = {}) =>
      take(opened.journal, newRun(content, { mapping }), someDraft(content), {
        shape: shape(columns),
        drift,
        kinds,
        layout,
      }),
  };
}

test('a missing column is reported once, and later runs are compared with the new shape', async () => {
  const { journal, add, rows } = await setUp();
  expect(await add('a', OLD, { drift: 'warn' })).toMatchObject({
    run: 1,
    outcome: 'queued',
    drift: undefined,
  });
  expect((await add('b', OLD, { drift: 'warn' }))?.drift).toBeUndefined();
  expect(await add('c', NEW, { drift: 'warn' })).toMatchObject({
    run: 3,
    drift: { changes: [expect.stringContaining('"A260" is missing')], since: 1, held: false },
  });
  expect((await add('d', NEW, { drift: 'warn' }))?.drift).toBeUndefined();
  expect(await due(journal)).toEqual([1, 2, 3, 4]);
  expect(rows('SELECT run FROM drifts')).toEqual([{ run: 3 }]);
  expect(rows("SELECT run FROM history WHERE event = 'drifted'")).toEqual([{ run: 3 }]);
});

test('with drift off nothing is reported, but the shape is still recorded', async () => {
  const { add, rows } = await setUp();
  await add('a', OLD);
  expect((await add('b', NEW, { drift: 'off' }))?.drift).toBeUndefined();
  expect((await add('c', NEW))?.drift).toBeUndefined();
  expect(rows('SELECT * FROM drifts')).toEqual([]);
});

test('a run held for drift is not sent, has a reason and a hint, and does not change the shape to compare with', async () => {
  const { journal, add, rows } = await setUp();
  await add('a', OLD);
  expect(await add('b', NEW)).toMatchObject({ run: 2, outcome: 'held', drift: { held: true } });
  expect((await add('c', OLD))?.drift).toBeUndefined();
  expect(await due(journal)).toEqual([1, 3]);
  expect(await journal.outbox.count()).toEqual({ queued: 2, held: 1 });
  expect(rows('SELECT parked, failure, reason FROM runs WHERE id = 2')).toEqual([
    {
      parked: 'held',
      failure: 'drift',
      reason: expect.stringMatching(/^compared with run 1, the column "A260" is missing.*\n {2}→ .*labfeed retry 2;/),
    },
  ]);
  expect(await knows(journal, newRun('b'))).toBe(true);
});

test('retry files a held run, accepts its shape, and continues the runs held for the same drift', async () => {
  const { journal, add, ask } = await setUp();
  await add('a', OLD);
  await add('b', NEW);
  await add('c', [...NEW, 'Note']);
  await add('d', ['Other']);
  expect(await ask({ kind: 'retry', run: 2 })).toEqual({
    done: true,
    text: expect.stringMatching(/starts again.*; 1 other run held for the same drift/),
  });
  expect(await due(journal)).toEqual([1, 2, 3]);
  expect(await journal.outbox.load(2)).toMatchObject({ step: 'pending', draft: { title: 'b' } });
  expect((await add('e', NEW))?.drift).toBeUndefined();
  expect((await add('f', OLD))?.drift).toMatchObject({ held: true, since: 2 });
});

test('refiling a held run accepts its shape too', async () => {
  const { journal, add, ask } = await setUp();
  await add('a', OLD);
  await add('b', NEW);
  expect(await ask({ kind: 'refile', run: 2 })).toMatchObject({ done: true });
  expect(await due(journal)).toEqual([1, 3]);
  expect((await add('c', NEW))?.drift).toBeUndefined();
});

test('a changed mapping starts with new shapes, and held runs are read again', async () => {
  const { journal, add, rows } = await setUp();
  await add('a', OLD);
  await add('b', NEW);
  const held = newRun('b', { mapping: 'm2' });
  expect(await recheck(journal, 'balance', 'm2')).toBe(1);
  expect(await journal.intake.unknown('balance', [held.file])).toHaveLength(1);
  expect(await knows(journal, held)).toBe(false);
  expect(await add('b', ['well', 'absorbance'], { mapping: 'm2' })).toMatchObject({
    run: 2,
    outcome: 'queued',
    drift: undefined,
  });
  expect(await due(journal)).toEqual([1, 2]);
  expect(await journal.outbox.load(2)).toMatchObject({ comments: [{ n: 1 }] });
  expect(rows('SELECT * FROM drifts')).toEqual([]);
  expect((await add('c', ['well'], { mapping: 'm2' }))?.drift).toMatchObject({ since: 2 });
});

test('if only a template changes, runs are compared with those before, and held ones stay held', async () => {
  const { add, ask, rows } = await setUp();
  const parse = { layout: 'p1' };
  await add('a', OLD, parse);
  expect(await add('b', NEW, { mapping: 'm2', ...parse })).toMatchObject({ outcome: 'held', drift: { since: 1 } });
  expect(await add('b', NEW, { mapping: 'm3', ...parse })).toMatchObject({ run: 2, outcome: 'held' });
  expect(await add('c', NEW, { mapping: 'm3', ...parse })).toMatchObject({ run: 3, outcome: 'held' });
  expect(rows('SELECT run, layout FROM drifts')).toEqual([
    { run: 2, layout: 'p1' },
    { run: 3, layout: 'p1' },
  ]);
  expect((await ask({ kind: 'retry', run: 2 })).text).toContain('1 other run held for the same drift');
  expect(await add('d', NEW, { mapping: 'm4', ...parse })).toMatchObject({ outcome: 'queued', drift: undefined });
  expect(await add('e', OLD, { mapping: 'm4', ...parse })).toMatchObject({ outcome: 'held', drift: { since: 2 } });
});

test('the shapes of a journal that has only the mapping are still compared', async () => {
  const { add, rows } = await setUp();
  await add('a', OLD);
  expect(rows('SELECT mapping FROM shapes')).toEqual([{ mapping: 'm1' }]);
  expect(await add('b', NEW, { layout: 'p1' })).toMatchObject({ outcome: 'held', drift: { since: 1 } });
});

test('a held run that the new mapping cannot read is quarantined and needs no drift decision', async () => {
  const { journal, add, ask, rows } = await setUp();
  await add('a', OLD);
  await add('b', NEW);
  await refuse(journal, newRun('b', { mapping: 'm2' }), new FileError('no table'));
  expect(await journal.outbox.count()).toEqual({ queued: 1, quarantined: 1 });
  expect(rows('SELECT run FROM drifts')).toEqual([]);
  expect((await ask({ kind: 'retry', run: 2 })).text).toContain('so the existing draft is sent');
});

test('accepting the drift of an older mapping does not change the shapes of the new one', async () => {
  const { journal, add, ask } = await setUp();
  await add('a', OLD);
  await add('b', NEW);
  await add('c', OLD, { mapping: 'm2' });
  expect(await ask({ kind: 'retry', run: 2 })).toMatchObject({ done: true });
  expect(await due(journal)).toEqual([1, 2, 3]);
  expect((await add('d', OLD, { mapping: 'm2' }))?.drift).toBeUndefined();
  expect((await add('e', NEW, { mapping: 'm2' }))?.drift).toMatchObject({ held: true });
});

test('a mapping with alternatives has one shape for each', async () => {
  const { add } = await setUp();
  const two = { kinds: 2 };
  await add('a', OLD, two);
  expect((await add('b', ['Time', 'Temperature'], two))?.drift).toBeUndefined();
  for (const [content, columns] of [
    ['c', OLD],
    ['d', ['Time', 'Temperature']],
  ] as const)
    expect((await add(content, columns, two))?.drift).toBeUndefined();
  expect((await add('e', ['Time', 'Humidity'], { ...two, drift: 'warn' }))?.drift?.changes).toEqual([
    expect.stringContaining('"Temperature" is missing'),
  ]);
  expect((await add('f', OLD, two))?.drift).toBeUndefined();
  expect((await add('g', ['Time', 'Humidity'], two))?.drift).toBeUndefined();
});

test('an alternative with more columns does not replace one with fewer', async () => {
  const { add } = await setUp();
  const more = [...OLD, 'A280'];
  for (const [content, columns] of [
    ['a', more],
    ['b', OLD],
    ['c', more],
    ['d', OLD],
    ['e', more],
  ] as const)
    expect((await add(content, columns, { kinds: 2 }))?.drift).toBeUndefined();
});

test('each instrument has its own shapes', async () => {
  const { journal, add } = await setUp();
  await add('a', OLD);
  const other = newRun('b', { instrument: 'other' });
  const added = await take(journal, other, someDraft('b'), { shape: shape(NEW), drift: 'hold', kinds: 1 });
  expect(added?.drift).toBeUndefined();
});
