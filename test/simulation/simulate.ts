import { isProvisional, originIn } from '../../src/markers.js';
import type { Random } from '../support/random.js';
import { ReusableDatabase } from '../support/reusable-database.js';
import { scheduleConditions, unreadable } from './conditions.js';
import { type SimulatedDaemon, startDaemon } from './daemon.js';
import { TIMEOUT_MS } from './network.js';
import { createOtherPc, type OtherPc } from './other-pc.js';
import { recoverJournal } from './recover.js';
import { isHalted, listOpen, parkPoisoned, settle, useSpares } from './settle.js';
import { EndlessError } from './timeline.js';
import { createUsers, type Users } from './users.js';
import { verify } from './verify.js';
import { type Content, createWorld, type Faults, knowsTitles, type Trace, type World } from './world.js';

export interface Simulation {
  /**
   * One history: the real delivery and journal against the fake notebook, with faults, crashes and schedules chosen by
   * the seed. Rejects if a run is not filed exactly once and to the letter, or if another user's work was changed.
   */
  simulate(seed: number, trace?: Trace, content?: Content): Promise<void>;
  close(): void;
}

/** Histories share a database, so they run one after the other. */
export function createSimulation(): Simulation {
  const database = new ReusableDatabase();
  const other = new ReusableDatabase();
  for (const one of [database, other]) one.simplify();
  // Nobody reads the stack of an error, and it costs more than the error.
  if (!process.env['LABFEED_TRACE']) Error.stackTraceLimit = 0;
  return {
    async simulate(seed, trace, content = {}) {
      const world = createWorld(seed, database, trace, content);
      database.empty(world.events.has('lost'));
      other.empty();
      try {
        await runHistory(world, other);
      } catch (error) {
        const open = error instanceof EndlessError ? listOpen(world) : [];
        const message = error instanceof Error ? error.message : String(error);
        throw new Error([`seed ${seed}, ${JSON.stringify(world.kind)}: ${message}`, ...open].join('\n  '));
      }
    },
    close() {
      database.close();
      other.close();
    },
  };
}

const HOUR_MS = 3_600_000;

async function runHistory(world: World, otherDatabase: ReusableDatabase): Promise<void> {
  const { random, faults, events } = world;
  const other = events.has('second') ? createOtherPc(world, otherDatabase) : undefined;
  const users = createUsers(world, other?.world);
  scheduleConditions(world);
  let expected = 1 + random.below(5);
  let added = 0;
  const processes = 1 + random.below(4) + Number(events.has('restored') || events.has('lost'));
  for (let process = 1; process <= processes; process++) {
    Object.assign(faults, chooseFaults(world));
    await other?.start();
    world.canFailSync = process < processes;
    let daemon = await startDaemon(world);
    if (world.isLost && world.hadNote && !isHalted(world) && !daemon.hasFailed())
      throw new Error('nobody noticed that the journal was lost');
    // The scan at the start finds all files, including those whose runs a power failure has undone.
    for (let n = 0; n < added; n++) await daemon.add(n);
    await deliverRemaps(daemon, world);
    // What was restored is noticed with the next run.
    if (world.isRestored) expected = Math.max(expected, added + 1);
    const left = expected - added;
    const here = process === processes || random.chance(0.5) ? left : Math.min(left, 1 + random.below(2));
    for (const end = added + here; added < end; added++) await daemon.add(added);
    await runUntilEnd(daemon, world, users, other);
    // Only done runs can be remapped.
    if (world.remaps && random.chance(0.5) && !daemon.hasFailed()) await settle(world, daemon);
    if (process < processes) await endProcess(daemon, world, users, other);
    else {
      await settle(world, daemon);
      await other?.settle();
      // Once: what halts again after `recover` is a failure.
      let isRecovered = false;
      const recoverIfHalted = async (): Promise<void> => {
        if (isRecovered || !isHalted(world)) return;
        isRecovered = true;
        daemon = await recoverAndRestart(daemon, world);
      };
      await recoverIfHalted();
      const addHealthy = async (): Promise<void> => {
        await daemon.add(added++);
        await settle(world, daemon);
        // With only a poisoned run open, a restored server is noticed now.
        await recoverIfHalted();
      };
      await useSpares(world, addHealthy);
      await parkPoisoned(world, addHealthy);
      // After `recover`, the runs of a second PC are among ours.
      if (!(other && isRecovered)) await remapInLastProcess(daemon, world, users);
      for (let time = 0; time < MAX_SCANS && world.changedFiles?.size; time++) {
        await deliverRemaps(daemon, world);
        await settle(world, daemon);
      }
      daemon.kill();
    }
  }
  verify(other ? [world, other.world] : [world], users, added + (other?.added() ?? 0));
}

/** A version is taken by the first scan after the one before was sent. */
const MAX_SCANS = 5;

/** Usually some requests fail; sometimes all do, or the journal's disk is full. */
function chooseFaults({ random }: World): Faults {
  return {
    ofRequests: random.chance(0.1) ? 1 : random.next() * 0.4,
    ofWrites: random.chance(0.2) ? random.next() * 0.5 : 0,
  };
}

/** Half of the processes end while a write is in flight, where a crash does most harm. */
async function runUntilEnd(daemon: SimulatedDaemon, world: World, users: Users, other?: OtherPc): Promise<void> {
  const { random, timeline, network, events } = world;
  const [minSteps, maxSteps] = random.chance(0.5) ? [random.below(30), 90] : [60, random.below(60)];
  for (let step = 0; step < maxSteps && !daemon.isIdle(); step++) {
    if (step >= minSteps && network.writes > 0) break;
    await timeline.step();
    if (random.chance(0.02)) users.createExperiment();
    if (events.get('clock')?.chance(0.02) && !isTimed(world)) jumpClock(world);
    if (events.get('reload')?.chance(0.02)) await daemon.reload();
    const neighbour = events.get('unreadable');
    if (neighbour?.chance(0.05) && world.conditions.size < MAX_CONDITIONS) addUnreadable(world, users, neighbour);
    if (events.get('restored')?.chance(0.2) && isCalm(world) && (!other || isCalm(other.world)))
      world.restore ??= world.notebook.snapshot();
  }
}

const MAX_CONDITIONS = 3;

function addUnreadable({ conditions }: World, users: Users, random: Random): void {
  const id = users.createExperiment();
  conditions.add(unreadable(id, random, () => users.created.has(id)));
}

/** Between two runs. Nobody notices if a server is restored to a state in which only a comment or a file is missing. */
const isCalm = ({ database }: World): boolean =>
  database.prepare("SELECT 1 FROM runs WHERE step NOT IN ('pending', 'done')").get() === undefined &&
  database.prepare('SELECT 1 FROM attachments WHERE due_at IS NOT NULL').get() === undefined;

/** Where runs must end in time: a clock that is set back by less than an hour delays some of them by as much. */
const isTimed = ({ events }: World): boolean => events.has('poison') || events.has('unreadable');

/** By minutes, days or years, in either direction. */
function jumpClock({ events, timeline, trace }: World): void {
  const random = events.get('clock');
  const range = [HOUR_MS, 100 * 24 * HOUR_MS, 3 * 365 * 24 * HOUR_MS][random?.below(3) ?? 0] ?? 0;
  const byMs = random?.below(2 * range) ?? 0;
  trace?.(`the clock jumps by ${Math.round((byMs - range) / 60_000)} minutes`);
  timeline.setClock(byMs - range);
}

async function endProcess(
  daemon: SimulatedDaemon,
  world: World,
  users: Users,
  other: OtherPc | undefined,
): Promise<void> {
  const { random, timeline } = world;
  if (random.chance(0.2)) await daemon.stop();
  else {
    // The request has not arrived, has been carried out, or was answered.
    for (let steps = random.below(3); steps > 0; steps--) await timeline.step();
    if (random.chance(0.5)) daemon.failPower();
    else daemon.kill();
  }
  other?.end();
  // The server continues during a restart.
  for (let steps = random.below(3); steps > 0; steps--) await timeline.step();
  if (random.chance(0.1) && !isTimed(world)) timeline.setClock(random.below(2 * HOUR_MS) - HOUR_MS);
  if (world.events.has('clock') && !isTimed(world)) jumpClock(world);
  if (world.events.has('restored')) return restore(world, users, other);
  if (world.events.has('lost')) return loseJournal(world);
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

/** The server gets an older state, after everything in flight has arrived. */
async function restore(world: World, users: Users, other: OtherPc | undefined): Promise<void> {
  const { timeline, trace } = world;
  while (await timeline.step());
  if (!world.restore || world.isRestored || !knowsTitles(world)) return;
  if (other && other.added() > 0 && !knowsTitles(other.world)) return;
  world.restore();
  world.isRestored = true;
  if (other) other.world.isRestored = other.added() > 0;
  trace?.('the server is restored to an older state');
  users.restored();
}

/** The journal is lost, or restored from an older copy, after everything in flight has arrived. */
async function loseJournal(world: World): Promise<void> {
  const { timeline, events, database, trace } = world;
  const random = events.get('lost');
  while (await timeline.step());
  if (!random?.chance(0.6) || world.isLost || world.note === undefined) return;
  const kept = random.chance(0.5) ? 0 : random.below(world.writtenBeforeNote + 1);
  trace?.(`the journal is replaced by its first ${kept} transactions of ${database.written()}`);
  database.rewind(kept);
  world.isLost = true;
  // On eLabFTW, a search finds what was filed even if the file beside the journal is lost with it.
  world.hadNote = world.kind.dialect !== 'elabftw' || !hasUnknownRun(world) || random.chance(0.5);
  if (world.hadNote) return;
  trace?.('the note beside the journal is lost, too');
  world.note = undefined;
}

/** Whether a run is filed that the journal does not know. */
const hasUnknownRun = ({ notebook, database, pc }: World): boolean =>
  [...notebook.experiments].some(
    ([id, { title, body }]) =>
      !isProvisional(title) &&
      originIn(body)?.journal === pc.journal &&
      database.prepare('SELECT 1 FROM runs WHERE experiment = ?').get(id) === undefined,
  );

/** Remaps that were requested while no process was running. */
async function deliverRemaps(daemon: SimulatedDaemon, { database, remaps, changedFiles }: World): Promise<void> {
  if (!remaps) return;
  if (changedFiles) for (const n of [...changedFiles]) await daemon.remap(n, remaps.get(n) ?? 0);
  if (changedFiles) return;
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

/** What a person does after a halt. */
async function recoverAndRestart(daemon: SimulatedDaemon, world: World): Promise<SimulatedDaemon> {
  daemon.kill();
  await recoverJournal(world);
  const restarted = await startDaemon(world);
  await settle(world, restarted);
  return restarted;
}
