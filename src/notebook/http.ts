import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** The only status that means done. */
export const SUCCESS_STATUS: Readonly<Record<Method, number>> = { GET: 200, POST: 201, PATCH: 200, DELETE: 204 };

/** The limit for any other status: its body is only quoted. */
export const MAX_ERROR_BYTES = 256 * 1024;

interface HttpRequest {
  readonly method: Method;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | AsyncIterable<Uint8Array> | null;
}

export interface HttpResponse {
  readonly status: number;
  /** By lower-case name. The values of a repeated header are joined with commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Why the body is incomplete, if it is. Status and headers are complete. */
  readonly incomplete?: Error;
}

type Exchange =
  | { readonly response: HttpResponse }
  /** `isSent` is false only if certainly no byte of the request was sent. */
  | { readonly response: undefined; readonly isSent: boolean; readonly error: Error };

interface Limits {
  /** For the whole exchange: a body that trickles in never exceeds a timeout between two chunks. */
  readonly timeoutMs: number;
  /** For a response with the expected status. */
  readonly maxBytes: number;
}

export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

export class ResponseTooLongError extends Error {
  override readonly name = 'ResponseTooLongError';
}

/** Sends one request and receives the whole response. Never rejects: failures are part of the result. */
export async function exchange(
  pool: Dispatcher,
  request: HttpRequest,
  { timeoutMs, maxBytes }: Limits,
): Promise<Exchange> {
  const handler = new ResponseHandler(request.method, maxBytes);
  const timer = setTimeout(() => {
    handler.cancel(new TimeoutError(`timed out after ${timeoutMs / 1000} s`));
  }, timeoutMs);
  // undici's own time limit for the response would end a long upload.
  pool.dispatch({ headersTimeout: timeoutMs, ...request } as Dispatcher.DispatchOptions, handler);
  try {
    return await handler.result;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * undici's handler interface instead of `pool.request`, because it tells "not done" from "unknown outcome":
 * `onRequestStart` is called when the connection is established and the request is about to be written. After an error
 * before that, nothing was sent.
 */
class ResponseHandler implements Dispatcher.DispatchHandler {
  readonly result: Promise<Exchange>;
  readonly #method: Method;
  #maxBytes: number;
  #resolve: (exchange: Exchange) => void = () => {};
  #controller?: Dispatcher.DispatchController;
  #cancelled?: Error;
  #head?: Pick<HttpResponse, 'status' | 'headers'>;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(method: Method, maxBytes: number) {
    this.#method = method;
    this.#maxBytes = maxBytes;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  cancel(error: Error): void {
    this.#cancelled = error;
    this.#controller?.abort(error);
    this.#end(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Cancelled while it waited for a connection, and reported as not sent: it must not be sent now.
    if (this.#cancelled) controller.abort(this.#cancelled);
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // 1xx only announces a response.
    if (status < 200) return;
    this.#head = { status, headers: joined(headers) };
    if (status !== SUCCESS_STATUS[this.#method]) this.#maxBytes = Math.min(this.#maxBytes, MAX_ERROR_BYTES);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#maxBytes) this.#chunks.push(chunk);
    else controller.abort(new ResponseTooLongError(`it is longer than ${this.#maxBytes} bytes`));
  }

  onResponseEnd(): void {
    // undici frees the connection in an immediate that it schedules after this call. A caller that got the response
    // earlier, and sent the next request, would open a second connection.
    queueMicrotask(() => setImmediate(() => this.#end()));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(error);
  }

  #end(error?: Error): void {
    if (this.#head) {
      const [first, ...others] = this.#chunks;
      const text = UTF8.decode(others.length === 0 ? first : Buffer.concat(this.#chunks));
      this.#resolve({ response: { text, ...this.#head, ...(error ? { incomplete: error } : {}) } });
    } else {
      const isSent = this.#controller !== undefined;
      this.#resolve({ response: undefined, isSent, error: error ?? new Error('the response has no status') });
    }
  }
}

const UTF8 = new TextDecoder();

function joined(headers: IncomingHttpHeaders): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const name of Object.keys(headers)) texts[name] = String(headers[name]);
  return texts;
}

/** A file to attach. It is sent as it is read, and never whole in memory. */
export interface FileToSend {
  /** As the notebook shows it. */
  readonly name: string;
  readonly size: number;
  /** The upload of which it is a new version. */
  readonly replaces?: number | undefined;
  /** Called once, when it is the request's turn. If it throws, the request is cut off. */
  open(): AsyncIterable<Uint8Array>;
}

/** The body of a form with one file. */
export interface Form {
  readonly type: string;
  readonly length: number;
  open(): AsyncIterable<Uint8Array>;
}

/** Written here because undici's FormData takes files that are in memory or have a path, not streams. */
export function formOf({ name, size, replaces, open }: FileToSend): Form {
  const boundary = `labfeed-${randomBytes(16).toString('hex')}`;
  const head = Buffer.from(
    `${replaces === undefined ? '' : actionField(boundary)}--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${uploadName(name)}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    length: head.length + size + tail.length,
    async *open() {
      yield head;
      yield* open();
      yield tail;
    },
  };
}

const actionField = (boundary: string): string =>
  `--${boundary}\r\nContent-Disposition: form-data; name="action"\r\n\r\nreplace\r\n`;

const MAX_CHARACTERS = 200;

/**
 * Without what a header cannot carry or PHP cuts off: quotes, line breaks, folders. Browsers encode some of them, and
 * PHP does not decode them. The end of a long name stays, because of the extension.
 */
export function uploadName(name: string): string {
  const clean = name
    .replace(/"/g, "'")
    .replace(/[/\\]/g, '_')
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029\p{Cs}]+/gu, ' ')
    .trim();
  return [...clean].slice(-MAX_CHARACTERS).join('') || 'file';
}
