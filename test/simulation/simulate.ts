import type { Database } from '../../src/journal/database.js';
import { ReusableDatabase } from '../support/reusable-database.js';
import { type SimulatedDaemon, startDaemon } from './daemon.js';
import { examine } from './examine.js';
import { TIMEOUT_MS } from './faulty-notebook.js';
import { createPeople, type People } from './people.js';
import { createWorld, type Faults, type Trace, type World } from './world.js';

export interface Simulation {
  /**
   * One history: the delivery core and the journal as they are, against a simulated notebook, under faults, crashes
   * and schedules that the seed chooses. Rejects where a run is not filed exactly once and to the letter, or
   * somebody else's work was touched. `redoes`: people also have runs redone that are done, and touch comments.
   */
  simulate(seed: number, trace?: Trace, redoes?: boolean): Promise<void>;
  close(): void;
}

/** Histories go one after the other, since they share a database. */
export function createSimulation(): Simulation {
  const database = new ReusableDatabase();
  return {
    async simulate(seed, trace, redoes = false) {
      database.empty();
      try {
        await live(createWorld(seed, database, trace, redoes));
      } catch (error) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`);
      }
    },
    close: () => database.close(),
  };
}

const MOST_STEPS = 40_000;

async function live(world: World): Promise<void> {
  const { random, faults, database } = world;
  const people = createPeople(world);
  let expected = 1 + random.below(5);
  let added = 0;
  const lives = 1 + random.below(4);
  for (let life = 0; life < lives; life++) {
    Object.assign(faults, chooseFaults(world));
    const daemon = startDaemon(world);
    await readAnew(daemon, world);
    const most = expected - added;
    const here = life === lives - 1 || random.chance(0.5) ? most : Math.min(most, 1 + random.below(2));
    for (const end = added + here; added < end; added++) await daemon.add(added);
    await goOn(daemon, world, people);
    // Only what is done can be redone.
    if (world.redone && random.chance(0.5)) await settle(world, daemon);
    if (life < lives - 1) await endLife(daemon, world, people);
    else {
      await settle(world, daemon);
      // What is left over of a first creation that was lost is used up by runs that come later.
      for (; leftOver(database); added++, expected++) {
        await daemon.add(added);
        await settle(world, daemon);
      }
      await redoAtLast(daemon, world, people);
      daemon.kill();
    }
  }
  examine(world, people, expected);
}

/** Mostly some requests fail; now and then all do, or the journal's disk is full. */
function chooseFaults({ random }: World): Faults {
  return {
    ofRequests: random.chance(0.1) ? 1 : random.next() * 0.4,
    ofWrites: random.chance(0.2) ? random.next() * 0.5 : 0,
  };
}

/** Until it is time for an end: half of them come while something is being written, which is where they could hurt. */
async function goOn(
  daemon: SimulatedDaemon,
  { random, timeline, wire }: World,
  people: People,
): Promise<void> {
  const [least, most] = random.chance(0.5) ? [random.below(30), 90] : [60, random.below(60)];
  for (let step = 0; step < most && !(await daemon.isIdle()); step++) {
    if (step >= least && wire.writing > 0) break;
    await timeline.step();
    if (random.chance(0.02)) people.create();
  }
}

async function endLife(daemon: SimulatedDaemon, world: World, people: People): Promise<void> {
  const { random, timeline } = world;
  if (random.chance(0.2)) await daemon.stop();
  else {
    // The request is not yet there, has been carried out, or is answered.
    for (let steps = random.below(3); steps > 0; steps--) await timeline.step();
    daemon.kill();
  }
  // A restart takes its time, and the server goes on meanwhile.
  for (let steps = random.below(3); steps > 0; steps--) await timeline.step();
  if (random.chance(0.1)) timeline.setClock(random.below(2 * HOUR_MS) - HOUR_MS);
  if (random.chance(0.3)) {
    // Nobody can tell a change that comes between our look and our PATCH; so they work while nothing is under way.
    while (await timeline.step());
    people.changeOurs();
  }
  if (!world.redone || random.chance(0.3)) return;
  // Nor can anybody tell that a PATCH comes late which went out before the process died: so they ask after that.
  while (await timeline.step());
  if (random.chance(0.4)) people.touchComment();
  people.askRemaps();
}

/** What was asked for while nobody lived to hear it. */
async function readAnew(daemon: SimulatedDaemon, { database, redone }: World): Promise<void> {
  if (!redone) return;
  const asked = database.prepare('SELECT run FROM remaps ORDER BY run').all() as { run: number }[];
  for (const { run } of asked) await daemon.redo(run - 1, redone.get(run - 1) ?? 0);
}

/** While the last process lives, which knows of what it has sent itself. */
async function redoAtLast(daemon: SimulatedDaemon, world: World, people: People): Promise<void> {
  const { redone, random, timeline, faults } = world;
  if (!redone || random.chance(0.5)) return;
  const from = timeline.elapsedMs() + 2 * TIMEOUT_MS;
  while (timeline.elapsedMs() < from && (await timeline.step()));
  people.askRemaps();
  Object.assign(faults, chooseFaults(world));
  await readAnew(daemon, world);
  await goOn(daemon, world, people);
  if (random.chance(0.5)) {
    // Of those that have been redone since, some at once.
    people.askRemaps();
    await readAnew(daemon, world);
  }
  await settle(world, daemon);
}

const HOUR_MS = 3_600_000;

/** The faults end, and time passes until nothing is left to do. */
async function settle({ timeline, faults }: World, daemon: SimulatedDaemon): Promise<void> {
  Object.assign(faults, { ofRequests: 0, ofWrites: 0 });
  daemon.ring();
  for (let step = 0; step < MOST_STEPS; step++) {
    if (await daemon.isIdle()) return;
    if (!(await timeline.step())) break;
  }
  throw new Error(`not all runs came to an end: ${JSON.stringify(await daemon.count())}`);
}

const leftOver = (database: Database): boolean =>
  database.prepare('SELECT 1 FROM spares UNION SELECT 1 FROM servers WHERE sweep IS NOT NULL').get() !==
  undefined;
