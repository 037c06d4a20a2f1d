import { LabfeedError } from '../../dist/errors.js';
import { keepHeapSmall, limitBacktracking } from '../../dist/system/process.js';
import { childrenOf, peakMemoryOf } from '../support/child-processes.ts';

/*
 * Performs the case of each seed that it is sent, and answers what is wrong with its outcome.
 */

limitBacktracking();
keepHeapSmall(true);

const [kind, folder] = process.argv.slice(2);
/** @type {{ createCase(seed: number): { what: string, perform(folder: string): Promise<string | undefined> } }} */
const { createCase } = await import(`./${kind}.mjs`);

process.on('message', async (seed) => {
  const { what, perform } = createCase(seed);
  const before = process.cpuUsage();
  let problem;
  try {
    problem = await perform(folder);
  } catch (error) {
    // A refusal with a message for people is a good outcome, unless the message says that it is a bug.
    const isRefusal = error instanceof LabfeedError && !/this is a bug/.test(error.hint ?? '');
    if (!isRefusal) problem = `fails with ${error?.stack ?? error}`;
  }
  // Workbooks are read in another process.
  const memoryMb = Math.round(Math.max(...[process.pid, ...childrenOf(process.pid)].map(peakMemoryOf)) / 2 ** 20);
  const { user, system } = process.cpuUsage(before);
  process.send({ seed, what, problem, memoryMb, cpuMs: Math.round((user + system) / 1000) });
});
