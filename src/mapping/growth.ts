import { isUtf8 } from 'node:buffer';
import { FileError } from '../errors.js';
import { isPlot } from '../map/plot.js';
import { growingFingerprint } from '../markers.js';
import {
  type Column,
  type ColumnSummary,
  type Draft,
  type FileRecord,
  type IdentifiedFile,
  medianOf,
  NO_VALUE,
  type PlotPicture,
  type Shape,
  shapeOf,
  type Table,
  type Unread,
  type Value,
} from '../model.js';
import { formatCount } from '../text.js';
import { lineEndOf } from '../watch/growing.js';
import { findAgain, findBreak, type Header, isBlank, parseLines, rowsIn, splitLines, textOf } from './header.js';
import type { Mapping } from './mapping.js';
import { drawPicture, type SentError, sendError } from './reading.js';

export interface GrowthTask {
  readonly path: string;
  /** After these lines. */
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly header: Header;
  /** Whether the lines begin with the header. */
  readonly isFirst: boolean;
  /** Complete lines. */
  readonly lines: Uint8Array;
  /** The number of the first of them, from 1. */
  readonly firstLine: number;
  readonly encoding: string;
  /** Whether there is no mapping, so that the layout is recognised each time. */
  readonly isMeasured: boolean;
  readonly per: 'file' | 'day';
  /** For lines without a date of their own. */
  readonly today: string;
  /** See `growingFingerprint`. */
  readonly nth: number;
  /** The days that have a run, and what was accumulated for some of them, as JSON. */
  readonly days: readonly string[];
  readonly before: ReadonlyMap<string, string>;
  readonly isPlotted: boolean;
  /** Why the lines must not be filed, such as a secret in them. */
  readonly refused?: string | undefined;
  /** Whether people see the text of refused lines. */
  readonly showsText?: boolean | undefined;
}

/** What new lines add to one run. */
interface GrownPart {
  /** Empty if all of the file is one run. */
  readonly day: string;
  readonly sha256: string;
  readonly draft: Draft;
  readonly rows: number;
  readonly shape: Shape;
  readonly accumulation: string;
  readonly plot?: PlotPicture | undefined;
}

export type Growth =
  | {
      readonly kind: 'parts';
      readonly parts: readonly GrownPart[];
      /** How many of the bytes were used. */
      readonly bytes: number;
      readonly lines: number;
      /** Whether other columns begin after these. */
      readonly isBreak: boolean;
      /** What people must know about these lines. */
      readonly notes: readonly string[];
    }
  /** What was accumulated for these days is needed. */
  | { readonly kind: 'wants'; readonly days: readonly string[] }
  /** There are too many readings to tell their days. */
  | { readonly kind: 'tooMany' }
  | { readonly kind: 'failed'; readonly error: SentError };

/** Reads new lines, and makes of them what is to be filed, by day if wanted. Never throws. */
export async function readGrowth(task: GrowthTask, mapping: Mapping): Promise<Growth> {
  try {
    const read = task.refused === undefined ? await readNew(task, mapping) : refuseLines(task, task.refused);
    if (read.record.tables.some(({ rows, count }) => rows.length < count)) return { kind: 'tooMany' };
    const byDay = splitDays(read.record, task);
    const wants = [...byDay.keys()].filter((day) => task.days.includes(day) && !task.before.has(day));
    if (wants.length > 0) return { kind: 'wants', days: wants };
    const parts: GrownPart[] = [];
    for (const [n, [day, record]] of [...byDay].entries())
      parts.push(await makePart(day, record, n === byDay.size - 1 ? read : { ...read, notes: [] }, task, mapping));
    const { bytes, lines, isBreak, notes } = read;
    return { kind: 'parts', parts, bytes, lines, isBreak, notes };
  } catch (error) {
    return { kind: 'failed', error: sendError(error) };
  }
}

interface NewLines {
  readonly record: FileRecord;
  readonly bytes: number;
  readonly lines: number;
  readonly isBreak: boolean;
  readonly notes: readonly string[];
  readonly dates: FileRecord['dates'];
}

/** Reports all lines and reads none. */
function refuseLines({ lines, firstLine, encoding, showsText }: GrowthTask, reason: string): NewLines {
  const all = splitLines(lines, encoding);
  const count = all.length;
  const text = showsText ? `\n  ${textOf(all[0], encoding).slice(0, MAX_SHOWN_CHARACTERS)}` : '';
  return {
    record: { meta: new Map(), tables: [], unread: [unreadLines(firstLine, firstLine + count - 1)] },
    ...{ bytes: lines.length, lines: count, isBreak: false, dates: undefined },
    notes: [`${rangeOf(firstLine, count)} not filed: ${reason}${text}`],
  };
}

const unreadLines = (from: number, to: number) => ({ kind: 'unread', from, to }) as const;

const rangeOf = (first: number, count: number): string =>
  count === 1 ? `line ${formatCount(first)}` : `lines ${formatCount(first)}–${formatCount(first + count - 1)}`;

/** After so many lines that cannot be read, the rest of a batch is not read either. */
const MAX_BAD_LINES = 20;
const MAX_SHOWN_CHARACTERS = 200;

async function readNew(task: GrowthTask, mapping: Mapping): Promise<NewLines> {
  const { header, isFirst, firstLine, encoding } = task;
  const all = splitLines(task.lines, encoding);
  // In a first batch, the header itself is among the lines.
  const from = isFirst ? splitLines(task.lines.subarray(0, header.end), encoding).length : 0;
  const again = findAgain(all, from, task);
  const end = await findBreak(all, from, again, task, mapping);
  const notes: string[] = again.size > 0 ? [describeAgain([...again], all, task)] : [];
  const lines = cleanLines(all.slice(0, end), task, notes);
  const blank = new Set(lines.flatMap((line, n) => (n >= from && isBlank(line) ? [n] : [])));
  const bad = new Map<number, string>();
  for (let usable = lines.length; ; ) {
    const kept = lines.flatMap((line, n) =>
      again.has(n) || blank.has(n) || bad.has(n) || n >= usable ? [] : [{ line, n }],
    );
    try {
      const { record, before, dates } = await parseKept(kept, task, mapping);
      for (const [n, reason] of bad) notes.push(describeBad(firstLine + n, textOf(all[n], encoding), reason));
      const unread = [
        ...record.unread.flatMap((each) => renumber(each, before, kept, firstLine)),
        ...[...bad.keys()].map((n) => unreadLines(firstLine + n, firstLine + n)),
        ...(usable < lines.length ? [unreadLines(firstLine + usable, firstLine + lines.length - 1)] : []),
      ];
      const bytes = all.slice(0, end).reduce((sum, line) => sum + line.length, 0);
      return { record: { ...record, unread }, bytes, lines: end, isBreak: end < all.length, notes, dates };
    } catch (error) {
      const before = isFirst ? 0 : splitLines(header.bytes, encoding).length;
      const place = error instanceof FileError ? kept[(error.where?.line ?? 0) - 1 - before] : undefined;
      if (!(error instanceof FileError) || !place || (isFirst && place.n < from)) throw error;
      if (bad.size < MAX_BAD_LINES) bad.set(place.n, error.message);
      else {
        const range = rangeOf(firstLine + place.n, usable - place.n);
        notes.push(`${range} not read, because too many lines before could not be read: ${error.message}`);
        usable = place.n;
      }
    }
  }
}

/** `before`: how many lines of the header were parsed with these. */
async function parseKept(
  kept: readonly { readonly line: Uint8Array }[],
  { path, header, isFirst, encoding, isMeasured }: GrowthTask,
  mapping: Mapping,
) {
  const used = kept.map(({ line }) => line);
  if (isFirst) {
    const record = await parseLines(path, used, mapping);
    return { record, before: 0, dates: record.dates };
  }
  const head = splitLines(header.bytes, encoding);
  const known = await parseLines(path, head, mapping);
  if (used.length === 0)
    return { record: { ...known, tables: [], unread: [] }, before: head.length, dates: known.dates };
  const record = await parseLines(path, [...head, ...used], mapping);
  if (isMeasured && JSON.stringify(shapeOf(record)) !== JSON.stringify(shapeOf(known)))
    throw new FileError('the lines have other columns than the file before', {
      where: { file: path },
      hint: 'add a mapping: `parse`',
    });
  return { record: without(record, known), before: head.length, dates: record.dates };
}

/** The same tables without the rows of the header. */
function without(record: FileRecord, header: FileRecord): FileRecord {
  return {
    ...record,
    tables: record.tables.map((table) => {
      const known = header.tables.find(({ name }) => name === table.name)?.count ?? 0;
      return { ...table, rows: table.rows.slice(known), count: table.count - known };
    }),
  };
}

type UnreadPart = FileRecord['unread'][number];

/** The lines that were parsed are not all lines of the file. Those of the header were reported before. */
function renumber(
  each: UnreadPart,
  before: number,
  kept: readonly { readonly n: number }[],
  firstLine: number,
): UnreadPart[] {
  if (each.from === undefined || each.to === undefined) return before > 0 ? [] : [each];
  const [from, to] = [kept[Math.max(0, each.from - before - 1)], kept[each.to - before - 1]];
  return from && to ? [{ ...each, from: firstLine + from.n, to: firstLine + to.n }] : [];
}

const describeBad = (number: number, text: string, reason: string): string =>
  `line ${formatCount(number)} could not be read: ${reason}\n  ${text.slice(0, MAX_SHOWN_CHARACTERS)}`;

function describeAgain(again: number[], all: readonly Uint8Array[], { firstLine, encoding }: GrowthTask): string {
  const [first = 0] = again.sort((a, b) => a - b);
  const shown = again
    .slice(0, MAX_BAD_LINES)
    .map((n) => `  ${textOf(all[n], encoding).slice(0, MAX_SHOWN_CHARACTERS)}`);
  return `the header comes again at line ${formatCount(firstLine + first)}\n${shown.join('\n')}`;
}

const MARKS = [Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from([0xff, 0xfe])];

/** Leaves out or converts what does not belong in lines of text, and reports it. */
function cleanLines(lines: readonly Uint8Array[], task: GrowthTask, notes: string[]): readonly Uint8Array[] {
  const { encoding, firstLine, header } = task;
  if (lineEndOf(header.bytes, encoding).length === 2) return lines;
  const isMixed = encoding === 'auto' && isUtf8(header.bytes);
  const all = Buffer.from(task.lines.buffer, task.lines.byteOffset, task.lines.byteLength);
  const isClean = !all.includes(0) && !MARKS.some((mark) => all.includes(mark)) && (!isMixed || isUtf8(all));
  return isClean ? lines : lines.map((line, n) => cleanLine(line, firstLine + n, isMixed, notes));
}

function cleanLine(line: Uint8Array, number: number, isMixed: boolean, notes: string[]): Uint8Array {
  let bytes = Buffer.from(line);
  const note = (what: string): void =>
    void (notes.length < MAX_BAD_LINES && notes.push(`line ${formatCount(number)} ${what}`));
  for (const mark of number > 1 ? MARKS : []) {
    const at = bytes.indexOf(mark);
    if (at < 0) continue;
    bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + mark.length)]);
    note('contains a byte order mark, which was left out');
  }
  if (bytes.includes(0)) {
    bytes = Buffer.from(bytes.filter((byte) => byte !== 0));
    note('contains NUL characters, which were left out');
  }
  if (!isMixed || isUtf8(bytes)) return bytes;
  note('is not in UTF-8 as the header is; it was read as windows-1252');
  return Buffer.from(new TextDecoder('windows-1252').decode(bytes), 'utf8');
}

const DAY = /^\d{4}-\d{2}-\d{2}(?!\d)/;

/** The readings of each day, by their own dates. A reading without one belongs to the day of the one before it. */
function splitDays(record: FileRecord, { per, today, days }: GrowthTask): Map<string, FileRecord> {
  if (per === 'file') return new Map([['', record]]);
  const rows = new Map<string, FileRecord['tables'][number][]>();
  for (const table of record.tables) {
    let day = today;
    const split = new Map<string, (typeof table.rows)[number][]>();
    for (const row of table.rows) {
      day = dayOf(row) ?? day;
      // A clock that is wrong must not file readings in the future.
      const own = day > nextDay(today) ? today : day;
      const same = split.get(own);
      if (same) same.push(row);
      else split.set(own, [row]);
    }
    for (const [own, some] of split)
      rows.set(own, [...(rows.get(own) ?? []), { ...table, rows: some, count: some.length }]);
  }
  if (rows.size === 0) rows.set([...days].sort().at(-1) ?? today, []);
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
  return new Map(
    sorted.map(([day, tables], n) => [
      day,
      { ...record, tables, unread: n === sorted.length - 1 ? record.unread : [] },
    ]),
  );
}

/** Of its first date with a time, or else of its first date: others may be those of a calibration. */
const dayOf = (row: readonly { readonly value: unknown }[]): string | undefined => {
  const dates = row.flatMap(({ value }) => (typeof value === 'string' && DAY.test(value) ? [value] : []));
  return (dates.find((value) => value.length > 10) ?? dates[0])?.slice(0, 10);
};

const nextDay = (day: string): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);

/** `read`: with the notes for this day. */
async function makePart(
  day: string,
  record: FileRecord,
  { lines, notes, dates }: NewLines,
  task: GrowthTask,
  mapping: Mapping,
): Promise<GrownPart> {
  const { path, size, mtimeNs, firstLine, header, nth, today } = task;
  const known = task.before.get(day);
  // Nothing is kept of a run that was erased.
  const before = known ? (JSON.parse(known) as Accumulation) : undefined;
  const rows = rowsIn(record);
  const own = record.tables.map(({ rows: [first] }) => first && dayOf(first)).find((each) => each !== undefined);
  const first = before?.day || day || (own !== undefined && own <= nextDay(today) ? own : today);
  const sum = { ...accumulate(before, record), day: first };
  const sha256 = growingFingerprint({ path, start: header.start, nth, day });
  const file: IdentifiedFile = { path, location: path, size, mtimeNs, inode: 0n, sha256 };
  const part = {
    record: rows === 0 ? { ...record, meta: new Map() } : record,
    ...{ day: first, isDaily: day !== '', isWhole: sum.isWhole, notes: notes.join('\n') },
    lines: rangeOf(firstLine, lines),
  };
  const mapped = mapping.map(toRecord(sum, dates), file, Number(mtimeNs / 1_000_000n), part);
  const isWhole = sum.isWhole && (rows === 0 || mapped.hasAllRows === true);
  const accumulation = JSON.stringify({ ...sum, isWhole });
  const { record: plotted, note } = toPlotted(sum);
  const plot = task.isPlotted
    ? await drawPicture(plotted, mapped, { choosePlot: (one) => noted(mapping.choosePlot(one), note) })
    : undefined;
  return { day, sha256, draft: mapped.draft, rows, shape: shapeOf(record), accumulation, plot };
}

const noted = (choice: ReturnType<Mapping['choosePlot']>, note: string | undefined) =>
  note !== undefined && isPlot(choice) ? { ...choice, notes: [...choice.notes, note] } : choice;

/** So many first rows are kept for templates, and so many in even distances for medians and plots. */
const MAX_FIRST = 100;
const MAX_SAMPLE = 1000;
/** Of lines that were not read. */
const MAX_RANGES = 100;

/** What is kept of all readings of a growing run: its size does not depend on their number. */
interface Accumulation {
  readonly meta: readonly (readonly [string, Value])[];
  readonly tables: readonly AccumulatedTable[];
  readonly unread: readonly Unread[];
  /** Whether the comments have all of the readings. */
  readonly isWhole: boolean;
  /** The day of its first reading. */
  readonly day: string;
}

interface AccumulatedTable {
  readonly name: string;
  readonly columns: readonly (Pick<Column, 'name' | 'unit'> & { readonly figures?: Figures | undefined })[];
  readonly count: number;
  readonly first: Table['rows'];
  /** One row of so many. */
  readonly stride: number;
  readonly sample: Table['rows'];
}

type Figures = Pick<ColumnSummary, 'n' | 'min' | 'max'>;

/** All readings so far, with those of one more batch. */
function accumulate(before: Accumulation | undefined, { meta, tables, unread }: FileRecord): Accumulation {
  const known = before?.tables ?? [];
  const names = new Set(known.map(({ name }) => name));
  return {
    meta: before && before.meta.length > 0 ? before.meta : [...meta],
    tables: [
      ...known.map((table) =>
        addRows(
          table,
          tables.find(({ name }) => name === table.name),
        ),
      ),
      ...tables.filter(({ name }) => !names.has(name)).map((table) => addRows(undefined, table)),
    ],
    unread: [...(before?.unread ?? []), ...unread].slice(0, MAX_RANGES),
    isWhole: before?.isWhole ?? true,
    day: before?.day ?? '',
  };
}

function addRows(before: AccumulatedTable | undefined, added: Table | undefined): AccumulatedTable {
  const known: AccumulatedTable = before ?? {
    ...{ name: added?.name ?? '', columns: [], count: 0, first: [], stride: 1, sample: [] },
  };
  if (!added) return known;
  // A changed mapping can name the columns differently.
  const further = added.columns.filter(({ name }) => !known.columns.some((column) => column.name === name));
  const columns: AccumulatedTable['columns'] = [
    ...known.columns,
    ...further.map(({ name, unit }) => ({ name, ...(unit !== undefined && { unit }) })),
  ];
  const places = columns.map(({ name }) => added.columns.findIndex((column) => column.name === name));
  const rows = added.rows.map((row) => places.map((at) => row[at] ?? NO_VALUE));
  return {
    name: known.name,
    columns: columns.map((column, at) => ({ ...column, figures: figuresOf(column.figures, rows, at) })),
    count: known.count + rows.length,
    first: [...known.first, ...rows.slice(0, MAX_FIRST - known.first.length)],
    ...sampleOf(known, rows),
  };
}

function figuresOf(before: Figures | undefined, rows: Table['rows'], at: number): Figures | undefined {
  let [n, min, max] = [before?.n ?? 0, before?.min, before?.max];
  for (const row of rows) {
    const cell = row[at];
    if (typeof cell?.value !== 'number' || !Number.isFinite(cell.value)) continue;
    n += 1;
    if (min === undefined || cell.value < Number(min.value)) min = cell;
    if (max === undefined || cell.value > Number(max.value)) max = cell;
  }
  return min && max && { n, min, max };
}

function sampleOf({ sample, stride, count }: AccumulatedTable, rows: Table['rows']) {
  let kept = [...sample];
  let every = stride;
  for (const [n, row] of rows.entries()) {
    if ((count + n) % every === 0) kept.push(row);
    if (kept.length <= MAX_SAMPLE) continue;
    kept = kept.filter((_, index) => index % 2 === 0);
    every *= 2;
  }
  return { sample: kept, stride: every };
}

/** The readings so far, for the body. */
const toRecord = ({ meta, tables, unread }: Accumulation, dates: FileRecord['dates']): FileRecord => ({
  meta: new Map(meta),
  tables: tables.map(({ name, columns, count, first, sample, stride }) => ({
    ...{ name, count, rows: first },
    columns: columns.map(({ figures, ...column }, at) =>
      figures && count > first.length
        ? { ...column, summary: { ...figures, ...medianIn(sample, at, stride) } }
        : column,
    ),
  })),
  unread,
  ...(dates && { dates }),
});

function medianIn(rows: Table['rows'], at: number, stride: number): Pick<ColumnSummary, 'median' | 'isMedianExact'> {
  const numbers = rows.flatMap((row) => {
    const value = row[at]?.value;
    return typeof value === 'number' && Number.isFinite(value) ? [value] : [];
  });
  return { median: medianOf(Float64Array.from(numbers).sort()), isMedianExact: stride === 1 };
}

/** The readings for the plot. `note`: which of them, if not all. */
function toPlotted({ meta, tables }: Accumulation): { record: FileRecord; note: string | undefined } {
  const stride = Math.max(1, ...tables.map((table) => table.stride));
  const record = {
    meta: new Map(meta),
    tables: tables.map(({ name, columns, sample }) => ({
      ...{ name, rows: sample, count: sample.length },
      columns: columns.map(({ figures: _, ...column }) => column),
    })),
    unread: [],
  };
  return { record, note: stride === 1 ? undefined : `One of ${stride} readings is shown` };
}
