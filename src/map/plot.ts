import type { PlotOption } from '../config/schema.js';
import type { FileRecord, Plot, PlotAxis, PlotSeries, Table } from '../model.js';
import { formatCount, headingOf, joinWords, nearest, plural, singleLine } from '../text.js';
import {
  directionOf,
  isConstant,
  isPureAxis,
  isRemark,
  joinDayAndClock,
  type PlotColumn,
  rangeOf,
  readColumn,
  readColumns,
  thin,
  wellAt,
} from './plot-columns.js';
import { isPartial } from './tables.js';

/** Why there is no plot, as a phrase. `column`: the one that the mapping names and the file lacks. */
interface NoPlot {
  readonly reason: string;
  readonly column?: string;
}

export type PlotChoice = Plot | NoPlot;

export const isPlot = (choice: PlotChoice): choice is Plot => 'kind' in choice;

/** Chooses the plot of a record. No plot is better than a misleading one, so each rule that fails gives a reason. */
export function choosePlot({ tables }: FileRecord, option: PlotOption = 'auto'): PlotChoice {
  if (option === 'never') return { reason: 'the mapping has `plot: never`' };
  const [first] = tables;
  if (!first) return { reason: 'the file has no table of readings' };
  if (option !== 'auto') return plotOfColumns(tables, option);
  let choice = plotOfTable(first);
  for (const table of tables.slice(1)) {
    if (isPlot(choice)) break;
    const other = plotOfTable(table);
    if (isPlot(other) && table.rows.length >= MIN_OTHER_ROWS)
      choice = withNote(other, `From the table ${quote(table.name)}`);
  }
  return choice;
}

/** In words: `line plot of Absorbance (AU) against Wavelength (nm), 601 points`. */
export function describePlot(plot: Plot): string {
  const names = plot.kind === 'heatmap' ? [plot.y.name] : plot.series.map(({ name }) => name);
  const isOneColumn = names.length > 1 && plot.y.name !== VALUE && !names.some((name) => name.startsWith(plot.y.name));
  const few = isOneColumn ? `${plot.y.name} of ${joinWords(names)}` : joinWords(names);
  const shown = names.length > 4 ? `${formatCount(names.length)} series of ${plot.y.name}` : few;
  const of = singleLine(headingOf({ name: shown, unit: plot.y.unit }));
  const against = singleLine(headingOf(plot.x));
  switch (plot.kind) {
    case 'heatmap':
      return `heat map of ${of} on a plate of ${plot.rows} × ${plot.columns} wells`;
    case 'bar':
      return `bar chart of ${of} by ${against}, ${plural(plot.categories.length, 'category', 'categories')}`;
    case 'line':
    case 'points':
      return `${plot.kind === 'line' ? 'line plot' : 'points'} of ${of} against ${against}`;
  }
}

const quote = (name: string): string => JSON.stringify(singleLine(name));
const withNote = (plot: Plot, note: string): Plot => ({ ...plot, notes: [...plot.notes, note] });

/** A table of which not all rows are in memory would be shown only in part. */
function refuseTable(table: Table): NoPlot | undefined {
  if (isPartial(table))
    return { reason: `the table has ${formatCount(table.count)} rows, too many to keep them all for a plot` };
  if (table.rows.length < 2) return { reason: 'the table has fewer than two rows' };
  return undefined;
}

const MAX_CATEGORIES = 40;
/** A short table that is not the first is rather a list of settings. */
const MIN_OTHER_ROWS = 8;
/** Below this, a bar for each well shows more than a plate that is nearly empty. */
const MIN_WELLS = 8;

function plotOfTable(table: Table): PlotChoice {
  const refused = refuseTable(table);
  if (refused) return refused;
  const all = withJoinedDates(readColumns(table));
  const rows = table.rows.length;
  const columns = withUnitColumn(all, rows);
  if (!Array.isArray(columns)) return columns as NoPlot;
  const numeric = columns.filter(({ type }) => type === 'number');
  if (numeric.length === 0) return { reason: 'no column has numbers with one unit' };
  if (numeric.every(({ count }) => count === 0)) return { reason: 'all values are missing' };
  const names = columns.filter((column) => column.type === 'text' && distinctTexts(column, rows).size > 1);
  const plate = names.find((column) => rows >= MIN_WELLS && areWells(column, rows) && areDistinct(column, rows));
  if (plate) return heatmap(plate, readingsOf(columns, plate), rows);
  const x = chooseX(columns, names, rows);
  // Dates as text, beside an axis that has them as dates, do not name samples.
  const labels = labelsAmong(x ? names.filter((column) => !isPureAxis(column)) : names, rows);
  // Samples one after the other are not a course in time.
  const isOfSamples = labels !== undefined && (!x || areDistinct(labels, rows) || isTimeOfSamples(x, labels, rows));
  if (isOfSamples && (rows <= MAX_CATEGORIES || !x || !areDistinct(labels, rows)))
    return barChart(labels, readingsOf(columns, labels), rows);
  if (x) return againstX(x, columns, names, rows);
  const [repeated] = names;
  if (!repeated) return inFileOrder(columns, rows);
  return { reason: `the names in ${quote(repeated.name)} repeat, and no column is an axis` };
}

/** A column of units tells what the readings beside it are measured in. */
function withUnitColumn(columns: readonly PlotColumn[], rows: number): readonly PlotColumn[] | NoPlot {
  const units = columns.find(({ name, type }) => type === 'text' && /^(?:units?|einheit(?:en)?)$/i.test(name.trim()));
  if (!units) return columns;
  const [unit, ...others] = [...distinctTexts(units, rows)].filter((text) => text !== '');
  if (others.length > 0) return { reason: `the readings have different units, in the column ${quote(units.name)}` };
  const isBare = (column: PlotColumn) => column.type === 'number' && column.unit === undefined && !column.isId;
  const bare = columns.filter(isBare);
  return bare.length === 1 ? columns.map((column) => (isBare(column) ? { ...column, unit } : column)) : columns;
}

/** The column that names the samples: by its heading, or because its names differ most. */
function labelsAmong(names: readonly PlotColumn[], rows: number): PlotColumn | undefined {
  const sizes = names.map((column) => ({ column, size: distinctTexts(column, rows).size }));
  const many = sizes.filter(({ column, size }) => size > rows / 4 && !isRemark(column, rows));
  const most = Math.max(...many.map(({ size }) => size));
  const named = many.find(({ column, size }) => size === rows && SAMPLE_NAME.test(column.name));
  return (named ?? many.find(({ size }) => size === most))?.column;
}

const SAMPLE_NAME = /sample|probe|name|compound|analyt|substanz|test/i;

const isTimeOfSamples = (x: PlotColumn, labels: PlotColumn, rows: number): boolean =>
  isPureAxis(x) && distinctTexts(labels, rows).size > rows / 4;

/** Loggers write the day and the time of day into two columns. */
function withJoinedDates(columns: readonly PlotColumn[]): readonly PlotColumn[] {
  const at = columns.findIndex(({ type }) => type === 'date');
  const clock = columns.find(({ type }) => type === 'clock');
  const day = columns[at];
  if (!day || !clock || !day.numbers.every((ms) => Number.isNaN(ms) || ms % 86_400_000 === 0)) return columns;
  const joined = joinDayAndClock(day, clock);
  return columns.flatMap((column) => (column === clock ? [] : [column === day ? joined : column]));
}

function areWells(column: PlotColumn, rows: number): boolean {
  for (let row = 0; row < rows; row++) if (!wellAt(column.textAt(row))) return false;
  return true;
}

const distinctTexts = (column: PlotColumn, rows: number): Set<string> =>
  new Set(Array.from({ length: rows }, (_, row) => column.textAt(row)));

const areDistinct = (column: PlotColumn, rows: number): boolean => distinctTexts(column, rows).size === rows;

/** The first that runs in one direction and is an axis by its name, or is the first of all; otherwise any axis. */
function chooseX(columns: readonly PlotColumn[], names: readonly PlotColumn[], rows: number): PlotColumn | undefined {
  const candidates = columns.filter(
    (column) => column.type !== 'text' && column.type !== 'none' && !column.isId && !isConstant(column),
  );
  const [first] = candidates;
  const running = candidates.filter((column) => column.count > rows / 2 && directionOf(column.numbers) !== 0);
  const isCourse = (x: PlotColumn): boolean => (byName(x, x, names, rows)?.length ?? rows) < rows / MIN_COURSE;
  return [
    running.find(({ isAxis }) => isAxis),
    running.find((column) => column === first && rows > MIN_COURSE),
    candidates.find(({ isAxis }) => isAxis),
    first && (isCourse(first) || (rows > MIN_COURSE && names.length === 0)) ? first : undefined,
  ].find((x) => x && readingsOf(columns, x).length > 0);
}

/** Fewer numbers can run in one direction by chance. */
const MIN_COURSE = 5;

/** The columns that can identify series that follow each other in a table: names, or an axis with few values. */
const seriesNames = (x: PlotColumn, columns: readonly PlotColumn[], names: readonly PlotColumn[]) => [
  ...names,
  ...columns.filter((column) => column !== x && column.type === 'number' && (column.isId || isPureAxis(column))),
];

/** What was measured: no axes, row numbers or identifiers, and nothing constant if something else varies. */
function readingsOf(columns: readonly PlotColumn[], x: PlotColumn): PlotColumn[] {
  const numeric = columns.filter(
    (column) => column !== x && column.type === 'number' && column.count > 0 && !column.isId && !isPureAxis(column),
  );
  const isSecondTime = (column: PlotColumn): boolean => x.isAxis && x.unit !== undefined && column.unit === x.unit;
  return (
    [
      numeric.filter((column) => !isConstant(column) && !isSecondTime(column)),
      numeric.filter((column) => !isConstant(column)),
      numeric,
    ].find((readings) => readings.length > 0) ?? []
  );
}

interface Chosen {
  readonly shown: readonly PlotColumn[];
  readonly notes: readonly string[];
}

/** Readings that belong on one axis: with the same unit, or without any but with names like `Ch1` and `Ch2`. */
function onOneAxis(readings: readonly PlotColumn[]): Chosen {
  const byAxis = new Map<string, PlotColumn[]>();
  for (const column of readings) {
    const key = column.unit === undefined ? `name ${stemOf(column.name)}` : `unit ${column.unit}`;
    const group = byAxis.get(key);
    const [sibling] = group ?? [];
    if (!group || !sibling) byAxis.set(key, [column]);
    else if (column.unit !== undefined || wellAt(column.name) || doOverlap(sibling, column)) group.push(column);
  }
  const [first = [], ...rest] = byAxis.values();
  // A plate reader's 96 wells matter more than the temperature in front of them.
  const shown = rest.reduce((most, group) => (group.length >= 3 && group.length > most.length ? group : most), first);
  return { shown, notes: leftOut(readings, shown) };
}

/** For a column without a heading, labfeed made one up. */
const isMadeUp = (name: string): boolean => /^(?:column|field) [\d.]+$/.test(name);

/** Headings that labfeed made up say nothing about what their columns have in common. */
const stemOf = (name: string): string => {
  if (wellAt(name)) return 'well';
  return isMadeUp(name) ? name : name.toLowerCase().replace(/[\d\s_.,:#()[\]-]+/g, '') || 'number';
};

/** A spectrum of two columns explains itself. Anything else without headings may be a column of codes or counters. */
const refuseNameless = (shown: readonly PlotColumn[]): NoPlot | undefined =>
  shown.length > 0 && shown.every(({ name }) => isMadeUp(name))
    ? { reason: 'the columns have no headings that say what was measured' }
    : undefined;

/** Without units, values of another size are probably of another kind. */
const doOverlap = (a: PlotColumn, b: PlotColumn): boolean => a.min <= b.max && b.min <= a.max;

function leftOut(readings: readonly PlotColumn[], shown: readonly PlotColumn[]): string[] {
  const others = readings.filter((column) => !shown.includes(column));
  return others.length === 0 ? [] : [`Not shown, because of another or no unit: ${listNames(others)}`];
}

function listNames(columns: readonly PlotColumn[]): string {
  const names = columns.map(({ name }) => singleLine(name));
  return joinWords(names.length > 6 ? [...names.slice(0, 5), `${names.length - 5} more`] : names);
}

function againstX(
  x: PlotColumn,
  columns: readonly PlotColumn[],
  names: readonly PlotColumn[],
  rows: number,
  asked?: { readonly kind?: 'line' | 'points' | undefined; readonly shown: Chosen },
): PlotChoice {
  const { shown, notes } = asked?.shown ?? onOneAxis(readingsOf(columns, x));
  const [first] = shown;
  if (!first) return { reason: 'no column has readings' };
  const isRunning = directionOf(x.numbers) !== 0;
  if (!isRunning && asked?.kind === undefined) {
    const grouped = byName(x, first, seriesNames(x, columns, names), rows);
    const others = shown.slice(1);
    const more = others.length > 0 ? [`Not shown, to keep the series apart: ${listNames(others)}`] : [];
    if (grouped) return lines({ kind: 'line', x, y: first, series: grouped, notes: [...notes, ...more] });
  }
  const kind = asked?.kind ?? (isRunning ? 'line' : 'points');
  const nameless = asked || isRunning ? undefined : refuseNameless(shown);
  if (nameless) return nameless;
  const series = shown.map((column) => ({ name: column.name, x: x.numbers, y: column.numbers }));
  return lines({ kind, x, y: sharedAxis(shown), series, notes });
}

/** Several series that follow each other in the table, identified by a column of names or wells. */
function byName(
  x: PlotColumn,
  y: PlotColumn,
  names: readonly PlotColumn[],
  rows: number,
): readonly PlotSeries[] | undefined {
  for (const column of names) {
    const groups = new Map<string, number[]>();
    for (let row = 0; row < rows; row++) {
      const text = column.type === 'text' ? column.textAt(row) : `${column.name} ${column.numbers[row]}`;
      const group = groups.get(text);
      if (group) group.push(row);
      else groups.set(text, [row]);
    }
    if (groups.size < 2 || groups.size > MAX_SERIES) continue;
    const series = [...groups].map(([name, members]) => ({
      name,
      x: Float64Array.from(members, (row) => x.numbers[row] ?? Number.NaN),
      y: Float64Array.from(members, (row) => y.numbers[row] ?? Number.NaN),
    }));
    if (series.every((each) => each.x.length > 1 && directionOf(each.x) !== 0)) return series;
  }
  return undefined;
}

/** The axis of columns whose names have nothing in common. */
const VALUE = 'value';

/** The axis of several columns: what their names have in common, and their unit. */
function sharedAxis(columns: readonly PlotColumn[]): PlotAxis {
  const [first, ...others] = columns;
  const unit = first?.unit;
  if (!first || others.length === 0) return axisOf(first ?? { name: '', unit, type: 'number' });
  let common = first.name;
  for (const { name } of others) while (!name.startsWith(common)) common = common.slice(0, -1);
  const name = common.replace(/[\s_.,:#([-]+$/, '');
  return axisOf({ name: name.length >= 3 ? name : VALUE, unit, type: 'number' });
}

const axisOf = ({ name, unit, type }: Pick<PlotColumn, 'name' | 'unit' | 'type'>): PlotAxis => ({
  ...{ name: singleLine(name), unit: unit && singleLine(unit) },
  type: type === 'date' || type === 'clock' ? type : 'number',
});

/** With more, neighbouring colours of the gradient would look the same. */
const MAX_SERIES = 384;
const MAX_POINTS = 4000;
const MIN_POINTS_PER_SERIES = 200;
/** Computing with larger numbers would overflow. */
const MAX_NUMBER = 1e300;

interface Lines {
  readonly kind: 'line' | 'points';
  readonly x: PlotColumn;
  readonly y: Pick<PlotColumn, 'name' | 'unit'>;
  readonly series: readonly PlotSeries[];
  readonly notes: readonly string[];
}

function lines({ kind, x, y, series, notes }: Lines): PlotChoice {
  if (series.length > MAX_SERIES) return { reason: `${formatCount(series.length)} series are too many to tell apart` };
  const complete = series.map(withBothValues).filter((one) => one.x.length > 0);
  const range = rangeOf(joined(complete.map((one) => one.x)));
  if (complete.every((one) => rangeOf(one.y).count === 0)) return { reason: 'all values are missing' };
  if (complete.every((one) => rangeOf(one.y).count < 2)) return { reason: 'there is only one point' };
  if (isConstant(range)) return { reason: `all values of ${quote(x.name)} are the same` };
  const refused = refuseRange([x, range], ...complete.map((one) => [{ name: one.name }, rangeOf(one.y)] as const));
  if (refused) return refused;
  const maxPoints = Math.max(MIN_POINTS_PER_SERIES, Math.min(MAX_POINTS, Math.floor((2 * MAX_POINTS) / series.length)));
  const thinned = complete.map((one) => ({ name: singleLine(one.name), ...thin(one.x, one.y, maxPoints) }));
  return {
    ...{ kind, x: { ...axisOf(x), ...styleOf(x, range) }, y: axisOf({ ...y, type: 'number' }), series: thinned },
    notes: [...notes, ...thinNote(complete, thinned)],
  };
}

/** Rows without x cannot be placed. A gap in y stays a gap. */
function withBothValues(series: PlotSeries): PlotSeries {
  if (!series.x.some(Number.isNaN)) return series;
  const isPlaced = (_: number, row: number): boolean => !Number.isNaN(series.x[row]);
  return { name: series.name, x: series.x.filter(isPlaced), y: series.y.filter(isPlaced) };
}

function joined(parts: readonly Float64Array[]): Float64Array {
  const [first] = parts;
  if (first && parts.every((part) => part === first)) return first;
  const all = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

type Range = Pick<PlotColumn, 'min' | 'max'>;

function refuseRange(...ranges: (readonly [Pick<PlotColumn, 'name'>, Range])[]): NoPlot | undefined {
  const found = ranges.find(([, { min, max }]) => Math.max(Math.abs(min), Math.abs(max)) > MAX_NUMBER && min <= max);
  return found && { reason: `the values of ${quote(found[0].name)} are too large to draw` };
}

/** Spectra that the file lists from large to small wavenumbers are drawn so; values over decades on a log axis. */
function styleOf(x: PlotColumn, { min, max }: Range): Pick<PlotAxis, 'isReversed' | 'isLogarithmic'> {
  if (x.type !== 'number') return {};
  const isReversed = REVERSED_UNIT.test(x.unit ?? '') && directionOf(x.numbers) === -1;
  if (!(min > 0) || max / min < 1000) return isReversed ? { isReversed } : {};
  const sorted = x.numbers.filter((number) => number > 0).sort();
  // Evenly spread over the decades, their median is far below the middle.
  const isLogarithmic = (sorted[sorted.length >> 1] ?? 0) < max / 20;
  return { ...(isReversed && { isReversed }), ...(isLogarithmic && { isLogarithmic }) };
}

const REVERSED_UNIT = /^(?:1\/cm|cm-1|cm\^-1|cm⁻¹|ppm)$/i;

function thinNote(all: readonly PlotSeries[], shown: readonly PlotSeries[]): string[] {
  const count = (series: readonly PlotSeries[]): number => series.reduce((sum, { y }) => sum + y.length, 0);
  if (count(all) === count(shown)) return [];
  return [`${formatCount(count(shown))} of ${formatCount(count(all))} points: minimum and maximum of each group`];
}

/** Without an axis: one after the other. Points, because a line would suggest values in between. */
function inFileOrder(columns: readonly PlotColumn[], rows: number): PlotChoice {
  const id = columns.find((column) => column.isId && column.count === rows && directionOf(column.numbers) !== 0);
  const numbers = id?.numbers ?? Float64Array.from({ length: rows }, (_, row) => row + 1);
  const name = id?.name ?? 'row';
  const x: PlotColumn = {
    ...{ name, unit: undefined, type: 'number', ...rangeOf(numbers), isId: true, isAxis: false },
    textAt: () => '',
  };
  const readings = readingsOf(columns, x).filter(({ isAxis }) => !isAxis);
  if (readings.length === 0)
    return { reason: 'apart from times, row numbers and identifiers, no column has numbers with one unit' };
  return againstX(x, columns, [], rows, { kind: 'points', shown: onOneAxis(readings) });
}

function barChart(labels: PlotColumn, readings: readonly PlotColumn[], rows: number, chosen?: Chosen): PlotChoice {
  if (rows > MAX_CATEGORIES)
    return {
      reason: `${formatCount(rows)} bars, for the names in ${quote(labels.name)}, are more than ${MAX_CATEGORIES}`,
    };
  const { shown, notes } = chosen ?? onOneAxis(readings);
  if (shown.length === 0) return { reason: 'no column has readings' };
  if (shown.every(({ count }) => count === 0)) return { reason: 'all values are missing' };
  const nameless = chosen ? undefined : refuseNameless(shown);
  if (nameless) return nameless;
  const bars = shown.slice(0, MAX_BARS);
  const refused = refuseRange(...bars.map((column) => [column, column] as const));
  if (refused) return refused;
  const x = Float64Array.from({ length: rows }, (_, row) => row);
  return {
    ...{ kind: 'bar', x: axisOf({ ...labels, type: 'number' }), y: sharedAxis(bars) },
    series: bars.map(({ name, numbers }) => ({ name: singleLine(name), x, y: numbers })),
    categories: Array.from({ length: rows }, (_, row) => singleLine(labels.textAt(row))),
    notes: [...notes, ...(shown.length > MAX_BARS ? [`The first ${MAX_BARS} of ${shown.length} columns`] : [])],
  };
}

/** The number of distinct colours. */
const MAX_BARS = 8;

function heatmap(wells: PlotColumn, readings: readonly PlotColumn[], rows: number): PlotChoice {
  const most = Math.max(...readings.map(({ count }) => count));
  // The layout, such as the concentration of the standards, is known for fewer wells than what was measured.
  const first = readings.find(({ count }) => count > 0 && count === most);
  if (!first) return { reason: 'all values are missing' };
  const others = readings.filter((column) => column !== first);
  const places = Array.from({ length: rows }, (_, row) => wellAt(wells.textAt(row)));
  const stray = places.indexOf(undefined);
  if (stray >= 0) return { reason: `${quote(wells.textAt(stray))} in ${quote(wells.name)} is not a well` };
  if (!areDistinct(wells, rows))
    return { reason: `wells in ${quote(wells.name)} repeat, so colours would hide readings` };
  const refused = refuseRange([first, first]);
  if (refused) return refused;
  const isSmall = places.every((place) => place && place.row < 8 && place.column < 12);
  const [height, width] = isSmall ? [8, 12] : [16, 24];
  const values = new Float64Array(height * width).fill(Number.NaN);
  for (const [row, place] of places.entries())
    if (place) values[place.row * width + place.column] = first.numbers[row] ?? Number.NaN;
  return {
    ...{ kind: 'heatmap', x: axisOf({ ...wells, type: 'number' }), y: axisOf(first) },
    ...{ rows: height, columns: width, values },
    notes: others.length > 0 ? [`Not shown: ${listNames(others)}`] : [],
  };
}

type Asked = Exclude<PlotOption, string>;

/** The plot that the mapping describes, of the first table that has its columns. */
function plotOfColumns(tables: readonly Table[], asked: Asked): PlotChoice {
  const wanted = [asked.x, ...asked.y];
  const has = (table: Table, name: string): boolean => table.columns.some((column) => column.name === name);
  const table = tables.find((one) => wanted.every((name) => has(one, name)));
  if (!table) return missingColumn(tables, wanted, has);
  const refused = refuseTable(table);
  if (refused) return refused;
  const named = (name: string) =>
    readColumn(
      table,
      table.columns.findIndex((column) => column.name === name),
    );
  const x = named(asked.x);
  const columns = asked.y.map(named);
  const text = columns.find(({ type }) => type !== 'number');
  if (text) return { reason: `${quote(text.name)} has no numbers, or numbers with different units` };
  return plotAsAsked(x, columns, asked, table.rows.length);
}

function plotAsAsked(x: PlotColumn, columns: readonly PlotColumn[], { kind }: Asked, rows: number): PlotChoice {
  const unit = columns.find((column) => column.unit !== undefined)?.unit;
  // Columns without a unit are shown: the mapping lists them together on purpose.
  const shown = columns.filter((column) => column.unit === undefined || column.unit === unit);
  const chosen = { shown, notes: leftOut(columns, shown) };
  if (kind === 'heatmap') return heatmap(x, shown, rows);
  if (kind === 'bar' || (kind === undefined && x.type === 'text')) {
    return barChart(x, shown, rows, chosen);
  }
  if (x.type === 'text' || x.type === 'none') return { reason: `${quote(x.name)} has no numbers or dates for an axis` };
  return againstX(x, columns, [], rows, { kind, shown: chosen });
}

function missingColumn(
  tables: readonly Table[],
  wanted: readonly string[],
  has: (table: Table, name: string) => boolean,
): NoPlot {
  const column = wanted.find((name) => !tables.some((table) => has(table, name)));
  if (column === undefined) return { reason: `no table has all the columns ${joinWords(wanted.map(quote))}` };
  const names = tables.flatMap(({ columns }) => columns.map(({ name }) => name));
  const guess = nearest(column, names);
  const hint = guess === undefined ? '' : ` (did you mean ${quote(guess)}?)`;
  return { reason: `the file has no column ${quote(column)}${hint}`, column };
}
