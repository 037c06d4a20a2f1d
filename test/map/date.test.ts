import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FileError } from '../../src/errors.js';
import { type Given, map, nanodrop, record, v } from './samples.js';

const dated = (text: string, value: string | number | null = text) => ({
  meta: new Map([...nanodrop.meta, ['date', v(value, text)]]),
  tables: nanodrop.tables,
});

function dateOf(given: Given): string {
  const { draft, dateFrom } = map(given);
  return `${draft.date} ${dateFrom}`;
}

function refusal(given: Given): string {
  try {
    map(given);
  } catch (error) {
    if (error instanceof FileError) return `${error.message} → ${error.hint}`;
    throw error;
  }
  throw new Error('nothing was refused');
}

const both = () => ({ ambiguous: ['dd/MM/yyyy', 'MM/dd/yyyy'] });

describe('the date', () => {
  test('is what the template says', () => {
    expect(dateOf({ experiment: { date: '2026-01-02' } })).toBe('2026-01-02 template');
    expect(dateOf({ experiment: { date: ' {{ file.modified }} ' } })).toBe('2026-03-04 template');
    expect(dateOf({ experiment: { date: '{{ now }}' } })).toBe('2026-03-04 template');
    expect(dateOf({ record: dated('2026-02-01'), experiment: { date: '2026-01-02' } })).toBe(
      '2026-01-02 template',
    );
  });

  test('of the file is that of this machine: an evening in America is not tomorrow', () => {
    vi.stubEnv('TZ', 'America/New_York');
    onTestFinished(() => void vi.unstubAllEnvs());
    const modifiedMs = Date.UTC(2026, 0, 5, 3);
    expect(dateOf({ file: { modifiedMs } })).toBe('2026-01-04 modified');
  });

  test('is what the mapping read in a fact, however it was written there', () => {
    const german = record({ Datum: v('2026-01-02T10:00:00', '02.01.2026 10:00') });
    expect(dateOf({ record: german, experiment: { date: '{{ meta.Datum }}' } })).toBe('2026-01-02 template');
    expect(dateOf({ record: german, experiment: { date: '{{ meta.Datum | date: "%Y-%m-%d" }}' } })).toBe(
      '2026-01-02 template',
    );
  });

  test('is else the fact of that name', () => {
    expect(dateOf({ record: dated('2026-01-02') })).toBe('2026-01-02 fact');
    expect(dateOf({ record: dated('02.01.2026', '2026-01-02T23:30:00-05:00') })).toBe('2026-01-02 fact');
  });

  test('is else the day on which the file was modified, by the local calendar', () => {
    expect(dateOf({})).toBe('2026-03-04 modified');
    expect(dateOf({ file: { modifiedMs: new Date(2026, 2, 4, 0, 0, 1).getTime() } })).toBe(
      '2026-03-04 modified',
    );
    expect(dateOf({ file: { modifiedMs: new Date(2026, 2, 4, 23, 59, 59).getTime() } })).toBe(
      '2026-03-04 modified',
    );
    expect(dateOf({ record: dated('N/A', null) })).toBe('2026-03-04 modified');
    expect(dateOf({ record: dated('') })).toBe('2026-03-04 modified');
  });

  test('that is not ISO is read as the mapping says', () => {
    const readDate = (text: string) => (text === '2. Jan 26' ? { iso: '2026-01-02T00:00:00' } : undefined);
    expect(dateOf({ record: dated('2. Jan 26'), readDate })).toBe('2026-01-02 fact');
    expect(dateOf({ experiment: { date: '2. Jan {{ "26" }}' }, readDate })).toBe('2026-01-02 template');
  });

  test('that can be read in two ways is not guessed: the line for the mapping is offered', () => {
    expect(refusal({ record: dated('03/04/2026'), readDate: both })).toBe(
      'the date "03/04/2026" can be read in more than one way → say under parse how dates are written: ' +
        'dates: { format: dd/MM/yyyy } or dates: { format: MM/dd/yyyy }',
    );
    const odd = record({ d: v('03/04/2026') });
    const experiment = { date: '{{ meta.d | date: "%Y-%m-%d" }}' };
    expect(refusal({ record: odd, experiment, readDate: both })).toContain(
      'can be read in more than one way',
    );
  });

  test('whose format holds quotes is offered as YAML takes it', () => {
    const readDate = () => ({ ambiguous: ["dd/MM/yyyy'T'HH:mm"] });
    expect(refusal({ record: dated('x'), readDate })).toContain(`dates: { format: "dd/MM/yyyy'T'HH:mm" }`);
  });

  test('that cannot be read quarantines the run', () => {
    expect(refusal({ record: dated('last week') })).toContain('"last week" cannot be read as a date');
    expect(refusal({ record: dated('20260304', 20260304) })).toContain('"20260304" cannot be read as a date');
    expect(refusal({ record: dated('x'), readDate: () => ({ iso: '23:10:00' }) })).toContain(
      'no day of the calendar',
    );
  });

  test.each(['2026-02-30', '2026-13-01', '2026-00-10', '0000-01-01', '0099-01-01'])('%s is no day', (day) => {
    expect(refusal({ record: dated(day) })).toContain(`the date "${day}" is no day of the calendar`);
  });

  test('that came out empty is not replaced by another unless the template says so', () => {
    const blank = record({ Date: v(null, '') });
    expect(refusal({ record: blank, experiment: { date: '{{ meta.Date }}' } })).toContain(
      'the date is empty',
    );
    expect(dateOf({ record: blank, experiment: { date: '{{ meta.Date | default: file.modified }}' } })).toBe(
      '2026-03-04 template',
    );
  });

  test('may lie a day after the modification, since clocks and zones differ, but not more', () => {
    expect(dateOf({ record: dated('2026-03-05') })).toBe('2026-03-05 fact');
    const message = refusal({ record: dated('2026-03-06') });
    expect(message).toContain(
      'the date 2026-03-06 lies more than a day after the file was last modified, on 2026-03-04',
    );
  });

  test('is always a real day or a refusal', () => {
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

  test('is the same in all time zones where the file gives it', () => {
    const zone = process.env['TZ'];
    try {
      for (const TZ of ['Pacific/Honolulu', 'UTC', 'Pacific/Kiritimati']) {
        process.env['TZ'] = TZ;
        const file = { modifiedMs: Date.UTC(2026, 2, 4, 12) };
        expect(dateOf({ record: dated('2026-03-04'), file })).toBe('2026-03-04 fact');
        const experiment = { date: '{{ meta.date | date: "%Y-%m-%d" }}' };
        expect(dateOf({ record: dated('2026-03-04'), file, experiment })).toBe('2026-03-04 template');
        expect(dateOf({ record: dated('x', '2026-03-04T23:59:00Z'), file, experiment })).toBe(
          '2026-03-04 template',
        );
      }
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });
});
