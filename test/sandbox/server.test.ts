import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { explain, LabfeedError } from '../../src/errors.js';
import { createSandbox } from '../../src/sandbox/server.js';
import { CLI } from '../support/daemon-process.js';
import { createTestSandbox } from '../support/sandbox.js';
import { caller, newExperiment, sandboxClient, temporaryFolder } from './client.js';

async function refusalOf(file: string, port = 0): Promise<string> {
  const sandbox = createSandbox({ file, port });
  const error = await sandbox.start().then(
    () => sandbox.stop().then(() => undefined),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(LabfeedError);
  return explain(error);
}

test('creating a sandbox creates no files', async () => {
  const folder = await temporaryFolder();
  createSandbox({ file: join(folder, 'notebook.db'), port: 0 });
  expect(await readdir(folder)).toEqual([]);
});

test('content survives a restart, in one file that only its owner can read', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'notebook.db');
  const sandbox = createSandbox({ file, port: 0 });
  const first = await sandbox.start();
  const call = caller(first.url, first.key);
  const path = await newExperiment(call, { title: 'kept', tags: ['a'] });
  await call(`${path}/comments`, { method: 'POST', body: { comment: 'also kept' } });
  const before = (await call(path)).json;
  await sandbox.stop();
  expect(await readdir(folder)).toEqual(['notebook.db']);
  expect((await stat(file)).mode & 0o777).toBe(0o600);

  const second = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  const again = caller(second.url, second.key);
  expect((await again(path)).json).toEqual(before);
  expect((await again(`${path}/comments`)).json).toMatchObject([{ id: 1, comment: 'also kept' }]);
  expect(await newExperiment(again)).toBe('/api/v2/experiments/2');
});

test('an answered request survives a kill of the process', async () => {
  const folder = await temporaryFolder();
  const running = await sandboxClient({ file: join(folder, 'notebook.db') });
  const path = await newExperiment(running.call, { title: 'answered' });
  // The files as a kill leaves them, never closed.
  await copyFile(join(folder, 'notebook.db'), join(folder, 'killed.db'));
  await copyFile(join(folder, 'notebook.db-wal'), join(folder, 'killed.db-wal'));
  const { call, key } = await sandboxClient({ file: join(folder, 'killed.db') });
  expect(key).toBe(running.key);
  expect((await call(path)).json).toMatchObject({ title: 'answered' });
});

test('a deleted experiment and its comments get 404, and its id is not reused', async () => {
  const file = join(await temporaryFolder(), 'notebook.db');
  const { call } = await sandboxClient({ file });
  const path = await newExperiment(call);
  await call(`${path}/comments`, { method: 'POST', body: { comment: 'x' } });
  const db = new DatabaseSync(file);
  db.exec('DELETE FROM experiments');
  db.close();
  for (const gone of [path, `${path}/comments`, `${path}/comments/1`]) {
    expect(await call(gone)).toMatchObject({ status: 404 });
  }
  expect(await call(path, { method: 'PATCH', body: { title: 'x' } })).toMatchObject({ status: 404 });
  expect(await call('/view/1')).toMatchObject({ status: 404 });
  expect(await newExperiment(call)).toBe('/api/v2/experiments/2');
});

test('a data file in use by another sandbox is refused, under any name, until that one stops', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'notebook.db');
  const first = createSandbox({ file, port: 0 });
  await first.start();
  await symlink(file, join(folder, 'link.db'));
  expect(await refusalOf(file)).toMatch(/notebook\.db: another sandbox is using this data file[\s\S]*--data/);
  expect(await refusalOf(join(folder, 'link.db'))).toMatch(/another sandbox/);
  await first.stop();
  const second = createSandbox({ file, port: 0 });
  await second.start();
  await second.stop();
  expect((await readdir(folder)).sort()).toEqual(['link.db', 'notebook.db']);
});

test('a data file can be used again after its sandbox was killed', async () => {
  const file = join(await temporaryFolder(), 'notebook.db');
  const child = spawn(process.execPath, [CLI, 'sandbox', '--port', '0', '--data', file, '--json']);
  await once(child.stdout, 'data');
  expect(await refusalOf(file)).toMatch(/another sandbox/);
  child.kill('SIGKILL');
  await once(child, 'close');
  const sandbox = createSandbox({ file, port: 0 });
  await expect(sandbox.start()).resolves.toBeDefined();
  await sandbox.stop();
});

test('the message about a port in use names it and says what to do', async () => {
  const { url } = await sandboxClient();
  const port = Number(new URL(url).port);
  expect(await refusalOf(':memory:', port)).toMatch(new RegExp(`port ${port} is in use[\\s\\S]*--port`));
});

test('a sandbox that could not start can be started later', async () => {
  const blocker = createSandbox({ file: ':memory:', port: 0 });
  const port = Number(new URL((await blocker.start()).url).port);
  const sandbox = createSandbox({ file: ':memory:', port });
  await expect(sandbox.start()).rejects.toThrow('in use');
  await blocker.stop();
  await expect(sandbox.start()).resolves.toMatchObject({ url: `http://127.0.0.1:${port}` });
  await sandbox.stop();
});

test.each([
  ['text', () => Buffer.from('these are my notes\n'.repeat(20))],
  ['a short text', () => Buffer.from('x')],
  ['a file of another program', foreignDatabase],
])('a data file that is %s is refused and not changed', async (_what, make) => {
  const folder = await temporaryFolder();
  const file = join(folder, 'other.db');
  const bytes = await make();
  await writeFile(file, bytes);
  const before = await stat(file, { bigint: true });
  expect(await refusalOf(file)).toMatch(/other\.db: this file is not a sandbox notebook[\s\S]*--data/);
  expect((await readFile(file)).equals(bytes)).toBe(true);
  expect((await stat(file, { bigint: true })).mtimeNs).toBe(before.mtimeNs);
  expect(await readdir(folder)).toEqual(['other.db']);
});

async function foreignDatabase(): Promise<Buffer> {
  const file = join(await temporaryFolder(), 'journal.db');
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)');
  db.close();
  return readFile(file);
}

test('a notebook of a newer version is refused and not changed', async () => {
  const file = join(await temporaryFolder(), 'notebook.db');
  const sandbox = createSandbox({ file, port: 0 });
  await sandbox.start();
  await sandbox.stop();
  const db = new DatabaseSync(file);
  db.exec('PRAGMA user_version = 99');
  db.close();
  const bytes = await readFile(file);
  expect(await refusalOf(file)).toMatch(/has format 99[\s\S]*newer labfeed/);
  expect((await readFile(file)).equals(bytes)).toBe(true);
});

test('a notebook of the first version is migrated with its content', async () => {
  const file = join(await temporaryFolder(), 'notebook.db');
  const db = new DatabaseSync(file);
  db.exec(`
    CREATE TABLE experiments (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, date TEXT NOT NULL,
      tags TEXT NOT NULL, userid INTEGER NOT NULL DEFAULT 1, created_at TEXT NOT NULL,
      modified_at TEXT NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE comments (id INTEGER PRIMARY KEY AUTOINCREMENT, comment TEXT NOT NULL,
      item_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
      userid INTEGER NOT NULL DEFAULT 1, created_at TEXT NOT NULL, modified_at TEXT NOT NULL) STRICT;
    CREATE INDEX comments_of_item ON comments (item_id, id);
    CREATE TABLE apikeys (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
      can_write INTEGER NOT NULL, created_at TEXT NOT NULL, last_used_at TEXT, cleartext TEXT) STRICT;
    INSERT INTO experiments (title, date, tags, created_at, modified_at, body)
      VALUES ('old', '2026-01-02', '["a","b"]', '2026-01-02 03:04:05', '2026-01-02 03:04:05', '<p>x</p>');
    INSERT INTO comments (comment, item_id, created_at, modified_at) VALUES ('c', 1, '2026', '2026');
    PRAGMA application_id = ${0x4c_66_4e_62}; PRAGMA user_version = 1`);
  db.close();
  for (const dialect of ['v2', 'elabftw'] as const) {
    const sandbox = createTestSandbox({ file, port: 0, dialect });
    const { url, key } = await sandbox.start();
    const record = { title: 'old', date: '2026-01-02', body: '<p>x</p>' };
    expect((await caller(url, key)('/api/v2/experiments/1')).json).toMatchObject(record);
    expect(sandbox.control.experiments()).toMatchObject([
      { ...record, tags: ['a', 'b'], comments: [{ comment: 'c' }] },
    ]);
    await sandbox.stop();
  }
});

test('the message about a data file that cannot be opened gives the reason', async () => {
  const folder = await temporaryFolder();
  expect(await refusalOf(join(folder, 'no', 'such.db'))).toMatch(/such\.db: .*its folder does not exist/);
  await mkdir(join(folder, 'dir'));
  expect(await refusalOf(join(folder, 'dir'))).toMatch(/dir: .*it is a folder/);
});

test('a damaged notebook is refused', async () => {
  const file = join(await temporaryFolder(), 'notebook.db');
  const sandbox = createSandbox({ file, port: 0 });
  await sandbox.start();
  await sandbox.stop();
  const bytes = await readFile(file);
  await writeFile(file, bytes.fill(0x55, 100));
  expect(await refusalOf(file)).toMatch(/notebook\.db: the sandbox cannot open its data file/);
});

test('stopping does not wait for idle connections', async () => {
  const sandbox = createSandbox({ file: ':memory:', port: 0 });
  const { url } = await sandbox.start();
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write('GET / HTTP/1.1\r\nHo');
  const began = performance.now();
  await sandbox.stop();
  expect(performance.now() - began).toBeLessThan(3_000);
  socket.destroy();
});

test('stopping twice, or before a start, is harmless', async () => {
  const sandbox = createSandbox({ file: ':memory:', port: 0 });
  await sandbox.stop();
  await sandbox.start();
  await Promise.all([sandbox.stop(), sandbox.stop()]);
});

test('a client that disconnects in the middle of a body changes nothing', async () => {
  const sandbox = createSandbox({ file: ':memory:', port: 0 });
  const { url, key } = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  const call = caller(url, key);
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  await new Promise((resolve) => socket.once('connect', resolve));
  const head = [
    'POST /api/v2/experiments HTTP/1.1',
    'Host: 127.0.0.1',
    'Accept: application/json',
    `Authorization: ${key}`,
    'Content-Type: application/json',
    'Content-Length: 100',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n{}`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await call('/api/v2/experiments/1')).toMatchObject({ status: 404 });
});

test('keys and contents are not logged', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line) => lines.push(line) });
  const { call, key } = await sandboxClient({ log });
  const made = await call('/api/v2/apikeys', { method: 'POST', body: { name: 'n', canwrite: 0 } });
  await newExperiment(call, { title: 'a secret title' });
  expect(lines.join('')).toContain('"status":201');
  for (const secret of [key, String(made.headers['location']), 'a secret title']) {
    expect(lines.join('')).not.toContain(secret);
  }
});

test('a request that is refused before its body is read gets its answer', async () => {
  const sandbox = createSandbox({ file: ':memory:', port: 0 });
  const { url } = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  const raw = JSON.stringify({ title: 'x'.repeat(3_000_000) });
  const wrong = caller(url, 'wrong');
  for (let times = 0; times < 3; times += 1) {
    expect(await wrong('/api/v2/experiments', { method: 'POST', raw })).toMatchObject({ status: 401 });
  }
});
