import iconv from 'iconv-lite';
import { type Random, seeded } from '../support/random.js';
import { type Generated, pick, some, type TrueColumn, type TrueFact, two } from './generate.js';

/*
 * Files whose facts are written in any of the ways that instruments have: one below the other, several on a line, beside
 * the rows, in tables of their own, with several dates of which one is that of the run.
 */

/** A fact before it is written: the number and the unit of a quantity are apart. */
interface Entry {
  readonly name: string;
  readonly text: string;
  readonly unit?: string;
  /** Undefined if it must stay a text. */
  readonly number?: number;
}

interface File {
  readonly random: Random;
  readonly sign: ',' | ';' | '\t' | '';
  readonly comma: boolean;
}

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

const TEXTS: readonly (readonly [names: string, values: string])[] = [
  ['Operator|User|Analyst|Operator Name|Bediener|Opérateur|測定者|操作员', 'Ada|R. Meier|lab 3|jdoe|Müller|M. Lefèvre'],
  [
    'Sample|Sample ID|Sample name|Specimen|Probe|Échantillon|試料名|样品名称',
    'Buffer A|QC-17|B-12/3|blank 2|Lösung 3|PBS pH 7.4',
  ],
  ['Method|Protocol|Assay|Methode|Méthode|メソッド|方法', 'fast scan|M-17|standard|overnight (8 h)|EN 15309|Übersicht'],
  ['Instrument|Model|Device|Gerät|装置|仪器', 'Alpha 200|BX-4|Meter 7|SpectraOne 3000'],
  [
    'Serial number|S/N|Serial No.|Instrument SN|Seriennummer',
    '0047|SN-00123|4711-0815|50.026.184|A1234567|001234567|20180412|12E5',
  ],
  ['Software version|Firmware|Version', '3.2.1|V2.10|1.04|4.0.12.3'],
  [
    'File|Data file|Method file|Raw data path',
    'C:\\Data\\run 7\\x.dat|D:\\methods\\fast.mth|run_0012.raw|\\\\srv\\share\\a.bin',
  ],
  ['Mode|Detector|Lamp state|Buffer|Project|Department', 'absorbance|UV/VIS|On|Tris-HCl|P-2041|R&D|Off'],
  ['Scan range|Range|Wavelength range', '200-800 nm|200 - 800 nm|1.5 to 3.0 V'],
  ['Dilution|Split ratio|Mixing ratio', '1:10|1:100|2:1'],
  ['Comment|Remarks|Note', 'second run after cleaning|ok|repeat, see book 4|cell was warm'],
  ['Batch|Lot|Lot No.|Order', '007|0815|B23-114|2024-17|00042'],
  ['Wavelengths|Filters', '400, 500, 600|FITC, DAPI'],
];
const QUANTITIES = (
  'Temperature|°C|90 Volume|µL|900 Flow_rate|mL/min|5 Weight|mg|60 Path_length|mm|20 Integration_time|ms|900 Slit_(exit)|nm|5 ' +
  'Lamp_current|mA|300 Humidity|%|100 Vacuum|mbar|1100 Voltage|V|12 Scan_speed|nm/min|400 Temp._set|°C|80 Stirrer|rpm|900 ' +
  'Run_time|min|60 Density|g/cm³|3'
)
  .split(' ')
  .map((each) => each.replace('_', ' ').split('|'));
const NUMBERS = 'No. of scans|Replicates|Gain|Gain (CH1)|Position|Lamp #2|pH|Averages|Points|Cycles'.split('|');

function entries({ random, comma }: File, count: number): Entry[] {
  const mark = (text: string) => (comma ? text.replace('.', ',') : text);
  const texts = some(random, TEXTS, Math.ceil(count / 2)).map(
    ([names, values]): Entry => ({
      ...{ name: pick(random, names.split('|')), text: pick(random, values.split('|')) },
    }),
  );
  const quantities = some(random, QUANTITIES, Math.floor(count / 3)).map(([name = '', unit = '', max]): Entry => {
    const number = Number((random.next() * Number(max)).toFixed(random.below(4)));
    return { ...{ name, unit, number }, text: mark(String(number)) };
  });
  const numbers = some(random, NUMBERS, Math.floor(count / 4)).map((name): Entry => {
    const number = 1 + random.below(40);
    return { ...{ name, number }, text: String(number) };
  });
  const rare: Entry[] = random.chance(0.15) ? [{ name: 'Total counts', text: '12345678901234567890' }] : [];
  if (random.chance(0.15)) rare.push({ name: 'Offset', text: mark('0012.50') });
  return some(random, [...texts, ...quantities, ...numbers, ...rare], 99);
}

/** Where the unit of a quantity is. */
type UnitPlace = 'behind' | 'round' | 'square' | 'comma' | 'cell';

/** The parts of a line, and the fact that it is. */
function part({ name, text, unit, number }: Entry, place: UnitPlace): { name: string; text: string; fact: TrueFact } {
  const value = number ?? text;
  if (unit === undefined) return { name, text, fact: { name, text, value, unit } };
  if (place === 'behind')
    return { name, text: `${text} ${unit}`, fact: { ...{ name, value, unit }, text: `${text} ${unit}` } };
  const written = { round: `${name} (${unit})`, square: `${name} [${unit}]`, comma: `${name}, ${unit}`, cell: name }[
    place
  ];
  return { name: written, text, fact: { name, text, value, unit } };
}

interface Block {
  readonly lines: readonly string[];
  readonly facts: readonly TrueFact[];
}

type Write = (name: string, text: string, width: number) => string;

/** One fact on a line. */
const LINES: Record<string, Write> = {
  colon: (name, text) => `${name}: ${text}`,
  spaced: (name, text) => `${name} : ${text}`,
  aligned: (name, text, width) => `${name.padEnd(width)}: ${text}`,
  rightAligned: (name, text, width) => `${name.padStart(width)}: ${text}`,
  colonWide: (name, text, width) => `${`${name}:`.padEnd(width + 3)}${text}`,
  equals: (name, text) => `${name} = ${text}`,
  tight: (name, text) => `${name}=${text}`,
  tightColon: (name, text) => `${name}:${text}`,
  colonTab: (name, text) => `${name}:\t${text}`,
  colonTabs: (name, text) => `${name}\t:\t${text}`,
  tab: (name, text) => `${name}\t${text}`,
  wide: (name, text, width) => `${name.padEnd(width + 3)}${text}`,
  arrow: (name, text) => `${name} -> ${text}`,
  pipe: (name, text) => `${name} | ${text}`,
  pipes: (name, text, width) => `| ${name.padEnd(width)} | ${text} |`,
  dots: (name, text, width) => `${name} ${'.'.repeat(width + 4 - name.length)} ${text}`,
  dotsColon: (name, text, width) => `${name}${'.'.repeat(width + 4 - name.length)}: ${text}`,
  brackets: (name, text) => `[${name}] ${text}`,
  bracketsEqual: (name, text) => `[${name}]=${text}`,
  angle: (name, text) => `<${name}> ${text}`,
  angleEqual: (name, text) => `<${name}>= ${text}`,
  quotes: (name, text) => `${name} "${text}"`,
  quotedValue: (name, text) => `${name}="${text}"`,
  quotedPair: (name, text) => `"${name}":"${text}"`,
  numbered: (name, text) => `- ${name}: ${text}`,
  bullet: (name, text) => `* ${name}: ${text}`,
  hash: (name, text) => `${name}# ${text}`,
  valueBang: (name, text) => `${text} ! ${name}`,
  valueHash: (name, text) => `${text}   # ${name}`,
  valueSemicolon: (name, text) => `${text} ; ${name}`,
  above: (name, text) => `${name}:\n${text}`,
  aboveBracket: (name, text) => `[${name}]\n${text}`,
  aboveIndent: (name, text) => `${name}:\n    ${text}`,
  dollar: (name, text) => `$${name}: ${text}`,
  at: (name, text) => `@${name}=${text}`,
};
/** In these, names have no signs or blanks. */
const SIMPLE = 'quotes hash dollar at angle brackets bracketsEqual angleEqual aboveBracket'.split(' ');

const asKey = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_|_$/g, '')
    .toUpperCase();

const quote = (text: string, sign: string): string => (sign !== '' && text.includes(sign) ? `"${text}"` : text);

function oneALine(file: File, own: readonly Entry[]): Block {
  const { random } = file;
  const form = pick(random, Object.keys(LINES));
  const place = pick(random, ['behind', 'behind', 'behind', 'round', 'square', 'comma'] as const);
  const isKey = SIMPLE.includes(form) && random.chance(0.8);
  let parts = own.map((entry) => {
    if (!isKey) return part(entry, SIMPLE.includes(form) || form.startsWith('value') ? 'behind' : place);
    return part({ ...entry, name: asKey(entry.name) }, 'behind');
  });
  if (form.startsWith('dots'))
    parts = parts.map((each) => ({
      ...each,
      name: each.name.replace(/\.$/, ''),
      fact: { ...each.fact, name: each.fact.name.replace(/\.$/, '') },
    }));
  const width = Math.max(...parts.map(({ name }) => name.length));
  const write = LINES[form] as Write;
  return {
    lines: parts.flatMap(({ name, text }) => write(name, text, width).split('\n')),
    facts: parts.map(({ fact }) => fact),
  };
}

/** In cells: name and value, perhaps with the unit or a type; padded to the width of the table, or not. */
function inCells(file: File, own: readonly Entry[]): Block {
  const { random } = file;
  const sign = file.sign === '' ? '\t' : file.sign;
  const form = pick(random, ['plain', 'plain', 'unit', 'unitBetween', 'padded', 'quoted', 'gap'] as const);
  const place =
    form === 'unit' || form === 'unitBetween' ? 'cell' : pick(random, ['behind', 'behind', 'round', 'square'] as const);
  const parts = own.map((entry) => ({ ...part(entry, place), unit: entry.unit ?? '' }));
  const lines = parts.map(({ name, text, unit }) => {
    const [key, value] = [quote(name, sign), quote(text, sign)];
    if (form === 'unit') return unit === '' ? `${key}${sign}${value}` : [key, value, unit].join(sign);
    if (form === 'unitBetween') return [key, unit, value].join(sign);
    if (form === 'padded') return `${key}${sign}${value}${sign.repeat(3)}`;
    if (form === 'gap') return `${key}${sign}${sign}${value}`;
    return form === 'quoted' ? `"${name}"${sign}"${text}"` : `${key}${sign}${value}`;
  });
  return { lines, facts: parts.map(({ fact }) => fact) };
}

/** Several pairs on a line. */
function severalALine(file: File, own: readonly Entry[]): Block {
  const { random } = file;
  const isSimple = ({ text }: Entry) => !/[,;:|=]/.test(text);
  const parts = own.filter(isSimple).map((entry) => part(entry, 'behind'));
  const rest = own.filter((entry) => !isSimple(entry)).map((entry) => part(entry, 'behind'));
  const between = pick(random, [', ', '; ', '    ', ' | ', '\t', ' / ']);
  const mark = pick(random, [': ', '=', ' = ', ':']);
  const count = 2 + random.below(3);
  const lines = range(Math.ceil(parts.length / count)).map((n) =>
    parts
      .slice(n * count, (n + 1) * count)
      .map(({ name, text }) => `${name}${mark}${text}`)
      .join(between),
  );
  lines.push(...rest.map(({ name, text }) => `${name}${mark}${text}`));
  return { lines, facts: [...parts, ...rest].map(({ fact }) => fact) };
}

/** Two columns of pairs: aligned, or in cells with a gap between them. */
function sideBySide(file: File, own: readonly Entry[]): Block {
  const { random, sign } = file;
  const parts = own.map((entry) => part(entry, 'behind'));
  const half = Math.ceil(parts.length / 2);
  const isCells = sign !== '' && random.chance(0.5);
  const colon = random.chance(0.7) ? ':' : '';
  const gap = random.chance(0.5) ? [''] : [];
  const left = parts.slice(0, half);
  const width = 6 + Math.max(...left.map(({ name, text }) => name.length + text.length));
  const lines = left.map((one, n) => {
    const other = parts[half + n];
    if (isCells) {
      const cells = [one, ...(other ? [other] : [])].map(({ name, text }) => [`${name}${colon}`, quote(text, sign)]);
      return cells.map((cell) => cell.join(sign)).join(gap.length > 0 ? sign.repeat(2) : sign);
    }
    return `${`${one.name}: ${one.text}`.padEnd(width)}${other ? `${other.name}: ${other.text}` : ''}`.trimEnd();
  });
  return { lines, facts: parts.map(({ fact }) => fact) };
}

/** A row of names above the row of their values. */
function namesAbove(file: File, own: readonly Entry[]): Block {
  const sign = file.sign === '' ? '\t' : file.sign;
  const parts = own.map((entry) => part(entry, 'round'));
  const row = (cells: readonly string[]) => cells.map((cell) => quote(cell, sign)).join(sign);
  const lines = [row(parts.map(({ name }) => name)), row(parts.map(({ text }) => text))];
  return { lines, facts: parts.map(({ fact }) => fact) };
}

const MONTHS: Record<string, string> = {
  en: 'January February March April May June July August September October November December',
  de: 'Januar Februar März April Mai Juni Juli August September Oktober November Dezember',
  fr: 'janvier février mars avril mai juin juillet août septembre octobre novembre décembre',
  es: 'enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre',
};
const RUN_NAMES = (
  'Acquired|Run date|Measurement date|Date|Date/Time|Measured on|Start time|Injection date|Acq. Date|Messdatum|' +
  'Datum|Date de mesure|測定日時|测量时间|Test date|Started|Analysis Date|Collection time|Timestamp|Scan started'
).split('|');
const OTHER_NAMES = (
  'Exported|Report printed|Last calibration|Method created|Calibration due|Approved|File created|Expiry date|Printed on|' +
  'Last saved|Exportiert|Kalibriert am|Método creado|Software build|Lamp installed|Next service|Method last modified|校正日|导出时间'
).split('|');

/** How a file writes dates, and whether that form shows the order of day and month by itself. */
const DATES: Record<string, (y: number, m: number, d: number, clock: string) => string> = {
  iso: (y, m, d, clock) => `${y}-${two(m)}-${two(d)} ${clock}`,
  isoT: (y, m, d, clock) => `${y}-${two(m)}-${two(d)}T${clock}`,
  offset: (y, m, d, clock) => `${y}-${two(m)}-${two(d)}T${clock}.250+01:00`,
  slashes: (y, m, d, clock) => `${y}/${two(m)}/${two(d)} ${clock}`,
  han: (y, m, d, clock) => `${y}年${m}月${d}日 ${clock}`,
  dotted: (y, m, d, clock) => `${two(d)}.${two(m)}.${y} ${clock}`,
  shortDots: (y, m, d) => `${d}.${m}.${y}`,
  dayFirst: (y, m, d, clock) => `${two(d)}/${two(m)}/${y} ${clock}`,
  monthFirst: (y, m, d, clock) => `${m}/${d}/${y} ${half(clock)}`,
  dashes: (y, m, d) => `${two(d)}-${two(m)}-${y}`,
  english: (y, m, d, clock) => `${MONTHS['en']?.split(' ')[m - 1]} ${d}, ${y} ${clock}`,
  short: (y, m, d, clock) => `${two(d)}-${MONTHS['en']?.split(' ')[m - 1]?.slice(0, 3)}-${y} ${clock}`,
  upper: (y, m, d) => `${two(d)}-${MONTHS['en']?.split(' ')[m - 1]?.slice(0, 3).toUpperCase()}-${y}`,
  german: (y, m, d, clock) => `${d}. ${MONTHS['de']?.split(' ')[m - 1]} ${y} ${clock}`,
  french: (y, m, d) => `${d} ${MONTHS['fr']?.split(' ')[m - 1]} ${y}`,
  spanish: (y, m, d, clock) => `${d} de ${MONTHS['es']?.split(' ')[m - 1]} de ${y} ${clock}`,
  ctime: (y, m, d, clock) =>
    `${weekday(y, m, d)} ${MONTHS['en']?.split(' ')[m - 1]?.slice(0, 3)} ${two(d)} ${clock} ${y}`,
  compact: (y, m, d, clock) => `${y}${two(m)}${two(d)} ${clock}`,
  stamp: (y, m, d, clock) => `${y}${two(m)}${two(d)}${clock.replaceAll(':', '')}`,
  fraction: (y, m, d, clock) => `${y}-${two(m)}-${two(d)} ${clock}.4071`,
  halfDay: (y, m, d, clock) => `${y}-${two(m)}-${two(d)} ${half(clock)}`,
  zone: (y, m, d, clock) => `${y}-${two(m)}-${two(d)} ${clock} CET`,
  epoch: (y, m, d, clock) => String(Date.parse(`${y}-${two(m)}-${two(d)}T${clock}Z`) / 1000),
  timeFirst: (y, m, d, clock) => `${clock} ${two(d)}/${MONTHS['en']?.split(' ')[m - 1]?.slice(0, 3)}/${y}`,
  twoDigits: (y, m, d, clock) => `${two(m)}/${two(d)}/${String(y).slice(2)} ${clock}`,
};
const OPEN = ['dayFirst', 'monthFirst', 'dashes', 'twoDigits'];

const half = (clock: string): string => {
  const [hour = 0, ...rest] = clock.split(':').map(Number);
  return `${hour % 12 || 12}:${rest.map(two).join(':')} ${hour < 12 ? 'AM' : 'PM'}`;
};
const weekday = (y: number, m: number, d: number): string =>
  'Sun Mon Tue Wed Thu Fri Sat'.split(' ')[new Date(Date.UTC(y, m - 1, d)).getUTCDay()] ?? '';

interface Dated {
  readonly entries: readonly Entry[];
  /** Lines that contain the date among words. */
  readonly sentence?: string;
  readonly footer?: string;
  readonly name?: string;
  /** Undefined if it cannot be known. */
  readonly day: string | undefined;
}

function dates({ random }: File): Dated {
  const form = pick(random, Object.keys(DATES));
  const write = DATES[form] as (typeof DATES)[string];
  const [y, m, d] = [2012 + random.below(13), 1 + random.below(12), 1 + random.below(28)];
  const clock = [random.below(24), random.below(60), random.below(60)].map(two).join(':');
  const others = some(random, OTHER_NAMES, random.below(3)).map((name) => ({
    ...{
      name,
      year: y + (/due|next|expiry/i.test(name) ? 1 : -1),
      month: 1 + random.below(12),
      day: 1 + random.below(28),
    },
  }));
  const isProven = !OPEN.includes(form) || [d, ...others.map(({ day }) => day)].some((day) => day > 12) || m === d;
  const day = isProven ? `${y}-${two(m)}-${two(d)}` : undefined;
  const otherEntries = others.map(
    (other): Entry => ({ name: other.name, text: write(other.year, other.month, other.day, '17:05:11') }),
  );
  const text = write(y, m, d, clock);
  const place = pick(random, [
    'fact',
    'fact',
    'fact',
    'fact',
    'fact',
    'apart',
    'sentence',
    'name',
    'none',
    'joined',
  ] as const);
  const list = (own: readonly Entry[]) => ({ entries: some(random, [...own, ...otherEntries], 9) });
  const name = pick(random, RUN_NAMES);
  const isNumber = form === 'epoch' || form === 'stamp';
  if (place === 'apart') {
    const [dayText, at] = [`${y}-${two(m)}-${two(d)}`, pick(random, [clock, half(clock)])];
    const prefix = pick(random, ['', 'Run ', 'Acq. ', 'Start ']);
    return {
      ...list([]),
      entries: [
        ...otherEntries,
        { name: `${prefix}Date`.trim(), text: dayText },
        { name: `${prefix}Time`.trim(), text: at },
      ],
      day: dayText,
    };
  }
  if (place === 'joined') {
    const dayText = `${y}-${two(m)}-${two(d)}`;
    return { ...list([]), sentence: `Date: ${dayText}    Time: ${clock}`, day: dayText };
  }
  if (place === 'sentence' && !isNumber) {
    const words = pick(random, [
      'Measured on @ by Ada',
      'Run started at @.',
      'Performed @',
      'Data acquired: @ (local time)',
      'Analysis of @',
    ]);
    return { ...list([]), sentence: words.replace('@', text), day };
  }
  if (place === 'name')
    return {
      ...list([]),
      name: pick(random, [
        `${y}-${two(m)}-${two(d)}_run7`,
        `run ${y}${two(m)}${two(d)}`,
        `${y}${two(m)}${two(d)}_${clock.replaceAll(':', '')}_a`,
      ]),
      day: `${y}-${two(m)}-${two(d)}`,
    };
  if (place === 'none') return { ...list([]), footer: `Printed: ${text}`, day: undefined };
  return {
    ...list([{ name, text }]),
    day: isNumber && !/date|time|stamp|acq|started|measured|datum|日時|时间/i.test(name) ? undefined : day,
  };
}

const COLUMNS =
  'Wavelength|nm Glucose|g/L Lactate|mmol/L Pressure|kPa Absorbance|mAU Torque|mN_m Signal|mV Current|µA Force|N'
    .split(' ')
    .map((each) => each.replace('_', ' ').split('|'));

/** A table, some of whose units may be facts. */
function writeTable({ random, sign, comma }: File) {
  const unitPlace = pick(random, ['(', '(', '[', 'row', 'none', 'fact'] as const);
  const rows = 4 + random.below(12);
  const columns = some(random, COLUMNS, 2 + random.below(2)).map(
    ([name = '', unit]): TrueColumn => ({
      ...{ name, unit: unitPlace === 'none' ? undefined : unit },
      values: range(rows).map(() => Number((random.next() * 90 + 1).toFixed(3))),
    }),
  );
  const time: TrueColumn = {
    name: 'Time',
    unit: unitPlace === 'none' ? undefined : 's',
    values: range(rows).map((n) => n * 5),
  };
  const all = [time, ...columns];
  const line = (cells: readonly string[]) =>
    sign === '' ? cells.map((cell, n) => (n === 0 ? cell.padEnd(18) : cell.padStart(18))).join('') : cells.join(sign);
  const header = all.map(({ name, unit }) =>
    unitPlace === '(' ? `${name} (${unit})` : unitPlace === '[' ? `${name} [${unit}]` : name,
  );
  const decimal = (value: unknown) => (comma ? String(value).replace('.', ',') : String(value));
  const lines = [
    line(header),
    ...(unitPlace === 'row' ? [line(all.map(({ unit = '' }) => unit))] : []),
    ...range(rows).map((n) => line(all.map(({ values }) => decimal(values[n])))),
  ];
  const facts: Entry[] =
    unitPlace === 'fact'
      ? all.map(({ name, unit = '' }) => ({ name: `${name} ${pick(random, ['Units', 'Unit'])}`, text: unit }))
      : [];
  return { lines, columns: all, facts };
}

const ENCODINGS = 'utf8|utf8|utf8|utf8 bom|windows-1252|utf-16le|utf-16le bom|cp437|shift_jis|gbk'.split('|');

function encode(text: string, random: Random): Buffer {
  const encoding = pick(random, ENCODINGS);
  const [name = 'utf8', bom] = encoding.split(' ');
  const bytes = iconv.encode(bom ? `\ufeff${text}` : text, name);
  const language = /[\u3040-\u30ff測時]/.test(text) ? 'shift_jis' : /[\u4e00-\u9fff]/.test(text) ? 'gbk' : '';
  const isFit =
    iconv.decode(bytes, name) === text && (!/jis|gbk/.test(name) || (name === language && !/[à-öø-ÿ]/i.test(text)));
  return isFit || bom ? bytes : Buffer.from(text);
}

const TITLES = 'SpectraOne 3000 Report|=== Results ===|Photometer run report|DATA FILE|ACME Analytics'.split('|');
const HEADINGS =
  '[Header]|Sample information|--- Instrument ---|Parameters:|[Acquisition]|*** Setup ***|INSTRUMENT SETTINGS'.split(
    '|',
  );

export function generateHead(seed: number): Generated {
  const random = seeded(seed);
  const sign = pick(random, [',', ';', '\t', '\t', ''] as const);
  const file: File = { random, sign, comma: sign !== ',' && random.chance(0.2) };
  const dated = dates(file);
  const table = writeTable(file);
  const all = [...entries(file, 6 + random.below(7)), ...dated.entries, ...table.facts];
  const known = new Set<string>();
  const unique = some(random, all, 99).filter(
    ({ name }) => !known.has(name.toLowerCase()) && known.add(name.toLowerCase()),
  );
  const count = 1 + random.below(2);
  const size = Math.ceil(unique.length / count);
  const hasHeadings = random.chance(0.35);
  const blocks = range(count).map((n) => {
    const own = unique.slice(n * size, (n + 1) * size);
    const write = pick(random, [
      oneALine,
      oneALine,
      oneALine,
      oneALine,
      inCells,
      inCells,
      severalALine,
      sideBySide,
      namesAbove,
    ]);
    const block = write(file, own);
    return hasHeadings ? { ...block, lines: [pick(random, HEADINGS), ...block.lines] } : block;
  });
  const sentence = dated.sentence === undefined ? [] : [dated.sentence];
  const title = random.chance(0.4) ? [pick(random, TITLES), ...(random.chance(0.5) ? [''] : [])] : [];
  const below = count > 1 && random.chance(0.3) ? blocks.splice(1) : [];
  const mark = random.chance(0.15) ? pick(random, ['# ', '; ', '% ', '// ', '#']) : '';
  const gap = random.chance(0.6) || mark === '' ? [''] : [];
  const head = blocks.flatMap(({ lines }, n) => [...(n > 0 && random.chance(0.7) ? [''] : []), ...lines]);
  const top = [...title, ...(random.chance(0.5) ? [...sentence, ...head] : [...head, ...sentence])];
  const footer = [
    ...(dated.footer === undefined ? [] : [dated.footer]),
    ...(random.chance(0.15)
      ? [pick(random, ['Page 1 of 1', 'End of report', '*** END ***', 'Signature: ____________'])]
      : []),
  ];
  const lines = [
    ...top.map((line) => (line === '' ? line : mark + line)),
    ...gap,
    ...table.lines,
    ...(below.length > 0 ? ['', ...below.flatMap((block) => block.lines)] : []),
    ...(footer.length > 0 ? ['', ...footer] : []),
  ];
  const text = `${lines.join(pick(random, ['\n', '\r\n']))}\n`;
  return {
    ...{
      bytes: encode(text, random),
      text,
      extension: pick(random, ['txt', 'csv', 'dat']),
      name: dated.name,
    },
    ...{ facts: [...blocks, ...below].flatMap(({ facts }) => facts), tables: [table.columns], date: dated.day },
  };
}
