import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Log } from '../../log.js';
import { MAX_BODY_BYTES } from '../strictness.js';
import { answerFailures, improper, PageFailure, tooLarge, unauthorised } from './failure.js';
import { parseJson } from './php.js';
import { readForm } from './sent-file.js';

export interface Doorkeeper {
  useKey(key: string): { readonly canWrite: boolean } | undefined;
  /** How a key that is not known is refused: 4.9 to 5.1 answered 400 and plain text. */
  readonly badKey: 400 | 401;
  readonly log?: Log | undefined;
}

/** What holds for every request: the key, the type of a body, the form of errors, and a cookie nobody asked for. */
export function followElabftw(api: FastifyInstance, doorkeeper: Doorkeeper): void {
  api.setErrorHandler(answerFailures(doorkeeper.log));
  api.addHook('onRequest', async (request) => authorise(request, doorkeeper));
  api.addHook('preParsing', async (request) => checkContentType(request));
  api.addHook('onSend', async (_request, reply) => {
    const session = randomBytes(16).toString('hex');
    // Written without a charset, which Fastify would add.
    if (/^application\/json/.test(String(reply.getHeader('content-type')))) reply.type('application/json');
    reply.header('set-cookie', `PHPSESSID=${session}; path=/; secure; HttpOnly; SameSite=Lax`);
  });
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', readBody);
  api.setNotFoundHandler(() => {
    throw improper('Incorrect endpoint.');
  });
}

function authorise({ method, headers }: FastifyRequest, { useKey, badKey }: Doorkeeper): void {
  const key = headers.authorization;
  const rights = key === undefined ? undefined : useKey(key);
  if (!rights) {
    const reason = key === undefined ? '' : 'No corresponding API key found!';
    throw badKey === 400 && reason ? new PageFailure(400, reason) : unauthorised(reason);
  }
  if (method !== 'GET' && !rights.canWrite) {
    throw improper('You are using a read-only key to execute a write action.');
  }
}

const isMultipart = ({ headers }: FastifyRequest) =>
  headers['content-type']?.startsWith('multipart/form-data') ?? false;

/** Also without a body: this is what keeps other sites' pages from posting in a user's name. */
function checkContentType(request: FastifyRequest): void {
  const { method, headers, url } = request;
  if (method === 'GET' || method === 'DELETE') return;
  if (isMultipart(request) && method === 'POST' && /\/uploads\/?(?:\?|$)/.test(url)) return;
  if (headers['content-type'] !== 'application/json') throw improper('Incorrect content-type header.');
}

async function readBody(request: FastifyRequest, payload: AsyncIterable<Buffer>): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of payload) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MAX_BODY_BYTES) throw tooLarge();
  return isMultipart(request) ? readForm(request.headers['content-type'] ?? '', bytes) : parseJson(bytes);
}
