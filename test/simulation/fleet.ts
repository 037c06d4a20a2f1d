import type { UsableConfig } from '../../src/config/load.js';
import type { Key } from '../../src/config/secrets.js';
import { joinFleet, type Outside } from '../../src/fleet/fleet.js';
import { readTables, type Tables } from '../../src/fleet/tables.js';
import type { WorkingCopy } from '../../src/fleet/working-copy.js';
import { Connection } from '../../src/journal/database.js';
import { createJournal } from '../../src/journal/journal.js';
import type { Live } from '../../src/live.js';
import { ReusableDatabase } from '../support/reusable-database.js';
import { scheduleConditions } from './conditions.js';
import { CopyDatabase } from './copy-database.js';
import { logTo, SETTINGS } from './daemon.js';
import { areAttached, createSpool, verifyContents } from './fleet-contents.js';
import { isLogTaken, readLog, reportLog, verifyLog } from './fleet-logger.js';
import { verifyReports } from './fleet-members.js';
import { CONFIGURED, connectNotebook } from './fleet-notebook.js';
import { decide, isDecided, requestAll, requestRemap } from './fleet-people.js';
import {
  areDone,
  createSite,
  leaderOf,
  MAX_MEMBERS,
  type Member,
  paceOf,
  type Site,
  type Slot,
  sizeOf,
  within,
} from './fleet-site.js';
import type { Schedule } from './network.js';
import { isHalted, listOpen, parkPoisoned, useSpares } from './settle.js';
import { EndlessError, type SimulatedProcess } from './timeline.js';
import { createUsers } from './users.js';
import { verify } from './verify.js';
import { COMMON_FILE, createWorld, rawFileOf, runOf, type Trace } from './world.js';

/**
 * Histories of a fleet: the real code of src/fleet, delivery and journals, against a simulated database and the fake
 * notebook. Members are killed, paused, cut off and restarted, and so is the database.
 */
export function createFleetSimulation() {
  const slots = Array.from({ length: MAX_MEMBERS }, (): Slot => {
    const journal = new ReusableDatabase();
    return { journal, db: new Connection(journal), copy: new CopyDatabase() };
  });
  for (const { journal } of slots) journal.simplify(true);
  const unused = new ReusableDatabase();
  const tables = readTables(slots[0]?.copy ?? unused);
  const statements = new Map<string, number>();
  /** By the history before. */
  let used: readonly Slot[] = [];
  process.env['KEY'] ??= CONFIGURED;
  if (!process.env['LABFEED_TRACE']) Error.stackTraceLimit = 0;
  return {
    async simulate(seed: number, trace?: Trace): Promise<void> {
      for (const { journal, copy } of used) {
        journal.empty();
        copy.empty();
      }
      const size = sizeOf(seed);
      const content = { events: size.conditions, withFiles: seed % 4 === 0, withRemaps: seed % 4 === 2 };
      const world = createWorld(seed, unused, trace, content);
      const site = createSite(world, { size, slots, tables, statements, withLogger: seed % 4 === 1 });
      used = site.members.map(({ slot }) => slot);
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

/** The file grows, and some of the members that follow it read it. */
async function growLog(site: Site): Promise<void> {
  const { logger, members, world } = site;
  if (!logger) return;
  logger.lines += world.random.below(3);
  for (const member of members) if (world.random.chance(0.5)) await takeLog(site, member);
}

/**
 * All followers read the log, and then only one of them does. What the others have read may be late, so that the lines of
 * that one wait, and nobody else hands over what follows them.
 */
async function leaveLog(site: Site): Promise<void> {
  const { logger, members, world } = site;
  const followers = members.filter(({ name, running }) => running && logger?.followers.has(name));
  if (!logger || followers.length < 2 || followers.length < logger.followers.size) return;
  const last = followers[world.random.below(followers.length)];
  for (const member of followers) {
    // Whatever it has read, it hands over later.
    if (member !== last) member.running?.process.pause(world.random.below(20_000));
    await takeLog(site, member);
  }
  logger.followers = new Set(last && [last.name]);
  logger.lines += 1 + world.random.below(2);
}

async function takeLog({ logger, world }: Site, { name, running }: Member): Promise<void> {
  if (!logger?.followers.has(name) || !running) return;
  const { growths } = running.fleet.journal;
  world.trace?.(`${name} reads the log of ${logger.lines} lines`);
  await world.timeline.until(readLog(logger, growths, world.pc));
  if (world.random.chance(0.2)) await world.timeline.until(reportLog(logger, growths));
  running.fleet.part.delivery.wake();
}

function outsideOf(site: Site, member: Member, process: SimulatedProcess): Outside {
  const { world, database } = site;
  const open = (key: Key, schedule: Schedule) => connectNotebook(site, member, process, key, schedule) as never;
  return {
    openDatabase: () => database.open(process, member.database),
    openCopy: () => {
      // It would follow as a standby does, and nobody looks at what it has.
      if (!member.isDeliverer) throw new Error('a watcher has no copy');
      return reopen(member.slot.copy, site.tables);
    },
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
  const process = timeline.process(member.aheadMs, (ms) => paceOf(site, member, ms));
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
    ...{ placeOf: () => undefined, listed: [] },
  } as unknown as UsableConfig;
  trace?.(`${member.name} starts`);
  const joining = joinFleet({
    ...{ config, journal, clock: process.clock, log, stopping: new AbortController().signal },
    fleet: { url: '', name: member.name, role: member.isDeliverer ? 'deliver' : 'watch' } as never,
    spool: createSpool(member.copies) as never,
    observer: { filed: () => undefined, failed: () => undefined } as never,
    ...{ onResponse: () => undefined, live: () => LIVE, conceal: () => undefined, isSecretIn: () => false },
    outside: outsideOf(site, member, process),
  });
  const needed = await journal.outbox.uploads.needed();
  for (const copy of member.copies) if (!needed.has(copy)) member.copies.delete(copy);
  const fleet = await timeline.until(joining);
  member.running = { process, fleet, journal };
  await scan(site, member);
  if (world.remaps) decide({ fleet, process, db: member.slot.db }, world);
}

/** What its watcher says. Where the folder is does not matter here. */
const LIVE = {
  version: '1',
  instruments: [
    {
      ...{ name: 'balance', watch: '/data', line: 'watching', folder: { state: 'unknown' } },
      ...{ waiting: { files: 0 }, unreadable: { files: 0 }, stuck: { files: 0 } },
    },
  ],
  alarms: [],
} as unknown as Live;

/** Hands over the files in the folder that the journal does not have yet. */
async function scan({ files, firstRun, world: { timeline, withFiles, pc } }: Site, member: Member): Promise<void> {
  const { running } = member;
  if (!running) return;
  const { outbox } = running.fleet.journal;
  for (const [n, seenBy] of files.entries()) {
    if (!seenBy.includes(member)) continue;
    const { run, draft } = runOf(firstRun + n);
    if ((await outbox.match(run)).kind !== 'new') continue;
    const attachments = withFiles ? [COMMON_FILE, rawFileOf(firstRun + n, pc)] : [];
    for (const { sha256 } of attachments) member.copies.add(sha256);
    await timeline.until(outbox.add(withFiles ? { ...run, attachments } : run, { draft }));
  }
  running.fleet.part.delivery.wake();
}

async function addFile(site: Site): Promise<void> {
  const { random, trace } = site.world;
  const { readers } = site;
  const seenBy = [readers[random.below(readers.length)], ...(random.chance(0.3) ? readers : [])];
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
  const { world, members, database, size } = site;
  const { random, timeline, faults, network } = world;
  const users = createUsers(world);
  scheduleConditions(world);
  // Somebody has to be there while a leader is paused.
  const atFirst = size.isWhole || site.pauses.left > 0 ? members.length : 1;
  for (const member of members.slice(0, atFirst)) await start(site, member);
  Object.assign(faults, { ofRequests: random.next() * 0.3 });
  const wanted = within(site.size.runs, random);
  for (let events = within(site.size.events, random); events > 0 || site.files.length < wanted; events--) {
    if (site.files.length < wanted) await addFile(site);
    await growLog(site);
    await passTime(site, random.below(random.chance(0.5) ? 400 : 20_000), random.chance(0.5));
    if (random.chance(0.3)) users.createExperiment();
    if (random.chance(0.7)) askForRemap(site);
    if (events > 0) EVENTS[random.below(EVENTS.length)]?.(site);
    for (const member of members) if (!member.running && random.chance(0.5)) await start(site, member);
  }
  if (random.chance(0.4)) await leaveLog(site);
  network.writes = 0;
  // Much of what was handed over is only sent now.
  timeline.at(random.below(site.size.faultyMs), () => Object.assign(faults, { ofRequests: 0 }));
  database.calm();
  for (let more = 3; world.remaps && more > 0; more--)
    timeline.at(random.below(site.size.faultyMs), () => askForRemap(site));
  timeline.at(size.faultyMs, () => {
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
  if (size.isWhole) await checkReports(site);
  for (const member of members) kill(member);
}

/**
 * Until each member has reported, and those that deliver have read it, with no member cut off from the database. Several
 * answers in a row can be lost: a machine is away for so long, and is listed as such.
 */
async function checkReports(site: Site, attempts = 3): Promise<void> {
  site.phase = 'eventful';
  for (let before = -1; before !== site.database.epoch(); ) {
    before = site.members.some(({ database }) => database.isCut) ? -1 : site.database.epoch();
    // A call whose answer is lost takes 20 s, and reports are sent and read every ten seconds.
    await passTime(site, 50_000, false);
  }
  try {
    verifyReports(site.members, site.database.aheadMs(), leaderOf(site.members));
  } catch (error) {
    if (attempts === 1) throw error;
    await checkReports(site, attempts - 1);
  }
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
  timeline.at(random.below(site.size.faultyMs), () => Object.assign(faults, { ofRequests: 0 }));
  // In a small history, it would be missed.
  if (site.size.isWhole && random.chance(0.5)) timeline.at(random.below(10_000), () => kill(leaderOf(members)));
  await settle(site);
}

/** Until a write is in flight, where a fault does most harm, or for the whole time. */
async function passTime({ world: { timeline, network } }: Site, ms: number, untilWrite: boolean): Promise<void> {
  const end = timeline.elapsedMs() + ms;
  // All members may be dead.
  timeline.at(ms, () => undefined);
  await timeline.pass(() => timeline.elapsedMs() >= end || (untilWrite && network.writes > 0));
}

const MAX_SETTLE_MS = 1_200_000;
const CHECK_MS = 1000;
/** All members run, until all runs are done and known to be. */
async function settle(site: Site): Promise<void> {
  const { members, world, database } = site;
  const { timeline } = world;
  for (const member of members) if (!member.running && isNeeded(site, member)) await start(site, member);
  for (const member of members) await takeLog(site, member);
  const end = timeline.elapsedMs() + MAX_SETTLE_MS;
  for (;;) {
    const isAllDelivered = isDelivered(site);
    if (isAllDelivered && timeline.elapsedMs() >= site.pauses.overAt && isReported(site)) return;
    site.phase = isAllDelivered ? 'reporting' : 'delivering';
    if (timeline.elapsedMs() > end) throw new EndlessError(`some runs do not end: ${describeOpen(site)}`);
    const until = timeline.elapsedMs() + CHECK_MS;
    timeline.at(CHECK_MS, () => undefined);
    await timeline.pass(() => timeline.elapsedMs() >= until);
    const unknown = database.unknown();
    if (unknown !== undefined) throw new Error(`the simulated database does not know this statement: ${unknown}`);
    if (isHalted(site.seen())) throw new Error('the fleet is halted');
  }
}

/** Whether a member has to be started at the end. In a small history, some stay away for good. */
function isNeeded({ size, members, files, world, logger }: Site, member: Member): boolean {
  if (size.isWhole || world.remaps || logger?.followers.has(member.name) || world.random.chance(0.2)) return true;
  if (member.isDeliverer && !members.some(({ isDeliverer, running }) => isDeliverer && running)) return true;
  const { db } = member.slot;
  const seen = files.filter((seenBy) => seenBy.includes(member)).length;
  return db.exists`SELECT 1 FROM forwards` || (db.value<number>`SELECT count(*) FROM runs` ?? 0) < seen;
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

/** Whether all members that run know it. */
const isReported = ({ members, world }: Site): boolean =>
  members.every(({ running, slot }) => !running || (areDone(slot.db, world) && isDecided(slot.db)));
