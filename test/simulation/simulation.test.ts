import { expect, onTestFinished, test } from 'vitest';
import { seeded } from '../support/random.js';
import { createFleetSimulation } from './fleet.js';
import { sizeOf } from './fleet-site.js';
import { createSimulation } from './simulate.js';
import { createTimeline } from './timeline.js';
import type { Content } from './world.js';

/**
 * LABFEED_SEED=n replays one history, LABFEED_SEEDS=a-b runs many, LABFEED_TRACE=1 prints every event.
 * LABFEED_REDO=1 runs only histories with remaps, LABFEED_REDO=2 only those with versions of files, LABFEED_REDO=0 only
 * those without either; LABFEED_FILES=1 runs only histories
 * with raw files, for every seed instead of every fourth.
 * LABFEED_REDO=fleet runs only histories of a fleet, which take longer: one for every tenth seed. The seed decides how large
 * each is; LABFEED_SIZE=small, medium or large does so for all.
 * LABFEED_EVENTS=poison,gaps: exactly these events of `events.ts` happen, in every history.
 */
const DEFAULT_SEEDS = process.env['LABFEED_SLOW'] ? '1-10000' : '1-30';
const [from, to] = seeds(process.env['LABFEED_SEED'] ?? process.env['LABFEED_SEEDS'] ?? DEFAULT_SEEDS);
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

const areFilesWanted = process.env['LABFEED_FILES'] === '1';

const HISTORIES: readonly { readonly redo: string; readonly content: Content; readonly promise: string }[] = [
  { redo: '0', content: { withRemaps: false }, promise: 'every run is filed exactly once' },
  {
    redo: '1',
    content: { withRemaps: true },
    promise: 'every run is filed exactly once, with its last remap unless a user changed it,',
  },
  {
    redo: '2',
    content: { withVersions: true },
    promise: 'every run is filed exactly once, with the last version of its file unless a user changed it,',
  },
].filter(({ redo }) => !areFilesWanted && (wanted === undefined || wanted === redo));

function openFleet() {
  const simulation = createFleetSimulation();
  onTestFinished(simulation.close);
  return simulation;
}

/** A member loses its lease in a pause, before it leads; operations are sent while journal and database are compared. */
const RARE_IN_FLEETS = [130_964, 140_857];

/** Runs these histories until five have failed. `variables`: what a replay needs besides the seed. */
async function simulateAll(
  seeds: readonly number[],
  contentOf: (seed: number) => Content,
  variables: string,
  simulate: (seed: number, trace: ((line: string) => void) | undefined, content: Content) => Promise<void> = open()
    .simulate,
) {
  const failures: string[] = [];
  for (const seed of seeds) {
    if (failures.length === 5) break;
    await simulate(seed, trace, contentOf(seed)).catch((error: unknown) => {
      const events = process.env['LABFEED_EVENTS'];
      const chosen = events === undefined ? '' : `LABFEED_EVENTS=${events} `;
      const replay = `${chosen}LABFEED_SEED=${seed} ${variables} LABFEED_TRACE=1 npm run simulate`;
      failures.push(`${error instanceof Error ? error.message : error}\n  replay: ${replay}`);
    });
    // Let the event loop run between two histories.
    await new Promise(setImmediate);
  }
  expect(failures).toEqual([]);
}

const all = Array.from({ length: to - from + 1 }, (_, index) => from + index);

for (const { redo, content, promise } of HISTORIES) {
  test(
    `${promise} in histories ${from} to ${to}`,
    () => simulateAll(all, () => content, `LABFEED_REDO=${redo}`),
    3_600_000,
  );
}

test.runIf(wanted === undefined)(
  `every raw file is attached exactly once in histories ${from} to ${to}`,
  () =>
    simulateAll(
      all.filter((seed) => areFilesWanted || seed % 4 === 0),
      (seed) => ({ withRemaps: seed % 8 === 0, withVersions: seed % 8 === 4, withFiles: true }),
      'LABFEED_FILES=1',
    ),
  3_600_000,
);

test.runIf(wanted === undefined || wanted === 'fleet')(
  `every run of a fleet is filed exactly once in histories ${from} to ${to}`,
  () =>
    simulateAll(
      [...all.filter((seed) => wanted === 'fleet' || seed % 10 === 0), ...RARE_IN_FLEETS],
      () => ({}),
      'LABFEED_REDO=fleet',
      openFleet().simulate,
    ),
  3_600_000,
);

test('a history that does not end fails', async () => {
  const timeline = createTimeline(seeded(1));
  const again = (): void => void timeline.at(1000, again);
  again();
  await expect(timeline.until(new Promise(() => undefined))).rejects.toThrow('does not end');
});

test('a seed always yields the same history', async () => {
  const { simulate } = open();
  const replay = async (seed: number): Promise<string[]> => {
    const lines: string[] = [];
    await simulate(seed, (line) => lines.push(line), { withRemaps: seed % 2 === 0, withFiles: seed % 3 === 0 });
    return lines;
  };
  const histories = new Map<number, string[]>();
  for (let seed = 1; seed <= 20; seed++) histories.set(seed, await replay(seed));
  for (let seed = 20; seed >= 1; seed--) expect(await replay(seed)).toEqual(histories.get(seed));
  expect(new Set([...histories.values()].map((lines) => lines.join('\n'))).size).toBe(20);
});

test.skipIf(process.env['LABFEED_SIZE'])('most histories of a fleet are small, and some of each kind are large', () => {
  const sizes = Array.from({ length: 200 }, (_, seed) => ({ kind: seed % 4, ...sizeOf(seed) }));
  expect(sizes.filter(({ runs: [, most] }) => most === 2).length).toBeGreaterThan(160);
  expect(sizes.filter(({ isWhole }) => isWhole).map(({ kind }) => kind)).toEqual([0, 1, 2, 3]);
});

test('a seed always yields the same history of a fleet', async () => {
  const { simulate } = openFleet();
  const replay = async (seed: number): Promise<string[]> => {
    const lines: string[] = [];
    await simulate(seed, (line) => lines.push(line));
    return lines;
  };
  const first = await replay(1);
  const second = await replay(2);
  expect(await replay(1)).toEqual(first);
  expect(second).not.toEqual(first);
}, 60_000);
