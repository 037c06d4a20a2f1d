import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  asSentence,
  escapeHtml,
  formatBytes,
  formatClock,
  formatDuration,
  formatShortTime,
  formatTime,
  formatUtcOffset,
  headingOf,
  joinWords,
  multiLine,
  nearest,
  plural,
  relativeTime,
  shellWord,
  singleLine,
  splitBytes,
  terminalLine,
  terminalText,
  truncateBytes,
  versionLines,
  withoutPath,
} from '../src/text.js';

const NOW = new Date(2026, 2, 4, 14, 30).getTime();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test('counts and sizes have thousands separators and the right plural', () => {
  expect([plural(0, 'run'), plural(1, 'run'), plural(1312, 'run')]).toEqual(['0 runs', '1 run', '1,312 runs']);
  expect(plural(2, 'run waits', 'runs wait')).toBe('2 runs wait');
  expect([1, 99_999, 250_000, 12_300_000].map(formatBytes)).toEqual(['1 byte', '99,999 bytes', '250.0 kB', '12.3 MB']);
});

test('a duration is given in one unit that keeps the number small', () => {
  expect([-5, 150, 1000, 99_999, 100_000, 99 * MINUTE, 100 * MINUTE, 47 * HOUR, 50 * HOUR].map(formatDuration)).toEqual(
    ['0 ms', '150 ms', '1 second', '99 seconds', '1 minute', '99 minutes', '1 hour', '47 hours', '2 days'],
  );
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
  expect([formatClock(NOW + 10_000, NOW), formatClock(lastYear, NOW)]).toEqual(['14:30:10', '2025-12-31 09:05']);
  expect([formatShortTime(NOW, NOW), formatShortTime(lastYear, NOW)]).toEqual(['03-04 14:30', '2025-12-31 09:05']);
});

test.each([
  ['UTC', '+00:00', '+00:00'],
  ['Europe/Berlin', '+01:00', '+02:00'],
  ['America/St_Johns', '-03:30', '-02:30'],
  ['Asia/Kathmandu', '+05:45', '+05:45'],
])('in %s, local time differs from UTC by %s in January and by %s in July', (zone, january, july) => {
  const before = process.env['TZ'];
  process.env['TZ'] = zone;
  const offsets = [0, 6].map((month) => formatUtcOffset(Date.UTC(2026, month, 15, 12)));
  if (before === undefined) delete process.env['TZ'];
  else process.env['TZ'] = before;
  expect(offsets).toEqual([january, july]);
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

test('text cannot become markup', () => {
  expect(escapeHtml(`<a b="c" d='e'>&</a>`)).toBe('&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;&lt;/a&gt;');
});

test('text for a terminal cannot move the cursor or reverse the text direction', () => {
  expect(terminalLine('a\x1b[2Jb\u202ec\nd')).toBe('a [2Jb c d');
  expect(terminalText('a\x1b[2Jb\u202ec\r\n\td')).toBe('a\ufffd[2Jb\ufffdc\n\td');
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
  ])('%s stands for %s', (typed, meant) => {
    expect(nearest(typed, names)).toBe(meant);
  });

  test.each(['x', 'instrument', '', 'zz', 'comments'])('nothing is close to %j', (typed) => {
    expect(nearest(typed, names)).toBeUndefined();
  });

  test('case, spaces, hyphens and underscores are ignored', () => {
    expect(nearest('sample_id', ['Sample', 'Sample ID'])).toBe('Sample ID');
    expect(nearest('max-bytes', ['maxBytes', 'bytes'])).toBe('maxBytes');
  });

  test('a name that contains the other is close, but less so than one with a typo', () => {
    expect(nearest('Sample', ['Operator', 'Sample Description'])).toBe('Sample Description');
    expect(nearest('Sample', ['Sample Description', 'Samples'])).toBe('Samples');
  });

  test('two swapped letters count as one edit', () => {
    expect(nearest('ab', ['ba'])).toBeUndefined();
    expect(nearest('Wieght', ['Height', 'Weight'])).toBe('Weight');
  });

  test('the first of several equally close names wins', () => {
    expect(nearest('cat', ['bat', 'hat'])).toBe('bat');
  });

  test('without known names there is no match', () => {
    expect(nearest('title', [])).toBeUndefined();
  });

  test('a known name always matches itself', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: 'binary' }), { minLength: 1 }), fc.nat(), (known, n) => {
        const name = known[n % known.length] ?? '';
        const found = nearest(name, known) ?? '';
        expect(found.toLowerCase().replace(/[\s_-]+/g, '')).toBe(name.toLowerCase().replace(/[\s_-]+/g, ''));
      }),
    );
  });
});

const wellFormed = fc.string({ unit: 'grapheme', size: 'large' });
const maxSize = fc.integer({ min: 8, max: 100 });

describe('text from a file', () => {
  test('is split between characters, and nothing is lost', () => {
    fc.assert(
      fc.property(wellFormed, maxSize, (text, maxBytes) => {
        const pieces = [...splitBytes(text, maxBytes)];
        expect(pieces.join('')).toBe(text);
        for (const piece of pieces) expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(maxBytes);
      }),
    );
  });

  test('is truncated at a character and ends with an ellipsis', () => {
    fc.assert(
      fc.property(wellFormed, maxSize, (text, maxBytes) => {
        const cut = truncateBytes(text, maxBytes);
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(maxBytes);
        if (cut !== text) expect(text.startsWith(cut.replace(/…$/, ''))).toBe(true);
      }),
    );
    expect(truncateBytes('µµµµµ', 8)).toBe('µµ…');
    expect(truncateBytes('µµµµ', 8)).toBe('µµµµ');
    expect([...splitBytes('\ufeffµµµ', 5)]).toEqual(['\ufeffµ', 'µµ']);
  });

  test('lists the newest versions of a file, and counts the earlier ones', () => {
    const versions = Array.from({ length: 53 }, (_, n) => ({ sha256: `v${n}`, at: n, state: 'replaced' }));
    const lines = versionLines([...versions, { sha256: 'last', at: 60, state: 'unreadable', unread: 7 }]);
    expect(lines).toHaveLength(51);
    expect([lines[0], lines[1], lines.at(-1)]).toEqual([
      '4 earlier versions',
      `${formatTime(4)}  v4  replaced`,
      `${formatTime(60)}  last  unreadable (see run 7)`,
    ]);
    expect(versionLines([{ sha256: 'one', at: 1, state: 'done', filedAt: 2 }])).toEqual([
      `${formatTime(1)}  one  done (filed ${formatTime(2)})`,
    ]);
  });

  test('keeps its length as a single line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(singleLine(text).length).toBe(text.length);
        expect(singleLine(text)).not.toMatch(/[\p{Cc}\p{Cs}\u2028\u2029]/u);
      }),
    );
  });

  test('keeps line breaks and tabs as several lines', () => {
    expect(multiLine('a\r\nb\rc\n\td\u0007e\ud800')).toBe('a\nb\nc\n\td e\ufffd');
    expect(multiLine('a\r\nb')).toBe('a\nb');
  });
});

test.each(['plain-1.csv', 'two words', "Ada's $HOME `id`", ''])('a shell reads %j as one word', (text) => {
  const { stdout } = spawnSync('sh', ['-c', `printf '%s|' ${shellWord(text)}`], { encoding: 'utf8' });
  expect(stdout).toBe(`${text}|`);
});

test.each([
  ['Absorbance', 'AU', 'Absorbance (AU)'],
  ['Absorbance', '', 'Absorbance'],
  ['Absorbance (2)', 'AU', 'Absorbance (2) (AU)'],
  ['mAU', 'mAU', 'mAU'],
  ['mAU (2)', 'mAU', 'mAU (2)'],
  ['[mV]', 'mV', '[mV]'],
  ['(mV) (3)', 'mV', '(mV) (3)'],
])('the heading of %j with the unit %j is %j', (name, unit, heading) => {
  expect(headingOf({ name, unit })).toBe(heading);
});
