import { isUtf8 } from 'node:buffer';
import { STATUS_CODES } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../log.js';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

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

type RefusalStatus = 400 | 401 | 403 | 404 | 405 | 413 | 422;

/** A request that the notebook does not carry out, and what it tells the client about it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: RefusalStatus;

  constructor(status: RefusalStatus, message: string) {
    super(message);
    this.status = status;
  }
}

export const badRequest = (message: string) => new Refusal(400, message);
export const unprocessable = (message: string) => new Refusal(422, message);
export const notFound = (what: string) => new Refusal(404, `${what} not found`);

/** The contract's words for the statuses that it has, HTTP's own for the others. */
const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'Bad request: syntax error, invalid request or missing field',
  401: 'Unauthorized: authentication required',
  403: 'Insufficient permissions',
  404: 'Resource not found',
  422: 'Unprocessable content: the request is valid but the server cannot process it',
};

/** Answers every error in the one form that clients know: code, message, description. */
export function answerErrors(log?: Log) {
  return (error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    const status = statusOf(error);
    // A client that hangs up in the middle of its body is no fault of ours.
    if (status === 500 && !request.raw.readableAborted) {
      log?.error({ err: error, method: request.method, url: request.url }, 'sandbox failed to answer');
    }
    const description = DESCRIPTIONS[status] ?? STATUS_CODES[status];
    reply.code(status).send({ code: status, message: error.message, description });
  };
}

/** Fastify's own errors (a malformed address, say) carry a status as well. */
function statusOf(error: Error): number {
  if (error instanceof Refusal) return error.status;
  const status = 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && status >= 400 ? status : 500;
}

/** What a request may carry at most. Above every limit of a single field. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;

interface Doorkeeper {
  useKey(key: string): { readonly canWrite: boolean } | undefined;
}

/**
 * Holds every request to the contract's general conventions before a route sees it. Real servers are
 * more lenient here and there; this one is the judge of our own client, so it lets nothing pass.
 */
export function holdToConventions(api: FastifyInstance, { useKey }: Doorkeeper): void {
  api.addHook('onRequest', async (request) => {
    authorise(request, useKey);
    if (!acceptsJson(request)) throw badRequest('requests must send Accept: application/json');
    if (request.is404) throw notFound(`path ${request.url}`);
  });
  api.addHook('preParsing', async (request) => checkContentType(request));
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', (_request: FastifyRequest, payload: AsyncIterable<Buffer>) =>
    readJson(payload),
  );
  // Within the API's own prefix, so that the hooks above run for unknown paths too.
  api.setNotFoundHandler((request) => {
    throw notFound(`path ${request.url}`);
  });
}

function authorise(request: FastifyRequest, useKey: Doorkeeper['useKey']): void {
  const key = request.headers.authorization;
  if (!key) throw new Refusal(401, 'the Authorization header with an API key is missing');
  const rights = useKey(key);
  if (!rights) throw new Refusal(401, 'the API key is not known');
  if (request.method !== 'GET' && !rights.canWrite) throw new Refusal(403, 'the API key is read-only');
}

function acceptsJson({ headers }: FastifyRequest): boolean {
  const types = headers.accept?.split(',').map((type) => type.split(';', 1)[0]?.trim().toLowerCase());
  return types?.includes('application/json') ?? false;
}

function checkContentType({ headers, method }: FastifyRequest): void {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (hasBody && (method === 'GET' || method === 'DELETE')) throw badRequest(`${method} takes no body`);
  const type = headers['content-type'];
  if ((hasBody || type !== undefined) && type !== 'application/json') {
    throw badRequest('a request with a body must send Content-Type: application/json, exactly');
  }
}

/**
 * Reads a body to its end even if it is too long, because a client whose connection is closed early never sees
 * the 413. Returns undefined for a body over the limit.
 */
export async function readBody(payload: AsyncIterable<Buffer>): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of payload) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return bytes > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks);
}

async function readJson(payload: AsyncIterable<Buffer>): Promise<unknown> {
  const bytes = await readBody(payload);
  if (!bytes) throw new Refusal(413, `the body is longer than ${MAX_BODY_BYTES} bytes`);
  return bytes.length === 0 ? undefined : parseObject(bytes);
}

function parseObject(bytes: Buffer): object {
  // Decoding would put replacement characters in place of bad bytes, and keep quiet about it.
  if (!isUtf8(bytes)) throw badRequest('the body is not UTF-8');
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch (error) {
    throw badRequest(`the body is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest('the body must be a JSON object');
  }
  return value;
}
