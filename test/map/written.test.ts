import { describe, expect, test } from 'vitest';
import { fillIn, fillInBody, record, table, v } from './samples.js';

const is = (condition: string): string => fillIn(`{% if ${condition} %}yes{% else %}no{% endif %}`);

describe('a value in a template', () => {
  test('prints as it was written', () => {
    expect(fillIn('{{ meta.Volume }}, {{ meta["Sample ID"] }}, {{ meta.Dilution }}')).toBe(
      '2.100 µL, 007, 4.0',
    );
    expect(fillIn('{{ readings[2].A260 }}')).toBe('10.0');
    expect(fillIn('{{ meta.Dilution | append: "x" }}')).toBe('4.0x');
  });

  test('computes as a number', () => {
    expect(
      fillIn('{{ meta.Dilution | plus: 1 }} {{ meta.Volume | round }} {{ 10 | times: meta.Volume }}'),
    ).toBe('5 2 21');
    expect(fillIn('{{ readings | sum: "A260" }}')).toBe('11.5');
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
  ])('%s holds', (condition) => {
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
  ])('%s does not hold', (condition) => {
    expect(is(condition)).toBe('no');
  });

  test.each(['<', '<=', '>', '>='])('a missing value is not %s any number', (operator) => {
    expect(is(`meta.Blank ${operator} 0`)).toBe('no');
    expect(is(`0 ${operator} meta.Blank`)).toBe('no');
    expect(is(`meta.Absent ${operator} 0`)).toBe('no');
  });

  test('that is missing prints nothing, and what was written in its place is beside it', () => {
    expect(fillIn('[{{ meta.Blank }}] {{ meta["Blank text"] }}')).toBe('[] OVRFLW');
    expect(fillIn('[{{ readings[1].A260 }}] {{ readings[1]["A260 text"] }}')).toBe('[] < 0.10');
    expect(fillIn('{{ meta.Blank | default: "none" }}')).toBe('none');
  });

  test('that is missing hides no column of the name that its text would have', () => {
    const odd = record({ 'A text': v('mine'), A: v(null, 'OVER') });
    expect(fillIn('{{ meta["A text"] }}', { record: odd })).toBe('mine');
    const later = record({ A: v(null, 'OVER'), 'A text': v('mine') });
    expect(fillIn('{{ meta["A text"] }}', { record: later })).toBe('mine');
  });

  test('that is false is written as in the file, and false all the same', () => {
    expect(fillIn('{{ meta.Valid }}{% unless meta.Valid %}!{% endunless %}')).toBe('NO!');
  });

  test('that is true is written as in the file, and true', () => {
    const valid = record({ Valid: v(true, 'YES') });
    expect(fillIn('{{ meta.Valid }}{% if meta.Valid == true %}!{% endif %}', { record: valid })).toBe('YES!');
  });

  test('sorts by what it is, the missing ones last', () => {
    expect(fillIn('{{ readings | sort: "A260" | map: "A260" | join: ", " }}')).toBe('1.50, 10.0,');
    expect(fillIn('{{ readings | sort: "A260" | first | map: "Well" }}')).toBe('A1');
  });

  test('can be filtered, grouped and made unique by', () => {
    expect(fillIn('{{ readings | map: "Well" | uniq | join: ", " }}')).toBe('A1, A2');
    expect(fillIn('{{ readings | where: "Well", "A1" | size }}')).toBe('2');
    expect(fillIn('{{ readings | where: "A260", 10 | map: "Remark" | first }}')).toBe('high');
    expect(
      fillIn(
        '{% assign wells = readings | group_by: "Well" %}{% for w in wells %}{{ w.name }}:{{ w.items.size }} {% endfor %}',
      ),
    ).toBe('A1:2 A2:1');
  });

  test('has a size, and picks among names', () => {
    expect(fillIn('{{ meta.Sample | size }} {{ meta.Sample.size }}')).toBe('11 11');
    const keyed = record(
      { Which: v('B'), A: v('a'), B: v('b'), N: v(1) },
      table('t', ['x'], [[v('p')], [v('q')]]),
    );
    expect(fillIn('{{ meta[meta.Which] }} {{ readings[meta.N].x }}', { record: keyed })).toBe('b q');
  });

  test('is a number in JSON', () => {
    expect(fillIn('{{ readings[2] | json }}')).toBe('{"Well":"A1","A260":10,"Remark":"high"}');
    expect(fillIn('{{ readings[0] }}')).toBe('{"Well":"A1","A260":1.5,"Remark":""}');
    expect(fillInBody('{{ meta.Valid | json }}')).toBe('false');
  });
});

describe('a name in a file', () => {
  const names = [
    'size',
    'first',
    'last',
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty',
    'then',
    'length',
  ];

  test.each(names)('%s is data', (name) => {
    const odd = { meta: new Map([[name, v('mine')]]), tables: [table('readings', [name], [[v('cell')]])] };
    expect(fillIn(`{{ meta["${name}"] }} {{ readings[0]["${name}"] }}`, { record: odd })).toBe('mine cell');
    expect(fillIn(`{{ readings | map: "${name}" | join: "" }}`, { record: odd })).toBe('cell');
  });

  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])('%s reaches no prototype', (name) => {
    expect(fillInBody(`[{{ meta.${name} }}{{ readings.${name} }}{{ readings[0].Well.${name} }}]`)).toBe('[]');
  });

  test('may be written in brackets, or after a point where it is one word', () => {
    const odd = record({ 'T∞ [°C]': v(21), größe: v(3), 'a"b': v('q') });
    expect(fillIn('{{ meta["T∞ [°C]"] }} {{ meta.größe }} {{ meta[\'a"b\'] }}', { record: odd })).toBe(
      '21 3 q',
    );
  });
});
