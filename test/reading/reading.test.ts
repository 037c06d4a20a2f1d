import { expect, test } from 'vitest';
import { generate } from './generate.js';
import { GRAMMARS, generateIn } from './grammars.js';
import { generateHead } from './heads.js';
import { score, scoreAll } from './score.js';
import { generateRecords, RECORD_SHAPES } from './sheets-and-records.js';
import { generateTree, TREE_SHAPES } from './trees.js';

/*
 * How well files in random layouts are read without a mapping. `npm run bench -- reading SEED` prints the same numbers
 * for other seeds, with what was refused or wrong.
 */

const SEEDS = Array.from({ length: 25 }, (_, n) => n + 1);

test('a generated file is the same for the same seed, and its truth is in its text', () => {
  for (const seed of SEEDS) {
    const { text, bytes, facts, tables } = generate(seed);
    expect(generate(seed).bytes.equals(bytes)).toBe(true);
    for (const fact of facts) expect(text).toContain(fact.text);
    expect(tables.flat().every(({ values }) => values.length > 0)).toBe(true);
  }
});

test('generated files are read without a wrong value or date, and mostly in full', async () => {
  const { mistakes, files, refused, facts, readings, units, dates } = await scoreAll(SEEDS, generate);
  expect(mistakes).toEqual([]);
  const share = ({ right, all }: { right: number; all: number }) => right / all;
  expect(refused / files).toBeLessThan(0.2);
  expect(share(facts)).toBeGreaterThan(0.75);
  expect(share(readings)).toBeGreaterThan(0.7);
  expect(share(units)).toBeGreaterThan(0.75);
  expect(share(dates)).toBeGreaterThan(0.75);
});

test('facts in many forms are read without a wrong value or date, and mostly in full', async () => {
  const seeds = Array.from({ length: 40 }, (_, n) => n + 1);
  const { mistakes, files, refused, facts, readings, units, dates } = await scoreAll(seeds, generateHead);
  expect(mistakes).toEqual([]);
  expect(refused / files).toBeLessThan(0.1);
  for (const { right, all } of [facts, readings, units, dates]) expect(right / all).toBeGreaterThan(0.9);
});

test.each(GRAMMARS)('files with %s are read without a wrong value or date, and mostly in full', async (grammar) => {
  const seeds = SEEDS.slice(0, 15);
  for (const seed of seeds) expect(generateIn(grammar, seed)).toEqual(generateIn(grammar, seed));
  const { mistakes, files, refused, facts, readings, units, dates } = await scoreAll(seeds, (seed) =>
    generateIn(grammar, seed),
  );
  expect(mistakes).toEqual([]);
  // An ambiguous date without evidence is refused, with all else in the file.
  const least = grammar === 'dates' ? 0.6 : 0.8;
  expect(refused / files).toBeLessThanOrEqual(1 - least);
  for (const { right, all } of [facts, readings, units]) expect(right).toBeGreaterThanOrEqual(all * least);
  expect(dates.right).toBe(dates.all);
});

test.each(TREE_SHAPES)(
  'JSON and XML of %s are read without a wrong value or date, and mostly in full',
  async (shape) => {
    const seeds = SEEDS.slice(0, 15);
    for (const seed of seeds) expect(generateTree(shape, seed)).toEqual(generateTree(shape, seed));
    const { mistakes, refused, facts, readings, units, dates } = await scoreAll(seeds, (seed) =>
      generateTree(shape, seed),
    );
    expect(mistakes).toEqual([]);
    expect(refused).toBe(0);
    for (const { right, all } of [facts, readings, units, dates]) expect(right / all).toBeGreaterThan(0.95);
  },
);

test.each(RECORD_SHAPES)('files with %s are read without a wrong value or date, and mostly in full', async (shape) => {
  const seeds = SEEDS.slice(0, 5);
  for (const seed of seeds) expect(generateRecords(shape, seed).text).toBe(generateRecords(shape, seed).text);
  const { mistakes, refused, facts, readings, units, dates } = await scoreAll(seeds, (seed) =>
    generateRecords(shape, seed),
  );
  expect(mistakes).toEqual([]);
  expect(refused).toBe(0);
  for (const { right, all } of [facts, readings, units, dates]) expect(right).toBeGreaterThanOrEqual(all * 0.95);
});

test('a value, unit or date that differs from the truth is noticed', async () => {
  const file = generate(35);
  const [table = []] = file.tables;
  const changed = { ...file, facts: file.facts.map((each) => ({ ...each, value: 'other', text: 'other' })) };
  expect((await score(changed)).facts).toMatchObject({ right: 0, wrong: file.facts.length });
  const tables = [table.map((each) => ({ ...each, unit: 'kg', values: each.values.map(() => -1) }))];
  expect(await score({ ...file, tables })).toMatchObject({ readings: { right: 0 }, mistakes: expect.any(Array) });
  expect((await score({ ...file, tables })).units.wrong).toBeGreaterThan(0);
  expect((await score({ ...generate(3), date: '1999-01-01' })).dates).toEqual({ all: 1, right: 0, wrong: 1 });
});
