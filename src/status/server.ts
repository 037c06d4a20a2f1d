import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import serveFolder from '@fastify/static';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { explain } from '../errors.js';
import type { Live } from '../live.js';
import type { Log } from '../log.js';
import type { Overview, PageState } from './api.js';
import { type Access, answerErrors, createAccess, isLetIn, Refusal, standGuard, tooMany } from './auth.js';
import type { Place, StatusDeps } from './deps.js';
import type { Metrics } from './metrics.js';
import { createFeed, type Feed, serveApi, servePreview } from './routes.js';

/** What outlasts a move to another address. */
export interface ServerDeps extends StatusDeps {
  readonly metrics: Metrics;
  readonly pageToken: string;
  state(): Promise<PageState>;
}

export interface Server {
  /** Resolves with the address to open it by; rejects where it cannot listen there. */
  start(): Promise<string>;
  stop(): Promise<void>;
}

/** How long answers under way may take to end. Browsers keep connections open for no reason. */
const STOP_GRACE_MS = 1000;
const MOST_CONNECTIONS = 200;
const MAX_BODY_BYTES = 16 * 1024;

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
    bodyLimit: MAX_BODY_BYTES,
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

/** The built page; the path is the same from `dist/status` and, in tests, from `src/status`. */
const FOLDER = join(import.meta.dirname, '../../dist/status/page');

interface PageDeps {
  /** Put into the page: whoever sends it back has read the page. */
  readonly pageToken: string;
  readonly access: Access | undefined;
}

const HTML = 'text/html; charset=utf-8';

/** The page itself, its parts, and the form that asks for the token. */
async function servePage(app: FastifyInstance, { pageToken, access }: PageDeps): Promise<void> {
  const page = readFileSync(join(FOLDER, 'index.html'), 'utf8').replace(
    '<meta name="labfeed-token" content="">',
    `<meta name="labfeed-token" content="${pageToken}">`,
  );
  app.get('/', (_request, reply) => reply.type(HTML).send(page));

  await app.register(serveFolder, {
    root: FOLDER,
    prefix: '/page/',
    decorateReply: false,
    index: false,
    dotfiles: 'deny',
    // Browsers keep the files but ask each time, so that after an upgrade the page and the server match.
    cacheControl: false,
    setHeaders(reply, path) {
      reply.header('cache-control', 'no-cache');
      // For the sandboxed frames that show drafts: they count as another origin.
      if (path.endsWith('paper.css')) reply.header('cross-origin-resource-policy', 'cross-origin');
    },
  });
  if (access) serveLogIn(app, access);
}

function serveLogIn(app: FastifyInstance, access: Access): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: 4096 },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  app.post('/login', (request, reply) => {
    const given = request.body instanceof URLSearchParams ? request.body.get('token') : undefined;
    const result = access.logIn(given ?? '', request.ip);
    if (typeof result === 'number') throw tooMany(result);
    if (result === 'refused') return sendLogIn(reply, 'That is not the token.');
    return reply.header('set-cookie', result.cookie).redirect('/', 303);
  });
}

/** Asks for the token. */
function sendLogIn(reply: FastifyReply, message = ''): FastifyReply {
  const form = readFileSync(join(FOLDER, 'login.html'), 'utf8').replace('<!-- message -->', message);
  return reply.code(401).type(HTML).send(form);
}

interface HealthDeps extends Pick<StatusDeps, 'live' | 'overview' | 'journalTrouble'> {
  readonly metrics: Metrics;
  /** Whether who asks may know more than whether it works. */
  mayKnow(request: FastifyRequest): boolean;
}

/** What machines ask. */
function serveHealth(app: FastifyInstance, deps: HealthDeps): void {
  // It answers: so the process lives and its loop turns. Nothing else is looked at, lest a restart be tried as a cure
  // for a notebook that is away.
  app.get('/healthz', async () => ({ status: 'ok' }));

  app.get('/readyz', async (request, reply) => {
    const reasons = await hindrances(deps);
    if (reasons.length === 0) return { status: 'ready' };
    reply.code(503);
    // Reasons name folders and instruments.
    return { status: 'not ready', ...(deps.mayKnow(request) && { reasons }) };
  });

  app.get('/metrics', async (_request, reply) => {
    const { type, text } = await deps.metrics.collect();
    return reply.type(type).send(text);
  });
}

async function hindrances({ live, overview, journalTrouble }: HealthDeps): Promise<Hindrance[]> {
  const trouble = await journalTrouble();
  try {
    return findHindrances(live(), (await overview()).servers, trouble);
  } catch (error) {
    return findHindrances(live(), [], trouble ?? `the journal cannot be read: ${explain(error)}`);
  }
}

/** Something that keeps runs from being filed. */
interface Hindrance {
  readonly part: 'journal' | 'notebook' | 'folder' | 'instrument';
  readonly instrument?: string;
  readonly text: string;
}

/** All that keeps runs from being filed at this moment; nothing where labfeed is ready. */
function findHindrances(
  { notebook, instruments }: Live,
  servers: Overview['servers'],
  journalTrouble: string | undefined,
): Hindrance[] {
  const halted = servers.find(({ url }) => url === notebook.url)?.halted;
  const { gate } = notebook;
  return [
    ...(journalTrouble === undefined ? [] : [{ part: 'journal', text: journalTrouble } as const]),
    ...(halted === undefined ? [] : [{ part: 'notebook', text: halted } as const]),
    ...(gate.kind === 'down' ? [{ part: 'notebook', text: gate.reason } as const] : []),
    ...instruments.flatMap(hindranceOf),
  ];
}

function hindranceOf({ name, line, folder, watch }: Live['instruments'][number]): Hindrance[] {
  if (line === 'stopped')
    return [
      {
        part: 'instrument',
        instrument: name,
        text: `${name} is stopped by a mistake in its configuration, or by a failed test`,
      },
    ];
  if (line === 'starting')
    return [
      {
        part: 'instrument',
        instrument: name,
        text: `${name} is still starting: the first scan of ${watch} goes on`,
      },
    ];
  if (folder.state === 'present') return [];
  const reason = folder.reason === undefined ? '' : ` (${folder.reason})`;
  return [
    { part: 'folder', instrument: name, text: `the folder ${watch} of ${name} is ${folder.state}${reason}` },
  ];
}
