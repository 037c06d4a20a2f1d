import type { Database } from '../../src/journal/database.js';
import { ReusableDatabase } from '../support/reusable-database.js';
import { type SimulatedDaemon, startDaemon } from './daemon.js';
import { TIMEOUT_MS } from './network.js';
import { createUsers, type Users } from './users.js';
import { verify } from './verify.js';
import { createWorld, type Faults, type Trace, type World } from './world.js';

export interface Simulation {
  /**
   * One history: the real delivery and journal against the fake notebook, with faults, crashes and schedules chosen by
   * the seed. Rejects if a run is not filed exactly once and to the letter, or if another user's work was changed.
   * `withRemaps`: users also request remaps of done runs, and change comments.
   */
  simulate(seed: number, trace?: Trace, withRemaps?: boolean): Promise<void>;
  close(): void;
}

/** Histories share a database, so they run one after the other. */
export function createSimulation(): Simulation {
  const database = new ReusableDatabase();
  // Nobody reads the stack of an error, and it costs more than the error.
  if (!process.env['LABFEED_TRACE']) Error.stackTraceLimit = 0;
  return {
    async simulate(seed, trace, withRemaps = false) {
      database.empty();
      try {
        await runHistory(createWorld(seed, database, trace, withRemaps));
      } catch (error) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`);
      }
    },
    close: () => database.close(),
  };
}

const MAX_STEPS = 40_000;

async function runHistory(world: World): Promise<void> {
  const { random, faults, database } = world;
  const users = createUsers(world);
  let expected = 1 + random.below(5);
  let added = 0;
  const processes = 1 + random.below(4);
  for (let process = 1; process <= processes; process++) {
    Object.assign(faults, chooseFaults(world));
    const daemon = startDaemon(world);
    // The scan at the start finds all files, including those whose runs a power failure has undone.
    for (let n = 0; n < added; n++) await daemon.add(n);
    await deliverRemaps(daemon, world);
    const left = expected - added;
    const here = process === processes || random.chance(0.5) ? left : Math.min(left, 1 + random.below(2));
    for (const end = added + here; added < end; added++) await daemon.add(added);
    await runUntilEnd(daemon, world, users);
    // Only done runs can be remapped.
    if (world.remaps && random.chance(0.5)) await settle(world, daemon);
    if (process < processes) await endProcess(daemon, world, users);
    else {
      await settle(world, daemon);
      // Spare experiments are used by later runs.
      for (; hasSpares(database); added++, expected++) {
        await daemon.add(added);
        await settle(world, daemon);
      }
      await remapInLastProcess(daemon, world, users);
      daemon.kill();
    }
  }
  verify(world, users, expected);
}

/** Usually some requests fail; sometimes all do, or the journal's disk is full. */
function chooseFaults({ random }: World): Faults {
  return {
    ofRequests: random.chance(0.1) ? 1 : random.next() * 0.4,
    ofWrites: random.chance(0.2) ? random.next() * 0.5 : 0,
  };
}

/** Half of the processes end while a write is in flight, where a crash does most harm. */
async function runUntilEnd(daemon: SimulatedDaemon, { random, timeline, network }: World, users: Users): Promise<void> {
  const [minSteps, maxSteps] = random.chance(0.5) ? [random.below(30), 90] : [60, random.below(60)];
  for (let step = 0; step < maxSteps && !(await daemon.isIdle()); step++) {
    if (step >= minSteps && network.writes > 0) break;
    await timeline.step();
    if (random.chance(0.02)) users.createExperiment();
  }
}

async function endProcess(daemon: SimulatedDaemon, world: World, users: Users): Promise<void> {
  const { random, timeline } = world;
  if (random.chance(0.2)) await daemon.stop();
  else {
    // The request has not arrived, has been carried out, or was answered.
    for (let steps = random.below(3); steps > 0; steps--) await timeline.step();
    if (random.chance(0.5)) daemon.failPower();
    else daemon.kill();
  }
  // The server continues during a restart.
  for (let steps = random.below(3); steps > 0; steps--) await timeline.step();
  if (random.chance(0.1)) timeline.setClock(random.below(2 * HOUR_MS) - HOUR_MS);
  if (random.chance(0.3)) {
    // A change between our read and our PATCH cannot be detected, so users act while nothing is in flight.
    while (await timeline.step());
    users.changeExperiment();
  }
  if (!world.remaps || random.chance(0.3)) return;
  // Nor can a late PATCH of a dead process, so users act after it has arrived.
  while (await timeline.step());
  if (random.chance(0.4)) users.changeComment();
  users.requestRemaps();
}

/** Remaps that were requested while no process was running. */
async function deliverRemaps(daemon: SimulatedDaemon, { database, remaps }: World): Promise<void> {
  if (!remaps) return;
  const requested = database.prepare('SELECT run FROM remaps ORDER BY run').all() as { run: number }[];
  for (const { run } of requested) await daemon.remap(run - 1, remaps.get(run - 1) ?? 0);
}

/** In the last process, which knows its own requests of unknown outcome. */
async function remapInLastProcess(daemon: SimulatedDaemon, world: World, users: Users): Promise<void> {
  const { remaps, random, timeline, faults } = world;
  if (!remaps || random.chance(0.5)) return;
  const from = timeline.elapsedMs() + 2 * TIMEOUT_MS;
  while (timeline.elapsedMs() < from && (await timeline.step()));
  users.requestRemaps();
  Object.assign(faults, chooseFaults(world));
  await deliverRemaps(daemon, world);
  await runUntilEnd(daemon, world, users);
  if (random.chance(0.5)) {
    // Some of those that were remapped meanwhile, at once.
    users.requestRemaps();
    await deliverRemaps(daemon, world);
  }
  await settle(world, daemon);
}

const HOUR_MS = 3_600_000;

/** No more faults, until nothing is left to do. */
async function settle({ timeline, faults }: World, daemon: SimulatedDaemon): Promise<void> {
  Object.assign(faults, { ofRequests: 0, ofWrites: 0 });
  daemon.wake();
  for (let step = 0; step < MAX_STEPS; step++) {
    if (await daemon.isIdle()) return;
    if (!(await timeline.step())) break;
  }
  throw new Error(`some runs do not end: ${JSON.stringify(await daemon.count())}`);
}

const hasSpares = (database: Database): boolean =>
  database.prepare('SELECT 1 FROM spares UNION SELECT 1 FROM servers WHERE sweep IS NOT NULL').get() !== undefined;
