import type { FileRecord } from '../../src/model.js';
import type { Random } from '../support/random.js';

/*
 * Tables as instruments lay them out: one to three blocks of one kind below facts, in a random combination of names,
 * units, gaps, words and remarks. Each number occurs once in a file, so that each number that is read has one truth.
 */

const pick = <T>({ below }: Random, list: readonly T[]): T => list[below(list.length)] as T;
const some = <T>(random: Random, list: readonly T[], count: number): T[] => {
  const left = [...list];
  return Array.from({ length: Math.min(count, left.length) }, () => left.splice(random.below(left.length), 1)[0] as T);
};

/** Where a number belongs. `row`: the first cell of its row, or its well. */
export interface Expected {
  readonly value: number;
  readonly names: readonly string[];
  readonly unit: string | undefined;
  readonly row: string | undefined;
  readonly block: string | undefined;
}

export interface Layout {
  readonly text: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly expected: readonly Expected[];
  /** Names of columns and rows, which are no facts. */
  readonly labels: ReadonlySet<string>;
}

type Cells = readonly string[];
type Text = string | Cells;

const QUANTITIES: readonly (readonly [string, string])[] = [
  ['Absorbance', 'AU'],
  ['Area', 'mAU*s'],
  ['Ret. Time', 'min'],
  ['Weight', 'mg'],
  ['Temp', '°C'],
  ['Pressure', 'bar'],
  ['Current', 'µA'],
  ['Storage Modulus', 'Pa'],
  ['Flow', 'mL/min'],
  ['Conc.', 'ng/µL'],
  ['Conductivity', 'mS/cm'],
  ['Voltage', 'V'],
  ['Humidity', '%'],
  ['Particle Size', 'nm'],
  ['Torque', 'N·m'],
  ['Signal', 'mV'],
];
const FACTS = [
  ['Operator', 'A. Smith'],
  ['Method', 'fast scan'],
  ['Instrument', 'Model X7'],
  ['Serial Number', 'SN-4471'],
  ['Gain', '80'],
  ['Lamp', 'D2 on'],
] as const;
const REMARKS = ['baseline ok', 'manual', 'air bubble seen', 'no peak', 'diluted again'];
const FIRST = {
  Sample: (n: number) => `S-${101 + n}`,
  'Sample ID': (n: number) => `QC pool ${1 + n}`,
  Well: (n: number) => `${'ABCDEFGH'[n % 8]}${1 + Math.floor(n / 8)}`,
  '#': (n: number) => String(n + 1),
  'No.': (n: number) => String(n + 1),
  Time: (n: number) => `00:0${Math.floor(n / 6)}:${(n % 6) * 10 || '00'}`,
  'Elapsed (s)': (n: number) => String(n * 30),
  '': (n: number) => `Position ${1 + n}`,
} as const;

const KINDS = ['table', 'table', 'table', 'grouped', 'plate', 'plates beside', 'lines', 'samples in columns'] as const;
const BLOCKS = ['Cycle 1', 'Cycle: 1', '[Step 1]', '1) Heat', '--- Segment 1 ---', 'Results for Channel 1'] as const;

interface Style {
  readonly random: Random;
  /** Undefined if cells are aligned by blanks. */
  readonly delimiter: string | undefined;
  readonly mark: string;
  readonly expected: Expected[];
  readonly labels: Set<string>;
}

function draw(
  { random, expected, mark }: Style,
  truth: Omit<Expected, 'value'>,
  written = 2 + random.below(3),
): string {
  // A comma before three digits can separate thousands.
  const digits = mark === ',' && written === 3 ? 4 : written;
  const value = Number((0.1 + random.next() * 99).toFixed(digits));
  const text = value.toFixed(digits);
  // A number that ends with 0, or is in the file already, proves less.
  if (text.endsWith('0') || expected.some((each) => each.value === value))
    return draw({ random, expected, mark, labels: new Set(), delimiter: undefined }, truth, digits);
  expected.push({ value, ...truth });
  return text.replace('.', mark);
}

/** Words stay as they are; cells are joined, or aligned with those of the other lines. */
function layOut(lines: readonly Text[], { delimiter, random }: Style): string[] {
  const hasTrailing = delimiter !== undefined && random.chance(0.15);
  const isRight = random.chance(0.5);
  const gap = pick(random, [2, 2, 3, 5]);
  const widths: number[] = [];
  for (const line of lines)
    if (typeof line !== 'string')
      for (const [n, { length }] of line.entries()) widths[n] = Math.max(widths[n] ?? 0, length);
  return lines.map((line) => {
    if (typeof line === 'string') return line;
    if (delimiter !== undefined)
      return (
        line.map((cell) => (cell.includes(delimiter) ? `"${cell}"` : cell)).join(delimiter) +
        (hasTrailing ? delimiter : '')
      );
    return line
      .map((cell, n) => (isRight && n > 0 ? cell.padStart(widths[n] ?? 0) : cell.padEnd(widths[n] ?? 0)))
      .join(' '.repeat(gap))
      .trimEnd();
  });
}

interface Column {
  /** In each line of the header. */
  readonly header: Cells;
  readonly names: readonly string[];
  readonly unit: string | undefined;
}

/** The lines of one table, with the units where the style has them. */
function writeTable(style: Style, ways: TableWays, block: string | undefined): Text[] {
  const { random, labels } = style;
  const { first, rows, columns, units, text, hasGaps, between, footer } = ways;
  const written = columns.map(({ header, names, unit }): Column => {
    const last = header.at(-1) ?? '';
    const brackets: Partial<Record<typeof units, string>> = {
      ...{ '()': ` (${unit})`, '[]': ` [${unit}]`, '/': ` / ${unit}`, ',': `, ${unit}` },
    };
    const bracket = brackets[units] ?? '';
    return { header: [...header.slice(0, -1), `${last}${bracket}`], names, unit };
  });
  for (const { header } of written) for (const name of header) labels.add(name);
  labels.add(first);
  const height = columns[0]?.header.length ?? 1;
  const header: Cells[] = Array.from({ length: height }, (_, line) => [
    line === height - 1 ? first : '',
    ...written.map((column) => column.header[line] ?? ''),
  ]);
  const dash = style.delimiter === undefined ? '-' : '';
  const unitRow: Cells = [dash, ...columns.map(({ unit }) => (ways.isBracketed ? `[${unit}]` : (unit ?? '')))];
  const head: Cells[] = units === 'above' ? [unitRow, ...header] : units === 'row' ? [...header, unitRow] : header;
  const at = text === 'none' ? 0 : text === 'middle' ? 1 + Math.ceil(columns.length / 2) : columns.length + 1;
  const withText = (cells: Cells, word: string) => (at === 0 ? cells : cells.toSpliced(at, 0, word));
  const lines: Text[] = head.map((cells) =>
    withText(cells, cells === header.at(-1) ? 'Remarks' : cells === unitRow ? dash : ''),
  );
  if (ways.isRuled) lines.push(ways.ruler(lines));
  const hasUnit = units !== 'none';
  for (let n = 0; n < rows; n++) {
    if (between !== '' && n > 0 && n === Math.floor(rows / 2)) lines.push(between);
    const row = FIRST[first](n + ways.start);
    if (row !== '' && !/^\d/.test(row)) labels.add(row);
    const cells = columns.map(({ names, unit }, column) => {
      if (hasGaps && (n + column) % 4 === 2 && rows > 2) return pick(random, ways.missing);
      const number = draw(style, { names, unit: hasUnit ? unit : undefined, row, block });
      return units === 'cells' ? `${number} ${unit}` : number;
    });
    lines.push(withText([row, ...cells], random.chance(0.3) ? '' : pick(random, REMARKS)));
  }
  if (footer === 'mean')
    lines.push(withText(['Mean', ...columns.map((_, n) => (700 + n).toFixed(2).replace('.', style.mark))], ''));
  else if (footer !== '') lines.push(...(footer.startsWith('\n') ? ['', footer.slice(1)] : [footer]));
  return lines;
}

type TableWays = ReturnType<typeof chooseTable>;

function chooseTable(style: Style, kind: 'table' | 'grouped') {
  const { random, delimiter } = style;
  const first = pick(random, Object.keys(FIRST) as (keyof typeof FIRST)[]);
  const isAligned = delimiter === undefined;
  const quantities = some(random, QUANTITIES, pick(random, [2, 3, 4, 6, 11]));
  const groups = some(random, ['Channel A', 'Channel B', 'Detector', 'Reference', 'Tank 2'], pick(random, [2, 3]));
  const isJoined = kind === 'table' && quantities.every(([name]) => name !== '') && random.chance(0.15);
  const isRepeated = random.chance(0.5);
  const columns: Column[] =
    kind === 'grouped'
      ? groups.flatMap((group) =>
          quantities.slice(0, 3).map(
            ([name, unit], n): Column => ({
              header: [n === 0 || isRepeated ? group : '', name],
              names: [`${group} ${name}`],
              unit,
            }),
          ),
        )
      : quantities.map(([name, unit]): Column => {
          const [upper = '', lower] = name.split(' ');
          return {
            header: isJoined ? (lower === undefined ? ['', upper] : [upper, lower]) : [name],
            names: [name],
            unit,
          };
        });
  return {
    first: first === '' && random.chance(0.5) ? ('Sample' as const) : first,
    columns,
    rows: pick(random, [1, 2, 3, 5, 8, 20]),
    start: random.chance(0.8) ? 0 : 4,
    units: pick(random, ['none', '()', '()', '[]', '/', ',', 'row', 'row', 'above', 'cells'] as const),
    isBracketed: random.chance(0.4),
    text: pick(random, ['none', 'none', 'none', 'middle', 'last'] as const),
    hasGaps: random.chance(0.3),
    missing:
      isAligned && random.chance(0.6)
        ? ['--']
        : random.chance(0.5)
          ? ['']
          : pick(random, [['n.d.'], ['---'], ['N/A', ''], ['OVER']]),
    between: random.chance(0.12) ? pick(random, ['* pump restarted', 'Lamp changed', '# autosampler paused', '']) : '',
    footer: random.chance(0.3)
      ? pick(random, ['mean', '\nEnd of data', '\nTotal run time: 12.75 min', '\nReviewed by: J. Doe', '*** END ***'])
      : '',
    isRuled: isAligned && random.chance(0.25),
    ruler: (lines: readonly Text[]) => {
      const cells = lines.filter((line) => typeof line !== 'string');
      return (cells[0] ?? []).map((_, n) => '-'.repeat(Math.max(3, ...cells.map((line) => line[n]?.length ?? 0))));
    },
  };
}

const LETTERS = 'ABCDEFGHIJKLMNOP';

function writePlates(style: Style, isBeside: boolean): Text[] {
  const { random } = style;
  const [rows, columns] = pick(random, [
    [8, 12],
    [8, 12],
    [4, 6],
    [3, 4],
    [2, 3],
  ] as const);
  const corner = pick(random, ['', '', '<>', 'Well', '\\']);
  const titles = some(
    random,
    pick(random, [
      ['450', '600', '620'].map((nm) => `${nm} nm`),
      ['Raw data', 'Blank corrected', 'Concentration'],
      ['Read 1:450', 'Read 2:600', 'Read 3:620'],
      ['Plate 1', 'Plate 2', 'Plate 3'],
    ]),
    pick(random, [1, 1, 2, 3]),
  );
  const isEmptyBetween = random.chance(0.8);
  const gaps = random.chance(0.3);
  const label = random.chance(0.2) && !isBeside;
  const numbers = Array.from({ length: columns }, (_, n) => String(n + 1));
  const missing = pick(random, ['', 'OVRFLW', '-']);
  const plate = (title: string): Cells[] => [
    [corner, ...numbers, ...(label ? [''] : [])],
    ...Array.from(
      { length: rows },
      (_, row): Cells => [
        LETTERS[row] ?? '',
        ...numbers.map((column) =>
          gaps && random.chance(0.2)
            ? missing
            : draw(
                style,
                {
                  names: label || titles.length > 1 ? [title, 'value'] : [title, 'value'],
                  unit: undefined,
                  row: `${LETTERS[row]}${column}`,
                  block: label ? undefined : title,
                },
                3,
              ),
        ),
        ...(label ? [title] : []),
      ],
    ),
  ];
  if (isBeside && titles.length > 1) {
    const plates = titles.map(plate);
    const head = titles.flatMap((title, n) => [...(n > 0 ? [''] : []), title, ...numbers.map(() => '')]);
    return [
      head,
      ...(plates[0] ?? []).map((_, n) => plates.flatMap((each, m) => [...(m > 0 ? [''] : []), ...(each[n] ?? [])])),
    ];
  }
  return titles.flatMap((title, n): Text[] => [
    ...(n > 0 && isEmptyBetween ? [''] : []),
    ...(label ? [] : [title]),
    ...plate(title),
  ]);
}

/** One line per quantity, below the name of each sample. */
function writeLines(style: Style): Text[] {
  const { random, delimiter } = style;
  const quantities = some(random, QUANTITIES, pick(random, [3, 5]));
  const samples = pick(random, [1, 1, 2, 3]);
  const sign = delimiter ?? pick(random, [': ', '  ', ' = ', '    ']);
  const unitSign = pick(random, [' ', ' ', delimiter ?? ' ']);
  return Array.from({ length: samples }, (_, n): string[] => [
    ...(n > 0 ? [''] : []),
    ...(samples > 1 ? [pick(random, [`Sample ${n + 1}`])] : []),
    ...quantities.map(
      ([name, unit]) =>
        `${name}${sign}${draw(style, { names: [name], unit, row: undefined, block: undefined })}${unitSign}${unit}`,
    ),
  ]).flat();
}

function writeTransposed(style: Style): Text[] {
  const { random, labels } = style;
  const samples = Array.from({ length: pick(random, [2, 3, 5]) }, (_, n) => `${pick(random, ['S'])}${n + 1}`);
  const inName = random.chance(0.6);
  const corner = pick(random, ['Sample', 'Parameter', 'Sample']);
  labels.add(corner);
  return [
    [corner, ...samples],
    ...some(random, QUANTITIES, pick(random, [3, 5])).map(([name, unit]): Cells => {
      const row = inName ? `${name} (${unit})` : name;
      labels.add(row);
      return [
        row,
        ...samples.map((sample) => draw(style, { names: [sample], unit: undefined, row, block: undefined })),
      ];
    }),
  ];
}

export function writeLayout(random: Random): Layout {
  const delimiter = pick(random, ['\t', '\t', ',', ';', undefined, undefined]);
  const mark = delimiter === ',' ? '.' : pick(random, ['.', '.', ',']);
  const style: Style = { random, delimiter, mark, expected: [], labels: new Set() };
  const facts = some(random, FACTS, pick(random, [0, 2, 4, 6]));
  const signs = [': ', ':\t', ' = ', delimiter ?? ': ', delimiter ?? ': '];
  const sign = pick(
    random,
    delimiter === ',' || delimiter === ';' ? signs.filter((each) => !each.includes('\t')) : signs,
  );
  const lines = facts.map(([name, value]) => `${name}${sign}${value}`);
  if (facts.length > 0 && random.chance(0.8)) lines.push('');
  const kind = pick(random, KINDS);
  if (kind === 'table' || kind === 'grouped') {
    const ways = chooseTable(style, kind);
    const blocks = kind === 'table' ? pick(random, [1, 1, 1, 2, 4]) : 1;
    const title = pick(random, BLOCKS);
    const isBare = random.chance(0.25);
    const isEmptyBetween = random.chance(0.7);
    const isAlone = blocks === 1 && random.chance(0.7);
    const all = Array.from({ length: blocks }, (_, n): Text[] => {
      const own = title.replace('1', String(n + 1));
      const table = writeTable(style, ways, isAlone ? undefined : own);
      const height = table.findIndex((line) => typeof line !== 'string' && line[0] === FIRST[ways.first](ways.start));
      return [
        ...(n > 0 && isEmptyBetween ? [''] : []),
        ...(isAlone ? [] : [own]),
        ...(isBare && n > 0 ? table.slice(height) : table),
      ];
    });
    lines.push(...layOut(all.flat(), style));
  } else {
    const body =
      kind === 'lines'
        ? writeLines(style)
        : kind === 'samples in columns'
          ? writeTransposed(style)
          : writePlates(style, kind === 'plates beside');
    lines.push(...layOut(body, style));
  }
  return { text: `${lines.join('\n')}\n`, facts, expected: style.expected, labels: style.labels };
}

const bare = (name: string) => name.replace(/ \(\d+\)$/, '');
const numberOf = (value: unknown, text: string): number =>
  typeof value === 'number' ? value : Number(/^[-+]?\d[\d.,]*(?=$| )/.exec(text)?.[0].replace(',', '.') ?? Number.NaN);

/** What was read wrongly, and what was not read as it should be. */
export function compareLayout({ meta, tables }: FileRecord, { facts, expected, labels }: Layout) {
  const byValue = new Map(expected.map((each) => [each.value, each]));
  const names = new Set(expected.flatMap((each) => each.names));
  const found = new Map<number, string>();
  const wrong: string[] = [];
  const lacking: string[] = facts
    .filter(([name, value]) => meta.get(name)?.text !== value)
    .map(([name]) => `fact ${name}: ${meta.get(name)?.text}`);
  const check = (known: Expected, name: string, unit: string | undefined, where: string) => {
    const isRight = known.names.includes(name);
    found.set(known.value, where);
    if (!isRight && names.has(name)) wrong.push(`${known.value} is ${known.names[0]}, not ${name} (${where})`);
    else if (!isRight) lacking.push(`${known.value}: name ${name} for ${known.names[0]}`);
    if (unit !== undefined && unit !== known.unit && isRight)
      wrong.push(`${known.value} ${name}: unit ${unit} for ${known.unit}`);
    else if (unit !== known.unit) lacking.push(`${known.value}: unit ${unit} for ${known.unit}`);
  };
  for (const [name, { value, text, unit }] of meta) {
    const known = byValue.get(numberOf(value, text));
    const isFact = facts.some(([own]) => own === name);
    if (known && !isFact) {
      if (known.row === undefined) check(known, bare(name), unit, 'fact');
      else lacking.push(`${known.value} is the fact ${name}`);
    } else if (!isFact && (labels.has(name) || labels.has(text))) wrong.push(`junk fact ${name} = ${text}`);
  }
  for (const { columns, rows } of tables)
    for (const row of rows) {
      const isPlateColumn = ({ row: well = '', value }: Expected) =>
        row.some((cell, n) => cell.value === value && well === `${row[0]?.text}${columns[n]?.name}`);
      const inRow = row.flatMap(({ value, text, unit }, n) => {
        const known = text === '' ? undefined : byValue.get(numberOf(value, text));
        if (!known) return [];
        check(known, bare(columns[n]?.name ?? '').replace(/ text$/, ''), unit ?? columns[n]?.unit, 'table');
        return [known];
      });
      const [first] = inRow;
      // A plate may be read as a table with a column for each of its columns.
      if (inRow.some((each) => each.row !== first?.row && !isPlateColumn(each)))
        wrong.push(`one row for ${inRow.map(({ row }) => row).join(' and ')}`);
      if (first?.row !== undefined && !row.some(({ text }) => text === first.row))
        lacking.push(`row ${first.row} without its name`);
    }
  const lost = expected.filter(({ value }) => !found.has(value)).length;
  if (lost > 0) lacking.push(`${lost} of ${expected.length} values lost`);
  return { wrong, lacking, isComplete: wrong.length === 0 && lacking.length === 0 };
}
