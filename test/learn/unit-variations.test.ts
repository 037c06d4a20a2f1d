import { expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import type { Random } from '../support/random.js';
import { chooseWays, shareOfComplete } from '../support/written-files.js';

/** A small table whose units are stated in many ways, beside letters and codes that are none. */

const WAYS = {
  delimiter: [',', ';', '\t'],
  place: ['round', 'square', 'comma', 'row', 'word', 'underscore', 'facts'],
  spelling: [0, 1, 2, 3],
  extra: ['none', 'hemisphere', 'flag', 'code', 'blocks'],
  isPadded: [false, false, true],
  rows: [4, 9],
} as const;
type Ways = { [K in keyof typeof WAYS]: (typeof WAYS)[K][number] };

const QUANTITIES = [
  ['Temperature', ['°C', 'Deg C', 'Celsius', 'degC']],
  ['Voltage', ['mV', 'Volts', 'milliVolts', 'V']],
  ['Pressure', ['kPa', 'millibar', 'PSI', 'Torr']],
  ['Humidity', ['%', 'Pct', 'percent', 'PERCENT']],
  ['Weight', ['mg', 'grams', 'Milligrams', 'kg']],
  ['Wavelength', ['nm', 'nanometers', 'microns', 'NANOMETERS']],
] as const;

/** A letter behind a name can be part of it: `Voltage V`. */
const isClear = (place: Ways['place'], unit: string): boolean =>
  !/word|underscore/.test(place) || !/^[A-Z]$/.test(unit);

function write(ways: Ways, random: Random) {
  const { delimiter, place } = ways;
  const first = random.below(QUANTITIES.length - 2);
  const own = QUANTITIES.slice(first, first + 3).map(([name, units]) => ({
    name: name as string,
    unit: units[ways.spelling],
  }));
  const written = own.map(({ name, unit }) => {
    const behindComma = delimiter === ',' ? `"${name}, ${unit}"` : `${name}, ${unit}`;
    const inName = { round: `${name} (${unit})`, square: `${name} [${unit}]`, comma: behindComma };
    return { ...inName, word: `${name} ${unit}`, underscore: `${name}_${unit}`, row: name, facts: name }[place];
  });
  const extra = {
    none: [],
    hemisphere: ['Latitude'],
    flag: ['Result'],
    code: ['Well'],
    blocks: own.map(({ name }) => name),
  }[ways.extra];
  const number = (max: number) => (random.next() * max).toFixed(2).padStart(ways.isPadded ? 7 : 0, '0');
  const others = { none: '', hemisphere: '48.25 N', flag: '7.1 H', code: '1E5', blocks: '' };
  const rows = Array.from({ length: ways.rows }, () => [
    ...own.map(() => number(90)),
    ...extra.map(() => (ways.extra === 'blocks' ? number(90) : others[ways.extra])),
  ]);
  const facts = place === 'facts' ? own.map(({ name, unit }) => `${name} Unit: ${unit}`) : [];
  const units = place === 'row' ? [['', ...own.map(({ unit }) => unit), ...extra.map(() => '')]] : [];
  const lines = [['No', ...written, ...extra], ...units, ...rows.map((cells, n) => [String(n + 1), ...cells])];
  const text = ['Operator: Ada', ...facts, '', ...lines.map((cells) => cells.join(delimiter))].join('\n');
  return { text: `${text}\n`, own, rows, ways };
}

function compare({ tables }: FileRecord, { own, rows, ways }: ReturnType<typeof write>) {
  const [table] = tables;
  const wrong: string[] = [];
  let isComplete = table !== undefined;
  for (const [n, { name, unit }] of own.entries()) {
    const column = table?.columns[n + 1];
    const isFound = column?.unit === unit && column?.name === name;
    if (column?.unit !== undefined && column.unit !== unit) wrong.push(`${name}: ${column.unit}, not ${unit}`);
    if (!isFound && isClear(ways.place, unit)) isComplete = false;
    for (const [at, cells] of rows.entries()) {
      const value = table?.rows[at]?.[n + 1]?.value;
      if (typeof value === 'number' && value !== Number(cells[n])) wrong.push(`${name}: ${value}, not ${cells[n]}`);
      if (typeof value !== 'number' && isFound) isComplete = false;
    }
  }
  const other = table?.columns[own.length + 1];
  const value = table?.rows[0]?.[own.length + 1]?.value;
  if (ways.extra !== 'blocks' && other?.unit !== undefined) wrong.push(`${other.name}: ${other.unit}, not none`);
  if (ways.extra === 'code' && typeof value === 'number') wrong.push(`${other?.name}: ${value} is a code`);
  return { wrong, isComplete };
}

test('units that are stated in any of many ways are not read wrongly, and nearly always completely', async () => {
  const share = await shareOfComplete(
    { seed: 5, count: 80 },
    (random) => write(chooseWays(WAYS, random), random),
    compare,
  );
  expect(share).toBeGreaterThan(0.9);
});
