import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync, rmSync, statSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { isIPv6 } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.js';
import { LabfeedError, systemCode } from '../errors.js';
import type { Log } from '../log.js';
import { writeDurably } from '../system/filesystem.js';
import type { ApiError, StatusAddress } from './api.js';

interface GuardOptions {
  readonly address: StatusAddress;
  readonly roleOf: RoleCheck;
  /** Part of the page, so a request that carries it comes from somebody who could read the page. */
  readonly pageToken: string;
  sendLogin(reply: FastifyReply): void;
}

/** Nothing from other sites, nothing inline, and no frames on other sites. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/** Needs no token: the code of the page is not secret. */
const isPublic = (path: string): boolean =>
  ['/healthz', '/readyz', '/login'].includes(path) || path.startsWith('/page/');

/** The route rather than the address, in which `%64` is the same as `d`. */
const pathOf = ({ routeOptions, url }: FastifyRequest): string => routeOptions.url ?? url.split('?', 1)[0] ?? '';

/** Checks every request, including those for routes that do not exist. */
export function addGuard(app: FastifyInstance, { address, roleOf, pageToken, sendLogin }: GuardOptions): void {
  const isOwnHost = createHostCheck(address);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    // Browsers do not pipeline, and the end of a pipelined connection would not be noticed here.
    if (reply.raw.socket === null)
      throw new HttpError(400, 'pipelined requests are not supported: wait for the response');
    if (!isOwnHost(request.headers.host, request.socket.localAddress))
      throw new HttpError(421, describeUnknownHost(request));
    const role = isPublic(pathOf(request)) ? 'read' : roleOf(request);
    if (role === 'read' && DECISIONS.has(pathOf(request)))
      throw new HttpError(403, address.token === undefined ? NOT_LOGGED_IN : READ_ONLY);
    if (role !== undefined && role !== 'edit' && EDITS.has(pathOf(request))) throw new HttpError(403, MAY_NOT_EDIT);
    if (role === undefined) {
      if (request.method === 'GET' && pathOf(request) === '/') {
        sendLogin(reply);
        return reply;
      }
      reply.header('www-authenticate', 'Bearer realm="labfeed"');
      throw new HttpError(401, 'missing or wrong token: send `Authorization: Bearer TOKEN`, or log in');
    }
    if (!['GET', 'HEAD'].includes(request.method)) requireOwnPage(request, pageToken);
    return undefined;
  });
}

/** What only people who may decide can request. */
const DECISIONS: ReadonlySet<string> = new Set(['/api/decide']);

/** What only people who may change instruments can request. */
const EDITS: ReadonlySet<string> = new Set(['/api/instrument']);

/** Each of them may also do what the next ones may. */
export type Role = 'edit' | 'decide' | 'read';

/** What a request may do; undefined: nothing. Throws after too many wrong tokens. */
export type RoleCheck = ReturnType<typeof createRoleCheck>;

/** `tokens`: undefined if everybody may read and decide. Without a configured token, everybody may read. */
export const createRoleCheck =
  (tokens: TokenCheck | undefined, { token, edit }: StatusAddress) =>
  (request: Pick<FastifyRequest, 'headers' | 'ip'>): Role | undefined => {
    const role = tokens ? tokens.accepts(request) : 'decide';
    // An instrument can read every folder that the service can: a login link alone is not enough.
    if (role === 'decide' && (token !== undefined || edit)) return 'edit';
    return role ?? (token === undefined ? 'read' : undefined);
  };

export const MAY_NOT_EDIT =
  'instruments can be changed only by people who are logged in, and only with status.token or status.edit: true in the configuration';

const READ_ONLY = 'this login may look but not decide: log in with the token that status.token names';
const NOT_LOGGED_IN =
  'decisions need a login: run `labfeed status --login` as the user of labfeed, and open the link that it prints';

const describeUnknownHost = ({ headers }: FastifyRequest): string =>
  `unknown host name ${JSON.stringify(headers.host ?? '')}: use the address, localhost, or a name listed in status.names`;

/** Other sites can make a browser send a POST with its cookies. They cannot read the page's token or fake the origin. */
function requireOwnPage(request: FastifyRequest, pageToken: string): void {
  const origin = originOf(request.headers);
  if (origin === 'other') throw new HttpError(403, 'requests from another site are not allowed');
  // The login form has no page token; it carries a secret that other sites do not know.
  if (pathOf(request) === '/login') return;
  if (origin === 'unknown')
    throw new HttpError(403, 'only the status page can send this request; in scripts, use the labfeed commands');
  const given = request.headers['x-labfeed-token'];
  if (typeof given !== 'string' || !isEqual(given, pageToken))
    throw new HttpError(403, 'labfeed was restarted after this page was loaded: reload the page');
}

export type TokenCheck = ReturnType<typeof createTokenCheck>;

/** Wrong tokens without a wait; each further one doubles the wait. */
const FREE_ATTEMPTS = 5;
const MAX_WAIT_S = 300;
/** Bounds memory. Forgetting a sender does not help guessing: the token is too long. */
const MAX_SENDERS = 1000;

/** Access by token: as a bearer token, or by the cookie that logging in sets. Throws after too many wrong tokens. */
export function createTokenCheck(token: string, clock: Clock, login?: string, readToken?: string) {
  const acceptsTicket = login === undefined ? () => false : createTicketCheck(login, clock.now());
  const deciding: Access = { role: 'decide', token, ...passFor(token) };
  const accesses: Access[] = [
    deciding,
    ...(readToken === undefined ? [] : [{ role: 'read', token: readToken, ...passFor(readToken) } as const]),
  ];
  const failures = new Map<string, { count: number; until: number }>();

  function accessBy(given: string, sender: string): Access | undefined {
    const failed = failures.get(sender);
    failures.delete(sender);
    // Without a wait: the token is too long to guess, and another client's wrong tokens must not lock out its owner.
    const access = accesses.find((one) => isEqual(given, one.token));
    if (access) return access;
    const waitS = Math.ceil(((failed?.until ?? 0) - clock.monotonic()) / 1000);
    if (failed && waitS > 0) {
      failures.set(sender, failed);
      throw new HttpError(429, `too many wrong tokens from this address: try again in ${waitS} s`, waitS);
    }
    const count = (failed?.count ?? 0) + 1;
    const penaltyS = count <= FREE_ATTEMPTS ? 0 : Math.min(2 ** (count - FREE_ATTEMPTS), MAX_WAIT_S);
    failures.set(sender, { count, until: clock.monotonic() + 1000 * penaltyS });
    for (const oldest of failures.keys()) if (failures.size > MAX_SENDERS) failures.delete(oldest);
    return undefined;
  }

  return {
    accepts({ headers, ip }: Pick<FastifyRequest, 'headers' | 'ip'>): Role | undefined {
      const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1];
      if (bearer !== undefined) return accessBy(bearer, ip)?.role;
      // Not counted: the cookie is too long to guess, and a wall display with an old one would lock everybody out.
      return accesses.find(({ name, pass }) => cookiesIn(headers, name).some((value) => isEqual(value, pass)))?.role;
    },
    /** The cookie, if the token is right. */
    logIn: (given: string, sender: string): string | undefined => accessBy(given, sender)?.cookie,
    /** The cookie, if the ticket of a login link is valid. */
    redeem: (ticket: string): string | undefined => (acceptsTicket(ticket, clock.now()) ? deciding.cookie : undefined),
  };
}

interface Access extends ReturnType<typeof passFor> {
  readonly role: Role;
  readonly token: string;
}

/** The cookie that stands for a token. */
function passFor(token: string) {
  // Not the token itself: browsers send cookies to every port of this machine. A new token makes the cookie invalid.
  const pass = createHmac('sha256', token).update('labfeed page').digest('hex');
  // Its own name: browsers share cookies among all ports of a machine, where another labfeed may run.
  const name = `labfeed_${digest(pass).toString('hex').slice(0, 12)}`;
  return { pass, name, cookie: `${name}=${pass}; Path=/; HttpOnly; SameSite=Strict` };
}

function cookiesIn({ cookie = '' }: IncomingHttpHeaders, wanted: string): string[] {
  return cookie.split(';').flatMap((pair) => {
    const [name, value] = pair.trim().split('=');
    return name === wanted && value !== undefined ? [value] : [];
  });
}

/**
 * Whether a request was sent to a name of this server. Another site can make its own name point to this machine (DNS
 * rebinding) and then counts as the same site for the browser, but it cannot send a different `Host`.
 * The port is not checked: it differs behind a tunnel (`ssh -L 8080:localhost:7780`) and proves nothing.
 */
export function createHostCheck({ host, names }: StatusAddress) {
  const own = new Set(['localhost', ...[host, ...names].map(normalizeHost)]);
  return (header: string | undefined, localAddress: string | undefined): boolean => {
    const name = hostIn(header);
    // A server on all addresses accepts the address that the connection was made to.
    return name !== undefined && (own.has(name) || name === normalizeHost(localAddress ?? ''));
  };
}

function hostIn(header: string | undefined): string | undefined {
  if (header === undefined || !/^[\w.:[\]-]+$/.test(header) || !URL.canParse(`http://${header}`)) return undefined;
  return new URL(`http://${header}`).hostname;
}

/** As in a URL: lower case, IPv6 in brackets and shortened, IPv4-mapped IPv6 as IPv4. */
function normalizeHost(host: string): string {
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return isIPv6(plain) ? new URL(`http://[${plain}]`).hostname : plain.toLowerCase();
}

/** Whether the browser says that our page sent this; `unknown` if it says nothing. */
function originOf(headers: IncomingHttpHeaders): 'own' | 'other' | 'unknown' {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return 'other';
  // Forms of a page with `no-referrer` send the origin `null`. The scheme may be https if there is a proxy.
  if (origin !== undefined && origin !== 'null')
    return /^https?:\/\/([^/]+)$/.exec(origin)?.[1] === host ? 'own' : 'other';
  return site === 'same-origin' ? 'own' : 'unknown';
}

/** Compares secrets in constant time. */
const isEqual = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** A response other than 2xx, with a message for people. */
export class HttpError extends Error {
  readonly statusCode: number;
  readonly retryAfterS: number | undefined;

  constructor(statusCode: number, message: string, retryAfterS?: number) {
    super(message);
    this.statusCode = statusCode;
    this.retryAfterS = retryAfterS;
  }
}

/** For errors that fastify raises. */
const MESSAGES: Readonly<Record<number, string>> = {
  400: 'malformed request',
  413: 'the request is too large',
  415: 'this content type is not supported',
};

/** Responds with the message of an HttpError only; internal errors go to the log. */
export const createErrorHandler =
  (log: Log) =>
  (error: FastifyError | HttpError, { method, url }: FastifyRequest, reply: FastifyReply): void => {
    const status = error.statusCode ?? 500;
    if (error instanceof HttpError) {
      if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS);
      void reply.code(status).send({ error: error.message } satisfies ApiError);
      return;
    }
    if (status >= 500) log.error({ err: error, method, url }, 'status page request failed');
    const fallback = status < 500 ? 'request refused' : 'internal error; see the log of labfeed';
    void reply.code(status).send({ error: MESSAGES[status] ?? fallback } satisfies ApiError);
  };

/**
 * Every user of a machine can open a page on its loopback address, but not everybody may decide about runs. Who may is
 * shown by a file beside the journal that only the user of the daemon and root can read. Links signed with its content
 * log a browser in.
 */
const loginFileOf = (journal: string): string => `${journal}.login`;

/**
 * The secret of the page. It is kept, so that browsers stay logged in after a restart. If it cannot be stored, such as on
 * a full disk, everybody can still read the page, and nobody can log in.
 */
export function createLoginSecret(journal: string): string {
  const file = loginFileOf(journal);
  const stats = statSync(file, { throwIfNoEntry: false });
  // One that others could read is replaced.
  if (stats?.isFile() && (stats.mode & 0o077) === 0 && stats.size > 0) return readFileSync(file, 'utf8');
  const secret = randomBytes(32).toString('base64url');
  try {
    rmSync(file, { force: true });
    writeDurably(file, secret, process.geteuid?.() === 0 ? statSync(journal) : undefined);
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
  }
  return secret;
}

/** The secret of a page that a daemon has served. */
export function readLoginSecret(journal: string): string {
  try {
    return readFileSync(loginFileOf(journal), 'utf8');
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT')
      throw new LabfeedError('the daemon has not served a page yet', {
        hint: 'start it, with `status: ADDRESS`',
        cause,
      });
    throw new LabfeedError(`this user may not decide about runs: cannot read ${loginFileOf(journal)}`, {
      hint: 'use sudo: sudo labfeed status --login',
      cause,
    });
  }
}

/** An address to open. A server on all addresses is best opened by one of its names. */
export function pageUrl(page: {
  readonly host: string;
  readonly port: number;
  readonly names: readonly string[];
}): string {
  const { host, port, names } = page;
  const isAny = ['0.0.0.0', '::'].includes(host);
  const shown = (isAny ? names[0] : undefined) ?? host;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${port}/`;
}

const LINK_MS = 5 * 60_000;

/** A link to the page that logs in one browser, once. */
export function loginLink(page: string, secret: string, now: number, validMs = LINK_MS): string {
  const ticket = `${now}.${now + validMs}.${randomBytes(12).toString('base64url')}`;
  return `${page}login?ticket=${ticket}.${sign(ticket, secret)}`;
}

/** Accepts the ticket of each link once, if it was made after this process started. */
function createTicketCheck(secret: string, startedAt: number): (ticket: string, now: number) => boolean {
  const used = new Map<string, number>();
  return (ticket, now) => {
    const [, signed = '', issued, until, signature = ''] = /^((\d+)\.(\d+)\.[\w-]+)\.([\w-]+)$/.exec(ticket) ?? [];
    const [given, expected] = [signature, sign(signed, secret)].map((text) => Buffer.from(text));
    if (!given || !expected || given.length !== expected.length || !timingSafeEqual(given, expected)) return false;
    for (const [old, end] of used) if (end < now) used.delete(old);
    if (used.has(signed) || Number(issued) < startedAt || Number(until) < now) return false;
    used.set(signed, Number(until));
    return true;
  };
}

const sign = (ticket: string, secret: string): string =>
  createHmac('sha256', secret).update(`labfeed login ${ticket}`).digest('base64url');
