import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Access } from './access.js';
import type { Place } from './deps.js';
import { isEqual } from './equal.js';
import { createHostCheck } from './host.js';
import { Refusal } from './refusal.js';
import { siteOf } from './same-site.js';

export interface GuardOptions {
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

export const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? '';

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
