import { setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { DatabaseSync } from '@photostructure/sqlite';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.js';
import type { Dialect } from '../../src/model.js';
import { createSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/server.js';
import {
  type Comment,
  type Experiment,
  findKey,
  listComments,
  listExperiments,
  listUploads,
  type STATE,
  type Store,
  type Upload,
} from '../../src/sandbox/store.js';
import {
  type CannedAnswer,
  createFaults,
  type Decide,
  type Fault,
  type Faults,
  type Outage,
  type PlannedFault,
  type RateLimit,
  type Scope,
  type Wait,
} from './faults.js';
import { createRequestLog, type RequestLog, type SeenRequest } from './request-log.js';
import { type SimulatedUser, simulatedUser, type UserName } from './simulated-users.js';

export const DIALECTS: readonly Dialect[] = ['v2', 'elabftw'];

const dialects = new Map<string, Dialect>();

/** Of the test sandbox at this address. */
export const dialectAt = (url: string): Dialect | undefined => dialects.get(url);

/** An experiment with everything that belongs to it. */
interface HeldExperiment extends Omit<Experiment, 'state' | 'private'> {
  readonly state: keyof typeof STATE;
  readonly locked: boolean;
  readonly private: boolean;
  readonly comments: readonly Comment[];
  readonly uploads: readonly Upload[];
}

/** Faults, simulated users, and a view of the notebook's content and requests. */
export interface Control {
  /** Makes requests fail from now on. Of several faults that match, the one planned first applies. */
  plan(fault: Fault, scope?: Scope): PlannedFault;
  /** Answers 429 above this rate; undefined removes the limit. */
  limitRate(limit: RateLimit | undefined): void;
  /** Decides about every request that no planned fault applies to. It may wait, or stop a process meanwhile. */
  decide: Decide;
  /** Takes the whole server down; undefined brings it back. */
  setOutage(outage: Outage | undefined): void;
  /** A person at the notebook's web pages. `owner` is the user that the API keys belong to. */
  as(name: UserName): SimulatedUser;
  /** The server never assigns the next ids, as after a transaction that was rolled back. */
  skipIds(count: number): void;
  /** All experiments, deleted ones included, by id. */
  experiments(): readonly HeldExperiment[];
  /** The API requests so far, in the order of arrival. */
  requests(): readonly SeenRequest[];
  /** The requests that are not GET. */
  writes(): readonly SeenRequest[];
  forgetRequests(): void;
  /** Resolves when every request so far was carried out or dropped, including those whose connection was cut. */
  settled(): Promise<void>;
}

export interface TestSandbox extends Sandbox {
  /** Survives a restart, like the port. */
  readonly control: Control;
}

/** The built-in notebook over real HTTP, with faults and simulated users. */
export function createTestSandbox(options: SandboxOptions): TestSandbox {
  const { clock = systemClock, dialect = 'v2' } = options;
  const [faults, requests] = [createFaults(clock), createRequestLog(clock)];
  let port = options.port;
  let sandbox: Sandbox | undefined;
  let store: Store | undefined;
  const runningStore = (): Store => {
    if (!store) throw new Error('the sandbox is not running');
    return store;
  };
  const intercept = (api: FastifyInstance, opened: Store): void => {
    const stopping = new AbortController();
    // One for each request that is held.
    setMaxListeners(0, stopping.signal);
    store = opened;
    api.addHook('preClose', async () => {
      store = undefined;
      stopping.abort();
    });
    const keyId = (key: string) => findKey(opened, key)?.id;
    injectFaults(api, { faults, requests, clock, stopping: stopping.signal, keyId });
  };
  return {
    async start() {
      sandbox = createSandbox({ ...options, port, intercept });
      const started = await sandbox.start();
      port = Number(new URL(started.url).port);
      dialects.set(started.url, dialect);
      return started;
    },
    stop: async () => sandbox?.stop(),
    control: createControl({ faults, requests, dialect, store: runningStore }),
  };
}

interface ControlDeps {
  readonly faults: Faults;
  readonly requests: RequestLog;
  readonly dialect: Dialect;
  /** Throws while the notebook is not running. */
  store(): Store;
}

function createControl({ faults, requests, dialect, store }: ControlDeps): Control {
  return {
    plan: faults.plan,
    limitRate: faults.limitRate,
    get decide() {
      return faults.decide;
    },
    set decide(decide) {
      faults.decide = decide;
    },
    setOutage: faults.setOutage,
    as: (name) => simulatedUser(name, store, dialect),
    skipIds: (count) =>
      void store().db.prepare("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'experiments'").run(count),
    experiments: () => listExperiments(store()).map((experiment) => held(experiment, store())),
    requests: requests.list,
    writes: () => requests.list().filter(({ method }) => method !== 'GET'),
    forgetRequests: requests.forget,
    settled: requests.settled,
  };
}

const STATES = ['normal', 'archived', 'deleted'] as const;

function held(experiment: Experiment, store: Store): HeldExperiment {
  return {
    ...experiment,
    state: STATES[experiment.state - 1] ?? 'normal',
    locked: experiment.lockedby !== null,
    private: experiment.private === 1,
    comments: listComments(store, experiment.id),
    uploads: listUploads(store, experiment.id),
  };
}

interface Interceptor {
  readonly faults: Faults;
  readonly requests: RequestLog;
  readonly clock: Clock;
  /** Aborted when the notebook stops. Requests that are held then are never carried out. */
  readonly stopping: AbortSignal;
  keyId(authorization: string): number | undefined;
}

interface Intercepted {
  readonly seen: SeenRequest;
  readonly body: Buffer;
  readonly fault: Fault | undefined;
}

/** Records every request before the notebook sees it, and applies the fault that is due. */
function injectFaults(api: FastifyInstance, interceptor: Interceptor): void {
  const { faults, requests } = interceptor;
  const intercepted = new WeakMap<FastifyRequest, Intercepted>();

  api.addHook('onRequest', async (request, reply) => {
    const body = await readAll(request.raw);
    const seen = requests.add(describe(request, body, interceptor));
    const fault = await faults.next(seen);
    intercepted.set(request, { seen, body, fault });
    const outcome = fault ? await applyBefore(fault, request, interceptor) : 'pass';
    if (outcome === 'pass') return undefined;
    if (outcome === 'cut') {
      reply.hijack();
      request.raw.socket.destroy();
      requests.end(seen);
      return reply;
    }
    return reply.send(replaceAnswer(reply, outcome));
  });

  api.addHook('preParsing', async (request) => Readable.from([intercepted.get(request)?.body ?? '']));

  api.addHook('onSend', async (request, reply, payload) => {
    const { seen, fault } = intercepted.get(request) ?? {};
    if (seen) requests.end(seen, reply.statusCode);
    if (fault === 'cutAfter') request.raw.socket.destroy();
    if (typeof fault !== 'object') return payload;
    if ('holdAnswer' in fault) await waited(fault.holdAnswer, interceptor);
    return 'answer' in fault && fault.carriedOut ? replaceAnswer(reply, fault) : payload;
  });
}

async function applyBefore(
  fault: Fault,
  request: FastifyRequest,
  interceptor: Interceptor,
): Promise<'pass' | 'cut' | CannedAnswer> {
  if (fault === 'cutBefore') return 'cut';
  if (fault === 'cutAfter' || 'holdAnswer' in fault) return 'pass';
  if ('answer' in fault) return fault.carriedOut ? 'pass' : fault;
  if ('cutThen' in fault) request.raw.socket.destroy();
  const wait = 'cutThen' in fault ? fault.cutThen : fault.holdRequest;
  return (await waited(wait, interceptor)) ? 'pass' : 'cut';
}

/** Replaces status and headers of the reply, and returns the new body. */
function replaceAnswer(reply: FastifyReply, { answer, headers = {}, html, json }: CannedAnswer): string {
  for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name);
  const usual = answer >= 400 ? { code: answer, message: `injected status ${answer}`, description: '' } : '';
  const body = html ?? ((json ?? usual) ? JSON.stringify(json ?? usual) : '');
  const type = html === undefined && body ? 'application/json' : 'text/html; charset=UTF-8';
  reply.code(answer).header('content-type', type).headers(headers);
  return body;
}

/** False if the notebook stopped before the wait was over. */
async function waited(wait: Wait, { clock, stopping }: Interceptor): Promise<boolean> {
  if (stopping.aborted) return false;
  const stopped = new Promise<void>((resolve) => {
    stopping.addEventListener('abort', () => resolve(), { once: true });
  });
  await Promise.race([stopped, 'ms' in wait ? clock.sleep(wait.ms, stopping) : wait.until]);
  return !stopping.aborted;
}

function describe(request: FastifyRequest, body: Buffer, { keyId }: Interceptor) {
  const { method, url: path, headers } = request;
  const { authorization } = headers;
  return {
    method,
    path,
    headers,
    keyId: authorization === undefined ? undefined : keyId(authorization),
    body: body.toString(),
  };
}

async function readAll(raw: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of raw as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

interface FiledExperiment {
  readonly id: number;
  readonly title: string;
  readonly date: string;
  readonly body: string;
  readonly comments: readonly string[];
}

export interface RunningSandbox {
  readonly url: string;
  readonly key: string;
  readonly stop: () => Promise<void>;
  /** Starts it again after a stop, on the same port. */
  readonly start: () => Promise<unknown>;
  /** Everything in its data file, even while it is stopped. */
  experiments(): FiledExperiment[];
  readonly control: Control;
}

/** A test sandbox that runs until the test ends. */
export async function runSandbox(
  file: string,
  port = 0,
  dialect: Dialect = 'v2',
  settings: Pick<SandboxOptions, 'forcesTemplate'> = {},
): Promise<RunningSandbox> {
  const { start, stop, control } = createTestSandbox({ file, port, dialect, ...settings });
  const { url, key } = await start();
  onTestFinished(stop);
  return { url, key, start, stop, control, experiments: () => readDataFile(file) };
}

function readDataFile(file: string): FiledExperiment[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const comments = database.prepare('SELECT comment FROM comments WHERE item_id = ? ORDER BY id');
    const rows = database.prepare('SELECT id, title, date, body FROM experiments ORDER BY id').all();
    return (rows as Omit<FiledExperiment, 'comments'>[]).map((row) => ({
      ...row,
      comments: (comments.all(row.id) as { comment: string }[]).map(({ comment }) => comment),
    }));
  } finally {
    database.close();
  }
}
