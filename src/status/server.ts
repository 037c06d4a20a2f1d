import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import { every, type Loop } from '../clock.js';
import { explain, systemCode } from '../errors.js';
import type { Log } from '../log.js';
import type { StatusAddress, StatusDeps } from './api.js';
import {
  addGuard,
  createErrorHandler,
  createRoleCheck,
  createTokenCheck,
  HttpError,
  pageUrl,
  type RoleCheck,
  type TokenCheck,
} from './auth.js';
import { createMetrics, serveMonitoring } from './metrics.js';
import { createFeed, createPageState, serveApi, servePreview } from './routes.js';

export type StatusServer = ReturnType<typeof createStatusServer>;

const RETRY_MS = 5000;

/** The status page at the configured address. */
export function createStatusServer(deps: StatusDeps) {
  const { clock, log } = deps;
  const shared: ServerDeps = {
    ...deps,
    metrics: createMetrics(deps),
    // Survives a reload of the configuration, so that open pages continue to work.
    pageToken: randomBytes(24).toString('base64url'),
  };
  let address: StatusAddress | undefined;
  let server: Awaited<ReturnType<typeof startServer>> | undefined;
  let problem: string | undefined;
  let retries: Loop | undefined;

  async function start(at: StatusAddress): Promise<void> {
    try {
      server = await startServer(shared, at);
      problem = undefined;
      log.info({ url: server.url }, 'status page listening');
    } catch (error) {
      const text = explainListenError(error, at);
      if (problem !== text) log.error({ err: error }, text);
      problem = text;
    }
  }

  async function retry(at: StatusAddress): Promise<undefined> {
    if (!server) await start(at);
  }

  async function stop(): Promise<void> {
    await retries?.stop();
    await server?.stop();
    retries = undefined;
    server = undefined;
    problem = undefined;
  }

  return {
    /** Listens at another address, or nowhere. Does not wait for a port that is in use. */
    async moveTo(next: StatusAddress | undefined): Promise<void> {
      if (isDeepStrictEqual(next, address)) return;
      await stop();
      address = next;
      if (next === undefined) return;
      await start(next);
      // Runs are filed even if the page cannot be served, so the daemon does not wait for it.
      if (!server) retries = every(RETRY_MS, clock, () => retry(next));
    },
    /** Undefined if the page is not served. */
    url: () => server?.url,
    /** Why the page is not served although it should be. */
    problem: () => problem,
    stop,
  };
}

function explainListenError(error: unknown, { host, port }: StatusAddress): string {
  const what = `cannot serve the status page at ${host}:${port}`;
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return `${what}, retrying: the port is in use. Stop the other program, or choose another port for \`status\``;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${what}, retrying: this machine does not have that address`;
    case 'EACCES':
      return `${what}, retrying: this user is not allowed to use that port. Choose a port above 1023 for \`status\``;
    default:
      return `${what}, retrying: ${explain(error)}`;
  }
}

/** What does not change when the server moves to another address. */
export interface ServerDeps extends StatusDeps {
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly pageToken: string;
}

/** How long requests may take to finish; idle connections of browsers stay open much longer. */
const STOP_GRACE_MS = 1000;

/** Rejects if it cannot listen there. */
export async function startServer(deps: ServerDeps, address: StatusAddress) {
  const { clock, log } = deps;
  const stopping = new AbortController();
  const state = createPageState(deps);
  const feed = createFeed(state, clock, log);
  const { token, login, readToken } = address;
  const secret = token ?? login;
  const tokens = secret === undefined ? undefined : createTokenCheck(secret, clock, login, readToken);
  const roleOf = createRoleCheck(tokens, address);
  const app = createApp(log);
  addGuard(app, { address, roleOf, pageToken: deps.pageToken, sendLogin });
  serveMonitoring(app, { ...deps, isAuthorized: (request) => roleOf(request) !== undefined });
  serveApi(app, { ...deps, state, feed });
  servePreview(app, { ...deps, roleOf, stopping: stopping.signal });
  app.register(async (scope) =>
    servePage(scope, { pageToken: deps.pageToken, tokens, roleOf, hasToken: token !== undefined }),
  );

  async function stop(): Promise<void> {
    stopping.abort();
    feed.stop();
    const deadline = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS);
    await app.close();
    clearTimeout(deadline);
  }
  try {
    await app.listen({ host: address.host, port: address.port });
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: pageUrl({ ...address, port: (app.server.address() as AddressInfo).port }), stop };
}

const MAX_CONNECTIONS = 200;
const MAX_BODY_BYTES = 16 * 1024;

function createApp(log: Log): FastifyInstance {
  const onError = createErrorHandler(log);
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    // Slow clients cannot hold connections for long.
    connectionTimeout: 60_000,
    requestTimeout: 30_000,
    keepAliveTimeout: 10_000,
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 5000 },
    frameworkErrors: onError,
    // A proxy on this machine names its clients. One on another machine counts as a single client.
    trustProxy: 'loopback',
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  app.setErrorHandler(onError);
  app.setNotFoundHandler(({ url }) => {
    throw new HttpError(404, `not found: ${url}`);
  });
  return app;
}

/** The built page; the path is the same from `dist/status` and, in tests, from `src/status`. */
const FOLDER = join(import.meta.dirname, '../../dist/status/page');

const HTML = 'text/html; charset=utf-8';

interface PageOptions {
  readonly pageToken: string;
  readonly tokens: TokenCheck | undefined;
  readonly roleOf: RoleCheck;
  /** Whether people can log in with a token. */
  readonly hasToken: boolean;
}

function servePage(app: FastifyInstance, { pageToken, tokens, roleOf, hasToken }: PageOptions): void {
  const page = readFileSync(join(FOLDER, 'index.html'), 'utf8').replace(
    '<meta name="labfeed-token" content="">',
    `<meta name="labfeed-token" content="${pageToken}">`,
  );
  app.get('/', (request, reply) =>
    reply
      .type(HTML)
      .send(page.replace('name="labfeed-role" content=""', `name="labfeed-role" content="${roleOf(request)}"`)),
  );
  for (const name of readdirSync(FOLDER)) serveFile(app, name);
  if (tokens) serveLogin(app, tokens, hasToken);
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/** A file of the page, read once: it matches this server even while an upgrade replaces it. */
function serveFile(app: FastifyInstance, name: string): void {
  const type = TYPES[extname(name)];
  if (type === undefined) return;
  const content = readFileSync(join(FOLDER, name));
  const etag = `"${createHash('sha256').update(content).digest('base64url')}"`;
  app.get(`/page/${name}`, ({ headers }, reply) => {
    // Browsers keep the files but ask each time, so that after an upgrade the page and the server match.
    reply.header('cache-control', 'no-cache').header('etag', etag).type(type);
    // The sandboxed frames that show drafts count as another origin.
    if (name === 'paper.css') reply.header('cross-origin-resource-policy', 'cross-origin');
    return headers['if-none-match'] === etag ? reply.code(304).send() : reply.send(content);
  });
}

function serveLogin(app: FastifyInstance, tokens: TokenCheck, hasToken: boolean): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: 4096 },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  // A link that was used or has expired also leads to the page, but logs nobody in.
  app.get<{ Querystring: { ticket?: string } }>('/login', ({ query }, reply) => {
    if (query.ticket === undefined && hasToken) return sendLogin(reply);
    const cookie = tokens.redeem(String(query.ticket ?? ''));
    return (cookie ? reply.header('set-cookie', cookie) : reply).redirect('/', 303);
  });
  app.post('/login', (request, reply) => {
    const given = request.body instanceof URLSearchParams ? request.body.get('token') : undefined;
    const cookie = tokens.logIn(given ?? '', request.ip);
    return cookie ? reply.header('set-cookie', cookie).redirect('/', 303) : sendLogin(reply, 'Wrong token.');
  });
}

function sendLogin(reply: FastifyReply, message = ''): FastifyReply {
  const form = readFileSync(join(FOLDER, 'login.html'), 'utf8').replace('<!-- message -->', message);
  return reply.code(401).type(HTML).send(form);
}
