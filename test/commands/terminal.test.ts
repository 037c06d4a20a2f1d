import { expect, test } from 'vitest';
import { type Column, formatTable, terminalWidth } from '../../src/commands/terminal.js';

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

test('without a limit nothing is cut, and cells are aligned with their titles', () => {
  expect(formatTable(COLUMNS, ROWS, Number.POSITIVE_INFINITY)).toBe(
    ' ID  NAME\n  7  short\n123  a name that is rather long',
  );
});

test('on a narrow terminal the flexible column shrinks and ends with an ellipsis', () => {
  expect(formatTable(COLUMNS, ROWS, 16)).toBe(' ID  NAME\n  7  short\n123  a name tha…');
});

test('no line is wider than the terminal', () => {
  for (const width of [1, 5, 10, 12, 20]) {
    const lines = formatTable(COLUMNS, ROWS, width).split('\n');
    expect(Math.max(...lines.map((line) => [...line].length))).toBeLessThanOrEqual(width);
  }
});

test('wide and combining characters do not misalign the columns', () => {
  const rows = [
    { id: '天秤', name: 'x' },
    { id: 'e\u0301', name: 'y' },
  ];
  expect(formatTable(COLUMNS, rows, 80)).toBe('  ID  NAME\n天秤  x\n   e\u0301  y');
});

test('a name cannot move the cursor or break the line', () => {
  const table = formatTable(COLUMNS, [{ id: '1', name: 'a\u001b[2Jb\nc\u202ed' }], 80);
  expect(table).toBe('ID  NAME\n 1  a [2Jb c d');
});

test('the width is taken from COLUMNS, else from the terminal, else it is unlimited', () => {
  expect(terminalWidth({ COLUMNS: '60' }, 100)).toBe(60);
  expect(terminalWidth({ COLUMNS: 'wide' }, 100)).toBe(100);
  expect(terminalWidth({}, 100)).toBe(100);
  expect(terminalWidth({}, undefined)).toBe(Number.POSITIVE_INFINITY);
});

test('nothing is cut on a terminal that does not report its width', () => {
  expect(terminalWidth({}, 0)).toBe(Number.POSITIVE_INFINITY);
});
