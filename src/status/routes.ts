import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Log } from '../log.js';
import { RUN_STATES } from '../model.js';
import type { DecisionRequest, PageState, Preview } from './api.js';
import { Refusal } from './auth.js';
import type { StatusDeps } from './deps.js';

interface ApiDeps extends Pick<StatusDeps, 'jobs' | 'job' | 'decide'> {
  readonly feed: Feed;
  state(): Promise<PageState>;
}

const id = z.coerce.number().pipe(z.int().positive());
const MOST_JOBS = 500;
const jobsQuery = z.object({
  state: z.enum(RUN_STATES).optional(),
  instrument: z.string().max(200).optional(),
  before: id.optional(),
  limit: id.pipe(z.number().max(MOST_JOBS)).default(50),
});

const run = z.int().positive();
const decision = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(['retry', 'refile', 'ignore']), run }),
  z.strictObject({ kind: z.literal('adopt'), run, experiment: z.int().positive() }),
  z.strictObject({
    kind: z.literal('backfill'),
    instrument: z.string().min(1).max(200),
    existing: z.union([z.enum(['ingest', 'skip']), z.strictObject({ since: z.iso.date() })]),
  }),
]) satisfies z.ZodType<DecisionRequest>;

/** What the page reads and decides. */
export function serveApi(app: FastifyInstance, { state, feed, jobs, job, decide }: ApiDeps): void {
  app.get('/api/state', async () => state());

  app.get('/api/events', { exposeHeadRoute: false }, (_request, reply) => {
    feed.requirePlace();
    reply.hijack();
    const head = { ...reply.getHeaders(), 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
    reply.raw.writeHead(200, head as Record<string, string>);
    feed.add(reply.raw);
  });

  app.get('/api/jobs', async ({ query }) => ({ jobs: await jobs(read(jobsQuery, query)) }));

  app.get<{ Params: { id: string } }>('/api/jobs/:id', async ({ params }) => found(params.id));

  app.get<{ Params: { id: string } }>('/api/jobs/:id/body', async ({ params }, reply) => {
    const { draft } = await found(params.id);
    if (!draft) throw new Refusal(404, `run ${params.id} has no draft`);
    return sendBody(reply, draft.body);
  });

  app.post('/api/decide', async ({ body }) => decide(read(decision, body)));

  async function found(number: string) {
    const run = id.safeParse(number).data;
    const detail = run === undefined ? undefined : await job(run);
    if (!detail) throw new Refusal(404, `there is no run ${number}`);
    return detail;
  }
}

/** For a frame that may neither run scripts nor load anything: what files say has become markup here. */
function sendBody(reply: FastifyReply, body: string): FastifyReply {
  return reply
    .header(
      'content-security-policy',
      "default-src 'none'; style-src 'self' 'unsafe-inline'; sandbox; frame-ancestors 'self'",
    )
    .type('text/html; charset=utf-8')
    .send(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>draft</title><link rel="stylesheet" href="/page/paper.css"></head><body>${body}</body></html>`,
    );
}

function read<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  const path = issue?.path.join('.');
  throw new Refusal(400, `${path ? `${path}: ` : ''}${issue?.message ?? 'this cannot be read'}`);
}

/** No date is later. */
const LATEST_MS = 8.64e15;

const MAX_SAMPLE_BYTES = 20 * 1024 * 1024;
/** Beyond what any mapping allows itself: somebody waits for the answer. */
const LONGEST_MS = 60_000;

const query = z.object({
  name: z.string().min(1).max(1000),
  instrument: z.string().max(200).optional(),
  /** Whatever is configured: how would it be read if nothing were? */
  learn: z.literal('1').optional(),
  /** When the file was last changed, as the browser knows it: some experiments have their date from it. */
  modified: z.coerce.number().pipe(z.int().nonnegative().max(LATEST_MS)).optional(),
});

/** Shows what would be filed for a file. Its bytes are in memory until the answer has left, and never elsewhere. */
export function servePreview(
  app: FastifyInstance,
  { preview, clock, stopping }: Pick<StatusDeps, 'preview' | 'clock'> & { readonly stopping: AbortSignal },
): void {
  let isBusy = false;
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );

  app.post('/api/preview', {
    bodyLimit: MAX_SAMPLE_BYTES,
    // Before the body is read: of those who wait, nothing is in memory.
    async onRequest(_request, reply) {
      if (isBusy) throw new Refusal(429, 'another file is being looked at; try again in a moment', 1);
      isBusy = true;
      reply.raw.once('close', () => {
        isBusy = false;
      });
    },
    async handler(request, reply) {
      const { success, data } = query.safeParse(request.query);
      if (!success) throw new Refusal(400, 'expected ?name=, the name of the file');
      if (!Buffer.isBuffer(request.body))
        throw new Refusal(415, "expected the file's bytes as application/octet-stream");
      const left = new AbortController();
      reply.raw.once('close', () => left.abort());
      const sample = {
        name: baseName(data.name),
        content: request.body,
        modifiedMs: data.modified ?? clock.now(),
        instrument: data.instrument || undefined,
        ...(data.learn !== undefined && { learn: true }),
      };
      return withinTime((signal) => preview(sample, signal), AbortSignal.any([left.signal, stopping]));
    },
  });
}

async function withinTime(
  act: (signal: AbortSignal) => Promise<Preview>,
  signal: AbortSignal,
): Promise<Preview> {
  const timeout = AbortSignal.timeout(LONGEST_MS);
  try {
    return await act(AbortSignal.any([signal, timeout]));
  } catch (error) {
    if (timeout.aborted) return { ok: false, reason: `reading it took longer than ${LONGEST_MS / 1000} s` };
    if (signal.aborted) throw new Refusal(503, 'given up: nobody waits for it any more');
    throw error;
  }
}

/** A name is no path, from whatever system the browser is. */
function baseName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  return ['', '.', '..'].includes(last) ? 'sample' : last.slice(0, 255);
}

/** Tells everybody who looks whenever something has changed: server-sent events. */
export interface Feed {
  /** The head of its answer is written already. */
  add(client: ServerResponse): void;
  /** Throws where there is no place for one more. */
  requirePlace(): void;
  stop(): void;
}

/** Each costs a socket; a browser that is left open for weeks is one. */
const MOST_CLIENTS = 50;
const EVERY_MS = 1000;
/** Proxies, and our own timeouts, take a connection for dead that is silent. */
const PING_EVERY = 15;
/** Who takes nothing any more is let go, rather than remembered for. */
const MOST_UNREAD = 4 * 1024 * 1024;

/** One timer for all, which runs only while somebody looks. */
export function createFeed(current: () => Promise<PageState>, log: Log): Feed {
  const clients = new Set<ServerResponse>();
  let timer: NodeJS.Timeout | undefined;
  let told = '';
  let event = '';
  let silentFor = 0;

  async function look(): Promise<boolean> {
    const state = await current();
    // What the clock alone changes is no news.
    const news = JSON.stringify({ ...state, at: 0, live: { ...state.live, at: 0 } });
    if (news === told) return false;
    told = news;
    event = `event: state\ndata: ${JSON.stringify(state)}\n\n`;
    return true;
  }

  function tell(text: string): void {
    for (const client of clients) {
      if (client.writableLength > MOST_UNREAD) client.destroy();
      else client.write(text);
    }
  }

  async function tick(): Promise<void> {
    silentFor += 1;
    const hasNews = await lookSafely();
    if (!hasNews && silentFor < PING_EVERY) return;
    tell(hasNews ? event : ': ping\n\n');
    silentFor = 0;
  }

  /** A timer has no caller: what is thrown in it would end the daemon. */
  async function lookSafely(): Promise<boolean> {
    try {
      return await look();
    } catch (error) {
      log.error({ err: error }, 'the state of the page could not be made');
      return false;
    }
  }

  /** News goes to all clients: they would get it within the second anyway. */
  async function greet(client: ServerResponse): Promise<void> {
    if (await lookSafely()) tell(event);
    else if (clients.has(client)) client.write(event);
  }

  function forget(client: ServerResponse): void {
    clients.delete(client);
    if (clients.size > 0) return;
    clearInterval(timer);
    timer = undefined;
    told = '';
    event = '';
  }

  return {
    requirePlace() {
      if (clients.size >= MOST_CLIENTS)
        throw new Refusal(503, `${MOST_CLIENTS} are looking at this page already; close one of them`, 30);
    },
    add(client) {
      clients.add(client);
      client.on('close', () => forget(client));
      client.on('error', () => client.destroy());
      timer ??= setInterval(tick, EVERY_MS);
      void greet(client);
    },
    stop() {
      for (const client of clients) client.end();
    },
  };
}
