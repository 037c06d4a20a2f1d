import type { ParseMapping } from '../config/vocabulary.js';
import type { FileRecord, Table } from '../model.js';
import { isMeasuredIn, isOfKnownUnit } from '../parse/values/quantity.js';
import { isUnit } from '../parse/values/unit.js';
import { mapTables, type TableMapping } from './describe.js';
import { isSubject } from './kinds.js';
import { isMonotonic } from './numbered-names.js';

/** Units of columns that are facts: `Glucose units: g/L` above the column `Glucose`, `X Units: nm`, or `Units: mg/L`. */
export function withUnitFacts(mapping: ParseMapping, { meta, tables }: FileRecord): ParseMapping {
  const units = new Map<string, string>();
  const factors = factorsIn(meta);
  for (const [name, { text }] of meta) {
    const [, axis] = AXIS_UNIT.exec(name) ?? [];
    if ((axis === undefined && !UNIT_WORD.test(name)) || !isUnit(text.trim())) continue;
    const of = axis?.toLowerCase() ?? wordsIn(name.replace(UNIT_WORD, ' '));
    if (!factors.has(of)) units.set(of, name);
  }
  if (units.size === 0) return mapping;
  const readings = tables.filter(({ rows }) => rows.length > 1);
  const withUnits = (table: TableMapping, name: string): TableMapping => {
    const found = tables.find((each) => each.name === name);
    if (!found || Array.isArray(table.columns)) return table;
    const isOnly = readings.length === 1 && readings[0] === found && factors.size === 0;
    const own: NonNullable<TableMapping['columns']> & object = {};
    for (const [n, { name: from, unit, invented }] of found.columns.entries()) {
      if (unit !== undefined || typeof found.rows[0]?.[n]?.value !== 'number' || factors.has(wordsIn(from))) continue;
      const fact =
        (invented === undefined ? unitOfName(from, units) : undefined) ??
        (isOnly ? (unitOfAxis(found, n, units) ?? unitOfAll(found, n, units, meta)) : undefined);
      if (fact === undefined) continue;
      const isNamed = invented === undefined;
      own[isNamed ? from : 'XY'.charAt(n)] = { from: isNamed ? from : n + 1, unit: { from: fact } };
    }
    return Object.keys(own).length === 0 ? table : { ...table, columns: { ...own, ...table.columns } };
  };
  return { ...mapping, ...mapTables(mapping, withUnits) };
}

const UNIT_WORD =
  /(?<!\p{L})(?:units?(?: (?:of|for))?|einheit(?: von)?|unit[ée](?: de)?|unidad(?: de)?|単位|单位)(?!\p{L})/iu;
const AXIS_UNIT = /^([XY])units?$/i;

/** By the words of a column: the fact by which its numbers have to be multiplied, such as `Intensity Multiplier: 0.001`. */
export function factorsIn(meta: FileRecord['meta']): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, { value, text }] of meta)
    if (
      FACTOR.test(name) &&
      !DEVICE.test(name) &&
      (typeof value === 'number' ? value !== 1 && value !== 0 : TIMES.test(text))
    )
      found.set(wordsIn(name.replace(FACTOR, ' $1')), name);
  return found;
}

/** The second of that name has a number: `Intensity Multiplier (2)`. What follows says which numbers: `Scale factor CH1`. */
const FACTOR =
  /(?:multiplier|(?:multiplication|scal(?:e|ing)|(?<!\p{L})conversion)[ _.-]?factor|(?:skalierungs|umrechnungs)faktor|(?<=^[XY])factor)(?:[ _.-]+(?:for |of )?(\(?(?:[XYZ]|ch(?:annel)?[ _.-]?\d+)(?:[ _.-]?axis)?\)?))?(?: \(\d+\))?$/iu;
/** Of which a setting or a voltage is the value: `Electron multiplier: 1800`. */
const DEVICE = /electron|photo|detector|(?<!\p{L})(?:ions?|em|pmt)(?!\p{L})/iu;
const TIMES = /^\s*[x×*]\s?\d/i;

export const wordsIn = (name: string): string => (name.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');

/** Also of `Glucose 2`, and of `Temp` if the fact is called `Temperature unit`. */
function unitOfName(column: string, units: ReadonlyMap<string, string>): string | undefined {
  const name = wordsIn(column);
  const base = name.replace(/ (?:\d+|[a-z])$/, '');
  if (name === '') return undefined;
  const exact = units.get(name) ?? units.get(base);
  if (exact !== undefined || base.length < MIN_LETTERS) return exact;
  const [long, ...others] = [...units].filter(([of]) => of.startsWith(base) && /^\p{L}*$/u.test(of.slice(base.length)));
  return others.length === 0 ? long?.[1] : undefined;
}

const MIN_LETTERS = 4;
const AXES = [/^(?:x|horizontal|abscissa)(?: axis)?$/i, /^(?:y|vertical|ordinate)(?: axis)?$/i];

/** Of two columns of numbers, of which the first is in order, the first is the x axis. */
function unitOfAxis({ columns, rows }: Table, n: number, units: ReadonlyMap<string, string>): string | undefined {
  const isCurve = columns.length === 2 && rows.every((row) => row.every(({ value }) => typeof value === 'number'));
  if (!isCurve || !isMonotonic(rows.map(([cell]) => Number(cell?.value)))) return undefined;
  return [...units].find(([of]) => AXES[n]?.test(of))?.[1];
}

/** `Units: mg/L` is that of all readings, if only one column can be meant. */
function unitOfAll(
  { columns, rows }: Table,
  n: number,
  units: ReadonlyMap<string, string>,
  meta: FileRecord['meta'],
): string | undefined {
  const fact = units.get('');
  const text = fact === undefined ? undefined : meta.get(fact)?.text.trim();
  if (text === undefined || units.size > 1) return undefined;
  const bare = columns.flatMap(({ name, unit }, at) => {
    const isNumber = rows.some((row) => typeof row[at]?.value === 'number');
    return isNumber && unit === undefined && !isSubject(name) ? [name] : [];
  });
  const [name = '', ...others] = bare;
  const isOther = NO_READING.test(name) || (isOfKnownUnit(name) && !isMeasuredIn(name, text));
  return others.length === 0 && columns[n]?.name === name && !isOther ? fact : undefined;
}

/** What has another unit than the readings, or none. */
const NO_READING =
  /(?<!\p{L})(?:n|no|nr|number|ph|time|date|zeit|ratio|factor|dilution|counts?|index|rank|score|passage|replicates?|rsd|cv|year|month|day|hours?|channel|position|line|row|column \d+)(?!\p{L})|[%#]/iu;
