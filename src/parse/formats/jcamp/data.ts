import type { ParseOptions } from '../../../config/vocabulary.js';
import type { TextRow } from '../../trees/table-from.js';
import { createPointWriter } from '../decimal-mark.js';
import type { WholeFile } from '../whole.js';
import { decodeSeries } from './asdf.js';
import { type LabelledRecord, written } from './record.js';
import { readTuples } from './tuples.js';

/** Data of one block or page. */
export interface DataTable {
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
export interface Variable {
  readonly name: string;
  readonly unit: string | undefined;
  readonly factor: number;
  readonly first: number | undefined;
  readonly last: number | undefined;
  readonly step: number | undefined;
}

export type Known = ReadonlyMap<string, LabelledRecord>;

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
export async function readData(
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
  const writePoint = createPointWriter(options);
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
export function joinPages(pages: readonly DataTable[]): DataTable[] {
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
