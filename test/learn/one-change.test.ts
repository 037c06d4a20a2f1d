import { expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { findUnused } from '../../src/map/omissions.js';
import type { FileRecord } from '../../src/model.js';
import { seeded } from '../support/random.js';
import { read } from '../support/reading.js';
import { chooseWays } from '../support/written-files.js';

/**
 * A plain file in which one thing is as some instruments write it: a unit row that is shifted, a row that was cut, a
 * second table. No value may appear under another name, with another unit or in another row, unless the run is held.
 */

const WAYS = {
  delimiter: [',', ';', '\t', 'wide', 'narrow'],
  mark: ['.', '.', ','],
  units: ['none', 'brackets', 'row'],
  hasFacts: [true, false],
  first: ['Sample', 'Time', 'No', 'Date'],
  length: [4, 9],
  columns: [2, 4],
} as const;
type Ways = { [K in keyof typeof WAYS]: (typeof WAYS)[K][number] };

type Cells = string[];
interface Section {
  readonly title: string;
  readonly rows: Cells[];
}
interface File extends Ways {
  facts: Cells[];
  above: Cells[];
  header: Cells;
  unitRow: Cells | undefined;
  rows: Cells[];
  below: (Cells | string)[];
  /** Further readings, which belong together under a title. */
  other: Section | undefined;
  /** Of the text that was written. */
  edit: (lines: string[]) => string[];
}

const QUANTITIES = ['Glucose', 'Lactate', 'Torque', 'Flow'];
const UNITS = ['g/L', 'mmol/L', 'Nm', 'mL/min'];
const LABELS: Record<Ways['first'], (row: number) => string> = {
  Sample: (row) => `S-${101 + row}`,
  Time: (row) => `0:0${row}:30`,
  No: (row) => String(row + 1),
  Date: (row) => `2024-05-${14 + row}`,
};

function plain(ways: Ways, section = 0): File {
  const mark = ways.delimiter === ',' ? '.' : ways.mark;
  const names = QUANTITIES.slice(0, ways.columns);
  const digits = (row: number, n: number) =>
    ((n + 1) * 150 + row * 7.31 + section * 1000.1).toFixed(2).replace('.', mark);
  const named = names.map((name, n) => (ways.units === 'brackets' ? `${name} (${UNITS[n]})` : name));
  return {
    ...ways,
    mark,
    facts: ways.hasFacts
      ? [
          ['Operator', 'A. Smith'],
          ['Method', 'M-17 fast'],
          ['Gain', '80'],
        ]
      : [],
    above: [],
    header: [ways.first, ...named],
    unitRow: ways.units === 'row' ? ['', ...UNITS.slice(0, ways.columns)] : undefined,
    rows: Array.from({ length: ways.length }, (_, row) => [
      LABELS[ways.first](row),
      ...names.map((_n, n) => digits(row, n)),
    ]),
    below: [],
    other: undefined,
    edit: (lines) => lines,
  };
}

const isAligned = ({ delimiter }: Ways): boolean => delimiter === 'wide' || delimiter === 'narrow';
const middle = ({ rows }: File): number => Math.floor(rows.length / 2);
const replaceCell = (file: File, row: number, n: number, change: (cell: string) => string) =>
  file.rows.map((cells, at) => (at === row ? cells.map((cell, each) => (each === n ? change(cell) : cell)) : cells));
const second = (file: File): Cells[] => plain(file, 1).rows;

/** Each changes one thing. The values of the rows stay what they were. */
const CHANGES: Record<string, (file: File) => Partial<File>> = {
  'a name more than columns': ({ header }) => ({ header: [...header, 'Remark'] }),
  'a name less than columns': ({ header }) => ({ header: header.slice(0, -1) }),
  'a shifted unit row': ({ columns }) => ({ unitRow: UNITS.slice(0, columns) }),
  'groups of columns': ({ columns }) => ({
    above: [['', ...Array.from({ length: columns }, (_, n) => (n % 2 ? '' : `Group ${n}`))]],
  }),
  'a second line of names': ({ header }) => ({ above: [header.map((_, n) => (n === 0 ? '' : `Ch${n}`))] }),
  'a mean below': ({ rows, columns, mark }) => ({
    below: [['Mean', ...Array.from({ length: columns }, (_, n) => `${rows.length + n}${mark}77`)]],
  }),
  'a sentence below': () => ({ below: ['3 of 9 runs were repeated at 25 C'] }),
  'a count below': ({ rows }) => ({ below: [['Total', String(rows.length)]] }),
  'a blank in a number': (file) => ({
    rows: replaceCell(file, middle(file), 1, (cell) => `${cell[0]} ${cell.slice(1)}`),
  }),
  'decimal commas': (file) => ({ rows: file.rows.map((cells) => cells.map((cell) => cell.replace('.', ','))) }),
  'one decimal comma': (file) => ({ rows: replaceCell(file, middle(file), 1, (cell) => cell.replace('.', ',')) }),
  'a comment between rows': (file) => ({ rows: file.rows.toSpliced(middle(file), 0, ['# lamp changed at 12:30']) }),
  'an event between rows': (file) => ({ rows: file.rows.toSpliced(middle(file), 0, ['Event', 'valve 2 open']) }),
  'another block below': ({ mark }) => ({
    below: ['', ['Peak', 'Area', 'Height'], ['1', `7${mark}5`, `8${mark}5`], ['2', `7${mark}6`, `8${mark}6`]],
  }),
  'another block at once': ({ mark }) => ({
    below: [
      ['Peak', 'Area', 'Height'],
      ['1', `7${mark}5`, `8${mark}5`],
      ['2', `7${mark}6`, `8${mark}6`],
    ],
  }),
  'a cut row': () => ({ edit: (lines) => [...lines.slice(0, -1), (lines.at(-1) ?? '').trimEnd().slice(0, -3)] }),
  'a cut cell': () => ({ edit: (lines) => [...lines.slice(0, -1), (lines.at(-1) ?? '').replace(/\S+$/, '')] }),
  'another separator in a row': (file) => ({
    edit: (lines) =>
      lines.map((line, n) =>
        n === lines.length - 2 ? line.replace(isAligned(file) ? / +/ : file.delimiter, '\t') : line,
      ),
  }),
  'an empty cell': (file) => ({ rows: replaceCell(file, middle(file), 1, () => '') }),
  'an empty first cell': (file) => ({ rows: replaceCell(file, middle(file), 0, () => '') }),
  'a cell more in a row': (file) => ({
    rows: file.rows.map((cells, n) => (n === middle(file) ? [...cells, 'repeated'] : cells)),
  }),
  'the separator in a cell': (file) => ({
    rows: replaceCell(file, middle(file), 0, (cell) => (isAligned(file) ? `${cell} b` : `${cell}${file.delimiter}b`)),
  }),
  'the same names again': (file) => ({ other: { title: '', rows: second(file) } }),
  'a second table below a title': (file) => ({ other: { title: 'Calibration', rows: second(file) } }),
  'other order of the names': (file) => {
    const turn = ([label = '', ...others]: Cells) => [label, ...others.reverse()];
    return { below: ['', turn(file.header), ...second(file).map(turn)] };
  },
  'other units': (file) => ({ rows: replaceCell(file, middle(file), 1, (cell) => `${cell} mg`) }),
  thousands: (file) => ({
    rows: replaceCell(file, middle(file), 1, (cell) => `1${file.mark === '.' ? ',' : '.'}${cell}`),
  }),
  'a limit': (file) => ({ rows: replaceCell(file, middle(file), 1, (cell) => `<${cell}`) }),
  'a flag': (file) => ({ rows: replaceCell(file, middle(file), 1, (cell) => `${cell}*`) }),
  'an exponent': (file) => ({ rows: replaceCell(file, middle(file), 1, (cell) => `${cell}E+02`) }),
  'no names': () => ({ header: [] }),
  nothing: () => ({}),
};

/** Lines of words stay as they are. Cells are aligned below each other, or separated. */
function layOut(lines: readonly (string | Cells)[], { delimiter }: Ways): string[] {
  if (delimiter !== 'wide' && delimiter !== 'narrow')
    return lines.map((line) => (typeof line === 'string' ? line : line.join(delimiter)));
  const widths: number[] = [];
  for (const line of lines)
    if (typeof line !== 'string' && line.length > 1)
      for (const [n, { length }] of line.entries()) widths[n] = Math.max(widths[n] ?? 0, length);
  const gap = delimiter === 'wide' ? 3 : 1;
  const align = (cell: string, n: number) =>
    n === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[n] ?? 0) + gap);
  return lines.map((line) => (typeof line === 'string' ? line : line.map(align).join('').trimEnd()));
}

function write(file: File): string {
  const { facts, above, header, unitRow, rows, below, other } = file;
  const head = [...above, ...(header.length > 0 ? [header] : []), ...(unitRow ? [unitRow] : [])];
  const again = other ? ['', ...(other.title === '' ? [] : [other.title]), ...head, ...other.rows] : [];
  const lines = layOut([...head, ...rows, ...below, ...again], file);
  const pairs = facts.map(([name = '', value = '']) =>
    isAligned(file) ? `${name}: ${value}` : `${name}${file.delimiter}${value}`,
  );
  return `${file.edit([...pairs, ...(pairs.length > 0 ? [''] : []), ...lines]).join('\n')}\n`;
}

interface Reading {
  readonly name: string;
  readonly unit: string | undefined;
  readonly label: string;
  readonly section: number;
}

/** By value: all readings of the file, as they were before the change. */
function readingsOf(ways: Ways): Map<number, Reading> {
  const readings = new Map<number, Reading>();
  for (const section of [0, 1]) {
    const { rows, mark } = plain(ways, section);
    for (const [label = '', ...cells] of rows)
      for (const [n, cell] of cells.entries())
        readings.set(Number(cell.replace(mark, '.')), {
          ...{ name: QUANTITIES[n] ?? '', unit: ways.units === 'none' ? undefined : UNITS[n] },
          ...{ label, section },
        });
  }
  return readings;
}

/** What was read of a run that is not held. */
function mistakes(record: FileRecord, ways: Ways, text: string): string[] {
  const readings = readingsOf(ways);
  const labels = new Set([...readings.values()].map(({ label }) => label));
  const wrong: string[] = [];
  const written = new Set(text.match(/\d+[.,]\d+/g)?.map((each) => Number(each.replace(',', '.'))));
  const asFacts = [...record.meta].filter(([, { value }]) => typeof value === 'number' && readings.has(value));
  if (asFacts.length > 4) wrong.push(`${asFacts.length} readings are facts`);
  for (const { name: table, columns, rows } of record.tables) {
    const sections = new Set<string>();
    for (const row of rows) {
      const own = row.map(({ text: cell }) => cell.trim());
      for (const [n, cell] of row.entries()) {
        const { name = '', unit: common } = columns[n] ?? {};
        const quantity = QUANTITIES.find((each) => name.includes(each));
        if (typeof cell.value !== 'number' || cell.text === '') continue;
        const known = readings.get(cell.value);
        if (!known) {
          const isChanged = !written.has(cell.value) || /[*<E]/.test(cell.text);
          if (quantity !== undefined && isChanged && !isLike(cell.text, cell.value))
            wrong.push(`${cell.text} is read as ${cell.value}`);
          continue;
        }
        if (quantity !== undefined && quantity !== known.name) wrong.push(`${cell.text} is ${known.name}, not ${name}`);
        const unit = cell.unit ?? common;
        if (unit !== undefined && /^[a-z]+\/?[a-z]*$/i.test(unit) && unit !== known.unit && unit !== 'mg')
          wrong.push(`${cell.text}: ${unit}`);
        const label = own.find((each) => labels.has(each));
        if (label !== undefined && label !== known.label && !own.includes(known.label))
          wrong.push(`${cell.text} of ${known.label} is in ${label}`);
        if (!columns.some(({ name: each }) => each === 'section')) sections.add(`${known.section}`);
      }
    }
    if (sections.size > 1 && text.includes('Calibration')) wrong.push(`${table} has the rows of two tables`);
  }
  return wrong;
}

/** `1,234.5`, `150.00E+02` */
const isLike = (text: string, value: number): boolean =>
  [text, text.replace(',', ''), text.replace('.', '').replace(',', '.'), text.replace(',', '.')].some(
    (each) => Number(each.replace(/ mg$|\*$|^</, '')) === value,
  );

const isHeld = (record: FileRecord): boolean => findUnused(record) !== undefined;

async function readOf(text: string): Promise<FileRecord | undefined> {
  const record = await read(text, undefined, 'runs/scan.csv').catch((error: unknown) => {
    if (error instanceof FileError) return undefined;
    throw error;
  });
  return record && !isHeld(record) ? record : undefined;
}

test('numbers with decimal commas are not cut at commas that separate cells', async () => {
  const rows = ['0:30,150,00,300,12', '1:30,157,31,307,31', '2:30,164,62,314,60'];
  expect(await readOf(['Time,Glucose (g/L),Lactate (g/L)', ...rows, ''].join('\n'))).toBeUndefined();
});

test('units below names with single blanks between them do not join columns', async () => {
  const rows = [1, 2, 3, 4].map((n) => `0:0${n}:30  15${n}.00  30${n}.00 45${n}.00 60${n}.00`);
  const head = ['Time    Glucose Lactate Torque   Flow', '            g/L  mmol/L     Nm mL/min'];
  const record = await readOf([...head, ...rows, ''].join('\n'));
  expect(record?.tables[0]?.columns.map(({ unit }) => unit)).toEqual([undefined, ...UNITS]);
});

test('a semicolon before names is an empty cell and no comment mark', async () => {
  const record = await readOf(';Group;\nSample;Glucose;Lactate\n;g/L;Nm\nS1;1,5;2,5\nS2;1,6;2,6\nS3;1,7;2,7\n');
  expect(record?.tables[0]?.columns.map(({ unit }) => unit)).toEqual([undefined, 'g/L', 'Nm']);
});

test.each(Object.entries(CHANGES))('with %s, no value is read wrongly without a word', async (name, change) => {
  const random = seeded(name.length);
  for (let n = 0; n < 12; n++) {
    const base = plain(chooseWays(WAYS, random));
    const text = write({ ...base, ...change(base) });
    const record = await readOf(text);
    if (record) expect(mistakes(record, base, text), text).toEqual([]);
    else expect(name, text).not.toBe('nothing');
  }
});
