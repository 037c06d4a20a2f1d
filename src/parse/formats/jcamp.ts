import type { ParseOptions } from '../../config/vocabulary.js';
import type { NamedFact } from '../extract/tree-facts.js';
import type { TextRow } from '../extract/tree-tables.js';
import { readText, type WholeFile } from '../source.js';
import { createDecimalWriter } from '../values/value.js';

/** What a JCAMP-DX file says: its labels, and its data as tables. */
interface Jcamp {
  readonly labels: readonly NamedFact[];
  readonly tables: readonly DataTable[];
}

/** Reads JCAMP-DX: one block, or several within or after each other. */
export async function readJcamp(file: WholeFile, options: ParseOptions): Promise<Jcamp> {
  const records = recordsIn((await readText(file, options)).split(/\r\n|\n|\r/));
  if (records.length === 0) {
    throw file.refuse('this is not JCAMP-DX: no line begins with ##', {
      hint: 'say what it is: `format: delimited`',
      isMismatch: true,
    });
  }
  const labels: NamedFact[] = [];
  const tables: DataTable[] = [];
  let pages: DataTable[] = [];
  // What was said of the data that come next, in the same block.
  let known = new Map<string, LabelledRecord>();
  for (const record of records) {
    if (record.key === 'TITLE' || record.key === 'END' || record.key === 'ENDNTUPLES') {
      tables.push(...joinPages(pages));
      pages = [];
    }
    if (record.key === 'TITLE') known = new Map();
    const data = await readData(record, known, file, options);
    if (data) {
      pages.push(data);
      // It is said anew for the next data, if at all.
      known.delete('NPOINTS');
    } else if (!record.key.startsWith('END') && !isEmptyOwn(record)) labels.push(labelOf(record));
    known.set(record.key, record);
  }
  tables.push(...joinPages(pages));
  return { labels, tables };
}

function recordsIn(texts: readonly string[]): LabelledRecord[] {
  const records: (LabelledRecord & { lines: string[] })[] = [];
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
  return records;
}

/** Makers write many labels of their own, also where they have nothing to say. */
const isEmptyOwn = ({ label, lines }: LabelledRecord): boolean =>
  label.startsWith('$') && lines.every((line) => line === '');

/** Texts of the makers' own labels stand in angle brackets, which are not part of them. */
function labelOf({ label, lines, number }: LabelledRecord): NamedFact {
  const text = lines.filter((line) => line !== '').join(' ');
  return { name: label, text: /^<[^<>]*>$/.test(text) ? text.slice(1, -1).trim() : text, line: number };
}

/** Data of one block or page. */
interface DataTable {
  /** Pages that are written alike belong together. */
  readonly form: string;
  readonly page:
    | { readonly name: string; readonly text: string; readonly unit: string | undefined }
    | undefined;
  readonly columns: readonly { readonly name: string; readonly unit: string | undefined }[];
  readonly rows: readonly TextRow[];
  readonly line: number;
  /** How many rows the file itself says that there are. */
  readonly declared: number | undefined;
}

/** What the file says of one variable of its data. */
interface Variable {
  readonly name: string;
  readonly unit: string | undefined;
  readonly factor: number;
  readonly first: number | undefined;
  readonly last: number | undefined;
  readonly step: number | undefined;
}

type Known = ReadonlyMap<string, LabelledRecord>;

const MOST_POINTS = 3_000_000;

const DATA = new Set([
  'XYDATA',
  'XYPOINTS',
  'PEAKTABLE',
  'PEAKASSIGNMENTS',
  'ASSIGNMENTS',
  'RADATA',
  'DATATABLE',
]);
const SERIES = /^\(\s*(\w+)\s*\+\+\s*\(\s*(\w+)\s*\.\.\s*\2\s*\)\s*\)/;
const GROUPS = /^\(\s*([A-Z]{1,9})\s*\.\.\s*\1\s*\)/i;
const TUPLES = /^\(\s*(X[A-Z]{1,8})\s*\)/i;

/** The data that a record holds; undefined where it is a mere label. */
async function readData(
  record: LabelledRecord,
  known: Known,
  file: WholeFile,
  options: ParseOptions,
): Promise<DataTable | undefined> {
  if (!DATA.has(record.key)) return undefined;
  const [form = ''] = record.lines;
  const [, x, y] = SERIES.exec(form) ?? [];
  const [, group] = GROUPS.exec(form) ?? [];
  const [, tuple] = TUPLES.exec(form) ?? [];
  const declared = numberAt(known.get('NPOINTS'));
  const common = { form, page: pageOf(known), line: record.number, declared };
  if (x !== undefined && y !== undefined) {
    const variables = [variableOf(x, known), variableOf(y, known)] as const;
    const rows = await seriesRows(record, variables, file, options);
    return { ...common, declared: declared ?? dimensionOf(x, known), columns: variables, rows };
  }
  const letters = group ?? tuple;
  if (letters === undefined) {
    throw file.refuse(`the form of the data is not known: ${JSON.stringify(form.slice(0, 40))}`, {
      at: { line: record.number },
    });
  }
  const variables = [...letters].map((symbol) => variableOf(symbol, known));
  const rows = await readTuples(record, variables, group !== undefined, file, options);
  return { ...common, columns: variables, rows };
}

/** Ordinates one after the other, at equal distances. */
async function seriesRows(
  record: LabelledRecord,
  [x, y]: readonly [Variable, Variable],
  file: WholeFile,
  options: ParseOptions,
): Promise<TextRow[]> {
  // A repetition of a few signs can ask for any number of points, so there is a limit by the size of the file.
  const most = Math.min(options.limits.maxRows, MOST_POINTS, 1_000_000 + file.bytes.byteLength);
  const series = await decodeSeries(record, { most, factor: y.factor, decimal: options.decimal }, file);
  const count = series.points.length;
  const start = x.first ?? series.firstX * x.factor;
  const step = x.last === undefined ? x.step : (x.last - start) / Math.max(count - 1, 1);
  if (step === undefined && count > 1) {
    throw file.refuse(`it is not said how far the points are from each other`, {
      at: { line: record.number },
      hint: 'the file lacks ##LASTX and ##DELTAX',
    });
  }
  const writePoint = createDecimalWriter(options);
  return series.points.map(({ text, line }, n) => ({
    line,
    cells: [writePoint(written(start + n * (step ?? 0))), writePoint(text)],
  }));
}

/** Of an NTUPLES block, at its place in the lists; else by labels of its own, such as ##XUNITS. */
function variableOf(symbol: string, known: Known): Variable {
  const place = placeOf(symbol, known);
  if (place >= 0) {
    const at = (key: string) => listAt(known.get(key))[place] || undefined;
    return {
      name: at('VARNAME') ?? symbol,
      unit: at('UNITS'),
      factor: numberOf(at('FACTOR')) || 1,
      first: numberOf(at('FIRST')),
      last: numberOf(at('LAST')),
      step: undefined,
    };
  }
  const letter = symbol.toUpperCase();
  return {
    name: letter === 'A' ? 'assignment' : symbol.toLowerCase(),
    unit: textAt(known.get(`${letter}UNITS`)),
    factor: numberAt(known.get(`${letter}FACTOR`)) || 1,
    first: numberAt(known.get(`FIRST${letter}`)),
    last: numberAt(known.get(`LAST${letter}`)),
    step: numberAt(known.get(`DELTA${letter}`)),
  };
}

const placeOf = (symbol: string, known: Known): number => listAt(known.get('SYMBOL')).indexOf(symbol);

const dimensionOf = (symbol: string, known: Known): number | undefined =>
  numberOf(listAt(known.get('VARDIM'))[placeOf(symbol, known)]);

/** `##PAGE= N=1`. */
function pageOf(known: Known): DataTable['page'] {
  const [, symbol, text] = /^([^=]+)=(.*)$/.exec(textAt(known.get('PAGE')) ?? '') ?? [];
  if (symbol === undefined || text === undefined) return undefined;
  const { name, unit } = variableOf(symbol.trim(), known);
  return { name, unit, text: text.trim() };
}

const textAt = (record: LabelledRecord | undefined): string | undefined =>
  record?.lines.join(' ').trim() || undefined;

const listAt = (record: LabelledRecord | undefined): string[] =>
  (textAt(record) ?? '').split(',').map((item) => item.trim());

const numberAt = (record: LabelledRecord | undefined): number | undefined => numberOf(textAt(record));

function numberOf(text: string | undefined): number | undefined {
  const number = text === undefined || text === '' ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}

/** Pages that are written alike are one table, with a column that says of which page a row is. */
function joinPages(pages: readonly DataTable[]): DataTable[] {
  const forms = new Map<string, DataTable[]>();
  for (const page of pages) {
    const alike = forms.get(page.form);
    if (alike) alike.push(page);
    else forms.set(page.form, [page]);
  }
  return [...forms.values()].flatMap((alike) => {
    const [first] = alike;
    if (!first?.page || alike.length === 1 || alike.some(({ page }) => !page)) return alike;
    const rows = alike.flatMap(({ page, rows: own }) =>
      own.map(({ line, cells }) => ({ line, cells: [page?.text ?? '', ...cells] })),
    );
    return [
      { ...first, page: undefined, columns: [first.page, ...first.columns], rows, declared: undefined },
    ];
  });
}

const LONGEST_LINE = 10_000;

/** Reads `(XY..XY)`, numbers in groups; or `(XYA)`, a group in brackets with a text in angle brackets. */
async function readTuples(
  record: LabelledRecord,
  variables: readonly Variable[],
  isGrouped: boolean,
  file: WholeFile,
  options: ParseOptions,
): Promise<TextRow[]> {
  const writePoint = createDecimalWriter(options);
  const separator = options.decimal === ',' ? /[\s;]+/ : /[\s,;]+/;
  const rows: TextRow[] = [];
  for (const [n, content] of record.lines.entries()) {
    if (n === 0 || content === '') continue;
    const line = record.number + n;
    const tuples = isGrouped ? groupsIn(content, separator, variables.length) : bracketsIn(content);
    if (!tuples) {
      throw file.refuse(`this is no line of data in groups of ${variables.length}`, {
        at: { line },
        hint: 'the file may be cut short',
      });
    }
    for (const tuple of tuples) {
      const cells = variables.map(({ factor }, at) => scaled(tuple[at] ?? '', factor, writePoint));
      rows.push({ line, cells });
    }
    if (n % 64 === 0 && file.slice.isOver()) await file.slice.renew();
  }
  return rows;
}

function scaled(text: string, factor: number, writePoint: (number: string) => string): string {
  const [, inner] = /^<(.*)>$/.exec(text) ?? [];
  if (inner !== undefined) return inner.trim();
  const number = text === '' ? Number.NaN : Number(text);
  if (factor !== 1 && Number.isFinite(number)) return writePoint(written(number * factor));
  return Number.isFinite(number) ? writePoint(text) : text;
}

function groupsIn(content: string, separator: RegExp, size: number): string[][] | undefined {
  const items = content.split(separator).filter((item) => item !== '');
  if (items.length % size !== 0) return undefined;
  return Array.from({ length: items.length / size }, (_, n) => items.slice(n * size, (n + 1) * size));
}

function bracketsIn(content: string): string[][] | undefined {
  // People write these lines, and a pattern with brackets in brackets takes its time for a long one.
  if (content.length > LONGEST_LINE) return undefined;
  const groups = [...content.matchAll(/\(((?:<[^>]*>|[^<>()])*)\)/g)];
  if (groups.length === 0) return undefined;
  return groups.map(([, inner = '']) =>
    [...inner.matchAll(/<[^>]*>|[^,<>]+/g)].map(([item]) => item.trim()).filter((item) => item !== ''),
  );
}

/** The ordinates of a series, and where it begins. */
interface Series {
  readonly firstX: number;
  readonly points: readonly { readonly text: string; readonly line: number }[];
}

interface SeriesOptions {
  /** More points than these are not made: a few signs can ask for any number of them. */
  readonly most: number;
  readonly factor: number;
  readonly decimal: '.' | ',' | undefined;
}

/**
 * One ordinate, or how the next follow from the one before:
 * numbers, squeezed numbers (`A1` is 11), differences (`J1` is 11 more), repetitions (`S`), and `?` for none.
 */
const TOKEN =
  /([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]\d+)?)|([@A-Ia-i])(\d*\.?\d*)|([%J-Rj-r])(\d*\.?\d*)|([S-Zs])(\d*)|(\?)|([\s;]+)/y;

const SQUEEZED = '@ABCDEFGHIabcdefghi';
const DIFFERENCE = '%JKLMNOPQRjklmnopqr';
const REPEATED = ' STUVWXYZs';

type Token =
  | { readonly kind: 'value'; readonly value: number; readonly text: string }
  | { readonly kind: 'difference'; readonly value: number }
  | { readonly kind: 'repeat'; readonly times: number }
  | { readonly kind: 'missing' };

/** Decodes `(X++(Y..Y))`: each line has its abscissa, and then as many ordinates as fit. */
async function decodeSeries(
  record: LabelledRecord,
  options: SeriesOptions,
  file: WholeFile,
): Promise<Series> {
  const points: { text: string; line: number }[] = [];
  let firstX: number | undefined;
  const decoder = createDecoder(options.factor);
  for (const [n, content] of record.lines.entries()) {
    if (n === 0 || content === '') continue;
    const line = record.number + n;
    const refuse = (message: string, hint?: string) =>
      file.refuse(message, { at: { line }, ...(hint && { hint }) });
    const tokens = tokensIn(content, options.decimal);
    const [x, ...ordinates] = typeof tokens === 'string' ? [] : tokens;
    if (typeof tokens === 'string' || x?.kind !== 'value') {
      throw refuse(
        `this is no line of data: ${JSON.stringify(content.slice(0, 40))}`,
        typeof tokens === 'string' ? tokens : undefined,
      );
    }
    firstX ??= x.value;
    decoder.begin();
    for (const token of ordinates) {
      const room = options.most - points.length;
      const texts = decoder.take(token, room);
      if (texts === undefined)
        throw refuse('a line does not begin with the value at which the one before ended');
      if (texts === 'more') throw refuse(`there are more points than the ${options.most} that there can be`);
      for (const text of texts) points.push({ text, line });
    }
    if (n % 64 === 0 && file.slice.isOver()) await file.slice.renew();
  }
  return { firstX: firstX ?? 0, points };
}

interface Decoder {
  /** A new line begins. */
  begin(): void;
  /** The points that a token makes; undefined where a check fails, `more` where there is no room. */
  take(token: Token, room: number): readonly string[] | 'more' | undefined;
}

function createDecoder(factor: number): Decoder {
  let last: number | undefined;
  let lastText = '';
  let difference: number | undefined;
  let isCheck = false;

  const scaled = (value: number): string => written(value * factor);

  function takeValue(value: number, text: string): string[] | undefined {
    const isRepeated = isCheck;
    isCheck = false;
    difference = undefined;
    if (isRepeated && !isNearly(value, last ?? 0)) return undefined;
    last = value;
    lastText = factor === 1 && text !== '' ? text : scaled(value);
    return isRepeated ? [] : [lastText];
  }
  function takeDifference(value: number): string[] {
    isCheck = false;
    difference = value;
    last = (last ?? 0) + value;
    lastText = scaled(last);
    return [lastText];
  }

  return {
    begin() {
      // After differences, a line repeats the last value, so that a lost sign is noticed.
      isCheck = difference !== undefined;
    },
    take(token, room) {
      switch (token.kind) {
        case 'missing':
          isCheck = false;
          difference = undefined;
          lastText = '';
          return room < 1 ? 'more' : [''];
        case 'value': {
          const texts = takeValue(token.value, token.text);
          return texts && texts.length > room ? 'more' : texts;
        }
        case 'difference':
          return room < 1 ? 'more' : takeDifference(token.value);
        case 'repeat': {
          const times = token.times - 1;
          if (times > room) return 'more';
          const by = difference;
          return Array.from({ length: Math.max(times, 0) }, () =>
            by === undefined ? lastText : (takeDifference(by)[0] ?? ''),
          );
        }
      }
    },
  };
}

/** Sums of decimal fractions are seldom exact. */
const isNearly = (one: number, other: number): boolean =>
  Math.abs(one - other) <= 1e-9 * Math.max(Math.abs(one), Math.abs(other));

/** The tokens of a line; a text where a comma can mean two things. */
function tokensIn(content: string, decimal: '.' | ',' | undefined): Token[] | string {
  const hasComma = content.includes(',');
  if (hasComma && decimal === undefined) return 'say what the comma is: `decimal: ","` or `decimal: "."`';
  const line = hasComma ? content.replaceAll(',', decimal === ',' ? '.' : ' ') : content;
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < line.length) {
    const match = TOKEN.exec(line);
    if (!match) return 'the file may be damaged';
    const token = tokenOf(match);
    if (token) tokens.push(token);
  }
  return tokens;
}

function tokenOf([
  ,
  number,
  squeezed,
  squeezedDigits,
  sign,
  digits,
  repeated,
  times,
  missing,
]: RegExpExecArray): Token | undefined {
  if (number !== undefined) return { kind: 'value', value: Number(number), text: number.replace(/^\+/, '') };
  if (squeezed !== undefined) {
    const value = signed(SQUEEZED.indexOf(squeezed), squeezedDigits);
    return { kind: 'value', value, text: '' };
  }
  if (sign !== undefined) return { kind: 'difference', value: signed(DIFFERENCE.indexOf(sign), digits) };
  if (repeated !== undefined)
    return { kind: 'repeat', times: Number(`${REPEATED.indexOf(repeated)}${times}`) };
  return missing === undefined ? undefined : { kind: 'missing' };
}

/** The first nine letters are the digits 1 to 9, the next nine the same with a minus. */
function signed(place: number, digits = ''): number {
  return place <= 9 ? Number(`${place}${digits}`) : -Number(`${place - 9}${digits}`);
}

/** A labelled data record: `##LABEL= value`, with the lines that follow up to the next. */
interface LabelledRecord {
  /** As written, without `##`. */
  readonly label: string;
  /** As the standard compares labels: capitals only, without blanks, dashes, slashes and underscores. */
  readonly key: string;
  /** Without comments. The first is what stands right after the `=`. */
  readonly lines: readonly string[];
  /** Of the first line in the file. */
  readonly number: number;
}

/** Without the last digits, in which a computed number is never exact. */
const written = (value: number): string => String(Number(value.toPrecision(12)));
