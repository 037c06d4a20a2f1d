import { readFileSync } from 'node:fs';
import pg from 'pg';
import type { FleetConfig } from '../config/fleet.js';
import { explain, LabfeedError, splitHint } from '../errors.js';
import { type AskingServer, NoPasswordError, usualPassword } from './pgpass.js';

/** The connection to PostgreSQL. One pool per process; every call is a statement or a transaction of its own. */
export class Postgres {
  readonly #pool: pg.Pool;
  readonly #options: pg.ClientConfig;
  /** Limit the time of the calls that are under way. */
  readonly #calls = new Set<() => void>();
  #isHurried = false;
  /** Why the last call could not reach the database; undefined once a later one succeeded. */
  trouble: string | undefined;

  constructor(config: FleetConfig, conceal: (secret: string) => void) {
    this.#options = optionsOf(config, conceal);
    const max = config.role === 'watch' ? 2 : 4;
    // The pool waits for it, although its type does not say so.
    const onConnect = (client: pg.ClientBase) => client.query(SESSION) as unknown as undefined;
    this.#pool = new pg.Pool({ ...this.#options, max, idleTimeoutMillis: 30_000, onConnect });
    // A connection that breaks while it is idle is replaced at the next call.
    this.#pool.on('error', ignore);
  }

  async rows<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#attempt(async () => (await this.#pool.query<Row>(text, [...values])).rows);
  }

  async row<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row | undefined> {
    return (await this.rows<Row>(text, values))[0];
  }

  /** The number of rows that were changed. */
  async run(text: string, values: readonly unknown[] = []): Promise<number> {
    return this.#attempt(async () => (await this.#pool.query(text, [...values])).rowCount ?? 0);
  }

  async transaction<T>(work: (client: pg.ClientBase) => Promise<T>, begin = 'BEGIN'): Promise<T> {
    return this.#attempt(async () => {
      const client = await this.#pool.connect();
      // The pool does not listen while it is in use, and an error that nobody listens to ends the process.
      client.on('error', ignore);
      let failure: Error | undefined;
      try {
        await client.query(begin);
        const result = await work(client);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error));
        throw error;
      } finally {
        client.off('error', ignore);
        // After an error its state is not certain. The end of the connection rolls back: a ROLLBACK would wait, too.
        client.release(failure);
      }
    });
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let hurry = (): void => undefined;
    const late = new Promise<never>((_, reject) => {
      hurry = () => {
        timer = setTimeout(() => reject(new Error('the database does not answer')), HURRY_MS);
      };
    });
    if (this.#isHurried) hurry();
    else this.#calls.add(hurry);
    try {
      const result = await Promise.race([work(), late]);
      this.trouble = undefined;
      return result;
    } catch (error) {
      if (isStatementPooling(error)) throw noTransactions(error);
      if (isAway(error)) this.trouble = explain(error);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#calls.delete(hurry);
    }
  }

  /** The process stops: calls that are under way, and later ones, wait for the database for a short time only. */
  hurry(): void {
    this.#isHurried = true;
    for (const hurry of this.#calls) hurry();
  }

  /**
   * Calls `wake` at each notification, until `close` is called. A notification can be lost, so it only makes a poll come
   * earlier.
   */
  listen(wake: (payload: string) => void): { close(): void } {
    let isClosed = false;
    let client: pg.Client | undefined;
    let timer: NodeJS.Timeout | undefined;
    const open = async (): Promise<void> => {
      if (isClosed) return;
      const next = new pg.Client({ ...this.#options, query_timeout: 0 });
      client = next;
      const again = (): void => {
        if (client !== next || isClosed) return;
        client = undefined;
        next.end().catch(() => undefined);
        timer = setTimeout(() => void open(), LISTEN_AGAIN_MS);
        timer.unref();
      };
      next.on('error', again);
      next.on('end', again);
      next.on('notification', ({ payload = '' }) => wake(payload));
      try {
        await next.connect();
        await next.query(SESSION);
        await next.query('LISTEN labfeed');
      } catch {
        again();
      }
    };
    void open();
    return {
      // Nobody waits for the answer, which may not come.
      close() {
        isClosed = true;
        clearTimeout(timer);
        client?.end().catch(() => undefined);
      },
    };
  }

  async close(): Promise<void> {
    const ended = this.#pool.end();
    // A connection that is still in use belongs to a call that nobody waits for any more.
    await (this.#isHurried ? this.#attempt(() => ended).catch(ignore) : ended);
  }
}

/** The query that was under way fails with it, too. */
const ignore = (): void => undefined;

const LISTEN_AGAIN_MS = 2000;

/** A database that does not respond counts as away after this time. */
const QUERY_MS = 20_000;

/** The same while the process stops, which may take 10 s. */
const HURRY_MS = 2000;

/** After this time without an answer, the system asks whether the other end is still there, every second, ten times. */
const KEEP_ALIVE_MS = 10_000;

/**
 * If the packets of a machine vanish, PostgreSQL would keep its locks for two hours, and nobody could lead meanwhile. The
 * `lock_timeout` is longer than a caller waits. No `statement_timeout`: it would end the wait for a synchronous replica, too.
 */
const SESSION = `SET idle_in_transaction_session_timeout = '10s'; SET lock_timeout = '${QUERY_MS + 5000}ms';
  SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_user_timeout = '60s'`;

function optionsOf(
  { url, password, ca, isEncrypted }: FleetConfig,
  conceal: (secret: string) => void,
): pg.ClientConfig {
  const { hostname, port, pathname, username, searchParams } = new URL(url);
  const socket = searchParams.get('host');
  return {
    host: socket ?? decodeURIComponent(hostname).replace(/^\[|\]$/g, ''),
    ...(port && { port: Number(port) }),
    ...(pathname.length > 1 && { database: decodeURIComponent(pathname.slice(1)) }),
    ...(username && { user: decodeURIComponent(username) }),
    // Asked for at each connection, so that it can be replaced. `pg` names the server, although its type does not say so.
    password: (server?: AskingServer) => {
      const found = password?.() ?? (server ? usualPassword(server) : '');
      conceal(found);
      return found;
    },
    // Public authorities, or only the given one; the name in the certificate must be that of the host.
    ssl: isEncrypted && (ca === undefined ? true : { ca: readAuthority(ca) }),
    application_name: 'labfeed',
    connectionTimeoutMillis: 5000,
    query_timeout: QUERY_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  };
}

function readAuthority(path: string): string {
  try {
    const pem = readFileSync(path, 'utf8');
    // TLS ignores a file without any, and then refuses every server.
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  } catch (error) {
    throw new LabfeedError(`cannot read the certificate in \`fleet.ca\`: ${explain(error)}`, {
      hint: 'check the path, and that the user of the service can read the file',
      cause: error,
    });
  }
  throw new LabfeedError(`${path} has no certificate`, { hint: 'name a PEM file in `fleet.ca`' });
}

const BIGINT = 20;

/** Ids and times are below 2^53. */
function parserOf(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === BIGINT && format !== 'binary') return Number;
  return pg.types.getTypeParser(oid, format as 'text') as (value: string) => unknown;
}

/** Another leader took over: nothing of this one may be recorded or sent any more. */
export class FencedError extends LabfeedError {
  override readonly name = 'FencedError';
}

/** An answer of PgBouncer, which does not depend on time. */
const isStatementPooling = (error: unknown): boolean =>
  error instanceof Error && error.message.includes('not allowed in statement pooling mode');

const noTransactions = (cause: unknown): LabfeedError =>
  new LabfeedError('PgBouncer allows no transactions (pool_mode = statement)', {
    hint: 'set pool_mode = transaction in PgBouncer, or let `journal` name PostgreSQL itself',
    cause,
  });

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? '');

/** By `labfeed.ship`. */
export const isFenced = (error: unknown): boolean => /^LF00[12]$/.test(codeOf(error));

/**
 * Whether the database could not be reached, or is starting, stopping or read-only, such as a replica before its promotion:
 * the same call may succeed later. Other errors are answers to this call.
 */
export function isAway(error: unknown): boolean {
  const code = codeOf(error);
  // https://www.postgresql.org/docs/current/errcodes-appendix.html; names such as ECONNREFUSED are those of the system.
  if (/^[0-9A-Z]{5}$/.test(code)) return /^(08|28|3D|53|57|58|25006|25P0[34]|40|55P03)/.test(code);
  return !(error instanceof TypeError || error instanceof RangeError || error instanceof LabfeedError);
}

/** What a person can do about a database that refuses the connection. */
export function adviseConnection(error: unknown): string | undefined {
  const code = codeOf(error);
  // "pg_hba.conf rejects connection … no encryption"
  if (code === '28000' && error instanceof Error && error.message.includes('no encryption'))
    return 'let the server accept connections without TLS, or add ?sslmode=verify-full to `journal`';
  if (code.startsWith('28')) return 'check the user in `journal` and the password in `fleet.password`';
  if (code === '3D000') return 'create the database: createdb labfeed';
  if (code === '42501') return 'let the user create the schema: GRANT CREATE ON DATABASE labfeed TO labfeed';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'write a host name of the certificate in `journal`';
  if (code === 'CERT_HAS_EXPIRED') return 'renew the certificate of the database server';
  if (error instanceof NoPasswordError)
    return 'set `fleet.password`, or name server, port, database and user in ~/.pgpass, which only its owner may read';
  if (error instanceof Error && error.message.includes('does not support SSL'))
    return 'give the database server a certificate, and set `ssl = on` there';
  if (/CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS/.test(code)) return 'name the authority of the certificate in `fleet.ca`';
  return undefined;
}

/** Why the database cannot be used, and what to do; undefined if it can. */
export async function tryDatabase(
  config: FleetConfig,
  ask: (postgres: Postgres) => Promise<void> = async () => undefined,
) {
  let postgres: Postgres | undefined;
  try {
    postgres = new Postgres(config, () => undefined);
    await postgres.transaction((client) => client.query('SELECT 1'));
    await ask(postgres);
    return undefined;
  } catch (error) {
    const { what, hint } = splitHint(explain(error));
    const advice = hint ?? adviseConnection(error);
    return {
      text: `cannot use the database of the fleet: ${what}`,
      hint: advice ?? 'check the address in `journal`, and that the server accepts connections',
    };
  } finally {
    await postgres?.close();
  }
}
