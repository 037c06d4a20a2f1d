import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { type Clock, systemClock } from '../clock.js';
import { LabfeedError, systemCode } from '../errors.js';
import type { Log } from '../log.js';
import { serveComments, serveExperiments, serveKeys } from './contract.js';
import { type Control, createControl } from './control.js';
import type { Dialect } from './dialect.js';
import { serveElabftw } from './elabftw/api.js';
import { customsOf, type ElabftwOptions } from './elabftw/conventions.js';
import { type CannedAnswer, createFaults, type Fault, type Faults, type Wait } from './faults.js';
import { servePages } from './page.js';
import {
  answerCreated,
  answerErrors,
  createRequestLog,
  holdToConventions,
  MAX_BODY_BYTES,
  notFound,
  type RequestLog,
  type SeenRequest,
} from './requests.js';
import { openStore, type Store } from './store.js';

/** How long answers under way may take to end when the notebook stops. Browsers keep connections open for no reason. */
const STOP_GRACE_MS = 1_000;

export interface SandboxOptions {
  /** Where the notebook is kept: a path, or `:memory:`. */
  readonly file: string;
  readonly host?: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** Whether `Location` holds a whole address or its path only. Clients must take both. */
  readonly location?: 'absolute' | 'path';
  readonly dialect?: Dialect;
  /** Whether a creation heeds its body; without, every experiment begins blank. */
  readonly keepsTitle?: boolean;
  /** Only where the dialect is elabftw. */
  readonly elabftw?: ElabftwOptions;
  readonly log?: Log;
  readonly clock?: Clock;
}

export interface Sandbox {
  /** Where it listens, and its own read-write key, which stays the same for a file. */
  start(): Promise<{ url: string; key: string }>;
  stop(): Promise<void>;
  /** Faults, other people, and a view of everything, for tests in the same process. Outlasts a restart. */
  readonly control: Control;
}

interface Running {
  readonly app: FastifyInstance;
  readonly store: Store;
  readonly stopping: AbortController;
}

/** The built-in notebook, over real HTTP, kept in one file: the whole service contract to the letter, or eLabFTW. */
export function createSandbox(options: SandboxOptions): Sandbox {
  const { file, host = '127.0.0.1', port, clock = systemClock, dialect = 'v2', log } = options;
  const watching = { clock, faults: createFaults(clock), requests: createRequestLog(clock) };
  let running: Running | undefined;

  function runningStore(): Store {
    if (!running) throw new Error('the sandbox is not running');
    return running.store;
  }

  async function stop(): Promise<void> {
    if (!running) return;
    const { app, store, stopping } = running;
    running = undefined;
    stopping.abort();
    const impatience = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS);
    await app.close();
    clearTimeout(impatience);
    store.close();
  }

  return {
    async start() {
      if (running) throw new Error('the sandbox is already running');
      const store = openStore(file, clock);
      const stopping = new AbortController();
      const front = { ...watching, keyId: store.keys.idOf, stopping: stopping.signal };
      const app = buildServer(store, front, options);
      running = { app, store, stopping };
      try {
        const url = await app.listen({ host, port });
        log?.info({ url, file }, 'sandbox notebook is listening');
        return { url, key: store.keys.own() };
      } catch (error) {
        await stop();
        throw explainListening(error, host, port);
      }
    },
    stop,
    control: createControl({ ...watching, dialect, store: runningStore }),
  };
}

function buildServer(store: Store, front: Front, options: SandboxOptions): FastifyInstance {
  const { dialect = 'v2', log } = options;
  const onError = answerErrors(log);
  // HEAD is no verb of the contract.
  const app = fastify({ exposeHeadRoutes: false, frameworkErrors: onError });
  app.setErrorHandler(onError);
  app.setNotFoundHandler((request) => {
    throw notFound(`path ${request.url}`);
  });
  // Nothing outside the API takes a body: none is a reason to answer otherwise.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume();
    done(null);
  });
  app.addHook('onResponse', async ({ method, url }, { statusCode: status, elapsedTime: ms }) => {
    log?.debug({ method, url, status, ms }, 'sandbox answered');
  });

  app.register(
    async (api) => {
      standInFront(api, front);
      if (dialect === 'v2') serveContract(api, store, options, () => app.listeningOrigin);
      else serveElabftw(api, store, customsOf(options.elabftw ?? {}, options.keepsTitle ?? true), log);
    },
    { prefix: '/api/v2' },
  );
  app.register(async (pages) => servePages(pages, store));
  return app;
}

function serveContract(
  api: FastifyInstance,
  store: Store,
  { location = 'absolute', keepsTitle = true }: SandboxOptions,
  origin: () => string,
): void {
  // The server's own idea of its address, whatever name the client called it by.
  const created = answerCreated(() => (location === 'absolute' ? origin() : ''));
  holdToConventions(api, { useKey: store.keys.use });
  serveExperiments(api, store.experiments, created, keepsTitle);
  serveComments(api, store, created);
  serveKeys(api, store.keys, created);
}

function explainListening(error: unknown, host: string, port: number): unknown {
  const choose = 'choose another port with --port; 0 takes any free one';
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return new LabfeedError(`the sandbox cannot listen: port ${port} is in use`, {
        hint: `stop the program that uses it, or ${choose}`,
        cause: error,
      });
    case 'EACCES':
      return new LabfeedError(`the sandbox cannot listen: port ${port} is reserved`, {
        hint: choose,
        cause: error,
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new LabfeedError(`the sandbox cannot listen: ${host} is no address of this machine`, {
        cause: error,
      });
    default:
      return error;
  }
}

interface Front {
  readonly requests: RequestLog;
  readonly faults: Faults;
  readonly clock: Clock;
  /** Aborted when the notebook stops: what waits then is never carried out. */
  readonly stopping: AbortSignal;
  keyId(authorization: string): number | undefined;
}

interface Passing {
  readonly seen: SeenRequest;
  readonly body: Buffer;
  readonly fault: Fault | undefined;
}

/** Stands between the network and the API like a bad line: sees every request, and may lose it or its answer. */
function standInFront(api: FastifyInstance, front: Front): void {
  const passing = new WeakMap<FastifyRequest, Passing>();

  api.addHook('onRequest', async (request, reply) => {
    const body = await readBody(request.raw);
    const seen = front.requests.add(describe(request, body, front));
    const fault = front.faults.next(seen);
    passing.set(request, { seen, body, fault });
    const outcome = fault ? await meet(fault, request, front) : 'passes';
    if (outcome === 'passes') return undefined;
    if (outcome === 'cut') {
      reply.hijack();
      request.raw.socket.destroy();
      front.requests.end(seen);
      return reply;
    }
    return reply.send(replace(reply, outcome));
  });

  api.addHook('preParsing', async (request) => Readable.from([passing.get(request)?.body ?? '']));

  api.addHook('onSend', async (request, reply, payload) => {
    const { seen, fault } = passing.get(request) ?? {};
    if (seen) front.requests.end(seen, reply.statusCode);
    if (fault === 'cutAfter') request.raw.socket.destroy();
    if (typeof fault !== 'object') return payload;
    if ('holdAnswer' in fault) await passed(fault.holdAnswer, front);
    return 'answer' in fault && fault.carriedOut ? replace(reply, fault) : payload;
  });
}

/** What becomes of the request before the notebook hears of it. */
async function meet(
  fault: Fault,
  request: FastifyRequest,
  front: Front,
): Promise<'passes' | 'cut' | CannedAnswer> {
  if (fault === 'cutBefore') return 'cut';
  if (fault === 'cutAfter' || 'holdAnswer' in fault) return 'passes';
  if ('answer' in fault) return fault.carriedOut ? 'passes' : fault;
  if ('cutThen' in fault) request.raw.socket.destroy();
  const wait = 'cutThen' in fault ? fault.cutThen : fault.holdRequest;
  return (await passed(wait, front)) ? 'passes' : 'cut';
}

/** Puts a canned answer in the place of whatever the reply held, and returns its body. */
function replace(reply: FastifyReply, { answer, headers = {}, html, json }: CannedAnswer): string {
  for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name);
  const usual =
    answer >= 400 ? { code: answer, message: `answered ${answer} on purpose`, description: '' } : '';
  const body = html ?? ((json ?? usual) ? JSON.stringify(json ?? usual) : '');
  const type = html === undefined && body ? 'application/json' : 'text/html; charset=UTF-8';
  reply.code(answer).header('content-type', type).headers(headers);
  return body;
}

/** Whether the wait came to its end, rather than to the notebook's. */
async function passed(wait: Wait, { clock, stopping }: Front): Promise<boolean> {
  if (stopping.aborted) return false;
  const stopped = new Promise<void>((resolve) => {
    stopping.addEventListener('abort', () => resolve(), { once: true });
  });
  const over = 'ms' in wait ? clock.sleep(wait.ms, stopping) : wait.until;
  await Promise.race([stopped, over]).catch(() => undefined);
  return !stopping.aborted;
}

function describe(request: FastifyRequest, body: Buffer, { keyId }: Front) {
  const { authorization, ...headers } = request.headers;
  return {
    method: request.method,
    path: request.url,
    headers,
    keyId: authorization === undefined ? undefined : keyId(authorization),
    body: body.toString(),
  };
}

/** Reads to the end, and keeps no more of it than shows that it is too long. */
async function readBody(raw: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of raw as AsyncIterable<Buffer>) {
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    bytes += chunk.length;
  }
  return Buffer.concat(chunks);
}
