import type { SimulatedDaemon } from './daemon.js';
import { EndlessError } from './timeline.js';
import { poisonedFile, type World } from './world.js';

const MAX_STEPS = 40_000;
const MAX_SPARES = 20;
/** Without faults, everything is done within this time. */
const MAX_SETTLE_MS = 2 * 3_600_000;

/** By then, an entry that can be read was tried again. */
const UNREADABLE_MS = 150_000;

/** No more faults, until nothing is left to do. */
export async function settle(world: World, daemon: SimulatedDaemon): Promise<void> {
  const { timeline, faults, events } = world;
  Object.assign(faults, { ofRequests: 0, ofWrites: 0 });
  daemon.wake();
  const maxMs = events.has('unreadable') ? MAX_SETTLE_MS / 8 : MAX_SETTLE_MS;
  const from = Math.max(timeline.elapsedMs(), world.calmAt);
  const isHaltExpected = () => events.has('restored') || world.isLost;
  for (let step = 0; step < MAX_STEPS && timeline.elapsedMs() < from + maxMs; step++) {
    if (daemon.isIdle() || daemon.hasFailed() || (isHaltExpected() && isHalted(world))) return;
    if (events.has('unreadable') && timeline.elapsedMs() > from + UNREADABLE_MS && waitsForUnreadable(world)) return;
    if (!(await timeline.step())) break;
  }
  // A run whose experiment may be the one that cannot be read waits.
  if (events.has('unreadable')) return;
  throw new EndlessError('some runs do not end');
}

/** What is left to do, for a message. */
export const listOpen = ({ database }: World): string[] =>
  database
    .prepare("SELECT id, step, reason, due_at FROM runs WHERE step <> 'done' AND parked IS NULL ORDER BY id")
    .all()
    .map((row) => `open: ${JSON.stringify(row)}`);

/** Whether all open runs wait for entries that are never shown. */
const waitsForUnreadable = ({ database }: World): boolean =>
  database
    .prepare(
      `SELECT 1 FROM runs WHERE step <> 'done' AND parked IS NULL AND (step <> 'creating' OR reason IS NULL
         OR reason NOT LIKE '%which cannot be read%')`,
    )
    .get() === undefined;

/** A failure counts against a run only if others succeed. */
export async function parkPoisoned(world: World, addHealthy: () => Promise<void>): Promise<void> {
  const { poisoned, database, timeline, kind, events } = world;
  if (poisoned === undefined) return;
  const isOpen = () =>
    database
      .prepare("SELECT 1 FROM runs WHERE sha256 = ? AND parked IS NULL AND step <> 'done'")
      .get(poisonedFile(world));
  // On eLabFTW, a comment with an unknown outcome is posted again after more than two minutes.
  const waitMs = kind.dialect === 'elabftw' ? 60_000 : 15_000;
  // Its experiment is found only once the entries around it were tried several times.
  const most = events.has('unreadable') ? 80 : 12;
  for (let more = 0; more < most && isOpen(); more++) {
    const from = timeline.elapsedMs() + waitMs;
    while (timeline.elapsedMs() < from && (await timeline.step()));
    await addHealthy();
  }
}

/** Spare experiments are used by later runs, unless an entry that cannot be read keeps them from it. */
export async function useSpares(world: World, addHealthy: () => Promise<void>): Promise<void> {
  const most = world.events.has('unreadable') ? MAX_SPARES / 2 : MAX_SPARES;
  for (let more = 0; more < most && hasSpares(world); more++) {
    if (world.events.has('unreadable') && more === most - RUNS_AFTER_WAIT) await wait(world, UNREADABLE_MS);
    await addHealthy();
  }
}

/** After the wait, the first run makes the daemon look again for what it could not read. The others use what it finds. */
const RUNS_AFTER_WAIT = 4;

async function wait({ timeline }: World, ms: number): Promise<void> {
  const from = timeline.elapsedMs();
  timeline.at(ms, () => undefined);
  while (timeline.elapsedMs() < from + ms && (await timeline.step()));
}

/** Spares that the runs of this PC can use, or ids that the next creation makes it read. What another PC has just created may look like one. */
const hasSpares = ({ database }: World): boolean =>
  database
    .prepare(
      `SELECT 1 FROM spares WHERE reference IS NULL OR reference IN (SELECT reference FROM runs)
         UNION SELECT 1 FROM servers WHERE sweep IS NOT NULL OR sweep_from IS NOT NULL`,
    )
    .get() !== undefined;

export const isHalted = ({ database }: World): boolean =>
  database.prepare('SELECT 1 FROM servers WHERE halted IS NOT NULL').get() !== undefined;
