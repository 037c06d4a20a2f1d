import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { FleetConfig, Role } from '../../src/config/fleet.js';
import { Postgres } from '../../src/fleet/database.js';

const INSTALLED = '/usr/lib/postgresql';

/** The newest PostgreSQL of Debian's packages on this machine. */
const binaries = (existsSync(INSTALLED) ? readdirSync(INSTALLED) : [])
  .sort((a, b) => Number(b) - Number(a))
  .map((version) => join(INSTALLED, version, 'bin'))
  .find((folder) => existsSync(join(folder, 'initdb')));

/** Why tests with a database are skipped here; undefined if they are not. */
export const noPostgres =
  binaries === undefined ? 'PostgreSQL is not installed: apt-get install postgresql' : undefined;

if (noPostgres) console.warn(`tests of fleets are skipped. ${noPostgres}`);

/** PostgreSQL refuses to run as root. */
const asUser = process.geteuid?.() === 0 ? ['--reuid', 'postgres', '--regid', 'postgres', '--clear-groups'] : [];

const runs = (program: string, ...args: string[]): [string, string[]] => [
  'setpriv',
  [...asUser, '--pdeathsig', 'INT', join(binaries ?? '', program), ...args],
];

export interface Cluster {
  readonly port: number;
  /** For a new, empty database. */
  createDatabase(): Promise<string>;
  /** A backup of a database, as SQL. */
  dump(url: string): string;
  /** Replaces what the database has by a backup. Connections stay. */
  restore(url: string, dump: string): void;
  start(): Promise<void>;
  /** Ends it as a crash of the server would. */
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** A real PostgreSQL on loopback, with its own data. */
export async function startCluster(): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'labfeed-postgres-'));
  const data = join(folder, 'data');
  mkdirSync(data);
  if (asUser.length > 0) execFileSync('chown', ['-R', 'postgres:postgres', folder]);
  const [initdb, args] = runs(
    'initdb',
    '-D',
    data,
    '-U',
    'labfeed',
    '--auth',
    'trust',
    '--no-sync',
    '-E',
    'UTF8',
    '--locale',
    'C',
  );
  execFileSync(initdb, args, { stdio: 'ignore', cwd: folder });
  const port = await freePort();
  const settings = `listen_addresses = '127.0.0.1'\nport = ${port}\nunix_socket_directories = '${folder}'\nshared_buffers = 32MB\nfsync = off\n`;
  writeFileSync(join(data, 'postgresql.auto.conf'), settings);
  let server: ChildProcess | undefined;
  let databases = 0;
  const admin = (database: string) => new pg.Client({ host: '127.0.0.1', port, user: 'labfeed', database });

  async function start(): Promise<void> {
    rmSync(join(data, 'postmaster.pid'), { force: true });
    const [program, options] = runs('postgres', '-D', data);
    server = spawn(program, options, { stdio: 'ignore', cwd: folder });
    for (let attempt = 0; ; attempt++) {
      const client = admin('postgres');
      client.on('error', () => undefined);
      try {
        await client.connect();
        return await client.end();
      } catch (error) {
        if (attempt > 200) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }
  async function end(signal: NodeJS.Signals): Promise<void> {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'close');
    server.kill(signal);
    await ended;
  }
  await start();
  return {
    port,
    start,
    kill: () => end('SIGQUIT'),
    async createDatabase() {
      databases += 1;
      const name = `labfeed${databases}`;
      const client = admin('postgres');
      await client.connect();
      await client.query(`CREATE DATABASE ${name}`);
      await client.end();
      return `postgres://labfeed@127.0.0.1:${port}/${name}`;
    },
    dump(url) {
      const [program, options] = runs('pg_dump', '--schema', 'labfeed', url);
      return execFileSync(program, options, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 28 });
    },
    restore(url, dump) {
      const [program, options] = runs('psql', '--quiet', '--single-transaction', '-v', 'ON_ERROR_STOP=1', url);
      const input = `SET client_min_messages = warning;\nDROP SCHEMA labfeed CASCADE;\n${dump}`;
      execFileSync(program, options, { cwd: folder, input, stdio: ['pipe', 'ignore', 'inherit'] });
    },
    async remove() {
      await end('SIGQUIT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

export const memberOf = (url: string, name = 'pc1', role: Role = 'all'): FleetConfig => ({
  ...{ url, name, role, password: undefined, passwordFrom: undefined, ca: undefined, isEncrypted: false },
});

export const connectTo = (url: string): Postgres => new Postgres(memberOf(url), () => undefined);
