// Not jcampconverter: it accepts wrong check values and skips damaged data, and a line of 13 characters can take 3 GB.
import type { NamedFact } from '../extract/facts.js';
import type { LabelledFile, LabelledTable } from '../extract/read-tree.js';
import type { LineRange } from '../extract/unread.js';
import { joinTexts, type Line, quoted } from '../lines.js';
import { loadText, type OpenFile } from '../source.js';
import { createDecimalWriter } from '../values/value.js';

/** A labelled data record: `##LABEL= value`, and the lines up to the next one. */
interface LabelledRecord {
  readonly label: string;
  /** As the standard compares labels: upper case, without blanks, dashes, slashes and underscores. */
  readonly key: string;
  /** Without comments. The first is the text after the `=`. */
  readonly lines: string[];
  readonly number: number;
}

/** The records of a block so far, by their keys. */
type Known = ReadonlyMap<string, LabelledRecord>;

interface DataTable extends LabelledTable {
  /** Pages of the same form are one table. */
  readonly form: string;
  readonly page: { readonly name: string; readonly unit: string | undefined; readonly text: string } | undefined;
}

interface Reading extends OpenFile {
  /** Limits repetitions: a few characters can encode any number of them. */
  readonly maxPoints: number;
  writeNumber(text: string): string;
}

const MAX_POINTS = 3_000_000;

/** Reads a JCAMP-DX file of one block, or of several that are nested or follow each other. */
export async function readJcamp(file: OpenFile): Promise<LabelledFile> {
  const { options } = file;
  const text = await loadText(file);
  const texts = text.split(/\r\n|\n|\r/);
  const records = recordsIn(texts);
  if (records.length === 0) {
    throw file.refuse('the file is not JCAMP-DX: no line starts with ##', {
      hint: 'specify its format: `format: delimited`',
      isMismatch: true,
    });
  }
  const maxPoints = Math.min(options.limits.maxRows, MAX_POINTS, 1_000_000 + text.length);
  const reading = { ...file, maxPoints, writeNumber: createDecimalWriter(options) };
  const labels: NamedFact[] = [];
  const tables: DataTable[] = [];
  let pages: DataTable[] = [];
  let known = new Map<string, LabelledRecord>();
  for (const record of records) {
    if (['TITLE', 'END', 'ENDNTUPLES'].includes(record.key)) {
      tables.push(...joinPages(pages));
      pages = [];
    }
    if (record.key === 'TITLE') known = new Map();
    if (DATA.has(record.key)) {
      pages.push(await readData(record, known, reading));
      // It holds for one table only.
      known.delete('NPOINTS');
    } else if (!record.key.startsWith('END') && !isEmptyPrivate(record)) labels.push(labelOf(record));
    known.set(record.key, record);
  }
  return { labels, tables: [...tables, ...joinPages(pages)], unread: unreadIn(texts, records) };
}

/** The lines with comments, above the first record, or below the end of a block or its title, which has one line. */
function unreadIn(texts: readonly string[], records: readonly LabelledRecord[]): LineRange[] {
  const first = records[0]?.number ?? 0;
  const belowEnds = new Set(
    records.flatMap(({ key, lines, number }) =>
      key.startsWith('END') || key === 'TITLE' ? lines.slice(1).map((_, n) => number + 1 + n) : [],
    ),
  );
  return texts.flatMap((text, n) => {
    const comment = text.indexOf('$$');
    const isOutside = n + 1 < first || belowEnds.has(n + 1);
    const rest = isOutside ? text : comment < 0 ? '' : text.slice(comment);
    return /[\p{L}\p{N}]/u.test(rest) ? [{ from: n + 1, to: n + 1 }] : [];
  });
}

function recordsIn(texts: readonly string[]): LabelledRecord[] {
  const records: LabelledRecord[] = [];
  for (const [n, text] of texts.entries()) {
    const comment = text.indexOf('$$');
    const content = comment < 0 ? text : text.slice(0, comment);
    const [, label, value = ''] = /^\s*##([^=]*)=(.*)$/.exec(content) ?? [];
    if (label === undefined) records.at(-1)?.lines.push(content.trim());
    else {
      const key = label.replace(/[\s\-_/]/g, '').toUpperCase();
      records.push({ label: label.trim(), key, lines: [value.trim()], number: n + 1 });
    }
  }
  return records.some(({ key }) => DATA.has(key)) ? records : withBarePairs(records);
}

/** Some programs write pairs of numbers directly below the last label, without one that says so. */
function withBarePairs(records: LabelledRecord[]): LabelledRecord[] {
  const last = records.at(-1);
  const [value = '', ...below] = last?.lines ?? [];
  const pairs = below.filter((line) => line !== '');
  if (!last || last.key.startsWith('END') || pairs.length < 3 || !pairs.every((line) => PAIR.test(line)))
    return records;
  const label = 'XYPOINTS';
  const data = { label, key: label, lines: ['(XY..XY)', ...below], number: last.number };
  return [...records.slice(0, -1), { ...last, lines: [value] }, data];
}

const PAIR = /^[-+]?[\d.]+(?:[eE][-+]?\d+)?(?:\s*[,;]\s*|\s+)[-+]?[\d.]+(?:[eE][-+]?\d+)?$/;

/** Vendors write many private labels without a value. */
const isEmptyPrivate = ({ label, lines }: LabelledRecord): boolean =>
  label.startsWith('$') && lines.every((line) => line === '');

/** Private labels have their texts in angle brackets. */
function labelOf({ label, key, lines, number }: LabelledRecord): NamedFact {
  const written = key === 'TITLE' ? (lines[0] ?? '') : joinTexts(lines);
  const text = /^<[^<>]*>$/.test(written) ? written.slice(1, -1).trim() : written;
  return { name: label, text, unit: undefined, line: number };
}

/** Pages of the same form become one table with a column for the page. */
function joinPages(pages: readonly DataTable[]): DataTable[] {
  const forms = new Map<string, DataTable[]>();
  for (const page of pages) {
    const same = forms.get(page.form);
    if (same) same.push(page);
    else forms.set(page.form, [page]);
  }
  return [...forms.values()].flatMap((same) => {
    const [first] = same;
    if (!first?.page || same.length === 1 || same.some(({ page }) => !page)) return same;
    const rows = same.flatMap(({ page, rows: own }) =>
      own.map((row) => ({ ...row, cells: [page?.text ?? '', ...row.cells] })),
    );
    return [{ ...first, page: undefined, columns: [first.page, ...first.columns], rows, declared: undefined }];
  });
}

const DATA = new Set('XYDATA XYPOINTS PEAKTABLE PEAKASSIGNMENTS ASSIGNMENTS RADATA DATATABLE'.split(' '));
const SERIES = /^\(\s*(\w+)\s*\+\+\s*\(\s*(\w+)\s*\.\.\s*\2\s*\)\s*\)/;
const GROUPS = /^\(\s*([A-Z]{1,9})\s*\.\.\s*\1\s*\)/i;
const TUPLES = /^\(\s*(X[A-Z]{1,8})\s*\)/i;

async function readData(record: LabelledRecord, known: Known, reading: Reading): Promise<DataTable> {
  const [form = ''] = record.lines;
  const common = { form, page: pageOf(known), declared: numberOf(textAt(known, 'NPOINTS')) };
  const [, x, y] = SERIES.exec(form) ?? [];
  if (x !== undefined && y !== undefined) {
    const columns = [variableOf(x, known), variableOf(y, known)] as const;
    const dimension = numberOf(listAt(known, 'VARDIM')[listAt(known, 'SYMBOL').indexOf(x)]);
    const declared = common.declared ?? dimension;
    return { ...common, declared, columns, rows: await readSeries(record, columns, declared, reading) };
  }
  const [, group] = GROUPS.exec(form) ?? [];
  const [, tuple] = TUPLES.exec(form) ?? [];
  const symbols = group ?? tuple;
  if (symbols === undefined) {
    throw reading.refuse(`the data have an unknown form: ${quoted(form)}`, { line: record.number });
  }
  const columns = [...symbols].map((symbol) => variableOf(symbol, known));
  return { ...common, columns, rows: await readTuples(record, columns, group !== undefined, reading) };
}

/** What the labels say about one variable of the data. */
type Variable = ReturnType<typeof variableOf>;

/** From the lists of an NTUPLES block, otherwise from labels such as ##XUNITS. */
function variableOf(symbol: string, known: Known) {
  const index = listAt(known, 'SYMBOL').indexOf(symbol);
  const letter = symbol.toUpperCase();
  const at = (listKey: string, key: string) =>
    index >= 0 ? listAt(known, listKey)[index] || undefined : textAt(known, key);
  return {
    name: at('VARNAME', '') ?? (index >= 0 ? symbol : letter === 'A' ? 'assignment' : symbol.toLowerCase()),
    unit: at('UNITS', `${letter}UNITS`),
    factor: numberOf(at('FACTOR', `${letter}FACTOR`)) || 1,
    first: numberOf(at('FIRST', `FIRST${letter}`)),
    last: numberOf(at('LAST', `LAST${letter}`)),
    step: index >= 0 ? undefined : numberOf(textAt(known, `DELTA${letter}`)),
  };
}

/** `##PAGE= N=1`. */
function pageOf(known: Known): DataTable['page'] {
  const [, symbol, text] = /^([^=]+)=(.*)$/.exec(textAt(known, 'PAGE') ?? '') ?? [];
  if (symbol === undefined || text === undefined) return undefined;
  const { name, unit } = variableOf(symbol.trim(), known);
  return { name, unit, text: text.trim() };
}

const textAt = (known: Known, key: string): string | undefined => known.get(key)?.lines.join(' ').trim() || undefined;

const listAt = (known: Known, key: string): string[] =>
  (textAt(known, key) ?? '').split(',').map((item) => item.trim());

function numberOf(text: string | undefined): number | undefined {
  const number = text === undefined || text === '' ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}

/** Computed numbers are not exact in their last digits. */
const written = (value: number): string => String(Number(value.toPrecision(12)));

const MAX_TUPLE_LINE = 10_000;

/** `(XY..XY)`: groups of numbers. `(XYA)`: groups in brackets, with texts in angle brackets. */
async function readTuples(
  record: LabelledRecord,
  variables: readonly Variable[],
  isGrouped: boolean,
  { options, refuse, slice, writeNumber }: Reading,
): Promise<Line[]> {
  const separator = options.decimal === ',' ? /[\s;]+/ : /[\s,;]+/;
  const rows: Line[] = [];
  for (const [n, content] of record.lines.entries()) {
    if (n === 0 || content === '') continue;
    const number = record.number + n;
    const tuples = isGrouped ? groupsIn(content, separator, variables.length) : bracketsIn(content);
    if (!tuples) {
      throw refuse(`this line is not data in groups of ${variables.length}`, {
        line: number,
        hint: 'the file may be truncated',
      });
    }
    for (const tuple of tuples) {
      const cells = variables.map(({ factor }, at) => scale(tuple[at] ?? '', factor, writeNumber));
      rows.push({ number, text: '', cells });
    }
    if (n % 64 === 0 && slice.isOver()) await slice.renew();
  }
  return rows;
}

function scale(text: string, factor: number, writeNumber: Reading['writeNumber']): string {
  const [, inner] = /^<(.*)>$/.exec(text) ?? [];
  if (inner !== undefined) return inner.trim();
  const number = numberOf(text);
  if (number === undefined) return text;
  return writeNumber(factor === 1 ? text : written(number * factor));
}

function groupsIn(content: string, separator: RegExp, size: number): string[][] | undefined {
  const items = content.split(separator).filter((item) => item !== '');
  if (items.length % size !== 0) return undefined;
  return Array.from({ length: items.length / size }, (_, n) => items.slice(n * size, (n + 1) * size));
}

function bracketsIn(content: string): string[][] | undefined {
  // The pattern with nested brackets is slow on long lines, which do not occur in practice.
  if (content.length > MAX_TUPLE_LINE) return undefined;
  const groups = [...content.matchAll(/\(((?:<[^>]*>|[^<>()])*)\)/g)];
  if (groups.length === 0) return undefined;
  return groups.map(([, inner = '']) =>
    [...inner.matchAll(/<[^>]*>|[^,<>]+/g)].map(([item]) => item.trim()).filter((item) => item !== ''),
  );
}

/** `(X++(Y..Y))` while it is decoded: each line has its X, then as many Y as fit. */
type Series = ReturnType<typeof openSeries>;

const openSeries = (factor: number) => ({
  factor,
  /** The abscissa that each line starts with. */
  abscissas: [] as Abscissa[],
  points: [] as { readonly text: string; readonly line: number }[],
  ...{ last: 0, lastText: '' },
  /** Undefined after a value that is not a difference. */
  difference: undefined as number | undefined,
  /** After differences, the next line repeats the last value as a check. */
  isCheck: false,
});

interface Abscissa {
  readonly value: number;
  /** One unit of its last digit. */
  readonly precision: number;
  /** The index of the point that it belongs to. */
  readonly point: number;
  /** The first value of the line repeats the last one of the line before. */
  readonly isCheck: boolean;
  readonly line: number;
}

async function readSeries(
  record: LabelledRecord,
  [x, y]: readonly [Variable, Variable],
  declared: number | undefined,
  reading: Reading,
): Promise<Line[]> {
  const { refuse, slice, writeNumber } = reading;
  const series = openSeries(y.factor);
  for (const [n, content] of record.lines.entries()) {
    if (n > 0 && content !== '') decodeLine(series, content, record.number + n, reading);
    if (n % 64 === 0 && slice.isOver()) await slice.renew();
  }
  const { points, abscissas } = series;
  const start = x.first ?? (abscissas[0]?.value ?? 0) * x.factor;
  const step = x.last === undefined ? x.step : (x.last - start) / Math.max(points.length - 1, 1);
  if (step === undefined && points.length > 1) {
    throw refuse('the distance between the points is not known', {
      line: record.number,
      hint: 'the file has neither ##LASTX nor ##DELTAX',
    });
  }
  const declaredStep = x.last === undefined ? x.step : (x.last - start) / Math.max((declared ?? points.length) - 1, 1);
  const wrong = declaredStep === undefined ? undefined : wrongAbscissa(abscissas, start, declaredStep, x.factor);
  if (wrong) {
    throw refuse('the line starts with another x than its place among the points gives', {
      line: wrong.line,
      hint: 'the file may be damaged, or points are missing: copy it from the instrument again',
    });
  }
  return points.map(({ text, line }, n) => ({
    number: line,
    text: '',
    cells: [writeNumber(written(start + n * (step ?? 0))), writeNumber(text)],
  }));
}

/**
 * The first line whose x is not where the points before it end. If most are as far from their places as each other, a
 * difference of one in the last digit is a mistake. Otherwise only distances are compared, because some programs count
 * points instead: then the distance is the number of points. Written abscissas are often rounded.
 */
function wrongAbscissa(
  abscissas: readonly Abscissa[],
  start: number,
  step: number,
  factor: number,
): Abscissa | undefined {
  const [first, ...others] = abscissas;
  if (!first) return undefined;
  // The x of a check value is that of the last point of the line before, or of the next one.
  for (const shift of [1, 0]) {
    const errors = errorsOf(abscissas, shift, { start, step, factor });
    if (errors.filter((error) => error < 0.01).length * 2 > errors.length)
      return abscissas.find((_, n) => (errors[n] ?? 0) > 0.51);
  }
  return others.find(({ value, precision, point, isCheck }) => {
    const distance = value - first.value;
    const isAt = (n: number) => {
      const rounding = ((precision + first.precision) / 2) * Math.abs(factor);
      const tolerance = Math.max(Math.abs(step) / 2, rounding) + 1e-6 * Math.abs(n * step);
      return Math.abs(distance * factor - n * step) <= tolerance || Math.abs(distance) === n;
    };
    return !isAt(point) && !(isCheck && isAt(point - 1));
  });
}

/** How far abscissas are from their places, compared with the middle one of them, in units of their last digits. */
function errorsOf(
  abscissas: readonly Abscissa[],
  shift: number,
  { start, step, factor }: { start: number; step: number; factor: number },
): number[] {
  const offsets = abscissas.map(({ value, precision, point, isCheck }) => {
    const distance = (isCheck ? point - shift : point) * step;
    return { offset: (value * factor - start - distance) / (precision * factor), distance, unit: precision * factor };
  });
  const middle = offsets.map(({ offset }) => offset).sort((a, b) => a - b)[Math.floor(offsets.length / 2)] ?? 0;
  return offsets.map(({ offset, distance, unit }) =>
    Math.max(0, Math.abs(offset - middle) - Math.abs((1e-6 * distance) / unit)),
  );
}

/** A number, a letter that stands for a digit and its meaning, `?` for a missing point, or blanks. */
const TOKEN = /([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]\d+)?)|([@%A-Za-s])(\d*\.?\d*)|(\?)|[\s;]+/y;

/** `A1` is 11 and `a1` is -11; `J1` is 11 more than before and `j1` 11 less; `S` to `s` repeat. */
const SQUEEZED = '@ABCDEFGHIabcdefghi';
const DIFFERENCE = '%JKLMNOPQRjklmnopqr';
const REPEATED = ' STUVWXYZs';

function decodeLine(series: Series, content: string, line: number, reading: Reading): void {
  const { options, maxPoints } = reading;
  const refuse = (message: string, hint?: string) => reading.refuse(message, { line, hint });
  const hasComma = content.includes(',');
  if (hasComma && options.decimal === undefined) {
    throw refuse(`the comma in ${quoted(content)} is ambiguous`, 'choose one: `decimal: ","` or `decimal: "."`');
  }
  const text = hasComma ? content.replaceAll(',', options.decimal === ',' ? '.' : ' ') : content;
  series.isCheck = series.difference !== undefined;
  let isX = true;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    const [, number, letter, , missing] = match ?? [];
    const isBlank = match && number === undefined && letter === undefined && missing === undefined;
    if (isBlank) continue;
    const isValue = number !== undefined || (letter !== undefined && SQUEEZED.includes(letter));
    if (!match || (isX && !isValue)) {
      throw refuse(`this is not a line of data: ${quoted(content)}`, 'the file may be damaged');
    }
    if (isX) series.abscissas.push(abscissaOf(match, series, line));
    else if (!decodeToken(series, match, line, maxPoints)) {
      throw refuse('the line does not start with the last value of the line before', 'the file may be damaged');
    }
    isX = false;
    if (series.points.length > maxPoints) throw refuse(`the data have more than ${maxPoints} points`);
  }
}

const abscissaOf = (match: RegExpExecArray, { points, isCheck }: Series, line: number): Abscissa => ({
  value: valueIn(match),
  precision: precisionOf(match[0]),
  point: points.length,
  isCheck,
  line,
});

/** 0.01 for `12.34`, 100 for `1.2E+03`. */
function precisionOf(number: string): number {
  const [digits = '', exponent = '0'] = number.split(/[eE](?=[+-])/);
  return 10 ** (Number(exponent) - (digits.split('.')[1]?.length ?? 0));
}

const valueIn = ([, number, letter = '', digits = '']: RegExpExecArray): number =>
  number === undefined ? squeezed(SQUEEZED.indexOf(letter), digits) : Number(number);

/** The first nine letters are the digits 1 to 9, the next nine the same with a minus. */
const squeezed = (index: number, digits: string): number =>
  index <= 9 ? Number(`${index}${digits}`) : -Number(`${index - 9}${digits}`);

/** Adds the points of one token; false if a check value differs. */
function decodeToken(series: Series, match: RegExpExecArray, line: number, maxPoints: number): boolean {
  const [, number, letter, digits = ''] = match;
  if (letter !== undefined && REPEATED.includes(letter)) {
    const room = maxPoints + 1 - series.points.length;
    const times = Math.min(Number(`${REPEATED.indexOf(letter)}${digits}`) - 1, room);
    const { difference } = series;
    for (let n = 0; n < times; n++) {
      if (difference === undefined) series.points.push({ text: series.lastText, line });
      else addDifference(series, difference, line);
    }
    return true;
  }
  if (letter !== undefined && DIFFERENCE.includes(letter)) {
    addDifference(series, squeezed(DIFFERENCE.indexOf(letter), digits), line);
    return true;
  }
  const { isCheck } = series;
  series.isCheck = false;
  series.difference = undefined;
  const isMissing = number === undefined && letter === undefined;
  const value = isMissing ? series.last : valueIn(match);
  if (isCheck && !isMissing && !isNearly(value, series.last)) return false;
  series.last = value;
  const isAsWritten = series.factor === 1 && number !== undefined;
  const text = isAsWritten ? number.replace(/^\+/, '') : written(value * series.factor);
  series.lastText = isMissing ? '' : text;
  if (!isCheck || isMissing) series.points.push({ text: series.lastText, line });
  return true;
}

function addDifference(series: Series, by: number, line: number): void {
  series.isCheck = false;
  series.difference = by;
  series.last += by;
  series.lastText = written(series.last * series.factor);
  series.points.push({ text: series.lastText, line });
}

/** Sums of decimal fractions are not exact. */
const isNearly = (one: number, other: number): boolean =>
  Math.abs(one - other) <= 1e-9 * Math.max(Math.abs(one), Math.abs(other));
