import type { Fleet } from '../../src/fleet/fleet.js';
import type { Tables } from '../../src/fleet/tables.js';
import type { Connection } from '../../src/journal/database.js';
import type { Journal } from '../../src/journal/journal.js';
import type { Random } from '../support/random.js';
import type { ReusableDatabase } from '../support/reusable-database.js';
import type { CopyDatabase } from './copy-database.js';
import { createDatabase, type Link, type SimulatedDatabase } from './fleet-database.js';
import { createLogger } from './fleet-logger.js';
import { isDecided } from './fleet-people.js';
import type { SimulatedProcess } from './timeline.js';
import { poisonedFile, type World } from './world.js';

/** How many of something a history has. */
type Range = readonly [least: number, most: number];

/** How large a history is. */
export interface Size {
  readonly deliverers: Range;
  readonly watchers: Range;
  readonly runs: Range;
  /** How often something goes wrong. */
  readonly events: Range;
  /** How many requests of leaders are delayed by pauses. */
  readonly pauses: Range;
  /** How long requests fail after the last event, at most. */
  readonly faultyMs: number;
  /** Of those in `events.ts`: what the notebook does. */
  readonly conditions: readonly string[];
  /** Whether members poll as often as in a laboratory until the last event, and all are started after it. */
  readonly isWhole: boolean;
}

/**
 * What a fleet can do wrong shows with few members, runs and faults, and such a history costs a quarter of a large one.
 * Others need more: a run that is poisoned, or three that wait for each other.
 */
const SIZES = {
  small: {
    ...{ deliverers: [2, 2], watchers: [0, 0], runs: [1, 2], events: [1, 2], pauses: [0, 1] },
    ...{ faultyMs: 15_000, conditions: ['gaps'], isWhole: false },
  },
  medium: {
    ...{ deliverers: [2, 2], watchers: [0, 2], runs: [1, 3], events: [1, 3], pauses: [0, 2] },
    ...{ faultyMs: 20_000, conditions: ['gaps', 'spell', 'readonly', 'refused'], isWhole: false },
  },
  large: {
    ...{ deliverers: [2, 3], watchers: [1, 3], runs: [2, 6], events: [1, 4], pauses: [0, 3] },
    ...{ faultyMs: 60_000, conditions: ['gaps', 'poison', 'spell', 'readonly', 'refused'], isWhole: true },
  },
} as const satisfies Record<string, Size>;

/** LABFEED_SIZE=large: every history has this size. */
const wanted = process.env['LABFEED_SIZE'];

/** Four seeds in a row have one size: what they are about is different in each. */
export function sizeOf(seed: number): Size {
  if (wanted !== undefined) {
    const size = (SIZES as Partial<Record<string, Size>>)[wanted];
    if (!size) throw new Error(`there is no size ${wanted}; sizes are ${Object.keys(SIZES).join(', ')}`);
    return size;
  }
  const n = Math.floor(seed / 4) % 50;
  return n === 0 ? SIZES.large : n % 10 === 5 ? SIZES.medium : SIZES.small;
}

/** Of the largest fleet. */
export const MAX_MEMBERS = SIZES.large.deliverers[1] + SIZES.large.watchers[1];

export const within = ([least, most]: Range, random: Random): number => least + random.below(most - least + 1);

export interface Slot {
  readonly journal: ReusableDatabase;
  readonly db: Connection;
  readonly copy: CopyDatabase;
}

export interface Member {
  readonly name: string;
  readonly isDeliverer: boolean;
  readonly slot: Slot;
  readonly database: Link;
  readonly notebook: Link;
  /** How far its wall clock is ahead. */
  readonly aheadMs: number;
  /** The copies of raw files in its spool. */
  readonly copies: Set<string>;
  running: { readonly process: SimulatedProcess; readonly fleet: Fleet; readonly journal: Journal } | undefined;
}

export type Site = ReturnType<typeof createSite>;

const FLEET = '11111111';

interface SiteOptions {
  readonly size: Size;
  readonly slots: readonly Slot[];
  readonly tables: Tables;
  /** As for the simulated database. */
  readonly statements: Map<string, number>;
  readonly withLogger: boolean;
}

/** The members of a fleet, and what outlives their processes. */
export function createSite(world: World, { size, slots, tables, statements, withLogger }: SiteOptions) {
  const { random } = world;
  const deliverers = within(size.deliverers, random);
  const watchers = within(size.watchers, random);
  const members = slots.slice(0, deliverers + watchers).map(
    (slot, n): Member => ({
      ...{ name: `pc${n + 1}`, isDeliverer: n < deliverers, slot },
      ...{ database: { isCut: false }, notebook: { isCut: false } },
      aheadMs: random.chance(0.3) ? random.below(7_200_000) - 3_600_000 : 0,
      ...{ copies: new Set<string>(), running: undefined },
    }),
  );
  const database: SimulatedDatabase = createDatabase(
    FLEET,
    tables,
    statements,
    world,
    size.isWhole || random.chance(0.2) ? 0.8 : 0.1,
  );
  // In a small fleet, machines that deliver have instruments, too.
  const readers = size.isWhole ? members.slice(deliverers) : members;
  return {
    world,
    size,
    tables,
    members,
    /** Those with instruments. */
    readers,
    database,
    /** By the ids of the session keys that the notebook accepts. */
    keys: new Map<number, { readonly name: string | undefined; readonly text: string }>(),
    givesKeys: random.chance(0.5),
    /** Once nothing more goes wrong, the leader has something to do, or members are still to learn what it did. */
    phase: 'eventful' as 'eventful' | 'delivering' | 'reporting',
    /** How many more requests are delayed by pauses of the leader, and when the last of them has arrived. */
    pauses: { left: within(size.pauses, random), overAt: 0 },
    logger: withLogger ? createLogger(readers, random) : undefined,
    mayRemap: true,
    /** Runs have none, one or two comments, by their numbers. */
    firstRun: size.isWhole ? 0 : random.below(3),
    /** Which members see the file of each run. */
    files: [] as Member[][],
    /** The world with the outbox of the fleet as its journal. */
    seen: (): World => ({ ...world, database: leaderOf(members).slot.copy as unknown as ReusableDatabase }),
  };
}

/** The member whose copy is that of the leader, or else the newest. */
export function leaderOf(members: readonly Member[]): Member {
  const seqOf = ({ slot }: Member): number =>
    slot.copy.connection.value<number>`SELECT leads * 1000000 + epoch * 1000 + seq FROM working_copy` ?? -1;
  const deliverers = members.filter(({ isDeliverer }) => isDeliverer);
  const running = deliverers.filter((member) => member.running);
  return (running.length > 0 ? running : deliverers).reduce((a, b) => (seqOf(b) > seqOf(a) ? b : a));
}

/** How often a leader asks for operations and decisions. */
const LEADER_POLLS: readonly number[] = [500, 1000];
/** After an outage, one request a second is sent. */
const SLOW_REQUEST_MS = 1000;
const ELECT_MS = 2000;
const REPORT_MS = 5000;
const HEARTBEAT_MS = 10_000;

/** How many times as long a member waits that waits in vain: polls that find nothing would be most of a history. */
export function paceOf(site: Site, member: Member, waitMs: number): number {
  if (site.size.isWhole) return isIdle(site, member, waitMs) ? 8 : 1;
  // A leader that has not begun to send has waits of the same length.
  return isIdleInSmall(site, member, waitMs) ? (site.database.isSending() ? 40 : 8) : 1;
}

/** Once nothing more goes wrong. */
function isIdle({ phase, database, world }: Site, { slot }: Member, waitMs: number): boolean {
  if (phase === 'eventful') return false;
  if (slot.copy.leads()) return LEADER_POLLS.includes(waitMs) && database.waiting() === 0;
  return waitMs >= 1000 && (phase === 'delivering' || areDone(slot.db, world));
}

/** At any time, if nothing has changed of what it asks for. A lease of 15 s is renewed in time if that is done every 10 s. */
function isIdleInSmall(site: Site, member: Member, waitMs: number): boolean {
  const { phase, database, world } = site;
  const { slot, isDeliverer } = member;
  if (waitMs === HEARTBEAT_MS) return true;
  if (awaitsDecision(site, member)) return false;
  if (slot.copy.leads() && LEADER_POLLS.includes(waitMs)) {
    // A request may wait for its turn as long as a poll does, and is too late after 40 times that.
    return database.waiting() === 0 && (waitMs !== SLOW_REQUEST_MS || areDone(slot.copy.connection, world));
  }
  if (slot.db.exists`SELECT 1 FROM forwards`) return false;
  if (slot.copy.leads()) {
    if (waitMs === ELECT_MS) return true;
    return waitMs === REPORT_MS && database.leaseLeftMs() > 2 * REPORT_MS - 1000 && phase !== 'reporting';
  }
  if (isDeliverer && database.leaseLeftMs() <= 0) return false;
  return waitMs === ELECT_MS || (waitMs === REPORT_MS && (phase !== 'reporting' || areDone(slot.db, world)));
}

/**
 * Whether this member or the leader has a remap, or a request that is still to be answered. A run can be remapped once it
 * was sent, so the leader begins to send as early as it can.
 */
const awaitsDecision = ({ members, world, database }: Site, { slot: own }: Member): boolean =>
  world.remaps !== undefined &&
  (!database.isSending() ||
    !isDecided(own.db) ||
    members.some(({ slot: { copy } }) => copy.leads() && !isDecided(copy.connection)));

export const areDone = (db: Connection, world: World): boolean =>
  !db.exists`SELECT 1 FROM runs WHERE step <> 'done' AND parked IS NULL AND sha256 <> ${poisonedFile(world)}`;
