import { expect, onTestFinished, test } from 'vitest';
import { createSimulation } from './simulate.js';

/** LABFEED_SEED=n replays one history; LABFEED_SEEDS=a-b runs many. */
const [from, to] = seeds(process.env['LABFEED_SEED'] ?? process.env['LABFEED_SEEDS'] ?? '1-200');

function seeds(text: string): [number, number] {
  const [first = 1, last = first] = text.split('-').map(Number);
  return [first, last];
}

test(`every run is filed exactly once in each of the histories ${from} to ${to}`, async () => {
  const { simulate, close } = createSimulation();
  onTestFinished(close);
  const failures: string[] = [];
  for (let seed = from; seed <= to && failures.length < 5; seed++) {
    await simulate(seed).catch((error: unknown) => {
      failures.push(
        `${error instanceof Error ? error.message : error}\n  replay: LABFEED_SEED=${seed} npm run simulate`,
      );
    });
  }
  expect(failures).toEqual([]);
}, 3_600_000);
