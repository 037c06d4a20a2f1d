import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type LoadedConfig, loadConfig } from '../../src/config/load.js';
import { readToken } from '../../src/config/secrets.js';
import { isLoopback, readAddress } from '../../src/config/settings.js';
import { explain, explainProblem } from '../../src/errors.js';
import { tempFolder } from '../support/temp-folder.js';

const NOTEBOOK = 'notebook: { url: "https://eln.example.org", key: { env: KEY } }\n';

function load(status: string): LoadedConfig {
  const file = join(tempFolder(), 'labfeed.yaml');
  writeFileSync(file, `${NOTEBOOK}${status}\n`);
  return loadConfig(file);
}

/** The mistakes as they are printed. Each must keep the daemon from starting. */
function printed(status: string): string {
  const { problems, file } = load(status);
  expect(problems.every(({ stops }) => stops === 'daemon')).toBe(true);
  return problems.map((problem) => explainProblem(problem).replaceAll(file, 'labfeed.yaml')).join('\n');
}

describe('the address of the status page', () => {
  test('is on this machine by default, and absent if status is false', () => {
    expect(load('').settings.status).toMatchObject({ address: { host: '127.0.0.1', port: 7780 } });
    expect(load('status: false').settings.status).toBe(false);
  });

  test.each([
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['[::1]:7780', { host: '::1', port: 7780 }],
    ['localhost:80', { host: 'localhost', port: 80 }],
    ['0.0.0.0:7780', { host: '0.0.0.0', port: 7780 }],
    ['Lab-PC.example.org:7780', { host: 'lab-pc.example.org', port: 7780 }],
  ])('%s is read', (text, address) => {
    expect(readAddress(text)).toEqual(address);
  });

  test.each([
    ['7780', /^labfeed\.yaml:2:9: status: expected an address such as 127\.0\.0\.1:7780, or false/],
    ['":7780"', /expected an address.*\n {2}→ write the host before the port: 127\.0\.0\.1:7780/],
    ['127.0.0.1', /expected an address.*\n {2}→ write the port after the host: 127\.0\.0\.1:7780/],
    ['"::1:7780"', /→ write an IPv6 address in brackets: \[::1\]:7780/],
    ['"http://localhost:7780/"', /→ write it without http:\/\//],
    ['127.0.0.1:77800', /expected an address/],
    ['1.2.3.400:80', /expected an address/],
    ['"*:7780"', /expected an address/],
    ['true', /expected an address such as 127\.0\.0\.1:7780, or false/],
    ['{ adress: "127.0.0.1:1" }', /^labfeed\.yaml:2:11: unknown key "adress"\n {2}→ did you mean address\?/],
    ['{ address: 80 }', /status\.address: expected an address/],
    ['{ names: ["a b"] }', /status\.names\[0\]: expected a host name such as/],
  ])('status: %s is refused with what to write', (written, message) => {
    expect(printed(`status: ${written}`)).toMatch(message);
  });
});

describe('an address that other machines can reach', () => {
  test.each(['0.0.0.0:7780', '"[::]:7780"', '192.168.1.7:7780', 'lab-pc:7780', '"[fe80::1]:7780"'])(
    '%s is refused without a token',
    (address) => {
      const message = /labfeed\.yaml:2:\d+: status.*other machines can reach this address.*\n {2}→ .*token: \{ file/;
      expect(printed(`status: ${address}`)).toMatch(message);
      expect(printed(`status: { address: ${address} }`)).toMatch(message);
    },
  );

  test('is accepted with a token, whose path is relative to the configuration', () => {
    const config = load('status: { address: "0.0.0.0:7780", token: { file: page-token }, names: [lab-pc] }');
    expect(config.problems).toEqual([]);
    expect(config.settings.status).toEqual({
      address: { host: '0.0.0.0', port: 7780 },
      token: { file: join(config.file, '..', 'page-token') },
      names: ['lab-pc'],
      edit: false,
    });
  });

  test('is recognised in every notation', () => {
    const loopback = (host: string) => isLoopback({ host });
    expect(['127.0.0.1', '127.9.9.9', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', 'localhost'].map(loopback)).toEqual(
      Array(6).fill(true),
    );
    expect(
      [
        ...['0.0.0.0', '10.0.0.1', '12.7.0.1', '128.0.0.1'],
        ...['::', '::1a', '::ffff:7f', '::ffff:10.0.0.1', 'fe80::1'],
        ...['127.example.org', 'localhost.example.org'],
      ].filter(loopback),
    ).toEqual([]);
  });
});

describe('the token', () => {
  const where = { file: 'labfeed.yaml', line: 2, column: 1 };
  const refusal = (value: string): string => {
    try {
      return readToken({ env: 'PAGE' }, where, { PAGE: value });
    } catch (error) {
      return explain(error);
    }
  };

  test('for reading comes in addition to the token, from a path that is relative to the configuration', () => {
    expect(printed('status: { readToken: { file: read-token } }')).toMatch(/status\.readToken: it needs a token, too/);
    const { settings, file, problems } = load('status: { token: { env: A }, readToken: { file: read-token } }');
    expect(problems).toEqual([]);
    expect(settings.status).toMatchObject({ token: { env: 'A' }, readToken: { file: join(file, '..', 'read-token') } });
  });

  test('must not be in the configuration itself', () => {
    expect(printed('status: { token: 0123456789abcdef }')).toMatch(
      /status\.token: the token itself must not be in the configuration/,
    );
  });

  test('has at least 16 characters and is never printed', () => {
    expect(refusal('0123456789abcdef')).toBe('0123456789abcdef');
    expect(refusal('0123456789abcde')).toMatch(/^labfeed\.yaml:2:1: .*shorter than 16[\s\S]*openssl rand/);
    expect(refusal('0123456789abcde')).not.toContain('0123456789');
  });
});
