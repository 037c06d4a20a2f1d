import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { FleetConfig, Role } from '../../src/config/fleet.js';
import { Postgres } from '../../src/fleet/database.js';
import { sharedFolder } from './shared-folder.js';
import { until } from './until.js';

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
  /** From now on it accepts TLS with this certificate. Role `pc` needs TLS and this password, by scram-sha-256. */
  requireTls(certificate: { readonly key: Buffer; readonly cert: Buffer }, password: string): Promise<void>;
  /** The address of this database behind a PgBouncer, which must be installed. */
  pool(url: string, mode: string): Promise<string>;
  /** A replica that has everything before a commit is confirmed. */
  addReplica(): Promise<Replica>;
  remove(): Promise<void>;
}

export interface Replica extends Pick<Cluster, 'port' | 'start' | 'kill'> {
  /** Makes it the server that takes writes. */
  promote(): Promise<void>;
}

interface Server extends Pick<Cluster, 'port' | 'start' | 'kill'> {
  query(text: string, database?: string): Promise<readonly object[]>;
}

/** The server for the data in this folder. */
async function serve(folder: string, data: string, hosts: string): Promise<Server> {
  const port = await freePort();
  const settings = `listen_addresses = '${hosts}'\nport = ${port}\nunix_socket_directories = '${folder}'\nshared_buffers = 32MB\nfsync = off\nmax_connections = 300\nshared_preload_libraries = 'pg_stat_statements'\n`;
  appendFileSync(join(data, 'postgresql.auto.conf'), settings);
  let server: ChildProcess | undefined;
  async function query(text: string, database = 'postgres'): Promise<readonly object[]> {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'labfeed', database });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }
  return {
    port,
    query,
    async start() {
      rmSync(join(data, 'postmaster.pid'), { force: true });
      const [program, options] = runs('postgres', '-D', data);
      server = spawn(program, options, { stdio: 'ignore', cwd: folder });
      for (let attempt = 0; ; attempt++) {
        try {
          await query('SELECT 1');
          return;
        } catch (error) {
          if (attempt > 600) throw error;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
    },
    async kill() {
      if (!server || server.exitCode !== null || server.signalCode !== null) return;
      const ended = once(server, 'close');
      server.kill('SIGQUIT');
      await ended;
    },
  };
}

/** New data, made once for all tests: `initdb` takes ten times as long as a copy. */
function templateFolder(): string {
  const template = join(sharedFolder(), 'postgres');
  if (existsSync(template)) return template;
  const folder = mkdtempSync(join(sharedFolder(), 'initdb-'));
  if (asUser.length > 0) execFileSync('chown', ['postgres:postgres', folder]);
  const options = ['-U', 'labfeed', '--auth', 'trust', '--no-sync', '-E', 'UTF8', '--locale', 'C'];
  const [initdb, args] = runs('initdb', '-D', join(folder, 'data'), ...options);
  execFileSync(initdb, args, { stdio: 'ignore', cwd: folder });
  try {
    renameSync(join(folder, 'data'), template);
  } catch {
    // Another worker was faster.
  }
  return template;
}

/** A real PostgreSQL on loopback, and on another address of this machine if one is given, with its own data. */
export async function startCluster(address?: string): Promise<Cluster> {
  const hosts = ['127.0.0.1', ...(address === undefined ? [] : [address])].join(',');
  const folder = mkdtempSync(join(tmpdir(), 'labfeed-postgres-'));
  const data = join(folder, 'data');
  if (asUser.length > 0) execFileSync('chown', ['postgres:postgres', folder]);
  execFileSync('cp', ['-a', templateFolder(), data]);
  if (address !== undefined) appendFileSync(join(data, 'pg_hba.conf'), `host all all ${address}/24 trust\n`);
  const primary = await serve(folder, data, hosts);
  const { port, query } = primary;
  let replica: Server | undefined;
  let databases = 0;
  const poolers: ChildProcess[] = [];
  await primary.start();
  return {
    port,
    start: primary.start,
    kill: primary.kill,
    async createDatabase() {
      databases += 1;
      const name = `labfeed${databases}`;
      await query(`CREATE DATABASE ${name}`);
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
    async requireTls({ key, cert }, password) {
      const hba = join(data, 'pg_hba.conf');
      writeFileSync(join(data, 'server.key'), key, { mode: 0o600 });
      writeFileSync(join(data, 'server.crt'), cert);
      const rules = 'hostssl all pc all scram-sha-256\nhost all pc all reject\n';
      writeFileSync(hba, rules + readFileSync(hba, 'utf8'));
      if (asUser.length > 0) execFileSync('chown', ['-R', 'postgres:postgres', data]);
      await query(`CREATE ROLE pc LOGIN PASSWORD '${password}'`);
      await query('ALTER SYSTEM SET ssl = on');
      await query('SELECT pg_reload_conf()');
      const isOn = async () => JSON.stringify(await query('SHOW ssl')).includes('on');
      await until('the server has its certificate', isOn, 20_000);
    },
    async pool(url, mode) {
      const { pathname, username } = new URL(url);
      const [listening, file] = [await freePort(), join(folder, `pgbouncer-${mode}.ini`)];
      const target = `host=127.0.0.1 port=${port} user=${username}`;
      const settings = `listen_addr = 127.0.0.1\nlisten_port = ${listening}\nunix_socket_dir =\nauth_type = any`;
      writeFileSync(file, `[databases]\n* = ${target}\n[pgbouncer]\n${settings}\npool_mode = ${mode}\n`);
      const pooler = spawn('setpriv', [...asUser, '--pdeathsig', 'INT', 'pgbouncer', '--quiet', file], {
        stdio: 'ignore',
      });
      poolers.push(pooler);
      const isThere = () =>
        new Promise<boolean>((resolve) => {
          const socket = connect(listening, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
          socket.end();
        });
      await until('PgBouncer listens', isThere);
      return `postgres://${username}@127.0.0.1:${listening}${pathname}`;
    },
    async addReplica() {
      const copy = join(folder, 'replica');
      const from = ['-h', '127.0.0.1', '-p', String(port), '-U', 'labfeed'];
      const [backup, options] = runs('pg_basebackup', '-D', copy, ...from, '-R', '-c', 'fast', '--no-sync');
      execFileSync(backup, options, { stdio: 'ignore', cwd: folder });
      const server = await serve(folder, copy, hosts);
      replica = server;
      await server.start();
      await query("ALTER SYSTEM SET synchronous_standby_names = '*'");
      await query('SELECT pg_reload_conf()');
      return { ...server, promote: async () => void (await server.query('SELECT pg_promote()')) };
    },
    async remove() {
      for (const pooler of poolers) pooler.kill('SIGKILL');
      await replica?.kill();
      await primary.kill();
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
