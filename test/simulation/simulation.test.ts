import { expect, onTestFinished, test } from 'vitest';
import { createSimulation } from './simulate.js';

/**
 * LABFEED_SEED=n replays one history; LABFEED_SEEDS=a-b runs many; LABFEED_TRACE=1 tells what happens in them.
 * LABFEED_REDO=1 only those in which people have runs redone, LABFEED_REDO=0 only the others.
 */
const ordinary = process.env['LABFEED_SLOW'] ? '1-10000' : '1-150';
const [from, to] = seeds(process.env['LABFEED_SEED'] ?? process.env['LABFEED_SEEDS'] ?? ordinary);
const wanted = process.env['LABFEED_REDO'];
const trace = process.env['LABFEED_TRACE'] ? (line: string) => console.log(line) : undefined;

function seeds(text: string): [number, number] {
  const [first = 1, last = first] = text.split('-').map(Number);
  return [first, last];
}

function open() {
  const simulation = createSimulation();
  onTestFinished(simulation.close);
  return simulation;
}

const HISTORIES = [
  { redoes: false, promise: 'every run is filed exactly once' },
  { redoes: true, promise: 'every run is filed once, and as it was last redone unless a person touched it,' },
].filter(({ redoes }) => wanted === undefined || wanted === String(Number(redoes)));

for (const { redoes, promise } of HISTORIES) {
  test(`${promise} in each of the histories ${from} to ${to}`, async () => {
    const { simulate } = open();
    const failures: string[] = [];
    for (let seed = from; seed <= to && failures.length < 5; seed++) {
      await simulate(seed, trace, redoes).catch((error: unknown) => {
        const replay = `LABFEED_SEED=${seed} LABFEED_REDO=${Number(redoes)} LABFEED_TRACE=1 npm run simulate`;
        failures.push(`${error instanceof Error ? error.message : error}\n  replay: ${replay}`);
      });
      // Between two histories the event loop gets its turn.
      await new Promise(setImmediate);
    }
    expect(failures).toEqual([]);
  }, 3_600_000);
}

test('a seed is the same history every time, whatever went before', async () => {
  const { simulate } = open();
  const tell = async (seed: number): Promise<string[]> => {
    const lines: string[] = [];
    await simulate(seed, (line) => lines.push(line), seed % 2 === 0);
    return lines;
  };
  const told = new Map<number, string[]>();
  for (let seed = 1; seed <= 20; seed++) told.set(seed, await tell(seed));
  for (let seed = 20; seed >= 1; seed--) expect(await tell(seed)).toEqual(told.get(seed));
  expect(new Set([...told.values()].map((lines) => lines.join('\n'))).size).toBe(20);
});
