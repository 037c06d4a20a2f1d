import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Alarms, createCommand, createWebhook, type Send } from '../alarms/alarms.js';
import type { Facts } from '../alarms/conditions.js';
import { type Clock, every, type Loop } from '../clock.js';
import type { UsableConfig } from '../config/load.js';
import { systemCode } from '../errors.js';
import { type Journal, type Note, writeNote } from '../journal/journal.js';
import { type Live, type RequestCount, removeLive, writeLive } from '../live.js';
import type { Log } from '../log.js';
import type { Channel, Notice } from '../model.js';
import type { Spool } from '../spool.js';
import type { Runtime } from './runtime.js';

interface ReportingDeps {
  readonly journal: Journal;
  readonly journalPath: string;
  readonly spool: Spool;
  /** The current runtime. */
  runtime(): Runtime | undefined;
  /** The current state, with these alarms. `halted`: why nothing is sent until `recover`. */
  live(alarms: Live['alarms'], halted: string | undefined): Live;
  /** Why the page is not available. */
  page(): string | undefined;
  /** Of a member of a fleet. */
  readonly fleet?: FleetAlarms | undefined;
  readonly clock: Clock;
  readonly log: Log;
  conceal(secret: string): void;
}

export interface FleetAlarms {
  /** The name of this machine. */
  readonly name: string;
  /** Why the database cannot be reached; undefined on a machine that only watches. */
  database(): string | undefined;
  /** The same. */
  setAside(): Facts['setAside'];
  /** Whether this machine sends the notice: another one may see the same. */
  isReporter(notice: Notice): Promise<boolean>;
}

const REPORT_MS = 1000;

/** The status file is written at least this often, so that readers can tell it is current. */
const MAX_AGE_MS = 10_000;

export type Reporting = ReturnType<typeof createReporting>;

/** Once a second: raises and clears alarms, and writes the status file next to the journal. */
export function createReporting(deps: ReportingDeps) {
  const { journal, journalPath, runtime, live, page, clock, log } = deps;
  const journalProblem = createJournalWatch(journalPath);
  let halted: string | undefined;
  const alarms = new Alarms({
    facts: async () => {
      const url = runtime()?.config.notebook.url;
      halted = url === undefined ? undefined : (await journal.outbox.server(url).facts()).halted;
      const facts = await factsOf(journal, journalProblem, live([], halted), runtime(), clock.now());
      const fleet = { database: deps.fleet?.database(), setAside: deps.fleet?.setAside() };
      return { ...facts, ...fleet, page: page(), spool: { ...facts.spool, shortage: await deps.spool.shortage() } };
    },
    ...journal.alarms,
    channels: createChannels(deps),
    clock,
    log,
  });
  const writeStatus = createStatusWriter(deps);
  const noteProgress = createNoteWriter(deps);
  let loop: Loop | undefined;
  return {
    alarms: () => alarms.raised(),
    /** Why nothing is sent until `recover`. */
    halted: () => halted,
    async start(): Promise<void> {
      await alarms.open();
      loop = every(REPORT_MS, clock, async () => {
        if (runtime()) await alarms.check();
        await writeStatus(live(alarms.raised(), halted));
        await noteProgress();
      });
    },
    /** Resolves when the journal is no longer used. */
    async stop(): Promise<void> {
      await Promise.all([loop?.stop(), alarms.stop()]);
      await noteProgress();
      await removeLive(journalPath).catch(() => undefined);
    },
  };
}

/** Returns a function that writes the status file if it has changed or is old. */
function createStatusWriter({ journalPath, clock, log }: ReportingDeps): (live: Live) => Promise<void> {
  let written = '';
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  let isWarned = false;
  return async (live) => {
    const text = JSON.stringify({ ...live, at: 0 });
    if (text === written && clock.monotonic() - writtenAtMs < MAX_AGE_MS) return;
    try {
      await writeLive(journalPath, live);
      written = text;
      writtenAtMs = clock.monotonic();
      isWarned = false;
    } catch (error) {
      // Only the commands need it, and an alarm reports a full disk.
      if (!isWarned) log.warn({ err: error }, 'cannot write the status file, retrying');
      isWarned = true;
    }
  };
}

/** Returns a function that notes beside the journal how far it has come, unless the journal is behind such a note. */
function createNoteWriter({ journal: { notes }, journalPath, log }: ReportingDeps): () => Promise<void> {
  let unwritten: Note | undefined;
  let isWarned = false;
  return async () => {
    if (notes.isBehind) return;
    try {
      unwritten = (await notes.take()) ?? unwritten;
      if (unwritten) await writeNote(journalPath, unwritten);
      unwritten = undefined;
      isWarned = false;
    } catch (error) {
      // Without it, a lost journal may not be noticed; an alarm reports a full disk.
      if (!isWarned) log.warn({ err: error }, 'cannot write the file that shows if the journal was lost, retrying');
      isWarned = true;
    }
  };
}

/** Where alarms are sent, according to the current configuration. */
function createChannels({ runtime, log, conceal, fleet }: ReportingDeps) {
  let madeFor: UsableConfig | undefined;
  let channels = new Map<Channel, Send>();

  return (): ReadonlyMap<Channel, Send> => {
    const config = runtime()?.config;
    if (config === undefined || config === madeFor) return channels;
    madeFor = config;
    const { webhook, command } = config.settings.alarms ?? {};
    channels = new Map();
    if (webhook !== undefined) {
      conceal(webhook);
      channels.set('webhook', ofReporter(createWebhook(webhook, undefined, fleet?.name), fleet));
    }
    if (command) {
      const send = createCommand({ command, log, env: withoutSecrets(config), host: fleet?.name });
      channels.set('command', ofReporter(send, fleet));
    }
    return channels;
  };
}

/** If the members cannot agree who reports, each of them does. */
const ofReporter =
  (send: Send, fleet: FleetAlarms | undefined): Send =>
  async (notice, signal) => {
    if ((await fleet?.isReporter(notice).catch(() => true)) === false) return;
    await send(notice, signal);
  };

/** The environment for the alarm command, without the keys, passwords and tokens of labfeed. */
export function withoutSecrets(
  { notebook, settings: { status, fleet } }: Pick<UsableConfig, 'notebook' | 'settings'>,
  env: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  const tokens = status === false ? [] : [status.token?.env, status.readToken?.env];
  const secrets = new Set([notebook.key.env, fleet?.passwordFrom?.env, ...tokens]);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secrets.has(name)));
}

/** A run that is neither filed nor parked for longer than this raises an alarm, whatever it waits for. */
const OVERDUE_MS = 3_600_000;

/** The facts that alarms depend on. */
async function factsOf(
  journal: Journal,
  journalProblem: () => Promise<string | undefined>,
  live: Live,
  runtime: Runtime | undefined,
  now: number,
): Promise<Omit<Facts, 'page'>> {
  const waiting = await journal.outbox.waitingForPeople();
  const backlogs = await journal.intake.backlogs();
  const instruments = runtime?.instruments ?? [];
  return {
    now,
    notebook: { ...live.notebook, answered: runtime?.hasAnswered() ?? false },
    overdue: await journal.outbox.overdue(now - OVERDUE_MS),
    uploads: { url: live.notebook.url, instruments: runtime?.config.instruments.map(({ name }) => name) ?? [] },
    spool: { shortage: undefined, bytes: 0, maxBytes: 0, ...live.spool },
    sources: await journal.outbox.sources.trouble(instruments.map(({ name }) => name)),
    strays: runtime?.strays() ?? [],
    problems: live.problems,
    refused: live.refused,
    journal: journal.trouble() ?? (await journalProblem()),
    instruments: await Promise.all(
      instruments.map(async ({ name, activity, usable }) => {
        const current = activity.live();
        return {
          live: current,
          silence: usable?.silence,
          quietSince: current.lastFileAt ?? (await journal.intake.firstScanAt(name)),
          unmatchedArrivals: activity.unmatchedArrivals(),
          ...(waiting.get(name) ?? { quarantined: undefined, held: undefined }),
          asked: backlogs.get(name) ?? 0,
        };
      }),
    ),
  };
}

/** With less space than this, recording the next run may fail. */
const MIN_FREE_BYTES = 1024 * 1024;

/** Returns a function that says why the journal cannot be written, or that its file was replaced. */
export function createJournalWatch(path: string): () => Promise<string | undefined> {
  let opened: bigint | undefined;

  return async () => {
    try {
      await access(path, constants.R_OK | constants.W_OK);
      await access(dirname(path), constants.W_OK);
      const { ino } = await stat(path, { bigint: true });
      opened ??= ino;
      if (ino !== opened) return `the journal ${path} was replaced while labfeed was running: restart labfeed`;
      const { bavail, bsize } = await statfs(dirname(path));
      return bavail * bsize < MIN_FREE_BYTES ? `the disk of the journal ${path} is full` : undefined;
    } catch (error) {
      return `the journal ${path} cannot be written (${systemCode(error) ?? error})`;
    }
  };
}

/** Counts requests by method and status. */
export function createRequestCounter() {
  const counts = new Map<string, RequestCount>();
  return {
    count(method: string, answered: number | undefined): void {
      const status = answered === undefined ? 'none' : String(answered);
      const key = `${method} ${status}`;
      counts.set(key, { method, status, count: (counts.get(key)?.count ?? 0) + 1 });
    },
    list: (): RequestCount[] => [...counts.keys()].sort().flatMap((key) => counts.get(key) ?? []),
  };
}
