import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { addCheck } from '../../src/check/check.js';
import { systemClock } from '../../src/clock.js';
import { loadConfig } from '../../src/config/load.js';
import { isAway, Postgres, tryDatabase } from '../../src/fleet/database.js';
import { takeLease } from '../../src/fleet/lease.js';
import { prepareSchema } from '../../src/fleet/upgrade.js';
import { createLog } from '../../src/log.js';
import { type Cluster, connectTo, memberOf, noPostgres, startCluster } from '../support/postgres.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';
import { HAS_OPENSSL, makeAuthority } from '../support/tls.js';

const PASSWORD = 'correct-horse-7';

describe.skipIf(noPostgres || !HAS_OPENSSL)('a database with a certificate of a private authority', () => {
  let cluster: Cluster;
  let database = '';
  let authority: ReturnType<typeof makeAuthority>;
  let folder = '';
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'labfeed-authority-'));
    authority = makeAuthority('Lab', folder);
    cluster = await startCluster();
    database = new URL(await cluster.createDatabase()).pathname;
    await cluster.requireTls(authority.sign('DNS:localhost'), PASSWORD);
  }, 60_000);
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await cluster.remove();
  }, 60_000);

  /** The configuration of a watcher. */
  function site({ host = 'localhost', ca = authority.pem, password = PASSWORD, mode = '?sslmode=verify-full' } = {}) {
    const folder = tempFolder();
    const file = join(folder, 'labfeed.yaml');
    writeFileSync(join(folder, 'ca.pem'), ca);
    writeFileSync(join(folder, 'password'), `${password}\n`, { mode: 0o600 });
    writeFileSync(
      file,
      `journal: postgres://pc@${host}:${cluster.port}${database}${mode}
role: watch
fleet: { name: pc1, state: state, ca: ca.pem, password: { file: password } }
status: false
instruments: { balance: { watch: ${folder} } }
`,
    );
    const { fleet } = loadConfig(file).settings;
    if (!fleet) throw new Error('the configuration has no fleet');
    return { file, folder, fleet };
  }

  test('the right authority, name and password are accepted, and the connection is encrypted', async () => {
    const postgres = new Postgres(site().fleet, () => undefined);
    onTestFinished(() => postgres.close());
    expect(
      await postgres.row(
        'SELECT ssl, usename FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE pid = pg_backend_pid()',
      ),
    ).toEqual({ ssl: true, usename: 'pc' });
  });

  test.each([
    [
      'another authority',
      () => ({ ca: makeAuthority('Other').pem }),
      /certificate/,
      'name the authority of the certificate in `fleet.ca`',
    ],
    [
      'another host name',
      () => ({ host: '127.0.0.1' }),
      /altnames/,
      'write a host name of the certificate in `journal`',
    ],
    ['a file without a certificate', () => ({ ca: 'nothing' }), /has no certificate/, 'name a PEM file in `fleet.ca`'],
    [
      'another password',
      () => ({ password: 'wrong-horse-8' }),
      /password authentication failed/,
      'check the user in `journal` and the password in `fleet.password`',
    ],
    ['a connection without TLS', () => ({ mode: '' }), /no encryption|rejects connection/, 'add ?sslmode=verify-full'],
  ])('%s is refused, with what to do', async (_, options, text, hint) => {
    const problem = await tryDatabase(site(options()).fleet);
    expect(problem?.text).toMatch(text);
    expect(problem?.hint).toContain(hint);
  });

  test('check says that the database answers, or why it does not', async () => {
    const check = async (file: string): Promise<string> => {
      const lines: string[] = [];
      vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
      const command = new Command();
      addCheck(command);
      await command.parseAsync(['--config', file], { from: 'user' });
      const code = process.exitCode;
      process.exitCode = undefined;
      return `${lines.join('\n')}\nexit ${code}`;
    };
    expect(await check(site().file)).toMatch(/the database of the fleet answers[\s\S]*exit undefined$/);
    const refused = await check(site({ ca: makeAuthority('Other').pem }).file);
    expect(refused).toMatch(/cannot use the database of the fleet: .*certificate[\s\S]*exit 1$/);
    expect(refused).toContain('name the authority of the certificate in `fleet.ca`');
  });

  /** The same configuration without a password: that of ~/.pgpass is used. */
  function withPasswordFile() {
    const home = tempFolder();
    vi.stubEnv('HOME', home);
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const name of ['PGPASSFILE', 'PGPASSWORD']) vi.stubEnv(name, undefined);
    const file = join(home, '.pgpass');
    return {
      file,
      write: (password: string) =>
        writeFileSync(file, `db.example.org:*:*:pc:other\nlocalhost:${cluster.port}:*:pc:${password}\n`, {
          mode: 0o600,
        }),
      fleet: { ...site().fleet, password: undefined, passwordFrom: undefined },
    };
  }

  test('without a password in the configuration, that of ~/.pgpass is used; what to do is said if there is none', async () => {
    const { file, write, fleet } = withPasswordFile();
    const hint =
      'set `fleet.password`, or name server, port, database and user in ~/.pgpass, which only its owner may read';
    expect(await tryDatabase(fleet)).toMatchObject({ text: expect.stringContaining(`${file} does not exist`), hint });
    write(PASSWORD);
    expect(await tryDatabase(fleet)).toBeUndefined();
    write('wrong-horse-8');
    expect((await tryDatabase(fleet))?.text).toContain('password authentication failed');
    write(PASSWORD);
    chmodSync(file, 0o644);
    expect(await tryDatabase(fleet)).toMatchObject({ text: expect.stringContaining('other users may read'), hint });
  });

  test.each(['`fleet.password`', '~/.pgpass'])('the password of %s is in no error and in no log', async (from) => {
    const lines: string[] = [];
    const { log, conceal, isSecretIn } = createLog({
      level: 'trace',
      destination: { write: (line: string) => void lines.push(line) },
    });
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    const own = withPasswordFile();
    for (const password of [PASSWORD, 'wrong-horse-8']) {
      own.write(password);
      const postgres = new Postgres(from === '~/.pgpass' ? own.fleet : site({ password }).fleet, conceal);
      const error = await postgres.rows('SELECT no_such_column').catch((reason: unknown) => reason);
      log.error({ err: error, config: postgres, password }, `cannot connect with ${password}`);
      expect(error).toBeInstanceOf(Error);
      expect(JSON.stringify([error, String(error), (error as Error).stack, postgres.trouble])).not.toContain(password);
      // So a file that contains it is not filed.
      expect(isSecretIn(`password: ${password}`)).toBe(true);
      await postgres.close();
    }
    expect(lines).toHaveLength(2);
    expect(lines.join()).not.toMatch(/horse/);
    expect(warnings).toEqual([]);
  });
});

test('an authority that cannot be read is a problem that check shows', async () => {
  const folder = tempFolder();
  const file = join(folder, 'labfeed.yaml');
  writeFileSync(
    file,
    'journal: postgres://pc@db.example.org/labfeed\nrole: watch\nfleet: { ca: missing.pem }\ninstruments: { balance: { watch: data } }\n',
  );
  const { fleet } = loadConfig(file).settings;
  expect(fleet && (await tryDatabase(fleet))).toMatchObject({
    text: expect.stringContaining('cannot read the certificate in `fleet.ca`'),
    hint: expect.stringContaining('check the path'),
  });
});

const noPgBouncer = spawnSync('pgbouncer', ['--version']).status !== 0;
if (noPgBouncer) console.warn('tests with PgBouncer are skipped: apt-get install pgbouncer');

describe.skipIf(noPostgres || noPgBouncer)('a database behind PgBouncer', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  }, 60_000);
  afterAll(() => cluster.remove(), 60_000);

  test.each(['transaction', 'session'])('with pool_mode = %s, members join, and one of them leads', async (mode) => {
    const url = await cluster.pool(await cluster.createDatabase(), mode);
    expect(await tryDatabase(memberOf(url))).toBeUndefined();
    const members = [connectTo(url), connectTo(url), connectTo(url)];
    onTestFinished(async () => void (await Promise.all(members.map((one) => one.close()))));
    const schemas = await Promise.all(members.map((one) => prepareSchema(one, true)));
    expect(new Set(schemas.map(({ id }) => id)).size).toBe(1);
    const deps = { clock: systemClock, log: silentLog(), lost: () => undefined };
    const leases = await Promise.all(members.map((one, n) => takeLease(one, n + 1, deps)));
    const held = leases.filter((lease) => lease !== undefined);
    expect(held).toHaveLength(1);
    await held[0]?.release(true);
  });

  test('with pool_mode = statement, check says what to change', async () => {
    const url = await cluster.pool(await cluster.createDatabase(), 'statement');
    expect(await tryDatabase(memberOf(url))).toMatchObject({
      text: 'cannot use the database of the fleet: PgBouncer allows no transactions (pool_mode = statement)',
      hint: expect.stringContaining('set pool_mode = transaction'),
    });
    const postgres = connectTo(url);
    onTestFinished(() => postgres.close());
    const refused = await prepareSchema(postgres, true).catch((error: unknown) => error);
    expect(isAway(refused)).toBe(false);
  });
});

test('a call that the server gave up, or a transaction that it ended, may succeed later', () => {
  for (const code of ['57014', '25P03', '55P03', '57P01', '08006'])
    expect(isAway(Object.assign(new Error('refused'), { code }))).toBe(true);
  for (const code of ['23505', '42P01', '25P02'])
    expect(isAway(Object.assign(new Error('refused'), { code }))).toBe(false);
});
