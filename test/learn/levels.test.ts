import { describe, expect, test } from 'vitest';
import { columns, meta, read, refusal, rows } from '../support/reading.js';

/** Cycles, their steps and their records, as the function writes each line. */
function nested(write: (depth: number, cells: readonly (string | number)[]) => string): string[] {
  const lines = [
    write(0, ['Cycle ID', 'Charge(mAh)', 'Discharge(mAh)']),
    write(1, ['Step ID', 'Mode', 'Duration', 'Energy(mWh)']),
    write(2, ['Record ID', 'Time', 'Voltage(mV)', 'Current(mA)', 'Temp(°C)']),
  ];
  let [step, record] = [0, 0];
  for (const cycle of [1, 2]) {
    lines.push(write(0, [cycle, 100.5, 99.25]));
    for (const mode of ['Rest', 'Charge']) {
      lines.push(write(1, [++step, mode, '00:10:00', 30 + step]));
      for (const n of [0, 1, 2]) lines.push(write(2, [++record, `00:0${n}:00`, 3000 + record, 1.5, 25]));
    }
  }
  return lines;
}

const indented = (sign: string) => nested((depth, cells) => sign.repeat(depth) + cells.join(sign));

describe('rows within rows', () => {
  test.each([
    ['by empty cells before them', indented(',')],
    ['by tabs before them', indented('\t')],
    [
      'by quoted empty cells before them',
      nested((depth, cells) => [...Array(depth).fill(''), ...cells].map((cell) => `"${cell}"`).join()),
    ],
    [
      'by empty cells, in lines of equal length',
      nested((depth, cells) => [...Array(depth).fill(''), ...cells, '', '', '', ''].slice(0, 7).join()),
    ],
    ['by the number of cells', nested((_, cells) => cells.join(';'))],
    ['by the number of cells that are not empty', nested((_, cells) => [...cells, '', ''].slice(0, 5).join())],
    ['by a word at the start', nested((depth, cells) => `${['CYC', 'STEP', 'REC'][depth]},${cells.join()}`)],
  ])('are a table for each level, told apart %s', async (_, lines) => {
    const record = await read(lines.join('\n'));
    expect(record.tables.map(({ name, count }) => [name, count])).toEqual([
      ['readings', 12],
      ['Step ID', 4],
      ['Cycle ID', 2],
    ]);
    expect(rows(record)[11]).toMatchObject({ Cycle_ID: 2, Step_ID: 4, 'Record ID': 12, Voltage: 3012, Temp: 25 });
    expect(rows(record, 1)[2]).toMatchObject({ Cycle_ID: 2, 'Step ID': 3, Mode: 'Rest', Energy: 33 });
    expect(rows(record, 2)[1]).toMatchObject({ 'Cycle ID': 2, Charge: 100.5, Discharge: 99.25 });
    expect(record.unread).toEqual([]);
  });

  test('of which two are in one line hold the file', async () => {
    const [cycle = '', step = '', record = '', first = '', second = '', ...others] = indented(',');
    const merged = [cycle, step, record, `${first}${second}`, ...others];
    expect((await refusal(merged.join('\n'))).message).toMatch(/rows of several kinds are mixed/);
  });

  test('may follow facts, and each level may repeat its names', async () => {
    const lines = indented(',');
    const [cycle = '', step = '', record = '', ...data] = lines;
    const repeated = data.flatMap((line) =>
      line.startsWith(',,') ? [line] : line.startsWith(',') ? [step, line, record] : [cycle, line],
    );
    const read1 = await read(['Channel: 3-4', 'Operator: Ada', '', ...repeated].join('\n'));
    expect(meta(read1)).toEqual({ Channel: '3-4', Operator: 'Ada' });
    expect(read1.tables.map(({ count }) => count)).toEqual([12, 4, 2]);
    expect(columns(read1)).toEqual([
      'Cycle_ID',
      'Step_ID',
      'Record ID',
      'Time',
      'Voltage [mV]',
      'Current [mA]',
      'Temp [°C]',
    ]);
  });

  test('with a line that belongs to no level are not read', async () => {
    const lines = indented(',').toSpliced(8, 0, ',,,,,17.5,3');
    const { message, where } = await refusal(lines.join('\n'));
    expect(message).toContain('rows of several kinds are mixed');
    expect(where).toMatchObject({ line: 1 });
  });

  test('are not groups whose first cells are only written once', async () => {
    const text = 'Sample,Peak,Area\nA,1,2.5\n,2,3.5\n,3,1.5\nB,1,4.5\n,2,5.5\n';
    expect((await read(text)).tables.map(({ count }) => count)).toEqual([5]);
  });
});
