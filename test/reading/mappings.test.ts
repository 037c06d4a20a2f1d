import { expect, test } from 'vitest';
import { generate } from './generate.js';
import { GRAMMARS, generateIn } from './grammars.js';
import { findMappingProblem, findNextProblem, TOGETHER } from './mappings.js';
import { generateTree, TREE_SHAPES } from './trees.js';

const SEEDS = Array.from({ length: 16 }, (_, n) => n + 101);

/** `npm run fuzz -- -t mappings` checks other seeds. */
async function problemsOf(
  find: (seed: number) => Promise<string | undefined>,
  seeds: readonly number[] = SEEDS,
): Promise<string[]> {
  const problems: string[] = [];
  for (const seed of seeds) {
    const problem = await find(seed);
    if (problem !== undefined) problems.push(`seed ${seed}: ${problem}`);
  }
  return problems;
}

test.each(GRAMMARS.filter((grammar) => !TOGETHER.includes(grammar)))(
  'learned mappings of files with %s read their file and the next one',
  async (grammar) => {
    const file = (seed: number) => generateIn(grammar, seed);
    const seeds = SEEDS.slice(0, 5);
    expect(await problemsOf(async (seed) => findMappingProblem(file(seed)), seeds)).toEqual([]);
    expect(await problemsOf(async (seed) => findNextProblem(file(seed), seed), seeds)).toEqual([]);
  },
);

test.each(TREE_SHAPES)('learned mappings of JSON and XML of %s read their file', async (shape) => {
  const seeds = SEEDS.slice(0, 5);
  expect(await problemsOf(async (seed) => findMappingProblem(generateTree(shape, seed)), seeds)).toEqual([]);
});

test('nothing complains about a learned mapping, and it reads its file as without a mapping', async () => {
  expect(await problemsOf((seed) => findMappingProblem(generate(seed)))).toEqual([]);
});

test('a learned mapping reads the next file, with one fact more, one less, and more rows', async () => {
  expect(await problemsOf((seed) => findNextProblem(generate(seed), seed))).toEqual([]);
});
