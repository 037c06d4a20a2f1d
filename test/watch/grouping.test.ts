import { expect, test } from 'vitest';
import { createGrouping, createMatcher, placesOf } from '../../src/watch/match.js';

const memberOf = (kind: Parameters<typeof createGrouping>[0], path: string) =>
  createGrouping(kind)?.memberOf(path);

test('a file by itself needs no grouping', () => {
  expect(createGrouping('file')).toBeUndefined();
});

test('the outermost folder that fits is the run, with all that lies in it', () => {
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

test('files of one stem are one run, known by the first', () => {
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

test('of two names that fit, the one that says more is meant', () => {
  const pair = { join: ['{stem}.csv', '{stem}_raw.csv'] };
  expect(memberOf(pair, 'a_raw.csv')).toMatchObject({ run: 'a.csv', role: '{stem}_raw.csv' });
});

test('joined files may lie in folders beside each other', () => {
  const pair = { join: ['results/{stem}.csv', 'raw/{stem}.bin'] };
  expect(memberOf(pair, 'day 1/raw/a.bin')).toEqual({
    run: 'day 1/results/a.csv',
    name: 'raw/a.bin',
    role: 'raw/{stem}.bin',
  });
  expect(memberOf(pair, 'day 1/a.bin')).toBeUndefined();
});

test('a name that is not UTF-8 leads to the files beside it and to its folder all the same', () => {
  const bytes = Buffer.from([0x2f, 0x64, 0x2f, 0xb5, 0x24, 0x26, 0x2e, 0x63, 0x73, 0x76]);
  const [, xml] = placesOf({ path: '/d/\\xB5$&.csv', location: bytes }, ['{stem}.csv', '{stem}.xml']);
  expect(xml).toMatchObject({ path: '/d/\\xB5$&.xml', name: '\\xB5$&.xml' });
  expect(xml?.location).toEqual(Buffer.concat([bytes.subarray(0, -3), Buffer.from('xml')]));
  const inside = Buffer.concat([bytes, Buffer.from('/acq/x')]);
  const grouping = createGrouping({ folder: '*' });
  expect(grouping?.locate(inside, { run: '\\xB5$&.csv', name: 'acq/x', role: '' })).toEqual(bytes);
  expect(grouping?.locate('/d/a/acq/x', { run: 'a', name: 'acq/x', role: '' })).toBe('/d/a');
});

test('what is part of no run is not taken, and why it is not can be told', () => {
  const matcher = createMatcher({
    files: ['**/*'],
    ignore: [],
    doneFile: '{name}/done',
    run: { folder: '*.D' },
  });
  expect(matcher.takes('a.D/x.csv')).toBe(true);
  expect(matcher.takes('a.D/done')).toBe(false);
  expect(matcher.takes('x.csv')).toBe(false);
  expect(matcher.verdict('x.csv')).toEqual({ taken: false, rule: 'run', pattern: '*.D' });
  expect(matcher.verdict('a.D/x.csv')).toEqual({ taken: true, pattern: '**/*' });
});
