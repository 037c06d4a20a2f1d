import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { LabfeedError, systemCode } from '../errors.js';
import { writeDurably } from '../system/filesystem.js';

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
export function createTicketCheck(secret: string, startedAt: number): (ticket: string, now: number) => boolean {
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
