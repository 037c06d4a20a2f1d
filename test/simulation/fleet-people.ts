import { every } from '../../src/clock.js';
import type { Fleet } from '../../src/fleet/fleet.js';
import type { Connection } from '../../src/journal/database.js';
import type { SimulatedProcess } from './timeline.js';
import { poisonedFile, runOf, type World } from './world.js';

const DECIDE_MS = 2000;

/**
 * A person changes the mapping of a run that is done, and requests its remap on any machine. `own`: the journal of that one.
 */
export function requestRemap(world: World, fleet: Connection, own: Connection): void {
  const { random, remaps, trace, timeline } = world;
  const done = fleet.rows<{ id: number; title: string }>`
    SELECT id, title FROM runs JOIN drafts ON run = id WHERE step = 'done' AND parked IS NULL AND title LIKE 'run %'
      AND sha256 <> ${poisonedFile(world)} ORDER BY id`;
  const chosen = done[random.below(done.length)];
  if (!chosen || !remaps) return;
  const n = numberOf(chosen.title);
  remaps.set(n, (remaps.get(n) ?? 0) + 1);
  trace?.(`a person requests a remap of run ${n}`);
  ask(own, chosen.id, timeline.elapsedMs());
}

/** Again, for every run whose mapping has changed: a request can be refused while its run is being sent. */
export function requestAll({ remaps, timeline }: World, fleet: Connection, own: Connection): void {
  for (const n of remaps?.keys() ?? []) {
    const id = fleet.value<number>`SELECT id FROM runs WHERE sha256 = ${runOf(n).run.file.sha256}`;
    if (id !== undefined) ask(own, id, timeline.elapsedMs());
  }
}

const numberOf = (title: string): number => Number(/^run (\d+)/.exec(title)?.[1]);

const ask = (own: Connection, run: number, at: number): unknown =>
  own.run`INSERT INTO inbox (at, request) VALUES (${at}, ${JSON.stringify({ kind: 'remap', run })})`;

/** As the daemon of a member does: it passes requests on, and reads files again. */
export function decide({ fleet, db, process }: Machine, world: World): void {
  const reread = (): void => void remapFiles({ fleet, db, process }, world);
  every(DECIDE_MS, process.clock, async () => {
    await fleet.part.decide(() => process.at(1, reread)).catch(() => undefined);
    return undefined;
  });
  reread();
}

interface Machine {
  readonly fleet: Fleet;
  /** Its own journal. */
  readonly db: Connection;
  readonly process: SimulatedProcess;
}

async function remapFiles({ fleet, db }: Machine, { remaps }: World): Promise<void> {
  const wanted = db.values<string>`SELECT title FROM remaps JOIN drafts ON drafts.run = remaps.run ORDER BY remaps.run`;
  for (const n of wanted.map(numberOf)) {
    const { run, draft } = runOf(n, remaps?.get(n) ?? 0);
    await fleet.journal.outbox.add(run, { draft });
  }
  fleet.part.delivery.wake();
}

/** Whether everything that people requested was done. */
export const isDecided = (db: Connection): boolean =>
  !db.exists`SELECT 1 FROM remaps UNION ALL SELECT 1 FROM inbox WHERE answer IS NULL`;
