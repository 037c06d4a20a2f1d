import { describe, expect, test } from 'vitest';
import { columns, read } from '../support/reading.js';

const table = (text: string) =>
  read(text, { delimiter: 'whitespace', table: { units: 'nextRow', skip: '/^-+$/' } });

describe('units below names that are cut at blanks', () => {
  test('belong to the names above them, where a column has none', async () => {
    const text = [
      '   Index       t      Ts   Value',
      '             [s]    [°C]    [mW]',
      '       0       0   120.0  -1.027',
      '       1       1   120.2  -1.037',
    ];
    expect(columns(await table(text.join('\n')))).toEqual(['Index', 't [s]', 'Ts [°C]', 'Value [mW]']);
  });

  test('are given to none where one stands below no name, or below two', async () => {
    const rows = '1 2 3\n4 5 6\n';
    const names = ['a', 'b', 'c'];
    expect(columns(await table(`a  b    c\n     s\n${rows}`))).toEqual(names);
    expect(columns(await table(`a b c\n  mg/mL\n${rows}`))).toEqual(names);
  });

  test('are taken in their order where every column has one', async () => {
    expect(columns(await table('a b c\n      s V A\n1 2 3\n'))).toEqual(['a [s]', 'b [V]', 'c [A]']);
  });
});
