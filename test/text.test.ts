import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  asSentence,
  formatBytes,
  formatClock,
  formatDuration,
  formatShortTime,
  formatTime,
  joinWords,
  nearest,
  plural,
  relativeTime,
  withoutPath,
} from '../src/text.js';

const NOW = new Date(2026, 2, 4, 14, 30).getTime();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test('counts and sizes have thousands separators and the right plural', () => {
  expect([plural(0, 'run'), plural(1, 'run'), plural(1312, 'run')]).toEqual([
    '0 runs',
    '1 run',
    '1,312 runs',
  ]);
  expect(plural(2, 'run waits', 'runs wait')).toBe('2 runs wait');
  expect([1, 99_999, 250_000, 12_300_000].map(formatBytes)).toEqual([
    '1 byte',
    '99,999 bytes',
    '250.0 kB',
    '12.3 MB',
  ]);
});

test('a duration is given in one unit that keeps the number small', () => {
  expect(
    [-5, 150, 1000, 99_999, 100_000, 99 * MINUTE, 100 * MINUTE, 47 * HOUR, 50 * HOUR].map(formatDuration),
  ).toEqual([
    '0 ms',
    '150 ms',
    '1 second',
    '99 seconds',
    '1 minute',
    '99 minutes',
    '1 hour',
    '47 hours',
    '2 days',
  ]);
});

test('a time is given relative to now, in the past and in the future', () => {
  const relative = (ms: number): string => relativeTime(NOW + ms, NOW);
  expect([-5 * MINUTE, -10_000, -9999, 0, 999, 12_000].map(relative)).toEqual([
    '5 minutes ago',
    '10 seconds ago',
    'just now',
    'just now',
    'just now',
    'in 12 seconds',
  ]);
});

test('dates and times leave out what is the same as now', () => {
  const lastYear = new Date(2025, 11, 31, 9, 5, 7).getTime();
  expect(formatTime(lastYear)).toBe('2025-12-31 09:05:07');
  expect([formatClock(NOW + 10_000, NOW), formatClock(lastYear, NOW)]).toEqual([
    '14:30:10',
    '2025-12-31 09:05',
  ]);
  expect([formatShortTime(NOW, NOW), formatShortTime(lastYear, NOW)]).toEqual([
    '03-04 14:30',
    '2025-12-31 09:05',
  ]);
});

test('words become lists and sentences', () => {
  expect([joinWords([]), joinWords(['a']), joinWords(['a', 'b', 'c'])]).toEqual(['', 'a', 'a, b and c']);
  expect([asSentence('no answer'), asSentence('Stop!'), asSentence('')]).toEqual(['No answer.', 'Stop!', '']);
});

test('a reason that starts with the path of its file keeps line and column', () => {
  const shorten = (reason: string): string => withoutPath(reason, '/data/a.csv');
  expect(shorten('/data/a.csv:2:4: no number')).toBe('line 2, column 4: no number');
  expect(shorten('/data/a.csv:2: no number')).toBe('line 2: no number');
  expect(shorten('/data/a.csv: no table')).toBe('no table');
  expect(shorten('/data/a.csv.bak: no table')).toBe('/data/a.csv.bak: no table');
  expect(shorten('the notebook refused it')).toBe('the notebook refused it');
  expect(withoutPath('no table', '')).toBe('no table');
});

describe('nearest', () => {
  const names = ['title', 'date', 'body', 'tags'];

  test.each([
    ['titel', 'title'],
    ['tittle', 'title'],
    ['titl', 'title'],
    ['tag', 'tags'],
    ['DATE', 'date'],
    ['boby', 'body'],
  ])('%s was meant to be %s', (typed, meant) => {
    expect(nearest(typed, names)).toBe(meant);
  });

  test.each(['x', 'instrument', '', 'zz', 'comments'])('nothing is near %j', (typed) => {
    expect(nearest(typed, names)).toBeUndefined();
  });

  test('case, blanks, dashes and underscores do not count', () => {
    expect(nearest('sample_id', ['Sample', 'Sample ID'])).toBe('Sample ID');
    expect(nearest('max-bytes', ['maxBytes', 'bytes'])).toBe('maxBytes');
  });

  test('a name within another is near, after those with a slip of the finger', () => {
    expect(nearest('Sample', ['Operator', 'Sample Description'])).toBe('Sample Description');
    expect(nearest('Sample', ['Sample Description', 'Samples'])).toBe('Samples');
  });

  test('two swapped letters are one slip', () => {
    expect(nearest('ab', ['ba'])).toBeUndefined();
    expect(nearest('Wieght', ['Height', 'Weight'])).toBe('Weight');
  });

  test('the first of equally near names is taken', () => {
    expect(nearest('cat', ['bat', 'hat'])).toBe('bat');
  });

  test('there is nothing near where nothing is known', () => {
    expect(nearest('title', [])).toBeUndefined();
  });

  test('a known name is always found as itself, however it is written', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: 'binary' }), { minLength: 1 }), fc.nat(), (known, n) => {
        const name = known[n % known.length] ?? '';
        const found = nearest(name, known) ?? '';
        expect(found.toLowerCase().replace(/[\s_-]+/g, '')).toBe(name.toLowerCase().replace(/[\s_-]+/g, ''));
      }),
    );
  });
});
