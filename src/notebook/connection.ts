import { Pool } from 'undici';
import type { Answer, Method } from './exchange.js';
import { createRequest } from './request.js';
import type { Target } from './targets.js';

export interface ConnectionOptions {
  /** Base address, to which `/api/v2` is added. */
  readonly url: string;
  /** Asked before each request, so that a changed key is picked up. */
  readonly key: () => string;
  /** For one request as a whole, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly connections: number;
  /** The gate: each request is sent from inside it, and its failure is seen inside it. */
  readonly admit?: <T>(send: () => Promise<T>, signal?: AbortSignal) => Promise<T>;
  /** Told of each request with the status of its answer; undefined where none came. */
  readonly heard?: ((method: Method, status: number | undefined) => void) | undefined;
}

/** How an answer of the expected status becomes a value; throws where it cannot. */
type Read<T> = (answer: Answer) => T;

/** Far above what a notebook has to say, far below what would hurt this process. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * A connection that idles longer is opened anew, whatever the server promises: a firewall that forgot it in
 * between would let the next POST vanish without an answer.
 */
const IDLE_MS = 20_000;

/** The four verbs of the API, through the gate and over kept-alive connections. Nothing is opened yet. */
export function createConnection({
  url,
  key,
  timeoutMs,
  connections,
  admit = atOnce,
  heard,
}: ConnectionOptions) {
  const base = new URL(url);
  const pool = new Pool(base.origin, {
    connections,
    // One request on a connection at a time: undici may send a pipelined one again by itself.
    pipelining: 1,
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    keepAliveMaxTimeout: IDLE_MS,
  });
  const request = createRequest({ pool, base, key, timeoutMs, maxBytes: MAX_ANSWER_BYTES, heard });
  const underWay = new Set<Promise<unknown>>();

  async function send<T>(
    method: Method,
    target: Target,
    body: object | undefined,
    read: Read<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const sending = admit(() => request({ method, ...target, body, read }, signal), signal);
    underWay.add(sending);
    try {
      return await sending;
    } finally {
      underWay.delete(sending);
    }
  }

  return {
    get: <T>(target: Target, read: Read<T>, signal?: AbortSignal) =>
      send('GET', target, undefined, read, signal),
    post: <T>(target: Target, body: object, read: Read<T>, signal?: AbortSignal) =>
      send('POST', target, body, read, signal),
    patch: <T>(target: Target, body: object, read: Read<T>, signal?: AbortSignal) =>
      send('PATCH', target, body, read, signal),
    remove: (target: Target, signal?: AbortSignal) => send('DELETE', target, undefined, () => {}, signal),

    /** Lets what is under way end. Then without ceremony: attempts to connect that nobody awaits go, too. */
    async close(): Promise<void> {
      await Promise.allSettled(underWay);
      await pool.destroy();
    },
  };
}

const atOnce = <T>(send: () => Promise<T>): Promise<T> => send();
