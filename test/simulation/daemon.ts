import { retry } from '../../src/clock.js';
import { notebookSchema } from '../../src/config/settings.js';
import { haltBehind, openDelivery } from '../../src/daemon/runtime.js';
import { trackUnknownOutcomes } from '../../src/deliver/context.js';
import type { AttachOptions } from '../../src/deliver/uploads.js';
import { createJournal, type Journal, type Note } from '../../src/journal/journal.js';
import { createLog, type Log } from '../../src/log.js';
import type { Random } from '../support/random.js';
import { overNetwork, TIMEOUT_MS } from './network.js';
import type { SimulatedProcess } from './timeline.js';
import { contentOf, poisonedFile, rawFileOf, runOf, type Trace, type World } from './world.js';

/** One process: the real delivery and journal. */
export interface SimulatedDaemon {
  /** Records the n-th run of the history, if the journal does not have it. */
  add(n: number): Promise<void>;
  /** Records another draft of the n-th run, after a remap was requested. */
  remap(n: number, version: number): Promise<void>;
  wake(): void;
  /** Whether the journal could not be synced: nothing is sent until a restart. */
  hasFailed(): boolean;
  /** Whether every run in the journal that the server accepts is done or parked. */
  isIdle(): boolean;
  /** As with SIGHUP: another delivery continues while requests of the first may be in flight. */
  reload(): Promise<void>;
  /** As with SIGTERM. */
  stop(): Promise<void>;
  /** As with SIGKILL: what was written stays. */
  kill(): void;
  /** What was not synced may be lost. */
  failPower(): void;
}

export const SETTINGS = notebookSchema.parse({
  url: 'https://eln.example.org',
  key: { env: 'KEY' },
  rate: '100/s',
  timeout: `${TIMEOUT_MS}ms`,
});

export async function startDaemon(world: World): Promise<SimulatedDaemon> {
  const { timeline, random, database, kind, pc, trace } = world;
  const process = timeline.process();
  const isNew = database.written() === 0;
  const journal = createJournal({
    database,
    isNew,
    before: world.note,
    clock: process.clock,
    release: () => undefined,
    schedule: (flush) => process.at(0, () => write(flush, world)),
    sync: createSync(process, world),
    makeId: () => pc.journal,
  });
  // Opening a journal makes everything durable that is in it.
  database.synced(database.written());
  const failure = journal.trouble;
  const hasFailed = (): boolean => failure()?.includes(SYNC_FAILED) === true;
  let isChanged = true;
  let isIdle = false;
  const changed = (): void => {
    isChanged = true;
  };
  const unknown = trackUnknownOutcomes(process.clock, TIMEOUT_MS);
  const open = () =>
    openDelivery({
      notebook: {
        ...SETTINGS,
        concurrency: 1 + random.below(4),
        dialect: random.chance(0.5) ? 'auto' : kind.dialect,
      },
      instruments: ['balance'],
      outbox: journal.outbox,
      unknown,
      connect: (schedule) => overNetwork(world, schedule, process),
      clock: process.clock,
      log: logTo(trace, process),
      ...(world.withFiles && { attach: attachFiles(changed) }),
      observer: { filed: changed, failed: (_, { kind }) => kind === 'parked' && changed() },
      random: random.next,
    });
  let delivery = open();
  trace?.(`${pc.runs}: process starts`);
  if (world.isShared) await timeline.until(learnShared(journal, hasFailed));
  if (journal.notes.isBehind) await timeline.until(haltUntilRecovered(journal, process, random, hasFailed));
  delivery.start();
  if (world.events.has('lost')) takeNotes(journal.notes, process, world);
  const isFile = world.changedFiles !== undefined;
  async function take(n: number, version: number): Promise<void> {
    const { run, draft } = runOf(n, version, pc, isFile);
    const found = world.withFiles ? { ...run, attachments: [rawFileOf(n, pc, version, isFile)] } : run;
    // A run that could not be recorded is found again by the next scan.
    const add = () => journal.outbox.add(found, { draft }).catch(() => undefined);
    let added: Awaited<ReturnType<typeof add>>;
    do added = await timeline.until(add());
    while (!hasFailed() && !added);
    // While the version before is being sent, the next one waits.
    if (added && added.outcome !== 'busy') world.changedFiles?.delete(n);
    changed();
    delivery.wake();
  }
  return {
    async add(n) {
      const version = isFile ? (world.remaps?.get(n) ?? 0) : 0;
      const { kind } = await journal.outbox.match(runOf(n, version, pc, isFile).run);
      if (kind === 'new' || kind === 'version') await take(n, version);
    },
    remap: take,
    wake: () => delivery.wake(),
    hasFailed,
    isIdle() {
      if (isChanged) isIdle = countOpen(world) === 0;
      isChanged = false;
      return isIdle;
    },
    async reload() {
      trace?.(`${pc.runs}: reload`);
      await timeline.until(delivery.stop(random.below(TIMEOUT_MS), () => delivery.wake()));
      delivery = open();
      delivery.start();
    },
    async stop() {
      await timeline.until(delivery.stop(2 * TIMEOUT_MS));
      process.kill();
    },
    kill: process.kill,
    failPower() {
      trace?.(`${pc.runs}: power failure`);
      process.kill();
      database.lose((unsynced) => (random.chance(0.5) ? 0 : random.below(unsynced + 1)));
    },
  };
}

/** The runs that are neither done nor parked, apart from the one that the server never accepts, and files to attach. */
const countOpen = (world: World): number =>
  (
    world.database
      .prepare(
        `SELECT (SELECT count(*) FROM runs WHERE step <> 'done' AND parked IS NULL AND sha256 <> ?) +
           (SELECT count(*) FROM attachments JOIN runs ON id = run WHERE attachments.due_at IS NOT NULL
           AND step = 'done' AND parked IS NULL) AS open`,
      )
      .get(poisonedFile(world)) as { open: number }
  ).open;

/** The source of a file is always there. Its name tells its content. */
const attachFiles = (changed: () => void): AttachOptions => ({
  instruments: { attached: ['balance'], dropped: [] },
  isPlotted: () => false,
  isSecretIn: () => false,
  openSource: async ({ sha256 }) => ({
    async *read() {
      yield Buffer.from(contentOf(sha256));
    },
    close: async () => undefined,
  }),
  uploaded: async () => changed(),
});

const MAX_SYNC_MS = 20;
const SYNC_FAILED = 'input/output error';

/**
 * Makes everything durable that was written before it began, once it has completed. After one has failed, others seem to
 * succeed, but what could not be written stays lost.
 */
function createSync(process: SimulatedProcess, world: World): () => Promise<void> {
  const { database, random, events, trace } = world;
  let hasFailed = false;
  return () => {
    const written = database.written();
    return new Promise((resolve, reject) => {
      process.at(random.below(MAX_SYNC_MS), () => {
        if (hasFailed) return resolve();
        hasFailed = world.canFailSync && events.get('sync')?.chance(0.1) === true;
        if (!hasFailed) {
          database.synced(written);
          return resolve();
        }
        trace?.('the journal cannot be synced');
        return reject(new Error(SYNC_FAILED));
      });
    });
  };
}

const NOTE_MS = 1000;
const MAX_NOTE_MS = 16_000;

/** As the daemon does once a second; less often while nothing is written. */
function takeNotes(
  notes: Journal['notes'],
  process: SimulatedProcess,
  world: World,
  before = -1,
  waitMs = NOTE_MS,
): void {
  process.at(waitMs, () => {
    const written = world.database.written();
    const keep = (note: Note | undefined): void => {
      if (note) Object.assign(world, { note, writtenBeforeNote: written });
    };
    notes.take().then(keep, () => undefined);
    takeNotes(notes, process, world, written, written === before ? Math.min(2 * waitMs, MAX_NOTE_MS) : NOTE_MS);
  });
}

/** As after the first experiment of somebody else that was seen. */
async function learnShared({ outbox }: Journal, hasFailed: () => boolean): Promise<void> {
  const server = outbox.server(SETTINGS.url);
  while (!hasFailed() && !(await server.facts()).shared) await server.learn({ shared: true }).catch(() => undefined);
}

/** The daemon does not start until the halt is recorded. After a failed sync, that takes a restart. */
function haltUntilRecovered(journal: Journal, { clock }: SimulatedProcess, { next }: Random, hasFailed: () => boolean) {
  const given = new AbortController();
  return retry(() => haltBehind(journal, SETTINGS.url, 'journal.db'), {
    clock,
    random: next,
    signal: given.signal,
    failed: () => hasFailed() && given.abort(),
  });
}

function write(flush: () => void, { random, faults, database, trace }: World): void {
  database.isWritable = !random.chance(faults.ofWrites);
  if (!database.isWritable) trace?.('journal not writable');
  flush();
  database.isWritable = true;
}

export function logTo(trace: Trace, process: SimulatedProcess): Log {
  if (!trace) return SILENT;
  const write = (line: string): void => {
    // A dead process logs nothing, and the time of day is not the history's.
    if (process.alive()) trace(line.replace(/"time":"[^"]*",/, '').trimEnd());
  };
  return createLog({ level: 'debug', destination: { write } }).log;
}

const SILENT = createLog({ level: 'silent' }).log;
