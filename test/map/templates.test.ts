import { describe, expect, test } from 'vitest';
import { checkTemplates, createMapper } from '../../src/map/draft.js';
import { TemplateError } from '../../src/map/template-errors.js';
import {
  comments,
  file,
  fileErrorOf,
  map,
  record,
  renderBody,
  renderTitle,
  SHA,
  table,
  v,
} from '../support/map-samples.js';

describe('templates see', () => {
  test('the facts, the readings, the file and the instrument', () => {
    expect(renderTitle('{{ meta.Sample }} on {{ instrument }}')).toBe('Plasmid <A> on nanodrop');
    expect(renderTitle('{% for row in readings %}{{ row.Well }}={{ row.A260 }} {% endfor %}')).toBe(
      'A1=1.50 A2= A1=10.0',
    );
    expect(renderTitle('{{ file.name }}|{{ file.stem }}|{{ file.path }}|{{ file.size }}')).toBe(
      'run 7.csv|run 7|/srv/nanodrop/run 7.csv|1234',
    );
    expect(renderBody('{{ file.sha256 }}')).toBe(SHA);
  });

  test('the columns with their units', () => {
    expect(renderTitle('{% for c in columns %}{{ c.name }}[{{ c.unit }}] {% endfor %}')).toBe(
      'Well[] A260[AU] Remark[]',
    );
  });

  test('all tables by name, the first of them as readings', () => {
    const two = record({}, table('wells', ['w'], [[v('A1')]]), table('curve', ['R² (%)'], [[v(0.99)]]));
    expect(
      renderTitle('{{ readings[0].w }} {{ tables.wells[0].w }} {{ tables.curve[0]["R²"] }}', { record: two }),
    ).toBe('A1 A1 0.99');
    expect(renderTitle('{{ tables.curve.columns[0].unit }} {{ tables.curve.size }}', { record: two })).toBe('% 1');
  });

  test('the modification time and the current time, in local time', () => {
    expect(renderTitle('{{ file.modified | date: "%Y-%m-%d %H:%M:%S" }}')).toBe('2026-03-04 12:30:15');
    expect(renderTitle('{{ now | date: "%d.%m.%Y" }} {{ "now" | date: "%H:%M" }}')).toBe('04.03.2026 12:30');
    expect(renderTitle('{{ file.modified }}')).toMatch(/^2026-03-04T12:30:15[+-]\d\d:\d\d$/);
  });

  test('no readings as an empty list', () => {
    expect(renderTitle('{{ readings.size }}{{ columns.size }}', { record: record({ a: v(1) }) })).toBe('00');
  });

  test('template syntax in the data as data', () => {
    const sly = record({ Sample: v('{{ instrument }}{% raw %}') });
    expect(renderTitle('{{ meta.Sample }}', { record: sly })).toBe('{{ instrument }}{% raw %}');
    expect(renderBody('{{ meta.Sample }}', { record: sly })).toBe('{{ instrument }}{% raw %}');
  });
});

describe('a date in a template', () => {
  const dated = record({
    day: v('2026-01-02', '02.01.2026'),
    time: v('2026-01-02T23:30:00-05:00', 'x'),
    odd: v('03/04/2026'),
  });

  test('can be formatted, in its own time zone', () => {
    expect(renderTitle('{{ meta.day | date: "%d %b %Y" }}', { record: dated })).toBe('02 Jan 2026');
    expect(renderTitle('{{ meta.time | date: "%d.%m. %H:%M" }}', { record: dated })).toBe('02.01. 23:30');
    expect(renderTitle('{{ "2026-01-02 10:11" | date: "%H.%M" }}')).toBe('10.11');
  });

  test('that is ambiguous stays as written', () => {
    expect(renderTitle('{{ meta.odd | date: "%Y-%m-%d" }}', { record: dated })).toBe('03/04/2026');
    expect(renderTitle('{{ meta.odd | date_to_string }}', { record: dated })).toBe('03/04/2026');
  });

  test('is read with the formats of the mapping', () => {
    const readDate = (text: string) => (text === '03/04/2026' ? { iso: '2026-04-03' } : undefined);
    expect(renderTitle('{{ meta.odd | date: "%B" }}', { record: dated, readDate })).toBe('April');
  });
});

describe('a missing name', () => {
  test('quarantines the run if the title needs it, and the hint has the nearest name', () => {
    const { message, hint, where } = fileErrorOf(() => renderTitle('{{ meta.Sampel }}'));
    expect(message).toBe('the title needs meta.Sampel, which this file does not have');
    expect(hint).toContain('did you mean meta.Sample?');
    expect(where).toEqual({ file: file.path });
  });

  test('quarantines the run if the date needs it', () => {
    const { message } = fileErrorOf(() => map({ experiment: { date: '{{ meta.Date }}' } }));
    expect(message).toBe('the date needs meta.Date, which this file does not have');
  });

  test.each([
    ['{{ meta.sample_id }}', 'meta["Sample ID"]'],
    ['{{ meta.Sampel | upcase }}', 'meta.Sample'],
    ['{% assign s = meta.Sampel %}{{ s }}', 'meta.Sample'],
    ['{% liquid\n echo meta.Sampel\n%}', 'meta.Sample'],
    ['{% for row in readings %}{{ row.A26 }}{% endfor %}', 'row.A260'],
    ['{{ readings[0].Wel }}', 'readings[0].Well'],
    ['{{ tables.reading[0].Well }}', 'tables.readings'],
    ['{{ meta.Sample | append: meta.Operater }}', 'meta.Operator'],
  ])('%s: did you mean %s?', (title, meant) => {
    expect(fileErrorOf(() => renderTitle(title)).hint).toContain(`did you mean ${meant}?`);
  });

  test('has no hint if no name is near', () => {
    const { message, hint } = fileErrorOf(() => renderTitle('{{ readings[9].Well }}'));
    expect(message).toContain('the title needs readings[9],');
    expect(hint).not.toContain('did you mean');
  });

  test('can have a default', () => {
    expect(renderTitle('{{ meta.Absent | default: "none" }}')).toBe('none');
    expect(renderTitle('{{ meta.Absent | default: meta.Sample }}')).toBe('Plasmid <A>');
    expect(renderTitle('{% assign s = meta.Absent | default: file.stem %}{{ s }}')).toBe('run 7');
  });

  test('as an unused default is ignored', () => {
    expect(renderTitle('{{ meta.Sample | default: meta.Absent }}')).toBe('Plasmid <A>');
    expect(renderTitle('{% for i in (1..1) %}{{ meta.Sample | default: meta.Absent }}{% endfor %}')).toBe(
      'Plasmid <A>',
    );
  });

  test('as an unused default is ignored in assign and echo too', () => {
    expect(renderTitle('{% assign s = meta.Sample | default: meta.Absent %}{{ s }}')).toBe('Plasmid <A>');
    expect(renderTitle('{% echo meta.Sample | default: meta.Absent %}')).toBe('Plasmid <A>');
  });

  test('can have a chain of defaults', () => {
    expect(renderTitle('{{ meta.A | default: meta.B | default: meta.C | default: "last" }}')).toBe('last');
    expect(fileErrorOf(() => renderTitle('{{ meta.A | default: meta.B | default: meta.C }}')).message).toContain(
      'meta.C',
    );
  });

  test('does not break the standard behaviour of default', () => {
    expect(renderTitle('{{ false | default: "x", allow_false: true }}')).toBe('false');
    expect(renderTitle('{{ meta.Valid | default: "x" }}')).toBe('x');
    expect(renderTitle('{{ meta.Valid | default: "x", allow_false: true }}')).toBe('NO');
    expect(renderTitle('{{ "" | default: "x" }}{{ readings | where: "Well", "Z" | default: "y" }}')).toBe('xy');
  });

  test('can be tested with if, unless and case', () => {
    expect(renderTitle('{% if meta.Absent %}a{% elsif meta.Sample %}b{% endif %}')).toBe('b');
    expect(renderTitle('{% if meta.Absent == "x" or meta.Sample %}b{% endif %}')).toBe('b');
    expect(renderTitle('{% unless meta.Absent %}b{% endunless %}')).toBe('b');
    expect(renderTitle('{% case meta.Absent %}{% when "x" %}a{% else %}b{% endcase %}')).toBe('b');
  });

  test('is empty elsewhere', () => {
    const { draft } = map({
      experiment: {
        body: '[{{ meta.Absent }}{{ meta.Absent.deeper | upcase }}]',
        tags: ['{{ meta.Absent }}', 'x'],
      },
      comments: { text: 'a{{ meta.Absent }}{{ tables.absent | table }}b' },
    });
    expect(draft.body).toContain('[]');
    expect(draft.tags).toEqual(['x']);
    expect(draft.comments).toEqual(['ab']);
  });
});

describe('a mistake in a template', () => {
  const mistakes = (source: string) =>
    checkTemplates({ experiment: { title: source }, comments: {} }).map(({ message, hint, line, column }) => ({
      message,
      hint,
      at: `${line}:${column}`,
    }));

  test.each([
    ['{{ meta.X', '1:1', '{{ meta.X is not closed', 'expected }}'],
    ['a\n {% if meta.X', '2:2', '{% if meta.X is not closed', 'expected %}'],
    ['{% if meta.X %}a', '1:1', '{% if meta.X %} is not closed', 'expected {% endif %}'],
    ['a {% endif %}', '1:3', '{% endif %} has no matching opening tag', undefined],
    ['{{ meta.X\n| rond }}', '2:3', 'unknown filter "rond"', 'did you mean round?'],
    ['{% assign x = meta.X | upcsae %}', '1:24', 'unknown filter "upcsae"', 'did you mean upcase?'],
    ['{% fro x in readings %}', '1:1', 'unknown tag "fro"', 'did you mean for?'],
    ['{% for x %}{% endfor %}', '1:1', 'cannot read {% for x %}', 'expected {% for row in readings %}'],
    ['{{ }}', '1:4', 'expected a name or a value, found ""', undefined],
    ['{{ file.nmae }}', '1:4', 'file has no "nmae"', 'did you mean name?'],
    ['{{ reading.size }}', '1:4', 'unknown name "reading"', 'did you mean readings?'],
    ['{{ Sample }}', '1:4', 'unknown name "Sample"', expect.stringContaining('write meta.Sample;')],
    ['{{ readings | sample }}', '1:15', 'unknown filter "sample"', undefined],
  ])('%j is reported at %s', (source, at, message, hint) => {
    expect(mistakes(source)).toEqual([{ message, hint, at }]);
  });

  test('with a space in a name suggests brackets', () => {
    const [mistake] = mistakes('{{ meta.Sample ID }}');
    expect(mistake?.message).toBe('unknown name "ID"');
    expect(mistake?.hint).toContain('meta["Sample ID"]');
  });

  test.each(['include', 'render', 'layout'])('is to use %s, because templates read no files', (tag) => {
    expect(mistakes(`{% ${tag} "x" %}`)[0]?.message).toBe(`unknown tag "${tag}"`);
  });

  test('is reported with its path, together with all others', () => {
    const found = checkTemplates({
      experiment: { title: '{{', date: '{{ x }}', body: '{% if %}', tags: ['fine', '{{ meta.a | nope }}'] },
      comments: { text: '{{ now | }}{{ y }}' },
    });
    expect(found.map(({ path }) => path)).toEqual([
      ['experiment', 'title'],
      ['experiment', 'date'],
      ['experiment', 'body'],
      ['experiment', 'tags', 1],
      ['comments', 'text'],
    ]);
  });

  test('makes createMapper throw', () => {
    const make = () => createMapper({ instrument: 'x', experiment: { body: '\n{{ meta.A | nope }}' }, comments });
    expect(make).toThrow(TemplateError);
    expect(make).toThrow(expect.objectContaining({ path: ['experiment', 'body'], line: 2, column: 13 }));
  });

  test.each([
    '{% assign a = 1 %}{{ a }}',
    '{% capture a %}x{% endcapture %}{{ a }}',
    '{% for r in readings limit: 1 %}{{ r.x }}{{ forloop.index }}{% endfor %}{% for r in readings offset: continue %}{% endfor %}',
    '{% for r in readings %}{% if before %}{{ before.x }}{% endif %}{% assign before = r %}{% endfor %}',
    '{% tablerow r in readings %}{{ tablerowloop.col }}{% endtablerow %}',
    '{% increment i %}{{ i }}',
    '{{ readings | where_exp: "r", "r.x > 3" | size }}',
    '{% comment %}{{ nothing }}{% endcomment %}{% raw %}{{ nothing }}{% endraw %}',
  ])('is not reported in %s', (source) => {
    expect(mistakes(source)).toEqual([]);
  });
});

describe('a template that cannot be rendered', () => {
  test('quarantines the run with the reason', () => {
    const { message, where } = fileErrorOf(() => renderBody('{{ "x" | table }}'));
    expect(message).toBe('cannot render the body template: the filter "table" expects readings, a table or meta');
    expect(where).toEqual({ file: file.path });
  });

  test('because it exceeds a limit quarantines the run', () => {
    const { message } = fileErrorOf(() => renderBody('{% for i in (1..1000000000) %}{% endfor %}'));
    expect(message).toContain('limit');
  });
});
