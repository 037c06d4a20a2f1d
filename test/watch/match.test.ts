import { describe, expect, test } from 'vitest';
import { createMatcher, type MatchOptions } from '../../src/watch/match.js';

const DEFAULT_IGNORE = ['**/.*', '**/~*', '**/*.tmp', '**/*.part'];

const matcher = (options: Partial<MatchOptions>) =>
  createMatcher({ files: ['**/*'], ignore: [], ...options });

describe('globs are seen from the folder', () => {
  test.each([
    ['**/*.csv', 'a.csv', true],
    ['**/*.csv', 'x/y/a.csv', true],
    ['*.csv', 'a.csv', true],
    ['*.csv', 'x/a.csv', false],
    ['runs/**', 'runs/2026/a.raw', true],
    ['**/*.csv', 'a.CSV', false],
    ['**/*.{csv,CSV}', 'a.CSV', true],
    ['**/*', '.hidden', true],
    ['**/*.csv', '.git/a.csv', true],
    ['{a,b/c}/*.csv', 'b/c/x.csv', true],
  ])('%s on %s: %s', (pattern, path, taken) => {
    expect(matcher({ files: [pattern] }).takes(path)).toBe(taken);
  });

  test.each([
    'a b.csv',
    'a\nb.csv',
    '\n.csv',
    'x\ny/a.csv',
    `it's "so".csv`,
    '[1](2){3}.csv',
    '!a.csv',
    '-rf.csv',
    'a\\xE9.csv',
    'Bericht 01.08.2026 14-30 (Kopie) – Probe №7.csv',
    'trailing dot..csv',
    'a*?.csv',
    '$&.csv',
    '**/x.csv',
  ])('a name as odd as %j is a name', (path) => {
    expect(matcher({ files: ['**/*.csv'] }).takes(path)).toBe(true);
    expect(matcher({ files: ['**/*.csv'] }).verdict(path).taken).toBe(true);
  });

  test('a pattern that is the name itself matches it, brackets and all', () => {
    expect(matcher({ files: ['plate[1].csv'] }).takes('plate[1].csv')).toBe(true);
  });

  test('in a list, ! takes away from what the others want', () => {
    const match = matcher({ files: ['**/*.csv', '!**/blank*'] });
    expect(match.takes('a.csv')).toBe(true);
    expect(match.takes('blank1.csv')).toBe(false);
    expect(matcher({ files: ['!*.log'] }).takes('a.csv')).toBe(true);
  });
});

describe('ignored is ignored', () => {
  test.each(['.DS_Store', 'x/.hidden', '~$book.xlsx', 'a.tmp', 'x/a.csv.part'])('%s by default', (path) => {
    expect(matcher({ ignore: DEFAULT_IGNORE }).takes(path)).toBe(false);
  });

  test('a folder that is ignored is not looked into', () => {
    const match = matcher({ ignore: [...DEFAULT_IGNORE, 'archive'] });
    expect(match.prunes('.snapshot')).toBe(true);
    expect(match.prunes('archive')).toBe(true);
    expect(match.prunes('x/archive')).toBe(false);
    expect(match.prunes('runs (2)')).toBe(false);
    expect(match.verdict('.snapshot/hourly/a.csv')).toEqual({
      taken: false,
      rule: 'ignore',
      pattern: '**/.*',
    });
  });

  test('what is ignored by exclusion does not close the folders above it', () => {
    const match = matcher({ ignore: ['!**/*.csv'] });
    expect(match.prunes('runs')).toBe(false);
    expect(match.takes('runs/a.csv')).toBe(true);
    expect(match.takes('runs/a.log')).toBe(false);
  });

  test('a folder that no pattern reaches into is not looked into', () => {
    const flat = matcher({ files: ['*.csv', '2026/*.csv'] });
    expect(flat.prunes('2026')).toBe(false);
    expect(flat.prunes('2026/old')).toBe(true);
    expect(matcher({ files: ['*.csv'] }).prunes('old (1)')).toBe(true);
    expect(matcher({ files: ['**/*.csv'] }).prunes('a/b/c')).toBe(false);
  });
});

describe('a done-file is never a run', () => {
  test.each([
    ['{name}.done', 'a.csv.done', false],
    ['{name}.done', 'x/a.csv.done', false],
    ['{name}.done', 'a.csv', true],
    ['{name}.done', 'a.done.csv', true],
    ['{stem}.ok', 'a.ok', false],
    ['done/{stem}.ok', 'x/done/a.ok', false],
    ['done/{stem}.ok', 'x/a.ok', true],
    ['{name}(1).done', 'a(1).done', false],
    ['{name}.done', 'a\nb.csv.done', false],
  ])('%s, %s: a run is %s', (doneFile, path, taken) => {
    expect(matcher({ doneFile }).takes(path)).toBe(taken);
    expect(matcher({ doneFile }).verdict(path).taken).toBe(taken);
  });
});

test('the rule that decided is named', () => {
  const match = matcher({ files: ['**/*.csv'], ignore: ['**/~*'], doneFile: '{stem}.ok' });
  expect(match.verdict('a.csv')).toEqual({ taken: true, pattern: '**/*.csv' });
  expect(match.verdict('~a.csv')).toEqual({ taken: false, rule: 'ignore', pattern: '**/~*' });
  expect(match.verdict('a.ok')).toEqual({ taken: false, rule: 'doneFile', pattern: '{stem}.ok' });
  expect(match.verdict('a.txt')).toEqual({ taken: false, rule: 'files' });
});
