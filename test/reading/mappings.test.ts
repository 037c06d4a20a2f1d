import { expect, test } from 'vitest';
import { generate } from './generate.js';
import { findMappingProblem, findNextProblem } from './mappings.js';

const SEEDS = Array.from({ length: 60 }, (_, n) => n + 101);

/** `npm run fuzz -- -t mappings` checks other seeds. */
async function problemsOf(find: (seed: number) => Promise<string | undefined>): Promise<string[]> {
  const problems: string[] = [];
  for (const seed of SEEDS) {
    const problem = await find(seed);
    if (problem !== undefined) problems.push(`seed ${seed}: ${problem}`);
  }
  return problems;
}

test('nothing complains about a learned mapping, and it reads its file as without a mapping', async () => {
  expect(await problemsOf((seed) => findMappingProblem(generate(seed)))).toEqual([]);
});

test('a learned mapping reads the next file, with one fact more, one less, and more rows', async () => {
  expect(await problemsOf((seed) => findNextProblem(generate(seed), seed))).toEqual([]);
});
