import { expect, test } from 'vitest';
import { htmlToText } from '../../src/commands/html-text.js';
import { describeImages } from '../../src/text.js';

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
