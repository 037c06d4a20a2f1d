import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { holdKey, readKey } from '../../src/config/secrets.js';
import { explain } from '../../src/errors.js';
import { tempFolder } from '../support/temp-folder.js';

const WHERE = { file: 'labfeed.yaml', line: 3, column: 5 };

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return explain(error);
  }
  throw new Error('was not refused');
}

test('the API key is read from a file, an environment variable or a systemd credential', () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'key'), '3-abc\n');
  expect(readKey({ file: join(folder, 'key') }, WHERE)).toBe('3-abc');
  expect(readKey({ env: 'LAB_KEY' }, WHERE, { LAB_KEY: ' 3-abc ' })).toBe('3-abc');
  expect(readKey({ credential: 'key' }, WHERE, { CREDENTIALS_DIRECTORY: folder })).toBe('3-abc');
});

test('a missing API key is reported with its location in the configuration and a hint', () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'folder'));
  writeFileSync(join(folder, 'empty'), '\n');
  writeFileSync(join(folder, 'two'), 'one-key\ntwo-key\n');
  expect(refusal(() => readKey({ file: join(folder, 'gone') }, WHERE))).toMatch(
    /^labfeed\.yaml:3:5: cannot read the API key: .*gone does not exist\n {2}→ save the API key in that file/,
  );
  expect(refusal(() => readKey({ file: join(folder, 'folder') }, WHERE))).toContain('EISDIR');
  expect(refusal(() => readKey({ file: join(folder, 'empty') }, WHERE))).toContain('is empty');
  expect(refusal(() => readKey({ env: 'LAB_KEY' }, WHERE, {}))).toContain('LAB_KEY is not set');
  expect(refusal(() => readKey({ credential: 'key' }, WHERE, {}))).toContain('LoadCredential=key:');
  const message = refusal(() => readKey({ file: join(folder, 'two') }, WHERE));
  expect(message).toContain('contains more than the API key');
  expect(message).not.toContain('one-key');
});

test('every key is redacted before its first use, and an unreadable one does not replace the last', () => {
  const file = join(tempFolder(), 'key');
  writeFileSync(file, 'first');
  const concealed: string[] = [];
  const key = holdKey(
    () => readKey({ file }, WHERE),
    (secret) => void concealed.push(secret),
  );
  expect([key.current(), concealed]).toEqual(['first', ['first']]);
  writeFileSync(file, 'second');
  expect(key.current()).toBe('first');
  key.refresh();
  expect([key.current(), concealed]).toEqual(['second', ['first', 'second']]);
  writeFileSync(file, '');
  key.refresh();
  expect([key.current(), concealed]).toEqual(['second', ['first', 'second']]);
});
