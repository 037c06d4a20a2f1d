import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, test } from 'vitest';
import { CLI, makeSite, type SiteOptions, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

async function setUp(options: Partial<SiteOptions> = {}) {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  return { folder, sandbox, site: makeSite(folder, { url: sandbox.url, key: sandbox.key, ...options }) };
}

test('files that do not fit their mapping are each quarantined with a reason, and a good file next to them is filed', async () => {
  const { site, sandbox, folder } = await setUp();
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  site.drop('empty.csv', '');
  site.drop('rubbish.csv', Buffer.from(Array.from({ length: 5000 }, (_, n) => (n * 7919) % 256)));
  site.drop('huge.csv', '');
  truncateSync(join(folder, 'data/balance/huge.csv'), 2 * 1024 ** 3);
  site.drop('prose.csv', 'Dear diary,\n');
  site.drop('good.csv', weighing(1));
  const quarantined = (name: string) =>
    daemon.logged(({ msg, file }) => msg === 'run quarantined' && String(file).endsWith(name), 100_000);
  expect((await quarantined('empty.csv'))['reason']).toMatch(/empty/);
  expect((await quarantined('rubbish.csv'))['reason']).toMatch(/not text|binary/i);
  expect((await quarantined('huge.csv'))['reason']).toMatch(/too large: 2048\.0 MB, the limit is 1024\.0 MB.*limits/s);
  await daemon.logged('run filed');
  expect(await daemon.stop()).toBe(0);
  expect(sandbox.experiments().map(({ title }) => title)).toContain('good (balance)');
});

test('quarantined files are read again after a restart with a corrected mapping', async () => {
  const instruments = (decimal: string) =>
    `  balance: { watch: data/balance, ready: { quiet: 100ms }, parse: { delimiter: ";", ${decimal} table: {} } }`;
  const { site, sandbox, folder } = await setUp({ instruments: instruments('') });
  const first = startDaemon(site.config);
  await first.logged('ready');
  site.drop('w.csv', 'Sample;Weight (mg)\nA;1,234\nB;5,678\n');
  const { reason } = await first.logged('run quarantined');
  expect(reason).toMatch(/w\.csv:2:\d+: [\s\S]*decimal/);
  await first.stop();
  makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments: instruments('decimal: ",",') });
  const second = startDaemon(site.config);
  await second.logged('run filed');
  await second.stop();
  expect(sandbox.experiments()).toHaveLength(1);
});

test('files whose names have spaces, quotes, newlines, markup or invalid UTF-8 are filed, and the names stay text', async () => {
  const { site, sandbox, folder } = await setUp();
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const names = [
    'two words.csv',
    `it's "quoted".csv`,
    'two\nlines.csv',
    '<b onclick=alert(1)>.csv',
    '{{ now }}.csv',
    '-rf.csv',
  ];
  for (const [n, name] of names.entries()) site.drop(name.replaceAll('/', ''), weighing(n));
  const latin = Buffer.concat([
    Buffer.from(join(folder, 'data/balance/caf')),
    Buffer.from([0xe9]),
    Buffer.from('.csv'),
  ]);
  writeFileSync(latin, weighing(99));
  await until('all filed', () => sandbox.experiments().filter(({ comments }) => comments.length > 0).length === 7);
  await daemon.stop();
  const titles = sandbox.experiments().map(({ title }) => title);
  expect(titles.sort()).toEqual(
    [
      'two words (balance)',
      `it's "quoted" (balance)`,
      'two lines (balance)',
      '<b onclick=alert(1)> (balance)',
      '{{ now }} (balance)',
      '-rf (balance)',
      'caf\\xE9 (balance)',
    ].sort(),
  );
  for (const { body } of sandbox.experiments()) expect(body).not.toMatch(/<b[ >]/);
});

test('markup and templates in cells stay text in the notebook', async () => {
  const { site, sandbox } = await setUp();
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  site.drop('x.csv', 'Sample,Note\nA,<script>alert(1)</script>\nB,{{ meta }}{% raw %}\n');
  await daemon.logged('run filed');
  await daemon.stop();
  const [experiment] = sandbox.experiments();
  expect(experiment?.body).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  expect(experiment?.body).not.toContain('<script>');
  expect(experiment?.body).toContain('{{ meta }}{% raw %}');
});

test('a missing folder does not stop other instruments, and is watched when it appears', async () => {
  const { site, sandbox, folder } = await setUp({
    instruments: `  balance: { watch: data/balance, ready: { quiet: 100ms } }\n  later: { watch: data/later, ready: { quiet: 100ms } }`,
  });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  expect(daemon.lines.some(({ instrument, level }) => instrument === 'later' && Number(level) >= 40)).toBe(true);
  site.drop('a.csv', weighing(1));
  await daemon.logged('run filed');
  site.drop('b.csv', weighing(2), 'later');
  await until('the late one filed', () => sandbox.experiments().some(({ title }) => title === 'b (later)'));

  // A share that disappears and comes back has nothing new.
  renameSync(join(folder, 'data/later'), join(folder, 'away'));
  await new Promise((resolve) => setTimeout(resolve, 500));
  renameSync(join(folder, 'away'), join(folder, 'data/later'));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await daemon.stop();
  expect(sandbox.experiments()).toHaveLength(2);
});

test('a mistake in one instrument stops only that one, and is reported with its location', async () => {
  const { site, sandbox } = await setUp({
    instruments: [
      '  balance: { watch: data/balance, ready: { quiet: 100ms } }',
      '  typo: { watch: data/typo, pars: {} }',
      '  template: { watch: data/template, experiment: { title: "{{ meta.x" } }',
      '  catchall: { watch: data, files: "**/*.csv", ready: { quiet: 100ms } }',
    ].join('\n'),
  });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const mistakes = daemon.lines.filter(({ msg }) => msg === 'configuration error');
  expect(mistakes).toMatchObject([
    {
      instrument: 'typo',
      problem: expect.stringMatching(/labfeed\.yaml:10:\d+: unknown key "pars"\n {2}→ did you mean parse\?/),
    },
    { instrument: 'template', problem: expect.stringMatching(/labfeed\.yaml:11:\d+: experiment\.title: /) },
  ]);
  // Their files wait for them: another instrument that also matches does not file them.
  site.drop('t.csv', weighing(7), 'typo');
  site.drop('t.csv', weighing(8), 'template');
  site.drop('a.csv', weighing(1));
  await daemon.logged('run filed');
  await new Promise((resolve) => setTimeout(resolve, 700));
  await daemon.stop();
  expect(sandbox.experiments().map(({ title }) => title)).toEqual(['a (balance)']);
});

test('a growing file is taken once, when it is complete', async () => {
  const { site, sandbox } = await setUp({
    instruments: '  balance: { watch: data/balance, ready: { quiet: 6s } }',
  });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  for (let rows = 1; rows <= 8; rows++) {
    site.drop('slow.csv', `Sample,Weight (mg)\n${Array.from({ length: rows }, (_, n) => `S${n},${n}.5\n`).join('')}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await daemon.logged('run filed');
  await new Promise((resolve) => setTimeout(resolve, 500));
  await daemon.stop();
  expect(sandbox.experiments()).toHaveLength(1);
  expect(sandbox.experiments()[0]?.comments[0]).toContain('S7');
});

test('a large backlog is held until the configuration decides', async () => {
  const { site, sandbox, folder } = await setUp();
  for (let n = 0; n < 51; n++) site.drop(`old${n}.csv`, weighing(n));
  const first = startDaemon(site.config);
  await first.logged('ready');
  expect(first.lines.some(({ msg, files }) => msg.startsWith('the first scan found many files') && files === 51)).toBe(
    true,
  );
  site.drop('new.csv', weighing(1000));
  await first.logged('run filed');
  await first.stop();
  expect(sandbox.experiments().map(({ title }) => title)).toEqual(['new (balance)']);
  makeSite(folder, {
    url: sandbox.url,
    key: sandbox.key,
    instruments: '  balance: { watch: data/balance, ready: { quiet: 100ms }, existing: ingest }',
  });
  const second = startDaemon(site.config);
  await until(
    'the old ones filed',
    () => sandbox.experiments().filter(({ comments }) => comments.length > 0).length === 52,
    120_000,
  );
  await second.stop();
});

// Root may read everything. If the test runs as root, the daemon runs as another user.
const NOBODY = process.getuid?.() === 0 ? 65_534 : undefined;
const NOBODY_STARTS =
  NOBODY === undefined || spawnSync(process.execPath, [CLI, '--version'], { uid: NOBODY }).status === 0;
if (!NOBODY_STARTS) console.warn('this checkout is for root alone: a folder without permission is not tried');

test.skipIf(!NOBODY_STARTS)('a folder without permission is reported and stops nothing', async () => {
  const { site, folder } = await setUp({
    instruments: `  balance: { watch: data/balance, ready: { quiet: 100ms } }\n  secret: { watch: data/secret }`,
  });
  mkdirSync(join(folder, 'data/secret'), { mode: 0 });
  if (NOBODY !== undefined) execFileSync('chown', ['-R', String(NOBODY), folder]);
  const daemon = startDaemon(site.config, {}, { uid: NOBODY });
  await daemon.logged('ready');
  const report = daemon.lines.find(({ instrument, level }) => instrument === 'secret' && Number(level) >= 40);
  expect(report).toMatchObject({
    folder: join(folder, 'data/secret'),
    reason: 'permission denied',
  });
  site.drop('a.csv', weighing(1));
  await daemon.logged('run filed');
  await daemon.stop();
});

test.skipIf(!NOBODY_STARTS)('an include folder without permission is an error of the configuration', async () => {
  const folder = tempFolder();
  const main = join(folder, 'labfeed.yaml');
  const part = join(folder, 'parts/instruments.d');
  mkdirSync(join(part, 'private'), { recursive: true });
  chmodSync(join(part, 'private'), 0);
  writeFileSync(join(part, 'a.yaml'), 'instruments: { balance: { watch: . } }\n');
  writeFileSync(main, 'notebook: { url: "http://127.0.0.1:1", key: { env: KEY } }\ninclude: "parts/*.d/*.yaml"\n');
  if (NOBODY !== undefined) execFileSync('chown', ['-R', String(NOBODY), folder]);
  const check = () =>
    spawnSync(process.execPath, [CLI, 'check', '--offline', '--config', main], { encoding: 'utf8', uid: NOBODY });
  // No file in the private folder can match.
  expect(check()).toMatchObject({ status: 0, stderr: '' });
  chmodSync(part, 0);
  const { status, stderr } = check();
  expect(status).toBe(78);
  expect(stderr).toMatch(
    /labfeed\.yaml:2:10: include: the user \S+ cannot read the folder \S+instruments\.d \(EACCES\)/,
  );
  expect(stderr).toContain(`→ let this user read it, for example with: chmod o+rx ${part}`);
  const run = spawnSync(process.execPath, [CLI, 'run', '--config', main], { encoding: 'utf8', uid: NOBODY });
  expect(run.status).toBe(78);
  for (const one of [part, join(part, 'private')]) chmodSync(one, 0o700);
});

test.skipIf(!NOBODY_STARTS)(
  'a file without permission needs attention, with the user and the mode to change',
  async () => {
    const { site, folder } = await setUp();
    const path = join(folder, 'data/balance/a.csv');
    site.drop('a.csv', weighing(1));
    chmodSync(path, 0o200);
    if (NOBODY !== undefined) execFileSync('chown', ['-R', String(NOBODY), folder]);
    const daemon = startDaemon(site.config, {}, { uid: NOBODY });
    await daemon.logged('cannot take the file yet, retrying');
    const expected = /the user \S+ may not read it \(owner \S+, group \S+, mode 0200\)/;
    await until('it is reported', async () => {
      const { stdout } = await labfeed(['status', '--config', site.config], folder);
      return /needs attention[\s\S]*balance: 1 file or folder cannot be read, such as \S+a\.csv → labfeed why/.test(
        stdout,
      );
    });
    const why = await labfeed(['why', path, '--config', site.config], folder);
    expect(why.stdout).toMatch(expected);
    expect(why.stdout).toContain(`chmod u+r ${path}`);
    chmodSync(path, 0o644);
    await daemon.logged('run filed');
    await until('it is no longer reported', async () => {
      const { stdout } = await labfeed(['status', '--config', site.config], folder);
      return !stdout.includes('cannot be read');
    });
    await daemon.stop();
  },
);

test('a journal that is from a newer version or in use by another daemon is refused with a hint', async () => {
  const { site } = await setUp();
  const first = startDaemon(site.config);
  await first.logged('ready');
  const second = startDaemon(site.config);
  expect(await second.ended).toBe(1);
  expect(second.output()).toMatch(/in use by another daemon[\s\S]*→ stop that one first/);
  // It never ran, so it does not log a stop.
  expect(second.lines).toEqual([]);
  await first.stop();
  const database = new DatabaseSync(site.journal);
  database.exec('PRAGMA user_version = 99');
  database.close();
  const third = startDaemon(site.config);
  expect(await third.ended).toBe(1);
  expect(third.output()).toMatch(/newer labfeed[\s\S]*→ update labfeed/);
});

test('a file that disappears before it is taken causes no error', async () => {
  const { site, folder, sandbox } = await setUp({
    instruments: '  balance: { watch: data/balance, ready: { quiet: 5s } }',
  });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  site.drop('brief.csv', weighing(1));
  await new Promise((resolve) => setTimeout(resolve, 60));
  rmSync(join(folder, 'data/balance/brief.csv'));
  site.drop('a.csv', weighing(2));
  await daemon.logged('run filed');
  await daemon.stop();
  expect(sandbox.experiments()).toHaveLength(1);
});
