import { LabfeedError } from '../../dist/errors.js';
import { keepHeapSmall, limitBacktracking } from '../../dist/system/process.js';

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
  const memoryMb = Math.round(process.resourceUsage().maxRSS / 1024);
  const { user, system } = process.cpuUsage(before);
  process.send({ seed, what, problem, memoryMb, cpuMs: Math.round((user + system) / 1000) });
});
