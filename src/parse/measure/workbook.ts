import type { ParseMapping } from '../../config/vocabulary.js';
import { linesOf, type Sheet } from '../formats/workbook.js';
import { isBlank, type Line } from '../lines.js';
import type { TableMapping } from './describe.js';
import { measureLines } from './measure.js';
import type { Measured, Measuring } from './measured.js';
import type { FinderMapping } from './pairs.js';

/** Pictures of data, and pages that explain it, come after the data. */
const MOST_SHEETS = 8;

/** Measures every sheet of a workbook by itself, and puts together what they are. */
export async function measureSheets(sheets: readonly Sheet[], file: Measuring): Promise<Measured> {
  const found: Measured[] = [];
  let refusal: unknown;
  for (const [n, sheet] of sheets.slice(0, MOST_SHEETS).entries()) {
    const lines = linesOf(sheet, n);
    if (lines.every(isBlank)) continue;
    try {
      found.push(await measureSheet(sheet.name, n, lines, file));
    } catch (error) {
      // A sheet of prose beside sheets of data is passed over.
      refusal ??= error;
    }
  }
  const [first, ...others] = found;
  if (!first) throw refusal ?? file.refuse('the workbook is empty');
  return others.reduce(join, first);
}

async function measureSheet(
  name: string,
  n: number,
  lines: readonly Line[],
  file: Measuring,
): Promise<Measured> {
  const own = n === 0 ? {} : { sheet: name };
  const inSheet = (mapping: ParseMapping): ParseMapping => ({
    ...mapping,
    ...placed(mapping, own),
    format: 'xlsx',
  });
  const measured = await measureLines(
    { lines, raw: ({ text }) => text, isComment: () => false, delimiter: 'tab', base: {} },
    { ...file, read: (mapping) => file.read(inSheet(mapping)) },
  );
  return { ...measured, mapping: inSheet(measured.mapping), likely: inSheet(measured.likely) };
}

type Place = { readonly sheet?: string };

function placed({ meta, table, tables }: ParseMapping, place: Place): ParseMapping {
  const finders = [meta ?? []].flat().map((finder): FinderMapping => ({ ...finder, ...place }));
  const named = table ? { readings: table } : (tables ?? {});
  return {
    ...(finders.length > 0 && { meta: finders.length === 1 && finders[0] ? finders[0] : finders }),
    ...(table && { table: { ...table, ...place } }),
    ...(tables && {
      tables: Object.fromEntries(Object.entries(named).map(([name, each]) => [name, { ...each, ...place }])),
    }),
  };
}

const join = (one: Measured, other: Measured): Measured => ({
  mapping: joinMappings(one.mapping, other.mapping),
  likely: joinMappings(one.likely, other.likely),
  doubts: [...one.doubts, ...other.doubts],
  refusal: one.refusal ?? other.refusal,
});

function joinMappings(one: ParseMapping, other: ParseMapping): ParseMapping {
  const meta = [...[one.meta ?? []].flat(), ...[other.meta ?? []].flat()];
  const tables = { ...tablesOf(one) };
  for (const [name, table] of Object.entries(tablesOf(other))) {
    const own = name in tables ? `${table.sheet ?? name} ${Object.keys(tables).length + 1}` : name;
    tables[own] = table;
  }
  const formats = [...new Set([...formatsOf(one), ...formatsOf(other)])];
  const missing = [...new Set([...[one.missing ?? []].flat(), ...[other.missing ?? []].flat()])];
  return {
    format: 'xlsx',
    ...(formats.length > 0 && { dates: { format: formats } }),
    ...(missing.length > 0 && { missing }),
    ...(meta.length > 0 && { meta }),
    facts: { ...other.facts, ...one.facts },
    ...(Object.keys(tables).length > 0 && { tables }),
  };
}

const tablesOf = ({ table, tables }: ParseMapping): Record<string, TableMapping> =>
  table ? { readings: table } : (tables ?? {});

const formatsOf = ({ dates }: ParseMapping): string[] => [dates?.format ?? []].flat();
