import type { SimulatedDaemon } from './daemon.js';
import type { World } from './world.js';

const MAX_STEPS = 40_000;
const MAX_SPARES = 20;
/** Without faults, everything is done within this time. */
const MAX_SETTLE_MS = 2 * 3_600_000;

/** No more faults, until nothing is left to do. */
export async function settle(world: World, daemon: SimulatedDaemon): Promise<void> {
  const { timeline, faults, events } = world;
  Object.assign(faults, { ofRequests: 0, ofWrites: 0 });
  daemon.wake();
  const maxMs = events.has('unreadable') ? MAX_SETTLE_MS / 8 : MAX_SETTLE_MS;
  const until = Math.max(timeline.elapsedMs(), world.calmAt) + maxMs;
  for (let step = 0; step < MAX_STEPS && timeline.elapsedMs() < until; step++) {
    if ((await daemon.isIdle()) || daemon.hasFailed() || ((events.has('restored') || world.isLost) && isHalted(world)))
      return;
    if (!(await timeline.step())) break;
  }
  // A run whose experiment may be the one that cannot be read waits.
  if (events.has('unreadable')) return;
  throw new Error(`some runs do not end: ${JSON.stringify(await daemon.count())}`);
}

/** A failure counts against a run only if others succeed. */
export async function parkPoisoned(
  { poisoned, database, timeline, kind }: World,
  addHealthy: () => Promise<void>,
): Promise<void> {
  if (poisoned === undefined) return;
  const isOpen = () =>
    database.prepare("SELECT 1 FROM runs WHERE id = ? AND parked IS NULL AND step <> 'done'").get(poisoned + 1);
  // On eLabFTW, a comment with an unknown outcome is posted again after more than two minutes.
  const most = kind.dialect === 'elabftw' ? 40 : 12;
  for (let more = 0; more < most && isOpen(); more++) {
    const from = timeline.elapsedMs() + 15_000;
    while (timeline.elapsedMs() < from && (await timeline.step()));
    await addHealthy();
  }
}

/** Spare experiments are used by later runs, unless an entry that cannot be read keeps them from it. */
export async function useSpares(world: World, addHealthy: () => Promise<void>): Promise<void> {
  const most = world.events.has('unreadable') ? MAX_SPARES / 2 : MAX_SPARES;
  for (let more = 0; more < most && hasSpares(world); more++) await addHealthy();
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
