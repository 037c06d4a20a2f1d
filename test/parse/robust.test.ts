import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { read } from '../support/reading.js';

const MAPPINGS: (ParseMapping | undefined)[] = [
  undefined,
  { table: {} },
  { delimiter: ',', meta: { separator: ':' }, table: { header: 'none' } },
  { delimiter: 'whitespace', comment: '#', table: { headerRows: 2, units: 'nextRow', until: 'eof' } },
  {
    meta: [{ separator: 'cell' }, { in: 'cells', separator: '=' }],
    table: { every: '/(?<x>a)/', units: 'slash' },
  },
  {
    meta: { separator: 'nextLine' },
    tables: { a: { rows: '/(?<n>\\d+)/' }, b: { header: 'none', columns: ['x'] } },
  },
  { encoding: 'utf-16le', decimal: ',', thousands: '.', table: { columns: { x: 1, y: [1, 2] } } },
];

const WORDS: ParseMapping[] = [
  { delimiter: ',', table: { grid: ['Ch1', 'Ch2'], until: 'eof' } },
  { delimiter: ',', table: { every: '/^Step (?<step>\\d)/', header: '/^[a-z]/', until: 'eof' } },
  {
    delimiter: ',',
    table: { every: '/^[a-z]/', unpivot: '/^(?<letter>[A-Za-z])(?<value>.*)$/', until: 'eof' },
  },
  {
    delimiter: { at: [3, 9] },
    table: { header: 'none', fill: 'column 1', until: -2, where: { 'column 2': 'any' } },
  },
  {
    delimiter: 'spaces',
    meta: { separator: 'spaces', value: 2, unit: 3 },
    table: { after: 'blank', units: { column: 'b' } },
  },
  {
    delimiter: ',',
    dates: { format: ['dd/MM/yyyy HH:mm', 'HH:mm:ss on d MMMM yyyy z'], zone: { from: 'A' } },
    meta: { separator: ',' },
    facts: { when: ['A', 'A (2)'] },
    table: { area: 'B2:F', columns: { t: { start: 0, step: 'A' } }, count: 'A' },
  },
];

/** Fails with any error that is not a refusal. */
async function outcome(content: string | Uint8Array, mapping: ParseMapping | undefined): Promise<void> {
  const record = await read(content, mapping).catch((error: unknown) => {
    if (error instanceof FileError) return undefined;
    throw error;
  });
  for (const { columns, rows } of record?.tables ?? []) {
    expect(new Set(columns.map(({ name }) => name)).size).toBe(columns.length);
    expect(rows.every((row) => row.length === columns.length)).toBe(true);
  }
}

/** CPU time, because other processes may use the machine. */
function secondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const mapping = fc.constantFrom(...MAPPINGS, ...WORDS);

describe('any file is read or refused', () => {
  test('any bytes', async () => {
    await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), mapping, outcome), { numRuns: 200 });
  });

  test('any text', async () => {
    await fc.assert(fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 300 }), mapping, outcome), {
      numRuns: 200,
    });
  });

  test('text that resembles a table', async () => {
    const cell = fc.constantFrom(
      '',
      '1',
      '2.5',
      '1,234',
      '03/04/2026',
      'a',
      'abc',
      '"',
      '"x, y"',
      'T (s)',
      '< 5',
      'NaN',
      '007',
      '#',
      ':',
      '=',
    );
    const line = fc
      .record({ cells: fc.array(cell, { maxLength: 5 }), sign: fc.constantFrom(',', ';', '\t', '  ', ': ') })
      .map(({ cells, sign }) => cells.join(sign));
    const text = fc
      .record({
        lines: fc.array(line, { maxLength: 14 }),
        end: fc.constantFrom('\n', '\r\n', '\r', '\r\r\n'),
      })
      .map(({ lines, end }) => lines.join(end));
    await fc.assert(fc.asyncProperty(text, mapping, outcome), { numRuns: 250 });
  });

  test('50 KB of anything, in less than a second of CPU time', async () => {
    const piece = fc.oneof(
      ...[
        fc.constantFrom(',', '"', '\n', ' ', ': ', '1', '1,', 'x', '\r', '(mg)', '-', 'A,1,2\n', 'Step 1\n', '1\t2\n'),
      ],
      fc.string({ unit: fc.constantFrom(...'abcA12.,;:="\n\t #/-()e'), minLength: 1, maxLength: 40 }),
      fc.uint8Array({ minLength: 1, maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    );
    const long = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => {
      const all = pieces.join('');
      return all.repeat(Math.ceil(50_000 / all.length)).slice(0, 50_000);
    });
    await fc.assert(
      fc.asyncProperty(long, fc.constantFrom(...MAPPINGS.slice(1), ...WORDS), async (text, one) => {
        const before = process.cpuUsage();
        await outcome(text, one);
        expect(secondsSince(before)).toBeLessThan(1);
      }),
      { numRuns: 60, interruptAfterTimeLimit: 2000 },
    );
  });

  test('names such as `__proto__` are ordinary names', async () => {
    const record = await read('constructor: 1\n__proto__: 2\ntoString: 3\n\n__proto__,constructor\n5,6\n', {
      delimiter: ',',
      meta: { separator: ':' },
      table: { header: '__proto__,' },
    });
    expect([...record.meta.keys()]).toEqual(['constructor', '__proto__', 'toString']);
    expect(record.tables[0]?.columns.map(({ name }) => name)).toEqual(['__proto__', 'constructor']);
  });

  test.each([
    ['a long line', 'x'.repeat(1_000_000)],
    ['a line of separators', `${'='.repeat(500_000)}x\n`],
    ['a line of blanks', `a${' '.repeat(500_000)}b\n`],
    ['carriage returns only', '\r'.repeat(75_000)],
    ['a long number', `a,b\n${'1'.repeat(500_000)},2\n`],
    ['quotes only', '"'.repeat(20_001)],
    ['a quoted cell of blanks after a digit', `a,b\n"1${' '.repeat(300_000)}\nx\ny",2\n`],
    ['a quote opened in every line', '"a,b\n'.repeat(1500)],
    ['thousands of small lists', '12\nHeight [mm]:,,14.35\nBottom [mm]:,,0\nBot'.repeat(200)],
    ['many blocks of JCAMP-DX', `##JCAMP-DX= 5\n${'##TITLE= a\n##END=\nx\n'.repeat(4000)}`],
  ])('%s takes linear time', async (_, text) => {
    const before = process.cpuUsage();
    for (const one of MAPPINGS) await outcome(text, one);
    expect(secondsSince(before)).toBeLessThan(4);
  });
});
