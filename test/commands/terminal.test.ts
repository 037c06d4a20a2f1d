import { expect, test } from 'vitest';
import { type Column, formatTable, htmlToText, terminalWidth } from '../../src/commands/terminal.js';
import { describeImages } from '../../src/text.js';

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

test('a body is shown as paragraphs and aligned tables', () => {
  const body = `<table>
<tr><th>Operator</th><td>A &amp; B</td></tr>
<tr><th>Temperature</th><td>37.0 °C</td></tr>
</table>
<h3>readings</h3>
<table><tr><th>well</th><th>1</th><th>2</th></tr><tr><th>A</th><td></td><td>0.12</td></tr></table>
<p>one<br>two</p><ul><li>three</li></ul>
<p>labfeed <b>plate</b> a.csv</p>`;
  expect(htmlToText(body)).toBe(`Operator     A & B
Temperature  37.0 °C
readings
well  1  2
A        0.12
one
two
- three
labfeed plate a.csv`);
});

test('text that only looks like markup stays, and so does text in unfinished markup', () => {
  expect(htmlToText('<p>5 &lt; 6 and 7 &gt; 2, a < b</p>')).toBe('5 < 6 and 7 > 2, a < b');
  expect(htmlToText('<table><tr><td>a<td>b<tr><td>c')).toBe('abc');
  expect(htmlToText('<table><tr><td>a<td>b<tr><td>c</table>d')).toBe('a  b\nc\nd');
  expect(htmlToText('<img alt="x > y"><!-- no --><p title=">">z')).toBe('[x > y]\nz');
  expect(htmlToText('')).toBe('');
});

test('one long cell does not widen the rows of a table', () => {
  expect(htmlToText(`<table><tr><td>${'x'.repeat(90)}</td><td>1</td></tr><tr><td>y</td><td>2</td></tr></table>`)).toBe(
    `${'x'.repeat(90)}  1\ny${' '.repeat(39)}  2`,
  );
});

test('a picture, which only the notebook has, is described', () => {
  const image = '<p><img src="app/download.php?f=a/b.png" alt="line plot of &quot;A&quot; &lt;b&gt;" width="800"></p>';
  expect(htmlToText(`<p>x</p>${image}<img src="y">`)).toBe('x\n[line plot of "A" <b>]\n[image]');
  expect(describeImages('<img alt="<script>x</script>">')).toBe('[&lt;script&gt;x&lt;/script&gt;]');
});
