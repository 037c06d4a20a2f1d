import type { ParseMapping } from '../config/vocabulary.js';
import type { FileRecord } from '../model.js';
import { isUnit } from '../parse/values/unit.js';
import { mapTables, type TableMapping } from './describe.js';

/** Units of columns that are facts: `Glucose units: g/L` above the column `Glucose`. */
export function withUnitFacts(mapping: ParseMapping, { meta, tables }: FileRecord): ParseMapping {
  const units = new Map<string, string>();
  const factors = factorsIn(meta);
  for (const [name, { text }] of meta) {
    const column = wordsIn(name.replace(UNIT_WORD, ' '));
    if (UNIT_WORD.test(name) && column !== '' && !factors.has(column) && isUnit(text.trim())) units.set(column, name);
  }
  if (units.size === 0) return mapping;
  const withUnits = (table: TableMapping, name: string) => {
    const { columns = [], rows: [row] = [] } = tables.find((each) => each.name === name) ?? {};
    const found = columns.flatMap(({ name: from, unit, invented }, n) => {
      const fact = units.get(wordsIn(from));
      const isBare = unit === undefined && invented === undefined && typeof row?.[n]?.value === 'number';
      return fact !== undefined && isBare ? [[from, { from, unit: { from: fact } }] as const] : [];
    });
    if (found.length === 0 || Array.isArray(table.columns)) return table;
    return { ...table, columns: { ...Object.fromEntries(found), ...table.columns } };
  };
  return { ...mapping, ...mapTables(mapping, withUnits) };
}

const UNIT_WORD =
  /(?<!\p{L})(?:units?(?: (?:of|for))?|einheit(?: von)?|unit[ée](?: de)?|unidad(?: de)?|単位|单位)(?!\p{L})/iu;

/** By the words of a column: the fact by which its numbers have to be multiplied, such as `Intensity Multiplier: 0.001`. */
export function factorsIn(meta: FileRecord['meta']): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, { value }] of meta)
    if (FACTOR.test(name) && typeof value === 'number' && value !== 1)
      found.set(wordsIn(name.replace(FACTOR, '')), name);
  return found;
}

const FACTOR = /\s*(?:multiplier|scal(?:e|ing) factor)$/i;

export const wordsIn = (name: string): string => (name.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');
