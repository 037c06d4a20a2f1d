import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import type { Place } from '../errors.js';
import { ARROW, mapError, text } from './grammar.js';
import { readSecret, resolveSecret, type SecretSource, secret } from './secrets.js';
import { isLoopback } from './settings.js';

/** The settings of a machine that belongs to a fleet: several labfeeds that share one outbox in PostgreSQL. */

const ROLES = ['all', 'watch', 'deliver'] as const;

export type Role = (typeof ROLES)[number];

export const roleSchema = z
  .enum(ROLES)
  .default('all')
  .describe(
    'What this machine does in a fleet. watch: it watches its instruments and needs no key; deliver: it delivers, or is ready to take over; all: both.',
  );

const MEMBER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

export const fleetSchema = z
  .strictObject(
    {
      name: z
        .string()
        .regex(MEMBER_NAME, 'expected a name of letters, digits, points, hyphens and underscores')
        .optional()
        .describe('The name of this machine in the fleet. Default: its host name.'),
      state: text('the path of a folder')
        .optional()
        .describe('The folder for what this machine keeps itself. Default: that of the journal without a fleet.'),
      password: secret('password').optional(),
      ca: text('the path of a file')
        .optional()
        .describe(
          'A PEM file with the certificate of the authority that signed the certificate of the database server. A server on this machine is verified only if `journal` ends in ?sslmode=verify-full.',
        ),
    },
    { error: mapError('fleet: { name: pc-12, password: { file: /etc/labfeed/db-password } }') },
  )
  .prefault({})
  .describe('This machine as a member of a fleet, if `journal` is a postgres:// URL.');

export const isPostgres = (journal: string): boolean => /^postgres(ql)?:\/\//i.test(journal);

/** Why this URL cannot be used; undefined if it can. */
export function refusePostgres(url: string): string | undefined {
  if (!URL.canParse(url)) return `expected a URL${ARROW}such as postgres://labfeed@db.example.org/labfeed`;
  const { password, searchParams } = new URL(url);
  if (password !== '') return `a password in the URL is not allowed${ARROW}write fleet: { password: { file: PATH } }`;
  const unknown = [...searchParams.keys()].find((key) => key !== 'host' && key !== 'sslmode');
  if (unknown !== undefined) return `unknown parameter ${unknown}${ARROW}host and sslmode are known`;
  const socket = searchParams.get('host');
  if (socket !== null && !socket.startsWith('/'))
    return `host=${socket} is not the folder of a socket${ARROW}write another machine before the path: postgres://labfeed@db.example.org/labfeed`;
  return refuseMode(searchParams.get('sslmode'), url, socket !== null);
}

function refuseMode(mode: string | null, url: string, isSocket: boolean): string | undefined {
  if (mode === null || (mode === 'disable' && isHere(url))) return undefined;
  if (mode !== 'verify-full')
    return `sslmode=${mode} is not allowed${ARROW}remove it: the certificate of another machine is always verified`;
  return isSocket ? `sslmode=${mode} is not possible for a socket${ARROW}remove it` : undefined;
}

/** On this machine, by loopback or a socket: nobody else sees the connection. */
function isHere(url: string): boolean {
  const { hostname: host, searchParams } = new URL(url);
  return searchParams.has('host') || isLoopback({ host: host.replace(/^\[|\]$/g, '') });
}

/** A member of a fleet. */
export interface FleetConfig {
  /** Without a password. */
  readonly url: string;
  readonly role: Role;
  readonly name: string;
  /** Undefined: that of .pgpass, or none. */
  readonly password: (() => string) | undefined;
  readonly passwordFrom: SecretSource | undefined;
  readonly ca: string | undefined;
  readonly isEncrypted: boolean;
}

export const resolveFleet = (
  url: string,
  role: Role,
  { name, password, ca }: z.output<typeof fleetSchema>,
  folder: string,
  where: Place,
): FleetConfig => {
  const passwordFrom = password && resolveSecret(password, folder);
  return {
    url,
    role,
    name: name ?? (hostname().replace(/[^A-Za-z0-9._-]/g, '-') || 'labfeed'),
    password: passwordFrom && (() => readSecret('password', passwordFrom, where, process.env)),
    passwordFrom,
    ca: ca === undefined ? undefined : resolve(folder, ca),
    isEncrypted: !isHere(url) || new URL(url).searchParams.get('sslmode') === 'verify-full',
  };
};

/** The journal of a member: intake, its own runs, and what it has not handed over. */
export const memberJournal = (state: string | undefined, folder: string, usual: string): string =>
  state === undefined ? usual : join(resolve(folder, state), 'journal.db');
