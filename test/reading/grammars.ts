import { type Random, seeded } from '../support/random.js';
import { type Generated, pick, some, type TrueColumn, type TrueFact, two } from './generate.js';
import { type Content, SHAPES } from './shapes.js';

/*
 * Files with one difficulty each, as instruments of certain kinds write them, with what a correct reading yields.
 */

const fact = (name: string, text: string, value: TrueFact['value'] = text, unit?: string): TrueFact => ({
  ...{ name, text, value, unit },
});

const numbers = (random: Random, count: number, max: number, places = 3): number[] =>
  Array.from({ length: count }, () => Number((random.next() * max + 0.001).toFixed(places)));

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

const column = (name: string, unit: string | undefined, values: TrueColumn['values']): TrueColumn => ({
  ...{ name, unit, values },
});

const withUnit = ({ name, unit }: TrueColumn, style: string): string =>
  unit === undefined ? name : style === '(' ? `${name} (${unit})` : `${name} [${unit}]`;

/** Names and values of a few facts. */
function someFacts(random: Random): TrueFact[] {
  const weight = (random.next() * 50).toFixed(2);
  return some(
    random,
    [
      fact('Operator', pick(random, ['Ada', 'R. Meier', 'lab 3'])),
      fact('Instrument', pick(random, ['Alpha 200', 'Meter 7', 'BX-4'])),
      fact('Method', pick(random, ['standard', 'fast scan', 'overnight'])),
      fact('Sample ID', `B${1000 + random.below(9000)}`),
      fact('Weight', `${weight} mg`, Number(weight), 'mg'),
      fact('Replicates', String(2 + random.below(8)), undefined),
    ].map((each) => (each.name === 'Replicates' ? { ...each, value: Number(each.text) } : each)),
    4 + random.below(3),
  );
}

const pairs = (facts: readonly TrueFact[], sign: string): string[] =>
  facts.map(({ name, text }) => (sign === ':' ? `${name}: ${text}` : `${name}${sign}${text}`));

/** Cycles, their steps, and the records of those, in lines of one file. */
function levels(random: Random): Content {
  const sign = pick(random, ['\t', ',']);
  const isTyped = random.chance(0.4);
  const facts = someFacts(random);
  const names = [
    ['Cycle', 'Capacity (mAh)', 'Energy (mWh)'],
    ['Step', 'Mode', 'Duration (s)'],
    ['Record', 'Time (s)', 'Voltage (V)', 'Current (mA)'],
  ];
  const write = (level: number, cells: readonly (string | number)[]) =>
    [...(isTyped ? [['CYC', 'STP', 'REC'][level] ?? ''] : range(level).map(() => '')), ...cells].join(sign);
  const lines = names.map((cells, level) => write(level, cells));
  const [records, times, volts, amps]: number[][] = [[], [], [], []];
  for (const cycle of range(2 + random.below(3))) {
    lines.push(write(0, [cycle + 1, ...numbers(random, 2, 900)]));
    for (const step of range(2)) {
      lines.push(write(1, [step + 1, pick(random, ['CC charge', 'Rest', 'CC discharge']), 10 * (step + 3)]));
      for (const n of range(3 + random.below(4))) {
        const values = [(records?.length ?? 0) + 1, n * 10, ...numbers(random, 2, 4)] as const;
        records?.push(values[0] ?? 0);
        times?.push(values[1] ?? 0);
        volts?.push(values[2] ?? 0);
        amps?.push(values[3] ?? 0);
        lines.push(write(2, values));
      }
    }
  }
  const table = [
    column('Record', undefined, records ?? []),
    column('Time', 's', times ?? []),
    column('Voltage', 'V', volts ?? []),
    column('Current', 'mA', amps ?? []),
  ];
  return { lines: [...pairs(facts, ':'), '', ...lines], facts, tables: [table], date: undefined };
}

/** Serial numbers of sensors above the readings, statistics below them. */
function statistics(random: Random): Content {
  const sign = pick(random, ['\t', ',', ';']);
  const facts = someFacts(random);
  const rows = 6 + random.below(10);
  const style = pick(random, ['(', '[']);
  const first = column(
    'Time',
    's',
    range(rows).map((n) => n * 5),
  );
  const sensors = range(2 + random.below(3)).map((n) => column(`Sensor ${n + 1}`, '°C', numbers(random, rows, 40)));
  const all = [first, ...sensors];
  const serials = random.chance(0.5) ? [['Serial number', ...sensors.map(() => 8000 + random.below(999))]] : [];
  const words = some(random, ['Mean', 'SD', 'Min', 'Max', '%CV'], random.below(4));
  const below = words.map((word) => [word, ...sensors.map(() => (random.next() * 40).toFixed(2))]);
  const lines = [
    ...pairs(facts, ':'),
    '',
    all.map((each) => withUnit(each, style)).join(sign),
    ...serials.map((cells) => cells.join(sign)),
    ...range(rows).map((n) => all.map(({ values }) => values[n]).join(sign)),
    ...(words.length > 0 && random.chance(0.5) ? [''] : []),
    ...below.map((cells) => cells.join(sign)),
  ];
  // Words, serial numbers and ratios have no unit: then the name of a column is that in the file.
  const named = (each: TrueColumn) => ({ name: withUnit(each, style), unit: undefined });
  const table = (own: readonly (readonly (string | number)[])[], hasUnit: boolean): TrueColumn[][] => {
    const others = sensors.map((each, n) => ({
      ...(hasUnit ? each : named(each)),
      values: own.map((cells) => Number(cells[n + 1])),
    }));
    return own.length === 0 ? [] : [[{ ...named(first), values: own.map(([word = '']) => word) }, ...others]];
  };
  const isRatio = ([word = '']: readonly (string | number)[]) => String(word).startsWith('%');
  const statisticTables = [
    ...table(
      below.filter((cells) => !isRatio(cells)),
      true,
    ),
    ...table(below.filter(isRatio), false),
  ];
  return { lines, facts, tables: [all, ...table(serials, false), ...statisticTables], date: undefined };
}

/** Facts in the first columns of the rows. */
function beside(random: Random): Content {
  const facts = someFacts(random).map(({ unit, ...each }) =>
    unit === undefined ? { ...each, unit } : { ...each, unit, text: each.text.replace(` ${unit}`, '') },
  );
  const rows = 12 + random.below(20);
  const table = [
    column(
      'column 1',
      undefined,
      range(rows).map((n) => Number((n * 0.01 - 0.05).toFixed(2))),
    ),
    column('column 2', undefined, numbers(random, rows, 2)),
  ];
  const lines = range(rows).map((n) => {
    const { name = '', text = '', unit = '' } = facts[n] ?? {};
    return [name, text, unit, ...table.map(({ values }) => values[n])].join(',');
  });
  return { lines, facts, tables: [table], date: undefined };
}

/** A line for each quantity, a column for each sample. */
function transposed(random: Random): Content {
  const sign = pick(random, ['\t', ',', ';']);
  const facts = someFacts(random);
  const quantities = some(
    random,
    ['Mass (mg)', 'Volume (mL)', 'Length (mm)', 'Height (mm)', 'pH'],
    3 + random.below(3),
  );
  const samples = range(3 + random.below(4)).map((n) =>
    column(`S-${two(n + 1)}`, undefined, numbers(random, quantities.length, 30)),
  );
  const lines = [
    ...pairs(facts, ':'),
    '',
    ['Quantity', ...samples.map(({ name }) => name)].join(sign),
    ...quantities.map((name, n) => [name, ...samples.map(({ values }) => values[n])].join(sign)),
  ];
  return { lines, facts, tables: [[column('Quantity', undefined, quantities), ...samples]], date: undefined };
}

/** A few rows directly below the facts. */
function smallTable(random: Random): Content {
  const sign = pick(random, ['\t', ',', ';']);
  const facts = someFacts(random);
  const rows = 2 + random.below(3);
  const table = [
    column(
      'Peak',
      undefined,
      range(rows).map((n) => n + 1),
    ),
    column('RT', 'min', numbers(random, rows, 9)),
    column('Area', undefined, numbers(random, rows, 900)),
    column('Height', 'mAU', numbers(random, rows, 90)),
  ].slice(0, 3 + random.below(2));
  const lines = [
    ...pairs(facts, pick(random, [':', sign])),
    table.map((each) => withUnit(each, '(')).join(sign),
    ...range(rows).map((n) => table.map(({ values }) => values[n]).join(sign)),
  ];
  return { lines, facts, tables: [table], date: undefined };
}

const codeOf = (code: string): string => code.replace(/^\W/, '');

/** The first cell of each line is its kind: facts, names and rows; often rows of two kinds. */
function typedLines(random: Random): Content {
  const sign = pick(random, [',', ';', '\t', '|']);
  const [head, names, data, outer, end] = pick(random, [
    ['H', 'C', 'D', 'S', 'T'],
    ['INFO', 'COLS', 'DATA', 'SAMPLE', 'END'],
    ['#H', '#N', '#R', '#S', '#E'],
    ['$HDR', '$NAM', '$PNT', '$SMP', '$FIN'],
  ] as const);
  const facts = someFacts(random).map(({ unit, ...each }) =>
    unit === undefined ? { ...each, unit } : { ...each, unit, text: each.text.replace(` ${unit}`, '') },
  );
  const isNamed = random.chance(0.6);
  const groups = random.chance(0.5) ? 2 + random.below(3) : 0;
  const sizes = groups === 0 ? [4 + random.below(9)] : range(groups).map(() => 2 + random.below(4));
  const rows = sizes.reduce((a, b) => a + b, 0);
  const samples = range(groups).map((n) => `S-${two(n + 1)}`);
  const masses = numbers(random, groups, 9);
  const measured = [column('Time', 's', range(rows)), column('Signal', 'mV', numbers(random, rows, 50))];
  const all = [...measured, column('Flow', 'mL/min', numbers(random, rows, 3))].slice(0, 2 + random.below(2));
  const lines = facts.map(({ name, text, unit }) => [head, name, text, ...(unit ? [unit] : [])].join(sign));
  const header = [names, ...all.map((each) => withUnit(each, '('))].join(sign);
  let row = 0;
  for (const [n, size] of sizes.entries()) {
    if (groups > 0) lines.push([outer, samples[n], 'liquid', masses[n], 'x'].join(sign));
    if (isNamed && (n === 0 || random.chance(0.5))) lines.push(header);
    for (const _ of range(size)) {
      lines.push([data, ...all.map(({ values }) => values[row])].join(sign));
      row++;
    }
  }
  if (random.chance(0.5)) lines.push([end, 'Points', rows].join(sign));
  const table = all.map((each, n) => (isNamed ? each : { ...each, name: `${codeOf(data)} ${n + 2}`, unit: undefined }));
  const ids = sizes.flatMap((size, n) => range(size).map(() => samples[n] ?? ''));
  const tables = groups === 0 ? [table] : [[column(`${codeOf(outer)} 2`, undefined, ids), ...table]];
  return { lines, facts, tables, date: undefined };
}

const OTHER_DATES = ['Exported', 'Report printed', 'Last calibration', 'Method created', 'Calibration due', 'Approved'];
const RUN_DATES = ['Acquired', 'Run date', 'Measurement date', 'Injection time', 'Date'];

/** Dates of exports and calibrations above that of the run; day and month in either order, with or without evidence. */
function dates(random: Random): Content {
  const facts = someFacts(random);
  const isDayFirst = random.chance(0.5);
  const [sign, clock] = [pick(random, ['/', '/', '-']), pick(random, ['', ' 10:21:07', ' 16:40'])];
  const write = (y: number, m: number, d: number) =>
    `${(isDayFirst ? [d, m] : [m, d]).map(two).join(sign)}${sign}${y}${clock}`;
  const [month, day] = [1 + random.below(12), 1 + random.below(28)];
  const evidence = pick(random, ['none', 'other', 'iso', 'day'] as const);
  const own = evidence === 'day' ? 13 + random.below(15) : 1 + random.below(12);
  const shown = evidence === 'none' || evidence === 'other' || evidence === 'iso' ? own : Math.max(own, day);
  const others = some(random, OTHER_DATES, 1 + random.below(2)).map((name, n) => {
    const late = evidence === 'other' && n === 0 ? 13 + random.below(15) : 1 + random.below(12);
    return `${name}: ${write(2020, 1 + random.below(12), late)}`;
  });
  const run = `${pick(random, RUN_DATES)}: ${write(2022, month, shown)}`;
  const iso = `2022-${two(month)}-${two(shown)}`;
  const lines = [
    ...others,
    ...pairs(facts, ':'),
    run,
    ...(evidence === 'iso' ? [`File: D:\\runs\\${iso}\\run.dat`] : []),
    '',
    'Time (s),Signal (mV)',
    ...range(5).map((n) => `${n},${(n * 1.25 + 0.5).toFixed(2)}`),
  ];
  const isKnown = evidence !== 'none' || month === shown;
  const table = [
    column('Time', 's', range(5)),
    column(
      'Signal',
      'mV',
      range(5).map((n) => Number((n * 1.25 + 0.5).toFixed(2))),
    ),
  ];
  return { lines, facts, tables: [table], date: isKnown ? iso : undefined };
}

const CONTENTS = {
  levels,
  statistics,
  beside,
  transposed,
  'small table': smallTable,
  dates,
  'typed lines': typedLines,
  ...SHAPES,
};

export type Grammar = keyof typeof CONTENTS;
export const GRAMMARS = Object.keys(CONTENTS) as Grammar[];

/** One file. The same seed always gives the same bytes. */
export function generateIn(grammar: Grammar, seed: number): Generated {
  const random = seeded(seed);
  const { lines, ...truth } = CONTENTS[grammar](random);
  const text = `${lines.join('\n')}\n`;
  const bytes = Buffer.from(text.replaceAll('\n', pick(random, ['\n', '\r\n'])));
  return { bytes, text, extension: pick(random, ['txt', 'csv', 'dat']), ...truth };
}
