import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createAlarms } from '../alarms/alarms.js';
import { createCommand, createWebhook, type Tell } from '../alarms/channels.js';
import type { Facts } from '../alarms/conditions.js';
import type { Clock } from '../clock.js';
import type { UsableConfig } from '../config/load.js';
import { systemCode } from '../errors.js';
import type { Journal } from '../journal/journal.js';
import { type Live, type RequestCount, removeLive, writeLive } from '../live.js';
import type { Log } from '../log.js';
import type { Channel } from '../model.js';
import type { Works } from './works.js';

interface ReportingDeps {
  readonly journal: Journal;
  readonly journalPath: string;
  /** The works that run now. */
  works(): Works | undefined;
  /** How things are, with these alarms. */
  live(alarms: Live['alarms']): Live;
  /** Why the page is not there, though it should be. */
  page(): string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  conceal(secret: string): void;
}

/** The daemon looks at itself once a second: it raises alarms, and leaves how it is beside the journal. */
export interface Reporting {
  alarms(): Live['alarms'];
  start(): Promise<void>;
  /** Resolves when the journal is no longer used. */
  stop(): Promise<void>;
}

const LOOK_MS = 1000;

/** However little happens, who reads it must see that it is still true. */
const FRESH_MS = 10_000;

export function createReporting(deps: ReportingDeps): Reporting {
  const { journal, journalPath, works, live, page, clock, log } = deps;
  const stopping = new AbortController();
  const channels = createChannels(deps);
  const troubleOf = createJournalWatch(journalPath);
  const alarms = createAlarms({
    facts: async () => ({
      ...(await factsOf(journal, troubleOf, live([]), works(), clock.now())),
      page: page(),
    }),
    ...journal.alarms,
    channels,
    clock,
    log,
  });
  let running: Promise<void> = Promise.resolve();
  let written = '';
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  let isTold = false;

  async function write(): Promise<void> {
    const now = live(alarms.raised());
    const text = JSON.stringify({ ...now, at: 0 });
    if (text === written && clock.monotonic() - writtenAtMs < FRESH_MS) return;
    try {
      await writeLive(journalPath, now);
      written = text;
      writtenAtMs = clock.monotonic();
      isTold = false;
    } catch (error) {
      // Only the commands miss it, and the disk that it tells of is looked after elsewhere.
      if (!isTold) log.warn({ err: error }, 'commands cannot be told how the daemon is, trying again');
      isTold = true;
    }
  }

  async function keepLooking(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (works()) await alarms.look();
      await write();
      await clock.sleep(LOOK_MS, stopping.signal);
    }
  }

  return {
    alarms: alarms.raised,
    async start() {
      await alarms.open();
      running = keepLooking();
    },
    async stop() {
      stopping.abort();
      await alarms.stop();
      await running;
      await removeLive(journalPath).catch(() => undefined);
    },
  };
}

/** Whom to tell, made anew only when the configuration is. */
function createChannels({ works, log, conceal }: ReportingDeps) {
  let madeFor: UsableConfig | undefined;
  let channels: ReadonlyMap<Channel, Tell> = new Map();

  return (): ReadonlyMap<Channel, Tell> => {
    const config = works()?.config;
    if (config === undefined || config === madeFor) return channels;
    madeFor = config;
    const { webhook, command } = config.settings.alarms ?? {};
    if (webhook !== undefined) conceal(webhook);
    const made: [Channel, Tell][] = [];
    if (webhook !== undefined) made.push(['webhook', createWebhook(webhook)]);
    if (command) made.push(['command', createCommand({ words: command, log, env: withoutSecrets(config) })]);
    channels = new Map(made);
    return channels;
  };
}

/** What the command of an alarm inherits: everything but the key of the notebook and the token of the page. */
export function withoutSecrets(
  { notebook, settings: { status } }: Pick<UsableConfig, 'notebook' | 'settings'>,
  env: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  const secrets = new Set([notebook.key.env, status === false ? undefined : status.token?.env]);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secrets.has(name)));
}

/** What of the journal and of the works alarms are judged by. */
async function factsOf(
  journal: Journal,
  trouble: () => Promise<string | undefined>,
  live: Live,
  works: Works | undefined,
  now: number,
): Promise<Omit<Facts, 'page'>> {
  const unsettled = await journal.resting.unsettled();
  const instruments = works?.instruments ?? [];
  return {
    now,
    notebook: {
      ...live.notebook,
      answered: works?.hasAnswered() ?? false,
      halted: await journal.resting.halted(live.notebook.url),
    },
    problems: live.problems,
    refused: live.refused,
    journal: journal.trouble() ?? (await trouble()),
    instruments: await Promise.all(
      instruments.map(async ({ name, state, usable }) => {
        const shown = state.live();
        return {
          live: shown,
          silence: usable?.silence,
          quietSince: shown.lastFileAt ?? (await journal.resting.firstScanAt(name)),
          unmatchedArrivals: state.unmatchedArrivals(),
          ...(unsettled.get(name) ?? { quarantined: undefined, held: undefined, asked: 0 }),
        };
      }),
    ),
  };
}

/** Less than this, and the next run may not be recorded. */
const LEAST_FREE_BYTES = 1024 * 1024;

/** Makes the function that says why the journal cannot be written, or is no longer the one that was opened. */
export function createJournalWatch(path: string): () => Promise<string | undefined> {
  let opened: bigint | undefined;

  return async () => {
    try {
      await access(path, constants.R_OK | constants.W_OK);
      await access(dirname(path), constants.W_OK);
      const { ino } = await stat(path, { bigint: true });
      opened ??= ino;
      if (ino !== opened) return `the journal ${path} was replaced while labfeed runs: restart labfeed`;
      const { bavail, bsize } = await statfs(dirname(path));
      return bavail * bsize < LEAST_FREE_BYTES ? `the disk of the journal ${path} is full` : undefined;
    } catch (error) {
      return `the journal ${path} cannot be written (${systemCode(error) ?? error})`;
    }
  };
}

/** How the requests of a daemon ended, since it started. */
interface RequestCounter {
  count(method: string, status: number | undefined): void;
  list(): RequestCount[];
}

export function createRequestCounter(): RequestCounter {
  const counts = new Map<string, RequestCount>();
  return {
    count(method, answered) {
      const status = answered === undefined ? 'none' : String(answered);
      const key = `${method} ${status}`;
      counts.set(key, { method, status, count: (counts.get(key)?.count ?? 0) + 1 });
    },
    list: () => [...counts.keys()].sort().flatMap((key) => counts.get(key) ?? []),
  };
}
