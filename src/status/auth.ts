import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIPv6 } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.js';
import type { Log } from '../log.js';
import type { ApiError } from './api.js';
import type { Place } from './deps.js';

interface GuardOptions {
  readonly place: Place;
  /** Where the page asks for a token. */
  readonly access: Access | undefined;
  /** Only the page knows it: whoever sends it has read the page. */
  readonly pageToken: string;
  /** Answers who opens the page without being let in. */
  askToLogIn(reply: FastifyReply): void;
}

/** What every answer says to the browser: nothing from elsewhere, nothing inline, in no frame of others. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/** Open to who is not logged in: whether labfeed lives, how to log in, and the page's code, which is no secret. */
const isOpen = (path: string): boolean =>
  ['/healthz', '/readyz', '/login'].includes(path) || path.startsWith('/page/');

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? '';

/** Stands before every route, also before those that do not exist. */
export function standGuard(
  app: FastifyInstance,
  { place, access, pageToken, askToLogIn }: GuardOptions,
): void {
  const isOurs = createHostCheck(place);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    // No browser sends one before the last is answered; the end of a connection would not be heard of here.
    if (reply.raw.socket === null)
      throw new Refusal(400, 'one request after the other: the last one is not answered yet');
    if (!isOurs(request.headers.host, request.socket.localAddress))
      throw new Refusal(421, notOurName(request));
    if (access && !isOpen(pathOf(request)) && !isLetIn(access, request)) {
      if (request.method === 'GET' && pathOf(request) === '/') {
        askToLogIn(reply);
        return reply;
      }
      reply.header('www-authenticate', 'Bearer realm="labfeed"');
      throw new Refusal(
        401,
        'the token is missing or wrong: send it as `Authorization: Bearer TOKEN`, or log in',
      );
    }
    if (!['GET', 'HEAD'].includes(request.method)) refuseForeign(request, pageToken);
    return undefined;
  });
}

const notOurName = ({ headers }: FastifyRequest): string =>
  `this page is not ${JSON.stringify(headers.host ?? '')}: open it by its address, by localhost, or by a name listed in status.names`;

export function isLetIn(access: Access, { headers, ip }: FastifyRequest): boolean {
  const verdict = access.check(headers, ip);
  if (typeof verdict === 'number') throw tooMany(verdict);
  return verdict === 'granted';
}

export const tooMany = (waitS: number): Refusal =>
  new Refusal(429, `too many wrong tokens from this address: try again in ${waitS} s`, waitS);

/**
 * Pages of other sites can make a browser send a POST here, with its cookies. They cannot read the token that stands in
 * our page, nor hide where they are from.
 */
function refuseForeign(request: FastifyRequest, pageToken: string): void {
  const site = siteOf(request.headers);
  if (site === 'foreign') throw new Refusal(403, 'this was sent by a page of another site');
  // Who logs in has no page yet, and gives a secret that no other site knows.
  if (pathOf(request) === '/login') return;
  if (site === 'unsaid')
    throw new Refusal(403, 'only the page may send this; for scripts there are the commands');
  const given = request.headers['x-labfeed-token'];
  if (typeof given !== 'string' || !isEqual(given, pageToken))
    throw new Refusal(403, 'this page is of before labfeed was restarted: load it again');
}

const COOKIE = 'labfeed';

/** Who is let in where the page asks for a token: who sends it, or has the cookie that logging in gives. */
export interface Access {
  /** A number: so many seconds from now at the earliest, since too many wrong tokens came from there. */
  check(headers: IncomingHttpHeaders, from: string): 'granted' | 'refused' | number;
  /** The cookie for who gave the right token. */
  logIn(given: string, from: string): { readonly cookie: string } | 'refused' | number;
}

/** So many wrong tokens are forgiven; each further one doubles the wait. */
const FORGIVEN = 5;
const LONGEST_S = 300;
/** So many senders are remembered. A token cannot be guessed by changing addresses either: it is too long. */
const REMEMBERED = 1000;

export function createAccess(token: string, clock: Clock): Access {
  // Not the token itself, which a cookie would show to every server on this machine; gone when the token is changed.
  const pass = createHmac('sha256', token).update('labfeed page').digest('hex');
  const wrong = new Map<string, { count: number; until: number }>();

  function waitOf(from: string): number {
    return Math.ceil(((wrong.get(from)?.until ?? 0) - clock.monotonic()) / 1000);
  }

  function judge(given: string, from: string): 'granted' | 'refused' | number {
    const waitS = waitOf(from);
    // Also the right one has to wait: otherwise trying would cost nothing.
    if (waitS > 0) return waitS;
    if (isEqual(given, token)) {
      wrong.delete(from);
      return 'granted';
    }
    const count = (wrong.get(from)?.count ?? 0) + 1;
    const waitMs = count <= FORGIVEN ? 0 : 1000 * Math.min(2 ** (count - FORGIVEN), LONGEST_S);
    wrong.delete(from);
    wrong.set(from, { count, until: clock.monotonic() + waitMs });
    for (const oldest of wrong.keys()) if (wrong.size > REMEMBERED) wrong.delete(oldest);
    return 'refused';
  }

  return {
    check(headers, from) {
      const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1];
      if (bearer !== undefined) return judge(bearer, from);
      // Too long to be guessed, and so not counted: a wall display with an old cookie would lock everybody out.
      return cookiesIn(headers).some((value) => isEqual(value, pass)) ? 'granted' : 'refused';
    },
    logIn(given, from) {
      const verdict = judge(given, from);
      if (verdict !== 'granted') return verdict;
      return { cookie: `${COOKIE}=${pass}; Path=/; HttpOnly; SameSite=Strict` };
    },
  };
}

function cookiesIn({ cookie = '' }: IncomingHttpHeaders): string[] {
  return cookie.split(';').flatMap((pair) => {
    const [name, value] = pair.trim().split('=');
    return name === COOKIE && value !== undefined ? [value] : [];
  });
}

/**
 * Whether a request was sent to us by a name that is ours. A page of another site can let its own name point to this
 * machine (DNS rebinding), and would then count as ours to the browser; what it cannot do is send another `Host`.
 * The port is left out of it: through a tunnel (`ssh -L 8080:localhost:7780`) it is another one, and proves nothing.
 */
export function createHostCheck({
  host,
  names,
}: Place): (header: string | undefined, localAddress: string | undefined) => boolean {
  const own = new Set(['localhost', ...[host, ...names].map(normal)]);
  return (header, localAddress) => {
    const called = nameIn(header);
    // The very address that the connection came in at: where all are listened on, any of them may be meant.
    return called !== undefined && (own.has(called) || called === normal(localAddress ?? ''));
  };
}

/** The name in a `Host` header, in its one spelling. */
function nameIn(header: string | undefined): string | undefined {
  if (header === undefined || !/^[\w.:[\]-]+$/.test(header) || !URL.canParse(`http://${header}`))
    return undefined;
  return new URL(`http://${header}`).hostname;
}

/** As a URL has it: lower case, IPv6 in brackets and in its shortest form, IPv4 without its IPv6 clothes. */
function normal(host: string): string {
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return isIPv6(plain) ? new URL(`http://[${plain}]`).hostname : plain.toLowerCase();
}

/** Whether the browser says that a page of ours sent this. `unsaid`: it says nothing either way. */
function siteOf(headers: IncomingHttpHeaders): 'ours' | 'foreign' | 'unsaid' {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return 'foreign';
  // A form of a page that sends no referrer has the origin `null`.
  if (origin !== undefined && origin !== 'null') return hostOf(origin) === host ? 'ours' : 'foreign';
  return site === 'same-origin' ? 'ours' : 'unsaid';
}

/** Whatever the scheme: a proxy in front of us may speak https to the browser. */
const hostOf = (origin: string): string | undefined => /^https?:\/\/([^/]+)$/.exec(origin)?.[1];

/** Whether two secrets are the same, in a time that says nothing about where they differ. */
const isEqual = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** An answer that is not what was asked for, in words for people. */
export class Refusal extends Error {
  readonly statusCode: number;
  readonly retryAfterS: number | undefined;

  constructor(statusCode: number, message: string, retryAfterS?: number) {
    super(message);
    this.statusCode = statusCode;
    this.retryAfterS = retryAfterS;
  }
}

const FAILED = 'labfeed failed on this request; its log says more';
const REFUSED = 'this request is refused';

/** Words of our own for what fastify refuses by itself. */
const OWN_WORDS: Readonly<Record<number, string>> = {
  400: 'this request cannot be read',
  413: 'this is larger than what is taken here',
  415: 'this kind of content is not taken here',
};

/** Answers with the reason alone: what failed within labfeed is for the log. */
export const answerErrors =
  (log: Log) =>
  (error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply): void => {
    const status = error.statusCode ?? 500;
    if (error instanceof Refusal) {
      if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS);
      void reply.code(status).send({ error: error.message } satisfies ApiError);
      return;
    }
    if (status >= 500) log.error({ err: error, method: request.method, url: request.url }, 'the page failed');
    void reply
      .code(status)
      .send({ error: OWN_WORDS[status] ?? (status < 500 ? REFUSED : FAILED) } satisfies ApiError);
  };
