import iconv from 'iconv-lite';
import { type Random, seeded } from '../support/random.js';

/*
 * Files as instruments could write them, in random layouts, with what a correct reading of them yields. No file of a
 * real instrument is behind them, so that reading cannot be tuned to them.
 */

/** A value of a fact or cell: null if the file marks it as missing. */
export type Truth = string | number | null;

export interface TrueFact {
  readonly name: string;
  /** As written, with its unit. */
  readonly text: string;
  readonly value: Truth;
  readonly unit: string | undefined;
}

export interface TrueColumn {
  readonly name: string;
  readonly unit: string | undefined;
  readonly values: readonly Truth[];
}

export interface Generated {
  readonly bytes: Buffer;
  readonly text: string;
  readonly extension: string;
  readonly facts: readonly TrueFact[];
  readonly tables: readonly (readonly TrueColumn[])[];
  /** The day of the run; undefined if the file does not say it. */
  readonly date: string | undefined;
  /** Of the file, without its extension; `run` by default. */
  readonly name?: string | undefined;
}

interface Style {
  readonly random: Random;
  /** Undefined for columns of fixed width. */
  readonly delimiter: string | undefined;
  readonly decimal: '.' | ',';
  readonly pairs: PairStyle;
  readonly units: UnitStyle;
  readonly hasTrailing: boolean;
}

const PAIRS = ['colon', 'equals', 'cell', 'colon cell', 'comment', 'section'] as const;
type PairStyle = (typeof PAIRS)[number];
const UNITS = ['(', '[', 'row', 'none'] as const;
type UnitStyle = (typeof UNITS)[number];
const ENCODINGS = ['utf8', 'utf8', 'utf8 bom', 'utf16le', 'windows-1252'] as const;
const NEWLINES = ['\n', '\n', '\r\n', '\r\n', '\r'] as const;
const MISSING = ['N/A', 'OVRFLW', 'NaN'] as const;

export const pick = <T>({ below }: Random, list: readonly T[]): T => list[below(list.length)] as T;

export const some = <T>(random: Random, list: readonly T[], count: number): T[] => {
  const left = [...list];
  return Array.from({ length: Math.min(count, list.length) }, () => left.splice(random.below(left.length), 1)[0] as T);
};

const WORDS = ['Ada', 'buffer', 'blank', 'Meier', 'caffeine', 'lysozyme', 'Müller', 'north lab', 'run in', 'PBS'];
const TEXT_FACTS = [
  'Operator',
  'Sample',
  'Method',
  'Instrument',
  'Project',
  'Comment',
  'Detector',
  'Buffer',
  'Software',
];
const CODE_FACTS = ['Serial', 'Sample ID', 'Batch', 'Lot number'];
const NUMBER_FACTS: readonly (readonly [string, string, number])[] = [
  ['Volume', 'µL', 200],
  ['Temperature', '°C', 40],
  ['Scan speed', 'nm/min', 400],
  ['Path length', 'mm', 10],
  ['Flow rate', 'mL/min', 2],
  ['Lamp current', 'mA', 300],
  ['Weight', 'mg', 50],
];
const COUNT_FACTS = ['Replicates', 'Channels', 'Averages', 'Gain'];
const COLUMNS: readonly (readonly [string, string, number])[] = [
  ['Absorbance', 'AU', 3],
  ['Intensity', 'counts', 60_000],
  ['Current', 'mA', 20],
  ['Potential', 'V', 2],
  ['Mass', 'mg', 40],
  ['Pressure', 'kPa', 120],
  ['Heat flow', 'mW', 8],
  ['Viscosity', 'mPa·s', 90],
  ['Signal', 'mV', 500],
];
const AXES: readonly (readonly [string, string])[] = [
  ['Time', 's'],
  ['Wavelength', 'nm'],
  ['Temperature', '°C'],
  ['Distance', 'mm'],
];
const DATE_NAMES = ['Date', 'Run date', 'Acquired', 'Measured on', 'Date of measurement', 'Start time'];
const OTHER_DATES = ['Last calibration', 'Method modified', 'Expiry date', 'Calibration valid until'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
export const two = (n: number): string => String(n).padStart(2, '0');

type WriteDate = (y: number, m: number, d: number) => string;
/** Those that can be read in one way only, whatever the day. */
const CLEAR_DATES: readonly WriteDate[] = [
  (y, m, d) => `${y}-${two(m)}-${two(d)}`,
  (y, m, d) => `${y}/${two(m)}/${two(d)}`,
  (y, m, d) => `${two(d)}-${MONTHS[m - 1]}-${y}`,
  (y, m, d) => `${MONTHS[m - 1]} ${d}, ${y}`,
  (y, m, d) => `${d} ${MONTHS[m - 1]} ${y}`,
];
/** Those whose order only the day shows, if it is after the 12th. */
const ORDERED_DATES: readonly WriteDate[] = [
  (y, m, d) => `${two(d)}.${two(m)}.${y}`,
  (y, m, d) => `${two(d)}/${two(m)}/${y}`,
  (y, m, d) => `${m}/${d}/${y}`,
];
const TIMES = [
  () => '',
  ({ below }: Random) => ` ${two(below(24))}:${two(below(60))}:${two(below(60))}`,
  ({ below }: Random) => ` ${two(below(24))}:${two(below(60))}`,
];

/** One file. The same seed always gives the same bytes. */
export function generate(seed: number): Generated {
  const random = seeded(seed);
  const delimiter = pick(random, [',', ';', '\t', '\t', undefined, ',']);
  const decimal = delimiter !== ',' && random.chance(0.25) ? ',' : '.';
  const style: Style = {
    random,
    delimiter,
    decimal,
    pairs: pick(random, PAIRS),
    units: pick(random, UNITS),
    hasTrailing: delimiter !== undefined && random.chance(0.1),
  };
  const head = random.chance(0.85) ? preamble(style) : { lines: [], facts: [], date: undefined };
  const body = pick(random, [longTable, longTable, longTable, wideTable, plate, blocks, twoTables])(style);
  const lines = [...head.lines, ...(head.lines.length > 0 && random.chance(0.8) ? [''] : []), ...body.lines];
  if (random.chance(0.25)) lines.push('', pick(random, ['End of data', '*** end of report ***', 'Signed: nobody']));
  const text = `${lines.join('\n')}\n`;
  const newline = pick(random, NEWLINES);
  const bytes = encode(text.replaceAll('\n', newline), pick(random, ENCODINGS));
  return { bytes, text, extension: pick(random, ['txt', 'csv', 'dat']), ...head, tables: body.tables };
}

function encode(text: string, encoding: (typeof ENCODINGS)[number]): Buffer {
  if (encoding === 'utf8') return Buffer.from(text);
  if (encoding === 'windows-1252') return iconv.encode(text, encoding);
  return iconv.encode(text, encoding === 'utf16le' ? 'utf16le' : 'utf8', { addBOM: true });
}

function preamble(style: Style) {
  const { random } = style;
  const pairs: { readonly fact: TrueFact; readonly name: string; readonly text: string }[] = [];
  const add = (name: string, value: Truth, text: string, unit?: string, written = name) =>
    pairs.push({ fact: { name, text, value, unit }, name: written, text });
  for (const name of some(random, TEXT_FACTS, 1 + random.below(4))) {
    const value = some(random, WORDS, 1 + random.below(2)).join(' ');
    add(name, value, value);
  }
  for (const name of some(random, CODE_FACTS, random.below(3))) {
    const value = `${pick(random, ['00', 'SN-', 'B'])}${1000 + random.below(9000)}`;
    add(name, value, value);
  }
  for (const [name, unit, max] of some(random, NUMBER_FACTS, random.below(4))) {
    const { value, text } = number(style, max);
    if (random.chance(0.5)) add(name, value, `${text} ${unit}`, unit);
    else add(name, value, text, unit, `${name} (${unit})`);
  }
  for (const name of some(random, COUNT_FACTS, random.below(3))) {
    const value = 1 + random.below(16);
    add(name, value, String(value));
  }
  const date = random.chance(0.8) ? writeDate(style, pick(random, DATE_NAMES)) : undefined;
  const other = random.chance(0.25)
    ? writeDate(style, pick(random, date ? [...OTHER_DATES, 'Printed'] : OTHER_DATES), 2019)
    : undefined;
  const dates = [date, other].flatMap((each) => (each ? [{ fact: undefined, ...each }] : []));
  const all = some(random, [...pairs, ...dates], pairs.length + dates.length);
  return { lines: layOut(all, style), facts: pairs.map(({ fact }) => fact), date: date?.day };
}

function writeDate({ random }: Style, name: string, firstYear = 2021) {
  const [y, m] = [firstYear + random.below(2), 1 + random.below(12)];
  const isClear = random.chance(0.6);
  const d = isClear || random.chance(0.15) ? 1 + random.below(28) : 13 + random.below(16);
  const text = pick(random, isClear ? CLEAR_DATES : ORDERED_DATES)(y, m, d) + pick(random, TIMES)(random);
  return { name, text, day: `${y}-${two(m)}-${two(d)}` };
}

function layOut(pairs: readonly { readonly name: string; readonly text: string }[], style: Style): string[] {
  const { random, delimiter = '  ' } = style;
  const join: Record<PairStyle, (name: string, text: string) => string> = {
    colon: (name, text) => `${name}: ${text}`,
    equals: (name, text) => `${name}=${text}`,
    cell: (name, text) => [name, quoted(text, delimiter)].join(delimiter),
    'colon cell': (name, text) => [`${name}:`, quoted(text, delimiter)].join(delimiter),
    comment: (name, text) => `# ${name}: ${text}`,
    section: (name, text) => `${name}=${text}`,
  };
  // Words separated by blanks alone are no pairs.
  const pairStyle = style.delimiter === undefined && style.pairs.endsWith('cell') ? 'colon' : style.pairs;
  const lines = pairs.map(({ name, text }) => join[pairStyle](name, text));
  const half = Math.ceil(lines.length / 2);
  if (pairStyle === 'section') return ['[Header]', ...lines.slice(0, half), '', '[Settings]', ...lines.slice(half)];
  return random.chance(0.2) ? [pick(random, ['Measurement report', 'Export 2.1', 'RAW DATA']), ...lines] : lines;
}

const quoted = (text: string, delimiter: string): string =>
  delimiter.trim() !== '' && text.includes(delimiter) ? `"${text}"` : text;

function number({ random, decimal }: Style, max: number): { value: number; text: string } {
  const places = max > 1000 ? 0 : 1 + random.below(4);
  const text = (random.next() * max).toFixed(places);
  // A single zero or a number of three places after the comma could be read in two ways.
  return { value: Number(text), text: text.replace('.', decimal) };
}

interface Body {
  readonly lines: readonly string[];
  readonly tables: readonly (readonly TrueColumn[])[];
}

interface Written {
  readonly name: string;
  readonly unit: string | undefined;
  readonly cells: readonly { readonly value: Truth; readonly text: string }[];
}

const column = (name: string, unit: string | undefined, cells: Written['cells']): Written => ({ name, unit, cells });

/** Numbers with the same number of decimals, some of them missing. */
function readings(style: Style, name: string, unit: string | undefined, max: number, rows: number): Written {
  const { random, decimal } = style;
  const places = max > 1000 ? 0 : 1 + random.below(4);
  const missing = random.chance(0.1) ? pick(random, MISSING) : undefined;
  const cells = Array.from({ length: rows }, (_, n) => {
    if (missing !== undefined && n > 0 && random.chance(0.1)) return { value: null, text: missing };
    const text = (random.next() * max - (random.chance(0.1) ? max / 10 : 0)).toFixed(places);
    return { value: Number(text), text: text.replace('.', decimal) };
  });
  return column(name, unit, cells);
}

function axis({ random, decimal }: Style, [name, unit]: readonly [string, string], rows: number): Written {
  const step = pick(random, [1, 0.5, 2, 0.25, 10]);
  const start = random.below(300);
  const places = step < 1 ? 2 : pick(random, [0, 1]);
  const cells = Array.from({ length: rows }, (_, n) => {
    const text = (start + n * step).toFixed(places);
    return { value: Number(text), text: text.replace('.', decimal) };
  });
  return column(name, unit, cells);
}

function measuredColumns(style: Style, rows: number): Written[] {
  const { random } = style;
  const isSampled = random.chance(0.4);
  const samples = Array.from({ length: rows }, (_, n) => `S-${two(n + 1)}`).map((text) => ({ value: text, text }));
  const first = isSampled ? column('Sample', undefined, samples) : axis(style, pick(random, AXES), rows);
  const units = style.units === 'none' ? () => undefined : (unit: string) => unit;
  const own = isSampled ? first : column(first.name, units(first.unit ?? ''), first.cells);
  const others = some(random, COLUMNS, 1 + random.below(4));
  return [own, ...others.map(([name, unit, max]) => readings(style, name, units(unit), max, rows))];
}

function longTable(style: Style): Body {
  const columns = measuredColumns(style, 4 + style.random.below(30));
  return { lines: writeTable(columns, style), tables: [truthOf(columns)] };
}

function blocks(style: Style): Body {
  const { random } = style;
  const first = measuredColumns(style, 4 + random.below(8));
  const title = pick(random, ['Segment', 'Curve', 'Cycle', 'Scan']);
  const parts = Array.from({ length: 2 + random.below(3) }, (_, n) => {
    if (n === 0) return first;
    return first.map((each, at) => {
      const [, , max = 10] = COLUMNS.find(([name]) => name === each.name) ?? [];
      return at === 0 ? each : { ...readings(style, each.name, each.unit, max, each.cells.length) };
    });
  });
  const lines = parts.flatMap((part, n) => [...(n > 0 ? [''] : []), `${title} ${n + 1}`, ...writeTable(part, style)]);
  return { lines, tables: parts.map(truthOf) };
}

function twoTables(style: Style): Body {
  const one = measuredColumns(style, 5 + style.random.below(10));
  const peaks = Array.from({ length: 3 + style.random.below(5) }, (_, n) => ({ value: n + 1, text: String(n + 1) }));
  const rest = ['Height', 'Area', 'Width'].map((name) => readings(style, name, undefined, 90, peaks.length));
  const two = [column('Peak', undefined, peaks), ...rest];
  const lines = [...writeTable(one, style), '', 'Peak table', ...writeTable(two, { ...style, units: 'none' })];
  return { lines, tables: [truthOf(one), truthOf(two)] };
}

/** A column for each sample. */
function wideTable(style: Style): Body {
  const rows = 6 + style.random.below(20);
  const first = axis(style, pick(style.random, AXES), rows);
  const count = 3 + style.random.below(6);
  const others = Array.from({ length: count }, (_, n) => readings(style, `Cell ${n + 1}`, undefined, 3, rows));
  const columns = [style.units === 'none' ? column(first.name, undefined, first.cells) : first, ...others];
  return { lines: writeTable(columns, style), tables: [truthOf(columns)] };
}

function plate(style: Style): Body {
  const { random, delimiter } = style;
  if (delimiter === undefined) return longTable(style);
  const [rows, width] = pick(random, [
    [8, 12],
    [4, 6],
    [2, 3],
  ] as const);
  const wells = readings(style, 'value', undefined, 3, rows * width).cells;
  const names = wells.map((_, n) => `${'ABCDEFGH'[Math.floor(n / width)]}${1 + (n % width)}`);
  const lines = [
    ['', ...Array.from({ length: width }, (_, n) => n + 1)].join(delimiter),
    ...Array.from({ length: rows }, (_, row) =>
      ['ABCDEFGH'[row], ...wells.slice(row * width, (row + 1) * width).map(({ text }) => text)].join(delimiter),
    ),
  ];
  const columns = [
    column(
      'well',
      undefined,
      names.map((text) => ({ value: text, text })),
    ),
    column('value', undefined, wells),
  ];
  return { lines, tables: [truthOf(columns)] };
}

const truthOf = (columns: readonly Written[]): TrueColumn[] =>
  columns.map(({ name, unit, cells }) => ({ name, unit, values: cells.map(({ value }) => value) }));

function writeTable(columns: readonly Written[], style: Style): string[] {
  const { units, delimiter, hasTrailing } = style;
  const close = units === '(' ? ')' : ']';
  const inHeader = units === '(' || units === '[';
  const header = columns.map(({ name, unit }) => (inHeader && unit ? `${name} ${units}${unit}${close}` : name));
  const hasRow = units === 'row' && columns.some(({ unit }) => unit !== undefined);
  const rows = Array.from({ length: columns[0]?.cells.length ?? 0 }, (_, n) =>
    columns.map(({ cells }) => cells[n]?.text ?? ''),
  );
  // With columns of fixed width, an empty unit cannot be seen.
  const unitRow = hasRow ? [columns.map(({ unit }) => unit ?? (delimiter === undefined ? '-' : ''))] : [];
  const all = [header, ...unitRow, ...rows];
  if (delimiter !== undefined) return all.map((cells) => cells.join(delimiter) + (hasTrailing ? delimiter : ''));
  const widths = columns.map((_, at) => 3 + Math.max(...all.map((cells) => cells[at]?.length ?? 0)));
  return all.map((cells) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('')
      .trimEnd(),
  );
}
