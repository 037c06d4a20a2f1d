import { areaOf } from '../config/grammar.js';
import { type Format, NO_MAPPING, type ParseMapping, type ParseOptions, withDefaults } from '../config/vocabulary.js';
import { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import { firstLines, openText } from '../parse/cells.js';
import { describeDetected } from '../parse/encoding.js';
import { letterAt } from '../parse/extract/grid.js';
import type { Tree } from '../parse/extract/tree.js';
import { readJson, readXml } from '../parse/formats/documents.js';
import { readRecords } from '../parse/formats/records.js';
import { linesOf, openSheets } from '../parse/formats/workbook.js';
import { isBlank, type Line } from '../parse/lines.js';
import { formatOf, readFile } from '../parse/parse.js';
import type { OpenFile, Sheet } from '../parse/source.js';
import { plural } from '../text.js';
import { findDates, settleDates } from './dates.js';
import { mapTables, type TableMapping } from './describe.js';
import { findAnyDate } from './line-dates.js';
import { type MeasureContext, type Measured, measureLines, measureText } from './measure.js';
import type { FinderMapping } from './pieces.js';
import { findPlaced } from './placed.js';
import { describePrinted } from './printed.js';
import { describeRecords, isSentAt } from './records.js';
import { describeTree } from './tree.js';
import { describeLas, describeTypedLines } from './typed-lines.js';

/** Measures a file: which mapping reads it, and what the file leaves open. Throws a FileError if that is unclear. */
export async function measureFile(
  opened: OpenFile,
  complete = withDefaults,
): Promise<Measured & Pick<MeasureContext, 'read'>> {
  const file = { ...opened, options: NO_MAPPING };
  // Often the mapping that was verified is the result, and the file need not be read again.
  let last: { readonly options: ParseOptions; readonly record: FileRecord } | undefined;
  const read: MeasureContext['read'] = async (mapping) => {
    const options = complete(mapping);
    if (last?.options !== options) last = { options, record: await readFile({ ...file, options }) };
    return last.record;
  };
  const measured = await MEASURERS[await formatOf(file)]({ read, ...file });
  return { read, ...measured };
}

type Measurer = (file: OpenFile & MeasureContext) => Promise<Measured>;

/** More lines would not show more of the layout. */
const MAX_LINES = 20_000;

const measureDelimited: Measurer = async (file) => {
  const texts = await firstLines(await openText(file), MAX_LINES);
  const log = describeLas(texts) ?? describeTypedLines(texts);
  const printed = log ? undefined : describePrinted(texts);
  const isPrinted = printed && (await problemOf(printed, file)) === undefined;
  const mapping = log?.mapping ?? (isPrinted ? printed : undefined);
  const measured = mapping ? await withDates(mapping, file, log?.doubts) : await measureText(texts, file);
  const { encoding } = file.known;
  const doubt = describeDetected(encoding);
  if (encoding === undefined || doubt === undefined) return measured;
  const withEncoding = (mapping: ParseMapping): ParseMapping => ({ encoding, ...mapping });
  return {
    ...measured,
    mapping: withEncoding(measured.mapping),
    likely: () => withEncoding(measured.likely()),
    doubts: [...measured.doubts, doubt],
  };
};

/** These formats need no further keys. */
const formatOnly =
  (format: 'jcamp' | 'none'): Measurer =>
  async () => ({ mapping: { format }, likely: () => ({ format }), doubts: [], ambiguity: undefined });

const MEASURERS: Readonly<Record<Format, Measurer>> = {
  delimited: measureDelimited,
  text: measureDelimited,
  json: async (file) => measureTree('json', await readJson(file), file),
  xml: async (file) => measureTree('xml', await readXml(file), file),
  records: async (file) => withDates(describeRecords(await readRecords(file)), file),
  xlsx: async (file) => measureSheets((await openSheets(file)).sheets, file),
  jcamp: formatOnly('jcamp'),
  none: formatOnly('none'),
};

async function measureTree(format: 'json' | 'xml', { root }: Tree, file: MeasureContext): Promise<Measured> {
  const { facts, tables, doubts } = root ? describeTree(root) : { facts: {}, tables: {}, doubts: [] };
  const problem = await problemOf({ format, facts, tables }, file);
  if (problem === undefined) return withDates({ format, facts, tables }, file, doubts);
  // A table that the file cannot be read with is left out.
  const readable: Record<string, TableMapping> = {};
  const problems: string[] = [];
  for (const [name, table] of Object.entries(tables)) {
    const own = await problemOf({ format, tables: { [name]: table } }, file);
    if (own === undefined) readable[name] = table;
    else problems.push(`the table ${JSON.stringify(name)} is not in this mapping: ${own}`);
  }
  return withDates({ format, facts, tables: readable }, file, [...doubts, ...problems]);
}

async function problemOf(mapping: ParseMapping, { read }: MeasureContext): Promise<string | undefined> {
  try {
    await read(mapping);
    return undefined;
  } catch (error) {
    if (error instanceof FileError) return error.message;
    throw error;
  }
}

/** Reads the file once to see which texts are dates. */
async function withDates(
  mapping: ParseMapping,
  file: MeasureContext,
  doubts: readonly string[] = [],
): Promise<Measured> {
  const { meta, tables } = await file.read(mapping);
  const paths = new Map(Object.entries(mapping.facts ?? {}));
  // The path of a fact shows whether a date belongs to the run or to a calibration.
  const byPath = new Map(
    [...meta].map(([name, value]) => {
      const where = paths.get(name) ?? name;
      const path = typeof where === 'object' && 'from' in where ? where.from : where;
      return [isSentAt(path) ? 'message sent' : String(path), value];
    }),
  );
  const found = findDates({ meta: byPath, tables });
  const isDated = typeof paths.get('date') === 'object';
  const other = found.other ?? (found.fact || found.firstRow ? undefined : findAnyDate(textsOf(tables)));
  const { settle: settleIn, ...rest } = settleDates(
    isDated ? { ...found, fact: undefined } : { ...found, other },
    file.source,
    isDated,
  );
  const { date, ...others } = mapping.facts ?? {};
  // An element named `date` may not be the date of the run.
  const isOther = typeof date === 'string' && found.fact?.[0] !== date;
  const settle = (read: ParseMapping) => settleIn(isOther ? { ...read, facts: { ...others, 'date 2': date } } : read);
  return {
    mapping: settle(mapping),
    likely: () => settle(mapping),
    ...rest,
    doubts: [...rest.doubts, ...rest.objections, ...doubts],
    ambiguity: undefined,
  };
}

/** More rows would not show other kinds of values. */
const MAX_SEEN_ROWS = 200;

const textsOf = (tables: FileRecord['tables']) =>
  tables.flatMap(({ rows }) =>
    rows.slice(0, MAX_SEEN_ROWS).map((row) => ({ text: '', cells: row.map(({ text }) => text) })),
  );

/** Each sheet takes as long as a file. */
const MAX_SHEETS = 30;

async function measureSheets(sheets: readonly Sheet[], file: MeasureContext): Promise<Measured> {
  const measured: Measured[] = [];
  let firstError: unknown;
  for (const [n, sheet] of sheets.slice(0, MAX_SHEETS).entries()) {
    const lines = linesOf(sheet, n);
    if (lines.every(isBlank)) continue;
    try {
      measured.push(await measureSheet(n === 0 ? {} : { sheet: sheet.name }, lines, file));
    } catch (error) {
      // A sheet of prose next to sheets of data is left out.
      firstError ??= error;
    }
  }
  const [first, ...others] = measured;
  if (!first) throw firstError ?? file.refuse('the workbook is empty');
  const all = others.reduce(join, first);
  const left = sheets.slice(MAX_SHEETS).map(({ name }) => JSON.stringify(name));
  return left.length === 0 ? all : { ...all, doubts: [...all.doubts, sheetDoubt(left)] };
}

const sheetDoubt = ([first = '', ...others]: readonly string[]): string =>
  `learn looks at the first ${MAX_SHEETS} sheets. Not in this mapping: ${first}${others.length === 0 ? '' : ` and ${plural(others.length, 'further sheet')}`}. If they have readings, add a table for each: { sheet: ${first}, header: … }`;

/** The first sheet needs no key. */
type SheetKey = { readonly sheet?: string };

async function measureSheet(key: SheetKey, sheet: readonly Line[], file: MeasureContext): Promise<Measured> {
  const margin = Math.min(...sheet.filter((line) => !isBlank(line)).map(({ cells }) => cells.findIndex(Boolean)));
  const lines = margin === 0 ? sheet : sheet.map((line) => withoutStart(line, margin));
  const inSheet = (mapping: ParseMapping): ParseMapping => ({
    ...mapping,
    ...withSheet(mapping, key, margin),
    format: 'xlsx',
  });
  const measured = await measureLines(
    {
      ...{ lines, raw: ({ text }) => text, isComment: () => false, delimiter: 'tab', base: {}, title: key.sheet },
      placed: findPlaced(lines.map(({ text }) => text)),
    },
    { ...file, read: (mapping) => file.read(inSheet(mapping)) },
  );
  return { ...measured, mapping: inSheet(measured.mapping), likely: () => inSheet(measured.likely()) };
}

const withoutStart = (line: Line, margin: number): Line => {
  const cells = line.cells.slice(margin);
  return { ...line, cells, text: cells.join('\t') };
};

function withSheet(mapping: ParseMapping, key: SheetKey, margin: number): ParseMapping {
  const keys = ({ area = 'A:' }: TableMapping | FinderMapping) => ({
    ...key,
    ...(margin > 0 && { area: shiftArea(area, margin) }),
  });
  const finders = [mapping.meta ?? []].flat().map((finder): FinderMapping => ({ ...finder, ...keys(finder) }));
  return {
    ...(finders.length > 0 && { meta: finders.length === 1 && finders[0] ? finders[0] : finders }),
    ...mapTables(mapping, (table) => ({ ...table, ...keys(table) })),
  };
}

/** `A:B` is `C:D` to the right of two empty columns. */
const shiftArea = (area: string, by: number): string => {
  const { fromCell = 1, toCell } = areaOf(area) ?? {};
  return `${letterAt(fromCell - 1 + by)}:${toCell === undefined ? '' : letterAt(toCell - 1 + by)}`;
};

const join = (one: Measured, other: Measured): Measured => ({
  mapping: joinMappings(one.mapping, other.mapping),
  likely: () => joinMappings(one.likely(), other.likely()),
  firstRow: one.firstRow,
  undated: one.undated,
  doubts: [...one.doubts, ...other.doubts],
  objections: [...(one.objections ?? []), ...(other.objections ?? [])],
  ambiguity: one.ambiguity ?? other.ambiguity,
});

function joinMappings(one: ParseMapping, other: ParseMapping): ParseMapping {
  const both = [one, other];
  const meta = both.flatMap((mapping) => mapping.meta ?? []);
  const tables = { ...tablesOf(one) };
  for (const [name, table] of Object.entries(tablesOf(other))) {
    const own = name in tables ? `${table.sheet ?? name} ${Object.keys(tables).length + 1}` : name;
    tables[own] = table;
  }
  const formats = [...new Set(both.flatMap(({ dates }) => dates?.format ?? []))];
  const missing = [...new Set(both.flatMap((mapping) => mapping.missing ?? []))];
  return {
    format: 'xlsx',
    ...(formats.length > 0 && { dates: { format: formats } }),
    ...(missing.length > 0 && { missing }),
    ...(meta.length > 0 && { meta }),
    facts: { ...other.facts, ...one.facts },
    ...(Object.keys(tables).length > 0 && { tables }),
  };
}

export const tablesOf = ({ table, tables }: ParseMapping): Record<string, TableMapping> =>
  table ? { readings: table } : (tables ?? {});
