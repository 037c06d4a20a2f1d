import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { CLI } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

const SAMPLE = 'Sample: Lambda DNA\nDate: 2026-04-03\n\nWell\tA260 (AU)\nA1\t1.230\nA2\t1.198\n';

async function setUp() {
  const { url, key } = await runSandbox(join(tempFolder(), 'notebook.db'));
  const folder = tempFolder();
  mkdirSync(join(folder, 'nanodrop'));
  writeFileSync(join(folder, 'nanodrop', 'run-17.tsv'), SAMPLE);
  writeFileSync(join(folder, 'key.txt'), `${key}\n`);
  const answer = (answers: object) => {
    writeFileSync(join(folder, 'answers.yaml'), stringify(answers));
    return labfeed(['setup', '--config', 'site/labfeed.yaml', '--answers', 'answers.yaml'], folder);
  };
  const answers = { server: url, key: { file: 'key.txt' }, folder: 'nanodrop' };
  return { url, key, folder, site: join(folder, 'site'), answers, answer };
}

test('--answers writes a configuration with which check has nothing to complain about', async () => {
  const { key, folder, site, answers, answer } = await setUp();
  const { status, stdout, stderr } = await answer(answers);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('title       Lambda DNA (nanodrop)');
  expect(stdout).not.toContain(key);
  expect(statSync(join(site, 'api-key')).mode & 0o777).toBe(0o600);
  expect(await labfeed(['check', '--config', 'site/labfeed.yaml'], folder)).toMatchObject({ status: 0, stderr: '' });
  // The same answers again add nothing twice.
  const again = await answer({ ...answers, name: 'nanodrop' });
  expect(again).toMatchObject({ status: 2, stderr: expect.stringContaining('name: there is already an instrument') });
});

test('a wrong answer exits with 2, names the answer and its line, and changes nothing', async () => {
  const { url, key, folder, answers, answer } = await setUp();
  for (const [wrong, reason] of [
    [{ server: 'eln' }, /answers\.yaml:1:9: server: expected a URL/],
    [{ server: 'http://127.0.0.1:1' }, /server: cannot connect to/],
    [{ server: `${url}/wiki` }, /server: .*404/],
    [{ key }, /key: the API key itself must not be in the configuration/],
    [{ key: { file: 'gone' } }, /key: cannot read the API key: .*gone does not exist/],
    [{ key: { env: 'LABFEED_NO_SUCH_KEY' } }, /key: the environment variable LABFEED_NO_SUCH_KEY is not set/],
    [{ key: undefined }, /key: the answer is missing/],
    [{ folder: 'gone' }, /folder: .*gone does not exist/],
    [{ sample: 'gone' }, /sample: no such file/],
    [{ name: 'a/b' }, /name: "a\/b" is not a valid name/],
    [{ name: ['a'] }, /name: expected text/],
    [{ foldr: 'x' }, /answers\.yaml:5:1: unknown answer "foldr"\n {2}→ did you mean folder\?/],
  ] as const) {
    const { status, stderr } = await answer({ ...answers, ...wrong });
    expect({ wrong, status }).toEqual({ wrong, status: 2 });
    expect(stderr).toMatch(reason);
    expect(stderr).not.toContain(key);
    expect(readdirSync(folder).sort()).toEqual(['answers.yaml', 'key.txt', 'nanodrop']);
  }
});

test('without a terminal and without --answers, setup says so', async () => {
  const folder = tempFolder();
  const { status, stderr } = await labfeed(['setup', '--config', 'labfeed.yaml'], folder);
  expect(status).toBe(2);
  expect(stderr).toMatch(/there is no terminal[\s\S]*--answers FILE/);
  expect(readdirSync(folder)).toEqual([]);
});

test('on a terminal, the key is not shown while it is typed, and Ctrl-C changes nothing', async () => {
  const { url, key, folder, site } = await setUp();
  const shown = (): string => readFileSync(join(folder, 'terminal.txt'), 'utf8');
  const command = `${process.execPath} ${CLI} setup --config ${site}/labfeed.yaml`;
  const log = ['--quiet', '--flush', '--return', '--command', command, join(folder, 'terminal.txt')];
  const terminal = spawn('script', log, { stdio: ['pipe', 'ignore', 'ignore'] });
  onTestFinished(() => void terminal.kill('SIGKILL'));
  const ended = new Promise((settle) => terminal.once('close', settle));
  for (const [question, typed] of [
    ['address of the notebook', `${url}\r`],
    ['[hidden] > ', `${key}\r`],
    ['instrument writes to', '\x03'],
  ] as const) {
    await until(question, () => readdirSync(folder).includes('terminal.txt') && shown().includes(question));
    terminal.stdin.write(typed);
  }
  expect(await ended).toBe(1);
  expect(shown()).toContain('accepts the key');
  expect(shown()).toContain('setup was stopped; nothing was changed');
  expect(shown()).not.toContain(key);
  expect(readdirSync(folder)).not.toContain('site');
});
