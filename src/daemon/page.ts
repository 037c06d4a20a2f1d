import { stat } from 'node:fs/promises';
import type { Clock } from '../clock.js';
import type { Instrument, LoadedConfig, UsableConfig } from '../config/load.js';
import { readToken } from '../config/secrets.js';
import { LabfeedError } from '../errors.js';
import { describeGrowth } from '../growth.js';
import type { Request } from '../journal/decisions.js';
import { type JobDetail, type JournalReader, openReader } from '../journal/reader.js';
import { type JournalClient, openClient } from '../journal/requests.js';
import type { Live } from '../live.js';
import type { Log } from '../log.js';
import { runGoldenTests } from '../mapping/tests.js';
import type { DecisionAnswer, DecisionRequest, JobsAnswer, JobsQuery, StatusAddress } from '../status/api.js';
import { createLoginSecret } from '../status/auth.js';
import { describeEvent } from '../status/history.js';
import type { StatusServer } from '../status/server.js';
import { versionLines } from '../text.js';
import { createRunPaths } from '../watch/match.js';
import type { PreviewTask } from './preview.js';
import type { Readers } from './readers.js';
import { createJournalWatch } from './reporting.js';

interface PageDeps {
  readonly readers: Readers;
  readonly clock: Clock;
  readonly log: Log;
  live(): Live;
  /** Reads the configuration again. Resolves with what is wrong with it, in words. */
  reload(): Promise<string | undefined>;
  /** Keeps a secret out of the log. */
  conceal(secret: string): void;
}

export type StatusPage = ReturnType<typeof createStatusPage>;

/** The page that shows what the daemon does and accepts decisions. */
export function createStatusPage(path: string, { readers, clock, log, live, reload, conceal }: PageDeps) {
  let config: UsableConfig | undefined;
  // Separate connections: reads for the page never wait for the daemon's transactions.
  let reader: JournalReader | undefined;
  let client: JournalClient | undefined;
  const reading = (): JournalReader => {
    reader ??= openReader(path);
    return reader;
  };
  let status: StatusServer | undefined;
  /** Loaded on demand: the web server and metrics are a third of the code that the daemon loads. */
  async function makeStatus(): Promise<StatusServer> {
    const { createStatusServer } = await import('../status/server.js');
    return createStatusServer({
      clock,
      log,
      live,
      journal: {
        overview: async () => reading().overview(),
        jobs: async (query) => reading().jobs(query),
        search: (query) => searchAll(query, reading(), config?.instruments ?? []),
        job: async (id) => withSentences(await reading().job(id)),
        bytes: () => bytesOf(path),
        problem: createJournalWatch(path),
      },
      async decide(request) {
        client ??= openClient(path, PAGE_BUSY_MS);
        return config ? ask(request, config.notebook.url, client, clock) : NOT_YET;
      },
      async save(draft, sample) {
        if (!config) return NOT_YET;
        const { saveInstrument } = await import('./instrument-files.js');
        const test = (instrument: Instrument) => runGoldenTests([instrument], { clock, run: readers.test });
        return saveInstrument(draft, sample, { config: config.file, test, reload });
      },
      async instrumentFile(name) {
        const { readInstrumentFile } = await import('./instrument-files.js');
        return config && readInstrumentFile(name, config.file);
      },
      async preview(sample, signal) {
        const { previewSample } = await import('./preview.js');
        if (!config) return { ok: false, reason: NOT_YET.text };
        const make = (task: PreviewTask) => readers.preview(task, signal);
        return previewSample(sample, { config, nowMs: clock.now(), make });
      },
    });
  }

  return {
    /** Serves the page at this address, if there is one. The journal must exist. */
    async show(next: UsableConfig, address: StatusAddress | undefined): Promise<void> {
      config = next;
      if (!address) return status?.moveTo(undefined);
      const login = createLoginSecret(path);
      conceal(login);
      status ??= await makeStatus();
      await status.moveTo({ ...address, login });
    },
    /** Undefined if the page is not served. */
    url: () => status?.url(),
    /** Why the page is not available. */
    problem: () => status?.problem(),
    async stop(): Promise<void> {
      await status?.stop();
      await reader?.close();
      await client?.close();
    },
  };
}

/** With the same wording as the commands. */
const withSentences = (job: JobDetail | undefined) =>
  job && {
    ...job,
    history: job.history.map((one) => ({ at: one.at, words: describeEvent(one) })),
    versions: versionLines(job.versions),
    growing: job.growth && describeGrowth(job.growth),
  };

/** Somebody waits, and a search takes most of one core. */
const MAX_SEARCH_MS = 1500;
const MAX_FILE_SEARCH_MS = 1000;

/** Finds runs. The first page of results also lists files that did not become runs. */
async function searchAll(
  query: JobsQuery & { readonly search: string },
  reader: JournalReader,
  instruments: readonly Instrument[],
): Promise<JobsAnswer> {
  const found = await reader.search(query, MAX_SEARCH_MS);
  if (query.state !== undefined || query.before !== undefined) return found;
  const runPaths = new Map(instruments.map((instrument) => [instrument.name, createRunPaths(instrument)]));
  const runPathOf = (instrument: string, path: string) => runPaths.get(instrument)?.(path) ?? path;
  return { ...found, ...(await reader.searchFiles(query, found, MAX_FILE_SEARCH_MS, runPathOf)) };
}

const NOT_YET: DecisionAnswer = { done: false, text: 'labfeed is still starting' };

/**
 * The configured address of the page with its tokens. Throws a ConfigError if the token cannot be read.
 * `conceal` keeps the token out of the log.
 */
export function statusAddressOf(
  { settings, placeOf }: LoadedConfig,
  conceal: (secret: string) => void,
): StatusAddress | undefined {
  const { status } = settings;
  if (status === false) return undefined;
  const { address, names } = status;
  const read = (name: 'token' | 'readToken'): string | undefined => {
    const source = status[name];
    const token = source && readToken(source, placeOf(['status', name]));
    if (token !== undefined) conceal(token);
    return token;
  };
  return { ...address, names, token: read('token'), readToken: read('readToken'), edit: status.edit };
}

/** The daemon polls for decisions twice a second. */
const ANSWER_WITHIN_MS = 10_000;
const POLL_MS = 100;
const PAGE_BUSY_MS = 20;

/** Decisions go through the journal's inbox, as those of the commands do. */
async function ask(
  asked: DecisionRequest,
  server: string,
  client: JournalClient,
  clock: Clock,
): Promise<DecisionAnswer> {
  const request = asked.kind === 'adopt' ? { ...asked, server } : asked;
  const until = clock.monotonic() + ANSWER_WITHIN_MS;
  const id = await submit(request, until, client, clock);
  while (clock.monotonic() < until) {
    await clock.sleep(POLL_MS);
    const answer = await client.answerTo(id);
    if (answer) return { done: answer.done, text: answer.text };
  }
  return { done: false, text: 'recorded in the journal; it will be applied after the current step' };
}

/** Retries instead of waiting for the journal's lock, because that would block intake and delivery. */
async function submit(request: Request, until: number, client: JournalClient, clock: Clock): Promise<number> {
  for (;;) {
    try {
      const [id = 0] = await client.ask([request], clock.now());
      return id;
    } catch (error) {
      if (!(error instanceof LabfeedError) || clock.monotonic() >= until) throw error;
      await clock.sleep(POLL_MS);
    }
  }
}

/** Recent changes are in the WAL file. */
async function bytesOf(path: string): Promise<number> {
  const found = await Promise.all([path, `${path}-wal`].map((file) => stat(file).catch(() => undefined)));
  return found.reduce((sum, stats) => sum + (stats?.size ?? 0), 0);
}
