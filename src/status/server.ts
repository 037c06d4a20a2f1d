import type { AddressInfo } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import type { Log } from '../log.js';
import { createAccess } from './access.js';
import type { PageState } from './api.js';
import type { Place, StatusDeps } from './deps.js';
import { createFeed, type Feed } from './feed.js';
import { isLetIn, standGuard } from './guard.js';
import type { Metrics } from './metrics.js';
import { answerErrors, Refusal } from './refusal.js';
import { serveApi } from './serve-api.js';
import { serveHealth } from './serve-health.js';
import { sendLogIn, servePage } from './serve-page.js';
import { servePreview } from './serve-preview.js';

/** What outlasts a move to another address. */
export interface ServerDeps extends StatusDeps {
  readonly metrics: Metrics;
  readonly pageToken: string;
  state(): PageState;
}

export interface Server {
  /** Resolves with the address to open it by; rejects where it cannot listen there. */
  start(): Promise<string>;
  stop(): Promise<void>;
}

/** How long answers under way may take to end. Browsers keep connections open for no reason. */
const STOP_GRACE_MS = 1000;
const MOST_CONNECTIONS = 200;
const MOST_BYTES = 16 * 1024;

/** The page at one address. */
export function createServer(deps: ServerDeps, place: Place): Server {
  const stopping = new AbortController();
  const feed = createFeed(deps.state, deps.log);
  let app: FastifyInstance | undefined;
  return {
    async start() {
      app = createApp(deps.log);
      serveAll(app, deps, place, feed, stopping.signal);
      await app.listen({ host: place.host, port: place.port });
      return urlOf(place, (app.server.address() as AddressInfo).port);
    },
    async stop() {
      stopping.abort();
      feed.stop();
      const impatience = setTimeout(() => app?.server.closeAllConnections(), STOP_GRACE_MS);
      await app?.close();
      clearTimeout(impatience);
    },
  };
}

function createApp(log: Log): FastifyInstance {
  const onError = answerErrors(log);
  const app = fastify({
    bodyLimit: MOST_BYTES,
    // Whoever sends or takes a byte a minute holds nothing for long.
    connectionTimeout: 60_000,
    requestTimeout: 30_000,
    keepAliveTimeout: 10_000,
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 5000 },
    frameworkErrors: onError,
  });
  app.server.maxConnections = MOST_CONNECTIONS;
  app.setErrorHandler(onError);
  app.setNotFoundHandler(({ url }) => {
    throw new Refusal(404, `there is nothing at ${url}`);
  });
  return app;
}

function serveAll(
  app: FastifyInstance,
  deps: ServerDeps,
  place: Place,
  feed: Feed,
  stopping: AbortSignal,
): void {
  const { pageToken } = deps;
  const access = place.token === undefined ? undefined : createAccess(place.token, deps.clock);
  standGuard(app, { place, access, pageToken, askToLogIn: sendLogIn });
  serveHealth(app, { ...deps, mayKnow: (request) => access === undefined || isLetIn(access, request) });
  serveApi(app, { ...deps, feed });
  servePreview(app, { ...deps, stopping });
  app.register((scope) => servePage(scope, { pageToken, access }));
}

/** For the log, and for people: of all addresses of this machine, a name that was given to it. */
function urlOf({ host, names }: Place, port: number): string {
  const isAny = ['0.0.0.0', '::'].includes(host);
  const shown = (isAny ? names[0] : undefined) ?? host;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${port}/`;
}
