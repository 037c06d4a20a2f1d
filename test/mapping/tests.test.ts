import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { expectSchema } from '../../src/config/expectations.js';
import { type Instrument, loadConfig } from '../../src/config/load.js';
import { compare, type Outcome, runGoldenTests, type TestDeps } from '../../src/mapping/tests.js';
import { nanodrop, record, table, v } from '../support/map-samples.js';
import { tempFolder } from '../support/temp-folder.js';

const plate = table('plate', ['Well'], [[v('H12')]]);
const OUTCOME: Outcome = {
  record: { ...nanodrop, tables: [...nanodrop.tables, plate] },
  draft: {
    title: 'Plasmid <A> on nanodrop',
    date: '2026-03-04',
    body: '<p>Measured by R. Müller</p>\n<table><tr><td>1.50</td></tr></table>',
    tags: ['dna', 'R. Müller'],
    comments: ['Well A260\nA1 1.50', 'the rest'],
  },
  dateFrom: 'fact',
  omits: [],
  warnings: [],
  plotAt: 0,
};

const differences = (expected: Record<string, unknown>, outcome: Outcome = OUTCOME): Record<string, string> =>
  Object.fromEntries(
    compare(expectSchema.parse(expected), outcome).map(({ key, message, hint }) => [
      key,
      hint === undefined ? message : `${message}\n→ ${hint}`,
    ]),
  );

test('an outcome that matches the test has no failures', () => {
  expect(
    differences({
      title: 'Plasmid <A> on nanodrop',
      date: '2026-03-04',
      body: '<p>Measured by R. Müller</p>',
      tags: ['R. Müller', 'dna'],
      comments: ['A1 1.50', '/^the r.st$/'],
      readings: 3,
      'readings[0].A260': 1.5,
      'readings[0].Well': 'A1',
      'readings[-1].A260': '10.0',
      'readings[1].A260': null,
      'meta.Sample ID': '007',
      'meta.Volume': 2.1,
      'meta.Volume.unit': 'µL',
      'meta.Operator': '/^R\\./',
      'meta.Valid': false,
      columns: ['Well', 'A260', 'Remark'],
      'columns.A260.unit': 'AU',
      'columns.Well.unit': null,
      'tables.plate': 1,
      'tables.plate[0].Well': 'H12',
      'tables.plate.columns': ['Well'],
    }),
  ).toEqual({});
});

test('a value that differs is shown with the expected one and as written in the file', () => {
  expect(
    differences({
      'readings[0].A260': 1.23,
      'readings[1].A260': 0.1,
      'meta.Sample ID': 7,
      'meta.Dilution': '5.0',
      'meta.Operator': 'R. Mueller',
      'meta.Volume.unit': 'mL',
      'columns.Well.unit': 'mm',
    }),
  ).toEqual({
    'readings[0].A260': 'differs\n    expected  1.23\n    actual    1.5, written "1.50"',
    'readings[1].A260': 'differs\n    expected  0.1\n    actual    no value, written "< 0.10"',
    'meta.Sample ID': 'differs\n    expected  7\n    actual    "007"',
    'meta.Dilution': 'differs\n    expected  "5.0"\n    actual    4, written "4.0"',
    'meta.Operator': 'differs\n    expected  "R. Mueller"\n    actual    "R. Müller"',
    'meta.Volume.unit': 'differs\n    expected  "mL"\n    actual    "µL"',
    'columns.Well.unit': 'differs\n    expected  "mm"\n    actual    no unit',
  });
});

test('a number that is text in the file has a hint', () => {
  const made = { ...OUTCOME, record: record({ 'Sample ID': v('42') }) };
  expect(differences({ 'meta.Sample ID': 42 }, made)['meta.Sample ID']).toContain('write "42" with quotes');
});

test('a missing name has a hint with the nearest name or all names', () => {
  expect(
    differences({
      'readings[0].A26O': 1,
      'meta.Oprator': 'x',
      'meta.Zeit': 'x',
      'tables.plates': 1,
      'columns.Wel.unit': 'x',
    }),
  ).toEqual({
    'readings[0].A26O': 'the file has no column "A26O"\n→ did you mean "A260"?',
    'meta.Oprator': 'the file has no fact "Oprator"\n→ did you mean "Operator"?',
    'meta.Zeit': expect.stringMatching(/^the file has no fact "Zeit"\n→ it has "Sample", "Sample ID", /),
    'tables.plates': 'the file has no table "plates"\n→ did you mean "plate"?',
    'columns.Wel.unit': 'the file has no column "Wel"\n→ did you mean "Well"?',
  });
});

test('a row that does not exist or was not kept is a failure', () => {
  const long = { ...table('readings', ['Well'], [[v('A1')], [v('A2')]]), count: 5000 };
  const made = { ...OUTCOME, record: record({}, long) };
  expect(differences({ 'readings[3].Well': 'A' })).toEqual({
    'readings[3].Well': 'no such row: the table has 3 rows\n→ rows are [0] to [2]; [-1] is the last',
  });
  expect(differences({ readings: 5000, 'readings[1].Well': 'A2', 'readings[-1].Well': 'Z' }, made)).toEqual({
    'readings[-1].Well': 'only the first 2 of 5,000 rows are kept',
  });
});

test('a file without a table has 0 readings', () => {
  const made = { ...OUTCOME, record: record({ a: v(1) }) };
  expect(differences({ readings: 0 }, made)).toEqual({});
  expect(differences({ readings: 2, 'readings[0].A': 1 }, made)).toEqual({
    readings: 'differs\n    expected  2 rows\n    actual    0 rows',
    'readings[0].A': 'the file has no table',
  });
});

test('lists show what is missing and what is extra', () => {
  expect(differences({ tags: ['dna', 'Ada'], columns: ['Well', 'A280', 'Remark'] })).toEqual({
    tags: 'differs\n    expected  "dna", "Ada"\n    actual    "dna", "R. Müller"\n    missing   "Ada"\n    extra     "R. Müller"',
    columns:
      'differs\n    expected  "Well", "A280", "Remark"\n    actual    "Well", "A260", "Remark"\n    missing   "A280"\n    extra     "A260"',
  });
  expect(differences({ columns: ['A260', 'Well', 'Remark'] })['columns']).toContain('their order or number differs');
});

test('comments are compared by number or by content', () => {
  expect(differences({ comments: 3 })['comments']).toMatch(/expected {2}3 comments\n {4}actual {4}2 comments/);
  expect(differences({ comments: ['A1 1.50'] })['comments']).toContain('expected  1 comment');
  expect(differences({ comments: ['A1 1.50', 'the best'] })['comments']).toBe(
    'comment 2 differs\n    expected  "the best"\n    actual    "the rest"',
  );
});

test('a long body is shown from shortly before the difference', () => {
  const body = `<p>${'x'.repeat(500)}</p><p>Measured by Ada at noon</p>${'y'.repeat(500)}`;
  const made = { ...OUTCOME, draft: { ...OUTCOME.draft, body } };
  const { body: shown = '' } = differences({ body: 'Measured by Ada at midnight' }, made);
  expect(shown).toMatch(/actual {4}"….*Measured by Ada at noon<\/p>y+…"$/);
  expect(shown.length).toBeLessThan(250);
});

test('a date from the modification time has a hint', () => {
  const made: Outcome = { ...OUTCOME, dateFrom: 'modified' };
  expect(differences({ date: '2026-01-01' }, made)['date']).toContain('this is the day the sample was modified');
});

test('a file that should be quarantined but was read is a failure', () => {
  expect(differences({ quarantined: true })).toEqual({
    quarantined: 'expected to be quarantined, but was read with the title "Plasmid <A> on nanodrop"',
  });
});

function instruments(text: string): readonly Instrument[] {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed.yaml'), `instruments:\n${text}`);
  writeFileSync(join(folder, 'a.csv'), 'Sample,Weight (mg)\nA,1.5\nB,2.5\n');
  writeFileSync(join(folder, 'ambiguous.csv'), 'Sample;Weight (mg)\nA;1,234\nB;5,678\n');
  return loadConfig(join(folder, 'labfeed.yaml')).instruments;
}

async function failures(text: string, deps: TestDeps = { clock: systemClock }): Promise<string[]> {
  const results = await runGoldenTests(instruments(text), deps);
  return results.flatMap(({ problems }) => problems.map(({ message }) => message));
}

test('an instrument without parse can have tests', async () => {
  const test = (rows: number) =>
    `  a: { watch: ., tests: [{ file: a.csv, expect: { readings: ${rows}, columns.Weight.unit: mg } }] }\n`;
  expect(await failures(test(2))).toEqual([]);
  expect(await failures(test(3))).toEqual([expect.stringContaining('actual    2 rows')]);
});

test('a test can expect that a file is quarantined, and why', async () => {
  const test = (wanted: string) =>
    `  a: { watch: ., tests: [{ file: ambiguous.csv, expect: { quarantined: ${wanted} } }] }\n`;
  expect(await failures(test('true'))).toEqual([]);
  expect(await failures(test('/ambiguous\\.csv:2:\\d+/'))).toEqual([]);
  expect(await failures(test('no table'))).toEqual([
    expect.stringMatching(/quarantined for another reason\n {4}expected {2}"no table"\n {4}actual {4}".*1,234/),
  ]);
});

test('a problem names the instrument it stops', async () => {
  const results = await runGoldenTests(
    instruments(
      '  a: { watch: ., tests: [{ file: a.csv, expect: {} }] }\n  b: { watch: ., tests: [{ file: gone.csv, expect: {} }] }\n  c: { watch: . }\n',
    ),
    { clock: systemClock },
  );
  expect(results).toMatchObject([
    { instrument: 'a', problems: [] },
    { instrument: 'b', problems: [{ stops: { instrument: 'b' } }] },
  ]);
});

test('a sample that cannot be read in time is a failure', async () => {
  const text = '  a: { watch: ., tests: [{ file: a.csv, expect: {} }] }\n';
  const clock = { ...systemClock, sleep: async () => undefined };
  expect(await failures(text, { clock })).toEqual(['a.csv: could not be read within 30 seconds']);
  expect(await failures(text, { clock: systemClock, signal: AbortSignal.abort() })).toHaveLength(1);
});
