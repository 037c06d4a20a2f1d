import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { RUN_STATES } from '../model.js';
import type { DecisionRequest, PageState } from './api.js';
import type { StatusDeps } from './deps.js';
import type { Feed } from './feed.js';
import { Refusal } from './refusal.js';

export interface ApiDeps extends Pick<StatusDeps, 'jobs' | 'job' | 'decide'> {
  readonly feed: Feed;
  state(): PageState;
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

  app.get('/api/jobs', async ({ query }) => ({ jobs: jobs(read(jobsQuery, query)) }));

  app.get<{ Params: { id: string } }>('/api/jobs/:id', async ({ params }) => found(params.id));

  app.get<{ Params: { id: string } }>('/api/jobs/:id/body', async ({ params }, reply) => {
    const { draft } = found(params.id);
    if (!draft) throw new Refusal(404, `run ${params.id} has no draft`);
    return sendBody(reply, draft.body);
  });

  app.post('/api/decide', async ({ body }) => decide(read(decision, body)));

  function found(number: string) {
    const run = id.safeParse(number).data;
    const detail = run === undefined ? undefined : job(run);
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
