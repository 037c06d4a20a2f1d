import { utils, write } from '@e965/xlsx';
import { describe, expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { meta, read, refusal, rows } from '../support/reading.js';

const OLD: ParseMapping = { delimiter: ';', decimal: ',', table: { after: '[Messwerte]' } };
const NEW: ParseMapping = { delimiter: ',', table: { after: '[Data]' } };

describe('alternative mappings', () => {
  test('the first whose patterns are all found reads the file', async () => {
    const both = [OLD, NEW];
    expect(rows(await read('[Messwerte]\nt;U\n1;2,5\n', both))).toEqual([{ t: 1, U: 2.5 }]);
    expect(rows(await read('[Data]\nt,U\n1,2.5\n', both))).toEqual([{ t: 1, U: 2.5 }]);
  });

  test('rows or columns that a tree does not have lead to the next alternative', async () => {
    const text = '{"run":[{"v":1}]}';
    const next = { format: 'json', table: { rows: '/run' } } as const;
    for (const table of [{ rows: '/runs' }, { rows: '/run', columns: { w: 'w' } }, { columns: { w: '/w' } }]) {
      expect(rows(await read(text, [{ format: 'json', table }, next]))).toEqual([{ v: 1 }]);
    }
  });

  test('a later alternative is not tried after a match', async () => {
    const record = await read('a,b\n1,2\n', [
      { delimiter: ',', table: {} },
      { delimiter: ',', table: { header: 'none' } },
    ]);
    expect(rows(record)).toEqual([{ a: 1, b: 2 }]);
  });

  test.each<[string, ParseMapping]>([
    ['a column', { delimiter: ',', table: { columns: { x: 'Weight' } } }],
    ['a column to fill', { delimiter: ',', table: { fill: 'Weight' } }],
    ['a fact', { delimiter: ',', facts: { x: 'Weight' }, table: {} }],
    ['a pattern', { delimiter: ',', meta: { match: '/(?<x>Weight)/' }, table: {} }],
    ['a line of facts', { delimiter: ',', meta: { line: 'Weight', cells: ['x'] }, table: {} }],
    ['a header', { delimiter: ',', table: { header: 'Weight' } }],
    ['a form of rows', { table: { rows: '/(?<x>Weight)/' } }],
    ['a plate', { delimiter: ',', table: { grid: true } }],
    ['anything', { meta: { separator: '=' } }],
  ])('an alternative that does not find %s is skipped', async (_, mapping) => {
    const fallback: ParseMapping = { delimiter: ',', table: { columns: ['a'] } };
    expect(rows(await read('a,b\n1,2\n', [mapping, fallback]))).toEqual([{ a: 1 }]);
  });

  test('an alternative that matches is not skipped because of a value that cannot be read', async () => {
    const text = '[Data]\nt,U\n1,high\n';
    const typed: ParseMapping = {
      delimiter: ',',
      table: { after: '[Data]', columns: { U: { type: 'number' } } },
    };
    expect((await refusal(text, [typed, NEW])).message).toContain('"high" is not a number');
  });

  test('an alternative that does not match is skipped even if a value above cannot be read', async () => {
    const text = 't,U\n1,high\n';
    const typed: ParseMapping = {
      delimiter: ',',
      meta: { match: '/(?<version>v2)/' },
      table: { columns: { U: { type: 'number' } } },
    };
    expect(rows(await read(text, [typed, { delimiter: ',', table: {} }]))).toEqual([{ t: 1, U: 'high' }]);
  });

  test.each(['xlsx', 'jcamp'] as const)('one that is for %s is passed over by what is none', async (format) => {
    expect(rows(await read('[Data]\na,b\n1,2\n', [{ format }, NEW]))).toEqual([{ a: 1, b: 2 }]);
  });

  test('`format: none` matches binary files', async () => {
    const record = await read(Buffer.from('%PDF-1.7 and more'), [
      NEW,
      { format: 'none', meta: { in: 'name', match: '/^(?<plate>plate \\d)/' } },
    ]);
    expect(meta(record)).toEqual({ plate: 'plate 7' });
  });

  test('if none matches, the refusal lists what each one misses', async () => {
    const error = await refusal('x,y\n1,2\n', [OLD, NEW]);
    expect(error.message).toContain('none of the 2 alternatives');
    expect(error.message).toContain('1: no line matches `after: [Messwerte]`');
    expect(error.message).toContain('2: no line matches `after: [Data]`');
  });

  test('each alternative has its own limits', async () => {
    const text = `[Data]\na,b\n${'1,2\n'.repeat(10)}`;
    const error = await refusal(text, [OLD, { ...NEW, limits: { rows: 5 } }]);
    expect(error.message).toContain('more than 5 rows');
  });
});

describe('`when`', () => {
  const mapping = (when: ParseMapping['when'], name: string): ParseMapping => ({
    when,
    delimiter: ',',
    table: { header: 2, columns: { [name]: 1 } },
  });
  const text = 'Device v2\nx,y\n1,2\nend\n';

  test.each([['Device v2'], ['/v\\d$/'], [['v9', 'end']], [4], [-1]])(
    'requires a line that matches %j',
    async (when) => {
      const record = await read(text, [mapping('Device v1', 'old'), mapping(when, 'mine')]);
      expect(Object.keys(rows(record)[0] ?? {})).toContain('mine');
    },
  );

  test('is checked before everything else in the mapping', async () => {
    const wrong: ParseMapping = { when: 'v1', delimiter: ',', limits: { rows: 1 }, table: { header: 2 } };
    expect(rows(await read(text, [wrong, mapping('Device', 'mine')]))).toHaveLength(2);
  });

  test('ignores the quotes of a first cell', async () => {
    expect(meta(await read('"Run 7",x\n', { when: 'Run', delimiter: ',', meta: { line: 1, cells: ['run'] } }))).toEqual(
      {
        run: 'Run 7',
      },
    );
  });

  test('a single mapping refuses a file without that line and names the nearest one', async () => {
    const error = await refusal(text, mapping('Device v3', 'x'));
    expect(error.message).toBe('no line matches `when: Device v3`');
    expect(error.hint).toBe('did you mean `when: "Device v2"`?');
  });

  test('searches the lines of sheets in a workbook', async () => {
    const book = utils.book_new();
    utils.book_append_sheet(book, utils.aoa_to_sheet([['Notes']]), 'First');
    utils.book_append_sheet(book, utils.aoa_to_sheet([['Device v2'], ['x', 'y'], [1, 2]]), 'Second');
    const bytes: Uint8Array = write(book, { type: 'buffer', bookType: 'xlsx' });
    const sheet = (when: string): ParseMapping => ({ when, table: { sheet: 2, header: 'x' } });
    expect(rows(await read(bytes, [NEW, sheet('Device v1'), sheet('Device v2')]))).toEqual([{ x: 1, y: 2 }]);
    expect((await refusal(bytes, sheet('Device v3'))).hint).toContain('"Device v2"');
  });

  test('does not match binary files', async () => {
    const bytes = Uint8Array.from({ length: 4000 }, (_, n) => (n * 7919) % 256);
    const error = await refusal(bytes, [mapping('Device', 'x'), NEW]);
    expect(error.message).toContain('none of the 2 alternatives');
  });
});
