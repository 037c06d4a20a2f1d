import type { FastifyInstance, FastifyRequest } from 'fastify';
import { explain } from '../errors.js';
import type { StatusDeps } from './deps.js';
import type { Metrics } from './metrics.js';
import { findHindrances, type Hindrance } from './readiness.js';

export interface HealthDeps extends Pick<StatusDeps, 'live' | 'overview' | 'journalTrouble'> {
  readonly metrics: Metrics;
  /** Whether who asks may know more than whether it works. */
  mayKnow(request: FastifyRequest): boolean;
}

/** What machines ask. */
export function serveHealth(app: FastifyInstance, deps: HealthDeps): void {
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
    return findHindrances(live(), overview().servers, trouble);
  } catch (error) {
    return findHindrances(live(), [], trouble ?? `the journal cannot be read: ${explain(error)}`);
  }
}
