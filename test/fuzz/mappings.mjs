import { generate } from '../reading/generate.js';
import { GRAMMARS, generateIn } from '../reading/grammars.js';
import { findMappingProblem, findNextProblem, TOGETHER } from '../reading/mappings.js';

/*
 * Learned mappings of generated files: nothing complains about them, and they also read the next file.
 */

export function createCase(seed) {
  // Half of the files have one of the difficult layouts.
  const grammar = seed % 2 === 0 ? undefined : GRAMMARS[Math.floor(seed / 2) % GRAMMARS.length];
  const file = grammar === undefined ? generate(seed) : generateIn(grammar, seed);
  return {
    what: `the mapping of the generated file ${seed} (${grammar ?? 'any layout'}):`,
    perform: async () =>
      (await findMappingProblem(file)) ?? (TOGETHER.includes(grammar) ? undefined : findNextProblem(file, seed)),
  };
}
