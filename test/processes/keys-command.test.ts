import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keyName } from '../../src/keys/rotate.js';
import type { Dialect } from '../../src/model.js';
import { CLI, makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { type Ended, labfeed } from '../support/labfeed.js';
import { DIALECTS, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

async function setUp(dialect: Dialect) {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const { url, key } = sandbox;
  const site = makeSite(folder, { url, key, timeout: '20s' });
  const keyFile = join(folder, 'api-key');
  const inFile = (): string => readFileSync(keyFile, 'utf8').trim();
  const run = (...args: string[]): Promise<Ended> => labfeed(['keys', ...args, '--config', site.config]);
  async function works(withKey: string): Promise<boolean> {
    const { status } = await fetch(`${url}/api/v2/apikeys`, {
      headers: { authorization: withKey, accept: 'application/json' },
    });
    return status === 200;
  }
  return { folder, sandbox, site, key, keyFile, inFile, run, works };
}

async function setKey(config: string, input: string): Promise<Ended> {
  const args = ['keys', 'set', '--config', config];
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  child.stdin.end(input);
  const [status] = (await once(child, 'close')) as [number];
  return { status, stdout, stderr };
}

for (const dialect of DIALECTS) {
  test(`${dialect}: a key is created and shown once, set from standard input, listed without a hash, and deleted`, async () => {
    const { site, key, keyFile, inFile, run, works } = await setUp(dialect);
    const created = await run('create', 'plate reader PC');
    const fresh = created.stdout.trim();
    expect(await works(fresh)).toBe(true);
    expect(created.stderr).not.toContain(fresh);

    const set = await setKey(site.config, `${fresh}\n`);
    expect(set).toMatchObject({ status: 0, stderr: '' });
    expect(set.stdout).not.toContain(fresh);
    expect(inFile()).toBe(fresh);
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);

    const listed = await run('list', '--json');
    const records = JSON.parse(listed.stdout) as { id: number; name: string; inUse?: boolean }[];
    expect(records.map(({ name }) => name).sort()).toEqual(['labfeed sandbox', 'plate reader PC']);
    expect(listed.stdout).not.toMatch(/hash|\$2y/);
    // With two keys, only eLabFTW shows which one is in use.
    const inUse = records.find(({ name }) => name === 'plate reader PC')?.inUse;
    expect(inUse).toBe(dialect === 'elabftw' ? true : undefined);

    const id = String(records.find(({ name }) => name === 'labfeed sandbox')?.id);
    expect(await run('delete', id)).toMatchObject({ status: 2, stderr: expect.stringContaining('--yes') });
    expect(await run('delete', id, '--yes')).toMatchObject({ status: 0, stderr: '' });
    expect(await works(key)).toBe(false);
    const own = String(records.find(({ name }) => name === 'plate reader PC')?.id);
    const refused = await run('delete', own, '--yes');
    expect(refused).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('is the key that labfeed uses'),
    });
    expect(await works(fresh)).toBe(true);
  });

  test(`${dialect}: a rotation under a running daemon loses nothing, and no key appears in output or journal`, async () => {
    const { sandbox, site, key, inFile, run, works } = await setUp(dialect);
    const first = await run('rotate');
    expect(first).toMatchObject({ status: 0, stderr: '' });
    expect(await works(key), 'a key with another name is kept').toBe(true);
    const old = inFile();
    expect(old).not.toBe(key);

    const daemon = startDaemon(site.config);
    for (const n of [0, 1, 2]) site.drop(`w${n}.csv`, weighing(n));
    await daemon.logged('run filed');
    const second = await run('rotate');
    expect(second).toMatchObject({ status: 0, stderr: '' });
    expect([await works(old), await works(inFile())]).toEqual([false, true]);
    for (const n of [3, 4, 5]) site.drop(`w${n}.csv`, weighing(n));
    const filed = () => daemon.lines.filter(({ msg }) => msg === 'run filed').length;
    await until('all filed', () => filed() === 6, 30_000);
    expect(await daemon.stop()).toBe(0);
    const { experiments } = sandbox.control;
    expect(
      experiments()
        .map(({ title }) => title)
        .sort(),
    ).toEqual([0, 1, 2, 3, 4, 5].map((n) => `w${n} (balance)`));
    for (const { comments } of experiments()) expect(comments).toHaveLength(1);
    for (const secret of [old, inFile()]) {
      for (const output of [first.stdout, second.stdout, daemon.output(), readFileSync(site.journal, 'latin1')])
        expect(output).not.toContain(secret);
      expect(readFileSync(`${join(site.folder, 'api-key')}.rotation`, 'latin1')).not.toContain(secret);
    }
  });
}

test('a rejected or malformed key is not saved', async () => {
  const { site, key, inFile } = await setUp('v2');
  const refused = await setKey(site.config, 'no-such-key');
  expect(refused).toMatchObject({ status: 1, stdout: '' });
  expect(refused.stderr).toMatch(/the API key was rejected[\s\S]*nothing was saved/);
  expect(refused.stderr).not.toContain('no-such-key');
  const two = await setKey(site.config, 'one-key\ntwo-key\n');
  expect(two).toMatchObject({ status: 2, stderr: expect.stringContaining('one key on one line') });
  expect(two.stderr).not.toContain('one-key');
  expect(inFile()).toBe(key);
});

test('a read-only key is not saved if the notebook reports it', async () => {
  const { site, key, inFile, run } = await setUp('elabftw');
  const readOnly = (await run('create', 'viewer', '--read-only')).stdout;
  const { status, stderr } = await setKey(site.config, readOnly);
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('is read-only') });
  expect(inFile()).toBe(key);
});

test('a key from the environment or a credential is not changed, and the hint says how to change it', async () => {
  const { site, run, key } = await setUp('v2');
  const text = readFileSync(site.config, 'utf8');
  writeFileSync(site.config, text.replace('{ file: api-key }', '{ env: LAB_KEY }'));
  const rotated = await run('rotate');
  expect(rotated.status).toBe(1);
  expect(rotated.stderr).toContain('the environment variable LAB_KEY');
  expect(rotated.stderr).toContain(`labfeed keys create ${keyName()}`);
  writeFileSync(site.config, text.replace('{ file: api-key }', '{ credential: api-key }'));
  const set = await setKey(site.config, key);
  expect(set).toMatchObject({ status: 1, stderr: expect.stringContaining('LoadCredential=api-key:') });
});
