import { createAlarms } from '../alarms/alarms.js';
import { createCommand, createWebhook, type Tell } from '../alarms/channels.js';
import type { Facts } from '../alarms/conditions.js';
import type { Clock } from '../clock.js';
import type { UsableConfig } from '../config/load.js';
import type { Journal } from '../journal/journal.js';
import { type Live, removeLive, writeLive } from '../live.js';
import type { Log } from '../log.js';
import type { Channel } from '../model.js';
import { createJournalWatch } from './journal-watch.js';
import type { Works } from './works.js';

export interface ReportingDeps {
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
      await clock.sleep(LOOK_MS, stopping.signal).catch(() => undefined);
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
          strangers: state.strangers(),
          ...(unsettled.get(name) ?? { quarantined: undefined, held: undefined, asked: 0 }),
        };
      }),
    ),
  };
}
