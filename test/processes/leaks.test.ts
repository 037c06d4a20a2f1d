import { existsSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { serveRaw } from '../support/raw-server.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

test('links and copied keys in a watched folder publish nothing, and `why` and `status` explain it', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, timeout: '20s' });
  const data = join(folder, 'data', 'balance');
  mkdirSync(join(folder, 'private'));
  writeFileSync(join(folder, 'private', 'salaries.csv'), weighing(7777));
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  symlinkSync(join(folder, 'private', 'salaries.csv'), join(data, 'soft.csv'));
  linkSync(join(folder, 'api-key'), join(data, 'key.csv'));
  site.drop('pasted.csv', `Sample,Weight (mg)\nkey ${sandbox.key},1.5\nb,2.5\n`);
  site.drop('good.csv', weighing(1));
  await daemon.logged('run filed');
  for (const name of ['soft', 'key', 'pasted'])
    await daemon.logged(({ msg, file }) => msg === 'run quarantined' && file === join(data, `${name}.csv`));

  const why = await labfeed(['why', join(data, 'soft.csv'), '--config', site.config]);
  expect(why.stdout).toContain('this is a link out of the watched folder');
  const status = await labfeed(['status', '--config', site.config]);
  expect(status.stdout).toMatch(/needs attention.*3 runs quarantined/s);
  expect(await daemon.stop()).toBe(0);
  expect(daemon.lines.filter(({ msg }) => /retrying/.test(msg))).toEqual([]);
  expect(sandbox.experiments().map(({ title }) => title)).toEqual(['good (balance)']);
  const kept = ['', '-wal'].map((suffix) => readFileSync(site.journal + suffix, { flag: 'a+' }).toString('latin1'));
  expect(kept.join('') + daemon.output()).not.toMatch(new RegExp(`7777\\.125|${sandbox.key}`));
});

test('journal and status are private whatever the umask, and SIGUSR1 opens no debugger', async () => {
  const folder = tempFolder();
  const site = makeSite(folder, { url: 'http://127.0.0.1:1', key: 'k-0123456789' });
  writeFileSync(site.journal, '', { mode: 0o644 });
  const umask = process.umask(0);
  const daemon = startDaemon(site.config);
  process.umask(umask);
  await daemon.logged('ready');
  // Written shortly after the start.
  await until('status and note are written', () => ['.live', '.seen'].every((end) => existsSync(site.journal + end)));
  const modes = ['', '-wal', '-shm', '.live', '.lock', '.seen'].map(
    (suffix) => `${suffix} ${(statSync(site.journal + suffix).mode & 0o777).toString(8)}`,
  );
  expect(modes.filter((mode) => !mode.endsWith(' 600'))).toEqual([]);
  daemon.child.kill('SIGUSR1');
  expect(await daemon.stop()).toBe(0);
  expect(daemon.output()).not.toContain('Debugger');
});

test('a server that repeats the request as an invalid response does not show the key, even with --debug', async () => {
  const server = await serveRaw((socket, request) => socket.end(`HTTP/1.1 ${request}`));
  const site = makeSite(tempFolder(), { url: server.url, key: 'k-0123456789abcdef' });
  const { stderr } = await labfeed(['--debug', 'keys', 'list', '--config', site.config]);
  expect(stderr).toContain('HTTPParserError');
  expect(stderr).not.toContain('k-0123456789abcdef');
});

test('escape sequences and changes of direction in names and contents do not reach the terminal', async () => {
  const folder = tempFolder();
  const site = makeSite(folder, { url: 'http://127.0.0.1:1', key: 'k-0123456789' });
  const name = 'a\u001b[2J\u001b]0;title\u0007\u202egnp.csv';
  site.drop(name, `Sample\u001b[31m,Weight\u202e (mg)\u009b1m\na\u001b[2J,1.5\nb,2.5\n`);
  const daemon = startDaemon(site.config);
  await daemon.logged(({ msg }) => msg === 'run queued' || msg === 'run quarantined');
  const path = join(folder, 'data', 'balance', name);
  const commands = [
    ['jobs'],
    ['jobs', '--json'],
    ['show', '1'],
    ['status'],
    ['why', path],
    ['why', name, '--json'],
    ['try', 'balance', path],
    ['try', 'balance', path, '--json'],
    ['learn', path],
    ['jobs', '--instrument', name],
    ['retry', name],
    [name],
  ];
  const printed = await Promise.all(
    commands.map(async (args) => {
      const { stdout, stderr } = await labfeed(
        args.length === 1 || args[0] === 'learn' ? args : [...args, '--config', site.config],
        folder,
      );
      if (args.includes('--json') && stdout !== '') JSON.parse(stdout);
      return stdout + stderr;
    }),
  );
  await daemon.stop();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  for (const text of [...printed, daemon.output()]) expect(text).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]/);
});

test('check warns if the key can be read on the way to the notebook', async () => {
  const folder = tempFolder();
  const check = async (url: string, env: Record<string, string>) => {
    const { config } = makeSite(folder, { url, key: 'key' });
    return (await labfeed(['check', '--offline', '--config', config], folder, env)).stdout;
  };
  const warnings = /is not encrypted|NODE_TLS_REJECT_UNAUTHORIZED=0 is set/g;
  const risky = await check('http://eln.example.org', { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
  expect(risky.match(warnings)).toHaveLength(2);
  const { config } = makeSite(folder, { url: 'http://eln.example.org', key: 'key' });
  const { stdout } = await labfeed(['check', '--offline', '--json', '--config', config], folder);
  expect(JSON.parse(stdout)).toMatchObject({
    warnings: expect.arrayContaining([
      { message: expect.stringContaining('is not encrypted'), hint: expect.stringContaining('https://') },
    ]),
  });
  expect(await check('https://eln.example.org', {})).not.toMatch(warnings);
  expect(await check('http://127.0.0.1:8080', {})).not.toMatch(warnings);
});
