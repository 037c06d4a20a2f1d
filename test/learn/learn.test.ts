import { describe, expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import {
  chooseMapping,
  commonFolder,
  measureSample,
  suggestFiles,
  suggestName,
  suggestTags,
  suggestTitle,
} from '../../src/learn/learn.js';
import type { IdentifiedFile } from '../../src/model.js';
import { map, record, table, v } from '../support/map-samples.js';
import { read } from '../support/reading.js';
import { sha256 } from '../support/runs.js';

const sample = (name: string, content: string): IdentifiedFile => ({
  path: `/samples/${name}`,
  location: `/samples/${name}`,
  size: Buffer.byteLength(content),
  mtimeNs: 1n,
  inode: 1n,
  sha256: sha256(content),
  content: Buffer.from(content),
});

const learn = (...files: IdentifiedFile[]) =>
  chooseMapping(files, {
    measure: measureSample,
    read: ({ content = Buffer.of() }: IdentifiedFile, mapping: ParseMapping | ParseMapping[]) => read(content, mapping),
  });

const PLAIN = sample('plain.csv', 'Sample;Weight (mg)\nA;1,5\nB;2,25\n');
const AMBIGUOUS = sample('ambiguous.csv', 'Sample;Weight (mg)\nA;1,234\nB;5,678\n');
const OTHER = sample('other.csv', 'time\ttemperature\n10:00\t4.1\n10:01\t4.2\n10:02\t4.0\n');

test('a sample is read with the mapping measured from it', async () => {
  const { mapping, read: taken, unread } = await learn(PLAIN);
  expect(mapping).toMatchObject({ delimiter: ';', decimal: ',' });
  expect({ taken: taken.length, unread }).toEqual({ taken: 1, unread: [] });
});

test('another sample can settle what one leaves open', async () => {
  const alone = await learn(AMBIGUOUS);
  expect(alone.doubts).toContainEqual(
    expect.stringContaining(
      '1,234 is ambiguous. This mapping has decimal: ","; if that is wrong, write thousands: ","',
    ),
  );
  const { mapping, doubts, read: taken, unread } = await learn(AMBIGUOUS, PLAIN);
  expect(doubts).toEqual([]);
  expect(mapping).toMatchObject({ decimal: ',' });
  expect(unread).toEqual([]);
  expect(taken.map(({ file }) => file)).toEqual([AMBIGUOUS, PLAIN]);
  expect(taken[0]?.record.tables[0]?.rows[0]?.[1]?.value).toBe(1.234);
});

test('a doubt names one alternative for each other meaning, and one date for each set of formats', async () => {
  const [date, number, ...others] = (
    await learn(
      sample('a.csv', 'Start: 03/04/2026\nEnd: 04/04/2026\n\nSample;Weight (mg);n\nA;1,234;1\nB;5,678;2\nC;5,789;3\n'),
    )
  ).doubts;
  expect(date).toBe(
    '03/04/2026 is ambiguous, so runs with such dates are quarantined. Write one of these under parse: dates: { format: "dd/MM/yyyy" } or dates: { format: "MM/dd/yyyy" }',
  );
  expect(number).toBe('1,234 is ambiguous. This mapping has decimal: ","; if that is wrong, write thousands: ","');
  expect(others).toEqual([]);
});

test('a sample that only a person can interpret has a doubt with the line to write', async () => {
  const { doubts } = await learn(sample('a.csv', 'S1,0.5,1\nS2,0.6,2\nS3,0.7,3\n'));
  expect(doubts).toEqual([
    'line 1: these lines look like rows of a table without a header; if the file has no header, write `parse: { table: { header: none } }`',
  ]);
});

test('words for missing values are collected from all samples', async () => {
  const with_ = (name: string, word: string) => sample(name, `Well,A260\nA1,1.5\nA2,2.5\nA3,3.5\nA4,${word}\nA5,4.5\n`);
  const { mapping, unread } = await learn(with_('a.csv', 'OVRFLW'), with_('b.csv', 'N/A'));
  expect(mapping).toMatchObject({ missing: ['OVRFLW', 'N/A'] });
  expect(unread).toEqual([]);
});

test('if no mapping reads all samples, the one that reads most is taken, and the others are reported', async () => {
  const again = sample('again.csv', 'Sample;Weight (mg)\nC;3,5\nD;4,5\n');
  const { mapping, unread } = await learn(OTHER, PLAIN, again);
  expect(mapping).toMatchObject({ delimiter: ';' });
  expect(unread).toEqual([{ file: OTHER, reason: expect.stringMatching(/\S/) }]);
});

test.each([
  ['a column', table('readings', ['Well'], [[v('A1')], [v('A2')]]), 'the column "A260" is missing'],
  ['a row', table('readings', ['Well', 'A260'], [[v('A1'), v(1)]]), /would have a different number of rows/],
  [
    'a number',
    table(
      'readings',
      ['Well', 'A260'],
      [
        [v('A1'), v('1')],
        [v('A2'), v(2)],
      ],
    ),
    /some numbers would be read as text/,
  ],
])('a file of which a mapping loses %s counts as not read', async (_, poor, reason) => {
  const rich = table(
    'readings',
    ['Well', 'A260'],
    [
      [v('A1'), v(1)],
      [v('A2'), v(2)],
    ],
  );
  const facts = { Sample: v('x') };
  const { mapping, unread } = await chooseMapping(['a', 'b'], {
    measure: async (file) => ({ mapping: { comment: file }, doubts: [] }),
    read: async (file, mapping) => record(facts, file === [mapping].flat()[0]?.comment ? rich : poor),
  });
  expect(mapping).toEqual({ comment: 'a' });
  expect(unread).toEqual([{ file: 'b', reason: expect.stringMatching(reason) }]);
});

test('a file counts as not read if the mapping loses one of its facts', async () => {
  const { unread } = await chooseMapping(['a', 'b'], {
    measure: async (file) => ({ mapping: { comment: file }, doubts: [] }),
    read: async (file, mapping) =>
      record(file === [mapping].flat()[0]?.comment ? { Sample: v('x'), Operator: v('y') } : { Sample: v('x') }),
  });
  expect(unread).toEqual([{ file: 'b', reason: 'the fact "Operator" would be missing' }]);
});

test('if no sample can be measured, all reasons are reported', async () => {
  const binary = sample('binary.spc', '\0\x01\x02\x03\0\0');
  const empty = sample('empty.txt', '\n\n');
  const error = await learn(binary, empty).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(FileError);
  expect((error as FileError).message).toContain('`parse: { format: none }`');
  expect(String(error)).toMatch(/binary\.spc: the file is not text.*[\s\S]*empty\.txt: the file is empty/);
});

test.each([
  ['prose', 'Serial: 12\nDear diary\nit rained\nall day\n', 'no list of facts', { Serial: 12 }],
  ['a row with too many cells', 'Serial: 12\nMode: x\n\na,b,c\n1,2,3\n4,5,6\n7,8,9,9\n', 'has 4 cells', { Mode: 'x' }],
])('a text file without a readable table still yields facts: %s', async (_, text, doubt, facts) => {
  const { doubts, read: taken } = await learn(sample('a.txt', text));
  expect(doubts).toContainEqual(expect.stringContaining(doubt));
  expect(
    Object.fromEntries([...(taken[0]?.record.meta ?? [])].map(([name, { value }]) => [name, value])),
  ).toMatchObject(facts);
});

test('an instrument is named after its folder, or after the sample if the folder has a generic name', () => {
  expect(suggestName('/srv/nanodrop', ['/srv/nanodrop/run-17.tsv'])).toBe('nanodrop');
  expect(suggestName('/home/ada/samples', ['/home/ada/samples/Plate Reader 2026-04-01.txt'])).toBe('Plate Reader');
  expect(suggestName('/', ['/fridge_3.csv'])).toBe('fridge');
  expect(suggestName('/srv/Gerät (neu)/', ['/srv/x.csv'])).toBe('Gerät -neu');
  expect(suggestName('/data', ['/data/0001.csv'])).toBe('data');
  expect(suggestName('/', ['/0001.csv'])).toBe('instrument');
});

test('the folder is the one that contains all samples', () => {
  expect(commonFolder(['/srv/a/1.csv', '/srv/a/2.csv'])).toBe('/srv/a');
  expect(commonFolder(['/srv/a/1.csv', '/srv/a/b/2.csv', '/srv/ab/3.csv'])).toBe('/srv');
});

test('the globs match the extensions of the samples, in subfolders if there are any', () => {
  expect(suggestFiles('/d', ['/d/1.csv', '/d/2.csv'])).toBe('*.csv');
  expect(suggestFiles('/d', ['/d/a/1.csv', '/d/2.csv'])).toBe('**/*.csv');
  expect(suggestFiles('/d', ['/d/1.csv', '/d/2.TXT'])).toEqual(['*.TXT', '*.csv']);
  expect(suggestFiles('/d', ['/d/README'])).toBe('*');
  expect(suggestFiles('/d', ['/d/1.d(x)'])).toBe('*.d\\(x\\)');
});

const named = (facts: Record<string, string>) =>
  record(Object.fromEntries(Object.entries(facts).map(([name, text]) => [name, v(text === '' ? null : text)])));

test('the title is the fact that names the sample in all files, or else the file name', () => {
  const title = (...files: Record<string, string>[]) => suggestTitle(files.map(named));
  const byName = '{{ file.stem }} ({{ instrument }})';
  expect(title({ 'Run date': 'x', 'Sample volume': '2', 'Sample ID': 'S1', Name: 'n' })).toBe(
    '{{ meta["Sample ID"] | default: file.stem }} ({{ instrument }})',
  );
  expect(title({ Sample: 'S1', Name: 'a' }, { Sample: '', Name: 'b' })).toBe(
    '{{ meta.Name | default: file.stem }} ({{ instrument }})',
  );
  expect(title({ Sample: 'S1' }, { Name: 'b' })).toBe(byName);
  expect(title({ 'Sample "x" }}': 'S1' })).toBe(byName);
  for (const placeholder of ['N/A', '-', 'Default', '<none>', 'Sample', 'unknown', 'Not Specified'])
    expect(title({ Sample: placeholder })).toBe(byName);
});

test.each([
  ...[
    'Probe',
    'Probenname',
    'Échantillon',
    "Nom de l'échantillon",
    'Muestra',
    'Nome campione',
    '試料',
    '試料名',
    '样品名称',
  ],
  ...['sample_id', 'SampleName', 'Name of sample', 'Plate barcode', 'Test name', 'Batch No.', 'Titre'],
])('the title can be the fact %s', (name) => {
  expect(suggestTitle([named({ [name]: 'S 17' })])).toContain(name);
});

test('the title has the method, unless that is a path', () => {
  const of = (Method: string) => suggestTitle([named({ Sample: 'S1', Method })]);
  expect(of('Scan 3')).toBe(
    '{{ meta.Sample | default: file.stem }}{% if meta.Method %}, {{ meta.Method }}{% endif %} ({{ instrument }})',
  );
  expect(of('C:\\Methods\\scan.mth')).toBe('{{ meta.Sample | default: file.stem }} ({{ instrument }})');
});

test('tags are the operator, the method and the instrument', () => {
  const tags = (facts: Record<string, string>) => suggestTags([named(facts)]);
  expect(tags({ Bediener: 'Ada', Méthode: 'Scan', 'Instrument Model': 'V-730', Lamp: 'D2' })).toEqual([
    ...['{{ meta.Bediener }}', '{{ meta["Méthode"] }}', '{{ meta["Instrument Model"] }}'],
  ]);
  expect(tags({ Operator: 'admin', User: 'Ada' })).toEqual(['{{ meta.User }}']);
  expect(tags({ Operator: '-', Method: 'C:\\scan.mth', Instrument: '' })).toEqual([]);
});

test.each([
  ['has all facts', { Sample: 'S1', Method: 'Scan', Operator: 'Ada' }, 'S1, Scan (nanodrop)', ['Ada', 'Scan']],
  ['has only the sample', { Sample: 'S1' }, 'S1 (nanodrop)', []],
  ['has names without values', { Sample: 'S1', Method: '', Operator: '' }, 'S1 (nanodrop)', []],
  ['has none of the facts', {}, 'run 7 (nanodrop)', []],
] as const)('suggested templates fit a file that %s', (_, facts, title, tags) => {
  const samples = [named({ Sample: 'S0', Method: 'Scan', Operator: 'Ada' })];
  const experiment = { title: suggestTitle(samples), tags: suggestTags(samples) };
  expect(map({ experiment, record: named(facts) }).draft).toMatchObject({ title, tags });
});

describe('samples with different layouts', () => {
  const lines = async ({ content = Buffer.of() }: IdentifiedFile) => content.toString().split('\n');
  const choose = (...files: IdentifiedFile[]) =>
    chooseMapping(files, {
      measure: measureSample,
      lines,
      read: ({ content = Buffer.of() }, mapping) => read(content, mapping),
    });

  test('have one mapping with alternatives, each chosen by a line that only its samples have', async () => {
    const again = sample('again.csv', 'Sample;Weight (mg)\nC;3,5\nD;4,5\n');
    const { mapping, unread, read: taken } = await choose(OTHER, PLAIN, again);
    expect(unread).toEqual([]);
    expect(taken).toHaveLength(3);
    expect(mapping).toMatchObject([
      { when: 'Sample', delimiter: ';' },
      { when: 'time', delimiter: 'tab' },
    ]);
  });

  test('are not distinguished by a line that all of them have', async () => {
    const table = sample('table.csv', 'Report\nSample;Weight (mg);n\nC;3,5;1\nD;4,5;2\nE;4,6;3\n');
    const course = sample('course.csv', 'Report\ntime\ttemperature\tn\n10:00\t4.1\t1\n10:01\t4.2\t2\n10:02\t4.0\t3\n');
    const { mapping } = await choose(table, course);
    expect([mapping].flat().map(({ when }) => when)).toEqual(['Sample', 'time']);
  });

  test('are reported if no line distinguishes them', async () => {
    const one = sample('one.csv', 'a,b,c\n1,2,3\n4,5,6\n');
    const two = sample('two.csv', 'a;b;c;d\n1,5;2;3;4\n4,5;5;6;7\n');
    const { mapping, unread } = await choose(one, two);
    expect(mapping).not.toBeInstanceOf(Array);
    expect(unread).toHaveLength(1);
  });
});
