import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { systemCode } from '../errors.js';

/** The server that asks for a password. */
export interface AskingServer {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
}

/**
 * The password for this server from where `psql` takes it: https://www.postgresql.org/docs/current/libpq-pgpass.html. `pg` would
 * not say which password it found, so that the log could not conceal it.
 */
export function usualPassword({ host, port, database, user }: AskingServer): string {
  const given = process.env['PGPASSWORD'];
  if (given) return given;
  const file = process.env['PGPASSFILE'] || join(homedir(), '.pgpass');
  const wanted = [host, String(port), database, user];
  for (const line of readPrivate(file).split(/\r?\n/)) {
    const fields = line.startsWith('#') ? [] : fieldsOf(line);
    const [password] = fields.slice(wanted.length);
    if (password && wanted.every((value, n) => fields[n] === '*' || fields[n] === value)) return password;
  }
  throw new NoPasswordError(`the database asks for a password, and ${file} has none for it`);
}

/** No mistake in the configuration: the file can be completed while the daemon runs. */
export class NoPasswordError extends Error {}

function readPrivate(file: string): string {
  try {
    if ((statSync(file).mode & 0o077) === 0) return readFileSync(file, 'utf8');
  } catch (error) {
    const reason = systemCode(error) === 'ENOENT' ? 'does not exist' : `cannot be read (${systemCode(error)})`;
    throw new NoPasswordError(`the database asks for a password, and ${file} ${reason}`);
  }
  throw new NoPasswordError(
    `the database asks for a password, and ${file} is ignored: other users may read or write it`,
  );
}

/** Separated by colons. A backslash is before each colon and backslash that belongs to a field. */
const fieldsOf = (line: string): string[] =>
  [...line.matchAll(/((?:\\.|[^\\:])*)(?::|$)/g)].map(([, field = '']) => field.replace(/\\(.)/g, '$1'));
