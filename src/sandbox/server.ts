import { type FastifyInstance, fastify } from 'fastify';
import { type Clock, systemClock } from '../clock.js';
import { LabfeedError, systemCode } from '../errors.js';
import type { Log } from '../log.js';
import { serveComments } from './comments.js';
import { serveExperiments } from './experiments.js';
import { serveKeys } from './keys.js';
import { servePages } from './page.js';
import { answerErrors, notFound } from './refusal.js';
import { answerCreated } from './resource.js';
import { openStore, type Store } from './store.js';
import { holdToConventions } from './strictness.js';

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
  readonly log?: Log;
  readonly clock?: Clock;
}

export interface Sandbox {
  /** Where it listens, and its own read-write key, which stays the same for a file. */
  start(): Promise<{ url: string; key: string }>;
  stop(): Promise<void>;
}

/** The built-in notebook: the whole service contract to the letter, over real HTTP, kept in one file. */
export function createSandbox(options: SandboxOptions): Sandbox {
  const { file, host = '127.0.0.1', port, clock = systemClock, log } = options;
  let running: { app: FastifyInstance; store: Store } | undefined;

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

function buildServer(store: Store, { location = 'absolute', log }: SandboxOptions): FastifyInstance {
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

  // The server's own idea of its address, whatever name the client called it by.
  const created = answerCreated(() => (location === 'absolute' ? app.listeningOrigin : ''));
  app.register(
    async (api) => {
      holdToConventions(api, { useKey: store.keys.use });
      serveExperiments(api, store.experiments, created);
      serveComments(api, store, created);
      serveKeys(api, store.keys, created);
    },
    { prefix: '/api/v2' },
  );
  app.register(async (pages) => servePages(pages, store));
  return app;
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
