import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type ParseMapping, withDefaults } from '../../src/config/vocabulary.js';
import { parseRun } from '../../src/mapping/mapping.js';
import { readDate } from '../../src/parse/values/date.js';

const FOLDER = '/runs/s1.D';

/** Reads files as the parts of a run: a folder, or joined files, whose path is that of the first. */
function read(files: Readonly<Record<string, string>>, mapping?: ParseMapping | ParseMapping[], joined = false) {
  const parts = Object.entries(files).map(([within, text]) => ({
    ...{
      relativePath: within,
      path: `${FOLDER}/${within}`,
      name: basename(within),
      content: Buffer.from(text),
    },
  }));
  const path = joined ? (parts[0]?.path ?? '') : FOLDER;
  const alternatives = mapping === undefined ? undefined : [mapping].flat().map(withDefaults);
  return parseRun({ path, name: basename(path), content: Buffer.alloc(0), parts }, alternatives);
}

const CSV = 'Peak,Area\nA,12\n';
const table = { delimiter: ',', table: {} } satisfies ParseMapping;
const pairs = { delimiter: 'tab', meta: { separator: ':' } } satisfies ParseMapping;

describe('the main file of a run', () => {
  test('is the one that `main` matches, including in subfolders', async () => {
    const files = { 'a.csv': 'No,Good\n1,2\n', 'sub/report.csv': CSV };
    const { tables } = await read(files, { ...table, main: 'sub/*.csv' });
    expect(tables[0]?.columns.map(({ name }) => name)).toEqual(['Peak', 'Area']);
  });

  test('is the only file, the only one besides `also`, or the first joined file', async () => {
    expect((await read({ 'a.csv': CSV }, table)).tables[0]?.count).toBe(1);
    const files = { 'a.csv': CSV, 'info.txt': 'Sample: S1\n' };
    expect((await read(files, { ...table, also: { 'info.txt': pairs } })).meta.get('Sample')?.text).toBe('S1');
    expect((await read({ 'a.csv': CSV, 'a.txt': 'x' }, table, true)).tables[0]?.count).toBe(1);
  });

  test('is not guessed: several candidates are listed', async () => {
    const files = { 'a.csv': CSV, 'b.csv': CSV };
    await expect(read(files, table)).rejects.toThrow(/2 files, .* does not select one: a\.csv, b\.csv/);
    await expect(read(files)).rejects.toThrow(/does not select one/);
    await expect(read(files, { ...table, main: '*.csv' })).rejects.toThrow(/2 files of the run match `main`/);
    await expect(read(files, { ...table, main: '*.txt' })).rejects.toThrow(/no file of the run matches `main`/);
  });

  test('is measured without a mapping', async () => {
    const { tables } = await read({ 'a.csv': 'Peak,Area,RT\nA,12,1.5\nB,13,2.5\n', 'a.bin': '\0' }, undefined, true);
    expect(tables[0]?.count).toBe(2);
  });

  test('decides between alternatives', async () => {
    const mapping = [
      { ...table, main: 'old.csv' },
      { ...table, main: 'new.csv' },
    ];
    expect((await read({ 'new.csv': CSV, 'x.bin': '' }, mapping)).tables[0]?.count).toBe(1);
    await expect(read({ 'x.bin': '', 'y.bin': '' }, mapping)).rejects.toThrow(/none of the 2 alternatives/);
  });

  test('is not needed with `format: none`', async () => {
    const { meta } = await read(
      { 'a.bin': '\0', 'b.bin': '\0' },
      { format: 'none', meta: { in: 'name', match: '/^(?<sample>\\w+)/' } },
    );
    expect(meta.get('sample')?.text).toBe('s1');
  });
});

describe('further files of a run', () => {
  test('are found by the stem of the main file or by name, and their facts and tables are merged', async () => {
    const files = {
      'r[1].csv': `Sample: S1\n\n${CSV}`,
      'r[1].xml': '<run><Sample>S1</Sample><operator>Ada</operator></run>',
      'r1.xml': '<run/>',
      'sub/peaks.csv': 'Peak,RT\nA,1.5\nB,2.5\n',
    };
    const { meta, tables } = await read(files, {
      ...{ delimiter: ',', main: '*.csv', meta: { separator: ':' }, table: { after: 'blank' } },
      also: {
        '{stem}.xml': { format: 'xml', facts: { Sample: '//Sample', operator: '//operator' } },
        'sub/*.csv': [{ ...table, when: 'no such line' }, table],
      },
    });
    expect([...meta.keys()]).toEqual(['Sample', 'Sample (2)', 'operator']);
    expect(tables.map(({ name, count }) => [name, count])).toEqual([
      ['readings', 1],
      ['readings (2)', 2],
    ]);
  });

  test('that are missing or ambiguous quarantine the run', async () => {
    const also = (name: string) => ({ ...table, main: 'a.csv', also: { [name]: pairs } });
    const files = { 'a.csv': CSV, 'b.txt': 'x: 1\n', 'c.txt': 'x: 1\n' };
    await expect(read(files, also('{stem}.txt'))).rejects.toThrow(
      /no file of the run .* its files are a\.csv, b\.txt, c\.txt/,
    );
    await expect(read(files, also('*.txt'))).rejects.toThrow(/2 files of the run match `also/);
  });

  test('are named in their refusals', async () => {
    const files = { 'a.csv': CSV, 'a.xml': '<run>\n<x></run>' };
    await expect(
      read(files, { ...table, main: 'a.csv', also: { '{stem}.xml': { format: 'xml' } } }),
    ).rejects.toMatchObject({
      where: { file: `${FOLDER}/a.xml`, line: 2 },
    });
  });

  test('keep their own date format', async () => {
    const files = {
      'a.txt': 'Begun: 03/04/2026\nSame: 01/02/2026\n',
      'b.txt': 'Ended: 25.12.2026\nSame: 01/02/2026\nOther: 05/06/2026\n',
    };
    const { dates } = await read(files, {
      ...{ ...pairs, main: 'a.txt', dates: { format: 'dd/MM/yyyy' } },
      also: { 'b.txt': { ...pairs, dates: { format: ['dd.MM.yyyy', 'MM/dd/yyyy'] } } },
    });
    const day = (text: string) => {
      const read = readDate(text, dates ?? {});
      return read && 'iso' in read ? read.iso : read && 'two ways';
    };
    expect(day('03/04/2026')).toBe('2026-04-03');
    expect(day('25.12.2026')).toBe('2026-12-25');
    expect(day('01/02/2026')).toBe('two ways');
    expect(day('24.12.2026')).toBeUndefined();
  });
});
