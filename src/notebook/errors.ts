import { type FailureClass, NotebookError, systemCode } from '../errors.js';
import { type Answer, CalledOff, type Method, TooLong } from './http.js';
import { type Body, type Form, readBody } from './responses.js';

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
  const rejected = verdict.failure === 'auth' ? 'the API key was rejected: ' : '';
  return new NotebookError(verdict.failure, `${rejected}${sentence(asked, status, body)}`, {
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
  const what = sent ? `no answer from ${origin} to ${title(asked)}` : `cannot connect to ${origin}`;
  const verdict = verdictOnSilence(asked.method, sent, hintFor(error, sent));
  return new NotebookError(verdict.failure, `${what}: ${why}`, {
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

/** What OpenSSL reports if the server answers in plain text. */
const NOT_TLS = /wrong version number|packet length too long/i;

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'unknown host name',
  EAI_AGAIN: 'the name server does not respond',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
};

/** A failed attempt at several addresses has an empty message of its own. */
function reasonOf(error: Error): string {
  const [first] = error instanceof AggregateError ? error.errors : [];
  const code = systemCode(error) ?? systemCode(first) ?? '';
  const message = error.message || (first instanceof Error ? first.message : '') || code || error.name;
  if (NOT_TLS.test(message)) return 'the server does not speak TLS on this port';
  return REASONS[code] === undefined ? message : `${REASONS[code]} (${code})`;
}

function hintFor(error: Error, sent: boolean): string | undefined {
  if (error instanceof CalledOff || sent) return undefined;
  if (NOT_TLS.test(error.message)) return 'check the port in `notebook.url`, or use http://';
  if (/CERT|SIGNED|^UNABLE_TO|TLS|SSL|EPROTO/.test(systemCode(error) ?? ''))
    return 'check `notebook.url`. For a private certificate authority, start labfeed with NODE_EXTRA_CA_CERTS=FILE';
  return systemCode(error) === 'ENOTFOUND'
    ? 'check the spelling of `notebook.url`'
    : 'check `notebook.url`, and that the server is running';
}

/** What a request is about: one experiment or its comments, the list of experiments, or API keys. */
export type Subject = 'entry' | 'experiments' | 'keys';

interface Verdict {
  readonly failure: FailureClass;
  /** Whether the server may have done it all the same. */
  readonly outcomeUnknown: boolean;
  readonly hint: string;
  /** Where it differs from what the class says. */
  readonly scope?: 'run';
}

const HINTS = {
  key: 'check that the key in `notebook.key` is complete, still valid and allowed to write, or replace it with `labfeed keys set`',
  locked:
    'somebody may have locked it, or removed the permission of the key’s user. If no request works, check the permissions of the key',
  rights: 'the user of the API key must be allowed to create experiments',
  gone: 'it does not exist; somebody may have deleted it',
  deleted: 'somebody may have deleted or archived it. Restore it in the notebook, or leave it',
  edited: 'somebody has it open in the editor. labfeed tries again later',
  address: 'check `notebook.url`: there is no notebook at this address',
  refused: 'the notebook will reject this again unless the mapping or the file changes',
  tooLarge: 'make the body or the comments shorter, or raise the limit of the server',
  busy: 'the server asks to slow down. If this continues, lower `notebook.rate`',
  outage: 'this usually passes. If it continues, ask the administrator of the notebook',
  redirect:
    'check `notebook.url`: the server redirects to another address, and labfeed does not send the key there',
} as const;

/** eLabFTW 4.9 to 5.1 answers a bad key in plain text; a later one a read-only key in JSON. Both with 400. */
const ABOUT_THE_KEY =
  /^(?:(?:no corresponding|no|invalid|unknown|wrong|bad|incorrect) api key\b|you are using a read-only key)/i;

/** Passes by itself, so it is tried again; but it is no outage, so nobody else waits for it. */
const BEING_EDITED = { failure: 'server', scope: 'run', hint: HINTS.edited } as const;

interface Row extends Omit<Verdict, 'outcomeUnknown' | 'hint'> {
  readonly status: number | '2xx' | '3xx' | '4xx' | '5xx';
  readonly on?: Subject;
  readonly method?: Method;
  readonly form?: Form;
  readonly code?: number;
  readonly says?: RegExp;
  readonly outcomeUnknown?: true;
  readonly hint: string;
}

/**
 * What an answer means that is not the expected one, or cannot be used. The first row that fits counts.
 * A status that the contract lists is a verdict whatever page a proxy dresses it in; with any other, a web
 * page is an outage.
 */
const TABLE: readonly Row[] = [
  // Surely not done.
  { status: 400, says: ABOUT_THE_KEY, failure: 'auth', hint: HINTS.key },
  { status: 400, says: /^this entry is being edited by/i, ...BEING_EDITED },
  { status: 400, method: 'PATCH', code: 422, failure: 'conflict', hint: HINTS.deleted },
  { status: 400, failure: 'request', hint: HINTS.refused },
  { status: 401, failure: 'auth', hint: HINTS.key },
  { status: 403, on: 'keys', failure: 'auth', hint: HINTS.key },
  { status: 403, on: 'experiments', failure: 'conflict', hint: HINTS.rights },
  { status: 403, failure: 'conflict', hint: HINTS.locked },
  { status: 404, on: 'entry', failure: 'conflict', hint: HINTS.gone },
  // Nothing in a run can make the list of experiments vanish: the address is wrong, or a proxy lost the notebook.
  { status: 404, failure: 'server', hint: HINTS.address },
  { status: 405, form: 'page', failure: 'server', hint: HINTS.outage },
  { status: 405, failure: 'request', hint: HINTS.refused },
  { status: 413, failure: 'request', hint: HINTS.tooLarge },
  { status: 422, failure: 'request', hint: HINTS.refused },
  { status: 429, failure: 'rate', hint: HINTS.busy },
  // Lost: perhaps done, perhaps not, perhaps still to be.
  { status: '2xx', form: 'json', failure: 'server', scope: 'run', outcomeUnknown: true, hint: HINTS.outage },
  { status: '2xx', failure: 'server', outcomeUnknown: true, hint: HINTS.outage },
  { status: '3xx', failure: 'server', outcomeUnknown: true, hint: HINTS.redirect },
  { status: 408, failure: 'server', outcomeUnknown: true, hint: HINTS.outage },
  { status: 425, failure: 'server', outcomeUnknown: true, hint: HINTS.outage },
  { status: '4xx', form: 'page', failure: 'server', outcomeUnknown: true, hint: HINTS.outage },
  { status: '4xx', failure: 'request', outcomeUnknown: true, hint: HINTS.refused },
  // Mostly a value that the database refused: the application itself is well enough to answer in JSON.
  { status: 500, form: 'json', failure: 'server', scope: 'run', outcomeUnknown: true, hint: HINTS.outage },
  { status: '5xx', failure: 'server', outcomeUnknown: true, hint: HINTS.outage },
];

interface Refusal {
  readonly status: number;
  readonly on: Subject;
  readonly method: Method;
  readonly body: Body;
}

function verdictOn(refusal: Refusal): Verdict {
  const row = TABLE.find((candidate) => fits(candidate, refusal));
  const { failure, hint, scope, outcomeUnknown: lost = false } = row ?? UNHEARD_OF;
  return { failure, hint, outcomeUnknown: lost && changes(refusal.method), ...(scope ? { scope } : {}) };
}

/** No answer at all. `sent`: whether a byte of the request can have left. */
function verdictOnSilence(method: Method, sent: boolean, hint: string = HINTS.outage): Verdict {
  return { failure: 'server', outcomeUnknown: sent && changes(method), hint };
}

/** HTTP ends at 599, servers need not. */
const UNHEARD_OF: Row = { status: '5xx', failure: 'server', outcomeUnknown: true, hint: HINTS.outage };

function fits(row: Row, { status, on, method, body }: Refusal): boolean {
  return (
    (row.status === status || row.status === `${Math.floor(status / 100)}xx`) &&
    (row.on ?? on) === on &&
    (row.method ?? method) === method &&
    (row.form ?? body.form) === body.form &&
    (row.code === undefined || row.code === body.code) &&
    (row.says === undefined || body.words.some((words) => row.says?.test(words)))
  );
}

/** A GET that was not heard has done nothing that could be lost. */
const changes = (method: Method): boolean => method !== 'GET';

const MAX_CHARACTERS = 300;

/** One short line for people: no control characters, and not the key, even where the server echoes it. */
export function quote(words: readonly string[], key: string): string {
  // The key goes before anything is cut, so that no half of it stays; and again once broken lines are joined.
  const line = words.map((text) => withoutKey(printable(withoutKey(text, key)), key)).join(' — ');
  if (line.length <= MAX_CHARACTERS) return line;
  // By code points: half a surrogate pair would not survive being written to a log.
  return `${[...line.slice(0, 2 * MAX_CHARACTERS)].slice(0, MAX_CHARACTERS - 1).join('')}…`;
}

function withoutKey(text: string, key: string): string {
  if (key === '') return text;
  const spellings = new Set([key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)]);
  let rest = text;
  for (const spelling of spellings) rest = rest.replaceAll(spelling, '[key]');
  return rest;
}

/** Control and format characters could forge a line in a log, or move a terminal's cursor. */
const printable = (text: string): string => text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();

/** Longer waits are not believed: one request an hour hammers nobody, a mistyped year would stop us. */
const LONGEST_MS = 3_600_000;

/** The three forms that HTTP has for a date; `Date.parse` alone would find one in almost any text. */
const HTTP_DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d\d:\d\d:\d\d/i;

/** How long a `Retry-After` asks to wait, in seconds or as a date; undefined where it says nothing usable. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? '';
  const wait = /^[+-]?\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : (httpDate(text) ?? Number.NaN) - now;
  return Number.isNaN(wait) ? undefined : Math.round(Math.min(Math.max(wait, 0), LONGEST_MS));
}

/** Milliseconds since 1970. */
function httpDate(text: string): number | undefined {
  if (!HTTP_DATE.test(text)) return undefined;
  // The oldest form has no zone and means GMT; left alone it would be read as local time.
  const time = Date.parse(/gmt|utc|[+-]\d{4}$/i.test(text) ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}
