import { NotebookError, systemCode } from '../errors.js';
import { type Body, readBody } from './body.js';
import { type Answer, CalledOff, type Method, TooLong } from './exchange.js';
import { quote } from './quote.js';
import { httpDate, retryAfterMs } from './retry-after.js';
import { type Subject, verdictOn, verdictOnSilence } from './verdict.js';

/** What was asked, as far as an error has to know it. */
export interface Asked {
  readonly method: Method;
  readonly path: string;
  readonly on: Subject;
  /** Never shown: known here so that it can be kept out. */
  readonly key: string;
}

/** The answer has another status than the expected one. */
export function refused(asked: Asked, answer: Answer, now: number): NotebookError {
  const { status, headers } = answer;
  const body = readBody(answer);
  const verdict = verdictOn({ ...asked, status, body });
  const waits = status === 429 || status >= 500;
  const wait = waits ? retryAfterMs(headers['retry-after'], serverTime(answer) ?? now) : undefined;
  return new NotebookError(verdict.failure, sentence(asked, status, body), {
    ...verdict,
    status,
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  });
}

/** The status is the expected one, but the answer cannot be used. */
export function unusable(asked: Asked, answer: Answer, problem: Error): NotebookError {
  const { status, cut } = answer;
  const line = quote([problem.message], asked.key);
  if (problem === cut) {
    const verdict = verdictOnSilence(asked.method, true);
    return new NotebookError('server', `${title(asked)} answered ${status} and broke off: ${line}`, {
      ...verdict,
      ...(cut instanceof TooLong ? { scope: 'run' } : {}),
      status,
      cause: problem,
    });
  }
  const verdict = verdictOn({ ...asked, status, body: readBody(answer) });
  return new NotebookError(verdict.failure, `${title(asked)} answered ${status} with ${line}`, {
    ...verdict,
    status,
  });
}

/** No status came. `sent`: whether a byte of the request can have left. */
export function unanswered(asked: Asked, origin: string, sent: boolean, error: Error): NotebookError {
  const why = quote([reasonOf(error)], asked.key);
  const what = sent ? `got no answer from ${origin}` : `was not sent, no connection to ${origin}`;
  const verdict = verdictOnSilence(asked.method, sent, hintFor(error, sent));
  return new NotebookError(verdict.failure, `${title(asked)} ${what}: ${why}`, {
    ...verdict,
    // Our own doing says nothing about the server.
    ...(error instanceof CalledOff ? { scope: 'run' } : {}),
    cause: error,
  });
}

const title = ({ method, path }: Asked): string => `${method} ${path}`;

function sentence(asked: Asked, status: number, body: Body): string {
  const page = body.form === 'page';
  const said = quote(quotable(asked, status, body), asked.key);
  return `${title(asked)} answered ${status}${page ? ' with a web page' : ''}${said ? `: ${said}` : ''}`;
}

/** An unexpected success may hold records or a fresh key, and data about keys their hashes: not shown. */
function quotable({ on }: Asked, status: number, { form, words, data }: Body): readonly string[] {
  if (status < 300 && form !== 'page') return [];
  return data === undefined || on === 'keys' ? words : [data];
}

/** A date in `Retry-After` is meant by the server's clock, which may not be ours. */
const serverTime = ({ headers }: Answer): number | undefined => httpDate(headers['date'] ?? '');

/** A failed attempt at several addresses has an empty message of its own. */
function reasonOf(error: Error): string {
  const [first] = error instanceof AggregateError ? error.errors : [];
  return error.message || (first instanceof Error ? first.message : '') || systemCode(error) || error.name;
}

function hintFor(error: Error, sent: boolean): string | undefined {
  if (error instanceof CalledOff || sent) return undefined;
  return /CERT|SIGNED|^UNABLE_TO|TLS|SSL|EPROTO/.test(systemCode(error) ?? '')
    ? 'check `notebook.url`, and that this machine trusts the server’s certificate (NODE_EXTRA_CA_CERTS)'
    : 'check `notebook.url`, and that the server is up';
}
