import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { originIn, withoutJournalId } from '../../src/markers.js';
import type { ColumnSummary, FileRecord, Table, Value } from '../../src/model.js';
import { type Given, map, record, renderBody, renderTitle, SHA, table, v } from '../support/map-samples.js';

const bodyOf = (given: Given = {}): string => map(given).draft.body;
/** The UTC offset of this machine on that day. */
const offset = renderTitle('{{ file.modified }}').slice(-6);
const source = `<p>Source: run 7.csv, 1,234 bytes, modified 2026-03-04 12:30:15 ${offset}</p>`;

describe('the body', () => {
  test('shows facts and readings by default', () => {
    expect(bodyOf()).toBe(
      [
        '<table>',
        '<tr><th>Sample</th><td>Plasmid &lt;A&gt;</td></tr>',
        '<tr><th>Sample ID</th><td>007</td></tr>',
        '<tr><th>Operator</th><td>R. Müller</td></tr>',
        '<tr><th>Volume</th><td>2.100 µL</td></tr>',
        '<tr><th>Dilution</th><td>4.0</td></tr>',
        '<tr><th>Blank</th><td>OVRFLW</td></tr>',
        '<tr><th>Valid</th><td>NO</td></tr>',
        '</table>',
        '<h3>readings</h3>',
        '<table>',
        '<tr><th>Well</th><th>A260 (AU)</th><th>Remark</th></tr>',
        '<tr><td>A1</td><td>1.50</td><td></td></tr>',
        '<tr><td>A2</td><td>&lt; 0.10</td><td>low</td></tr>',
        '<tr><td>A1</td><td>10.0</td><td>high</td></tr>',
        '</table>',
        source,
        `<p>labfeed nanodrop run 7.csv sha256:${SHA}</p>`,
      ].join('\n'),
    );
  });

  test('lists the first 100 files of a run with their hashes and counts the rest', () => {
    const parts = Array.from({ length: 102 }, (_, n) => ({
      ...{ name: `<${n}>.bin`, size: n, modifiedMs: Date.UTC(2026, 2, 4), sha256: `hash${n}` },
    }));
    const body = bodyOf({ file: { name: 's1.D', parts } });
    expect(body).toContain('<p>Source: s1.D, 102 files, 1,234 bytes, modified');
    expect(body.match(/<li>/g)).toHaveLength(101);
    expect(body).toMatch(/<li>&lt;7&gt;\.bin, 7 bytes, modified 2026-03-0\d [^<]+, sha256:hash7<\/li>/);
    expect(body).toContain('<li>and 2 more files</li>\n</ul>\n<p>labfeed nanodrop s1.D sha256:');
    expect(originIn(body)).toEqual({ label: 'nanodrop s1.D', sha256: SHA });
  });

  test('shows a date once, under the name that the file gives it, and no empty fact', () => {
    const facts = { Datum: v('2026-03-04', '04.03.2026'), date: v('2026-03-04', '04.03.2026'), Note: v('') };
    expect(bodyOf({ record: record(facts) })).toMatch(
      /^<table>\n<tr><th>Datum<\/th><td>04\.03\.2026<\/td><\/tr>\n<\/table>\n<p>Source/,
    );
    const other = { Export: v('2026-03-05', '05.03.2026'), date: v('2026-03-04', '04.03.2026') };
    expect(bodyOf({ record: record(other) })).toContain('<th>date</th>');
  });

  test.each([
    ['another fact contains it', { Archive: v('log_20260304.xls') }, '20260304', 's1.csv'],
    ['two facts show it', { Day: v('04.03.2026'), Time: v('10:20') }, '04.03.2026 10:20', 's1.csv'],
    ['the name of the file contains it', { Operator: v('x') }, '2026-03-04', 'run 2026-03-04.csv'],
  ])('leaves out the fact `date` if %s', (_, facts, date, name) => {
    const given = { ...facts, date: v('2026-03-04', date) };
    expect(bodyOf({ record: record(given), file: { name } })).not.toContain('<th>date</th>');
    expect(bodyOf({ record: record({ date: given.date }), file: { name: 'other.csv' } })).toContain('<th>date</th>');
  });

  test('leaves out a column that joins a day and a time of day which are shown', () => {
    const row = (day: string, time: string, both = `${day} ${time}`) => [v(day), v(time), v(1), v(both)];
    const headings = ['Date', 'Time', 'T (°C)', 'Date Time'];
    const bodyFor = (...rows: ReturnType<typeof row>[]) => bodyOf({ record: record({}, table('t', headings, rows)) });
    expect(bodyFor(row('4.3.', '10:00'), row('4.3.', '10:10'))).not.toContain('Date Time');
    expect(bodyFor(row('4.3.', '10:00'), row('4.3.', '10:10', '5.3. 10:10'))).toContain('<th>Date Time</th>');
  });

  test('leaves out columns that are empty, or repeat the texts of the column before', () => {
    const given = table('t', ['Well', 'A (AU)', 'A text', 'Note'], [[v('A1'), v(null, 'OVRFLW'), v('OVRFLW'), v('')]]);
    const { draft, omits } = map({ record: record({}, given), comments: { readings: 'none' } });
    expect(draft.body).toContain('<tr><th>Well</th><th>A (AU)</th></tr>\n<tr><td>A1</td><td>OVRFLW</td></tr>');
    expect(omits).toEqual([]);
  });

  test('shows up to 30 rows, and a summary if there are more than 10', () => {
    const bodyFor = (n: number) =>
      bodyOf({
        record: record(
          {},
          table(
            't',
            ['x (mg)'],
            Array.from({ length: n }, (_, i) => [v(i)]),
          ),
        ),
      });
    expect(bodyFor(10).match(/<tr>/g)).toHaveLength(11);
    expect(bodyFor(30)).toContain('<tr><td>x</td><td>mg</td><td>30</td><td>0</td><td>14.5</td><td>29</td></tr>');
    expect(bodyFor(30)).toContain('<tr><td>29</td></tr>');
    expect(bodyFor(31)).toMatch(/^<p>31 rows; all are in the comments\.<\/p>\n<table>/);
    expect(bodyFor(31)).not.toContain('<tr><td>30</td></tr>');
  });

  test('shows a plate as its grid', () => {
    const wells = (letters: string, columns: number) =>
      [...letters].flatMap((letter) =>
        Array.from({ length: columns }, (_, n) => [
          v(`${letter}${n + 1}`),
          v(n, n.toFixed(1)),
          v(n === 3 ? 'low' : ''),
        ]),
      );
    const of = (rows: Value[][], headings = ['Well', 'A260 (AU)', 'Remark']) =>
      map({ record: record({}, table('t', headings, rows)), comments: { readings: 'none' } });
    const { draft, omits } = of(wells('ABCDEFGH', 12));
    const numbers = (n: number) => Array.from({ length: n }, (_, i) => `<th>${i + 1}</th>`).join('');
    expect(draft.body).toContain(
      `<table>\n<tr><th>A260 (AU)</th>${numbers(12)}</tr>\n<tr><th>A</th><td>0.0</td><td>1.0</td>`,
    );
    expect(draft.body.match(/<th>[A-P]<\/th>/g)).toHaveLength(8);
    // The remarks are not in the grid.
    expect(omits).toEqual(['not filed in full: t, 96 rows']);
    const plain = of(
      wells('ABCDEFGH', 12).map((row) => row.slice(0, 2)),
      ['Well', 'A260 (AU)'],
    );
    expect(plain.omits).toEqual([]);
    const large = of(wells('IJKLMNOP', 24)).draft.body;
    expect(large).toContain(`<tr><th>A260 (AU)</th>${numbers(24)}</tr>\n<tr><th>A</th>${'<td></td>'.repeat(24)}</tr>`);
    // Not wells, or not all different.
    expect(of([...wells('A', 12), [v('Q1'), v(1), v('')]]).draft.body).not.toContain('<th>12</th>');
    expect(of([...wells('A', 12), [v('A1'), v(1), v('')]]).draft.body).not.toContain('<th>12</th>');
  });

  test('has a heading above each of several tables', () => {
    const two = record({}, table('a&b', ['x'], [[v(1)]]), table('c', ['y'], []));
    expect(bodyOf({ record: two })).toMatch(/^<h3>a&amp;b<\/h3>\n<table>.*<h3>c<\/h3>\n<table>/s);
  });

  test('has no heading above the only table of a file without facts', () => {
    expect(bodyOf({ record: record({}, table('readings', ['x'], [[v(1)]])) })).toMatch(/^<table>/);
  });

  test('ends with a visible origin line', () => {
    const origin = `<p>labfeed nanodrop run 7.csv sha256:${SHA}</p>`;
    expect(bodyOf({ experiment: { body: '<p>x</p>\n\n' } })).toBe(`<p>x</p>\n${source}\n${origin}`);
    expect(bodyOf({ experiment: { body: '{{ meta.Absent }}' } })).toBe(`${source}\n${origin}`);
    expect(bodyOf({ file: { name: '<b>\n"x".csv' } })).toMatch(
      /<p>labfeed nanodrop &lt;b&gt; &quot;x&quot;\.csv sha256:[0-9a-f]{64}<\/p>$/,
    );
  });

  test('names the journal in the origin line, which is then still recognised', () => {
    const body = bodyOf({ journal: '1a2b3c4d' });
    expect(body).toMatch(/<p>labfeed nanodrop run 7\.csv sha256:[0-9a-f]{64} journal:1a2b3c4d<\/p>$/);
    expect(originIn(body)).toEqual({ label: 'nanodrop run 7.csv', sha256: SHA, journal: '1a2b3c4d' });
    expect(withoutJournalId(body)).toBe(bodyOf());
    // A file can have any name.
    const odd = bodyOf({ file: { name: `x sha256:${SHA} journal:00000000` }, journal: '1a2b3c4d' });
    expect(originIn(odd)).toMatchObject({ label: `nanodrop x sha256:${SHA} journal:00000000`, journal: '1a2b3c4d' });
  });

  test.each([
    [0, '0 bytes'],
    [1, '1 byte'],
    [99_999, '99,999 bytes'],
    [123_456, '123.5 kB (123,456 bytes)'],
    [12_345_678, '12.3 MB (12,345,678 bytes)'],
    [2_000_000_000, '2.0 GB (2,000,000,000 bytes)'],
  ])('names the raw file with its size (%i) and modification time', (size, shown) => {
    expect(bodyOf({ file: { name: '<b>.csv', size } })).toContain(
      `\n<p>Source: &lt;b&gt;.csv, ${shown}, modified 2026-03-04 12:30:15 ${offset}</p>\n<p>labfeed`,
    );
  });

  test('escapes values but not the markup of the template', () => {
    expect(renderBody('<p title="{{ meta.Sample }}">{{ meta.Sample }}</p>')).toBe(
      '<p title="Plasmid &lt;A&gt;">Plasmid &lt;A&gt;</p>',
    );
  });

  test('escapes no value twice', () => {
    expect(renderBody('{{ meta.Sample | escape }}')).toBe('Plasmid &lt;A&gt;');
    expect(renderBody('{% capture x %}<b>{{ meta.Sample }}</b>{% endcapture %}{{ x }}')).toBe(
      '<b>Plasmid &lt;A&gt;</b>',
    );
    expect(renderBody('{{ "a &amp; b < c" | escape_once }}')).toBe('a &amp; b &lt; c');
  });

  test('does not escape markup again in echo', () => {
    expect(renderBody('{% assign t = readings | table %}{% echo t %}')).toBe(renderBody('{{ readings | table }}'));
  });

  test.each(['{{ meta.Sample | raw }}', '{{ "<p>" | append: meta.Sample | raw }}', '{% echo meta.Sample | raw %}'])(
    'refuses the filter raw, with which a file could add markup: %s',
    (template) => {
      expect(() => renderBody(template)).toThrow('the filter "raw" is not allowed in the body');
    },
  );

  test('shows line breaks with the filter newline_to_br', () => {
    const lines = record({ Note: v('a\n<b>\r\nc') });
    expect(renderBody('{{ meta.Note | newline_to_br }}', { record: lines })).toBe('a<br>&lt;b&gt;<br>c');
  });

  test.each(['{% echo meta.Sample %}', '{% cycle meta.Sample, "x" %}', '{% liquid\n echo meta.Sample\n%}'])(
    '%s escapes its value too',
    (template) => {
      expect(renderBody(template)).toBe('Plasmid &lt;A&gt;');
    },
  );

  test('that is too long for the notebook quarantines the run', () => {
    const body = `{% for i in (1..5000) %}<p>${'some text that fills the page to the brim. '.repeat(20)}</p>{% endfor %}`;
    expect(() => bodyOf({ experiment: { body } })).toThrow(FileError);
    expect(() => bodyOf({ experiment: { body } })).toThrow(
      /the body is [\d,]+ bytes long; the notebook accepts at most 4,120,000/,
    );
  });

  test('without a template is shortened until it fits', () => {
    const wide = Array.from({ length: 3000 }, (_, i) => `c${i}`);
    const big = record(
      { long: v('x'.repeat(100_000)) },
      table(
        'readings',
        wide,
        Array.from({ length: 300 }, () => wide.map(() => v('value & more'))),
      ),
    );
    const body = bodyOf({ record: big });
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(4_120_000);
    expect(body).toContain('<p>300 rows; all are in the file.</p>');
    expect(body).toContain('…</td></tr>');
    expect(body).toMatch(/sha256:[0-9a-f]{64}<\/p>$/);
  });

  test('of 40,000 facts is replaced by their number', () => {
    const facts = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`fact ${i}`, v('&'.repeat(20))]));
    expect(bodyOf({ record: record(facts) })).toContain(
      '<p>40,000 facts and 0 tables, too many for this page; all are in the file</p>',
    );
  });
});

describe('for any content of the file', () => {
  const sly = fc.constantFrom(
    '<script>',
    '</p>',
    '"',
    "'",
    '&',
    '<!--',
    '{{ instrument }}',
    '{% raw %}',
    '\n',
    '\u0000',
    '\ud800',
    '=',
  );
  const text = fc.string({
    unit: fc.oneof(sly, fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })),
    maxLength: 30,
  });
  const value: fc.Arbitrary<Value> = fc.record({
    value: fc.oneof(text, fc.double(), fc.boolean(), fc.constant(null)),
    text,
    unit: text,
  });
  const summary: fc.Arbitrary<ColumnSummary> = fc.record({
    n: fc.nat(),
    min: value,
    median: fc.double(),
    isMedianExact: fc.boolean(),
    max: value,
  });
  const columns = fc.array(fc.record({ name: text, unit: text, summary }), { minLength: 2, maxLength: 2 });
  const rows = fc.array(fc.tuple(value, value), { maxLength: 5 });
  const fileWith = (rowsNotKept: fc.Arbitrary<number>): fc.Arbitrary<FileRecord> =>
    fc.record({
      unread: fc.constant([]),
      meta: fc.array(fc.tuple(text, value)).map((pairs) => new Map(pairs)),
      tables: fc.array(
        fc
          .record({ name: text, columns, rows, left: rowsNotKept })
          .map(({ left, ...made }): Table => ({ ...made, count: made.rows.length + left })),
        { maxLength: 2 },
      ),
    });
  const whole = fileWith(fc.constant(0));
  const partial = fileWith(fc.nat(1000));

  const body = [
    '<p title="{{ file.name }}">{{ file.path }} {{ file.stem }} {{ meta }}</p>',
    '{{ readings | table }}{{ meta | table }}{{ readings }}{{ columns }}',
    '{% for f in meta %}{{ f[0] }}={{ f[1] }} {{ f[1] | upcase | escape }}{% endfor %}',
    '{% for t in tables %}{% for row in t[1] %}{% capture c %}{{ row }}{% endcapture %}{{ c }}{% endfor %}{% endfor %}',
  ].join('');

  /** The only markup that labfeed and the template above write. */
  const OURS = /<\/?(?:table|tr|th|td|p|h3)>|<br>|<p title="[^"<>]*">/g;

  test.each([
    ['without a template', whole, undefined],
    ['without a template, for a partial table', partial, undefined],
    ['with a template', whole, body],
    ['with a template, for a partial table', partial, '{{ readings | table: 2 }}{{ meta | table }}'],
  ])('text cannot become markup in a body %s', (_, given, template) => {
    fc.assert(
      fc.property(given, text, (made, name) => {
        const html = bodyOf({
          record: made,
          experiment: { title: 'x', date: '2026-03-04', ...(template ? { body: template } : {}) },
          file: { name, stem: name, path: name },
        });
        expect(html.replace(OURS, '')).not.toMatch(/[<>"']/);
        expect(html).not.toMatch(/[^\P{Cc}\n\t]|\p{Cs}/u);
      }),
    );
  });

  test('the same file gives the same draft', () => {
    fc.assert(
      fc.property(partial, (made) => {
        const once = map({ record: made, experiment: { title: 'x', date: '2026-03-04' } });
        expect(map({ record: made, experiment: { title: 'x', date: '2026-03-04' } })).toEqual(once);
      }),
      { numRuns: 30 },
    );
  });
});
