import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withDefaults } from '../../src/config/vocabulary.js';
import { measureFile } from '../../src/learn/formats.js';
import { openFile } from '../../src/parse/source.js';
import { dateCandidates } from '../../src/parse/values/date-candidates.js';
import { measured, meta, read } from '../support/reading.js';

const XY = 'x,y,z\n400,0.043,1\n401,0.044,2\n402,0.045,3\n';

const formatsOf = async (text: string, path = 'runs/a.csv', modifiedMs?: number) => {
  const source = {
    path,
    name: path.split('/').at(-1) ?? '',
    content: Buffer.from(text),
    ...(modifiedMs !== undefined && { modifiedMs }),
  };
  const { mapping } = await measureFile(openFile(source, withDefaults({})));
  return mapping.dates?.format;
};

const run = (date: string, more = '') => `Started: ${date}\nSample: S1\n${more}\n${XY}`;
const rowsOf = (...dates: string[]) => `time,n,m\n${dates.map((date, n) => `${date},${n},1`).join('\n')}\n`;
const local = (iso: string) => new Date(iso).getTime();

describe('the order of day and month is proven by', () => {
  test.each([
    ['a date of the file that has one order', run('03/04/2026', 'Calibrated: 25/12/2025\n'), 'dd/MM/yyyy'],
    ['the same day with a month name', run('03/04/2026', 'Logged on 3 April 2026 by ada\n'), 'dd/MM/yyyy'],
    ['the same day as an ISO date', run('03/04/2026', 'Batch: B-2026-03-04-7\n'), 'MM/dd/yyyy'],
    ['a date among words', run('3/4/2026', 'Changed on 12/25/2025 4:10:33 PM by ada\n'), 'M/d/yyyy'],
    ['the weekday', run('Fri 03/04/2026'), 'EEE dd/MM/yyyy'],
    [
      'rows that continue after midnight',
      rowsOf('03/04/2026 23:50', '03/04/2026 23:55', '04/04/2026 00:00'),
      'dd/MM/yyyy HH:mm',
    ],
    [
      'many days in order',
      rowsOf('05/01/2026', '06/01/2026', '03/02/2026', '04/02/2026', '02/03/2026', '03/03/2026'),
      'dd/MM/yyyy',
    ],
  ])('%s', async (_, text, format) => {
    expect([await formatsOf(text)].flat()).toContain(format);
  });

  test.each([
    ['runs/2026-04-03/a.csv', 'dd/MM/yyyy'],
    ['runs/20260304_a.csv', 'MM/dd/yyyy'],
    ['runs/260304_101500 a.csv', 'MM/dd/yyyy'],
    ['runs/26-04-03 a.csv', 'dd/MM/yyyy'],
    ['runs/030426.csv', undefined],
  ])('the path %s', async (path, format) => {
    expect(await formatsOf(run('03/04/2026'), path)).toBe(format);
  });

  test('other dates, unless they are written differently', async () => {
    expect([await formatsOf(`Checked: 27/06/2019\n${run('12/03/2022')}`)].flat()).toEqual(['dd/MM/yyyy']);
    expect([await formatsOf(`Checked: 27/06/2019\n${run('12/3/2022')}`)].flat()).toEqual(['dd/MM/yyyy']);
    expect((await read(`Checked: 27/06/2019\n${run('12/03/2022')}`)).meta.get('date')?.value).toBe('2022-03-12');
    expect((await read(`Checked: 27/06/2019\n${run('12/3/2022')}`)).meta.get('date')?.value).toBe('12/3/2022');
  });

  test('the time of the file: a run is not later, and a file that is written at once is not much later', async () => {
    expect(await formatsOf(run('03/04/2026'), 'a.csv', local('2026-03-10T00:00'))).toBe('MM/dd/yyyy');
    expect(await formatsOf(run('03/04/2026 10:15'), 'a.csv', local('2026-04-03T10:20'))).toBe('dd/MM/yyyy HH:mm');
    expect(await formatsOf(run('03/04/2026'), 'a.csv', local('2026-04-03T10:20'))).toBeUndefined();
    expect(await formatsOf(run('03/04/2026 10:15'), 'a.csv', local('2026-04-03T18:00'))).toBeUndefined();
    expect(await formatsOf(run('03/04/2026'), 'a.csv', 1)).toBeUndefined();
  });

  test('no evidence that fits both orders', async () => {
    expect(await formatsOf(run('03/04/2026', 'Batch: 2026-03-04\nLot: 2026-04-03\n'))).toBeUndefined();
    expect(await formatsOf(run('03/04/2026'), 'runs/2026-03-04/2026-04-03.csv')).toBeUndefined();
  });

  test('the time of the file says nothing about dates that may be later', async () => {
    expect(
      await formatsOf(`Expires: 03/04/2026\nSample: S1\n\n${XY}`, 'a.csv', local('2026-03-10T00:00')),
    ).toBeUndefined();
  });

  test('neither a 12-hour clock, nor missing zeros, nor a short sequence of days', async () => {
    for (const text of [
      run('03/04/2026 3:04:05 PM'),
      run('3/4/2026'),
      rowsOf('01/02/2026', '02/02/2026', '03/02/2026'),
      rowsOf('05/01/2026', '06/01/2026', '03/02/2026'),
    ])
      expect(await formatsOf(text)).toBeUndefined();
  });
});

test('columns with different orders do not get a format that misreads one of them', async () => {
  const text = 'made,used,n\n25/12/2025,12/31/2025,1\n03/04/2026,03/05/2026,2\n';
  const format = await formatsOf(text);
  expect(format).toBeUndefined();
  const record = await read(text);
  expect(record.tables[0]?.rows[1]?.map(({ value }) => value)).toEqual(['03/04/2026', '03/05/2026', 2]);
});

test('a day and the same day with its time are one question', async () => {
  const { doubts } = await measured(`Date: 03/04/2026\nTime: 10:15\nSample: S1\n\n${XY}`);
  expect(doubts).toEqual([
    '03/04/2026 10:15 is ambiguous, so runs with such dates are quarantined. Write one of these under parse: dates: { format: ["dd/MM/yyyy","dd/MM/yyyy HH:mm"] } or dates: { format: ["MM/dd/yyyy","MM/dd/yyyy HH:mm"] }',
  ]);
});

test('an ambiguous date that is not that of the run is no question', async () => {
  const { doubts } = await measured(`Acquired: 2026-01-05\nExported: 03/04/2026\nSample: S1\n\n${XY}`);
  expect(doubts).toEqual([]);
});

describe('the date of the run', () => {
  test.each([
    ['not the export', 'Exported: 2026-02-01\nAcquired: 2026-01-05\n', '2026-01-05'],
    ['not the creation', 'Created: 2026-02-01\nMeasurement: 2026-01-05\n', '2026-01-05'],
    ['not the last change', 'Modified: 2026-02-01\nRun date: 2026-01-05\n', '2026-01-05'],
    ['not the calibration', 'Calibration date: 2025-02-01\nDate: 2026-01-05\n', '2026-01-05'],
    ['not the expiry', 'Expiry date: 2027-02-01\nTest: 2026-01-05\n', '2026-01-05'],
    [
      'not a date that is not set',
      'Started: 1970-01-01 00:00:00\nTime stamp: 2026-01-05 10:00\n',
      '2026-01-05T10:00:00',
    ],
    ['German', 'Druckdatum: 2026-02-01\nMessdatum: 2026-01-05\n', '2026-01-05'],
    ['day and time of day', 'Datum: 05.01.2026\nUhrzeit: 10:11:12\n', '2026-01-05T10:11:12'],
    ['seconds since 1970', 'Start time: 1767608000\nSample: S1\n', '2026-01-05T10:13:20Z'],
    ['milliseconds since 1970', 'Timestamp: 1767608000500\nSample: S1\n', '2026-01-05T10:13:20.500Z'],
  ])('%s', async (_, facts, date) => {
    const record = await read(`${facts}Operator: Ada\n\n${XY}`);
    expect(meta(record)['date'] ?? meta(record)['Date']).toBe(date);
  });

  test.each([
    'Serial: 1767608000',
    'Counts: 1767608000',
    'Elapsed time: 1767608000',
    'Version: 3.12.08',
    'Phone: 03/04/2026'.replace('03/04/2026', '044 632 11'),
  ])('is not %s', async (line) => {
    expect(meta(await read(`${line}\nOperator: Ada\nSample: S1\n\n${XY}`))).not.toHaveProperty('date');
  });

  test('is that of the first reading rather than that of the export', async () => {
    const text = `Date: 2026-03-01\nLogger: 7\n\ntime,T,n\n2026-01-05 10:00,21.5,1\n2026-01-05 10:10,21.6,2\n`;
    expect(meta(await read(text))['date']).toBe('2026-01-05T10:00:00');
    expect(meta(await read(text.replace('Date', 'Started')))['date']).toBe('2026-03-01');
  });
});

test('no date of a random file is read as another day', async () => {
  const day = fc.date({ min: new Date('2001-01-01'), max: new Date('2039-12-31'), noInvalidDate: true });
  const order = fc.constantFrom('dmy', 'mdy', 'ymd');
  const sign = fc.constantFrom('/', '-', '.');
  await fc.assert(
    fc.asyncProperty(
      fc.array(day, { minLength: 1, maxLength: 4 }),
      order,
      sign,
      fc.boolean(),
      async (days, parts, joint, isShort) => {
        // No country writes the month first with dots.
        fc.pre(!(parts === 'mdy' && joint === '.'));
        const isos = days.map((each) => each.toISOString().slice(0, 10));
        const write = (iso: string) => {
          const [y = '', m = '', d = ''] = iso.split('-');
          return [...parts].map((part) => ({ y: isShort ? y.slice(2) : y, m, d })[part]).join(joint);
        };
        const record = await read(rowsOf(...isos.map(write)));
        for (const [n, row] of (record.tables[0]?.rows ?? []).entries()) {
          const { value, text } = row[0] ?? { value: null, text: '' };
          if (value !== text) expect(value).toBe(isos[n]);
        }
      },
    ),
    { numRuns: 150, seed: 11 },
  );
});

test('rows with the date of a clock that was never set do not tell when the run was', async () => {
  const rows = [0, 1, 2].map((n) => `1970-01-01 00:00:0${n},${n},1`).join('\n');
  const source = { path: 'a.csv', name: 'a.csv', content: Buffer.from(`Date: 2025-08-28\n\ntime,n,m\n${rows}\n`) };
  const { firstRow, mapping } = await measureFile(openFile(source, withDefaults({})));
  expect([firstRow, mapping.facts?.['date'] ?? 'Date']).toEqual([undefined, 'Date']);
});

test.each(['2.1.1015', '1.2.0345', '10/11/2345'])('%s is no date', (text) => {
  expect(dateCandidates(text)).toEqual([]);
});

test.each([
  ['MMM,dd.yyyy', 'Date: JUL,02.2025', '2025-07-02'],
  ['excel', 'Run date: 45250.5', '2023-11-20T12:00:00'],
])('a date is read as %s', async (_, line, iso) => {
  expect(meta(await read(`${line}\nSample: S1\nMode: scan\n\n${XY}`))).toMatchObject(
    line.startsWith('Date') ? { Date: iso } : { date: iso },
  );
});

test('a number is no date if it only looks like the days of a spreadsheet', async () => {
  expect(meta(await read(`Date of birth: 45250\nCounts: 45250\nMode: scan\n\n${XY}`))['date']).toBeUndefined();
});
