import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../clock.js';
import { explain, NotebookError } from '../errors.js';
import { isKey } from './answers.js';
import { type Answer, CalledOff, exchange, type Limits, type Method } from './exchange.js';
import { type Asked, refused, unanswered, unusable } from './failure.js';
import { quote } from './quote.js';
import type { Target } from './targets.js';

/** One request of the API, and how its answer is read. */
export interface Call<T> extends Target {
  readonly method: Method;
  readonly body: object | undefined;
  /** Throws where the answer has not what it must. */
  readonly read: (answer: Answer) => T;
}

export interface RequestOptions extends Limits {
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
export function createRequest({ pool, base, key, clock = systemClock, heard, ...limits }: RequestOptions) {
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
