import { STATUS_CODES } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Log } from '../log.js';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export type SandboxRequest = FastifyRequest<{
  Params: Readonly<Record<string, string>>;
  Querystring: Readonly<Record<string, string | string[] | undefined>>;
}>;

export type Handler = (request: SandboxRequest, reply: FastifyReply) => FastifyReply;

/** Adds a handler for each method of a path. Other methods get 405. */
export function resource(app: FastifyInstance, url: string, handlers: Partial<Record<Method, Handler>>): void {
  for (const [method, handler] of Object.entries(handlers)) app.route({ url, method, handler });
  const allowed = Object.keys(handlers);
  app.route({
    url,
    method: app.supportedMethods.filter((method) => !allowed.includes(method)),
    // Before the body is read: the wrong method is reported first.
    onRequest: async (request, reply) => {
      reply.header('allow', allowed.join(', '));
      throw new Refusal(405, `${request.method} is not allowed here, only ${allowed.join(', ')}`);
    },
    handler: () => undefined,
  });
}

/** Reads an id from a path. Only one spelling is accepted, so that no two addresses mean the same record. */
export function readId(text: string | undefined, name: string): number {
  if (!text || !/^(?:0|[1-9][0-9]*)$/.test(text)) throw new Refusal(400, `${name} must be an integer`);
  // SQLite rejects larger numbers, and no record has such an id.
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

const day = z.iso.date();

/** A date that exists, as YYYY-MM-DD. */
export const isDate = (text: string): boolean => day.safeParse(text).success;

const MAX_BODY_BYTES = 8 * 1024 * 1024;

/**
 * Returns undefined for a body that is too large. It is read to its end all the same: a client whose connection is
 * closed early would not see the 413.
 */
export async function readBody(payload: AsyncIterable<Buffer>, maxBytes = MAX_BODY_BYTES): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of payload) {
    bytes += chunk.length;
    if (bytes <= maxBytes) chunks.push(chunk);
    else chunks.length = 0;
  }
  return bytes > maxBytes ? undefined : Buffer.concat(chunks);
}

interface RefusalDetails {
  /** Default: the status. */
  readonly code?: number;
  readonly description?: string;
  /** Whether the message is sent as an HTML page, as by a proxy, instead of in JSON. */
  readonly html?: boolean;
}

/** A request that is not carried out. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly details: RefusalDetails;

  constructor(status: number, message: string, details: RefusalDetails = {}) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

export const notFound = (what: string) => new Refusal(404, `${what} not found`);

/** In the words of the contract where it has any. */
const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'Bad request: syntax error, invalid request or missing field',
  401: 'Unauthorized: authentication required',
  403: 'Insufficient permissions',
  404: 'Resource not found',
  422: 'Unprocessable content: the request is valid but the server cannot process it',
};

/** Answers with code, message and description. */
export function answerErrors(log?: Log) {
  return (error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    const status = statusOf(error);
    const { code = status, description, html }: RefusalDetails = error instanceof Refusal ? error.details : {};
    // A client that disconnects while it sends the body is not an error of the sandbox.
    if (!(error instanceof Refusal) && status === 500 && !request.raw.readableAborted) {
      log?.error({ err: error, method: request.method, url: request.url }, 'sandbox request failed');
    }
    reply.code(status);
    if (html) reply.type('text/html; charset=UTF-8').send(error.message);
    else {
      const usual = DESCRIPTIONS[status] ?? STATUS_CODES[status];
      reply.send({ code, message: error.message, description: description ?? usual });
    }
  };
}

/** Errors of Fastify itself, such as a malformed address, have a status too. */
function statusOf(error: Error): number {
  if (error instanceof Refusal) return error.status;
  const status = 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && status >= 400 ? status : 500;
}
