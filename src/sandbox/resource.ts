import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, Refusal } from './refusal.js';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export type SandboxRequest = FastifyRequest<{
  Params: Readonly<Record<string, string>>;
  Querystring: Readonly<Record<string, string | string[] | undefined>>;
}>;

export type Handler = (request: SandboxRequest, reply: FastifyReply) => FastifyReply;

/** Puts a handler behind each method of a path. All other methods there are refused, not unknown. */
export function resource(
  app: FastifyInstance,
  url: string,
  handlers: Partial<Record<Method, Handler>>,
): void {
  for (const [method, handler] of Object.entries(handlers)) app.route({ url, method, handler });
  const allowed = Object.keys(handlers);
  app.route({
    url,
    method: app.supportedMethods.filter((method) => !allowed.includes(method)),
    // Before the body is looked at: whatever it holds, the method is what is wrong.
    onRequest: async (request, reply) => {
      reply.header('allow', allowed.join(', '));
      throw new Refusal(405, `${request.method} is not possible here, only ${allowed.join(', ')}`);
    },
    handler: () => undefined,
  });
}

/** An id from a path. One spelling only, so that no two addresses mean the same record. */
export function readId(text: string | undefined, name: string): number {
  if (!text || !/^(?:0|[1-9][0-9]*)$/.test(text)) throw badRequest(`${name} must be an integer`);
  // Beyond this, SQLite would refuse the number; no record is there.
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

/** Answers a creation: 201, the address of what was made, and no body. */
export type AnswerCreated = (reply: FastifyReply, path: string) => FastifyReply;

export function answerCreated(origin: () => string): AnswerCreated {
  return (reply, path) => reply.code(201).header('location', `${origin()}/api/v2${path}`).send();
}
