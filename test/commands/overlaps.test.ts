import { expect, test } from 'vitest';
import { mergeOverlaps, overlapFinding, possibleOverlaps } from '../../src/check/folders.js';
import type { Claim } from '../../src/config/load.js';

const claim = (name: string, watch: string, ...files: string[]): Claim => ({
  name,
  watch,
  files,
  ignore: ['**/.*', '**/~*'],
  ready: { quiet: 1 },
  run: 'file',
});

const example = (one: Claim, other: Claim): string | undefined => possibleOverlaps([one, other])[0]?.example;

test('globs that can match the same file are found before such a file exists', () => {
  const csv = claim('a', '/data', '*.csv');
  expect(example(csv, claim('b', '/data', 'run-*.csv'))).toBe('/data/run-x.csv');
  expect(example(csv, claim('b', '/data', 'run-*'))).toBe('/data/run-x.csv');
  expect(example(csv, claim('b', '/data', '**/*'))).toBe('/data/x.csv');
  expect(example(csv, claim('b', '/', '**/*.{tsv,csv}'))).toBe('/data/x.csv');
  expect(example(claim('a', '/data/balance', '**/*'), claim('b', '/data', '**/*.csv'))).toBe(
    '/data/balance/x.csv',
  );
  expect(example(csv, claim('b', '/data', '[a-f]*.csv'))).toBe('/data/ax.csv');
});

test('instruments that cannot match the same file do not overlap', () => {
  const csv = claim('a', '/data', '*.csv');
  expect(example(csv, claim('b', '/data', '*.tsv'))).toBeUndefined();
  expect(example(csv, claim('b', '/other', '*.csv'))).toBeUndefined();
  expect(example(csv, claim('b', '/data/sub', '*.csv'))).toBeUndefined();
  expect(example(csv, claim('b', '/data', '*.csv', '!*.csv'))).toBeUndefined();
});

test('overlaps found in the folders replace possible ones', () => {
  const possible = possibleOverlaps([
    claim('a', '/d', '*'),
    claim('b', '/d', '*.csv'),
    claim('c', '/d', '*.tsv'),
  ]);
  const seen = [{ first: 'a', second: 'b', example: '/d/1.csv', files: 3 }];
  expect(mergeOverlaps(seen, possible).map((one) => overlapFinding(one).text)).toEqual([
    'b overlaps with a: 3 files that match both, such as /d/1.csv, go to a',
    'c overlaps with a: a file such as /d/x.tsv would match both and go to a',
  ]);
});

test('runs of folders and of joined files overlap only if they match the same file', () => {
  const folders = { ...claim('a', '/data', '**/*'), run: { folder: '*' } };
  const pairs = { ...claim('b', '/data', '**/*'), run: { join: ['{stem}.csv', '{stem}.xml'] } };
  expect(example(folders, claim('b', '/data', '*.csv'))).toBeUndefined();
  expect(example(folders, claim('b', '/data', '**/*.csv'))).toBe('/data/x/x.csv');
  expect(example(pairs, claim('c', '/data', '*.txt'))).toBeUndefined();
  expect(example(pairs, claim('c', '/data', '*.xml'))).toBe('/data/x.xml');
});
