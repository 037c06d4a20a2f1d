import { expect, test } from 'vitest';
import { asTable, type Column, outputWidth } from '../../src/commands/terminal.js';

interface Row {
  readonly id: string;
  readonly name: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'id', align: 'right', text: ({ id }) => id },
  { title: 'name', flexible: true, text: ({ name }) => name },
];
const ROWS: readonly Row[] = [
  { id: '7', name: 'short' },
  { id: '123', name: 'a name that is rather long' },
];

test('without a limit nothing is cut, and columns stand below their titles', () => {
  expect(asTable(COLUMNS, ROWS, Number.POSITIVE_INFINITY)).toBe(
    ' ID  NAME\n  7  short\n123  a name that is rather long',
  );
});

test('where the terminal is narrow the flexible column gives way, and what is cut is seen to be', () => {
  expect(asTable(COLUMNS, ROWS, 16)).toBe(' ID  NAME\n  7  short\n123  a name tha…');
});

test('no line is wider than the terminal, however narrow that is', () => {
  for (const width of [1, 5, 10, 12, 20]) {
    const lines = asTable(COLUMNS, ROWS, width).split('\n');
    expect(Math.max(...lines.map((line) => [...line].length))).toBeLessThanOrEqual(width);
  }
});

test('characters that take two cells, or none, keep the columns in line', () => {
  const rows = [
    { id: '天秤', name: 'x' },
    { id: 'e\u0301', name: 'y' },
  ];
  expect(asTable(COLUMNS, rows, 80)).toBe('  ID  NAME\n天秤  x\n   e\u0301  y');
});

test('what a name holds cannot move the cursor or break the line', () => {
  const table = asTable(COLUMNS, [{ id: '1', name: 'a\u001b[2Jb\nc\u202ed' }], 80);
  expect(table).toBe('ID  NAME\n 1  a [2Jb c d');
});

test('the width is that of COLUMNS, else of the terminal, else there is none', () => {
  expect(outputWidth({ COLUMNS: '60' }, 100)).toBe(60);
  expect(outputWidth({ COLUMNS: 'wide' }, 100)).toBe(100);
  expect(outputWidth({}, 100)).toBe(100);
  expect(outputWidth({}, undefined)).toBe(Number.POSITIVE_INFINITY);
});

test('a terminal that does not know its width cuts nothing', () => {
  expect(outputWidth({}, 0)).toBe(Number.POSITIVE_INFINITY);
});
