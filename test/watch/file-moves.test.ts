import { expect, test } from 'vitest';
import { identityOf, isSameState } from '../../src/watch/dispose.js';
import { numbered } from '../../src/watch/file-moves.js';

const nameOf = (name: string | Buffer, n = 2): Buffer =>
  numbered(Buffer.concat([Buffer.from('/data/'), Buffer.from(name)]), n).subarray('/data/'.length);

test.each([
  ['run.csv', 'run (2).csv'],
  ['run', 'run (2)'],
  ['.hidden', '.hidden (2)'],
  ['run.tar.gz', 'run.tar (2).gz'],
])('the second file named %s is called %s', (name, second) => {
  expect(String(nameOf(name))).toBe(second);
  expect(String(nameOf(name, 1))).toBe(name);
});

test.each([
  ['two bytes', '\u00e4'],
  ['three bytes', '\u4e2d'],
  ['four bytes', '\u{1f9ea}'],
])('a long name of characters of %s is cut between two of them', (_, character) => {
  for (const before of ['', 'x', 'xx', 'xxx']) {
    const name = `${before}${character.repeat(200)}`.slice(0, 80).concat(character.repeat(20), '.csv');
    const second = nameOf(name);
    expect(second.length).toBeLessThanOrEqual(140);
    const text = new TextDecoder('utf-8', { fatal: true }).decode(second);
    expect(text).toMatch(/ \(2\)\.csv$/);
    expect(name.startsWith(text.slice(0, -' (2).csv'.length))).toBe(true);
  }
});

test('a name that is nearly all extension, or not UTF-8, gets a number too', () => {
  for (const name of [`a.${'x'.repeat(250)}`, Buffer.alloc(250, 0xbf), `${'.'.repeat(250)}`])
    for (const n of [2, 10_000]) {
      const second = nameOf(name, n);
      expect(second.length).toBeLessThanOrEqual(140);
      expect(second.includes(` (${n})`)).toBe(true);
    }
});

test('a file is the same after its share was mounted again, but not after something was written to it', () => {
  const state = identityOf({ device: 7n, size: 5, mtimeNs: 9n });
  expect(isSameState(state, identityOf({ device: 8n, size: 5, mtimeNs: 9n }))).toBe(true);
  expect(isSameState(state, identityOf({ device: 7n, size: 6, mtimeNs: 9n }))).toBe(false);
  expect(isSameState(state, identityOf({ device: 7n, size: 5, mtimeNs: 10n }))).toBe(false);
});
