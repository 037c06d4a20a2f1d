import { expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { choose, measureSample } from '../../src/learn/learn.js';
import type { IdentifiedFile } from '../../src/model.js';
import { record, table, v } from '../map/samples.js';
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
  choose(files, {
    measure: measureSample,
    read: ({ content = Buffer.of() }: IdentifiedFile, mapping: ParseMapping) => read(content, mapping),
  });

const PLAIN = sample('plain.csv', 'Sample;Weight (mg)\nA;1,5\nB;2,25\n');
const DOUBTFUL = sample('doubtful.csv', 'Sample;Weight (mg)\nA;1,234\nB;5,678\n');
const OTHER = sample('other.csv', 'time\ttemperature\n10:00\t4.1\n10:01\t4.2\n10:02\t4.0\n');

test('one sample is read by the mapping that was measured for it', async () => {
  const { mapping, read: taken, unread } = await learn(PLAIN);
  expect(mapping).toMatchObject({ delimiter: ';', decimal: ',' });
  expect({ taken: taken.length, unread }).toEqual({ taken: 1, unread: [] });
});

test('what one sample leaves open, another settles', async () => {
  const alone = await learn(DOUBTFUL);
  expect(alone.doubts).toContainEqual(expect.stringContaining('1,234 reads as more than one number'));
  const { mapping, doubts, read: taken, unread } = await learn(DOUBTFUL, PLAIN);
  expect(doubts).toEqual([]);
  expect(mapping.decimal).toBe(',');
  expect(unread).toEqual([]);
  expect(taken.map(({ file }) => file)).toEqual([DOUBTFUL, PLAIN]);
  expect(taken[0]?.record.tables[0]?.rows[0]?.[1]?.value).toBe(1.234);
});

test('words for no value are gathered from all samples', async () => {
  const with_ = (name: string, word: string) =>
    sample(name, `Well,A260\nA1,1.5\nA2,2.5\nA3,3.5\nA4,${word}\nA5,4.5\n`);
  const { mapping, unread } = await learn(with_('a.csv', 'OVRFLW'), with_('b.csv', 'N/A'));
  expect(mapping.missing).toEqual(['OVRFLW', 'N/A']);
  expect(unread).toEqual([]);
});

test('where no mapping reads all, the one that reads the most is taken, and the others are named with the reason', async () => {
  const again = sample('again.csv', 'Sample;Weight (mg)\nC;3,5\nD;4,5\n');
  const { mapping, unread } = await learn(OTHER, PLAIN, again);
  expect(mapping.delimiter).toBe(';');
  expect(unread).toEqual([{ file: OTHER, reason: expect.stringMatching(/\S/) }]);
});

test.each([
  ['a column', table('readings', ['Well'], [[v('A1')], [v('A2')]]), 'read so, the column "A260" is gone'],
  ['a row', table('readings', ['Well', 'A260'], [[v('A1'), v(1)]]), /has another number of rows/],
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
    /numbers are texts/,
  ],
])('a file that another mapping reads, but for %s, counts as not read', async (_, poor, reason) => {
  const rich = table(
    'readings',
    ['Well', 'A260'],
    [
      [v('A1'), v(1)],
      [v('A2'), v(2)],
    ],
  );
  const facts = { Sample: v('x') };
  const { mapping, unread } = await choose(['a', 'b'], {
    measure: async (file) => ({ mapping: { comment: file }, doubts: [] }),
    read: async (file, { comment }) => record(facts, file === comment ? rich : poor),
  });
  expect(mapping).toEqual({ comment: 'a' });
  expect(unread).toEqual([{ file: 'b', reason: expect.stringMatching(reason) }]);
});

test('a fact that is lost under another mapping counts as well', async () => {
  const { unread } = await choose(['a', 'b'], {
    measure: async (file) => ({ mapping: { comment: file }, doubts: [] }),
    read: async (file, { comment }) =>
      record(file === comment ? { Sample: v('x'), Operator: v('y') } : { Sample: v('x') }),
  });
  expect(unread).toEqual([{ file: 'b', reason: 'read so, the fact "Operator" is lost' }]);
});

test('where nothing can be measured, every reason is told', async () => {
  const prose = sample('prose.txt', 'Dear diary\n');
  const empty = sample('empty.txt', '\n\n');
  const error = await learn(prose, empty).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(FileError);
  expect(String(error)).toMatch(/prose\.txt: .*[\s\S]*empty\.txt: the file is empty/);
});
