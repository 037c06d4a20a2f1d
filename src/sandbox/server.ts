import { type FastifyInstance, fastify } from 'fastify';
import { type Clock, systemClock } from '../clock.js';
import { LabfeedError, systemCode } from '../errors.js';
import type { Log } from '../log.js';
import { serveComments, serveExperiments, serveKeys } from './contract.js';
import type { Dialect } from './dialect.js';
import { serveElabftw } from './elabftw/api.js';
import { customsOf, type ElabftwOptions } from './elabftw/conventions.js';
import { servePages } from './page.js';
import { answerCreated, answerErrors, holdToConventions, notFound } from './requests.js';
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
  /**
   * Called at each start, before the routes are added: hooks that it adds to `api` see every request first.
   * Tests use it to inject faults.
   */
  readonly intercept?: (api: FastifyInstance, store: Store) => void;
}

export interface Sandbox {
  /** Where it listens, and its own read-write key, which stays the same for a file. */
  start(): Promise<{ url: string; key: string }>;
  stop(): Promise<void>;
}

interface Running {
  readonly app: FastifyInstance;
  readonly store: Store;
}

/** The built-in notebook, over real HTTP, kept in one file: the whole service contract to the letter, or eLabFTW. */
export function createSandbox(options: SandboxOptions): Sandbox {
  const { file, host = '127.0.0.1', port, clock = systemClock, log } = options;
  let running: Running | undefined;

  async function stop(): Promise<void> {
    if (!running) return;
    const { app, store } = running;
    running = undefined;
    const impatience = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS);
    await app.close();
    clearTimeout(impatience);
    store.close();
  }

  return {
    async start() {
      if (running) throw new Error('the sandbox is already running');
      const store = openStore(file, clock);
      const app = buildServer(store, options);
      running = { app, store };
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
  };
}

function buildServer(store: Store, options: SandboxOptions): FastifyInstance {
  const { dialect = 'v2', intercept, log } = options;
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
      intercept?.(api, store);
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
