import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../clock.js';
import { isEqual } from './equal.js';

export const COOKIE = 'labfeed';

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
