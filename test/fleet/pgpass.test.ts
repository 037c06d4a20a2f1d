import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { usualPassword } from '../../src/fleet/pgpass.js';
import { tempFolder } from '../support/temp-folder.js';

const SERVER = { host: 'db.example.org', port: 5432, database: 'labfeed', user: 'pc' };

function withFile(text: string, mode = 0o600): string {
  const file = join(tempFolder(), 'pgpass');
  writeFileSync(file, text, { mode });
  vi.stubEnv('PGPASSFILE', file);
  vi.stubEnv('PGPASSWORD', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  return file;
}

test.each([
  ['the first line for the server counts', 'other:*:*:*:a\n*:5432:labfeed:pc:b\n*:*:*:*:c\n', 'b'],
  ['each field must fit', '*:5433:*:*:a\n*:*:lab:*:b\n*:*:*:PC:c\ndb.example.org:5432:labfeed:pc:d', 'd'],
  ['comments and lines without a password are no passwords', '#*:*:*:*:a\n*:*:*:*:\n*:*:*:*\n\n*:*:*:*:b\r\n', 'b'],
  ['colons and backslashes are escaped', 'db.example.org:*:*:*:a\\:b\\\\c d\n', 'a:b\\c d'],
])('in .pgpass, %s', (_, text, expected) => {
  withFile(text);
  expect(usualPassword(SERVER)).toBe(expected);
});

test('a file that others may read, one without the server, and none are named in the message, without their content', () => {
  const open = withFile('*:*:*:*:secret\n', 0o640);
  expect(() => usualPassword(SERVER)).toThrow(`${open} is ignored: other users may read or write it`);
  const other = withFile('other:*:*:*:secret\n');
  expect(() => usualPassword(SERVER)).toThrow(new RegExp(`${other} has none for it$`));
  vi.stubEnv('PGPASSFILE', `${other}-absent`);
  expect(() => usualPassword(SERVER)).toThrow(`${other}-absent does not exist`);
});
