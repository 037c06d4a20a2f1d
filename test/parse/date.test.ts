import fc from 'fast-check';
import { DateTime } from 'luxon';
import { describe, expect, test } from 'vitest';
import { compileDigitPattern, createDateReader, type DateOptions, readDate } from '../../src/parse/values/date.js';
import { dateCandidates } from '../../src/parse/values/date-candidates.js';

const asDate = (text: string, options: DateOptions) => createDateReader(options).readAsDate(text);

describe('a date with a given format', () => {
  test.each([
    ['dd/MM/yyyy HH:mm:ss', '24/01/2020 13:37:22', '2020-01-24T13:37:22'],
    ['M/d/yyyy h:mm:ss a', '7/19/2023 12:27:29 AM', '2023-07-19T00:27:29'],
    ['yy/MM/dd', '18/02/06', '2018-02-06'],
    ['yyyy-M-d', '2022- 3-30', '2022-03-30'],
    ['M/d/yyyy H:mm', '3/ 7/2022  9:05', '2022-03-07T09:05:00'],
    ['HH:mm:ss dd/MMM/yyyy', '00:30:00 21/Nov/2025', '2025-11-21T00:30:00'],
    ['MMMM dd, yyyy HH:mm:ss', 'June 12, 2024   20:32:12', '2024-06-12T20:32:12'],
    ['MM/dd/yyyy HH:mm:ss.SSS', '09/20/2024 08:32:34.558', '2024-09-20T08:32:34.558'],
    ['yyyy/MM/dd HH:mm:ss.u', '2024/09/20 08:32:34.1010842323303222656', '2024-09-20T08:32:34.101'],
    ['yyyyMMdd HHmmss', '20231120 163016', '2023-11-20T16:30:16'],
    ['M_d_yyyy_h_mm_ss_a', '10_2_2024_1_57_42_PM', '2024-10-02T13:57:42'],
    ['yyyy-MM-ddTHH:mm:ss', '1992-09-15T01:52:53', '1992-09-15T01:52:53'],
    ['HH:mm:ss', '23:05:00', '23:05:00'],
    ['yyyy-MM-dd HH:mm:ss ZZ', '2020-08-03 16:22:36 +01:00', '2020-08-03T16:22:36+01:00'],
    ['iso', '2022-03-29T10:05:44.5Z', '2022-03-29T10:05:44.5Z'],
    ['iso', '2022-03-29', '2022-03-29'],
    ['epoch', '1741720420', '2025-03-11T19:13:40Z'],
    ['epochMs', '1741720420500', '2025-03-11T19:13:40.500Z'],
    ['excel', '44429.3375', '2021-08-21T08:06:00'],
    ['excel', '44429', '2021-08-21'],
  ])('%s reads %s', (format, text, iso) => {
    expect(asDate(text, { format: [format] })).toBe(iso);
  });

  test.each([
    ['HH:mm:ss on dd MMMM yyyy', '10:15:00 on 03 April 2026', '2026-04-03T10:15:00'],
    ['dd.MM.yyyy HH:mm Uhr', '03.04.2026 10:15 Uhr', '2026-04-03T10:15:00'],
    ['EEEE, d MMM yyyy at h:mm a', 'Friday, 3 APR 2026 at 1:05 pm', '2026-04-03T13:05:00'],
    ['yyyy-MM-dd HH:mm Z', '2026-04-03 10:15 +2', '2026-04-03T10:15:00+02:00'],
    ["yyyy'y'MM'm'dd'd'", '2026y04m03d', '2026-04-03'],
    ['Run of d/M/yyyy', 'Run of 3/4/2026', '2026-04-03'],
  ])('words in %s are literal text', (format, text, iso) => {
    expect(asDate(text, { format: [format] })).toBe(iso);
  });

  test('literal text must match', () => {
    expect(asDate('10:15:00 at 03 April 2026', { format: ['HH:mm:ss on dd MMMM yyyy'] })).toBeUndefined();
  });

  test.each([
    ['CET', '+01:00'],
    ['CEST', '+02:00'],
    ['MESZ', '+02:00'],
    ['PDT', '-07:00'],
    ['EST', '-05:00'],
    ['UTC', 'Z'],
    ['ACST', '+09:30'],
    ['Europe/Zurich', '+02:00'],
  ])('a zone written as %s gives the offset', (zone, offset) => {
    const format = ['dd MMM yyyy HH:mm:ss z'];
    expect(asDate(`03 Apr 2026 10:15:00 ${zone}`, { format })).toBe(`2026-04-03T10:15:00${offset}`);
    expect(asDate(`03 Apr 2026 10:15:00 ${zone}`, { format, zone: 'Asia/Tokyo' })).toBe(`2026-04-03T10:15:00${offset}`);
  });

  test.each(['IST', 'XYZ', 'Mars/Olympus', ''])('the zone %j is not guessed', (zone) => {
    const format = ['dd MMM yyyy HH:mm:ss z'];
    expect(asDate(`03 Apr 2026 10:15:00 ${zone}`, { format })).toBeUndefined();
  });

  test.each([
    ['dd/MM/yyyy', '31/04/2026'],
    ['dd/MM/yyyy', '1/4/2026'],
    ['dd/MM/yyyy', '01/04/2026 and more'],
    ['d/M/yyyy H:mm', '1/4/2026 24:00'],
    ['h:mm a d/M/yyyy', '13:00 PM 1/4/2026'],
    ['iso', '2026-13-01'],
    ['iso', '2026-01-01T25:00'],
    ['excel', 'today'],
  ])('%s does not read %s', (format, text) => {
    expect(asDate(text, { format: [format] })).toBeUndefined();
  });

  test('the first format that matches is used', () => {
    const format = ['dd/MM/yyyy', 'MM/dd/yyyy'];
    expect(asDate('03/04/2026', { format })).toBe('2026-04-03');
    expect(asDate('03/14/2026', { format })).toBe('2026-03-14');
  });

  test('a zone gives the offset in summer and in winter', () => {
    const options = { format: ['dd.MM.yyyy HH:mm', 'iso'], zone: 'Europe/Zurich' };
    expect(asDate('01.07.2026 10:00', options)).toBe('2026-07-01T10:00:00+02:00');
    expect(asDate('2026-01-01 10:00', options)).toBe('2026-01-01T10:00:00+01:00');
    expect(asDate('2026-01-01', options)).toBe('2026-01-01');
  });

  test('month names can be in another language', () => {
    expect(asDate('3. März 2026', { format: ['d. MMMM yyyy'], locale: 'de' })).toBe('2026-03-03');
  });

  test('numeric dates are read as luxon reads them', () => {
    const pattern = fc.constantFrom(
      ...['M/d/yyyy h:mm:ss a', 'dd.MM.yy HH:mm', 'yyyyMMddHHmmss', "yyyy-MM-dd'T'HH:mm:ss.SSS"],
      ...['d/M/yyyy', 'H:mm:ss dd-MM-yyyy', 'hh:mm a MM/dd/yy'],
    );
    const text = (format: string) =>
      fc.oneof(
        fc
          .date({ min: new Date('1961-01-01'), max: new Date('2060-12-31'), noInvalidDate: true })
          .map((date) => DateTime.fromJSDate(date, { zone: 'utc' }).toFormat(format, { locale: 'en' })),
        fc.string({ unit: fc.constantFrom(...'0123456789/.:- TAPM'), maxLength: 24 }),
      );
    const sample = pattern.chain((format) => fc.record({ format: fc.constant(format), text: text(format) }));
    fc.assert(
      fc.property(sample, ({ format, text: written }) => {
        const date = DateTime.fromFormat(written, format, { zone: 'utc', locale: 'en' });
        const iso = /[Hh]/.test(format)
          ? date.toISO({ suppressMilliseconds: true, includeOffset: false })
          : date.toISODate();
        expect(compileDigitPattern(format)?.(written) ?? null).toBe(iso);
      }),
      { numRuns: 300 },
    );
  });
});

describe('a text that is used as a date', () => {
  test.each([
    ['2026-01-05', '2026-01-05'],
    ['25/12/2026', '2026-12-25'],
    ['12/25/2026 3:00 PM', '2026-12-25T15:00:00'],
    ['12.17.21 03:30:46 PM', '2021-12-17T15:30:46'],
    ['10/10/2026', '2026-10-10'],
    ['2026/01/05 07:57', '2026-01-05T07:57:00'],
    ['21/Nov/2025', '2025-11-21'],
    ['June 12, 2024   20:32:12', '2024-06-12T20:32:12'],
    ['00:30 21-Nov-2025', '2025-11-21T00:30:00'],
    ['Fri Mar 15 16:22:41 2019', '2019-03-15T16:22:41'],
    ['Thu Jul 23 2015 09:14:52', '2015-07-23T09:14:52'],
    ['2021-May-20 15:55', '2021-05-20T15:55:00'],
    ['5-Mar-19', '2019-03-05'],
    ['5/27/2021 10:31:12 AM CEST', '2021-05-27T10:31:12+02:00'],
    ['Mon Jun 01 07:55:00 EDT 2015', '2015-06-01T07:55:00-04:00'],
    ['14:01:09 on 20 January 2020', '2020-01-20T14:01:09'],
    ['20 January 2020 at 14:01', '2020-01-20T14:01:00'],
    ['15-Mar-19', '2019-03-15'],
    ['3.4.2026 10:00', '2026-04-03T10:00:00'],
    ['20231120 16:30:16', '2023-11-20T16:30:16'],
    ['20231120T163016', '2023-11-20T16:30:16'],
    ['20231120_163016.25', '2023-11-20T16:30:16.25'],
    ['25/12/2026 10:15:32:123', '2026-12-25T10:15:32.123'],
    ['25/12/2026 10:15:32.1234567', '2026-12-25T10:15:32.1234567'],
    ['13.10.2021 08:15:42 (UTC+2)', '2021-10-13T08:15:42+02:00'],
    ['13.10.2021 08:15:42 (UTC+02:00)', '2021-10-13T08:15:42+02:00'],
    ['20 Jan 2020 14:01:09 GMT-0330', '2020-01-20T14:01:09-03:30'],
    ['12/25/2026 3:00 p.m.', '2026-12-25T15:00:00'],
    ['12/25/2026 3:00:05PM', '2026-12-25T15:00:05'],
    ['4. März 2024 15:04', '2024-03-04T15:04:00'],
    ['04-Mrz-24', '2024-03-04'],
    ['Montag, 4. März 2024', '2024-03-04'],
    ['4 févr. 2024', '2024-02-04'],
    ['lundi 4 mars 2024 15:04:05', '2024-03-04T15:04:05'],
    ['4 de marzo de 2024', '2024-03-04'],
    ['04/ago/2024', '2024-08-04'],
    ['4 giugno 2024', '2024-06-04'],
    ['4 de março de 2024', '2024-03-04'],
    ['4 mei 2024', '2024-05-04'],
    ['4 maj 2024', '2024-05-04'],
    ['2024年3月4日 15:04:05', '2024-03-04T15:04:05'],
    ['2024年03月04日 15時04分05秒', '2024-03-04T15:04:05'],
    ['2024年3月4日 下午3:04:05', '2024-03-04T15:04:05'],
    // Only one of the two days is a Friday.
    ['Fri 04/03/2026', '2026-04-03'],
    ['Fr 03/04/2026', '2026-04-03'],
  ])('%s is unambiguous', (text, iso) => {
    expect(readDate(text, {})).toEqual({ iso });
  });

  test.each([
    ['03/04/2026', ['dd/MM/yyyy', 'MM/dd/yyyy']],
    ['3-4-2026 10:00', ['d-M-yyyy H:mm', 'M-d-yyyy H:mm']],
    ['07.08.25', ['dd.MM.yy', 'yy.MM.dd']],
    ['03.04.2021 3:30 PM', ['dd.MM.yyyy h:mm a', 'MM.dd.yyyy h:mm a']],
    ['07/08/25', ['dd/MM/yy', 'MM/dd/yy', 'yy/MM/dd']],
  ])('%s is ambiguous, and all formats that read it are listed', (text, formats) => {
    const read = readDate(text, {});
    expect(read && 'ambiguous' in read && read.ambiguous.map(({ format }) => format)).toEqual(formats);
  });

  test('each listed format reads the date as listed', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }), (first, second) => {
        const text = `${first}/${second}/2026 9:30`;
        const read = readDate(text, {});
        const forms = read && 'ambiguous' in read ? read.ambiguous : [];
        expect(forms).toHaveLength(first === second ? 0 : 2);
        for (const { format, iso } of forms) expect(readDate(text, { format: [format] })).toEqual({ iso });
      }),
    );
  });

  test('is read only by the given format or as ISO', () => {
    const dates = { format: ['dd/MM/yyyy'] };
    expect(readDate(' 03/04/2026 ', dates)).toEqual({ iso: '2026-04-03' });
    expect(readDate('2026-04-03', dates)).toEqual({ iso: '2026-04-03' });
    expect(readDate('12/25/2026', dates)).toBeUndefined();
  });

  test('in any form is read as what was written, or as ambiguous, or not at all', () => {
    const days = ['dd/MM/yyyy', 'M/d/yyyy', 'M/d/yy', 'yy/MM/dd', 'd.M.yyyy', 'dd.MM.yy', 'yyyy-MM-dd', 'd-M-yyyy'];
    const named = ['dd-MMM-yy', 'd MMMM yyyy', 'MMM d, yyyy', 'd. MMMM yyyy', 'EEEE, d MMMM yyyy', 'yyyy-MMM-dd'];
    const others = ['EEE MM/dd/yyyy', "yyyy'年'M'月'd'日'", 'yyyyMMdd'];
    const times = [
      '',
      ' HH:mm',
      ' H:mm:ss',
      ' HH:mm:ss.SSS',
      ' h:mm:ss a',
      ', HH:mm',
      ' HHmmss',
      " HH:mm:ss '(UTC'ZZ')'",
    ];
    const sample = fc.record({
      day: fc.constantFrom(...days, ...named, ...others),
      time: fc.constantFrom(...times),
      locale: fc.constantFrom('en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'sv'),
      ms: fc.integer({ min: Date.UTC(1990, 0), max: Date.UTC(2040, 0) }),
    });
    let read = 0;
    fc.assert(
      fc.property(sample, ({ day, time, locale, ms }) => {
        const truth = DateTime.fromMillis(ms, { zone: 'utc+2' });
        const text = truth.setLocale(/MMM|E/.test(day) ? locale : 'en').toFormat(day + time);
        const found = readDate(text, {});
        const meant = truth.toFormat("yyyy-MM-dd'T'HH:mm");
        if (found && 'iso' in found) {
          read++;
          expect(meant, text).toContain(found.iso.slice(0, 16));
        } else if (found) expect(found.ambiguous.map(({ iso }) => iso.slice(0, 10))).toContain(meant.slice(0, 10));
        for (const { format, iso } of found && 'ambiguous' in found ? found.ambiguous : dateCandidates(text)) {
          const again = readDate(text, { format: [format] });
          expect(again && 'iso' in again && again.iso.slice(0, 19), `${text} as ${format}`).toBe(iso.slice(0, 19));
        }
      }),
      { numRuns: 500, seed: 7 },
    );
    expect(read).toBeGreaterThan(230);
  });

  test.each([
    '',
    'soon',
    '5',
    '1.2.3',
    '12.34.5678',
    '3.12.08.1',
    '+41 44 632 11 11',
    '20231120',
    '44429.3375',
    '99/99/2026',
    '32 Foo 2026',
    '12:30',
    '25/12/2026 10:00 IST',
  ])('%j is none', (text) => {
    expect(readDate(text, {})).toBeUndefined();
  });
});
