import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type Clock, every, type Loop } from '../clock.js';
import { jsonSchema } from '../config/problems.js';
import { explain } from '../errors.js';
import type { Log } from '../log.js';
import { describeImages } from '../text.js';
import {
  type DecisionAnswer,
  decisionSchema,
  idSchema,
  type Job,
  type JobsAnswer,
  jobsQuerySchema,
  type Overview,
  type PageState,
  type Preview,
  type StatusDeps,
  type UploadedSample,
} from './api.js';
import { HttpError, MAY_NOT_EDIT, type RoleCheck } from './auth.js';

interface ApiDeps extends Pick<StatusDeps, 'journal' | 'decide'> {
  readonly feed: ReturnType<typeof createFeed>;
  state(): Promise<PageState>;
}

/** Each takes up to two seconds. */
const MAX_SEARCHES = 5;

/** What the page reads, and the decisions it sends. */
export function serveApi(app: FastifyInstance, { state, feed, journal, decide }: ApiDeps): void {
  app.get('/api/state', state);

  app.get('/api/events', { exposeHeadRoute: false }, (_request, reply) => {
    feed.requireCapacity();
    reply.hijack();
    const head = { ...reply.getHeaders(), 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
    reply.raw.writeHead(200, head as Record<string, string>);
    feed.add(reply.raw);
  });

  /** One search at a time, however many pages are open. */
  let searched: Promise<unknown> = Promise.resolve();
  let searches = 0;
  app.get('/api/jobs', async ({ query }): Promise<JobsAnswer> => {
    const { search, ...filter } = parse(jobsQuerySchema, query);
    if (!search) return { jobs: await journal.jobs(filter) };
    if (searches >= MAX_SEARCHES) throw new HttpError(429, 'many searches are running; try again in a moment', 5);
    searches += 1;
    const found = searched.then(() => journal.search({ ...filter, search })).finally(() => (searches -= 1));
    searched = found.catch(() => undefined);
    return found;
  });

  app.get<{ Params: { id: string } }>('/api/jobs/:id', async ({ params }) => findJob(params.id));

  app.get<{ Params: { id: string } }>('/api/jobs/:id/body', async ({ params }, reply) => {
    const { draft } = await findJob(params.id);
    if (!draft) throw new HttpError(404, `run ${params.id} has no draft`);
    return sendBody(reply, draft.body);
  });

  app.post('/api/decide', async ({ body }) => decide(parse(decisionSchema, body)));

  async function findJob(text: string) {
    const number = idSchema.safeParse(text).data;
    const job = number === undefined ? undefined : await journal.job(number);
    if (!job) throw new HttpError(404, `there is no run ${text}`);
    return job;
  }
}

/** The body contains markup from templates and files: its policy allows no scripts and loads nothing but styles. */
function sendBody(reply: FastifyReply, body: string): FastifyReply {
  return reply
    .header(
      'content-security-policy',
      "default-src 'none'; style-src 'self' 'unsafe-inline'; sandbox; frame-ancestors 'self'",
    )
    .type('text/html; charset=utf-8')
    .send(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>draft</title><link rel="stylesheet" href="/page/paper.css"></head><body>${describeImages(body)}</body></html>`,
    );
}

function parse<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  const path = issue?.path.join('.');
  throw new HttpError(400, `${path ? `${path}: ` : ''}${issue?.message ?? 'malformed request'}`);
}

const MAX_ATTENTION = 100;

/** Less than the interval of the feed, so that each of its checks gets a new state. */
const CACHE_MS = 900;

/** What the page shows first. Read at most about once a second, however many pages are open. */
export function createPageState({ clock, live, journal }: StatusDeps): () => Promise<PageState> {
  let cached: { readonly state: Promise<PageState>; readonly at: number } | undefined;

  async function read(): Promise<PageState> {
    const now = live();
    const known = { at: clock.now(), version: now.version, live: now };
    try {
      const overview = await journal.overview();
      const attention = await readAttention(journal);
      return { ...known, overview, attention, attentionCount: countAttention(overview) };
    } catch (error) {
      // The rest of the state matters most when the journal is broken.
      const text = `the journal cannot be read: ${explain(error)}`;
      const alarm = { kind: 'journal', instrument: undefined, since: known.at, text } as const;
      const overview = { instruments: [], servers: [] };
      const broken = { ...now, alarms: [...now.alarms, alarm] };
      return { ...known, live: broken, overview, attention: [], attentionCount: 0 };
    }
  }

  return () => {
    const at = clock.monotonic();
    if (cached === undefined || at - cached.at >= CACHE_MS) cached = { state: read(), at };
    return cached.state;
  };
}

async function readAttention(journal: StatusDeps['journal']): Promise<readonly Job[]> {
  const [quarantined, held] = await Promise.all([
    journal.jobs({ state: 'quarantined', limit: MAX_ATTENTION }),
    journal.jobs({ state: 'held', limit: MAX_ATTENTION }),
  ]);
  return [...quarantined, ...held].sort((a, b) => b.id - a.id).slice(0, MAX_ATTENTION);
}

const countAttention = ({ instruments }: Overview): number =>
  instruments.reduce((sum, { runs }) => sum + runs.quarantined + runs.held, 0);

const MAX_CLIENTS = 50;
const CHECK_MS = 1000;
/** In checks. Proxies and our own timeouts close silent connections. */
const PING_EVERY = 15;
/** A client that has stopped reading is disconnected. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** Sends the state to every open page when it changes (server-sent events), in one loop while there are any. */
export function createFeed(state: () => Promise<PageState>, clock: Clock, log: Log) {
  const clients = new Set<ServerResponse>();
  let loop: Loop | undefined;
  let content = '';
  let event = '';
  let silentChecks = 0;

  async function check(): Promise<undefined> {
    silentChecks += 1;
    const isChanged = await readState().catch((error: unknown) => {
      log.error({ err: error }, 'cannot read the state for the status page');
      return false;
    });
    if (!isChanged && silentChecks < PING_EVERY) return;
    send(isChanged ? event : ': ping\n\n');
    silentChecks = 0;
  }

  async function readState(): Promise<boolean> {
    const current = await state();
    // A new timestamp alone is not a change.
    const next = JSON.stringify({ ...current, at: 0, live: { ...current.live, at: 0 } });
    if (next === content) return false;
    content = next;
    event = `event: state\ndata: ${JSON.stringify(current)}\n\n`;
    return true;
  }

  function send(text: string): void {
    for (const client of clients) {
      if (client.writableLength > MAX_UNREAD_BYTES) client.destroy();
      else client.write(text);
    }
  }

  function remove(client: ServerResponse): void {
    clients.delete(client);
    if (clients.size > 0) return;
    void loop?.stop();
    loop = undefined;
    content = '';
    event = '';
  }

  return {
    requireCapacity(): void {
      if (clients.size >= MAX_CLIENTS)
        throw new HttpError(503, `${MAX_CLIENTS} status pages are already open; close one of them`, 30);
    },
    /** The head of the response must have been written. */
    add(client: ServerResponse): void {
      clients.add(client);
      client.on('close', () => remove(client));
      client.on('error', () => client.destroy());
      // The first check of the loop sends the state to the first client.
      client.write(event);
      loop ??= every(CHECK_MS, clock, check);
    },
    stop(): void {
      for (const client of clients) client.end();
    },
  };
}

/** The largest timestamp of JavaScript. */
const MAX_TIME_MS = 8.64e15;
const MAX_SAMPLE_BYTES = 20 * 1024 * 1024;
/** More than any mapping may take; somebody is waiting for the result. */
const MAX_PREVIEW_MS = 60_000;

const MAX_MAPPING_BYTES = 64 * 1024;

const previewQuery = z.object({
  name: z.string().min(1).max(1000),
  instrument: z.string().max(200).optional(),
  /** Ignore the configured instruments. */
  learn: z.literal('1').optional(),
  /** When the file was modified, as reported by the browser; the date of the experiment may depend on it. */
  modified: z.coerce.number().pipe(z.int().nonnegative().max(MAX_TIME_MS)).optional(),
  /** So many bytes at the beginning of the body are the mapping, as YAML. */
  mapping: z.coerce.number().pipe(z.int().nonnegative().max(MAX_MAPPING_BYTES)).optional(),
  /** The hash of the file to replace. */
  replaces: z.string().max(100).optional(),
});

interface PreviewDeps extends Pick<StatusDeps, 'preview' | 'save' | 'instrumentFile' | 'clock'> {
  readonly roleOf: RoleCheck;
  readonly stopping: AbortSignal;
}

/** Shows what would be filed for a file. The file is held in memory until the response is sent, and nowhere else. */
export function servePreview(app: FastifyInstance, deps: PreviewDeps): void {
  const { preview, save, instrumentFile, roleOf, clock, stopping } = deps;
  let isBusy = false;
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );

  app.post('/api/preview', {
    bodyLimit: MAX_SAMPLE_BYTES,
    // Refuses before the body is read, so that at most one file is in memory.
    async onRequest(_request, reply) {
      if (isBusy) throw new HttpError(429, 'another file is being previewed; try again in a moment', 1);
      isBusy = true;
      reply.raw.once('close', () => {
        isBusy = false;
      });
    },
    async handler(request, reply) {
      const { sample } = readSample(request, clock);
      if (sample.mapping !== undefined && roleOf(request) !== 'edit') throw new HttpError(403, MAY_NOT_EDIT);
      const disconnected = new AbortController();
      reply.raw.once('close', () => disconnected.abort());
      const cancelled = AbortSignal.any([disconnected.signal, stopping]);
      return withTimeout((signal) => preview(sample, signal), cancelled);
    },
  });

  app.get('/api/schema', async () => jsonSchema());

  app.get('/api/instrument', async ({ query }) => {
    const { name } = parse(z.object({ name: z.string().max(200) }), query);
    const file = await instrumentFile(name);
    if (!file) throw new HttpError(404, `${name} has no file in instruments.d`);
    return file;
  });

  /** One after the other: each is compared with what is there. */
  let saved: Promise<unknown> = Promise.resolve();
  app.post('/api/instrument', {
    bodyLimit: MAX_SAMPLE_BYTES,
    async handler(request): Promise<DecisionAnswer> {
      const { sample, replaces } = readSample(request, clock);
      const text = sample.mapping;
      if (text === undefined) throw new HttpError(400, 'expected a mapping in front of the file');
      const answer = saved.then(() => save({ text, replaces }, sample));
      saved = answer.catch(() => undefined);
      return answer;
    },
  });
}

/** The file, and the mapping in front of it. */
function readSample({ query, body }: Pick<FastifyRequest, 'query' | 'body'>, clock: Clock) {
  const { success, data } = previewQuery.safeParse(query);
  if (!success) throw new HttpError(400, 'expected ?name= with the name of the file');
  if (!Buffer.isBuffer(body)) throw new HttpError(415, 'expected the bytes of the file as application/octet-stream');
  const { name, mapping: bytes = 0, modified, instrument, learn, replaces } = data;
  const sample: UploadedSample = {
    name: baseName(name),
    content: body.subarray(bytes),
    modifiedMs: modified ?? clock.now(),
    instrument: instrument || undefined,
    ...(learn !== undefined && { learn: true }),
    ...(bytes > 0 && { mapping: body.toString('utf8', 0, bytes) }),
  };
  return { sample, replaces: replaces || undefined };
}

async function withTimeout(act: (signal: AbortSignal) => Promise<Preview>, cancelled: AbortSignal): Promise<Preview> {
  const timeout = AbortSignal.timeout(MAX_PREVIEW_MS);
  try {
    return await act(AbortSignal.any([cancelled, timeout]));
  } catch (error) {
    if (timeout.aborted) return { ok: false, reason: `reading the file took longer than ${MAX_PREVIEW_MS / 1000} s` };
    if (cancelled.aborted) throw new HttpError(503, 'the preview was cancelled');
    throw error;
  }
}

/** The last part of the name, from any operating system. */
function baseName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  return ['', '.', '..'].includes(last) ? 'sample' : last.slice(0, 255);
}
