import { type FastifyInstance, fastify } from 'fastify';
import { type Clock, systemClock } from '../clock.js';
import { LabfeedError, systemCode } from '../errors.js';
import type { Log } from '../log.js';
import type { Dialect } from '../model.js';
import { serveContract } from './contract.js';
import { serveElabftw } from './elabftw/api.js';
import { answerErrors, notFound } from './http.js';
import { servePages } from './page.js';
import { openStore, ownKey, type Store } from './store.js';

/** How long requests in flight may take when the sandbox stops. Browsers keep idle connections open for longer. */
const STOP_GRACE_MS = 1_000;

export interface SandboxOptions {
  /** Where the notebook is stored: a path, or `:memory:`. */
  readonly file: string;
  readonly host?: string;
  /** 0: any free port. */
  readonly port: number;
  /** `v2`: the contract to the letter (default). `elabftw`: as eLabFTW implements it. */
  readonly dialect?: Dialect;
  /** `elabftw` only: a longer upload gets 413. */
  readonly maxUploadBytes?: number;
  /** `elabftw` only: the team creates experiments from templates only. */
  readonly forcesTemplate?: boolean;
  readonly log?: Log;
  readonly clock?: Clock;
  /**
   * Called at each start before the routes are added, so that hooks added to `api` see every request first.
   * Tests inject faults with it.
   */
  readonly intercept?: (api: FastifyInstance, store: Store) => void;
}

export interface Sandbox {
  /** Returns the address and a read-write key, which is always the same for one data file. */
  start(): Promise<{ url: string; key: string }>;
  stop(): Promise<void>;
}

/** The built-in notebook: an HTTP server over one data file. */
export function createSandbox(options: SandboxOptions): Sandbox {
  const { file, host = '127.0.0.1', port, clock = systemClock, log } = options;
  let running: { readonly app: FastifyInstance; readonly store: Store } | undefined;

  async function stop(): Promise<void> {
    if (!running) return;
    const { app, store } = running;
    running = undefined;
    const deadline = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS);
    await app.close();
    clearTimeout(deadline);
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
        log?.info({ url, file }, 'sandbox listening');
        return { url, key: ownKey(store) };
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
  // The contract has no HEAD.
  const app = fastify({ exposeHeadRoutes: false, frameworkErrors: onError });
  app.setErrorHandler(onError);
  app.setNotFoundHandler((request) => {
    throw notFound(`path ${request.url}`);
  });
  // The pages ignore bodies.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume();
    done(null);
  });
  app.addHook('onResponse', async ({ method, url }, { statusCode: status, elapsedTime: ms }) => {
    log?.debug({ method, url, status, ms }, 'sandbox request');
  });

  app.register(
    async (api) => {
      intercept?.(api, store);
      if (dialect === 'v2') serveContract(api, store, () => app.listeningOrigin);
      else serveElabftw(api, store, options);
    },
    { prefix: '/api/v2' },
  );
  app.register(async (pages) => servePages(pages, store));
  return app;
}

function explainListening(error: unknown, host: string, port: number): unknown {
  const fail = (reason: string, hint?: string) =>
    new LabfeedError(`the sandbox cannot listen: ${reason}`, { hint, cause: error });
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return fail(
        `port ${port} is in use`,
        'stop the program that uses it, or choose another port with --port (0: any free port)',
      );
    case 'EACCES':
      return fail(`port ${port} needs root privileges`, 'choose a port above 1023 with --port (0: any free port)');
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return fail(`${host} is not an address of this machine`);
    default:
      return error;
  }
}
