import { type FailureClass, NotebookError, systemCode } from '../errors.js';
import { secretPattern } from '../secrets.js';
import { type HttpResponse, type Method, ResponseTooLongError, SUCCESS_STATUS, TimeoutError } from './http.js';
import { type BodyKind, type ErrorBody, readErrorBody } from './responses.js';

/** What an error needs to know about its request. */
export interface RequestInfo {
  readonly method: Method;
  readonly path: string;
  readonly subject: Subject;
  /** To keep it out of the message. */
  readonly key: string;
  readonly origin: string;
}

/** What a request is about: one experiment or its comments, the collection of experiments, or API keys. */
export type Subject = 'entry' | 'experiments' | 'keys';

/** The response has an unexpected status. */
export function statusError(request: RequestInfo, response: HttpResponse, now: number): NotebookError {
  const { status, headers } = response;
  const body = readErrorBody(response);
  const verdict = classify(request, status, body);
  const rejected = verdict.failure === 'auth' ? 'the API key was rejected: ' : '';
  // A date in Retry-After is by the server's clock, which may differ from ours.
  const waitMs = retryAfterMs(headers['retry-after'], httpDate(headers['date'] ?? '') ?? now);
  const isWait = waitMs !== undefined && (status === 429 || status >= 500);
  return new NotebookError(verdict.failure, `${rejected}${describeStatus(request, status, body)}`, {
    ...verdict,
    hint: (verdict.hint === HINTS.redirect && redirectHint(request, headers['location'])) || verdict.hint,
    status,
    ...(isWait ? { retryAfterMs: waitMs } : {}),
  });
}

/** The response has the expected status, but cannot be used. */
export function responseError(request: RequestInfo, response: HttpResponse, problem: Error): NotebookError {
  const { status, incomplete } = response;
  const reason = quote([problem.message], request.key);
  const returned = `${titleOf(request)} returned status ${status}`;
  if (problem !== incomplete) {
    const verdict = classify(request, status, readErrorBody(response));
    return new NotebookError(verdict.failure, `${returned} with ${reason}`, { ...verdict, status });
  }
  return new NotebookError('server', `${returned}, but the response is incomplete: ${reason}`, {
    outcomeUnknown: isWrite(request.method),
    ...(incomplete instanceof ResponseTooLongError ? { scope: 'run' } : {}),
    hint: HINTS.outage,
    status,
    cause: causeOf(problem, request.key),
  });
}

/** There was no response. `isSent`: whether a byte of the request may have been sent. */
export function connectionError(request: RequestInfo, route: string, isSent: boolean, error: Error): NotebookError {
  const reason = quote([connectionReason(error)], request.key);
  const what = isSent ? `no response from ${route} to ${titleOf(request)}` : `cannot connect to ${route}`;
  return new NotebookError('server', `${what}: ${reason}`, {
    outcomeUnknown: isSent && isWrite(request.method),
    hint: connectionHint(error, isSent),
    cause: causeOf(error, request.key),
  });
}

const titleOf = ({ method, path }: RequestInfo): string => `${method} ${path}`;

function describeStatus(request: RequestInfo, status: number, body: ErrorBody): string {
  const said = quote(quotable(request, status, body), request.key);
  const page = said ? ` (web page: ${said})` : ' (web page)';
  const detail = body.kind === 'html' ? page : said && `: ${said}`;
  if (status >= 400) return `${titleOf(request)} failed with status ${status}${detail}`;
  return `${titleOf(request)} returned status ${status} instead of ${SUCCESS_STATUS[request.method]}${detail}`;
}

/** An unexpected success may contain records or a new key, and data about keys contains hashes: not shown. */
function quotable({ subject }: RequestInfo, status: number, { kind, messages, data }: ErrorBody): readonly string[] {
  if (status < 300 && kind !== 'html') return [];
  return data === undefined || subject === 'keys' ? messages : [data];
}

/** OpenSSL's messages if the server responds in plain text. */
const NOT_TLS = /wrong version number|packet length too long/i;

/** undici's message if a proxy does not connect. */
const PROXY_REFUSED = /^Proxy response \((\d+)\)/;

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'unknown host name',
  EAI_AGAIN: 'the name server does not respond',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
};

/** If several addresses were tried, the error itself has no message. */
function connectionReason(error: Error): string {
  const [first] = error instanceof AggregateError ? error.errors : [];
  const code = systemCode(error) ?? systemCode(first) ?? '';
  const message = error.message || (first instanceof Error ? first.message : '') || code || error.name;
  if (NOT_TLS.test(message)) return 'the server does not speak TLS on this port';
  const [, refused] = PROXY_REFUSED.exec(message) ?? [];
  if (refused !== undefined) return `the proxy returned status ${refused}`;
  return REASONS[code] === undefined ? message : `${REASONS[code]} (${code})`;
}

function connectionHint(error: Error, isSent: boolean): string {
  if (isSent) return error instanceof TimeoutError ? HINTS.timeout : HINTS.outage;
  if (NOT_TLS.test(error.message)) return 'check the port in `notebook.url`, or use http://';
  if (/CERT|SIGNED|^UNABLE_TO|TLS|SSL|EPROTO/.test(systemCode(error) ?? ''))
    return 'check `notebook.url`. For a private certificate authority, set `notebook.ca` to the file with its certificate';
  if (PROXY_REFUSED.test(error.message))
    return 'check HTTPS_PROXY and HTTP_PROXY. If the notebook needs no proxy, add its host to NO_PROXY';
  return systemCode(error) === 'ENOTFOUND'
    ? 'check the spelling of `notebook.url`'
    : 'check `notebook.url`, and that the server is running';
}

/** What to write in the configuration, if the server redirects to another server, or the API to another path. */
function redirectHint({ path, origin, key }: RequestInfo, location = ''): string | undefined {
  if (!URL.canParse(location, origin + path)) return undefined;
  const target = new URL(location, origin + path);
  const [prefix = '', rest] = target.href.split('/api/v2');
  if (rest === undefined && target.origin === origin) return undefined;
  return `if ${quote([rest === undefined ? target.origin : prefix], key)} is the notebook, set \`notebook.url\` to it. labfeed does not follow redirects, so that the key reaches no other server`;
}

const HINTS = {
  key: 'check that the key in `notebook.key` is complete, still valid and allowed to write, or replace it with `labfeed keys set`',
  locked:
    'somebody may have locked it or removed the access of the key’s user. If all requests fail, check the permissions of the key',
  rights: 'the user of the API key must be allowed to create experiments',
  gone: 'it does not exist; somebody may have deleted it',
  deleted: 'somebody may have deleted or archived it. Restore it in the notebook, or leave it',
  edited: 'somebody has it open in the editor. labfeed tries again later',
  address: 'check `notebook.url`: there is no notebook at this address',
  page: 'the notebook may be down for maintenance. If this continues, check `notebook.url`: the server returns a web page instead of an API response',
  refused:
    'check whether a firewall or proxy in front of the notebook blocks this kind of request. If the notebook is down for maintenance, labfeed continues afterwards',
  template:
    'your team creates experiments from templates only: set `experiment: { template: NAME }` for this instrument. `labfeed check` lists the names. After a reload, labfeed reads the file again',
  rejected: 'the notebook will reject this again unless the mapping or the file changes',
  tooLarge: 'make the body or the comments shorter, or raise the limit on the server',
  busy: 'the server asks to slow down. If this continues, lower `notebook.rate`',
  timeout: 'the server may be overloaded. If this continues, raise `notebook.timeout`',
  outage: 'this is usually temporary. If it continues, ask the administrator of the notebook',
  redirect: 'check `notebook.url`: the server redirects to another address, and labfeed does not send the key there',
} as const;

/** With status 400: eLabFTW 4.9 to 5.1 about an invalid key in plain text, later versions about a read-only one. */
const ABOUT_THE_KEY =
  /^(?:(?:no corresponding|no|invalid|unknown|wrong|bad|incorrect) api key\b|you are using a read-only key)/i;

/** With status 400: eLabFTW about a creation without a template, now and in earlier versions. */
const TEMPLATE_FORCED = /without using a template|^experiments must use a template/i;

interface Rule {
  readonly status: number | '2xx' | '3xx' | '4xx' | '5xx';
  readonly subject?: Subject;
  readonly method?: Method;
  readonly isWrite?: boolean;
  readonly kind?: BodyKind;
  readonly code?: number;
  readonly says?: RegExp;
  readonly failure: FailureClass;
  readonly scope?: 'run';
  readonly hint: string;
}

/**
 * Certainly not done. The first rule that fits applies. A status that the contract lists counts even if a proxy adds a
 * web page; with any other status, a web page means an outage.
 */
const NOT_DONE: readonly Rule[] = [
  { status: 400, says: ABOUT_THE_KEY, failure: 'auth', hint: HINTS.key },
  // Temporary, but not an outage: other runs do not wait.
  { status: 400, says: /^this entry is being edited by/i, failure: 'server', scope: 'run', hint: HINTS.edited },
  { status: 400, subject: 'experiments', says: TEMPLATE_FORCED, failure: 'request', hint: HINTS.template },
  { status: 400, method: 'PATCH', code: 422, failure: 'conflict', hint: HINTS.deleted },
  { status: 400, failure: 'request', hint: HINTS.rejected },
  { status: 401, failure: 'auth', hint: HINTS.key },
  { status: 403, subject: 'keys', failure: 'auth', hint: HINTS.key },
  // A firewall answers with a web page; about one entry, the notebook itself answers in JSON.
  { status: 403, isWrite: true, kind: 'html', failure: 'server', hint: HINTS.refused },
  { status: 403, subject: 'experiments', method: 'POST', failure: 'auth', hint: HINTS.rights },
  { status: 403, failure: 'conflict', hint: HINTS.locked },
  { status: 404, subject: 'entry', failure: 'conflict', hint: HINTS.gone },
  // No run can make a collection disappear: the URL is wrong, or a proxy has lost its backend.
  { status: 404, failure: 'server', hint: HINTS.address },
  // It depends on the method alone, so every run is refused.
  { status: 405, failure: 'server', hint: HINTS.refused },
  { status: 413, failure: 'request', hint: HINTS.tooLarge },
  { status: 422, failure: 'request', hint: HINTS.rejected },
  { status: 429, failure: 'rate', hint: HINTS.busy },
];

/** A write may have been carried out, or may still be. */
const UNKNOWN_OUTCOME: readonly Rule[] = [
  { status: '2xx', kind: 'json', failure: 'server', scope: 'run', hint: HINTS.outage },
  { status: '2xx', kind: 'html', failure: 'server', hint: HINTS.page },
  { status: '2xx', failure: 'server', hint: HINTS.outage },
  { status: '3xx', failure: 'server', hint: HINTS.redirect },
  { status: 408, failure: 'server', hint: HINTS.outage },
  { status: 425, failure: 'server', hint: HINTS.outage },
  { status: '4xx', kind: 'html', failure: 'server', hint: HINTS.page },
  { status: '4xx', failure: 'request', hint: HINTS.rejected },
  // Usually a value that the database rejected: the application itself works well enough to respond in JSON.
  { status: 500, kind: 'json', failure: 'server', scope: 'run', hint: HINTS.outage },
];

/** Any other 5xx, and statuses that HTTP does not define. */
const OTHERWISE = { failure: 'server', hint: HINTS.outage, scope: undefined } as const;

function classify(request: RequestInfo, status: number, body: ErrorBody) {
  const fits = (rule: Rule): boolean => applies(rule, request, status, body);
  const notDone = NOT_DONE.find(fits);
  const { failure, hint, scope } = notDone ?? UNKNOWN_OUTCOME.find(fits) ?? OTHERWISE;
  const outcomeUnknown = notDone === undefined && isWrite(request.method);
  return { failure, hint, outcomeUnknown, ...(scope ? { scope } : {}) };
}

const applies = (rule: Rule, { subject, method }: RequestInfo, status: number, body: ErrorBody): boolean =>
  (rule.status === status || rule.status === `${Math.floor(status / 100)}xx`) &&
  (rule.subject ?? subject) === subject &&
  (rule.method ?? method) === method &&
  (rule.isWrite === undefined || rule.isWrite === isWrite(method)) &&
  (rule.kind ?? body.kind) === body.kind &&
  (rule.code === undefined || rule.code === body.code) &&
  (rule.says === undefined || body.messages.some((message) => rule.says?.test(message)));

const isWrite = (method: Method): boolean => method !== 'GET';

const MAX_CHARACTERS = 300;

/** One short line without control characters, and without the key even if the server echoes it. */
export function quote(texts: readonly string[], key: string): string {
  // The key is removed before anything is cut, so that no part of it remains, and again after lines are joined.
  const line = texts.map((text) => withoutKey(printable(withoutKey(text, key)), key)).join(' — ');
  if (line.length <= MAX_CHARACTERS) return line;
  // By code points: half a surrogate pair cannot be written to a log.
  return `${[...line.slice(0, 2 * MAX_CHARACTERS)].slice(0, MAX_CHARACTERS - 1).join('')}…`;
}

function withoutKey(text: string, key: string): string {
  const pattern = secretPattern([key]);
  return pattern ? text.replace(pattern, '[key]') : text;
}

/** For stack traces. The error of an invalid response has the bytes of the response, which may repeat the request. */
function causeOf(error: Error, key: string): Error {
  const cause = new Error(quote([error.message], key));
  cause.name = error.name;
  cause.stack = withoutKey(error.stack ?? '', key);
  return Object.assign(cause, { code: systemCode(error) });
}

/** Control and format characters could forge a line in a log or move the cursor of a terminal. */
const printable = (text: string): string => text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();

/** Longer waits are ignored: one request an hour is harmless, and a mistyped year would stop delivery. */
const MAX_WAIT_MS = 3_600_000;

/** HTTP's three date formats. `Date.parse` alone would find a date in almost any text. */
const HTTP_DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d\d:\d\d:\d\d/i;

/** The wait that a `Retry-After` header asks for, in seconds or as a date; undefined if it is not usable. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? '';
  const wait = /^[+-]?\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : (httpDate(text) ?? Number.NaN) - now;
  return Number.isNaN(wait) ? undefined : Math.round(Math.min(Math.max(wait, 0), MAX_WAIT_MS));
}

/** Milliseconds since 1970. */
function httpDate(text: string): number | undefined {
  if (!HTTP_DATE.test(text)) return undefined;
  // The oldest format has no zone and means GMT; it would be read as local time.
  const time = Date.parse(/gmt|utc|[+-]\d{4}$/i.test(text) ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}
