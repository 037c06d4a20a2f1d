import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.js';
import type { CannedAnswer, Fault, Faults, Wait } from './faults.js';
import type { RequestLog, SeenRequest } from './requests.js';
import { MAX_BODY_BYTES } from './strictness.js';

export interface Front {
  readonly requests: RequestLog;
  readonly faults: Faults;
  readonly clock: Clock;
  /** Aborted when the notebook stops: what waits then is never carried out. */
  readonly stopping: AbortSignal;
  keyId(authorization: string): number | undefined;
}

interface Passing {
  readonly seen: SeenRequest;
  readonly body: Buffer;
  readonly fault: Fault | undefined;
}

/** Stands between the network and the API like a bad line: sees every request, and may lose it or its answer. */
export function standInFront(api: FastifyInstance, front: Front): void {
  const passing = new WeakMap<FastifyRequest, Passing>();

  api.addHook('onRequest', async (request, reply) => {
    const body = await readBody(request.raw);
    const seen = front.requests.add(describe(request, body, front));
    const fault = front.faults.next(seen);
    passing.set(request, { seen, body, fault });
    const outcome = fault ? await meet(fault, request, front) : 'passes';
    if (outcome === 'passes') return undefined;
    if (outcome === 'cut') {
      reply.hijack();
      request.raw.socket.destroy();
      front.requests.end(seen);
      return reply;
    }
    return reply.send(replace(reply, outcome));
  });

  api.addHook('preParsing', async (request) => Readable.from([passing.get(request)?.body ?? '']));

  api.addHook('onSend', async (request, reply, payload) => {
    const { seen, fault } = passing.get(request) ?? {};
    if (seen) front.requests.end(seen, reply.statusCode);
    if (fault === 'cutAfter') request.raw.socket.destroy();
    if (typeof fault !== 'object') return payload;
    if ('holdAnswer' in fault) await passed(fault.holdAnswer, front);
    return 'answer' in fault && fault.carriedOut ? replace(reply, fault) : payload;
  });
}

/** What becomes of the request before the notebook hears of it. */
async function meet(
  fault: Fault,
  request: FastifyRequest,
  front: Front,
): Promise<'passes' | 'cut' | CannedAnswer> {
  if (fault === 'cutBefore') return 'cut';
  if (fault === 'cutAfter' || 'holdAnswer' in fault) return 'passes';
  if ('answer' in fault) return fault.carriedOut ? 'passes' : fault;
  if ('cutThen' in fault) request.raw.socket.destroy();
  const wait = 'cutThen' in fault ? fault.cutThen : fault.holdRequest;
  return (await passed(wait, front)) ? 'passes' : 'cut';
}

/** Puts a canned answer in the place of whatever the reply held, and returns its body. */
function replace(reply: FastifyReply, { answer, headers = {}, html, json }: CannedAnswer): string {
  for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name);
  const usual =
    answer >= 400 ? { code: answer, message: `answered ${answer} on purpose`, description: '' } : '';
  const body = html ?? ((json ?? usual) ? JSON.stringify(json ?? usual) : '');
  const type = html === undefined && body ? 'application/json' : 'text/html; charset=UTF-8';
  reply.code(answer).header('content-type', type).headers(headers);
  return body;
}

/** Whether the wait came to its end, rather than to the notebook's. */
async function passed(wait: Wait, { clock, stopping }: Front): Promise<boolean> {
  if (stopping.aborted) return false;
  const stopped = new Promise<void>((resolve) => {
    stopping.addEventListener('abort', () => resolve(), { once: true });
  });
  const over = 'ms' in wait ? clock.sleep(wait.ms, stopping) : wait.until;
  await Promise.race([stopped, over]).catch(() => undefined);
  return !stopping.aborted;
}

function describe(request: FastifyRequest, body: Buffer, { keyId }: Front) {
  const { authorization, ...headers } = request.headers;
  return {
    method: request.method,
    path: request.url,
    headers,
    keyId: authorization === undefined ? undefined : keyId(authorization),
    body: body.toString(),
  };
}

/** Reads to the end, and keeps no more of it than shows that it is too long. */
async function readBody(raw: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of raw as AsyncIterable<Buffer>) {
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    bytes += chunk.length;
  }
  return Buffer.concat(chunks);
}
