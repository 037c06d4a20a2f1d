import { describe, expect, test } from 'vitest';
import { read, refusal, rows } from '../support/reading.js';

const CSV = { delimiter: ',', table: {} };

describe('refused, never guessed', () => {
  test('an ambiguous number in a numeric column, with its location and both settings', async () => {
    const error = await refusal('id;n\na;5\nb;"1,234"\nc;7\n', { delimiter: ';', table: {} });
    expect(error.message).toContain('"1,234"');
    expect(error.where).toEqual({ file: 'runs/plate 7_scan.csv', line: 3, column: 4 });
    expect(error.hint).toBe('choose one: `decimal: ","` or `thousands: ","`');
  });

  test.each([
    ['decimal', ',', 1.234],
    ['thousands', ',', 1234],
  ] as const)('an ambiguous number is settled by %s: "%s"', async (key, mark, expected) => {
    const record = await read('n;m\n1,234;5\n', { delimiter: ';', [key]: mark, table: {} });
    expect(rows(record)).toEqual([{ n: expected, m: 5 }]);
  });

  test.each([
    ['12,5', {}, 'decimal: ","'],
    ['12.5', { decimal: ',' }, 'decimal: "."'],
    ['1.234', { decimal: ',' }, 'thousands: "."'],
    ['50.026.184', {}, 'thousands: "."'],
    ['50.026.184', { decimal: '.' }, 'thousands: "."'],
    ['1 234', {}, 'thousands: " "'],
  ] as const)('%s among numbers under %j', async (text, marks, hint) => {
    const error = await refusal(`a;n\nx;5\ny;${text}\n`, { delimiter: ';', ...marks, table: {} });
    expect(error.hint).toContain(hint);
  });

  test('an ambiguous number among words, or typed as text, stays text', async () => {
    const words = await read('a;b\n1,234;x\nfoo;y\nbar;z\n', { delimiter: ';', table: {} });
    expect(rows(words)[0]).toEqual({ a: '1,234', b: 'x' });
    const typed = await read('a;b\n1,234;x\n', {
      delimiter: ';',
      table: { columns: { a: { type: 'text' } } },
    });
    expect(rows(typed)[0]).toEqual({ a: '1,234', b: 'x' });
  });

  test('an ambiguous date only if it is used as one', async () => {
    const text = 'day,n\n03/04/2026,1\n';
    expect(rows(await read(text, CSV))).toEqual([{ day: '03/04/2026', n: 1 }]);
    const error = await refusal(text, { ...CSV, table: { columns: { day: { type: 'date' } } } });
    expect(error.message).toContain('2026-04-03 or 2026-03-04');
    expect(error.where).toMatchObject({ line: 2, column: 1 });
    expect(error.hint).toContain('`dates: { format: dd/MM/yyyy }`');
  });

  test('a header of numbers', async () => {
    const error = await refusal('168.2,2152\n172.3,2139\n', CSV);
    expect(error.message).toBe('the header consists of numbers');
    expect(error.where?.line).toBe(1);
    expect(error.hint).toContain('`table: { header: none }`');
  });

  test('a header of numbers is accepted if the mapping gives it', async () => {
    const record = await read('400,401\n1,2\n', { ...CSV, table: { header: '400,' } });
    expect(rows(record)).toEqual([{ 400: 1, 401: 2 }]);
    expect((await refusal('400,401\n1,2\n', { ...CSV, table: { header: 1 } })).message).toContain(
      'consists of numbers',
    );
  });

  test('a missing column, with the nearest name', async () => {
    for (const table of [
      { columns: { w: 'Wieght' } },
      { fill: 'Wieght' },
      { where: { Wieght: 1 } },
      { columns: ['Wieght'] },
    ]) {
      const error = await refusal('Weight (mg),n\n1,2\n', { ...CSV, table });
      expect(error.message).toBe('there is no column "Wieght"');
      expect(error.hint).toContain('Weight');
    }
    expect((await refusal('a,b\n1,2\n', { ...CSV, table: { columns: { x: 3 } } })).message).toContain('no cell 3');
  });

  test('more names than cells', async () => {
    const error = await refusal('1,2\n', { ...CSV, table: { header: 'none', columns: ['a', 'b', 'c'] } });
    expect(error.message).toContain('the rows have 2 cells');
  });

  test.each(['after', 'every', 'header'])('a line that `%s` does not find', async (key) => {
    const error = await refusal('[Data]\na,b\n1,2\n', { ...CSV, table: { [key]: '[Dara]' } });
    expect(error.message).toContain(`\`${key}: [Dara]\``);
    expect(error.where?.line).toBe(1);
    expect(error.hint).toContain(`\`${key}: "[Data]"\``);
  });

  test('`rows` that no line matches', async () => {
    const error = await refusal('a\nb\n', { table: { rows: '/^S (?<w>.+)/' } });
    expect(error.message).toContain('no line matches `rows:');
  });

  test('fewer rows than `count`', async () => {
    const error = await refusal('Points,3\nx,y\n1,2\n3,4\n', {
      ...CSV,
      meta: { separator: ',' },
      table: { header: 'x', count: 'Points' },
    });
    expect(error.message).toContain('has 2 rows instead of 3');
    expect(error.hint).toContain('truncated');
  });

  test('a row directly after the blank line that ended its table', async () => {
    const error = await refusal('a,b\n1,2\n\n3,4\n', CSV);
    expect(error.where?.line).toBe(4);
    expect(error.hint).toContain('`until: eof`');
    expect(rows(await read('a,b\n1,2\n\n3,4\n', { ...CSV, table: { until: 'eof' } }))).toHaveLength(2);
  });

  test('a row after a blank line directly below the header', async () => {
    expect((await refusal('a,b\n\n1,2\n', CSV)).hint).toContain('`until: eof`');
  });

  test('not if another table or other text follows', async () => {
    const text = 'a,b\n1,2\n\nc,d\n3,4\n';
    const tables = { first: {}, second: { header: 'c' } };
    expect(rows(await read(text, { delimiter: ',', tables }), 1)).toHaveLength(1);
    expect(rows(await read('a,b\n1,2\n\nOperator,Ada\n', CSV))).toHaveLength(1);
  });

  test('a file without facts and rows', async () => {
    expect((await refusal('a,b\n', CSV)).message).toContain('no facts and no rows');
    expect((await refusal('a,b\n1,2\n', { delimiter: ',' })).hint).toContain('`table: {}`');
  });

  test('a word in a column typed as number', async () => {
    const error = await refusal('well,n\nA1,5\nA2,OVER\n', {
      ...CSV,
      table: { columns: { n: { type: 'number' } } },
    });
    expect(error.message).toContain('"OVER" is not a number');
    expect(error.where).toMatchObject({ line: 3, column: 4 });
    expect(error.hint).toContain('`missing: ["OVER"]`');
  });
});
