import { createHash } from 'node:crypto';
import { FileError } from '../../src/errors.js';
import { toInstrument } from '../../src/learn/learn.js';
import { createMapping } from '../../src/mapping/mapping.js';
import type { FileRecord, IdentifiedFile, Value } from '../../src/model.js';
import type { Generated, TrueColumn, Truth } from './generate.js';

/** What was found of one kind. `wrong`: presented under its name with another value. The rest was not found. */
export interface Tally {
  all: number;
  right: number;
  wrong: number;
}

export interface Score {
  readonly facts: Tally;
  readonly readings: Tally;
  readonly units: Tally;
  readonly dates: Tally;
  /** Why the file would be quarantined. */
  readonly refused: string | undefined;
  /** What is wrong, for people. */
  readonly mistakes: readonly string[];
}

const mapping = createMapping(toInstrument('instrument', { watch: '/data' }));
/** After all dates in the files. */
const NOW = Date.UTC(2026, 0, 2);

async function readBytes({ bytes, extension, name = 'run' }: Generated) {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const path = `/data/${name}.${extension}`;
  const file: IdentifiedFile = {
    ...{ path, location: path, size: bytes.length, mtimeNs: BigInt(NOW) * 1_000_000n, inode: 0n },
    ...{ sha256, content: bytes },
  };
  const record = await mapping.parse(file);
  return { record, ...mapping.map(record, file, NOW) };
}

/** Reads a generated file without a mapping and compares the result with the truth. */
export async function score(file: Generated): Promise<Score> {
  const result = {
    ...{ facts: tally(), readings: tally(), units: tally(), dates: tally() },
    ...{ refused: undefined as string | undefined, mistakes: [] as string[] },
  };
  const read = await readBytes(file).catch((error: unknown) => {
    if (!(error instanceof FileError)) throw error;
    result.refused = error.message;
    return undefined;
  });
  const record = read?.record ?? { meta: new Map(), tables: [], unread: [] };
  for (const { name, text, value, unit } of file.facts) {
    const found = record.meta.get(name);
    // A number that is filed as the text in the file is not wrong, but not found either.
    const isText = found?.text.trim() === text && typeof found.value !== 'number';
    const isRight = found && (isSame(found, value) || (isText ? undefined : false));
    add(result.facts, isRight, () => `fact ${name}: ${found?.value} is not ${value}`, result);
    if (unit !== undefined) addUnit(name, found && { unit: found.unit }, unit, result);
  }
  for (const columns of file.tables) scoreTable(columns, file, record, result);
  const date = read?.dateFrom === 'modified' ? undefined : read?.draft.date;
  // A file without a date must not get one from elsewhere.
  if (file.date !== undefined || date !== undefined)
    add(
      result.dates,
      date === undefined ? undefined : date === file.date,
      () => `date ${date} is not ${file.date}`,
      result,
    );
  return result;
}

const tally = (): Tally => ({ all: 0, right: 0, wrong: 0 });

function add(into: Tally, isRight: boolean | undefined, say: () => string, { mistakes }: { mistakes: string[] }): void {
  into.all++;
  if (isRight) into.right++;
  if (isRight === false) {
    into.wrong++;
    mistakes.push(say());
  }
}

type Result = { readonly units: Tally; readonly readings: Tally; readonly mistakes: string[] };

function addUnit(name: string, found: { unit?: string | undefined } | undefined, unit: string, result: Result): void {
  const isRight = found?.unit === undefined ? undefined : found.unit === unit;
  add(result.units, isRight, () => `unit of ${name}: ${found?.unit} is not ${unit}`, result);
}

/** The cells of a table by its column names: in order if the number of rows is right, otherwise wherever they are. */
function scoreTable(columns: readonly TrueColumn[], { tables }: Generated, record: FileRecord, result: Result): void {
  const names = columns.map(({ name }) => name);
  const size = columns[0]?.values.length ?? 0;
  const total = tables.filter((each) => each.map(({ name }) => name).join() === names.join());
  const offset = total.indexOf(columns) * size;
  for (const { name, unit, values } of columns) {
    // The blocks of a file may be one table or several.
    const found = record.tables.flatMap((table) => {
      const at = table.columns.findIndex((one) => one.name === name);
      return at < 0 ? [] : [{ column: table.columns[at], cells: table.rows.map((row) => row[at]) }];
    });
    if (unit !== undefined) addUnit(name, found[0]?.column, unit, result);
    const cells = found.flatMap((each) => each.cells);
    const start = cells.length === size * total.length ? offset : 0;
    const isWhole = cells.length === size || cells.length === size * total.length;
    const everywhere = tables.flatMap((each) => each.filter((one) => one.name === name).flatMap((one) => one.values));
    for (const [n, value] of values.entries()) {
      const cell = isWhole ? cells[start + n] : cells.find((each) => each !== undefined && isSame(each, value));
      add(
        result.readings,
        cell && isSame(cell, value),
        () => `${name}, row ${n + 1}: ${cell?.value} is not ${value}`,
        result,
      );
    }
    if (isWhole) continue;
    const strange = cells.find(
      (cell) => cell && cell.value !== null && !everywhere.some((value) => isSame(cell, value)),
    );
    if (strange) add(result.readings, false, () => `${name} has ${strange.value}, which is no reading`, result);
  }
}

function isSame({ value, text }: Value, truth: Truth): boolean {
  if (truth === null) return value === null;
  return value === truth || (typeof truth === 'string' && text.trim() === truth);
}

/** Reads the files of these seeds, and adds up what was found. */
export async function scoreAll(seeds: Iterable<number>, make: (seed: number) => Generated) {
  const sum = { files: 0, refused: 0, facts: tally(), readings: tally(), units: tally(), dates: tally() };
  const mistakes: string[] = [];
  const reasons = new Map<string, number[]>();
  for (const seed of seeds) {
    const one = await score(make(seed));
    sum.files++;
    if (one.refused !== undefined) {
      sum.refused++;
      const kind = one.refused.replace(/"[^"]*"|\d[\d–,: ]*/g, '…');
      reasons.set(kind, [...(reasons.get(kind) ?? []), seed]);
    }
    for (const kind of ['facts', 'readings', 'units', 'dates'] as const) {
      sum[kind].all += one[kind].all;
      sum[kind].right += one[kind].right;
      sum[kind].wrong += one[kind].wrong;
    }
    mistakes.push(...one.mistakes.slice(0, 3).map((mistake) => `seed ${seed}: ${mistake}`));
  }
  return { ...sum, mistakes, reasons };
}
