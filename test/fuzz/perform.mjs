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

/** A case may take as much processor time as so many passes over a text of 1 MB: about 6 s on an idle machine. */
const MAX_PASSES = 120;
/** A case that takes less is never too slow. */
const MIN_SLOW_MS = 2500;

process.on('message', async (seed) => {
  const answer = await performCase(seed);
  const { problem, cpuMs } = answer;
  // A busy machine is slow in all that it does.
  const isSlow = problem === undefined && cpuMs > MIN_SLOW_MS && cpuMs > MAX_PASSES * passMs();
  process.send(isSlow ? { ...answer, problem: `takes ${cpuMs} ms` } : answer);
});

/** What one pass takes on this machine now. */
function passMs() {
  const text = 'Absorbance at 450 nm;0.123;A1\n'.repeat(35_000);
  const before = process.cpuUsage();
  const passes = 10;
  for (let n = 0; n < passes; n++) {
    const rows = text.split('\n').map((line) => line.split(';').map((cell) => cell.trim()));
    if (rows.length !== 35_001) throw new Error('the text was not split into its lines');
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / passes;
}

/** @param {number} seed */
async function performCase(seed) {
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
  const cpuMs = Math.round((user + system) / 1000);
  return { what, problem, memoryMb, cpuMs };
}
