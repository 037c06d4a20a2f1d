import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FileError } from '../../src/errors.js';
import { cleanTags, cleanTitle } from '../../src/map/draft.js';
import { provisionalTitle } from '../../src/markers.js';
import { file, fileErrorOf, type Given, map, nanodrop, record, renderTitle, v } from '../support/map-samples.js';

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
const graphemes = (text: string): number => [...segmenter.segment(text)].length;

describe('the title', () => {
  test("is the file's stem and the instrument by default", () => {
    expect(map().draft.title).toBe('run 7 (nanodrop)');
    expect(map({ file: { stem: '', name: '.csv' } }).draft.title).toBe('.csv (nanodrop)');
  });

  test('is plain text, not escaped', () => {
    expect(renderTitle('{{ meta.Sample }} & "co"')).toBe('Plasmid <A> & "co"');
  });

  test('is one line', () => {
    expect(cleanTitle(' a\r\n  b\u0000c\td\u2028e\u0085f ', file)).toBe('a b c d e f');
    expect(renderTitle('{{ meta.a }}', { record: record({ a: v('x\ny') }) })).toBe('x y');
    expect(map({ file: { stem: 'a\nb' } }).draft.title).toBe('a b (nanodrop)');
  });

  test('contains no lone surrogates', () => {
    expect(cleanTitle('a\ud83d', file)).toBe('a\ufffd');
  });

  test('is cut visibly if it is too long', () => {
    expect(cleanTitle('x'.repeat(255), file)).toBe('x'.repeat(255));
    expect(cleanTitle('x'.repeat(256), file)).toBe(`${'x'.repeat(254)}…`);
  });

  test('is counted and cut in graphemes', () => {
    const family = '👨‍👩‍👧‍👦';
    expect(cleanTitle(family.repeat(255), file)).toBe(family.repeat(255));
    expect(cleanTitle(family.repeat(256), file)).toBe(`${family.repeat(254)}…`);
  });

  test('that is empty quarantines the run', () => {
    expect(() => renderTitle('{{ meta.Blank }} ')).toThrow(FileError);
    expect(() => cleanTitle(' \n\t', file)).toThrow('the title is empty');
  });

  test('cannot be a provisional title', () => {
    expect(() => cleanTitle(provisionalTitle('0123456789abcdef'), file)).toThrow('is reserved for labfeed');
    expect(cleanTitle('labfeed test', file)).toBe('labfeed test');
  });

  test('never exceeds 255 graphemes or one line', () => {
    const long = fc.string({
      unit: fc.oneof(fc.constantFrom('a', 'é', '👩‍🔬', '\n', ' '), fc.string({ unit: 'binary' })),
      maxLength: 400,
      size: 'max',
    });
    fc.assert(
      fc.property(long, (text) => {
        const title = cleanTitle(`x${text}`, file);
        expect(graphemes(title)).toBeLessThanOrEqual(255);
        expect(title).toMatch(/^[^\p{Cc}\p{Cs}]+$/u);
      }),
      { numRuns: 30 },
    );
  });
});

describe('tags', () => {
  test('are the instrument by default', () => {
    expect(map().draft.tags).toEqual(['nanodrop']);
    expect(map({ experiment: { tags: [] } }).draft.tags).toEqual([]);
  });

  test('are cleaned to what notebooks accept', () => {
    expect(cleanTags([' a ', 'b|c', 'd\ne', '', ' ', '|'])).toEqual(['a', 'b c', 'd e']);
  });

  test('are unique ignoring case', () => {
    expect(cleanTags(['DNA', 'dna', 'Ärzte', 'ärzte', 'rna'])).toEqual(['DNA', 'Ärzte', 'rna']);
  });

  test('that are too long are cut visibly', () => {
    expect(cleanTags(['x'.repeat(255), 'y'.repeat(256)])).toEqual(['x'.repeat(255), `${'y'.repeat(254)}…`]);
    expect(cleanTags(['😀'.repeat(255)])).toEqual(['😀'.repeat(255)]);
    expect(cleanTags(['😀'.repeat(300)])).toEqual([`${'😀'.repeat(254)}…`]);
  });

  test('are rendered as plain text', () => {
    expect(map({ experiment: { tags: ['nanodrop', '{{ meta.Operator }}', '{{ meta.Sample }}'] } }).draft.tags).toEqual([
      'nanodrop',
      'R. Müller',
      'Plasmid <A>',
    ]);
  });

  test('are always acceptable', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', size: 'large' })), (texts) => {
        for (const tag of cleanTags(texts)) {
          expect([...tag].length).toBeLessThanOrEqual(255);
          expect(tag).toMatch(/^[^\p{Cc}\p{Cs}|]+$/u);
          expect(tag).toBe(tag.trim());
        }
      }),
    );
  });
});

const dated = (text: string, value: string | number | null = text) => ({
  unread: [],
  meta: new Map([...nanodrop.meta, ['date', v(value, text)]]),
  tables: nanodrop.tables,
});

function dateOf(given: Given): string {
  const { draft, dateFrom } = map(given);
  return `${draft.date} ${dateFrom}`;
}

function errorOf(given: Given): string {
  const { message, hint } = fileErrorOf(() => map(given));
  return `${message} → ${hint}`;
}

const both = () => ({ ambiguous: ['dd/MM/yyyy', 'MM/dd/yyyy'] });

describe('the date', () => {
  test('of a file whose dates are not those of the run is the day of its modification', () => {
    expect(dateOf({ record: { ...dated('2026-02-01'), isUndated: true } })).toBe('2026-03-04 modified');
    expect(dateOf({ record: dated('2026-02-01'), experiment: { date: '{{ file.modified }}' } })).toBe(
      '2026-03-04 modified',
    );
  });

  test('comes from the template', () => {
    expect(dateOf({ experiment: { date: '2026-01-02' } })).toBe('2026-01-02 template');
    expect(dateOf({ experiment: { date: ' {{ file.modified }} ' } })).toBe('2026-03-04 template');
    expect(dateOf({ experiment: { date: '{{ now }}' } })).toBe('2026-03-04 template');
    expect(dateOf({ record: dated('2026-02-01'), experiment: { date: '2026-01-02' } })).toBe('2026-01-02 template');
  });

  test('of modification is a day in local time', () => {
    vi.stubEnv('TZ', 'America/New_York');
    onTestFinished(() => void vi.unstubAllEnvs());
    const modifiedMs = Date.UTC(2026, 0, 5, 3);
    expect(dateOf({ file: { modifiedMs } })).toBe('2026-01-04 modified');
  });

  test('of a fact in a template is the one that parsing read', () => {
    const german = record({ Datum: v('2026-01-02T10:00:00', '02.01.2026 10:00') });
    expect(dateOf({ record: german, experiment: { date: '{{ meta.Datum }}' } })).toBe('2026-01-02 template');
    expect(dateOf({ record: german, experiment: { date: '{{ meta.Datum | date: "%Y-%m-%d" }}' } })).toBe(
      '2026-01-02 template',
    );
  });

  test('comes from the fact of that name without a template', () => {
    expect(dateOf({ record: dated('2026-01-02') })).toBe('2026-01-02 fact');
    expect(dateOf({ record: dated('02.01.2026', '2026-01-02T23:30:00-05:00') })).toBe('2026-01-02 fact');
  });

  test('is the day of modification without template and fact', () => {
    expect(dateOf({})).toBe('2026-03-04 modified');
    expect(dateOf({ file: { modifiedMs: new Date(2026, 2, 4, 0, 0, 1).getTime() } })).toBe('2026-03-04 modified');
    expect(dateOf({ file: { modifiedMs: new Date(2026, 2, 4, 23, 59, 59).getTime() } })).toBe('2026-03-04 modified');
    expect(dateOf({ record: dated('N/A', null) })).toBe('2026-03-04 modified');
    expect(dateOf({ record: dated('') })).toBe('2026-03-04 modified');
  });

  test('that is not ISO is read with the formats of the mapping', () => {
    const readDate = (text: string) => (text === '2. Jan 26' ? { iso: '2026-01-02T00:00:00' } : undefined);
    expect(dateOf({ record: dated('2. Jan 26'), readDate })).toBe('2026-01-02 fact');
    expect(dateOf({ experiment: { date: '2. Jan {{ "26" }}' }, readDate })).toBe('2026-01-02 template');
  });

  test('that is ambiguous is not guessed, and the hint has the lines to choose from', () => {
    expect(errorOf({ record: dated('03/04/2026'), readDate: both })).toBe(
      'the date "03/04/2026" is ambiguous → add the date format under parse: ' +
        'dates: { format: dd/MM/yyyy } or dates: { format: MM/dd/yyyy }',
    );
    const odd = record({ d: v('03/04/2026') });
    const experiment = { date: '{{ meta.d | date: "%Y-%m-%d" }}' };
    expect(errorOf({ record: odd, experiment, readDate: both })).toContain('is ambiguous');
  });

  test('format with quotes is quoted for YAML in the hint', () => {
    const readDate = () => ({ ambiguous: ["dd/MM/yyyy'T'HH:mm"] });
    expect(errorOf({ record: dated('x'), readDate })).toContain(`dates: { format: "dd/MM/yyyy'T'HH:mm" }`);
  });

  test('that cannot be read quarantines the run', () => {
    expect(errorOf({ record: dated('last week') })).toContain('cannot read "last week" as a date');
    expect(errorOf({ record: dated('20260304', 20260304) })).toContain('cannot read "20260304" as a date');
    expect(errorOf({ record: dated('x'), readDate: () => ({ iso: '23:10:00' }) })).toContain('is not a calendar date');
  });

  test.each(['2026-02-30', '2026-13-01', '2026-00-10', '0000-01-01', '0099-01-01'])(
    '%s is not a calendar date',
    (day) => {
      expect(errorOf({ record: dated(day) })).toContain(`the date "${day}" is not a calendar date`);
    },
  );

  test('that is empty quarantines the run unless the template has a fallback', () => {
    const blank = record({ Date: v(null, '') });
    expect(errorOf({ record: blank, experiment: { date: '{{ meta.Date }}' } })).toContain('the date is empty');
    expect(dateOf({ record: blank, experiment: { date: '{{ meta.Date | default: file.modified }}' } })).toBe(
      '2026-03-04 template',
    );
  });

  test('may be one day after the modification, but not more', () => {
    expect(dateOf({ record: dated('2026-03-05') })).toBe('2026-03-05 fact');
    const message = errorOf({ record: dated('2026-03-06') });
    expect(message).toContain('the date 2026-03-06 is more than one day after the file was modified (2026-03-04)');
  });

  test('is neither before 1970 nor the first day of a clock that was not set', () => {
    for (const day of ['1970-01-01', '1980-01-01', '1904-01-01', '1903-10-15', '1969-12-31'])
      expect(errorOf({ record: dated(day) })).toContain(
        `the date ${day} is before 1970, or the first day of a clock that was not set`,
      );
    expect(dateOf({ record: dated('1970-01-02') })).toBe('1970-01-02 fact');
    expect(dateOf({ record: dated('1980-01-02') })).toBe('1980-01-02 fact');
  });

  test('is always a real day or an error', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^\d{4}-\d\d-\d\d.*$/)), (text) => {
        let date: string;
        try {
          date = map({ record: dated(text) }).draft.date;
        } catch (error) {
          expect(error).toBeInstanceOf(FileError);
          return;
        }
        expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
        expect(new Date(`${date}T00:00:00Z`).toISOString().slice(0, 10)).toBe(date);
      }),
    );
  });

  test('from the file does not depend on the time zone', () => {
    const zone = process.env['TZ'];
    try {
      for (const TZ of ['Pacific/Honolulu', 'UTC', 'Pacific/Kiritimati']) {
        process.env['TZ'] = TZ;
        const file = { modifiedMs: Date.UTC(2026, 2, 4, 12) };
        expect(dateOf({ record: dated('2026-03-04'), file })).toBe('2026-03-04 fact');
        const experiment = { date: '{{ meta.date | date: "%Y-%m-%d" }}' };
        expect(dateOf({ record: dated('2026-03-04'), file, experiment })).toBe('2026-03-04 template');
        expect(dateOf({ record: dated('x', '2026-03-04T23:59:00Z'), file, experiment })).toBe('2026-03-04 template');
      }
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });
});

describe('extra fields', () => {
  const field = (value: string, type: 'text' | 'number' = 'text', unit?: string) => ({ value, type, unit });
  const fieldsOf = (fields: Record<string, ReturnType<typeof field>>, given: Given = {}) =>
    map({ ...given, experiment: { fields } }).draft.extras?.fields;

  test('are templates; one without a value is left out', () => {
    expect(fieldsOf({ Sample: field('{{ meta.Sample }}'), Gone: field('{{ meta.gone }}') })).toEqual({
      Sample: { value: 'Plasmid <A>', type: 'text' },
    });
  });

  test('of type number have a decimal point, and anything else is refused', () => {
    const given = { record: record({ pH: v(7.4, '7,4') }) };
    expect(fieldsOf({ pH: field('{{ meta.pH }}', 'number', 'pH') }, given)).toEqual({
      pH: { value: '7.4', type: 'number', unit: 'pH' },
    });
    expect(fileErrorOf(() => fieldsOf({ n: field('about 7', 'number') })).message).toBe(
      'the field "n" is "about 7", which is not a number',
    );
  });

  test('of type number stay as they are written if that is a plain number', () => {
    const written = (value: number, text: string) =>
      fieldsOf({ pH: field('{{ meta.pH }}', 'number') }, { record: record({ pH: v(value, text) }) })?.['pH']?.value;
    expect([written(7, '7.0'), written(-0.5, '-0.50'), written(1234, '1,234'), written(7, '7.0 M')]).toEqual([
      '7.0',
      '-0.50',
      '1234',
      '7',
    ]);
  });

  test('and the like are absent if the mapping has none', () => {
    expect(map().draft).not.toHaveProperty('extras');
    expect(map({ experiment: { category: 'Raw data' } }).draft.extras).toEqual({ category: 'Raw data' });
  });
});
