import { expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import { chooseWays, shareOfComplete } from '../support/written-files.js';

/**
 * Small tables in many shapes: one to three of them, under titles or not, with units in several places, words between
 * rows, pages, groups, flags and missing values. No value is read under another name or with another unit.
 */

const WAYS = {
  delimiter: [',', ';', '\t', 'wide', 'narrow'],
  mark: ['.', '.', ','],
  isQuoted: [false, false, false, true],
  hasTrailing: [false, false, false, false, true],
  hasFacts: [true, false],
  tables: [1, 1, 2, 3],
  title: ['[]', ':', 'words', 'blank', 'count'],
  areAlike: [true, false],
  units: ['none', 'brackets', 'brackets', 'row', 'rowAndBlank', 'cells'],
  names: ['words', 'words', 'words', 'numbers', 'wavelengths', 'cornerless'],
  rows: [1, 2, 4, 9],
  columns: [2, 3, 5],
  first: ['Sample', 'Time', 'No', 'Date/Time', 'Well'],
  between: ['none', 'none', 'none', 'Pump on', '*** pause', '# lamp changed', 'page', 'group', 'mean'],
  flag: ['', '', '', ' H', '*', '<'],
  missing: ['none', 'none', 'none', '', 'n.d.', '---', 'N/A'],
} as const;
type Ways = { [K in keyof typeof WAYS]: (typeof WAYS)[K][number] };

const TITLES = ['Results', 'Peaks', 'Environment'];
const QUANTITIES = [
  ['Glucose|g/L', 'Lactate|mmol/L', 'Conductivity|mS/cm', 'Absorbance|AU', 'Flow|mL/min'],
  ['Area|mAU*s', 'Height|mAU', 'Width|min', 'Amount|ng/uL', 'Purity|%'],
  ['Temp|°C', 'Humidity|%', 'Torque|Nm', 'Speed|rpm', 'Load|N'],
].map((table) => table.map((each) => each.split('|') as [string, string]));
const FACTS = [
  ['Operator', 'A. Smith'],
  ['Method', 'M-17 fast'],
  ['Gain', '80'],
] as const;

const LABELS: Record<Ways['first'], (row: number) => string> = {
  Sample: (row) => `S-${101 + row}`,
  Time: (row) => (row / 2).toFixed(1),
  No: (row) => String(row + 1),
  'Date/Time': (row) => `2024-05-17 10:0${row}:00`,
  Well: (row) => `B${row + 1}`,
};

/** A value that occurs once in the file, and where it belongs. */
interface Expected {
  readonly value: number;
  readonly name: string;
  readonly unit: string | undefined;
}

type Cells = readonly string[];

/** Lines of words stay as they are. Cells are aligned below each other, or separated. */
function layOut(lines: readonly (string | Cells)[], { delimiter, isQuoted, hasTrailing }: Ways): string[] {
  const widths: number[] = [];
  for (const line of lines)
    if (typeof line !== 'string')
      for (const [n, { length }] of line.entries()) widths[n] = Math.max(widths[n] ?? 0, length);
  const gap = delimiter === 'wide' ? 3 : 1;
  const align = (cell: string, n: number) =>
    n === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[n] ?? 0) + gap);
  return lines.map((line) => {
    if (typeof line === 'string') return line;
    if (delimiter === 'wide' || delimiter === 'narrow') return line.map(align).join('').trimEnd();
    const cells = isQuoted ? line.map((cell) => `"${cell}"`) : line;
    return `${cells.join(delimiter)}${hasTrailing ? delimiter : ''}`;
  });
}

function write(ways: Ways, next: () => number) {
  const isAligned = ways.delimiter === 'wide' || ways.delimiter === 'narrow';
  const mark = ways.delimiter === ',' ? '.' : ways.mark;
  const expected: Expected[] = [];
  const used = new Set<number>();
  const draw = (column: number): number => {
    const value = Number((1 + column * 17 + next() * 16).toFixed(column % 2 ? 3 : 2));
    if (used.has(value)) return draw(column);
    used.add(value);
    return value;
  };
  const digits = (value: number, column: number) => value.toFixed(column % 2 ? 3 : 2).replace('.', mark);

  function table(set: number): (string | Cells)[] {
    const hasWords = ways.names === 'words' || ways.names === 'cornerless';
    const quantities = (QUANTITIES[set] ?? []).slice(0, ways.columns).map(([name, unit], n): [string, string] => {
      if (ways.names === 'numbers') return [String(n + 1), ''];
      return ways.names === 'wavelengths' ? [String(450 + 50 * n), ''] : [name, unit];
    });
    const units = hasWords ? ways.units : 'none';
    const corner = ways.names === 'cornerless' && ways.first !== 'Time' ? '' : ways.first;
    const inName = ([name, unit]: readonly [string, string]) => (units === 'brackets' ? `${name} [${unit}]` : name);
    const besideEach = (cells: Cells, beside: Cells) =>
      units === 'cells' ? cells.flatMap((cell, n) => [cell, beside[n] ?? '']) : cells;
    const header: (string | Cells)[] = [[corner, ...besideEach(quantities.map(inName), [])]];
    if (units === 'row' || units === 'rowAndBlank')
      header.push([isAligned ? '-' : '', ...quantities.map(([, unit]) => unit)]);
    if (units === 'rowAndBlank') header.push('');
    const lines = [...header];
    for (let row = 0; row < ways.rows; row++) {
      if (ways.between === 'group' && row % 4 === 0) lines.push(row % 8 ? 'Group B' : 'Group A');
      else if (ways.between === 'page' && row > 0 && row % 4 === 0) lines.push('', `Page ${row / 4 + 1}`, ...header);
      else if (/\W/.test(ways.between) && row > 0 && row === Math.floor(ways.rows / 2)) lines.push(ways.between);
      const isMissing = (n: number) =>
        row === 1 && n === 1 && ways.rows > 2 && ways.missing !== 'none' && !(ways.missing === '' && isAligned);
      const cells = quantities.map(([name, unit], n) => {
        if (isMissing(n)) return ways.missing;
        const value = draw(n);
        expected.push({ value, name, unit: units === 'none' ? undefined : unit });
        const text = digits(value, n);
        if (n > 0 || row % 3 !== 1 || (isAligned && ways.flag === ' H')) return text;
        return ways.flag === '<' ? `<${text}` : `${text}${ways.flag}`;
      });
      const beside = quantities.map(([, unit], n) => (isMissing(n) ? '' : unit));
      lines.push([LABELS[ways.first](row).replace('.', mark), ...besideEach(cells, beside)]);
    }
    if (ways.between === 'mean') {
      const means = quantities.map((_, n) => digits(500 + n, n));
      lines.push([
        'Mean',
        ...besideEach(
          means,
          quantities.map(([, unit]) => unit),
        ),
      ]);
    }
    return lines;
  }

  const facts = ways.hasFacts ? FACTS : [];
  const text = facts.map(([name, value]) => (isAligned ? `${name}: ${value}` : `${name}${ways.delimiter}${value}`));
  if (ways.hasFacts) text.push('');
  for (let n = 0; n < ways.tables; n++) {
    if (n > 0) text.push('');
    const title = TITLES[n] ?? '';
    if (ways.tables > 1 && ways.title !== 'blank')
      text.push(ways.title === ':' ? `${title}:` : ways.title === 'words' ? title : `[${title}]`);
    if (ways.tables > 1 && ways.title === 'count')
      text.push(`# of lines${isAligned ? '  ' : ways.delimiter}${ways.rows}`);
    text.push(...layOut(table(ways.areAlike ? 0 : n), ways));
  }
  return { text: `${text.join('\n')}\n`, facts, expected };
}

/** What was read wrongly, and whether all of it was found. */
function compare({ meta, tables }: FileRecord, { facts, expected }: ReturnType<typeof write>) {
  const wrong = facts.flatMap(([name, value]) => {
    const text = meta.get(name)?.text;
    return text === undefined || text === value ? [] : [`${name}: ${text}`];
  });
  let isComplete = facts.every(([name]) => meta.has(name));
  const byValue = new Map(expected.map((each) => [each.value, each]));
  const names = new Set(expected.map(({ name }) => name));
  // A single row without a name above its first cell is a fact.
  if ([...meta.values()].some(({ value }) => byValue.has(Number(value)))) isComplete = false;
  const found = new Set<number>();
  for (const { columns, rows } of tables)
    for (const row of rows)
      for (const [n, { value, text, unit = columns[n]?.unit }] of row.entries()) {
        const name = columns[n]?.name ?? '';
        const known = byValue.get(
          Number(typeof value === 'number' ? value : text.replace(/^<|\*$/g, '').replace(',', '.')),
        );
        if (!known || text === '') continue;
        found.add(known.value);
        if (name === known.name && unit !== undefined && unit !== '-' && unit !== known.unit)
          wrong.push(`${text} ${name}: ${unit}`);
        if (name !== known.name && names.has(name)) wrong.push(`${text} is ${known.name}, not ${name}`);
        if (name !== known.name && name !== `${known.name} text`) isComplete = false;
        if (name === known.name && unit === undefined && known.unit !== undefined) isComplete = false;
      }
  return { wrong, isComplete: isComplete && found.size === expected.length };
}

test('small tables of any of many shapes are not read wrongly, and mostly completely', async () => {
  const share = await shareOfComplete(
    { seed: 11, count: 80 },
    (random) => write(chooseWays(WAYS, random), random.next),
    compare,
  );
  expect(share).toBeGreaterThan(0.79);
});
