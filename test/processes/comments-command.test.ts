import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Dialect } from '../../src/model.js';
import { CLI, makeSite } from '../support/daemon-process.js';
import { type Ended, labfeed } from '../support/labfeed.js';
import { createTestSandbox, DIALECTS } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

const MARK = 'labfeed 0123456789abcdef.1';

/** A notebook with an experiment that has a comment of labfeed and one of a colleague. */
async function setUp(dialect: Dialect) {
  const folder = tempFolder();
  const sandbox = createTestSandbox({ file: join(folder, 'notebook.db'), port: 0, dialect });
  const { url, key } = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  const { control } = sandbox;
  const experiment = control.as('owner').create({ title: 'λ DNA' });
  const ours = control.as('owner').comment(experiment, `Well,A260\nA1,2.1\n\n${MARK}`);
  const colleagues = control.as('colleague').comment(experiment, 'looks \u001b[31modd');
  const { config } = makeSite(folder, { url, key });
  const comments = () => control.experiments()[0]?.comments.map(({ comment }) => comment);
  const run = (...args: (string | number)[]): Promise<Ended> =>
    labfeed(['comments', ...args.map(String), '--config', config]);
  return { experiment, ours, colleagues, control, config, comments, run };
}

for (const dialect of DIALECTS) {
  test(`${dialect}: comments are listed, edited and deleted, and an edited one keeps its marker line`, async () => {
    const { experiment, ours, colleagues, comments, run } = await setUp(dialect);
    const listed = await run('list', experiment, '--json');
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { id: ours, byLabfeed: true, text: `Well,A260\nA1,2.1\n\n${MARK}` },
      { id: colleagues, byLabfeed: false, text: 'looks \u001b[31modd' },
    ]);
    const edited = await run('edit', experiment, ours, '--text', 'weighed again');
    expect(edited).toMatchObject({ status: 0, stderr: '' });
    expect(edited.stdout).toContain('its marker line was kept');
    expect(comments()?.[0]).toBe(`weighed again\n\n${MARK}`);
    expect(await run('delete', experiment, ours, '--yes')).toMatchObject({ status: 0, stderr: '' });
    expect(comments()).toEqual(['looks \u001b[31modd']);
  });
}

test('comments cannot move the cursor', async () => {
  const { experiment, ours, run } = await setUp('v2');
  const listed = await run('list', experiment);
  expect(listed.stdout).toMatch(/^COMMENT +CREATED +BY +TEXT\n/);
  expect(listed.stdout).toContain(`Well,A260 A1,2.1 ${MARK}`);
  expect(listed.stdout).not.toContain('\u001b');
  expect((await run('show', experiment, ours)).stdout).toBe(`Well,A260\nA1,2.1\n\n${MARK}\n`);
});

test('the new text is read from standard input without --text', async () => {
  const { experiment, ours, config, comments } = await setUp('v2');
  const args = ['comments', 'edit', String(experiment), String(ours), '--json', '--config', config];
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  child.stdin.end('and\nagain\n');
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(JSON.parse(output)).toMatchObject({ id: ours, text: `and\nagain\n\n${MARK}`, byLabfeed: true });
  expect(comments()?.[0]).toBe(`and\nagain\n\n${MARK}`);
});

test('without a terminal, deleting a comment needs --yes; wrong usage exits with 2', async () => {
  const { experiment, ours, comments, run } = await setUp('v2');
  const refused = await run('delete', experiment, ours);
  expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining('--yes') });
  expect(comments()).toHaveLength(2);
  expect((await run('show', experiment)).status).toBe(2);
});

test('a missing comment is an error with exit status 1', async () => {
  const { experiment, run } = await setUp('v2');
  const { status, stdout, stderr } = await run('edit', experiment, 99, '--text', 'x');
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/404.*\n {2}→ it does not exist/);
});

test('an edit that eLabFTW accepts but ignores is an error with exit status 1', async () => {
  const { experiment, colleagues, comments, run } = await setUp('elabftw');
  const edited = await run('edit', experiment, colleagues, '--text', 'mine now');
  expect(edited).toMatchObject({ status: 1, stderr: expect.stringContaining('was not changed') });
  const deleted = await run('delete', experiment, colleagues, '--yes');
  expect(deleted).toMatchObject({ status: 1, stderr: expect.stringContaining('was not deleted') });
  expect(comments()).toHaveLength(2);
});

test('the text is sent in the configured field, as application/json', async () => {
  const { experiment, ours, control, config, run } = await setUp('v2');
  const text = readFileSync(config, 'utf8').replace('rate: 2000/s', 'rate: 2000/s\n  commentField: content');
  writeFileSync(config, text);
  control.decide = ({ method }) =>
    method === 'PATCH'
      ? {
          answer: 200,
          json: { content: `x\n\n${MARK}` },
        }
      : 'pass';
  expect(await run('edit', experiment, ours, '--text', 'x')).toMatchObject({ status: 0 });
  expect(control.writes().map(({ body }) => JSON.parse(body))).toEqual([{ content: `x\n\n${MARK}` }]);
});

test('requests respect the configured rate', async () => {
  const { experiment, ours, control, config, run } = await setUp('v2');
  writeFileSync(config, readFileSync(config, 'utf8').replace('rate: 2000/s', 'rate: 12/m'));
  const times: number[] = [];
  control.decide = () => {
    times.push(Date.now());
    return 'pass';
  };
  await run('edit', experiment, ours, '--text', 'x');
  expect(times).toHaveLength(2);
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(3000);
});
