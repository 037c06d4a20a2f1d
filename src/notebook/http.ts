import { type Dispatcher, Pool } from 'undici';
import { type Clock, systemClock } from '../clock.js';
import { explain, NotebookError } from '../errors.js';
import { type Asked, quote, refused, unanswered, unusable } from './errors.js';
import { type Answer, CalledOff, exchange, type Limits, type Method } from './exchange.js';
import { isKey } from './responses.js';
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

/** One request of the API, and how its answer is read. */
interface Call<T> extends Target {
  readonly method: Method;
  readonly body: object | undefined;
  /** Throws where the answer has not what it must. */
  readonly read: (answer: Answer) => T;
}

interface RequestOptions extends Limits {
  readonly pool: Dispatcher;
  readonly base: URL;
  /** Asked before each request, so that a changed key is picked up. */
  readonly key: () => string;
  readonly clock?: Clock;
  /** Told of each request with the status of its answer; undefined where none came. */
  readonly heard?: ((method: Method, status: number | undefined) => void) | undefined;
}

/** The only status that means done. */
const EXPECTED = { GET: 200, POST: 201, PATCH: 200, DELETE: 204 } as const satisfies Record<Method, number>;

/**
 * Sends one request and gives what was read from the answer. Everything that can go wrong comes as a
 * NotebookError; only a signal that called it off before it left comes as the signal's own reason.
 */
function createRequest({ pool, base, key, clock = systemClock, heard, ...limits }: RequestOptions) {
  const prefix = `${base.pathname.replace(/\/+$/, '')}/api/v2`;

  return async function request<T>(call: Call<T>, signal?: AbortSignal): Promise<T> {
    const asked: Asked = { method: call.method, path: prefix + call.path, on: call.on, key: present(key) };
    const outcome = await exchange(pool, sending(asked, call.body), limits, signal);
    const { answer } = outcome;
    if (answer === undefined) {
      const { sent, error } = outcome;
      // A write that had left may be carried out: that must not look like one that never was.
      if (error instanceof CalledOff && !(sent && call.method !== 'GET')) throw error.cause;
      heard?.(call.method, undefined);
      throw unanswered(asked, base.origin, sent, error);
    }
    heard?.(call.method, answer.status);
    if (answer.status !== EXPECTED[call.method]) throw refused(asked, answer, clock.now());
    try {
      return call.read(answer);
    } catch (error) {
      throw unusable(asked, answer, error instanceof Error ? error : new Error(String(error)));
    }
  };
}

function sending({ method, path, key }: Asked, body: object | undefined) {
  const headers = { Authorization: key, Accept: 'application/json' };
  if (body === undefined) return { method, path, headers, body: null };
  // Without a charset: eLabFTW refuses the type with one.
  const typed = { ...headers, 'Content-Type': 'application/json' };
  return { method, path, headers: typed, body: JSON.stringify(body) };
}

/** A key that cannot be had or sent is like one that the server refuses: everybody waits for a better one. */
function present(key: () => string): string {
  const hint = 'check where `notebook.key` points';
  let text: string;
  try {
    text = key();
  } catch (cause) {
    const why = quote([explain(cause)], '');
    throw new NotebookError('auth', `the API key cannot be read: ${why}`, { lost: false, hint, cause });
  }
  if (isKey(text)) return text;
  const what = text === '' ? 'is empty' : 'has spaces or characters that no header can carry';
  throw new NotebookError('auth', `the API key ${what}`, { lost: false, hint });
}
