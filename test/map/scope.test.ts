import { describe, expect, test } from 'vitest';
import { record, renderBody, renderTitle, table, v } from '../support/map-samples.js';

const is = (condition: string): string => renderTitle(`{% if ${condition} %}yes{% else %}no{% endif %}`);

describe('a value in a template', () => {
  test('prints as written', () => {
    expect(renderTitle('{{ meta.Volume }}, {{ meta["Sample ID"] }}, {{ meta.Dilution }}')).toBe('2.100 µL, 007, 4.0');
    expect(renderTitle('{{ readings[2].A260 }}')).toBe('10.0');
    expect(renderTitle('{{ meta.Dilution | append: "x" }}')).toBe('4.0x');
  });

  test('calculates as a number', () => {
    expect(renderTitle('{{ meta.Dilution | plus: 1 }} {{ meta.Volume | round }} {{ 10 | times: meta.Volume }}')).toBe(
      '5 2 21',
    );
    expect(renderTitle('{{ readings | sum: "A260" }}')).toBe('11.5');
  });

  test.each([
    'meta.Dilution > 3',
    'meta.Dilution >= 4',
    'meta.Dilution < 10',
    '10 > meta.Dilution',
    '4 == meta.Dilution',
    'meta.Dilution == 4',
    'meta.Dilution == "4.0"',
    'meta.Dilution != 5',
    'meta.Dilution > meta.Volume',
    'meta.Dilution == meta.Dilution',
    'meta.Sample == "Plasmid <A>"',
    'meta.Sample contains "smid"',
    'meta.Sample != empty',
    'meta.Sample != blank',
    'meta.Sample != nil',
    'meta["Sample ID"] == "007"',
    'meta.Volume.unit == "µL"',
    'meta.Valid == false',
    'meta.Sample',
  ])('%s is true', (condition) => {
    expect(is(condition)).toBe('yes');
  });

  test.each([
    'meta.Dilution > 4',
    'meta.Dilution < 3',
    'meta.Dilution == 5',
    'meta["Sample ID"] == 7',
    'meta.Sample > 3',
    'meta.Sample < 3',
    'meta.Dilution == nil',
    'meta.Valid',
    'meta.Blank',
  ])('%s is false', (condition) => {
    expect(is(condition)).toBe('no');
  });

  test.each(['<', '<=', '>', '>='])('a missing value is not %s any number', (operator) => {
    expect(is(`meta.Blank ${operator} 0`)).toBe('no');
    expect(is(`0 ${operator} meta.Blank`)).toBe('no');
    expect(is(`meta.Absent ${operator} 0`)).toBe('no');
  });

  test('that is missing prints nothing; its text has a name of its own', () => {
    expect(renderTitle('[{{ meta.Blank }}] {{ meta["Blank text"] }}')).toBe('[] OVRFLW');
    expect(renderTitle('[{{ readings[1].A260 }}] {{ readings[1]["A260 text"] }}')).toBe('[] < 0.10');
    expect(renderTitle('{{ meta.Blank | default: "none" }}')).toBe('none');
  });

  test('that is missing does not hide a column with that name', () => {
    const odd = record({ 'A text': v('mine'), A: v(null, 'OVER') });
    expect(renderTitle('{{ meta["A text"] }}', { record: odd })).toBe('mine');
    const later = record({ A: v(null, 'OVER'), 'A text': v('mine') });
    expect(renderTitle('{{ meta["A text"] }}', { record: later })).toBe('mine');
  });

  test('that is false prints as written and is falsy', () => {
    expect(renderTitle('{{ meta.Valid }}{% unless meta.Valid %}!{% endunless %}')).toBe('NO!');
  });

  test('that is true prints as written and equals true', () => {
    const valid = record({ Valid: v(true, 'YES') });
    expect(renderTitle('{{ meta.Valid }}{% if meta.Valid == true %}!{% endif %}', { record: valid })).toBe('YES!');
  });

  test('sorts by value, missing values last', () => {
    expect(renderTitle('{{ readings | sort: "A260" | map: "A260" | join: ", " }}')).toBe('1.50, 10.0,');
    expect(renderTitle('{{ readings | sort: "A260" | first | map: "Well" }}')).toBe('A1');
  });

  test('can be used in where, group_by and uniq', () => {
    expect(renderTitle('{{ readings | map: "Well" | uniq | join: ", " }}')).toBe('A1, A2');
    expect(renderTitle('{{ readings | where: "Well", "A1" | size }}')).toBe('2');
    expect(renderTitle('{{ readings | where: "A260", 10 | map: "Remark" | first }}')).toBe('high');
    expect(
      renderTitle(
        '{% assign wells = readings | group_by: "Well" %}{% for w in wells %}{{ w.name }}:{{ w.items.size }} {% endfor %}',
      ),
    ).toBe('A1:2 A2:1');
  });

  test('has a size and can be an index', () => {
    expect(renderTitle('{{ meta.Sample | size }} {{ meta.Sample.size }}')).toBe('11 11');
    const keyed = record({ Which: v('B'), A: v('a'), B: v('b'), N: v(1) }, table('t', ['x'], [[v('p')], [v('q')]]));
    expect(renderTitle('{{ meta[meta.Which] }} {{ readings[meta.N].x }}', { record: keyed })).toBe('b q');
  });

  test('is a number in JSON', () => {
    expect(renderTitle('{{ readings[2] | json }}')).toBe('{"Well":"A1","A260":10,"Remark":"high"}');
    expect(renderTitle('{{ readings[0] }}')).toBe('{"Well":"A1","A260":1.5,"Remark":""}');
    expect(renderBody('{{ meta.Valid | json }}')).toBe('false');
  });
});

describe('a name in a file', () => {
  const names = ['size', 'first', 'last', 'constructor', '__proto__', 'toString', 'hasOwnProperty', 'then', 'length'];

  test.each(names)('%s is data', (name) => {
    const odd = { unread: [], meta: new Map([[name, v('mine')]]), tables: [table('readings', [name], [[v('cell')]])] };
    expect(renderTitle(`{{ meta["${name}"] }} {{ readings[0]["${name}"] }}`, { record: odd })).toBe('mine cell');
    expect(renderTitle(`{{ readings | map: "${name}" | join: "" }}`, { record: odd })).toBe('cell');
  });

  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])('%s does not reach a prototype', (name) => {
    expect(renderBody(`[{{ meta.${name} }}{{ readings.${name} }}{{ readings[0].Well.${name} }}]`)).toBe('[]');
  });

  test('is written in brackets, or after a dot if it is one word', () => {
    const odd = record({ 'T∞ [°C]': v(21), größe: v(3), 'a"b': v('q') });
    expect(renderTitle('{{ meta["T∞ [°C]"] }} {{ meta.größe }} {{ meta[\'a"b\'] }}', { record: odd })).toBe('21 3 q');
  });
});
