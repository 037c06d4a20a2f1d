import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig, missingInstruments, requireInstruments } from '../../src/config/load.js';
import { ConfigError } from '../../src/errors.js';
import { tempFolder } from '../support/temp-folder.js';

function loadExactly(text: string) {
  const folder = tempFolder();
  const file = join(folder, 'labfeed.yaml');
  writeFileSync(file, text);
  const config = loadConfig(file);
  return { ...config, folder, messages: config.problems.map(({ message }) => message) };
}

const load = (text: string) => loadExactly(`instruments: { balance: { watch: data } }\n${text}`);

const NOTEBOOK = 'notebook: { url: https://eln.example.org, key: { env: KEY } }\n';

test('a watcher needs no notebook, and keeps its own journal in its folder', () => {
  const { messages, settings, notebook, folder } = load(
    'journal: postgres://labfeed@db.example.org/labfeed\nrole: watch\nfleet: { name: pc-1, state: here }\n',
  );
  expect(messages).toEqual([]);
  expect(settings.journal).toBe(join(folder, 'here', 'journal.db'));
  expect(settings.fleet).toMatchObject({ role: 'watch', name: 'pc-1', isEncrypted: true, password: undefined });
  expect(notebook?.url).toMatch(/\.invalid$/);
});

test('a deliverer needs a notebook', () => {
  expect(load('journal: postgres://labfeed@db.example.org/labfeed\n').messages).toHaveLength(1);
  expect(load(`${NOTEBOOK}journal: postgres://labfeed@db.example.org/labfeed\n`).messages).toEqual([]);
});

test('a machine that only delivers needs no instruments, one that watches does', () => {
  const of = (settings: string) =>
    loadExactly(`${NOTEBOOK}journal: postgres://labfeed@db.example.org/labfeed\n${settings}`);
  const deliverer = of('role: deliver\n');
  expect(deliverer.messages).toEqual([]);
  expect(missingInstruments(deliverer)).toEqual([]);
  expect(() => requireInstruments(deliverer)).not.toThrow();
  for (const role of ['role: watch\n', 'role: all\n', '']) {
    const watcher = of(role);
    expect(missingInstruments(watcher)).toMatchObject([{ message: 'there is no instrument', stops: 'daemon' }]);
    expect(() => requireInstruments(watcher)).toThrow(ConfigError);
  }
});

test('a mistake in the settings that say whether a machine only delivers is the only one that is reported', () => {
  const reported = (text: string) => {
    const config = loadExactly(`${NOTEBOOK}${text}`);
    return [...config.messages, ...missingInstruments(config).map(({ message }) => message)];
  };
  const url = 'postgres://labfeed@db.example.org/labfeed';
  expect(reported(`journal: ${url}\nrole: delver\n`)).toEqual([expect.stringContaining('role')]);
  expect(reported(`journal: ${url}?sslmode=require\nrole: deliver\n`)).toEqual([expect.stringContaining('sslmode')]);
});

test('a password in the URL is refused and not repeated', () => {
  const { messages } = load(`${NOTEBOOK}journal: postgres://labfeed:hunter2secret@db.example.org/labfeed\n`);
  expect(messages.join()).toContain('a password in the URL is not allowed');
  expect(messages.join()).not.toContain('hunter2secret');
});

test('the certificate of another machine is always verified', () => {
  const at = (url: string) => load(`${NOTEBOOK}journal: ${url}\n`);
  expect(at('postgres://labfeed@db.example.org/labfeed?sslmode=disable').messages.join()).toContain('is not allowed');
  expect(at('postgres://labfeed@db.example.org/labfeed?sslmode=require').messages.join()).toContain('is not allowed');
  expect(at('postgres://labfeed@127.0.0.1/labfeed?sslmode=disable').messages).toEqual([]);
  expect(at('postgres://labfeed@127.0.0.1/labfeed').settings.fleet?.isEncrypted).toBe(false);
  expect(at('postgres://labfeed@localhost/labfeed?host=/run/postgresql').settings.fleet?.isEncrypted).toBe(false);
  for (const mode of ['allow', 'prefer', 'require', 'verify-ca', ''])
    for (const host of ['db.example.org', '127.0.0.1'])
      expect(at(`postgres://labfeed@${host}/labfeed?sslmode=${mode}`).messages.join()).toContain('is not allowed');
});

test('a server on this machine is verified, too, if the URL says so', () => {
  const at = (url: string) => load(`${NOTEBOOK}journal: ${url}\n`);
  const { messages, settings } = at('postgres://labfeed@localhost/labfeed?sslmode=verify-full');
  expect(messages).toEqual([]);
  expect(settings.fleet?.isEncrypted).toBe(true);
  const socket = 'postgres://labfeed@localhost/labfeed?host=/run/postgresql&sslmode=verify-full';
  expect(at(socket).messages.join()).toContain('is not possible for a socket');
});

test('another machine behind the name of this one is refused', () => {
  const { messages } = load(`${NOTEBOOK}journal: postgres://labfeed@localhost/labfeed?host=db.example.org\n`);
  expect(messages.join()).toContain('is not the folder of a socket');
});

test('role and fleet without a database are mistakes', () => {
  expect(load(`${NOTEBOOK}role: watch\n`).messages).toEqual(['role: this machine is not a member of a fleet']);
});

test('the password is read from its file when it is needed', () => {
  const { settings, folder } = load(
    `${NOTEBOOK}journal: postgres://labfeed@db.example.org/labfeed\nfleet: { password: { file: pw } }\n`,
  );
  writeFileSync(join(folder, 'pw'), 'first\n');
  expect(settings.fleet?.password?.()).toBe('first');
  writeFileSync(join(folder, 'pw'), 'second\n');
  expect(settings.fleet?.password?.()).toBe('second');
});
