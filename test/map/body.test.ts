import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import type { FileRecord, Value } from '../../src/model.js';
import { fillInBody, type Given, map, record, SHA, table, v } from './samples.js';

const bodyOf = (given: Given = {}): string => map(given).draft.body;
const many = (n: number) =>
  record(
    {},
    table(
      'readings',
      ['t'],
      Array.from({ length: n }, (_, i) => [v(i)]),
    ),
  );

describe('the body', () => {
  test('shows facts and readings where no template says otherwise', () => {
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
        '<table>',
        '<tr><th>Well</th><th>A260 (AU)</th><th>Remark</th></tr>',
        '<tr><td>A1</td><td>1.50</td><td></td></tr>',
        '<tr><td>A2</td><td>&lt; 0.10</td><td>low</td></tr>',
        '<tr><td>A1</td><td>10.0</td><td>high</td></tr>',
        '</table>',
        `<p>labfeed nanodrop run 7.csv sha256:${SHA}</p>`,
      ].join('\n'),
    );
  });

  test('names its tables where there are several', () => {
    const two = record({}, table('a&b', ['x'], [[v(1)]]), table('c', ['y'], []));
    expect(bodyOf({ record: two })).toMatch(/^<h3>a&amp;b<\/h3>\n<table>.*<h3>c<\/h3>\n<table>/s);
  });

  test('ends with a visible line that says where it came from', () => {
    const origin = `<p>labfeed nanodrop run 7.csv sha256:${SHA}</p>`;
    expect(bodyOf({ experiment: { body: '<p>x</p>\n\n' } })).toBe(`<p>x</p>\n${origin}`);
    expect(bodyOf({ experiment: { body: '{{ meta.Absent }}' } })).toBe(origin);
    expect(bodyOf({ file: { name: '<b>\n"x".csv' } })).toMatch(
      /<p>labfeed nanodrop &lt;b&gt; &quot;x&quot;\.csv sha256:[0-9a-f]{64}<\/p>$/,
    );
  });

  test('has values escaped, and the markup of the template not', () => {
    expect(fillInBody('<p title="{{ meta.Sample }}">{{ meta.Sample }}</p>')).toBe(
      '<p title="Plasmid &lt;A&gt;">Plasmid &lt;A&gt;</p>',
    );
  });

  test('has no value escaped twice', () => {
    expect(fillInBody('{{ meta.Sample | escape }}')).toBe('Plasmid &lt;A&gt;');
    expect(fillInBody('{% capture x %}<b>{{ meta.Sample }}</b>{% endcapture %}{{ x }}')).toBe(
      '<b>Plasmid &lt;A&gt;</b>',
    );
    expect(fillInBody('{{ "a &amp; b < c" | escape_once }}')).toBe('a &amp; b &lt; c');
  });

  test('has values as they are where the template asks for it', () => {
    expect(fillInBody('{{ meta.Sample | raw }}')).toBe('Plasmid <A>');
  });

  test('shows the lines of a text where the template asks for it', () => {
    const lines = record({ Note: v('a\n<b>\r\nc') });
    expect(fillInBody('{{ meta.Note | newline_to_br }}', { record: lines })).toBe('a<br>&lt;b&gt;<br>c');
  });

  test.each(['{% echo meta.Sample %}', '{% cycle meta.Sample, "x" %}', '{% liquid\n echo meta.Sample\n%}'])(
    '%s prints escaped as well',
    (template) => {
      expect(fillInBody(template)).toBe('Plasmid &lt;A&gt;');
    },
  );

  test('cannot be longer than a notebook takes', () => {
    const body =
      '{% for i in (1..50000) %}<p>{{ i }} some more text that fills the page up to the brim, and a little beyond it</p>{% endfor %}';
    expect(() => bodyOf({ experiment: { body } })).toThrow(FileError);
    expect(() => bodyOf({ experiment: { body } })).toThrow(
      /the body has [\d,]+ bytes, and the notebook takes 4,120,000/,
    );
  });

  test('of its own making is shortened until it fits', () => {
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
    expect(body).toContain('more rows; all are in the file');
    expect(body).toContain('…</td></tr>');
    expect(body).toMatch(/sha256:[0-9a-f]{64}<\/p>$/);
  });

  test('gives up on a file that is all headings', () => {
    const facts = Object.fromEntries(
      Array.from({ length: 100_000 }, (_, i) => [`fact ${i}`, v('&'.repeat(20))]),
    );
    expect(bodyOf({ record: record(facts) })).toContain(
      '<p>100,000 facts and 0 tables, too much for this page',
    );
  });
});

describe('the filter table', () => {
  test('shows readings, a table or facts', () => {
    expect(fillInBody('{{ readings | table }}')).toContain('<tr><td>A1</td><td>1.50</td><td></td></tr>');
    expect(fillInBody('{{ tables.readings | table }}')).toBe(fillInBody('{{ readings | table }}'));
    expect(fillInBody('{{ meta | table }}')).toContain('<tr><th>Sample</th><td>Plasmid &lt;A&gt;</td></tr>');
    expect(fillInBody('{{ readings[0] | table }}')).toContain('<td>1.50</td>');
  });

  test('shows the rows that were picked', () => {
    const html = fillInBody('{{ readings | where: "Well", "A1" | sort: "A260" | reverse | table }}');
    expect(html.match(/<td>[\d.]+<\/td>/g)).toEqual(['<td>10.0</td>', '<td>1.50</td>']);
    expect(fillInBody('[{{ readings | where: "Well", "Z9" | table }}]')).toBe('[]');
  });

  test('can be kept in a variable', () => {
    expect(fillInBody('{% assign t = readings | table %}{{ t }}')).toContain('<table>');
    expect(fillInBody('{% liquid\n echo readings | table\n%}')).toContain('<table>');
  });

  test('refuses rows of two tables', () => {
    const two = record({}, table('a', ['x'], [[v(1)]]), table('b', ['y'], [[v(2)]]));
    expect(() => fillInBody('{{ tables.a | concat: tables.b | table }}', { record: two })).toThrow(
      'one table',
    );
  });

  test('cuts a long table and says how much is left out, and where it is', () => {
    const html = fillInBody('{{ readings | table }}', { record: many(1434) });
    expect(html.match(/<td>/g)?.length).toBe(200);
    expect(html).toContain('<p>… 1,234 more rows; all are in the comments</p>');
    const none: Given = { record: many(201), comments: { readings: 'none' } };
    expect(fillInBody('{{ readings | table }}', none)).toContain('<p>… 1 more row; all are in the file</p>');
    expect(fillInBody('{{ readings | table }}', { record: many(200) })).not.toContain('…');
  });

  test('points at the file where the comments are a summary', () => {
    expect(bodyOf({ record: many(100_000) })).toContain('99,800 more rows; all are in the file');
  });

  test('shows as many rows as it is told', () => {
    const rows = (filter: string) =>
      fillInBody(`{{ readings | ${filter} }}`, { record: many(300) }).match(/<td>/g)?.length ?? 0;
    expect(rows('table: 50')).toBe(50);
    expect(rows('table: 1000')).toBe(300);
    expect(rows('table: 0')).toBe(0);
    expect(rows('table: -5')).toBe(0);
  });

  test('keeps the line breaks of a cell', () => {
    const lines = record({}, table('t', ['a\nb'], [[v('c\r\nd<')]]));
    expect(fillInBody('{{ readings | table }}', { record: lines })).toContain('<th>a<br>b</th>');
    expect(fillInBody('{{ readings | table }}', { record: lines })).toContain('<td>c<br>d&lt;</td>');
  });
});

describe('whatever the file holds', () => {
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
  const given: fc.Arbitrary<FileRecord> = fc.record({
    meta: fc.array(fc.tuple(text, value)).map((pairs) => new Map(pairs)),
    tables: fc.array(
      fc
        .record({
          name: text,
          columns: fc.array(fc.record({ name: text, unit: text }), { minLength: 2, maxLength: 2 }),
          rows: fc.array(fc.tuple(value, value), { maxLength: 5 }),
        })
        .map((made) => ({ ...made, count: made.rows.length })),
      { maxLength: 2 },
    ),
  });
  const body = [
    '<p title="{{ file.name }}">{{ file.path }} {{ file.stem }} {{ meta }}</p>',
    '{{ readings | table }}{{ meta | table }}{{ readings }}{{ columns }}',
    '{% for f in meta %}{{ f[0] }}={{ f[1] }} {{ f[1] | upcase | escape }}{% endfor %}',
    '{% for t in tables %}{% for row in t[1] %}{% capture c %}{{ row }}{% endcapture %}{{ c }}{% endfor %}{% endfor %}',
  ].join('');

  /** The only markup that the program and the template above write. */
  const OURS = /<\/?(?:table|tr|th|td|p|h3)>|<br>|<p title="[^"<>]*">/g;

  test.each([
    ['of its own making', undefined],
    ['of a template', body],
  ])('it cannot become markup in a body %s', (_, template) => {
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
      fc.property(given, (made) => {
        const once = map({ record: made, experiment: { title: 'x', date: '2026-03-04' } });
        expect(map({ record: made, experiment: { title: 'x', date: '2026-03-04' } })).toEqual(once);
      }),
      { numRuns: 30 },
    );
  });
});
