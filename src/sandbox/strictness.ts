import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { badRequest, notFound, Refusal } from './refusal.js';

/** What a request may carry at most. Above every limit of a single field. */
export const MAX_BODY_BYTES = 8 * 1024 * 1024;

export interface Doorkeeper {
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

/** Reads a body to its end even where it is too long: a client that is cut off never sees the 413. */
async function readJson(payload: AsyncIterable<Buffer>): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of payload) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (bytes > MAX_BODY_BYTES) throw new Refusal(413, `the body is longer than ${MAX_BODY_BYTES} bytes`);
  return bytes === 0 ? undefined : parseObject(Buffer.concat(chunks));
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
