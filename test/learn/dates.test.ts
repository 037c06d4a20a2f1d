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

  test.each([
    ['years of two digits', run('3/04/2026', 'Firmware: 08/20/04 10:00:00\n')],
    ['other padding', run('3/04/2026', 'Firmware: 08/20/2004\n')],
  ])('no date of another program, with %s', async (_, text) => {
    expect([await formatsOf(text)].flat()).not.toContain('M/d/yyyy');
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

test('two orders that this file proves are not written, because the next file may not', async () => {
  const text = 'Date,n,Sample Time\n6-24-2022 14:34:52,1,24-6-2022 14:34:52\n6-25-2022 14:34:52,2,25-6-2022 14:34:52\n';
  expect(await formatsOf(text)).toBeUndefined();
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

  test('is not that of a calibration in a table of its own', async () => {
    const text =
      'Cal Date,Lot,Volts,Amps\n11/28/2025,C05,3374.5,3371.2\n\nTime,Temp,Flow\n0.1,20.1,3.1\n0.2,20.2,3.2\n';
    expect(meta(await read(text))).not.toHaveProperty('date');
    expect(meta(await read(text.replace('Cal ', 'Run ')))).toHaveProperty('date');
  });

  test('is not that of a cell below the name of another date', async () => {
    const above = 'Lot,Expires,B1,B2,B3,Volts,,\nC05,2025-11-28,B1,12.1,12.2,3374.5,,\nOperator,Ada,,,,,,\n';
    const row = (n: number) => `0.${n},20.${n},3.${n},5.${n},0.1${n},0.5,1,2\n`;
    const text = `${above}Time,Temp,Flow,Volts,Amps,Power,A,B\n${[1, 2, 3, 4].map(row).join('')}`;
    expect(meta(await read(text))).not.toHaveProperty('date');
    expect(meta(await read(text.replace('Expires', 'Started')))['date']).toBe('2025-11-28');
  });

  test('is that of the first reading rather than that of the export', async () => {
    const text = `Date: 2026-03-01\nLogger: 7\n\ntime,T,n\n2026-01-05 10:00,21.5,1\n2026-01-05 10:10,21.6,2\n`;
    expect(meta(await read(text))['date']).toBe('2026-01-05T10:00:00');
    expect(meta(await read(text.replace('Date', 'Started')))['date']).toBe('2026-03-01');
  });
});

describe('the date of the first of several rows', () => {
  const assumed = async (...lines: readonly string[]) => (await read(`${lines.join('\n')}\n`)).assumed ?? [];

  test.each([
    [
      'with labels',
      ['Sample,Date,Result', 'S1,2024-03-05,1.2', 'S2,2024-03-06,1.3', 'S3,2024-03-09,1.4'],
      '2024-03-05',
    ],
    ['in no order', ['Date,Result,n', '13.03.2024,1.2,1', '15.03.2024,1.3,1', '06.02.2024,1.4,2'], '13.03.2024'],
    [
      'newest first',
      ['Time,T,n', '2024-03-07 10:00,1.2,1', '2024-03-06 10:00,1.3,1', '2024-03-05 10:00,1,1'],
      '2024-03-07',
    ],
    [
      'in joined columns',
      ['Date,Time,Id,pH', '2024-03-05,10:11:12,S1,7', '2024-03-06,10:12:12,S2,8', '2024-03-07,10:13:12,S3,9'],
      '2024-03-05',
    ],
  ])('has a doubt if they are of several days: %s', async (_, lines, first) => {
    const text = new RegExp(`^the rows are of several days, and ${first.replaceAll('.', '\\.')}`);
    expect(await assumed(...lines)).toEqual([expect.stringMatching(text)]);
    expect((await measured(`${lines.join('\n')}\n`)).doubts).toEqual([expect.stringMatching(text)]);
  });

  test.each([
    [
      'a record over time',
      ['Time,T,n', '2024-03-05 23:00,20.1,1', '2024-03-06 00:00,20.2,1', '2024-03-06 01:00,20.3,1'],
    ],
    ['one a day, in order', ['Date,T,n', '28.02.2024,20.1,1', '29.02.2024,20.2,1', '01.03.2024,20.3,1']],
    ['a single day', ['Sample,Date,Result', 'S1,2024-03-05,1.2', 'S2,2024-03-05,1.3', 'S3,2024-03-05,1.4']],
    [
      'a date above',
      ['Started: 2024-03-01', '', 'Sample,Date,Result', 'S1,2024-03-05,1', 'S2,2024-03-06,1', 'S3,2024-03-07,2'],
    ],
  ])('has none: %s', async (_, lines) => {
    expect(await assumed(...lines)).toEqual([]);
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

const firstDate = async (text: string) => {
  const { mapping, firstRow, doubts } = await measured(text);
  const [name = ''] = [firstRow?.joined ?? firstRow?.column].flat();
  return { name, date: meta(await read(text))['date'], format: mapping.dates?.format, doubts };
};

describe('the date of rows without names', () => {
  const numbered = (write: (n: number) => string) => `${[0, 1, 2, 3].map(write).join('\n')}\n`;
  test.each([
    ['a day and a time', numbered((n) => `2021-05-18,10:22:3${n},1.${n}`), 'date and time', '2021-05-18T10:22:30'],
    ['a time and a day', numbered((n) => `09:0${n} 07-15-19 flags 31.${n}`), 'date and time', '2019-07-15T09:00:00'],
    [
      'a moment after a number',
      numbered((n) => `${n},2021-05-18 10:22:3${n},1.${n}`),
      'column 2',
      '2021-05-18T10:22:30',
    ],
    ['seconds since 1970', numbered((n) => `${1733947525 + 4 * n} -1 0.02${n}`), 'column 1', '1733947525'],
  ])('%s', async (_, text, name, date) => {
    expect(await firstDate(text)).toMatchObject({ name, date: expect.anything() });
    expect(String((await firstDate(text)).date)).toBe(date);
  });

  test('fourteen digits are a moment, also beside words and if two rows have the same', async () => {
    const stamps = ['20240315142233,TEMP,23.4', '20240315142233,HUM,45.2', '20240315142303,TEMP,23.5'].join('\n');
    expect(await firstDate(`${stamps}\n`)).toMatchObject({ name: 'column 1', format: 'yyyyMMddHHmmss' });
    expect((await measured(`${stamps.replace('20240315142303', '20240315142703')}\n`)).firstRow).toBeDefined();
    expect((await measured(`${stamps.replace('20240315142303', '20240315147303')}\n`)).firstRow).toBeUndefined();
    expect(meta(await read(`Start time: 20240315142233\nSample: S1\nMode: scan\n\n${XY}`))['date']).toBe(
      '2024-03-15T14:22:33',
    );
  });

  test('a number of ten digits beside words, or one that does not grow, is no time', async () => {
    for (const text of [
      numbered((n) => `${1733947525 + 4 * n},blank,0.02${n}`),
      numbered((n) => `${1733947525 - 4 * n},7,0.02${n}`),
      'serial,a,b\n1733947525,1,2\n1733947526,3,4\n1733947527,5,6\n',
    ])
      expect((await measured(text)).firstRow).toBeUndefined();
  });

  test.each([
    ['11/28/2006, 9:16:24 PM', undefined, 'M/d/yyyy, h:mm:ss a'],
    ['by Ada on 28-Nov-2006 in Lab 2', undefined, 'Time: 1164777384.5, 2006-11-29 in UTC'],
    ['11/29/2006, 5:16:24 AM', 'epoch', ''],
    ['11/08/2006', 'epoch', ''],
  ])(
    'seconds since 1970 are not used if the file writes only the day before or after: %s',
    async (opened, format, used) => {
      const rows = numbered((n) => `${1164777384.5 + 60 * n},0.02${n},7`);
      const found = await measured(`OPENED, 1164777384.5 ${opened}\nMode: scan\n\nTime,Moment,Gain\n${rows}`);
      expect(found.firstRow?.format).toBe(format);
      expect(JSON.stringify(found)).toContain(used);
    },
  );

  test('seconds since 1970 are a date for the run and a number in the rows', async () => {
    const { format, doubts } = await firstDate(numbered((n) => `${1733947525 + 4 * n} -1 0.02${n}`));
    expect(format).toBe('epoch');
    expect(doubts.join()).toMatch('1733947525 is 2024-12-11T20:05:25.000Z');
  });
});

test.each([
  ['2021 Sep 24 - 7:21', '2021-09-24T07:21:00'],
  ['2019-12-03-09-01-24', '2019-12-03T09:01:24'],
])('%s is a date', async (text, iso) => {
  expect(meta(await read(`Started: ${text}\nSample: S1\nMode: scan\n\n${XY}`))['date']).toBe(iso);
});

test('a column may be named after the format of its dates', async () => {
  const text = 'station,yyyy-mm-ddThh:mm:ss,depth\n43,2005-11-06T12:15:00,1.5\n44,2005-11-06T12:25:00,2.5\n';
  expect(meta(await read(text))['date']).toBe('2005-11-06T12:15:00');
});

describe('a date that is not that of the run for sure is a doubt', () => {
  test.each([
    ['in a name', `Experiment: 2019-08-22_plate7\nMode: scan\nGain: 3\n\n${XY}`, 'Experiment: 2019-08-22'],
    ['of a table', 'ml,mAU,log\n0,1,Run 11/28/2017 09:14\n1,2,Wash\n2,3,End\n', '0,1,Run 11/28/2017'],
    [
      'with a year of two digits',
      `day,time,x\n${[1, 2, 3].map((n) => `'23-09-21,13:40:0${n},${n}.5`).join('\n')}\n`,
      '23-09-21',
    ],
    ['in a path', `Out: C:\\data\\20180611_1409\nMode: scan\n\n${XY}`, 'Out: C:\\data\\ 20180611'],
    ['in XML', '<a><b><c>x</c><d>28.01.2014 11:20 by Ada</d></b><b><c>y</c><d>none</d></b></a>', '28.01.2014'],
  ])('%s', async (_, text, shown) => {
    const { undated } = await measured(text);
    expect(undated?.text.replace(/\s+/g, ' ')).toContain(shown);
  });

  test('but not a version or a number', async () => {
    for (const line of ['Version: 2.1.15', 'Serial: 20180611', 'Window: 12.5-13.5-2000'])
      expect((await measured(`${line}\nMode: scan\nGain: 3\n\n${XY}`)).undated).toBeUndefined();
  });
});

describe('the date in the name of a file', () => {
  const rows = 'No,Timestamp,Kind,Level\n1,,Alert,70\n2,2024-03-02T00:03,Reading,118\n3,2024-03-05T00:08,Reading,121\n';
  const measureNamed = (name: string, text: string) =>
    measureFile(openFile({ path: `runs/${name}`, name, content: Buffer.from(text) }, withDefaults({})));
  const finders = async (name: string) => (await measureNamed(name, rows)).mapping.meta;

  test.each(['Export_2024-03-16.csv', 'Export_20240301.csv', '3_6_2024_9_15_00_AM.csv'])(
    'is not that of the run if no row is of that time: %s',
    async (name) => {
      expect(await finders(name)).toBeUndefined();
    },
  );

  test.each(['Export_2024-03-02.csv', 'Export_20240305_101500.csv', '3_4_2024_9_15_00_AM.csv'])(
    'is that of the run if it is among the days of the rows: %s',
    async (name) => {
      expect(await finders(name)).toMatchObject([{ in: 'name' }]);
    },
  );

  test('is not used if the rows have dates in a form that is not read, and those are named', async () => {
    const text = rows.replaceAll('T00', ' # 00');
    const { mapping, undated } = await measureNamed('Export_2024-03-02.csv', text);
    expect(mapping.meta).toBeUndefined();
    expect(undated?.text).toBe('Timestamp: 2024-03-02 # 00:03');
  });
});

test('a day can end with a dot, also before the time', async () => {
  const text = `Output: 12.12.2023.\nAcquired: 21.2.2012. 13:16:57\nSample: S1\n\n${XY}`;
  expect(await formatsOf(text)).toEqual(['d.M.yyyy.', 'd.M.yyyy. H:mm:ss']);
  expect(meta(await read(text))['Acquired']).toBe('2012-02-21T13:16:57');
});

test('the date of the end and the time of the start are not one moment', async () => {
  const lines = ['A,2019-03-04,10:15:00,1.5', 'B,2019-03-04,11:20:00,1.7', 'C,2019-03-05,12:20:00,1.8'];
  const { mapping } = await measured(`Sample,End date,Start time,Value\n${lines.join('\n')}\n`);
  expect(mapping.table).toEqual({});
  const facts = await read(`End date: 2019-03-05\nStart time: 10:15:00\n\n${XY}`);
  expect(meta(facts)['date']).not.toBe('2019-03-05T10:15:00');
});
