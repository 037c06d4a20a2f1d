import { describe, expect, test } from 'vitest';
import { meta, read, rows } from '../support/reading.js';

const TABLE = 'No,Area,Height\n1,2.5,3.5\n2,5.5,6.5\n3,8.5,9.5\n';
const FACTS = ['Operator: Ada', 'Method: A7', 'Gain: 4'];

describe('facts below a table', () => {
  test.each(['# ', '#', '; ', '// ', '% ', '* '])('behind the mark %j', async (mark) => {
    const record = await read(`${TABLE}\n${FACTS.map((fact) => mark + fact).join('\n')}\n`);
    expect(meta(record)).toEqual({ Operator: 'Ada', Method: 'A7', Gain: 4 });
    expect(record.tables[0]?.rows).toHaveLength(3);
  });

  test('that are padded to its width are no rows', async () => {
    const table = 'Sample,Area,Height\nS1,2.5,3.5\nS2,5.5,6.5\nS3,8.5,9.5\n';
    const record = await read(`${table}${FACTS.map((fact) => `${fact},,`).join('\n')}\n`);
    expect(meta(record)).toEqual({ Operator: 'Ada', Method: 'A7', Gain: 4 });
    expect(record.tables[0]?.rows).toHaveLength(3);
  });

  test('with a date and a time each are no table split at blanks', async () => {
    const facts = 'Sample: S-17 diluted\nExported: 2019-01-26 17:05:11\nEnded: 2018-11-14 17:05:11\nLot: B-12\n';
    const record = await read(`${TABLE.replaceAll(',', '\t')}\n${facts}`);
    expect(record.tables).toHaveLength(1);
    expect(meta(record)).toMatchObject({ Sample: 'S-17 diluted', Exported: '2019-01-26T17:05:11' });
  });
});

test('a flag before names of samples is no mark of comments', async () => {
  const record = await read('Sample,Area,Height\nS1,2.5,3.5\n*S2,5.5,6.5\n*S3,8.5,9.5\n*S4,8.0,9.0\nS5,8.1,9.1\n');
  expect(record.tables[0]?.rows.map(([name]) => name?.text)).toEqual(['S1', '*S2', '*S3', '*S4', 'S5']);
});

describe('a name above its value', () => {
  test.each([
    ['in any alphabet', 'Оператор:\nАда\nМетод:\nA7\nУсиление:\n4\n', { Оператор: 'Ада', Метод: 'A7', Усиление: 4 }],
    ['behind a mark of comments', '% Operator:\n% Ada\n% Method:\n% A7\n% Gain:\n% 4\n', { Operator: 'Ada', Gain: 4 }],
    ['behind &', '&OPERATOR:\nAda\n&METHOD:\nA7\n&GAIN:\n4\n', { OPERATOR: 'Ada', METHOD: 'A7', GAIN: 4 }],
    ['above a pair', 'Operator:\nAda\nMethod:\nA7\nGain:\n4\nLamp: D2\n', { Method: 'A7', Gain: 4, Lamp: 'D2' }],
  ])('%s', async (_, facts, expected) => {
    const record = await read(`${facts}${TABLE}`);
    expect(meta(record)).toMatchObject(expected);
    expect(record.tables[0]?.rows).toHaveLength(3);
  });

  test('says what a date is the date of', async () => {
    const record = await read(`Operator:\nAda\nFile created:\n2026-01-05 10:00:00\n\n${TABLE}`);
    expect(record.meta.has('date')).toBe(false);
  });
});

describe('a value before its name', () => {
  test.each([
    ['in any alphabet', 'Ада ! Оператор\n2,5 ! Расход\n4 ! Усиление\n7 ! Номер\n', { Оператор: 'Ада', Усиление: 4 }],
    [
      'with names of facts',
      'Ada ! Operator\nA7 ! Method\n2026-01-05 10:00 ! Date\n4 ! Gain\n',
      { Operator: 'Ada', Method: 'A7', Gain: 4 },
    ],
    [
      'behind a mark of comments',
      '# Ada ! Operator\n# 2026-01-05 10:00 ! Date\n# A7 ! Method\n# 4 ! Gain\n',
      { Operator: 'Ada', Method: 'A7', Gain: 4 },
    ],
    [
      'after a word, with empty cells behind it',
      'INFO,Ada,OPÉRATEUR,\nINFO,A7,MÉTHODE,\nINFO,4,GAIN,\nSite,North,,\n',
      { OPÉRATEUR: 'Ada', MÉTHODE: 'A7', GAIN: 4 },
    ],
    [
      'after a word, behind a mark of comments',
      '# INFO,Ada,OPERATOR\n# INFO,A7,METHOD\n# INFO,4,GAIN\n# Site,North\n',
      { OPERATOR: 'Ada', METHOD: 'A7', GAIN: 4 },
    ],
  ])('%s', async (_, facts, expected) => {
    expect(meta(await read(`${facts}${TABLE}`))).toMatchObject(expected);
  });
});

test('a name can end with #', async () => {
  const record = await read(`; SAMPLE# 7 a\n; MÉTHODE# A7\n; GAIN# 4\n${TABLE}`);
  expect(meta(record)).toEqual({ SAMPLE: '7 a', MÉTHODE: 'A7', GAIN: 4 });
});

test('what stands behind empty cells is no part of a value', async () => {
  const record = await read(`Operator: Ada\nApplication: X,,,,V2.3\n\n${TABLE}`);
  expect(meta(record)).toMatchObject({ Operator: 'Ada', Application: 'X' });
});

test('a comma within quotes keeps the blank behind it', async () => {
  const record = await read(`OPERATOR "Ada"\nNOTE "washed, dried"\nSTARTED "Jun 23, 2022 13:52:34"\n\n${TABLE}`);
  expect(record.meta.get('STARTED')?.text).toBe('Jun 23, 2022 13:52:34');
  expect(meta(record)).toMatchObject({ NOTE: 'washed, dried' });
});

test('names of columns directly below wider facts are names', async () => {
  const record = await read(`Version,1.2.3,,Exported,2019-11-12\n${TABLE}`);
  expect(record.tables[0]?.columns.map(({ name }) => name)).toEqual(['No', 'Area', 'Height']);
});

test.each([
  ['시료', '로트'],
  ['試料', 'ロット'],
  ['Образец', 'Партия'],
])('%s is the name of a column directly below facts', async (first, lot) => {
  const record = await read(`${lot};7A;\nX;A B;\n${first};Area;Height\nS1;2.5;3.5\nS2;5.5;6.5\nS3;8.5;9.5\n`);
  expect(record.tables[0]?.columns.map(({ name }) => name)).toEqual([first, 'Area', 'Height']);
});

describe('a line directly below rows is no title of the rows further down', () => {
  const block = (n: number) => `t,I,E\n0,1,3.${n}\n1,2,3.${n + 1}\n2,3,3.${n + 2}\n`;
  const sectionsOf = (text: string) =>
    read(text).then((record) =>
      record.tables.map(({ name }, n) => [name, rows(record, n).map(({ section }) => section)[0]]),
    );

  test.each([
    ['Cycler: B7\n\n', (n: number) => `Cycle ${n} total 1.23${n} Ah\n\n`],
    ['Report\n\n', () => 'End of block\n\n'],
    ['Report\n', (n: number) => `Mean of run 4.${n}\n`],
  ])('%j', async (head, below) => {
    const text = `${head}${[1, 2, 3].map((n) => block(n) + below(n)).join('')}`;
    expect((await sectionsOf(text)).slice(1)).toEqual([
      ['table 2', undefined],
      ['table 3', undefined],
    ]);
  });

  test.each([
    ['Sample 1\n\n', (n: number) => `Sample ${n + 1}\n\n`],
    ['Report\n\n', (n: number) => `\nSample ${n + 1}\n`],
    ['Cycle 1\n', (n: number) => `Total: 1.2${n}\nCycle ${n + 1}\n`],
  ])('other than %j', async (head, above) => {
    const [one, two, three] = [1, 2, 3].map(block);
    expect(await sectionsOf(`${head}${one}${above(1)}${two}${above(2)}${three}`)).toEqual([
      ['readings', expect.stringMatching(/1$|^Report$/)],
    ]);
  });
});
