import { type CellObject, utils, write } from '@e965/xlsx';
import { type Random, seeded } from '../support/random.js';
import { type Generated, pick, some, type TrueColumn, type TrueFact, two } from './generate.js';

/*
 * Workbooks, records of analysers, JCAMP-DX, logs of boreholes and lines of several kinds, with what a correct reading of
 * them yields.
 */

type Cell = string | number | CellObject | null;
type Column = TrueColumn & { readonly values: readonly (string | number)[] };

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const numberBelow = ({ next }: Random, max: number): number => Number((next() * max + 0.011).toFixed(3));
const column = (name: string, values: Column['values'], unit?: string): Column => ({ name, unit, values });
const numbers = (random: Random, count: number, max: number) => range(count).map(() => numberBelow(random, max));

const TEXTS = ['Operator', 'Project', 'Instrument', 'Method', 'Detector', 'Comment'];
const WORDS = ['Ada', 'R. Meier', 'north lab', 'standard', 'BX-4', 'overnight', 'PMT', 'Alpha 200'];
const AMOUNTS: readonly (readonly [string, string, number])[] = [
  ['Flow rate', 'mL/min', 2],
  ['Oven temperature', '°C', 90],
  ['Volume', 'µL', 200],
  ['Lamp current', 'mA', 300],
  ['Weight', 'mg', 50],
];
const COLUMNS: readonly (readonly [string, string, number])[] = [
  ['Absorbance', 'AU', 3],
  ['Current', 'mA', 20],
  ['Potential', 'V', 2],
  ['Pressure', 'kPa', 120],
  ['Signal', 'mV', 500],
  ['Mass', 'mg', 40],
];

function someFacts(random: Random): TrueFact[] {
  const texts = some(random, TEXTS, 2 + random.below(3)).map((name, n): TrueFact => {
    const text = `${pick(random, WORDS)}${n === 0 ? '' : ` ${n}`}`;
    return { name, text, value: text, unit: undefined };
  });
  const amounts = some(random, AMOUNTS, 1 + random.below(3)).map(([name, unit, max]): TrueFact => {
    const value = numberBelow(random, max);
    return { name, text: String(value), value, unit };
  });
  return [...texts, ...amounts];
}

function someColumns(random: Random, count: number): Column[] {
  const first = pick(random, [
    column(
      'Sample',
      range(count).map((n) => `S-${two(n + 1)}`),
    ),
    column(
      'Time',
      range(count).map((n) => n * 5),
      's',
    ),
    column(
      'Cycle',
      range(count).map((n) => n + 1),
    ),
  ]);
  const others = some(random, COLUMNS, 2 + random.below(3));
  return [first, ...others.map(([name, unit, max]) => column(name, numbers(random, count, max), unit))];
}

interface Day {
  readonly iso: string;
  /** Days since 1899-12-30, as spreadsheets count. */
  readonly serial: number;
}

function someDay(random: Random): Day {
  const iso = `2023-${two(1 + random.below(12))}-${two(1 + random.below(28))}`;
  return { iso, serial: Math.round(Date.parse(iso) / 86_400_000) + 25_569 };
}

type Made = Pick<Generated, 'facts' | 'tables' | 'date' | 'text'> & { readonly bytes?: Buffer };
const made = (text: string, facts: TrueFact[], tables: TrueColumn[][], date?: string): Made => ({
  ...{ text, facts, tables, date },
});

// Workbooks

type Sheets = { readonly name: string; readonly rows: Cell[][]; readonly merges?: string[] }[];

/** Labels with their values: beside them or below them, the unit in the label or in a cell of its own. */
function form(random: Random, facts: readonly TrueFact[], day: Day, isAlone: boolean): Cell[][] {
  // Names above values alone in a sheet are a table of one row.
  const style = pick(random, ['right', 'right', 'two pairs', isAlone ? 'right' : 'below'] as const);
  const units = pick(random, ['label', 'cell', 'value'] as const);
  const colon = random.chance(0.4) && style !== 'below' ? ':' : '';
  const date: CellObject = { t: 'n', v: day.serial + (random.chance(0.5) ? 0.4375 : 0), z: 'yyyy-mm-dd hh:mm' };
  const pairs = facts.map(({ name, value, text, unit }): [string, Cell, string | undefined] => {
    if (unit === undefined) return [`${name}${colon}`, value, undefined];
    if (units === 'label' || style === 'below') return [`${name} (${unit})${colon}`, value, undefined];
    return units === 'value' ? [`${name}${colon}`, `${text} ${unit}`, undefined] : [`${name}${colon}`, value, unit];
  });
  const all = [...pairs, [`Run date${colon}`, date, undefined] as const];
  const lines = some(random, all, all.length);
  if (style === 'below') return [lines.map(([name]) => name), lines.map(([, value]) => value)];
  const cells = lines.map(([name, value, unit]) => [name, value, ...(unit === undefined ? [] : [unit])] as Cell[]);
  if (style === 'right') return cells;
  const half = Math.ceil(cells.length / 2);
  return range(half).map((n) => [...range(3).map((at) => cells[n]?.[at] ?? null), null, ...(cells[half + n] ?? [])]);
}

/** A table: a title above it, units in the names or below them, groups of columns above the names, an empty column. */
function table(random: Random, columns: readonly Column[], isText: boolean): { rows: Cell[][]; merges: string[] } {
  const units = pick(random, ['(', '[', 'row'] as const);
  const close = units === '(' ? ')' : ']';
  const head = columns.map(({ name, unit }) => (unit && units !== 'row' ? `${name} ${units}${unit}${close}` : name));
  const unitRow = units === 'row' ? [columns.map(({ unit }) => unit ?? null)] : [];
  const cellOf = (value: string | number): Cell => (isText && typeof value === 'number' ? String(value) : value);
  const body = range(columns[0]?.values.length ?? 0).map((n) => columns.map(({ values }) => cellOf(values[n] ?? '')));
  return { rows: [head, ...unitRow, ...body], merges: [] };
}

const indent = (rows: readonly Cell[][], by: number): Cell[][] =>
  rows.map((row) => (row.length === 0 ? [] : [...range(by).map(() => null), ...row]));

function workbook(random: Random, kind: 'form' | 'tables' | 'sheets'): Made {
  const day = someDay(random);
  const facts = someFacts(random);
  const isText = random.chance(0.15);
  const one = someColumns(random, 4 + random.below(12));
  const two = someColumns(random, 3 + random.below(6)).map((each) => ({ ...each, name: `${each.name} 2` }));
  const title: Cell[][] = random.chance(0.5) ? [[pick(random, ['Measurement report', 'Results', 'Run 12'])], []] : [];
  const head = [...title, ...form(random, facts, day, kind === 'sheets')];
  const by = random.chance(0.25) ? 1 : 0;
  const first = table(random, one, isText).rows;
  const second = table(random, two, isText).rows;
  const sheets: Sheets =
    kind === 'form'
      ? [{ name: 'Report', rows: indent([...head, [], ...first], by) }]
      : kind === 'tables'
        ? [{ name: 'Report', rows: indent([...head, [], ...first, [], ['Summary'], ...second], by) }]
        : [
            { name: 'Info', rows: head },
            { name: 'Data', rows: indent(first, by) },
            { name: 'Peaks', rows: second },
          ];
  const book = utils.book_new();
  for (const { name, rows } of sheets) utils.book_append_sheet(book, utils.aoa_to_sheet(rows), name);
  const bytes: Buffer = write(book, { type: 'buffer', bookType: 'xlsx', compression: true });
  const text = sheets.map(({ rows }) => JSON.stringify(rows)).join('\n');
  const tables = kind === 'form' ? [one] : [one, two];
  return { ...made(text, facts, tables, day.iso), bytes };
}

// Records of analysers

const TESTS = ['GLU', 'NA', 'K', 'CREA', 'UREA', 'ALT', 'CRP'];
const TEST_UNITS = ['mmol/L', 'mg/dL', 'U/L'];

/** Results of several specimens, in order. */
function someResults(random: Random) {
  const unit = pick(random, TEST_UNITS);
  const specimens = range(1 + random.below(4)).map((n) => `SP${100 + n}`);
  return specimens.map((specimen) => ({
    specimen,
    results: some(random, TESTS, 2 + random.below(4)).map((test) => ({ test, value: numberBelow(random, 90), unit })),
  }));
}

function resultTable(all: ReturnType<typeof someResults>, specimen: string, test: string): Column[] {
  const flat = all.flatMap(({ specimen: own, results }) => results.map((result) => ({ own, ...result })));
  return [
    ...(all.length > 1
      ? [
          column(
            specimen,
            flat.map(({ own }) => own),
          ),
        ]
      : []),
    column(
      test,
      flat.map((each) => each.test),
    ),
    column(
      'value',
      flat.map(({ value }) => value),
      flat[0]?.unit,
    ),
  ];
}

function hl7(random: Random): Made {
  const { iso } = someDay(random);
  const at = `${iso.replaceAll('-', '')}101500`;
  const all = someResults(random);
  const lines = [
    `MSH|^~\\&|ANALYZER|LAB|LIS|HOSP|${at}||ORU^R01|${random.below(999)}|P|2.5.1`,
    'PID|1||P-17||DOE^JOHN',
  ];
  for (const [n, { specimen, results }] of all.entries()) {
    lines.push(`OBR|${n + 1}||${specimen}|PANEL^Chemistry|||${at}`);
    for (const [m, { test, value, unit }] of results.entries())
      lines.push(`OBX|${m + 1}|NM|${test}^${test} serum^L||${value}|${unit}|||||F|||${at}|||||${at}`);
  }
  return made(lines.join('\r'), [], [resultTable(all, 'filler order', 'observation id')], iso);
}

function astm(random: Random): Made {
  const { iso } = someDay(random);
  const at = `${iso.replaceAll('-', '')}101500`;
  const all = someResults(random);
  const lines = [`H|\\^&|||Analyzer^1.2|||||LIS||P|LIS2-A2|${at}`, 'P|1||P-17'];
  for (const [n, { specimen, results }] of all.entries()) {
    lines.push(`O|${n + 1}|${specimen}||`);
    for (const [m, { test, value, unit }] of results.entries())
      lines.push(`R|${m + 1}|^^^${test}|${value}|${unit}||N||F||||${at}`);
  }
  lines.push('L|1|N');
  return made(lines.join('\r\n'), [], [resultTable(all, 'specimen id', 'test')], iso);
}

// JCAMP-DX

/** Ordinates in lines that start with their abscissa: numbers, or the squeezed, difference and duplicate forms. */
function seriesLines(random: Random, ys: readonly number[]): string[] {
  const form = pick(random, ['numbers', 'packed', 'squeezed', 'differences'] as const);
  const lines: string[] = [];
  const signed = (signs: string, n: number) => {
    const digits = String(Math.abs(n));
    const zero = signs.indexOf('@') >= 0 ? '@' : '%';
    if (n === 0) return zero;
    const [plus, minus] = signs.split('|') as [string, string];
    return `${(n < 0 ? minus : plus)[Number(digits[0]) - 1]}${digits.slice(1)}`;
  };
  let at = 0;
  let isCheck = false;
  while (at < ys.length) {
    const part = ys.slice(at, at + 8);
    const x = 400 + at;
    if (form === 'numbers') lines.push(`${x} ${part.join(' ')}`);
    else if (form === 'packed') lines.push(`${x}${part.map((y) => (y < 0 ? y : `+${y}`)).join('')}`);
    else if (form === 'squeezed') lines.push(`${x}${part.map((y) => signed('ABCDEFGHI@|abcdefghi', y)).join('')}`);
    else {
      // The first value of a line repeats the last of the line before.
      const own = isCheck ? ys.slice(at - 1, at + 8) : part;
      const [first = 0] = own;
      const steps = own.slice(1).map((y, n) => signed('JKLMNOPQR%|jklmnopqr', y - (own[n] ?? 0)));
      lines.push(`${isCheck ? x - 1 : x}${signed('ABCDEFGHI@|abcdefghi', first)}${steps.join('')}`);
      isCheck = true;
    }
    at += part.length;
  }
  if (form === 'differences') lines.push(`${400 + ys.length - 1}${signed('ABCDEFGHI@|abcdefghi', ys.at(-1) ?? 0)}`);
  return lines;
}

function jcamp(random: Random): Made {
  const { iso } = someDay(random);
  const facts = some(random, ['ORIGIN', 'OWNER', 'SAMPLE DESCRIPTION'], 2).map((name): TrueFact => {
    const text = pick(random, WORDS);
    return { name, text, value: text, unit: undefined };
  });
  const kind = pick(random, ['series', 'points', 'peaks', 'pages'] as const);
  const count = 10 + random.below(30);
  const ys = range(count).map(() => random.below(900) - 100);
  const xs = range(count).map((n) => 400 + n);
  const head = [
    '##TITLE=caffeine',
    '##JCAMP-DX=4.24',
    '##DATA TYPE=INFRARED SPECTRUM',
    ...facts.map(({ name, text }) => `##${name}=${text}`),
    `##LONGDATE=${iso.replaceAll('-', '/')}`,
  ];
  const units = ['##XUNITS=nm', '##YUNITS=AU', '##XFACTOR=1', '##YFACTOR=1'];
  const limits = ['##FIRSTX=400', `##LASTX=${399 + count}`, `##NPOINTS=${count}`, `##FIRSTY=${ys[0]}`, '##DELTAX=1'];
  const plain = [column('x', xs, 'nm'), column('y', ys, 'AU')];
  const body = {
    series: () => [...units, ...limits, '##XYDATA=(X++(Y..Y))', ...seriesLines(random, ys)],
    points: () => [...units, `##NPOINTS=${count}`, '##XYPOINTS=(XY..XY)', ...pairLines(xs, ys)],
    peaks: () => [...units, `##NPOINTS=${count}`, '##PEAK TABLE=(XY..XY)', ...pairLines(xs, ys)],
    pages: () => [
      '##NTUPLES=MASS SPECTRUM',
      '##VAR_NAME=MASS,INTENSITY,RETENTION TIME',
      '##SYMBOL=X,Y,T',
      '##VAR_TYPE=INDEPENDENT,DEPENDENT,INDEPENDENT',
      '##UNITS=M/Z,RELATIVE ABUNDANCE,SECONDS',
      ...[0, 1].flatMap((n) => [
        `##PAGE=T=${n * 5}`,
        '##DATA TABLE=(XY..XY),PEAKS',
        ...pairLines(xs, n === 0 ? ys : ys.map((y) => y + 1)),
      ]),
      '##END NTUPLES=MASS SPECTRUM',
    ],
  }[kind]();
  const paged = [column('MASS', [...xs, ...xs]), column('INTENSITY', [...ys, ...ys.map((y) => y + 1)])];
  return made([...head, ...body, '##END='].join('\n'), facts, [kind === 'pages' ? paged : plain], iso);
}

const pairLines = (xs: readonly number[], ys: readonly number[]): string[] => xs.map((x, n) => `${x}, ${ys[n]}`);

// Logs of boreholes

const CURVES: readonly (readonly [string, string])[] = [
  ['GR', 'gAPI'],
  ['NPHI', 'v/v'],
  ['RHOB', 'g/cm3'],
  ['DT', 'us/m'],
  ['CALI', 'mm'],
];

function las(random: Random): Made {
  const { iso } = someDay(random);
  const count = 5 + random.below(20);
  const curves = some(random, CURVES, 2 + random.below(3));
  const depth = range(count).map((n) => Number((1500 + n * 0.5).toFixed(1)));
  const columns = [
    column('DEPT', depth, 'm'),
    ...curves.map(([name, unit]) => column(name, numbers(random, count, 200), unit)),
  ];
  const bit = numberBelow(random, 300);
  const facts: TrueFact[] = [
    { name: 'WELL', text: 'North 7', value: 'North 7', unit: undefined },
    { name: 'COMP', text: 'Example Ltd', value: 'Example Ltd', unit: undefined },
    { name: 'BS', text: String(bit), value: bit, unit: 'mm' },
  ];
  const width = pick(random, [10, 12]);
  const lines = [
    '~Version Information',
    ' VERS.   2.0 : CWLS LOG ASCII STANDARD - VERSION 2.0',
    ' WRAP.   NO  : One line per depth step',
    '~Well Information',
    ` STRT.m  ${depth[0]} : START`,
    ` STOP.m  ${depth.at(-1)} : STOP`,
    ' STEP.m  0.5 : STEP',
    ' NULL.   -999.25 : NULL VALUE',
    ' COMP.   Example Ltd : COMPANY',
    ' WELL.   North 7 : WELL',
    ` DATE.   ${iso} : LOG DATE`,
    '~Curve Information',
    ...columns.map(({ name, unit }) => ` ${name.padEnd(5)}.${unit}  : ${name} log`),
    '~Parameter Information',
    ` BS  .mm  ${bit} : BIT SIZE`,
    random.chance(0.5) ? '~A' : `~A  ${columns.map(({ name }) => name).join('  ')}`,
    ...range(count).map((n) => columns.map(({ values }) => String(values[n]).padStart(width)).join('')),
  ];
  return made(lines.join('\n'), facts, [columns], iso);
}

// Lines of several kinds, and rows within rows

function typedLines(random: Random): Made {
  const { iso } = someDay(random);
  const sign = pick(random, [',', ';', '\t', '|']);
  const [h, c, d] = pick(random, [
    ['H', 'C', 'D'],
    ['HDR', 'COL', 'DAT'],
    ['#H', '#C', '#D'],
    ['INFO', 'NAMES', 'DATA'],
  ] as const);
  const facts = someFacts(random);
  const columns = someColumns(random, 4 + random.below(12));
  const lines = [
    ...facts.map(({ name, text, unit }) => [h, name, text, ...(unit === undefined ? [] : [unit])]),
    [h, 'Run date', iso],
    [c, ...columns.map(({ name, unit }) => (unit === undefined ? name : `${name} (${unit})`))],
    ...range(columns[0]?.values.length ?? 0).map((n) => [d, ...columns.map(({ values }) => values[n])]),
  ];
  return made(`${lines.map((line) => line.join(sign)).join('\n')}\n`, facts, [columns], iso);
}

function levels(random: Random): Made {
  const { iso } = someDay(random);
  const sign = pick(random, [',', ';', '\t']);
  const style = pick(random, ['type', 'width', 'indent'] as const);
  const write = (depth: number, cells: readonly (string | number)[]) =>
    [
      ...(style === 'type' ? [['CYC', 'STP', 'REC'][depth]] : style === 'indent' ? range(depth).map(() => '') : []),
      ...cells,
    ].join(sign);
  const lines = [
    write(0, ['Cycle', 'Capacity (mAh)']),
    write(1, ['Step', 'Mode', 'Energy (mWh)']),
    write(2, ['Record', 'Time (s)', 'Voltage (V)', 'Current (mA)']),
  ];
  const rows: number[][] = [];
  let [step, record] = [0, 0];
  for (const cycle of range(2 + random.below(3)).map((n) => n + 1)) {
    lines.push(write(0, [cycle, numberBelow(random, 99)]));
    for (const mode of some(random, ['Rest', 'Charge', 'Discharge'], 2)) {
      lines.push(write(1, [++step, mode, numberBelow(random, 30)]));
      for (const n of range(2 + random.below(4))) {
        const own = [n * 10, numberBelow(random, 4), numberBelow(random, 50)];
        rows.push([cycle, step, ++record, ...own]);
        lines.push(write(2, [record, ...own]));
      }
    }
  }
  const names = ['Cycle', 'Step', 'Record', 'Time', 'Voltage', 'Current'];
  const columns = names.map((name, at) =>
    column(
      name,
      rows.map((row) => row[at] ?? 0),
      [undefined, undefined, undefined, 's', 'V', 'mA'][at],
    ),
  );
  const facts = someFacts(random);
  const head = facts.map(({ name, text, unit }) => `${name}: ${text}${unit === undefined ? '' : ` ${unit}`}`);
  return made([...head, `Start: ${iso} 10:00:00`, '', ...lines, ''].join('\n'), facts, [columns], iso);
}

const SHAPES: Readonly<Record<string, readonly [extension: string, make: (random: Random) => Made]>> = {
  'a form and a table in a workbook': ['xlsx', (random) => workbook(random, 'form')],
  'two tables in a sheet': ['xlsx', (random) => workbook(random, 'tables')],
  'several sheets': ['xlsx', (random) => workbook(random, 'sheets')],
  HL7: ['hl7', hl7],
  ASTM: ['txt', astm],
  'JCAMP-DX': ['jdx', jcamp],
  LAS: ['las', las],
  'lines of several kinds': ['dat', typedLines],
  'rows within rows': ['csv', levels],
};

export const RECORD_SHAPES = Object.keys(SHAPES);

/** One file. The same seed always gives the same content. */
export function generateRecords(shape: string, seed: number): Generated {
  const [extension, make] = SHAPES[shape] ?? ['', hl7];
  const file = make(seeded(seed));
  return { extension, ...file, bytes: file.bytes ?? Buffer.from(file.text) };
}
