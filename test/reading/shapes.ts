import type { Random } from '../support/random.js';
import { type Generated, pick, some, type TrueColumn, type TrueFact } from './generate.js';

/*
 * Files whose facts or names stand where they usually do not: a value before its name, names above one row of values,
 * units in a row of their own, names in two lines, columns without a gap between them.
 */

export type Content = Pick<Generated, 'facts' | 'tables' | 'date'> & { readonly lines: readonly string[] };

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

const QUANTITIES: readonly (readonly [name: string, unit: string, max: number])[] = [
  ['Injection volume', 'mL', 20],
  ['Flow rate', 'mL/min', 3],
  ['Sample mass', 'mg', 90],
  ['Temperature', '°C', 80],
  ['Wavelength', 'nm', 900],
  ['Scan speed', 'nm/min', 400],
  ['Exposure time', 'ms', 900],
  ['Beam energy', 'keV', 30],
  ['Slit width', 'mm', 5],
  ['Concentration', 'mM', 40],
  ['Detector bias', 'mV', 600],
  ['Pressure', 'kPa', 200],
  ['Step size', 'mm', 3],
  ['Frequency', 'Hz', 5000],
];
const COUNTS = ['Number of scans', 'Channels', 'Averages', 'Points', 'Gain', 'Cycles', 'Sweeps'];
const TEXTS: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['Operator', ['Ada', 'R. Meier', 'jsmith', 'Kim Lee']],
  ['Sample', ['lysozyme', 'buffer A', 'Cu foil', 'run in 3', 'B1207']],
  ['Method', ['standard', 'fast scan', 'overnight.met', 'QC-7']],
  ['Instrument', ['Alpha 200', 'Meter 7', 'BX-4']],
  ['Detector', ['PMT', 'InGaAs', 'CCD']],
];

const fact = (name: string, text: string, value: TrueFact['value'] = text, unit?: string): TrueFact => ({
  ...{ name, text, value, unit },
});

const numeral = (random: Random, max: number): string => (random.next() * max + 0.01).toFixed(1 + random.below(3));

function quantities(random: Random, count: number): TrueFact[] {
  return some(random, QUANTITIES, count).map(([name, unit, max]) => {
    const text = numeral(random, max);
    return fact(name, `${text} ${unit}`, Number(text), unit);
  });
}

const counts = (random: Random, count: number): TrueFact[] =>
  some(random, COUNTS, count).map((name) => {
    const value = 1 + random.below(2000);
    return fact(name, String(value), value);
  });

const texts = (random: Random, count: number): TrueFact[] =>
  some(random, TEXTS, count).map(([name, values]) => fact(name, pick(random, values)));

const shuffled = <T>(random: Random, list: readonly T[]): T[] => some(random, list, list.length);

const column = (name: string, unit: string | undefined, values: TrueColumn['values']): TrueColumn => ({
  ...{ name, unit, values },
});

const SERIES: readonly (readonly [name: string, unit: string, max: number])[] = [
  ['Absorbance', 'AU', 3],
  ['Current', 'mA', 20],
  ['Potential', 'V', 2],
  ['Pressure', 'kPa', 120],
  ['Mass', 'mg', 40],
  ['Signal', 'mV', 500],
  ['Heat flow', 'mW', 8],
];

const numbersIn = (random: Random, rows: number, max: number, places: number): string[] =>
  range(rows).map(() => (random.next() * max + 0.01).toFixed(places));

interface Written {
  readonly name: string;
  readonly unit: string | undefined;
  readonly cells: readonly string[];
}

function someColumns(random: Random, rows: number, count = 2 + random.below(3)): Written[] {
  const step = pick(random, [1, 0.5, 2, 10]);
  const start = random.below(300);
  const [name, unit] = pick(random, [
    ['Time', 's'],
    ['Distance', 'mm'],
    ['Temperature', '°C'],
  ] as const);
  const axis = { name, unit, cells: range(rows).map((n) => (start + n * step).toFixed(1)) };
  return [
    axis,
    ...some(random, SERIES, count).map(([own, of, max]) => ({
      ...{ name: own, unit: of, cells: numbersIn(random, rows, max, 1 + random.below(4)) },
    })),
  ];
}

const truthOf = (columns: readonly Written[]): TrueColumn[] =>
  columns.map(({ name, unit, cells }) =>
    column(
      name,
      unit,
      cells.map((cell) => (cell === '' ? null : Number(cell))),
    ),
  );

function write(rows: readonly (readonly string[])[], sign: string | undefined, isRight = false): string[] {
  if (sign !== undefined) return rows.map((cells) => cells.join(sign));
  const widths = (rows[0] ?? []).map((_, at) => 2 + Math.max(...rows.map((cells) => cells[at]?.length ?? 0)));
  return rows.map((cells) =>
    cells
      .map((cell, at) => (isRight ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join('')
      .trimEnd(),
  );
}

const rowsOf = (columns: readonly Written[]): string[][] =>
  range(columns[0]?.cells.length ?? 0).map((n) => columns.map(({ cells }) => cells[n] ?? ''));

const headed = (columns: readonly Written[]): string[] =>
  columns.map(({ name, unit }) => (unit === undefined ? name : `${name} (${unit})`));

function plainTable(random: Random, sign = pick(random, ['\t', ',', ';'])): { lines: string[]; table: TrueColumn[] } {
  const columns = someColumns(random, 4 + random.below(8));
  return { lines: write([headed(columns), ...rowsOf(columns)], sign), table: truthOf(columns) };
}

const withTable = (random: Random, lines: readonly string[], facts: readonly TrueFact[]): Content => {
  if (random.chance(0.3)) return { lines, facts, tables: [], date: undefined };
  const { lines: rows, table } = plainTable(random);
  return { lines: [...lines, '', ...rows], facts, tables: [table], date: undefined };
};

/** `12.5 mL   Injection volume`, `0.5 ! Step size`: the value comes first. */
function valueFirst(random: Random): Content {
  const sign = pick(random, ['    ', '\t', ' ! ', '   ! ', ' # ', '  # ', '   // ', ' ; ', '  | ']);
  const facts = shuffled(random, [
    ...quantities(random, 2 + random.below(4)),
    ...counts(random, 1 + random.below(3)),
    ...(/[!#/]/.test(sign) ? texts(random, 1 + random.below(3)) : []),
  ]);
  const width = random.chance(0.5) ? Math.max(...facts.map(({ text }) => text.length)) : 0;
  const isLower = random.chance(0.5);
  const named = facts.map((each) => (isLower ? { ...each, name: each.name.toLowerCase() } : each));
  const lines = named.map(({ name, text }) => `${text.padEnd(width)}${sign}${name}`);
  return withTable(random, lines, named);
}

/** A name on its own line, the value on the next. */
function nextLine(random: Random): Content {
  const mark = pick(random, ['$:', '[]', ':', '#', '<>'] as const);
  const facts = shuffled(random, [...texts(random, 2 + random.below(3)), ...counts(random, 1 + random.below(3))]);
  const named = facts.map((each) =>
    mark === '$:' ? { ...each, name: each.name.toUpperCase().replaceAll(' ', '_') } : each,
  );
  const isSpaced = mark !== '$:' && random.chance(0.4);
  const lines = named.flatMap(({ name, text }) => {
    const written = { '$:': `$${name}:`, '[]': `[${name}]`, ':': `${name}:`, '#': `#${name}`, '<>': `<${name}>` }[mark];
    return [written, text, ...(isSpaced ? [''] : [])];
  });
  return withTable(random, lines, named);
}

/** A row of names above one row of values, also several times. */
function namesAbove(random: Random): Content {
  const sign = pick(random, ['\t', ',', ';', undefined]);
  // A first name such as `Sample` would make a table of one row.
  const facts = [
    fact('Operator', pick(random, ['Ada', 'jsmith'])),
    ...shuffled(random, [
      ...texts(random, 4)
        .filter(({ name }) => name !== 'Operator')
        .slice(0, 3),
      ...counts(random, 2 + random.below(4)),
      ...quantities(random, 2).map((each) => ({ ...each, text: each.text.split(' ')[0] ?? '' })),
    ]),
  ];
  const own = facts.map((each) =>
    sign === undefined && / /.test(each.text)
      ? { ...each, text: each.text.replaceAll(' ', '_'), value: String(each.value).replaceAll(' ', '_') }
      : each,
  );
  const title = (each: TrueFact) => (each.unit === undefined ? each.name : `${each.name} (${each.unit})`);
  // Two cells would be a name and its value.
  const count = random.chance(0.5) ? 1 : Math.floor(own.length / 3);
  const size = Math.ceil(own.length / count);
  const parts = range(count)
    .map((n) => own.slice(n * size, (n + 1) * size))
    .filter(({ length }) => length > 2);
  const isSpaced = random.chance(0.6);
  const lines = parts.flatMap((part, n) => [
    ...(n > 0 && isSpaced ? [''] : []),
    ...write([part.map(title), part.map(({ text }) => text)], sign),
  ]);
  const { lines: rows, table } = plainTable(random, sign ?? '\t');
  const names = table.map(({ name }) => name);
  return {
    lines: [...lines, '', ...rows],
    facts: parts.flat().filter(({ name }) => !names.includes(name)),
    tables: [table],
    date: undefined,
  };
}

/** `Lat: 35.04 Long: -106.5`: several pairs in a line, with single blanks. */
function oneLine(random: Random): Content {
  const sign = pick(random, [': ', '=', ':', ' = ']);
  const short = (each: TrueFact): TrueFact => ({ ...each, name: each.name.split(' ').at(-1) ?? each.name });
  const facts = shuffled(random, [
    ...quantities(random, 2 + random.below(3)),
    ...counts(random, 1 + random.below(2)),
    ...texts(random, 1).map((each) => ({
      ...each,
      text: each.text.replaceAll(' ', ''),
      value: String(each.value).replaceAll(' ', ''),
    })),
  ]).map(short);
  const unique = facts.filter((each, n) => facts.findIndex(({ name }) => name === each.name) === n);
  const half = random.chance(0.5) ? unique.length : Math.ceil(unique.length / 2);
  const own = some(random, TEXTS, 5)
    .map(([name, values]) => fact(name, pick(random, values)))
    .filter(({ name }) => !unique.some((each) => each.name === name))
    .slice(0, 3);
  const lines = [
    ...own.map(({ name, text }) => `${name}${sign}${text}`),
    unique
      .slice(0, half)
      .map(({ name, text }) => `${name}${sign}${text}`)
      .join(' '),
    unique
      .slice(half)
      .map(({ name, text }) => `${name}${sign}${text}`)
      .join(' '),
  ];
  return withTable(
    random,
    lines.filter((line) => line !== ''),
    [...own, ...unique],
  );
}

const GLUED: readonly (readonly [name: string, unit: string, max: number])[] = [
  ['Temperature', 'K', 400],
  ['Bias voltage', 'V', -300],
  ['HV', 'V', 1200],
  ['Laser power', 'W', 9],
  ['Exposure time', 's', 90],
  ['Depth', 'm', 400],
  ['Sample weight', 'g', 8],
  ['Emission current', 'A', 4],
  ['Force', 'N', 40],
  ['Concentration', 'mM', 40],
  ['Wavelength', 'nm', 800],
  ['Volume', 'uL', 90],
  ['Rate', 'Hz', 90],
];

/** `220K`, `-145V`: a unit directly after its number. */
function glued(random: Random): Content {
  const own = some(random, GLUED, 3 + random.below(4)).map(([name, unit, max]) => {
    const text = random.chance(0.5)
      ? (random.next() * max).toFixed(1)
      : String(Math.trunc(max / 2 + random.next() * (max / 2)));
    return fact(name, `${text}${unit}`, Number(text), unit);
  });
  const others = [
    fact('Well', `${1 + random.below(12)}${pick(random, ['A', 'C', 'F'])}`),
    fact('Model', `${pick(random, [200, 950])}${pick(random, ['V', 'A', 'K'])}`),
    fact('Memory', `${pick(random, [64, 512])}K`),
  ];
  const facts = shuffled(random, [...own, ...some(random, others, 1 + random.below(2)), ...texts(random, 2)]);
  const sign = pick(random, [': ', '=', '\t', ' = ']);
  return withTable(
    random,
    facts.map(({ name, text }) => `${name}${sign}${text}`),
    facts,
  );
}

/** `100 0.5 2.0 ! points, step, start`: the rest of the line, or the line above, names the positions. */
function legend(random: Random): Content {
  const mark = pick(random, ['!', '#', '/', '%']);
  const groups = range(2 + random.below(3)).map((n) => {
    const names = some(
      random,
      ['npts', 'step', 'start', 'stop', 'theta', 'phi', 'lambda', 'slit', 'bin', 'gain', 'offset'],
      2 + random.below(3),
    );
    return names
      .map((name) => fact(`${name}${n + 1}`, numeral(random, 90)))
      .map((each) => ({ ...each, value: Number(each.text) }));
  });
  const isAbove = random.chance(0.5);
  const comma = pick(random, [', ', '  ', ' ']);
  const gap = pick(random, [' ', '  ', '\t']);
  const lines = groups.flatMap((group) => {
    const [names, values] = [group.map(({ name }) => name).join(comma), group.map(({ text }) => text).join(gap)];
    return isAbove ? [`${mark} ${names}`, values] : [`${values}  ${mark} ${names}`];
  });
  return withTable(random, lines, groups.flat());
}

/** Units in a row of their own, below or above the names, in brackets or not, for all columns or some. */
function unitRow(random: Random): Content {
  const sign = pick(random, ['\t', ',', ';', undefined]);
  const columns = someColumns(random, 4 + random.below(10)).map((each, n) =>
    sign !== undefined && n > 1 && random.chance(0.2) ? { ...each, unit: undefined } : each,
  );
  const style = pick(random, ['()', '[]', '', '']);
  const units = columns.map(({ unit }) => (unit === undefined ? '' : `${style[0] ?? ''}${unit}${style[1] ?? ''}`));
  const isAbove = random.chance(0.25);
  const names = columns.map(({ name }) => (sign === undefined ? name.replaceAll(' ', '_') : name));
  const facts = texts(random, 3);
  const rows = [...(isAbove ? [units, names] : [names, units]), ...rowsOf(columns)];
  return {
    lines: [...facts.map(({ name, text }) => `${name}: ${text}`), '', ...write(rows, sign, random.chance(0.5))],
    facts,
    tables: [truthOf(columns.map((each, n) => ({ ...each, name: names[n] ?? '' })))],
    date: undefined,
  };
}

/** Names that take two lines of a printed table. */
function wrapped(random: Random): Content {
  const rows = 4 + random.below(8);
  const first = { name: 'Time', unit: 's', cells: range(rows).map((n) => (n * 5).toFixed(1)) };
  const own = some(
    random,
    [
      ['Sample', 'Temp'],
      ['Heater', 'Power'],
      ['Cell', 'Voltage'],
      ['Gas', 'Flow'],
      ['Peak', 'Area'],
      ['Total', 'Counts'],
      ['', 'Status'],
    ] as const,
    3 + random.below(3),
  );
  const columns: Written[] = [
    first,
    ...own.map(([upper, lower]) => ({
      name: `${upper} ${lower}`.trim(),
      unit: undefined,
      cells: lower === 'Status' ? range(rows).map(() => '0') : numbersIn(random, rows, 90, 2),
    })),
  ];
  const upper = ['', ...own.map(([word]) => word)];
  const lower = ['Time', ...own.map(([, word]) => word)];
  const units = random.chance(0.5)
    ? [columns.map(({ unit }, n) => (unit === undefined ? (n % 2 === 0 ? '(mV)' : '(°C)') : `(${unit})`))]
    : [];
  const facts = texts(random, 3);
  const lines = write([upper, lower, ...units, ...rowsOf(columns)], undefined, random.chance(0.6));
  const truth = truthOf(columns).map((each, n) => ({ ...each, unit: units[0]?.[n]?.slice(1, -1) }));
  return {
    lines: [...facts.map(({ name, text }) => `${name}: ${text}`), '', ...lines],
    facts,
    tables: [truth],
    date: undefined,
  };
}

function averages(random: Random): Content {
  const sign = pick(random, ['\t', ',', ';', undefined]);
  const isAbove = random.chance(0.6);
  const columns = someColumns(random, 5 + random.below(10));
  const words = some(
    random,
    ['Average', 'Min', 'Max', 'Mean', 'SD', 'Minimum', 'Maximum', 'Avg.', 'Std. Dev.'],
    1 + random.below(3),
  );
  const statistics = words.map((word) => [word, ...columns.slice(1).map(() => numeral(random, 40))]);
  const facts = texts(random, 3);
  const gap = random.chance(0.3) ? [''] : [];
  const all = write([headed(columns), ...statistics, ...rowsOf(columns)], sign);
  const [names = '', ...others] = all;
  const lines = isAbove ? all : [names, ...others.slice(words.length), ...gap, ...others.slice(0, words.length)];
  const table = truthOf(columns);
  // The words stand in a column of numbers, so its name keeps its unit.
  const aside = columns.map((each, n) =>
    column(
      n === 0 ? (headed([each])[0] ?? '') : each.name,
      n === 0 ? undefined : each.unit,
      statistics.map((cells) => (n === 0 ? (cells[0] ?? '') : Number(cells[n]))),
    ),
  );
  return {
    lines: [...facts.map(({ name, text }) => `${name}: ${text}`), '', ...lines],
    facts,
    tables: [table, aside],
    date: undefined,
  };
}

/** Titles above groups of columns. */
function columnGroups(random: Random): Content {
  const sign = pick(random, ['\t', ',', ';', undefined]);
  const rows = 4 + random.below(8);
  const groups = some(random, ['Channel A', 'Channel B', 'Sensor 1', 'Sensor 2', 'Left', 'Right'], 2 + random.below(2));
  const own = some(
    random,
    [
      ['Temp', '°C'],
      ['Signal', 'mV'],
      ['Flow', 'mL/min'],
      ['Area', 'mm2'],
    ] as const,
    2 + random.below(2),
  );
  const time = { name: 'Time', unit: 's', cells: range(rows).map((n) => (n * 2).toFixed(1)) };
  const parts = groups.flatMap((group) =>
    own.map(([name, unit]) => ({ group, name, unit, cells: numbersIn(random, rows, 60, 2) })),
  );
  const hasUnits = random.chance(0.6);
  const names = ['Time', ...parts.map(({ name, unit }) => (hasUnits ? `${name} (${unit})` : name))];
  const titles = ['', ...parts.map(({ group }, n) => (n % own.length === 0 ? group : ''))];
  const facts = texts(random, 3);
  const cells = [names, ...rowsOf([time, ...parts])];
  const lines = sign === undefined ? writeGroups(titles, cells, own.length) : write([titles, ...cells], sign);
  const truth = [time, ...parts.map((part) => ({ ...part, name: `${part.group} ${part.name}` }))];
  return {
    lines: [...facts.map(({ name, text }) => `${name}: ${text}`), '', ...lines],
    facts,
    tables: [truthOf(truth).map((each, n) => ({ ...each, unit: hasUnits && n > 0 ? each.unit : undefined }))],
    date: undefined,
  };
}

function writeGroups(titles: readonly string[], cells: readonly (readonly string[])[], size: number): string[] {
  const lines = write(
    cells.map((row) => row.map((cell) => cell.replaceAll(' ', ''))),
    undefined,
    true,
  );
  const widths = (cells[0] ?? []).map(
    (_, at) => 2 + Math.max(...cells.map((row) => row[at]?.replaceAll(' ', '').length ?? 0)),
  );
  let line = ' '.repeat(widths[0] ?? 0);
  for (let at = 1; at < titles.length; at += size) {
    const width = widths.slice(at, at + size).reduce((sum, each) => sum + each, 0);
    const title = titles[at] ?? '';
    const left = Math.floor((width - title.length) / 2);
    line += `${' '.repeat(Math.max(0, left))}${title}`.padEnd(width);
  }
  return [line.trimEnd(), ...lines];
}

function fixedWidth(random: Random): Content {
  const rows = 5 + random.below(10);
  const isTouching = random.chance(0.5);
  const columns: Written[] = someColumns(random, rows, 3 + random.below(2)).map((each, n) => ({
    ...each,
    name: each.name.replace(' ', ''),
    unit: undefined,
    cells: each.cells.map((cell) => {
      if (isTouching) return n > 0 && random.chance(0.3) ? `-${cell}` : cell;
      return n > 0 && random.chance(0.15) ? '' : cell;
    }),
  }));
  const all = [columns.map(({ name }) => name), ...rowsOf(columns)];
  // A negative number fills its place.
  const widths = columns.map(
    ({ cells, name }) =>
      Math.max(isTouching ? 0 : 2, ...[...cells, ` ${name}`].map((cell) => cell.length)) + (isTouching ? 0 : 1),
  );
  const lines = all.map((cells) =>
    cells
      .map((cell, at) => cell.padStart(widths[at] ?? 0))
      .join('')
      .trimEnd(),
  );
  const facts = texts(random, 3);
  return {
    lines: [...facts.map(({ name, text }) => `${name}: ${text}`), '', ...lines],
    facts,
    tables: [truthOf(columns)],
    date: undefined,
  };
}

export const SHAPES = {
  'values before names': valueFirst,
  'values on the next line': nextLine,
  'names above values': namesAbove,
  'pairs in one line': oneLine,
  'glued units': glued,
  legends: legend,
  'a row of units': unitRow,
  'wrapped names': wrapped,
  averages: averages,
  'groups of columns': columnGroups,
  'fixed width': fixedWidth,
};
