import { expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import { chooseWays, shareOfComplete } from '../support/written-files.js';

/**
 * One small file, written in many ways: a list of facts and a table, with other delimiters, names, units, padding and
 * ends. Whatever the combination, nothing is read wrongly, and nearly all are read completely.
 */

const WAYS = {
  delimiter: [',', ';', '\t', 'aligned'],
  mark: ['.', '.', ','],
  facts: ['none', 'delimited', 'colon', 'equals', 'padded', 'section', 'one'],
  isGapped: [true, false],
  head: ['words', 'units', 'unitRow', 'oneNumber', 'numbered', 'wavelengths', 'title'],
  first: ['Sample', 'Time', 'Date/Time', 'No', 'Well'],
  rows: [2, 3, 8],
  end: ['none', 'facts', 'words', 'mean', 'table'],
  missing: ['none', 'none', '', 'n.d.', '---'],
  isQuoted: [false, false, true],
  hasTrailing: [false, false, true],
  columns: [2, 3, 6],
} as const;
type Ways = { [K in keyof typeof WAYS]: (typeof WAYS)[K][number] };

const FACTS = [
  ['Operator', 'A. Smith'],
  ['Method', 'M-17 fast'],
  ['Serial number', 'SN48213'],
  ['Started', '2024-05-17 09:31:22'],
  ['Gain', '80'],
] as const;
const NAMES = ['Glucose', 'Lactate', 'Conductivity', 'Absorbance', 'Pressure', 'Flow'];
const UNITS = ['g/L', 'mmol/L', 'mS/cm', 'AU', 'kPa', 'mL/min'];
const WIDTH = 24;

const LABELS: Record<Ways['first'], (row: number) => string> = {
  Sample: (row) => `S-${101 + row}`,
  Time: (row) => (row / 2).toFixed(1),
  'Date/Time': (row) => `2024-05-17 10:0${row}:00`,
  No: (row) => String(row + 1),
  Well: (row) => `B${row + 1}`,
};

function write(ways: Ways, next: () => number) {
  const delimiter = ways.delimiter === 'aligned' ? undefined : ways.delimiter;
  const mark = delimiter === ',' ? '.' : ways.mark;
  const digits = (value: number, places: number) => value.toFixed(places).replace('.', mark);
  const line = (cells: readonly string[]): string =>
    delimiter === undefined
      ? cells.map((cell, n) => (n === 0 ? cell.padEnd(WIDTH) : cell.padStart(WIDTH))).join('')
      : `${cells.map((cell) => (ways.isQuoted ? `"${cell}"` : cell)).join(delimiter)}${ways.hasTrailing ? delimiter : ''}`;
  const fact = (name: string, value: string): string => {
    if (ways.facts === 'colon' || delimiter === undefined) return `${name}: ${value}`;
    if (ways.facts === 'equals') return `${name}=${value}`;
    return `${name}${delimiter}${value}${ways.facts === 'padded' ? delimiter.repeat(ways.columns - 1) : ''}`;
  };
  const facts = ways.facts === 'none' ? [] : FACTS.slice(0, ways.facts === 'one' ? 1 : FACTS.length);
  const lines = facts.map(([name, value]) => fact(name, value));
  if (ways.facts === 'section') lines.unshift('[Header]');
  if (ways.facts !== 'none' && ways.isGapped) lines.push('');
  if (ways.facts === 'section') lines.push('[Data]');
  if (ways.head === 'title') lines.push('Results');

  const quantities = NAMES.slice(0, ways.columns).map((name, n) => {
    if (ways.head === 'numbered') return String(n + 1);
    if (ways.head === 'wavelengths') return String(450 + 50 * n);
    return ways.head === 'oneNumber' && n === 1 ? '350' : name;
  });
  const units = ['', ...UNITS.slice(0, ways.columns)];
  const names = [ways.first, ...quantities];
  lines.push(line(ways.head === 'units' ? names.map((name, n) => (n > 0 ? `${name} (${units[n]})` : name)) : names));
  if (ways.head === 'unitRow') lines.push(line(units));
  const cells = Array.from({ length: ways.rows }, (_, row) =>
    names.map((_name, n) => {
      if (n === 0) return LABELS[ways.first](row).replace('.', mark);
      const isMissing = row === 1 && n === 1 && ways.rows > 2 && !(ways.missing === '' && delimiter === undefined);
      return isMissing && ways.missing !== 'none' ? ways.missing : digits(n * 7 + next() * 5, n % 2 ? 2 : 3);
    }),
  );
  lines.push(...cells.map(line));
  if (ways.end === 'facts') lines.push('', fact('Checked by', 'B. Jones'));
  if (ways.end === 'words') lines.push('End of data');
  if (ways.end === 'mean') lines.push(line(['Mean', ...quantities.map((_, n) => digits(n * 7 + 9.5, 2))]));
  if (ways.end === 'table') lines.push('', line(['Peak', 'Area']), line(['1', digits(120.5, 2)]));
  return { text: `${lines.join('\n')}\n`, facts, names, cells, mark };
}

/** What was read wrongly, and whether all of it was found. */
function compare(record: FileRecord, { facts, names, cells, mark }: ReturnType<typeof write>) {
  const known = facts.map(([name, value]) => [record.meta.get(name)?.text, value] as const);
  const wrong = known.filter(([text, value]) => text !== undefined && text !== value).map(String);
  let isComplete = known.every(([text]) => text !== undefined);
  const table = record.tables.find(({ columns }) => columns.some(({ name }) => name === names[1]));
  for (const [n, name] of names.entries()) {
    const at = table?.columns.findIndex((column) => column.name === name) ?? -1;
    if (!table || at < 0) isComplete = false;
    else
      for (const [row, written] of cells.entries()) {
        const expected = written[n] ?? '';
        const text = table.rows[row]?.[at]?.text.trim();
        const value = table.rows[row]?.[at]?.value;
        const isNumber = n > 0 && /^\d/.test(expected);
        if (text !== expected || (isNumber && value !== Number(expected.replace(mark, '.'))))
          wrong.push(`${name} of row ${row + 1}: ${text}, not ${expected}`);
      }
  }
  return { wrong, isComplete };
}

test('a small file in any of many forms is not read wrongly, and nearly always completely', async () => {
  const share = await shareOfComplete(
    { seed: 7, count: 80 },
    (random) => write(chooseWays(WAYS, random), random.next),
    compare,
  );
  expect(share).toBeGreaterThan(0.93);
});
