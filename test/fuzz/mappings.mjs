import { generate } from '../reading/generate.js';
import { findMappingProblem, findNextProblem } from '../reading/mappings.js';

/*
 * Learned mappings of generated files: nothing complains about them, and they also read the next file.
 */

export function createCase(seed) {
  return {
    what: `the mapping of the generated file ${seed}:`,
    perform: async () => (await findMappingProblem(generate(seed))) ?? findNextProblem(generate(seed), seed),
  };
}
