import { setMaxListeners } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** What goes onto the wire. */
interface Sending {
  readonly method: Method;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** What came back. */
export interface Answer {
  readonly status: number;
  /** By lower-case name. One that came several times has all its values, joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Why the body ended early, where it did. Status and headers are whole all the same. */
  readonly cut?: Error;
}

type Exchange =
  | { readonly answer: Answer }
  /** `sent` is false only where no byte of the request can have left. */
  | { readonly answer: undefined; readonly sent: boolean; readonly error: Error };

export interface Limits {
  /** For the whole exchange: a body that drips for ever never trips a time-out between two chunks. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** The caller's signal ended the exchange. */
export class CalledOff extends Error {
  override readonly name = 'CalledOff';
}

/** The answer was longer than we are ready to hold. */
export class TooLong extends Error {
  override readonly name = 'TooLong';
}

/** Sends one request and hears its answer out. Never rejects: what went wrong is part of the outcome. */
export async function exchange(
  pool: Dispatcher,
  sending: Sending,
  { timeoutMs, maxBytes }: Limits,
  signal?: AbortSignal,
): Promise<Exchange> {
  const listener = new Listener(maxBytes);
  const deadline = setTimeout(() => {
    listener.giveUp(new Error(`no full answer within ${timeoutMs / 1000} s`));
  }, timeoutMs);
  // One signal may stop all the requests of a daemon: more listeners than Node thinks usual are no leak here.
  if (signal) setMaxListeners(0, signal);
  const callOff = () => listener.giveUp(new CalledOff('called off', { cause: signal?.reason }));
  signal?.addEventListener('abort', callOff, { once: true });
  if (signal?.aborted) callOff();
  else pool.dispatch(sending, listener);
  try {
    return await listener.heard;
  } finally {
    clearTimeout(deadline);
    signal?.removeEventListener('abort', callOff);
  }
}

/**
 * undici's own handler interface rather than `pool.request`, for the one fact that decides between
 * "not done" and "lost": `onRequestStart` comes when a connection stands and the request is about to be
 * written. An error before it, whatever its code, left nothing on the wire.
 */
class Listener implements Dispatcher.DispatchHandler {
  readonly heard: Promise<Exchange>;
  readonly #maxBytes: number;
  #tell: (outcome: Exchange) => void = () => {};
  #controller?: Dispatcher.DispatchController;
  #givenUp?: Error;
  #head?: Pick<Answer, 'status' | 'headers'>;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.heard = new Promise((resolve) => {
      this.#tell = resolve;
    });
  }

  giveUp(error: Error): void {
    this.#givenUp = error;
    this.#controller?.abort(error);
    this.#end(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Given up while it waited for a connection and reported as not sent: so it must not leave now.
    if (this.#givenUp) controller.abort(this.#givenUp);
    else this.#controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // 1xx only announces an answer.
    if (status >= 200) this.#head = { status, headers: joined(headers) };
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#maxBytes) this.#chunks.push(chunk);
    else controller.abort(new TooLong(`the answer is longer than ${this.#maxBytes} bytes`));
  }

  onResponseEnd(): void {
    // undici frees the connection in an immediate that it sets after this call. Who heard the answer
    // sooner, and asked again, would open a second connection.
    queueMicrotask(() => setImmediate(() => this.#end()));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(error);
  }

  #end(error?: Error): void {
    if (this.#head) {
      const text = new TextDecoder().decode(Buffer.concat(this.#chunks));
      this.#tell({ answer: { ...this.#head, text, ...(error ? { cut: error } : {}) } });
    } else {
      const sent = this.#controller !== undefined;
      this.#tell({ answer: undefined, sent, error: error ?? new Error('the answer had no status') });
    }
  }
}

const joined = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
