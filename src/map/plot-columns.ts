import type { Column, PlotAxis, Table, Value } from '../model.js';

/** The columns of a table as a plot sees them: numbers on an axis, or names. */
export interface PlotColumn {
  readonly name: string;
  readonly unit: string | undefined;
  /** `text`: names. `none`: no value at all, or numbers with different units. */
  readonly type: PlotAxis['type'] | 'text' | 'none';
  /** One per row; NaN if it is missing, censored, text or infinite. Dates are milliseconds of the clock in the file. */
  readonly numbers: Float64Array;
  /** How many of them are numbers. */
  readonly count: number;
  readonly min: number;
  readonly max: number;
  /** A row number or an identifier, which is not a reading. */
  readonly isId: boolean;
  /** Its name or unit is that of an axis, such as time or wavelength. */
  readonly isAxis: boolean;
  /** As written, for names. */
  textAt(row: number): string;
}

/** A first column that counts the rows is not a reading, whatever its name. */
export function readColumns(table: Table): PlotColumn[] {
  const columns = table.columns.map((_, index) => readColumn(table, index));
  const counter = columns.find(
    ({ type, unit = '', isAxis, numbers }, index) =>
      type === 'number' && !isAxis && (unit === '' ? index === 0 : /^seq/i.test(unit)) && countsRows(numbers),
  );
  return columns.map((column) => (column === counter ? { ...column, unit: undefined, isId: true } : column));
}

/** A few texts in a numeric column, such as a remark, are gaps. */
const MIN_NUMERIC_SHARE = 0.9;

export function readColumn(table: Table, index: number): PlotColumn {
  const column = table.columns[index] ?? { name: '' };
  const found = countTypes(table, index);
  // `Dose text` repeats the cells of another column.
  const type = column.invented === 'column' ? 'none' : typeOf(found);
  const numbers = new Float64Array(table.rows.length).fill(Number.NaN);
  const read = readerFor(type, table, index);
  let [count, min, max] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const [row, cells] of table.rows.entries()) {
    const number = read(cells[index]?.value);
    if (!Number.isFinite(number)) continue;
    numbers[row] = number;
    count++;
    if (number < min) min = number;
    if (number > max) max = number;
  }
  const unit = knownUnit(column.unit ?? found.unit);
  const isAxis = isAxisLike(column, type, unit);
  const shape = { name: column.name, unit, type, numbers, count, min, max };
  return {
    ...shape,
    isId: type === 'number' && !isAxis && unit === undefined && ID_NAME.test(column.name),
    isAxis,
    textAt: (row) => table.rows[row]?.[index]?.text ?? '',
  };
}

const REMARK_NAME = /^(?:status|state|flags?|notes?|comments?|remarks?|messages?|errors?|quality)$/i;

/** Not the name of a sample. Columns of events have mostly empty cells. */
export function isRemark({ name, textAt }: PlotColumn, rows: number): boolean {
  const empty = Array.from({ length: rows }, (_, row) => textAt(row)).filter((text) => text === '');
  return REMARK_NAME.test(name) || empty.length * 2 >= rows;
}

const DATE = /^[+-]?\d{4,6}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/;
const CLOCK = /^(\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?$/;

function countTypes({ rows }: Table, index: number) {
  const found = { numbers: 0, dates: 0, clocks: 0, filled: 0, unit: undefined as string | undefined, hasUnits: false };
  for (const cells of rows) {
    const cell = cells[index];
    const value = cell?.value;
    if (value === null || value === undefined || value === '') continue;
    found.filled++;
    if (typeof value === 'number') {
      if (found.numbers++ === 0) found.unit = cell?.unit;
      else if (cell?.unit !== found.unit) found.hasUnits = true;
    } else if (typeof value === 'string' && DATE.test(value)) found.dates++;
    else if (typeof value === 'string' && CLOCK.test(value)) found.clocks++;
  }
  return found;
}

function typeOf({ numbers, dates, clocks, filled, hasUnits }: ReturnType<typeof countTypes>): PlotColumn['type'] {
  if (filled === 0 || (hasUnits && numbers > 0)) return 'none';
  if (numbers >= filled * MIN_NUMERIC_SHARE) return 'number';
  if (dates === filled) return 'date';
  return clocks === filled ? 'clock' : 'text';
}

type ReadNumber = (value: Value['value'] | undefined) => number;

function readerFor(type: PlotColumn['type'], { rows }: Table, index: number): ReadNumber {
  if (type === 'number') return (value) => (typeof value === 'number' ? value : Number.NaN);
  if (type === 'clock') return (value) => clockMs(String(value));
  if (type !== 'date') return () => Number.NaN;
  // All dates are shown at the offset of the first one, so that a change to summer time does not repeat an hour.
  const first = rows.find((cells) => typeof cells[index]?.value === 'string')?.[index]?.value;
  const shift = offsetMs(String(first ?? ''));
  return (value) => (typeof value === 'string' ? dateMs(value, shift) : Number.NaN);
}

/** Without an offset, the clock in the file is taken as it is. */
function dateMs(iso: string, shift: number): number {
  const offset = DATE.exec(iso)?.[1];
  if (offset !== undefined) return Date.parse(iso) + shift;
  return Date.parse(iso.includes('T') ? `${iso}Z` : iso);
}

function offsetMs(iso: string): number {
  const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(DATE.exec(iso)?.[1] ?? '') ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
}

function clockMs(text: string): number {
  const [, hours, minutes, seconds = '0'] = CLOCK.exec(text) ?? [];
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}

const ID_NAME =
  /^(?:#|n|nr|no|num|index|idx|row|line|record|entry|dataset|point|pt|zeile|nummer|column|col|status|code|\w*code|cycle|step|sweep|scan|run|segment|section|curve|trace|loop|replicate)\.?$|(?:^|[\s_.-])(?:id|idx|index|no|nr|num|number|nummer|name)\.?$|#$/i;

/** What files write if there is no unit. */
const knownUnit = (unit: string | undefined): string | undefined =>
  unit === undefined || /^(?:unitless|none|n\/a|[-#?]|)$/i.test(unit.trim()) ? undefined : unit;

/** 0, 1, 2 … or 1, 2, 3 …: nothing that was measured looks like this. */
function countsRows(numbers: Float64Array): boolean {
  const [first] = numbers;
  if (numbers.length < 3 || (first !== 0 && first !== 1)) return false;
  return numbers.every((number, row) => number === row + first);
}

const TIME_NAME = /time|zeit|elapsed|dauer|date|datum|timestamp|uhr/i;
/** Never a reading either. */
const PURE_AXIS_NAME = /wavel|waven|wellenl|wellenz|lambda|λ|freq|theta|angle|winkel|retention|m\/z|^x$/i;
/** Can be a reading against time. */
const AXIS_NAME = /shift|energ|potential|voltage|spannung|shear rate|strain|distance|depth|field|volume|pressure/i;
const AXIS_UNIT = /^(?:m?s|sec|min|h|hr|d|nm|µm|cm-1|cm\^-1|cm⁻¹|1\/cm|k?Hz|MHz|GHz|eV|keV|ppm|m\/z|°2θ|2θ)$/i;

const isTime = ({ name, type }: Pick<PlotColumn, 'name' | 'type'>): boolean =>
  type === 'date' || type === 'clock' || TIME_NAME.test(name);

const isAxisLike = (column: Column, type: PlotColumn['type'], unit: string | undefined): boolean =>
  isTime({ name: column.name, type }) ||
  (type === 'number' &&
    (PURE_AXIS_NAME.test(column.name) || AXIS_NAME.test(column.name) || AXIS_UNIT.test(unit ?? '')));

/** What readings are plotted against. */
export const isPureAxis = (column: Pick<PlotColumn, 'name' | 'type'>): boolean =>
  isTime(column) || PURE_AXIS_NAME.test(column.name);

/** The direction of the numbers, ignoring gaps: 1 up, -1 down; 0 if they turn back or mostly repeat. */
export function directionOf(numbers: Float64Array): 1 | -1 | 0 {
  let direction: 1 | -1 | 0 = 0;
  let last = Number.NaN;
  let [steps, count] = [0, 0];
  for (const number of numbers) {
    if (Number.isNaN(number)) continue;
    count++;
    if (number !== last && !Number.isNaN(last)) {
      steps++;
      const step = number > last ? 1 : -1;
      if (direction !== 0 && step !== direction) return 0;
      direction = step;
    }
    last = number;
  }
  return steps >= (count - 1) / 2 ? direction : 0;
}

export const isConstant = ({ min, max }: Pick<PlotColumn, 'min' | 'max'>): boolean => !(min < max);

/** Joins a column of days and one of times of day, as loggers write them. */
export const joinDayAndClock = (day: PlotColumn, clock: PlotColumn): PlotColumn => ({
  ...day,
  name: day.name,
  ...rangeOf(day.numbers.map((ms, row) => ms + (clock.numbers[row] ?? Number.NaN))),
});

export function rangeOf(numbers: Float64Array): Pick<PlotColumn, 'numbers' | 'count' | 'min' | 'max'> {
  let [count, min, max] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const number of numbers) {
    if (Number.isNaN(number)) continue;
    count++;
    if (number < min) min = number;
    if (number > max) max = number;
  }
  return { numbers, count, min, max };
}

/** `A1` to `P24`, with the row and column from 0. */
export function wellAt(text: string): { readonly row: number; readonly column: number } | undefined {
  const [, letter, digits] = /^([A-P])0?([1-9]|1\d|2[0-4])$/i.exec(text.trim()) ?? [];
  if (letter === undefined) return undefined;
  return { row: letter.toUpperCase().charCodeAt(0) - 65, column: Number(digits) - 1 };
}

/** Minimum and maximum of each of these many groups of rows, so that peaks stay. Gaps longer than a group stay too. */
export function thin(x: Float64Array, y: Float64Array, maxPoints: number): { x: Float64Array; y: Float64Array } {
  if (y.length <= maxPoints) return { x, y };
  const groups = Math.max(1, Math.floor((maxPoints - 2) / 2));
  const picked = new Set<number>([0]);
  for (let group = 0; group < groups; group++) {
    const from = Math.floor((group * y.length) / groups);
    const [low, high] = extremesOf(y, from, Math.floor(((group + 1) * y.length) / groups));
    for (const row of low < high ? [low, high] : [high, low]) picked.add(row);
  }
  picked.add(y.length - 1);
  const rows = Uint32Array.from(picked).sort();
  return { x: Float64Array.from(rows, (row) => x[row] ?? 0), y: Float64Array.from(rows, (row) => y[row] ?? 0) };
}

/** The rows of the smallest and the largest number; the first row if there is none. */
function extremesOf(y: Float64Array, from: number, to: number): [number, number] {
  let [low, high] = [-1, -1];
  for (let row = from; row < to; row++) {
    const value = y[row] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    if (low < 0 || value < (y[low] ?? 0)) low = row;
    if (high < 0 || value > (y[high] ?? 0)) high = row;
  }
  return low < 0 ? [from, from] : [low, high];
}
