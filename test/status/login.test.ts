import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLoginSecret, readLoginSecret } from '../../src/status/auth.js';
import { tempFolder } from '../support/temp-folder.js';

test('the secret is kept, private, and replaced if others could read it', () => {
  const journal = join(tempFolder(), 'journal.db');
  writeFileSync(journal, '');
  const secret = createLoginSecret(journal);
  expect(statSync(`${journal}.login`).mode & 0o777).toBe(0o600);
  expect(createLoginSecret(journal)).toBe(secret);
  expect(readLoginSecret(journal)).toBe(secret);
  const other = join(tempFolder(), 'journal.db');
  writeFileSync(other, '');
  writeFileSync(`${other}.login`, secret, { mode: 0o644 });
  expect(createLoginSecret(other)).not.toBe(secret);
  expect(readFileSync(`${other}.login`, 'utf8')).not.toBe(secret);
});

test('if the secret cannot be stored, the daemon continues without logins', () => {
  const journal = join(tempFolder(), 'missing', 'journal.db');
  expect(createLoginSecret(journal)).toHaveLength(43);
  expect(existsSync(`${journal}.login`)).toBe(false);
  expect(() => readLoginSecret(journal)).toThrow('the daemon has not served a page yet');
});
