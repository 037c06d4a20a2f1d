import { request } from 'undici';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { Live } from '../../src/live.js';
import type { Job, JobDetail, JournalView, PageState, StatusAddress, StatusDeps } from '../../src/status/api.js';
import { createMetrics } from '../../src/status/metrics.js';
import { startServer } from '../../src/status/server.js';
import { type Answer, answerOf } from './answer.js';
import { silentLog } from './silent-log.js';

export const PAGE_TOKEN = 'the-token-within-the-page';
export const TOKEN = 'a-token-of-the-lab-0123456789';

export const someLive = (changes: Partial<Live> = {}): Live => ({
  at: 1,
  pid: 1,
  version: '1.2.3',
  startedAt: 0,
  config: '/etc/labfeed/config.yaml',
  page: undefined,
  problems: [],
  refused: undefined,
  notebook: { url: 'https://eln.example.org', gate: { kind: 'open', perSecond: 10 }, requests: [] },
  spool: undefined,
  instruments: [],
  alarms: [],
  ...changes,
});

export const someInstrument = (
  name: string,
  changes: Partial<Live['instruments'][number]> = {},
): Live['instruments'][number] => ({
  name,
  watch: `/srv/${name}`,
  line: 'watching',
  folder: { state: 'present' },
  scannedAt: 1,
  files: 0,
  unmatched: { files: 0, example: undefined },
  waiting: { files: 0, first: [], unreadable: 0 },
  unreadable: { files: 0, first: [] },
  stuck: { files: 0, first: [] },
  lastFileAt: undefined,
  polling: undefined,
  ...changes,
});

export const NO_RUNS = { waiting: 0, queued: 0, sending: 0, done: 0, quarantined: 0, held: 0, ignored: 0 };

export const someJob = (id: number, changes: Partial<Job> = {}): Job => ({
  id,
  instrument: 'balance',
  state: 'done',
  step: 'done',
  path: `/srv/balance/${id}.csv`,
  size: 1,
  modifiedMs: 1,
  sha256: 'ab',
  backlog: false,
  attempts: 0,
  dueAt: 0,
  addedAt: 0,
  updatedAt: 0,
  ...changes,
});

export const someDetail = (id: number, body: string): JobDetail => ({
  ...someJob(id),
  draft: { title: 't', date: '2026-01-01', body, tags: [] },
  comments: [],
  history: [],
  paths: [],
  drift: [],
  sources: [],
  versions: [],
});

type Changes = Partial<Omit<StatusDeps, 'journal'> & JournalView>;

export const someDeps = ({ overview, jobs, search, job, bytes, problem, ...changes }: Changes = {}): StatusDeps => ({
  clock: systemClock,
  log: silentLog(),
  live: () => someLive(),
  journal: {
    overview: overview ?? (async () => ({ instruments: [], servers: [] })),
    jobs: jobs ?? (async () => []),
    search: search ?? (async () => ({ jobs: [] })),
    job: job ?? (async () => undefined),
    bytes: bytes ?? (async () => 4096),
    problem: problem ?? (async () => undefined),
  },
  decide: async () => ({ done: true, text: 'done' }),
  preview: async () => ({ ok: false, reason: 'not in this test' }),
  save: async () => ({ done: true, text: 'saved' }),
  instrumentFile: async () => undefined,
  ...changes,
});

export interface Sending {
  readonly method?: 'GET' | 'POST' | 'OPTIONS' | 'HEAD' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface Serving {
  readonly url: string;
  call(path: string, sending?: Sending): Promise<Answer>;
  /** As the page sends it. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

/** One request over a real socket. */
export async function call(url: string, path: string, sending: Sending = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body = null } = sending;
  return answerOf(await request(url + path.slice(1), { method, headers, body }));
}

/** The page's server with the test's dependencies, until the test ends. */
export async function serve(changes: Changes = {}, address: Partial<StatusAddress> = {}): Promise<Serving> {
  const deps = someDeps(changes);
  const { url, stop } = await startServer(
    { ...deps, metrics: createMetrics(deps), pageToken: PAGE_TOKEN },
    { host: '127.0.0.1', port: 0, names: [], ...address },
  );
  onTestFinished(stop);
  return {
    url,
    call: (path, sending) => call(url, path, sending),
    post: (path, body, headers = {}) =>
      call(url, path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: {
          'content-type': 'application/json',
          'x-labfeed-token': PAGE_TOKEN,
          origin: url.slice(0, -1),
          ...headers,
        },
      }),
  };
}

/** The events of the page's stream, until the test ends. */
export interface Listening {
  readonly status: number;
  readonly states: PageState[];
  close(): void;
}

export async function listen(url: string): Promise<Listening> {
  const leaving = new AbortController();
  const response = await fetch(`${url}api/events`, { signal: leaving.signal });
  const states: PageState[] = [];
  onTestFinished(() => leaving.abort());
  const taking = async (): Promise<void> => {
    let unread = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      const events = (unread + decoder.decode(chunk, { stream: true })).split('\n\n');
      unread = events.pop() ?? '';
      for (const event of events) {
        const [, data] = /^event: state\ndata: (.*)$/.exec(event) ?? [];
        if (data !== undefined) states.push(JSON.parse(data) as PageState);
      }
    }
  };
  taking().catch(() => undefined);
  return { status: response.status, states, close: () => leaving.abort() };
}
