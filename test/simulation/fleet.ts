import type { UsableConfig } from '../../src/config/load.js';
import type { Key } from '../../src/config/secrets.js';
import type { Notebook } from '../../src/deliver/context.js';
import { NotebookError } from '../../src/errors.js';
import { type Fleet, joinFleet, type Outside } from '../../src/fleet/fleet.js';
import { LEASE_MS, MARGIN_MS } from '../../src/fleet/lease.js';
import { readTables, type Tables } from '../../src/fleet/tables.js';
import type { WorkingCopy } from '../../src/fleet/working-copy.js';
import { Connection } from '../../src/journal/database.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';
import { type FakeRequest, intercept } from '../support/fake-notebook.js';
import { ReusableDatabase } from '../support/reusable-database.js';
import { scheduleConditions } from './conditions.js';
import { CopyDatabase } from './copy-database.js';
import { logTo, SETTINGS } from './daemon.js';
import { areAttached, createSpool, readFirst, verifyContents } from './fleet-contents.js';
import { createDatabase, type Link, type SimulatedDatabase } from './fleet-database.js';
import { createLogger, isLogTaken, readLog, reportLog, verifyLog } from './fleet-logger.js';
import { decide, isDecided, requestAll, requestRemap } from './fleet-people.js';
import { type Schedule, send, TIMEOUT_MS } from './network.js';
import { isHalted, listOpen, parkPoisoned, useSpares } from './settle.js';
import { EndlessError, type SimulatedProcess } from './timeline.js';
import { createUsers } from './users.js';
import { verify } from './verify.js';
import { COMMON_FILE, createWorld, poisonedFile, rawFileOf, runOf, type Trace, type World } from './world.js';

/**
 * Histories of a fleet: the real code of src/fleet, delivery and journals, against a simulated database and the fake
 * notebook. Members are killed, paused, cut off and restarted, and so is the database.
 */
export function createFleetSimulation() {
  const slots = Array.from({ length: MAX_MEMBERS }, (): Slot => {
    const journal = new ReusableDatabase();
    return { journal, db: new Connection(journal), copy: new CopyDatabase() };
  });
  for (const { journal } of slots) journal.simplify();
  const unused = new ReusableDatabase();
  const tables = readTables(slots[0]?.copy ?? unused);
  const statements = new Map<string, number>();
  process.env['KEY'] ??= CONFIGURED;
  if (!process.env['LABFEED_TRACE']) Error.stackTraceLimit = 0;
  return {
    async simulate(seed: number, trace?: Trace): Promise<void> {
      for (const { journal, copy } of slots) {
        journal.empty();
        copy.empty();
      }
      const content = { events: CONDITIONS, withFiles: seed % 4 === 0, withRemaps: seed % 4 === 2 };
      const site = createSite(createWorld(seed, unused, trace, content), slots, tables, statements, seed % 4 === 1);
      try {
        await runHistory(site);
      } catch (error) {
        const open = error instanceof EndlessError ? listOpen(site.seen()) : [];
        const message = error instanceof Error ? error.message : String(error);
        const kind = JSON.stringify({ ...site.world.kind, givesKeys: site.givesKeys });
        throw new Error([`seed ${seed}, ${kind}: ${message}`, ...open].join('\n  '));
      }
    },
    close() {
      for (const { journal, copy } of slots) {
        journal.close();
        copy.end();
      }
      unused.close();
    },
  };
}

/** Of those in `events.ts`: what the notebook does. */
const CONDITIONS = ['gaps', 'poison', 'spell', 'readonly', 'refused'];

const MAX_MEMBERS = 6;
const CONFIGURED = 'configured';
const FLEET = '11111111';

interface Slot {
  readonly journal: ReusableDatabase;
  readonly db: Connection;
  readonly copy: CopyDatabase;
}

interface Member {
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

type Site = ReturnType<typeof createSite>;

function createSite(
  world: World,
  slots: readonly Slot[],
  tables: Tables,
  statements: Map<string, number>,
  withLogger: boolean,
) {
  const { random } = world;
  const deliverers = 2 + random.below(2);
  const watchers = 1 + random.below(3);
  const members = slots.slice(0, deliverers + watchers).map((slot, n): Member => {
    const aheadMs = random.chance(0.3) ? random.below(7_200_000) - 3_600_000 : 0;
    const [database, notebook] = [{ isCut: false }, { isCut: false }];
    const isDeliverer = n < deliverers;
    return {
      name: `pc${n + 1}`,
      isDeliverer,
      slot,
      database,
      notebook,
      aheadMs,
      copies: new Set(),
      running: undefined,
    };
  });
  const database: SimulatedDatabase = createDatabase(FLEET, tables, statements, world);
  return {
    world,
    tables,
    members,
    database,
    /** By the ids of the session keys that the notebook accepts. */
    keys: new Map<number, { readonly name: string | undefined; readonly text: string }>(),
    givesKeys: random.chance(0.5),
    /** Once nothing more goes wrong, the leader has something to do, or members are still to learn what it did. */
    phase: 'eventful' as 'eventful' | 'delivering' | 'reporting',
    /** How many more requests are delayed by pauses of the leader, and when the last of them has arrived. */
    pauses: { left: random.below(4), overAt: 0 },
    logger: withLogger ? createLogger(members.slice(deliverers), random) : undefined,
    mayRemap: true,
    /** Which members see the file of each run. */
    files: [] as Member[][],
    /** The world with the outbox of the fleet as its journal. */
    seen: (): World => ({ ...world, database: leaderOf(members).slot.copy as unknown as ReusableDatabase }),
  };
}

/** The file grows, and some of the members that follow it read it. */
async function growLog(site: Site): Promise<void> {
  const { logger, members, world } = site;
  if (!logger) return;
  logger.lines += world.random.below(3);
  for (const member of members) if (world.random.chance(0.5)) await takeLog(site, member);
}

async function takeLog({ logger, world }: Site, { name, running }: Member): Promise<void> {
  if (!logger?.followers.has(name) || !running) return;
  const { growths } = running.fleet.journal;
  world.trace?.(`${name} reads the log of ${logger.lines} lines`);
  await world.timeline.until(readLog(logger, growths, world.pc));
  if (world.random.chance(0.2)) await world.timeline.until(reportLog(logger, growths));
  running.fleet.part.delivery.wake();
}

/** The member whose copy is that of the leader, or else the newest. */
function leaderOf(members: readonly Member[]): Member {
  const seqOf = ({ slot }: Member): number =>
    slot.copy.connection.value<number>`SELECT leads * 1000000 + epoch * 1000 + seq FROM working_copy` ?? -1;
  return members.filter(({ isDeliverer }) => isDeliverer).reduce((a, b) => (seqOf(b) > seqOf(a) ? b : a));
}

/** The notebook over the network of one member. `key`: checked when a request arrives. */
function connectNotebook(site: Site, member: Member, process: SimulatedProcess, key: () => string, schedule: Schedule) {
  const { world, keys, givesKeys } = site;
  const { random, timeline, trace } = world;
  const refuse = (status: number): NotebookError => new NotebookError('auth', `refused: ${status}`, { status });
  const keyApi = {
    async listKeys() {
      const [configured = {}] = await world.notebook.listKeys();
      return [configured, ...[...keys].map(([id, { name }]) => ({ ...configured, id, name }))];
    },
    async createKey({ name }: { name?: string } = {}) {
      if (!givesKeys) throw refuse(403);
      const id = 2 + keys.size + random.below(1_000_000);
      keys.set(id, { name, text: `session ${id}` });
      return `session ${id}`;
    },
    async deleteKey(id: number) {
      if (!keys.delete(id)) throw new NotebookError('conflict', 'not found', { status: 404 });
    },
  };
  const isValid = (text: string): boolean => text === CONFIGURED || [...keys.values()].some((one) => one.text === text);
  const api = intercept<Notebook & typeof keyApi>({ ...world.notebook, ...keyApi }, (request) => {
    const check = request.args.find((arg): arg is () => void => typeof arg === 'function');
    const pauses = choosePauses(site, request);
    const pause = (ms: number, resume: (done: () => void) => void) => {
      trace?.(`${member.name} is paused for ${ms} ms before ${request.operation}`);
      process.pause(ms);
      return new Promise<void>((resolve) => resume(resolve));
    };
    const schedulePaused: Schedule = async (act, isWrite) => {
      if (pauses) await pause(pauses.beforeLookMs, (done) => process.at(pauses.beforeLookMs, done));
      return schedule(act, isWrite);
    };
    return schedulePaused(async () => {
      check?.();
      const used = key();
      if (pauses) {
        // Only a session key stops a request after any time.
        const ms = used === CONFIGURED ? Math.min(pauses.afterLookMs, MAX_STUCK_MS) : pauses.afterLookMs;
        site.pauses.overAt = Math.max(site.pauses.overAt, timeline.elapsedMs() + ms + 2 * TIMEOUT_MS);
        await pause(ms, (done) => timeline.at(ms, done));
      }
      if (!process.alive()) return new Promise<never>(() => undefined);
      const uploaded = request.operation === 'uploadFile' ? await readFirst(world, request) : request.carryOut;
      const carryOut = async () => {
        if (!isValid(used)) throw refuse(401);
        return uploaded();
      };
      trace?.(`${member.name}, ${used}:`);
      return send({ ...request, carryOut }, world, process, member.notebook.isCut);
    }, request.isWrite);
  });
  return { ...api, close: async () => undefined };
}

/**
 * The leader is paused between its record of a request and its look at the lease, often until that is about to end, and
 * again between that look and the request: when it continues, a successor may have decided about the same run.
 */
function choosePauses({ world, database, pauses }: Site, { operation, isWrite }: FakeRequest) {
  const { random, faults } = world;
  if (!isWrite || faults.ofRequests === 0 || pauses.left === 0) return undefined;
  // A file or a comment that is sent twice is seen at once; an experiment may be used by another run.
  const telling = world.withFiles ? ['uploadFile'] : ['postComment', 'createExperiment', 'createFilledExperiment'];
  const isTelling = telling.includes(operation);
  if (!random.chance(isTelling ? 0.7 : 0.05)) return undefined;
  pauses.left -= 1;
  const untilLast = Math.max(0, database.leaseLeftMs() - MARGIN_MS - 100 - random.below(2000));
  return {
    beforeLookMs: random.chance(0.7) ? untilLast : random.below(45_000),
    afterLookMs: random.below(60_000),
  };
}

/** Without keys, a pause is survived for the time that the successor waits, less that of a late request. */
const MAX_STUCK_MS = LEASE_MS - 2 * TIMEOUT_MS;

function outsideOf(site: Site, member: Member, process: SimulatedProcess): Outside {
  const { world, database } = site;
  const open = (key: Key, schedule: Schedule) =>
    connectNotebook(site, member, process, () => key.current(), schedule) as never;
  return {
    openDatabase: () => database.open(process, member.database),
    openCopy: () => reopen(member.slot.copy, site.tables),
    openNotebook: (_, { key } = {}) => open(key as Key, (request) => request()),
    connect: (_, key, schedule) => open(key, schedule),
    schedule: (act, delayMs) => void process.at(delayMs, act),
    random: world.random.next,
  };
}

/** As `openWorkingCopy` does with the file that is there. */
function reopen(database: CopyDatabase, tables: Tables): WorkingCopy {
  database.close();
  const db = database.connection;
  db.run`DELETE FROM working_copy WHERE leads = 1`;
  const position = () => db.value<number>`SELECT seq FROM working_copy`;
  return { db, tables, position, addTriggers: () => database.lead() };
}

async function start(site: Site, member: Member): Promise<void> {
  const { world } = site;
  const { timeline, trace, random, kind } = world;
  const process = timeline.process(member.aheadMs, (ms) => (isIdle(site, member, ms) ? IDLE_PACE : 1));
  const log = logTo(trace && ((line) => trace(`${member.name} ${line}`)), process);
  const journal = createJournal({
    ...{ database: member.slot.journal, clock: process.clock, release: () => undefined, makeId: () => member.name },
    schedule: (flush, delayMs) => void process.at(delayMs, flush),
    sync: async () => member.slot.journal.synced(member.slot.journal.written()),
  });
  const dialect = random.chance(0.5) ? ('auto' as const) : kind.dialect;
  const config = {
    notebook: { ...SETTINGS, concurrency: 1 + random.below(4), dialect },
    settings: { journal: '' },
    invalidSettings: new Set(['keep']),
    placeOf: () => undefined,
  } as unknown as UsableConfig;
  trace?.(`${member.name} starts`);
  const joining = joinFleet({
    ...{ config, journal, clock: process.clock, log, stopping: new AbortController().signal },
    fleet: { url: '', name: member.name, role: member.isDeliverer ? 'deliver' : 'watch' } as never,
    spool: createSpool(member.copies) as never,
    observer: { filed: () => undefined, failed: () => undefined } as never,
    ...{ onResponse: () => undefined, live: () => ({}) as never, conceal: () => undefined, isSecretIn: () => false },
    outside: outsideOf(site, member, process),
  });
  const needed = await journal.outbox.uploads.needed();
  for (const copy of member.copies) if (!needed.has(copy)) member.copies.delete(copy);
  const fleet = await timeline.until(joining);
  member.running = { process, fleet, journal };
  await scan(site, member);
  if (world.remaps) decide({ fleet, process, db: member.slot.db }, world);
}

/** Hands over the files in the folder that the journal does not have yet. */
async function scan({ files, world: { timeline, withFiles, pc } }: Site, member: Member): Promise<void> {
  const { running } = member;
  if (!running) return;
  const { outbox } = running.fleet.journal;
  for (const [n, seenBy] of files.entries()) {
    if (!seenBy.includes(member)) continue;
    const { run, draft } = runOf(n);
    if ((await outbox.match(run)).kind !== 'new') continue;
    const attachments = withFiles ? [COMMON_FILE, rawFileOf(n, pc)] : [];
    for (const { sha256 } of attachments) member.copies.add(sha256);
    await timeline.until(outbox.add(withFiles ? { ...run, attachments } : run, { draft }));
  }
  running.fleet.part.delivery.wake();
}

async function addFile(site: Site): Promise<void> {
  const { random, trace } = site.world;
  const watchers = site.members.filter(({ isDeliverer }) => !isDeliverer);
  const seenBy = [watchers[random.below(watchers.length)], ...(random.chance(0.3) ? watchers : [])];
  const members = [...new Set(seenBy.flatMap((member) => member ?? []))];
  site.files.push(members);
  trace?.(`run ${site.files.length - 1} is seen by ${members.map(({ name }) => name).join(', ')}`);
  for (const member of members) {
    await scan(site, member);
    // While it hands over contents, others may remove them.
    if (site.world.withFiles && random.chance(0.7)) pauseSoon(site, member);
  }
}

function pauseSoon({ world: { random, timeline } }: Site, { running }: Member): void {
  const ms = random.below(random.chance(0.5) ? 1000 : 20_000);
  timeline.at(random.below(40), () => running?.process.pause(ms));
}

function kill(member: Member): void {
  member.running?.process.kill();
  member.running = undefined;
  member.slot.copy.close();
}

/** What can happen to a fleet. */
const EVENTS: readonly ((site: Site) => void)[] = [
  function killMember(site) {
    const member = site.world.random.chance(0.6) ? leaderOf(site.members) : anyMember(site);
    site.world.trace?.(`${member.name} is killed`);
    kill(member);
  },
  function pauseMember(site) {
    const member = site.world.random.chance(0.7) ? leaderOf(site.members) : anyMember(site);
    const ms = site.world.random.below(45_000);
    site.world.trace?.(`${member.name} is paused for ${ms} ms`);
    member.running?.process.pause(ms);
  },
  (site) => cut(site, 'database'),
  (site) => cut(site, 'notebook'),
  function restartDatabase({ world: { random }, database }) {
    database.restart(100 + random.below(20_000), random.chance(0.3) ? random.below(30_000) - 15_000 : 0);
  },
];

const anyMember = ({ members, world: { random } }: Site): Member => members[random.below(members.length)] as Member;

function cut(site: Site, what: 'database' | 'notebook'): void {
  const { random, trace, timeline } = site.world;
  const member = random.chance(0.7) ? leaderOf(site.members) : anyMember(site);
  trace?.(`${member.name} is cut off from the ${what}`);
  member[what].isCut = true;
  timeline.at(random.below(40_000), () => {
    member[what].isCut = false;
  });
}

async function runHistory(site: Site): Promise<void> {
  const { world, members, database } = site;
  const { random, timeline, faults, network } = world;
  const users = createUsers(world);
  scheduleConditions(world);
  for (const member of members) await start(site, member);
  Object.assign(faults, { ofRequests: random.next() * 0.3 });
  const wanted = 2 + random.below(5);
  for (let events = 1 + random.below(4); events > 0 || site.files.length < wanted; events--) {
    if (site.files.length < wanted) await addFile(site);
    await growLog(site);
    await passTime(site, random.below(random.chance(0.5) ? 400 : 20_000), random.chance(0.5));
    if (random.chance(0.3)) users.createExperiment();
    if (random.chance(0.7)) askForRemap(site);
    if (events > 0) EVENTS[random.below(EVENTS.length)]?.(site);
    for (const member of members) if (!member.running && random.chance(0.5)) await start(site, member);
  }
  network.writes = 0;
  // Much of what was handed over is only sent now.
  timeline.at(random.below(MAX_FAULTY_MS), () => Object.assign(faults, { ofRequests: 0 }));
  database.calm();
  for (let more = 3; world.remaps && more > 0; more--)
    timeline.at(random.below(MAX_FAULTY_MS), () => askForRemap(site));
  timeline.at(60_000, () => {
    for (const member of members) for (const link of [member.database, member.notebook]) link.isCut = false;
  });
  await settle(site);
  if (world.remaps) await remapAll(site);
  await useSpares(site.seen(), async () => {
    await addFile(site);
    await settle(site);
  });
  await parkPoisoned(site.seen(), async () => {
    await addFile(site);
    await settle(site);
  });
  verify([site.seen()], users, site.files.length, site.logger ? 1 : 0);
  if (site.logger) verifyLog(site.logger, world.notebook.experiments.values(), leaderOf(members).slot.copy.connection);
  verifyContents(leaderOf(members).slot.copy.connection);
  for (const member of members) kill(member);
}

function askForRemap(site: Site): void {
  if (site.mayRemap) requestRemap(site.world, leaderOf(site.members).slot.copy.connection, anyMember(site).slot.db);
}

/** All runs whose mapping has changed, while requests fail, and the leader may change. */
async function remapAll(site: Site): Promise<void> {
  const { world, members } = site;
  const { random, timeline, faults } = world;
  site.mayRemap = false;
  const watcher = members.at(-1)?.slot.db;
  if (watcher) requestAll(world, leaderOf(members).slot.copy.connection, watcher);
  Object.assign(faults, { ofRequests: random.next() * 0.3 });
  timeline.at(random.below(MAX_FAULTY_MS), () => Object.assign(faults, { ofRequests: 0 }));
  if (random.chance(0.5)) timeline.at(random.below(10_000), () => kill(leaderOf(members)));
  await settle(site);
}

/** Until a write is in flight, where a fault does most harm, or for the whole time. */
async function passTime({ world: { timeline, network } }: Site, ms: number, untilWrite: boolean): Promise<void> {
  const end = timeline.elapsedMs() + ms;
  await timeline.pass(() => timeline.elapsedMs() >= end || (untilWrite && network.writes > 0));
}

const MAX_SETTLE_MS = 1_200_000;
const MAX_FAULTY_MS = 60_000;
const CHECK_MS = 1000;
/** Polls that find nothing would be most of a history. */
const IDLE_PACE = 8;
/** How often a leader asks for operations and decisions. */
const LEADER_POLLS: readonly number[] = [500, 1000];

/** Whether a member waits in vain, once nothing more goes wrong. */
function isIdle({ phase, database, world }: Site, { slot }: Member, waitMs: number): boolean {
  if (phase === 'eventful') return false;
  if (slot.copy.leads()) return LEADER_POLLS.includes(waitMs) && database.waiting() === 0;
  return waitMs >= MIN_STANDBY_POLL_MS && (phase === 'delivering' || areDone(slot.db, world));
}

const MIN_STANDBY_POLL_MS = 1000;

/** All members run, until all runs are done and known to be. */
async function settle(site: Site): Promise<void> {
  const { members, world, database } = site;
  const { timeline } = world;
  for (const member of members) if (!member.running) await start(site, member);
  for (const member of members) await takeLog(site, member);
  const end = timeline.elapsedMs() + MAX_SETTLE_MS;
  while (timeline.elapsedMs() < site.pauses.overAt || !isSettled(site)) {
    site.phase = isDelivered(site) ? 'reporting' : 'delivering';
    if (timeline.elapsedMs() > end) throw new EndlessError(`some runs do not end: ${describeOpen(site)}`);
    const until = timeline.elapsedMs() + CHECK_MS;
    timeline.at(CHECK_MS, () => undefined);
    await timeline.pass(() => timeline.elapsedMs() >= until);
    const unknown = database.unknown();
    if (unknown !== undefined) throw new Error(`the simulated database does not know this statement: ${unknown}`);
    if (isHalted(site.seen())) throw new Error('the fleet is halted');
  }
}

function describeOpen({ members, database }: Site): string {
  const own = members.map(({ name, slot }) => {
    const { db } = slot;
    const kept = db.value<number>`SELECT count(*) FROM forwards`;
    return `${name} keeps ${kept} operations and has ${db.value<number>`SELECT count(*) FROM runs WHERE step <> 'done'`} open runs`;
  });
  return [`${database.waiting()} operations wait`, ...own].join(', ');
}

/** Whether the leader has nothing left to do. */
function isDelivered({ members, files, database, world, logger }: Site): boolean {
  if (database.waiting() > 0) return false;
  const db = leaderOf(members).slot.copy.connection;
  if (db.value<number>`SELECT leads FROM working_copy` !== 1) return false;
  if ((db.value<number>`SELECT count(*) FROM runs` ?? 0) < files.length) return false;
  return areDone(db, world) && areAttached(db) && isDecided(db) && (!logger || isLogTaken(logger, db));
}

const areDone = (db: Connection, world: World): boolean =>
  !db.exists`SELECT 1 FROM runs WHERE step <> 'done' AND parked IS NULL AND sha256 <> ${poisonedFile(world)}`;

const isSettled = (site: Site): boolean =>
  isDelivered(site) && site.members.every(({ slot }) => areDone(slot.db, site.world) && isDecided(slot.db));
