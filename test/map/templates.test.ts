import { describe, expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { checkTemplates, createMapper } from '../../src/map/draft.js';
import { TemplateError } from '../../src/map/mistakes.js';
import { comments, file, fillIn, fillInBody, map, record, SHA, table, v } from './samples.js';

function refusal(act: () => unknown): { message: string; hint: string | undefined; where: unknown } {
  try {
    act();
  } catch (error) {
    if (error instanceof FileError) return { message: error.message, hint: error.hint, where: error.where };
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('templates see', () => {
  test('the facts, the readings, the file and the instrument', () => {
    expect(fillIn('{{ meta.Sample }} on {{ instrument }}')).toBe('Plasmid <A> on nanodrop');
    expect(fillIn('{% for row in readings %}{{ row.Well }}={{ row.A260 }} {% endfor %}')).toBe(
      'A1=1.50 A2= A1=10.0',
    );
    expect(fillIn('{{ file.name }}|{{ file.stem }}|{{ file.path }}|{{ file.size }}')).toBe(
      'run 7.csv|run 7|/srv/nanodrop/run 7.csv|1234',
    );
    expect(fillInBody('{{ file.sha256 }}')).toBe(SHA);
  });

  test('the columns with their units', () => {
    expect(fillIn('{% for c in columns %}{{ c.name }}[{{ c.unit }}] {% endfor %}')).toBe(
      'Well[] A260[AU] Remark[]',
    );
  });

  test('all tables by name, the first of them as readings', () => {
    const two = record({}, table('wells', ['w'], [[v('A1')]]), table('curve', ['R² (%)'], [[v(0.99)]]));
    expect(
      fillIn('{{ readings[0].w }} {{ tables.wells[0].w }} {{ tables.curve[0]["R²"] }}', { record: two }),
    ).toBe('A1 A1 0.99');
    expect(fillIn('{{ tables.curve.columns[0].unit }} {{ tables.curve.size }}', { record: two })).toBe('% 1');
  });

  test('when the file was modified and what time it is, in local time', () => {
    expect(fillIn('{{ file.modified | date: "%Y-%m-%d %H:%M:%S" }}')).toBe('2026-03-04 12:30:15');
    expect(fillIn('{{ now | date: "%d.%m.%Y" }} {{ "now" | date: "%H:%M" }}')).toBe('04.03.2026 12:30');
    expect(fillIn('{{ file.modified }}')).toMatch(/^2026-03-04T12:30:15[+-]\d\d:\d\d$/);
  });

  test('no readings as an empty list', () => {
    expect(fillIn('{{ readings.size }}{{ columns.size }}', { record: record({ a: v(1) }) })).toBe('00');
  });

  test('template syntax in the data as data', () => {
    const sly = record({ Sample: v('{{ instrument }}{% raw %}') });
    expect(fillIn('{{ meta.Sample }}', { record: sly })).toBe('{{ instrument }}{% raw %}');
    expect(fillInBody('{{ meta.Sample }}', { record: sly })).toBe('{{ instrument }}{% raw %}');
  });
});

describe('a date in a template', () => {
  const dated = record({
    day: v('2026-01-02', '02.01.2026'),
    time: v('2026-01-02T23:30:00-05:00', 'x'),
    odd: v('03/04/2026'),
  });

  test('is written in any format, in the zone that it was written in', () => {
    expect(fillIn('{{ meta.day | date: "%d %b %Y" }}', { record: dated })).toBe('02 Jan 2026');
    expect(fillIn('{{ meta.time | date: "%d.%m. %H:%M" }}', { record: dated })).toBe('02.01. 23:30');
    expect(fillIn('{{ "2026-01-02 10:11" | date: "%H.%M" }}')).toBe('10.11');
  });

  test('that can be read in two ways is not read in one of them', () => {
    expect(fillIn('{{ meta.odd | date: "%Y-%m-%d" }}', { record: dated })).toBe('03/04/2026');
    expect(fillIn('{{ meta.odd | date_to_string }}', { record: dated })).toBe('03/04/2026');
  });

  test('is read as the mapping says', () => {
    const readDate = (text: string) => (text === '03/04/2026' ? { iso: '2026-04-03' } : undefined);
    expect(fillIn('{{ meta.odd | date: "%B" }}', { record: dated, readDate })).toBe('April');
  });
});

describe('a name that the file lacks', () => {
  test('quarantines the run when the title needs it, and the nearest is named', () => {
    const { message, hint, where } = refusal(() => fillIn('{{ meta.Sampel }}'));
    expect(message).toBe('the title needs meta.Sampel, which this file does not have');
    expect(hint).toContain('did you mean meta.Sample?');
    expect(where).toEqual({ file: file.path });
  });

  test('quarantines the run when the date needs it', () => {
    const { message } = refusal(() => map({ experiment: { date: '{{ meta.Date }}' } }));
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
    expect(refusal(() => fillIn(title)).hint).toContain(`did you mean ${meant}?`);
  });

  test('is no excuse for a name that has nothing to do with it', () => {
    const { message, hint } = refusal(() => fillIn('{{ readings[9].Well }}'));
    expect(message).toContain('the title needs readings[9],');
    expect(hint).not.toContain('did you mean');
  });

  test('can be allowed for with default', () => {
    expect(fillIn('{{ meta.Absent | default: "none" }}')).toBe('none');
    expect(fillIn('{{ meta.Absent | default: meta.Sample }}')).toBe('Plasmid <A>');
    expect(fillIn('{% assign s = meta.Absent | default: file.stem %}{{ s }}')).toBe('run 7');
  });

  test('is not asked for where the default is not needed', () => {
    expect(fillIn('{{ meta.Sample | default: meta.Absent }}')).toBe('Plasmid <A>');
    expect(fillIn('{% for i in (1..1) %}{{ meta.Sample | default: meta.Absent }}{% endfor %}')).toBe(
      'Plasmid <A>',
    );
  });

  test('may be followed by as many defaults as it takes', () => {
    expect(fillIn('{{ meta.A | default: meta.B | default: meta.C | default: "last" }}')).toBe('last');
    expect(refusal(() => fillIn('{{ meta.A | default: meta.B | default: meta.C }}')).message).toContain(
      'meta.C',
    );
  });

  test('default keeps its other word', () => {
    expect(fillIn('{{ false | default: "x", allow_false: true }}')).toBe('false');
    expect(fillIn('{{ meta.Valid | default: "x" }}')).toBe('x');
    expect(fillIn('{{ meta.Valid | default: "x", allow_false: true }}')).toBe('NO');
    expect(fillIn('{{ "" | default: "x" }}{{ readings | where: "Well", "Z" | default: "y" }}')).toBe('xy');
  });

  test('can be asked about with if, unless and case', () => {
    expect(fillIn('{% if meta.Absent %}a{% elsif meta.Sample %}b{% endif %}')).toBe('b');
    expect(fillIn('{% if meta.Absent == "x" or meta.Sample %}b{% endif %}')).toBe('b');
    expect(fillIn('{% unless meta.Absent %}b{% endunless %}')).toBe('b');
    expect(fillIn('{% case meta.Absent %}{% when "x" %}a{% else %}b{% endcase %}')).toBe('b');
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
    checkTemplates({ experiment: { title: source }, comments: {} }).map(
      ({ message, hint, line, column }) => ({
        message,
        hint,
        at: `${line}:${column}`,
      }),
    );

  test.each([
    ['{{ meta.X', '1:1', '{{ meta.X is not closed', 'expected }}'],
    ['a\n {% if meta.X', '2:2', '{% if meta.X is not closed', 'expected %}'],
    ['{% if meta.X %}a', '1:1', '{% if meta.X %} is not closed', 'expected {% endif %}'],
    ['a {% endif %}', '1:3', '{% endif %} closes or continues nothing', undefined],
    ['{{ meta.X\n| rond }}', '2:3', 'there is no filter "rond"', 'did you mean round?'],
    ['{% assign x = meta.X | upcsae %}', '1:24', 'there is no filter "upcsae"', 'did you mean upcase?'],
    ['{% fro x in readings %}', '1:1', 'there is no tag "fro"', 'did you mean for?'],
    ['{% for x %}{% endfor %}', '1:1', '{% for x %} cannot be read', 'expected {% for row in readings %}'],
    ['{{ }}', '1:4', 'expected a name or a value, found ""', undefined],
    ['{{ file.nmae }}', '1:4', 'file has no "nmae"', 'did you mean name?'],
    ['{{ reading.size }}', '1:4', 'there is nothing called "reading"', 'did you mean readings?'],
    ['{{ readings | sample }}', '1:15', 'there is no filter "sample"', undefined],
  ])('%j is placed at %s and put in plain words', (source, at, message, hint) => {
    expect(mistakes(source)).toEqual([{ message, hint, at }]);
  });

  test('such as a name with a blank that is not in brackets is explained', () => {
    const [mistake] = mistakes('{{ meta.Sample ID }}');
    expect(mistake?.message).toBe('there is nothing called "ID"');
    expect(mistake?.hint).toContain('meta["Sample ID"]');
  });

  test.each(['include', 'render', 'layout'])('such as %s is one: templates read no files', (tag) => {
    expect(mistakes(`{% ${tag} "x" %}`)[0]?.message).toBe(`there is no tag "${tag}"`);
  });

  test('names the template, and none hides another', () => {
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

  test('keeps a mapper from being made', () => {
    const make = () =>
      createMapper({ instrument: 'x', experiment: { body: '\n{{ meta.A | nope }}' }, comments });
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
  ])('is not seen in %s', (source) => {
    expect(mistakes(source)).toEqual([]);
  });
});

describe('a template that fails on a file', () => {
  test('quarantines that run with the reason', () => {
    const { message, where } = refusal(() => fillInBody('{{ "x" | table }}'));
    expect(message).toBe(
      'the template of the body cannot be filled in: the filter "table" takes readings, a table or meta',
    );
    expect(where).toEqual({ file: file.path });
  });

  test('by asking for more than the machine has is stopped', () => {
    const { message } = refusal(() => fillInBody('{% for i in (1..1000000000) %}{% endfor %}'));
    expect(message).toContain('limit');
  });
});
