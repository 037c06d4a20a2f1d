import { expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import type { Random } from '../support/random.js';
import { shareOfComplete } from '../support/written-files.js';

/**
 * Small files in the manner of loggers, spectrometers, chromatographs, balances and analysers, each in many forms. None
 * is read wrongly. How many are read completely depends on the kind.
 */

interface Truth {
  readonly text: string;
  readonly facts: readonly (readonly [name: string, text: string])[];
  /** Of one table. Without a name, in this order. */
  readonly columns: readonly { readonly name?: string; readonly unit?: string; readonly cells: readonly string[] }[];
}

const pickFrom =
  ({ below }: Random) =>
  <T>(list: readonly T[]): T =>
    list[below(list.length)] as T;

const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));

const FACTS = [
  ['Operator', 'A. Smith'],
  ['Method', 'M-17 fast'],
  ['Serial number', 'SN48213'],
  ['Gain', '80'],
] as const;

function spectrum(random: Random): Truth {
  const pick = pickFrom(random);
  const delimiter = pick(['\t', ';', ',', ' ']);
  const mark = delimiter === ',' ? '.' : pick(['.', ',']);
  const facts = FACTS.slice(0, random.below(5));
  const write = pick([
    (name: string, value: string) => `${name}: ${value}`,
    (name: string, value: string) => `${name}=${value}`,
    (name: string, value: string) => `# ${name}: ${value}`,
  ]);
  const head = pick(['none', 'names', 'units', 'unitRow']);
  const start = pick(['', '>>>>>Begin Spectral Data<<<<<', '[Data]']);
  const isDown = random.chance(0.5);
  const x = times(8, (n) => (400 + 2.5 * (isDown ? 8 - n : n)).toFixed(1).replace('.', mark));
  const digits = (value: number) => (random.chance(0.5) ? value.toFixed(4) : `${value.toFixed(4)}E+00`);
  const y = x.map(() => digits(random.next() * 2).replace('.', mark));
  const names =
    head === 'none'
      ? []
      : head === 'units'
        ? [['Wavelength(nm)', 'Absorbance(AU)']]
        : [['Wavelength', 'Absorbance'], ...(head === 'unitRow' ? [['nm', 'AU']] : [])];
  const rows = [...names, ...x.map((value, n) => [value, y[n] ?? ''])].map((cells) => cells.join(delimiter));
  const hasUnits = head === 'units' || head === 'unitRow';
  const named = (name: string, unit: string) => ({ ...(head !== 'none' && { name }), ...(hasUnits && { unit }) });
  return {
    text: [...facts.map(([name, value]) => write(name, value)), start, ...rows].join('\n'),
    facts,
    columns: [
      { ...named('Wavelength', 'nm'), cells: x },
      { ...named('Absorbance', 'AU'), cells: y },
    ],
  };
}

function logger(random: Random): Truth {
  const pick = pickFrom(random);
  const delimiter = pick([',', ';', '\t']);
  const mark = delimiter === ',' ? '.' : pick(['.', ',']);
  const isReduced = random.chance(0.3);
  const units = isReduced ? ['mg/L', 'lux'] : ['°C', '%'];
  const names = isReduced ? ['DO_Avg', 'Light_Avg'] : ['Temp', 'Humidity'];
  const line = (cells: readonly string[]) => cells.join(delimiter);
  const hasUnits = isReduced || random.chance(0.5);
  const head = isReduced
    ? [
        ['TIMESTAMP', 'RECORD', ...names],
        ['TS', 'RN', ...units],
        ['', '', 'Avg', 'Smp'],
      ]
    : [['Date/Time', 'No', ...names.map((name, n) => (hasUnits ? `${name} (${units[n]})` : name))]];
  const count = pick([6, 9]);
  const stamps = times(count, (n) => `2024-05-17 09:${n + 10}:00`);
  const missing = pick(['none', 'NAN', '--', '-9999', '']);
  const values = names.map((_, c) =>
    times(count, () => (20 + 9 * c + random.next() * 5).toFixed(2).replace('.', mark)),
  );
  if (missing !== 'none') values[0]?.splice(1, 1, missing);
  const rows = stamps.map((stamp, n) => line([stamp, String(n + 1), ...values.map((cells) => cells[n] ?? '')]));
  const between = pick(['none', 'Event: door opened', 'Battery low at 2024-05-17 09:13:30', '*** Logging resumed', '']);
  if (between !== 'none') rows.splice(4, 0, between);
  const facts = isReduced ? [] : FACTS.slice(0, random.below(4));
  return {
    text: [...facts.map(([name, value]) => line([name, value])), ...head.map(line), ...rows].join('\r\n'),
    facts,
    columns: [
      { name: head[0]?.[0] ?? '', cells: stamps },
      ...names.map((name, c) => ({ name, ...(hasUnits && { unit: units[c] ?? '' }), cells: values[c] ?? [] })),
    ],
  };
}

function chromatogram(random: Random): Truth {
  const pick = pickFrom(random);
  const peaks = times(pick([2, 4, 6]), (n) => [
    ...[String(n + 1), (1.5 + n + random.next()).toFixed(3), (100 + random.next() * 90_000).toFixed(3)],
    ...[(random.next() * 100).toFixed(4), ['Benzene', 'Toluene', 'o-Xylene'][n % 3] ?? ''],
  ]);
  const columns = (names: readonly string[], units: readonly string[]) =>
    names.map((name, c) => ({ name, ...(units[c] && { unit: units[c] }), cells: peaks.map((peak) => peak[c] ?? '') }));
  if (random.chance(0.5)) {
    const names = ['Peak#', 'R.Time', 'Area', 'Area%', 'Name'];
    const info = ['[Sample Information]', ...FACTS.map((fact) => fact.join('\t')), ''];
    const table = [
      '[Peak Table(Ch1)]',
      `# of Peaks\t${peaks.length}`,
      ...[names, ...peaks].map((cells) => cells.join('\t')),
    ];
    return { text: [...info, ...table].join('\n'), facts: FACTS, columns: columns(names, []) };
  }
  const widths = [4, 8, 12, 9];
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, c) => cell.padStart(widths[c] ?? 0))
      .join(' ')
      .trimEnd();
  const hasUnits = random.chance(0.5);
  const head = hasUnits
    ? [
        ['Peak', 'RetTime', 'Area', 'Area', 'Name'],
        ['#', '[min]', '[pA*s]', '%', ''],
      ]
    : [['Peak', 'RetTime', 'Area', 'Area%', 'Name']];
  const rule = `${widths.map((width) => '-'.repeat(width)).join(pick([' ', '|']))} ---------`;
  const names = ['Peak', 'RetTime', 'Area', hasUnits ? 'Area (2)' : 'Area%', 'Name'];
  const table = [...head.map(line), ...(random.chance(0.5) ? [rule] : []), ...peaks.map(line)];
  return {
    text: [...FACTS.map(([name, value]) => `${name.padEnd(16)}: ${value}`), '', ...table].join('\n'),
    facts: FACTS,
    columns: columns(names, hasUnits ? ['', 'min', 'pA*s'] : []),
  };
}

function balance(random: Random): Truth {
  const pick = pickFrom(random);
  const mark = pick(['.', ',']);
  const weights = times(pick([2, 3, 6]), () => (1 + random.next() * 90).toFixed(4).replace('.', mark));
  const unit = pick(['g', 'mg', 'kg']);
  const rule = pick(['----------', '==========', '']);
  const label = pick(['N', 'Weight', 'no', '']);
  const sign = pick(['', '+']);
  const lines = weights.map((weight, n) => {
    const start = label === 'no' ? `${n + 1}: ` : label === 'Weight' ? 'Weight: ' : label.padEnd(6);
    return `${start}${sign}   ${weight} ${unit}`;
  });
  const top = [
    pick(['LAB BALANCE', '']),
    'User:      Miller',
    pick(['17.05.2024   09:00:00', '2024-05-17   09:00:00', '']),
  ];
  return {
    text: [...top, rule, ...lines, rule, 'Batch:    B-77', 'Signature: _______'].join('\r\n'),
    facts: [
      ['User', 'Miller'],
      ['Batch', 'B-77'],
    ],
    columns: [{ name: label === 'no' || label === '' ? 'value' : label, unit, cells: weights }],
  };
}

function analyser(random: Random): Truth {
  const count = pickFrom(random)([2, 3]);
  const values = times(count * 2, (n) => (n % 2 === 0 ? 90 + random.below(40) : 3 + random.below(9)).toString());
  const lines = times(count, (n) => [
    ...[`P|${n + 1}||PID-${n}`, `O|${n + 1}|S-${n}||^^^ALL|R`],
    ...[`R|1|^^^GLU|${values[2 * n]}|mg/dL||N||F`, `R|2|^^^CRP|${values[2 * n + 1]}|mg/L||H||F`],
  ]);
  return {
    text: ['H|\\^&|||Analyser^7|||||||P|1|20240517102233', ...lines.flat(), 'L|1|N'].join('\r'),
    facts: [['sender', 'Analyser^7']],
    columns: [
      { name: 'specimen id', cells: values.map((_, n) => `S-${Math.floor(n / 2)}`) },
      { name: 'value', cells: values },
    ],
  };
}

const isNumber = (text: string): boolean => /^\d+(?:[.,]\d+)?(?:E[+-]\d+)?$/.test(text);
const NO_VALUES = ['NAN', '--', '-9999', ''];

function compare(record: FileRecord, { facts, columns }: Truth): { wrong: string[]; isComplete: boolean } {
  const read = facts.map(([name, text]) => [name, record.meta.get(name)?.text, text] as const);
  const wrong = read.filter(([, found, text]) => found !== undefined && found !== text).map(String);
  let isComplete = read.every(([, found]) => found !== undefined);
  const has = (table: FileRecord['tables'][number], name: string | undefined) =>
    name === undefined || table.columns.some((column) => column.name === name);
  const table = record.tables.find((each) => columns.every(({ name }) => has(each, name)));
  if (table?.rows.length !== columns[0]?.cells.length) isComplete = false;
  for (const [n, { name, unit, cells }] of table ? columns.entries() : []) {
    const at = name === undefined ? n : (table?.columns.findIndex((column) => column.name === name) ?? -1);
    const own = table?.columns[at]?.unit;
    if (unit !== undefined && own === undefined) isComplete = false;
    if (unit !== undefined && own !== undefined && own !== unit) wrong.push(`${name}: ${own}, not ${unit}`);
    for (const [row, cell] of isComplete ? cells.entries() : []) {
      const { value, text } = table?.rows[row]?.[at] ?? {};
      const isRight = isNumber(cell)
        ? value === Number(cell.replace(',', '.'))
        : NO_VALUES.includes(cell)
          ? typeof value !== 'number'
          : text === cell;
      if (!isRight) wrong.push(`${name} of row ${row + 1}: ${text}, not ${cell}`);
    }
  }
  return { wrong, isComplete };
}

test.each([
  ['spectra', spectrum, 0.9],
  ['files of loggers', logger, 0.45],
  ['reports of chromatographs', chromatogram, 0.75],
  ['printouts of balances', balance, 0.95],
  ['messages of analysers', analyser, 0.95],
] as const)('%s are not read wrongly, and a known share completely', async (_, write, least) => {
  const writeLines = (random: Random): Truth => {
    const truth = write(random);
    return { ...truth, text: `${truth.text}\n` };
  };
  expect(await shareOfComplete({ seed: 11, count: 40 }, writeLines, compare)).toBeGreaterThanOrEqual(least);
});
