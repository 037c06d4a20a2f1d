import { describe, expect, test } from 'vitest';
import type { Claim } from '../../src/config/load.js';
import {
  createClaims,
  createGrouping,
  createMatcher,
  type MatchOptions,
  pathInside,
  placesOf,
} from '../../src/watch/match.js';

const DEFAULT_IGNORE = ['**/.*', '**/~*', '**/*.tmp', '**/*.part'];

const matcher = (options: Partial<MatchOptions>) => createMatcher({ files: ['**/*'], ignore: [], ...options });

describe('globs are relative to the watched folder', () => {
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

  test('a pattern equal to the name matches it, including brackets', () => {
    expect(matcher({ files: ['plate[1].csv'] }).takes('plate[1].csv')).toBe(true);
  });

  test('in a list, ! excludes files that other patterns match', () => {
    const match = matcher({ files: ['**/*.csv', '!**/blank*'] });
    expect(match.takes('a.csv')).toBe(true);
    expect(match.takes('blank1.csv')).toBe(false);
    expect(matcher({ files: ['!*.log'] }).takes('a.csv')).toBe(true);
  });
});

describe('ignore', () => {
  test.each(['.DS_Store', 'x/.hidden', '~$book.xlsx', 'a.tmp', 'x/a.csv.part'])('excludes %s by default', (path) => {
    expect(matcher({ ignore: DEFAULT_IGNORE }).takes(path)).toBe(false);
  });

  test('excludes everything in an ignored folder', () => {
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

  test('with a negated pattern does not exclude the folders above it', () => {
    const match = matcher({ ignore: ['!**/*.csv'] });
    expect(match.prunes('runs')).toBe(false);
    expect(match.takes('runs/a.csv')).toBe(true);
    expect(match.takes('runs/a.log')).toBe(false);
  });

  test('a folder below the depth of all patterns is not listed', () => {
    const flat = matcher({ files: ['*.csv', '2026/*.csv'] });
    expect(flat.prunes('2026')).toBe(false);
    expect(flat.prunes('2026/old')).toBe(true);
    expect(matcher({ files: ['*.csv'] }).prunes('old (1)')).toBe(true);
    expect(matcher({ files: ['**/*.csv'] }).prunes('a/b/c')).toBe(false);
  });
});

describe('done-files are never runs', () => {
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
    expect(matcher({ ready: { doneFile } }).takes(path)).toBe(taken);
    expect(matcher({ ready: { doneFile } }).verdict(path).taken).toBe(taken);
  });
});

test('the verdict names the rule that decided', () => {
  const match = matcher({ files: ['**/*.csv'], ignore: ['**/~*'], ready: { doneFile: '{stem}.ok' } });
  expect(match.verdict('a.csv')).toEqual({ taken: true, pattern: '**/*.csv' });
  expect(match.verdict('~a.csv')).toEqual({ taken: false, rule: 'ignore', pattern: '**/~*' });
  expect(match.verdict('a.ok')).toEqual({ taken: false, rule: 'doneFile', pattern: '{stem}.ok' });
  expect(match.verdict('a.txt')).toEqual({ taken: false, rule: 'files' });
});

describe('runs of several files', () => {
  const memberOf = (kind: Parameters<typeof createGrouping>[0], path: string) => createGrouping(kind)?.memberOf(path);

  test('single files need no grouping', () => {
    expect(createGrouping('file')).toBeUndefined();
  });

  test('the outermost folder that matches is the run, with everything in it', () => {
    const deep = { folder: '**/*.D' };
    expect(memberOf(deep, 'seq/s1.D/acq/x.bin')).toEqual({
      run: 'seq/s1.D',
      name: 'acq/x.bin',
      role: 'acq/x.bin',
    });
    expect(memberOf(deep, 's1.D/old.D/x.bin')?.run).toBe('s1.D');
    expect(memberOf(deep, 'seq/x.bin')).toBeUndefined();
    expect(memberOf({ folder: '*' }, 'a/b/c.csv')?.run).toBe('a');
    expect(memberOf({ folder: '*' }, 'c.csv')).toBeUndefined();
  });

  test('files with the same stem are one run with the path of the first', () => {
    const pair = { join: ['{stem}.csv', '{stem}_info.xml'] };
    expect(memberOf(pair, 'x/a.csv')).toEqual({ run: 'x/a.csv', name: 'a.csv', role: '{stem}.csv' });
    expect(memberOf(pair, 'x/a_info.xml')).toEqual({
      run: 'x/a.csv',
      name: 'a_info.xml',
      role: '{stem}_info.xml',
    });
    expect(memberOf(pair, 'x/.csv')).toBeUndefined();
    expect(memberOf(pair, 'x/a.xml')).toBeUndefined();
  });

  test('of two patterns that match, the longer one applies', () => {
    const pair = { join: ['{stem}.csv', '{stem}_raw.csv'] };
    expect(memberOf(pair, 'a_raw.csv')).toMatchObject({ run: 'a.csv', role: '{stem}_raw.csv' });
  });

  test('joined files can be in sibling folders', () => {
    const pair = { join: ['results/{stem}.csv', 'raw/{stem}.bin'] };
    expect(memberOf(pair, 'day 1/raw/a.bin')).toEqual({
      run: 'day 1/results/a.csv',
      name: 'raw/a.bin',
      role: 'raw/{stem}.bin',
    });
    expect(memberOf(pair, 'day 1/a.bin')).toBeUndefined();
  });

  test('joined files and folders of runs are located by bytes if a name is not UTF-8', () => {
    const bytes = Buffer.from([0x2f, 0x64, 0x2f, 0xb5, 0x24, 0x26, 0x2e, 0x63, 0x73, 0x76]);
    const [, xml] = placesOf({ path: '/d/\\xB5$&.csv', location: bytes }, ['{stem}.csv', '{stem}.xml']);
    expect(xml).toMatchObject({ path: '/d/\\xB5$&.xml', name: '\\xB5$&.xml' });
    expect(xml?.location).toEqual(Buffer.concat([bytes.subarray(0, -3), Buffer.from('xml')]));
    const inside = Buffer.concat([bytes, Buffer.from('/acq/x')]);
    const grouping = createGrouping({ folder: '*' });
    expect(grouping?.locate(inside, { run: '\\xB5$&.csv', name: 'acq/x', role: '' })).toEqual(bytes);
    expect(grouping?.locate('/d/a/acq/x', { run: 'a', name: 'acq/x', role: '' })).toBe('/d/a');
  });

  test('a file that belongs to no run is not taken, and the verdict says why', () => {
    const matcher = createMatcher({
      files: ['**/*'],
      ignore: [],
      ready: { doneFile: '{name}/done' },
      run: { folder: '*.D' },
    });
    expect(matcher.takes('a.D/x.csv')).toBe(true);
    expect(matcher.takes('a.D/done')).toBe(false);
    expect(matcher.takes('x.csv')).toBe(false);
    expect(matcher.verdict('x.csv')).toEqual({ taken: false, rule: 'run', pattern: '*.D' });
    expect(matcher.verdict('a.D/x.csv')).toEqual({ taken: true, pattern: '**/*' });
  });
});

test.each([
  ['/data/a.csv', 'a.csv'],
  ['/data/x/a.csv', 'x/a.csv'],
  ['/data/..a.csv', '..a.csv'],
  ['/data', undefined],
  ['/a.csv', undefined],
  ['/data2/a.csv', undefined],
])('%s in /data is %s', (path, inside) => {
  expect(pathInside('/data', path)).toBe(inside);
});

test.each([
  ['/data/a.csv', 'a.csv'],
  ['/data/./sub/a.csv', 'sub/a.csv'],
  ['/data//a.csv', 'a.csv'],
  ['/data/.hidden/a.csv', '.hidden/a.csv'],
  ['/data/..a.csv', '..a.csv'],
  ['/data/../other/a.csv', undefined],
  ['/data2/a.csv', undefined],
  ['/data', undefined],
])('%s is %s inside /data', (path, inside) => {
  expect(pathInside('/data', path)).toBe(inside);
});

test('files that labfeed is moving or deleting are no runs, whatever the globs say', () => {
  const { takes, misses, verdict } = matcher({ files: ['**/*', '**/.labfeed-*'], ignore: [] });
  for (const path of ['.labfeed-00000000-7-1', 'x/.labfeed-00000000-7-1', 'x/.labfeed-00000000-7-1.copy']) {
    expect([takes(path), misses(path)]).toEqual([false, false]);
    expect(verdict(path)).toMatchObject({ taken: false, rule: 'ignore' });
  }
  expect(takes('labfeed-7.csv')).toBe(true);
});

test('a file in a folder that an instrument ignores belongs to the next instrument', () => {
  const claim = (name: string, ignore: readonly string[]) =>
    ({ name, watch: '/data', files: ['**/*.csv'], ignore, run: 'file', ready: {} }) as unknown as Claim;
  const [first, second] = [claim('first', ['archive']), claim('second', [])];
  const claims = createClaims([first, second]);
  expect(claims.takes(first, '/data/a.csv')).toBe(true);
  expect(claims.takes(first, '/data/archive/a.csv')).toBe(false);
  expect(claims.before(second, '/data/a.csv')).toBe(first);
  expect(claims.before(second, '/data/archive/a.csv')).toBeUndefined();
});
