import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { requireUsable } from '../../src/commands/options.js';
import { type LoadedConfig, loadConfig } from '../../src/config/load.js';
import { createDaemon } from '../../src/daemon/daemon.js';
import { createLog } from '../../src/log.js';
import { type DaemonProcess, makeSite, type Site, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { call, listen } from '../support/status-server.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const NOWHERE = { url: 'http://127.0.0.1:9', key: '1-abc' };

const INSTRUMENTS = `  balance:
    watch: data/balance
    ready: { quiet: 150ms }
    parse: { table: {} }
    experiment: { title: "{{ file.stem }}", date: "{{ meta.Day }}" }`;

const pageOf = async (daemon: DaemonProcess): Promise<string> =>
  String((await daemon.logged('status page listening'))['url']);

/** As the page in a browser sends it. */
async function post(url: string, path: string, body: string, type = 'application/json', cookie = '') {
  const [, token = ''] = /name="labfeed-token" content="(.+?)"/.exec((await call(url, '/')).text) ?? [];
  const headers = { 'content-type': type, 'x-labfeed-token': token, origin: new URL(url).origin, cookie };
  return call(url, path, { method: 'POST', headers, body });
}

/** Without the status file, which the daemon replaces at any time. */
const filesIn = (...folders: string[]): string[] =>
  folders
    .flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))))
    .filter((path) => !/\.(live|seen)(\.new)?$/.test(path));

test('the page is served while the notebook is down, and its feed continues across a reload', async () => {
  const folder = tempFolder();
  const site = makeSite(folder, { ...NOWHERE, instruments: INSTRUMENTS, status: '127.0.0.1:0' });
  const daemon = startDaemon(site.config);
  const url = await pageOf(daemon);
  expect(await call(url, '/healthz')).toMatchObject({ status: 200, json: { status: 'ok' } });
  await daemon.logged('ready');
  const { states } = await listen(url);
  await until('the first state', () => states.length > 0);

  // The mapping needs a day that the file does not have.
  site.drop('w1.csv', weighing(1));
  await until('the run needs a decision', () => states.at(-1)?.attentionCount === 1);
  expect(states.at(-1)?.attention).toMatchObject([{ id: 1, instrument: 'balance', state: 'quarantined' }]);
  expect((await call(url, '/api/jobs/1')).json).toMatchObject({ id: 1, history: expect.any(Array) });
  expect((await call(url, '/healthz')).status).toBe(200);

  writeFileSync(site.config, readFileSync(site.config, 'utf8').replace(', date: "{{ meta.Day }}"', ''));
  const before = states.length;
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  await until('the run was read again', () => states.length > before && states.at(-1)?.attentionCount === 0);
  // The address and the open connections stay.
  expect(daemon.lines.filter(({ msg }) => msg === 'status page listening')).toHaveLength(1);
  expect((await call(url, '/api/jobs/1/body')).text).toContain('<td>1.125</td>');
  expect(await daemon.stop()).toBe(0);
  expect(daemon.lines.at(-1)?.msg).toBe('stopped');
});

test('the page is served before the first scan, and shows the instruments as starting', async () => {
  const folder = tempFolder();
  const { config: file } = makeSite(folder, { ...NOWHERE, status: '127.0.0.1:0' });
  const config: LoadedConfig = loadConfig(file);
  requireUsable(config);
  const lines: { msg: string; url?: string }[] = [];
  const early: unknown[] = [];
  const destination = {
    write(line: string) {
      const told = JSON.parse(line) as { msg: string; url?: string };
      lines.push(told);
      // Immediately, before the daemon continues to start.
      if (told.url) early.push(daemon.live().instruments);
    },
  };
  const daemon = createDaemon({
    config,
    clock: systemClock,
    ...createLog({ level: 'info', destination }),
  });
  onTestFinished(() => daemon.stop());
  await daemon.start();
  const order = lines.map(({ msg }) => msg);
  expect(order.indexOf('status page listening')).toBeLessThan(order.indexOf('ready'));
  expect(early).toMatchObject([[{ name: 'balance', line: 'starting', folder: { state: 'unknown' } }]]);
  const url = String(lines.find((line) => line.url)?.url);
  expect(await call(url, '/readyz')).toMatchObject({ status: 200, json: { status: 'ready' } });
});

test('a decision on the page is carried out, or refused with a reason', async () => {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const instruments = '  balance: { watch: data/balance, ready: { quiet: 150ms }, drift: hold }';
  const { url: notebook, key } = sandbox;
  const site = makeSite(folder, { url: notebook, key, instruments, status: '127.0.0.1:0' });
  site.drop('w1.csv', weighing(1));
  const daemon = startDaemon(site.config);
  const url = await pageOf(daemon);
  await daemon.logged('run filed');
  site.drop('w2.csv', 'Sample,Mass (g)\nS2,2.5\n');
  await daemon.logged((line) => line['run'] === 2 && line.msg.startsWith('run held'));
  let cookie = '';
  const decide = (request: object) =>
    post(url, '/api/decide', JSON.stringify(request), 'application/json', cookie.split(';')[0]);

  // Every user of this machine can reach the port. Only who can read the login file may decide.
  const anybody = await decide({ kind: 'retry', run: 2 });
  expect(anybody).toMatchObject({ status: 403, json: { error: expect.stringContaining('labfeed status --login') } });
  expect(statSync(`${site.journal}.login`).mode & 0o777).toBe(0o600);
  const { stdout } = await labfeed(['status', '--login', '--config', site.config]);
  // The configured port is 0.
  expect(new URL(stdout).origin).toBe(new URL(url).origin);
  const ticket = new URL(stdout).search;
  cookie = String((await call(url, `/login${ticket}`)).headers['set-cookie']);
  expect((await call(url, `/login${ticket}`)).headers['set-cookie']).toBeUndefined();
  expect(await decide({ kind: 'retry', run: 2 })).toMatchObject({ status: 200, json: { done: true } });
  await daemon.logged((line) => line.msg === 'run filed' && line['run'] === 2);
  expect(sandbox.experiments().map(({ title }) => title)).toEqual(['w1 (balance)', 'w2 (balance)']);
  const none = await decide({ kind: 'adopt', run: 99, experiment: 1 });
  expect(none.json).toEqual({ done: false, text: 'there is no run 99' });
  await daemon.stop();
});

test('a preview leaves no file, no run and no line in the log', async () => {
  const folder = tempFolder();
  const temporary = tempFolder();
  const site = makeSite(folder, { ...NOWHERE, instruments: INSTRUMENTS, status: '127.0.0.1:0' });
  const daemon = startDaemon(site.config, { TMPDIR: temporary });
  const url = await pageOf(daemon);
  await daemon.logged('ready');
  await until('the start is over', () => existsSync(`${site.journal}.live`));
  // Reading creates the auxiliary files of the journal.
  await call(url, '/api/state');
  const before = filesIn(folder, temporary);
  const lines = daemon.lines.length;
  const query = `name=${encodeURIComponent('secret-sample.csv')}`;
  const shown = await post(url, `/api/preview?${query}`, 'Sample,Weight\nS1,1\n', 'application/octet-stream');
  expect(shown).toMatchObject({
    status: 200,
    json: { ok: false, mapping: expect.stringContaining('balance') },
  });
  expect(filesIn(folder, temporary)).toEqual(before);
  expect(daemon.lines).toHaveLength(lines);
  expect((await call(url, '/api/jobs')).json).toEqual({ jobs: [] });
  await daemon.stop();
  expect(readFileSync(site.journal, 'latin1')).not.toContain('secret-sample');
});

test('a reload moves the page and rejects a public address without a token; a port in use does not stop the intake', async () => {
  const folder = tempFolder();
  const site = makeSite(folder, { ...NOWHERE, status: '127.0.0.1:0' });
  const daemon = startDaemon(site.config);
  const first = await pageOf(daemon);
  await daemon.logged('ready');
  const setStatus = (status: string): void =>
    writeFileSync(site.config, readFileSync(site.config, 'utf8').replace(/^status: .*$/m, `status: ${status}`));

  setStatus('0.0.0.0:0');
  daemon.child.kill('SIGHUP');
  const { problems } = await daemon.logged('new configuration rejected, keeping the current one');
  expect(problems).toMatch(/labfeed\.yaml:7:9: status: other machines can reach this address/);
  expect((await call(first, '/healthz')).status).toBe(200);

  writeFileSync(join(folder, 'page-token'), '0123456789abcdef0123\n');
  setStatus('{ address: "127.0.0.1:0", token: { file: page-token } }');
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  const second = String(daemon.lines.findLast(({ msg }) => msg === 'status page listening')?.['url']);
  expect(second).not.toBe(first);
  expect((await call(second, '/api/state')).status).toBe(401);
  const headers = { authorization: 'Bearer 0123456789abcdef0123' };
  expect((await call(second, '/api/state', { headers })).status).toBe(200);
  await expect(call(first, '/healthz')).rejects.toThrow();

  const otherSite = makeSite(tempFolder(), { ...NOWHERE, status: new URL(second).host });
  const other = startDaemon(otherSite.config);
  await other.logged(({ msg }) => msg.includes('the port is in use'));
  otherSite.drop('w1.csv', weighing(1));
  await other.logged('run queued');
  expect(await other.stop()).toBe(0);
  expect(await daemon.stop()).toBe(0);
  expect(daemon.output()).not.toContain('0123456789abcdef0123');
});

test('a public address without a readable token keeps the daemon from starting', async () => {
  const alone = makeSite(tempFolder(), { ...NOWHERE, status: '0.0.0.0:0' });
  const run = (site: Site) => labfeed(['run', '--config', site.config]);
  expect(await run(alone)).toMatchObject({ status: 78, stderr: expect.stringContaining('needs a token') });
  const status = '{ address: "0.0.0.0:0", token: { file: gone } }';
  const unreadable = makeSite(tempFolder(), { ...NOWHERE, status });
  expect(await run(unreadable)).toMatchObject({
    status: 78,
    stderr: expect.stringMatching(/labfeed\.yaml:7:\d+: cannot read the token: .*gone does not exist/),
  });
  const { status: checked, stdout } = await labfeed(['check', '--config', unreadable.config]);
  expect({ checked, stdout }).toMatchObject({
    checked: 1,
    stdout: expect.stringContaining('cannot read the token'),
  });
});

test('a thousand requests for the state do not leak memory', async () => {
  const site = makeSite(tempFolder(), { ...NOWHERE, status: '127.0.0.1:0' });
  const daemon = startDaemon(site.config);
  const url = await pageOf(daemon);
  await daemon.logged('ready');
  const megabytes = async (): Promise<number> => {
    const [, bytes] = /^process_resident_memory_bytes (\S+)$/m.exec((await call(url, '/metrics')).text) ?? [];
    return Number(bytes) / 2 ** 20;
  };
  const look = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n++) expect((await call(url, '/api/state')).status).toBe(200);
  };
  await look(300);
  const before = await megabytes();
  await look(1000);
  expect((await megabytes()) - before).toBeLessThan(20);
  await daemon.stop();
});
