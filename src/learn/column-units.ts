import type { ParseMapping } from '../config/vocabulary.js';
import type { FileRecord, Table } from '../model.js';
import { isMeasuredIn, isOfKnownUnit } from '../parse/values/quantity.js';
import { isUnit } from '../parse/values/unit.js';
import { wordsIn } from '../text.js';
import { mapTables, type TableMapping } from './describe.js';
import { isSubject } from './kinds.js';
import { isMonotonic } from './numbered-names.js';

/**
 * Units of columns that are facts: `Glucose units: g/L` above the column `Glucose`, `X Units: nm`, `Units: mg/L`, or
 * `Intensity vs Time,CPS` above the columns of isotopes.
 */
export function withUnitFacts(mapping: ParseMapping, { meta, tables }: FileRecord): ParseMapping {
  const units = new Map<string, UnitFact>();
  const factors = factorsIn(meta);
  for (const [name, { text }] of meta) {
    const of = isUnit(text.trim()) ? quantityOf(name, text.trim()) : undefined;
    if (of !== undefined && !factors.has(of)) units.set(of, { fact: name, unit: text.trim() });
  }
  if (units.size === 0) return mapping;
  const readings = tables.filter(({ rows }) => rows.length > 1);
  const withUnits = (table: TableMapping, name: string): TableMapping => {
    const found = tables.find((each) => each.name === name);
    if (!found || Array.isArray(table.columns)) return table;
    const isOnly = readings.length === 1 && readings[0] === found && factors.size === 0;
    const own: NonNullable<TableMapping['columns']> & object = {};
    const bare = found.columns.flatMap(({ name: from, unit, invented }, n) => {
      const isBare = unit === undefined && isNumeric(found, n) && !factors.has(wordsIn(from));
      return isBare ? [{ from, n, isNamed: invented === undefined }] : [];
    });
    for (const { from, n, isNamed } of bare) {
      const fact =
        (isNamed ? unitOfName(from, units) : undefined) ??
        (isOnly ? (unitOfAxis(found, n, units) ?? unitOfAll(found, n, units)) : undefined);
      if (fact === undefined) continue;
      own[isNamed ? from : 'XY'.charAt(n)] = { from: isNamed ? from : n + 1, unit: { from: fact } };
    }
    const others = bare.flatMap(({ from, isNamed }) => (isNamed && !(from in own) ? [from] : []));
    const series = isOnly ? unitOfSeries(others, Object.keys(own), found, units) : undefined;
    if (series) own[series.pattern] = { unit: { from: series.fact } };
    return Object.keys(own).length === 0 ? table : { ...table, columns: { ...own, ...table.columns } };
  };
  return { ...mapping, ...mapTables(mapping, withUnits) };
}

interface UnitFact {
  readonly fact: string;
  readonly unit: string;
}

/** By the words of what is measured in them. */
type UnitFacts = ReadonlyMap<string, UnitFact>;

const isNumeric = ({ rows }: Table, n: number): boolean => typeof rows[0]?.[n]?.value === 'number';

/** What a fact gives the unit of: `Glucose units`, `Units of Glucose`, `YUnits`, or `Intensity Vs Time`. */
function quantityOf(name: string, unit: string): string | undefined {
  const [, axis] = AXIS_UNIT.exec(name) ?? [];
  const [, first, second = ''] = TITLE.exec(name) ?? [];
  // `Absorbance vs Wavelength: nm` says nothing about the absorbance.
  if (isMeasuredIn(second, unit)) return undefined;
  // `Unit: A` can be the name of one of several devices.
  if (/^unit$/i.test(name) && /^[A-Z]$/.test(unit)) return undefined;
  const words = wordsIn((axis ?? first ?? name).replace(UNIT_WORD, ' '));
  if (axis === undefined && first === undefined && !UNIT_WORD.test(name)) return undefined;
  return first === undefined || isReadings(words) ? words : undefined;
}

const UNIT_WORD =
  /(?<!\p{L})(?:units?(?: (?:of|for))?|einheit(?: von)?|unit[ée](?: de)?|unidad(?: de)?|単位|单位)(?!\p{L})/iu;
const AXIS_UNIT = /^([XY])units?$/i;
const TITLE = /^(\p{L}[\p{L} ]*?) (?:vs?\.?|versus|against) (\p{L}[\p{L} ]*)$/iu;

/** What columns of samples, channels or isotopes have. */
const isReadings = (words: string): boolean =>
  /^(?:(?:y|vertical|ordinate)(?: axis)?|intensit(?:y|ies)|signals?|counts?|response|amplitude|absorbance|concentrations?|conc|values?|results?|readings?|data|)$/.test(
    words,
  );

/** By the words of a column: the fact by which its numbers have to be multiplied, such as `Intensity Multiplier: 0.001`. */
export function factorsIn(meta: FileRecord['meta']): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, { value, text, unit }] of meta)
    if (
      unit === undefined &&
      FACTOR.test(name) &&
      !DEVICE.test(name) &&
      (typeof value === 'number' ? value !== 1 && value !== 0 : TIMES.test(text))
    ) {
      const of = wordsIn(name.replace(FACTOR, ' $1'));
      // A second one of that name is kept under its whole name, so that none is forgotten.
      found.set(found.has(of) ? wordsIn(name) : of, name);
    }
  return found;
}

/** The second of that name has a number: `Intensity Multiplier (2)`. What follows says which numbers: `Scale factor CH1`. */
const FACTOR =
  /(?:multiplier|(?:multiplication|scal(?:e|ing)|(?<!\p{L})conversion)[ _.-]?factor|(?:skalierungs|umrechnungs)faktor|(?<=^[XY])factor)(?:[ _.-]+(?:for |of )?(\(?(?:[XYZ]|ch(?:annel)?[ _.-]?\d+)(?:[ _.-]?axis)?\)?))?(?: \(\d+\))?$/iu;
/** Of which a setting or a voltage is the value: `Electron multiplier: 1800`. */
const DEVICE = /electron|photo|detector|(?<!\p{L})(?:ions?|em|pmt)(?!\p{L})/iu;
const TIMES = /^\s*[x×*]\s?\d/i;

/** Also of `Glucose 2`, and of `Temp` if the fact is called `Temperature unit`, or the other way around. */
function unitOfName(column: string, units: UnitFacts): string | undefined {
  const name = wordsIn(column);
  const base = name.replace(/ (?:\d+|[a-z])$/, '');
  if (name === '') return undefined;
  const exact = units.get(name) ?? units.get(base);
  if (exact !== undefined) return exact.fact;
  const numbered = wordOf(base.replace(/(?<=\p{L}{2})\d{1,2}$/u, ''));
  const [same, ...further] = [...units].filter(
    ([of, { unit }]) => wordOf(of) === numbered && isMeasuredIn(numbered, unit),
  );
  if (same !== undefined) return further.length === 0 ? same[1].fact : undefined;
  if (base.length < MIN_LETTERS) return undefined;
  const [long, ...others] = [...units].filter(([of]) => of.startsWith(base) && /^\p{L}*$/u.test(of.slice(base.length)));
  return others.length === 0 ? long?.[1].fact : undefined;
}

const MIN_LETTERS = 4;

const SHORT = new Map(
  Object.entries({
    ...{ wl: 'wavelength', wvl: 'wavelength', int: 'intensity', intens: 'intensity', abs: 'absorbance', sig: 'signal' },
    ...{ temp: 'temperature', pres: 'pressure', press: 'pressure', freq: 'frequency', conc: 'concentration' },
    ...{ volt: 'voltage', volts: 'voltage', cur: 'current', curr: 'current', pwr: 'power', hum: 'humidity' },
  }),
);

const wordOf = (name: string): string => SHORT.get(name) ?? name;

const AXES = [/^(?:x|horizontal|abscissa)(?: axis)?$/i, /^(?:y|vertical|ordinate)(?: axis)?$/i];

const NAME_OF_X = /^(?:time|elapsed time|retention time|wavelength|frequency|energy|temperature|field)$/i;

/** Of two columns of numbers, of which the first is in order, the first is the x axis. Of more, the only one that fits the unit. */
function unitOfAxis(table: Table, n: number, units: UnitFacts): string | undefined {
  const { columns, rows } = table;
  const isCurve = columns.length === 2 && rows.every((row) => row.every(({ value }) => typeof value === 'number'));
  if (isCurve && isMonotonic(rows.map(([cell]) => Number(cell?.value))))
    return [...units].find(([of]) => AXES[n]?.test(of))?.[1].fact;
  const isOnly = ({ unit }: UnitFact, names: RegExp) => {
    const isFitting = (name: string) => names.test(name) && isMeasuredIn(name, unit);
    const fitting = columns.flatMap(({ name }, at) => (isFitting(name) && isNumeric(table, at) ? [at] : []));
    return fitting.length === 1 && fitting[0] === n;
  };
  const others = columns.filter(
    ({ name, unit }, at) => at !== n && unit === undefined && isNumeric(table, at) && !NAME_OF_X.test(name),
  );
  // Beside other readings, a lamp voltage has that unit, too.
  const isReading = others.length === 0 || isReadings(wordOf(wordsIn(columns[n]?.name ?? '')));
  return [...units].find(
    ([of, fact]) =>
      (AXES[0]?.test(of) && isOnly(fact, NAME_OF_X)) || (AXES[1]?.test(of) && isReading && isOnly(fact, /^/)),
  )?.[1].fact;
}

/** `Units: mg/L` is that of all readings, if only one column can be meant. */
function unitOfAll({ columns, rows }: Table, n: number, units: UnitFacts): string | undefined {
  const all = units.get('');
  if (all === undefined || units.size > 1) return undefined;
  const bare = columns.flatMap(({ name, unit }, at) => {
    const isNumber = rows.some((row) => typeof row[at]?.value === 'number');
    return isNumber && unit === undefined && !isSubject(name) ? [name] : [];
  });
  const [name = '', ...others] = bare;
  const isOther = NO_READING.test(name) || (isOfKnownUnit(name) && !isMeasuredIn(name, all.unit));
  return others.length === 0 && columns[n]?.name === name && !isOther ? all.fact : undefined;
}

/**
 * The unit of the readings is that of columns of isotopes, elements or channels. `others`: columns without a unit.
 * `known`: columns whose units are facts.
 */
function unitOfSeries(others: readonly string[], known: readonly string[], { columns }: Table, units: UnitFacts) {
  const [all, ...further] = [...units].filter(([of]) => isReadings(of));
  if (!all || further.length > 0) return undefined;
  const [of, { fact }] = all;
  const isPlaced = known.length + 1 >= units.size && !known.some((name) => isReadings(wordOf(wordsIn(name))));
  const found = [...SERIES, ...channelsIn(others)].filter(({ pattern, symbol, least, isSure }) => {
    const own = others.filter((name) => pattern.test(name));
    const areThose = own.every((name) => symbol === undefined || ELEMENTS.has(symbol.exec(name)?.[0] ?? ''));
    // A file can have both counts of isotopes and concentrations.
    return own.length >= least && areThose && (isSure ? !/^conc/.test(of) : isPlaced);
  });
  const [{ pattern } = {}] = found;
  const isOther = columns.some(({ name }) => pattern?.test(name) && !others.includes(name));
  return found.length === 1 && pattern && !isOther ? { pattern: String(pattern), fact } : undefined;
}

interface Series {
  readonly pattern: RegExp;
  /** The part of a name that is the symbol of an element. */
  readonly symbol?: RegExp;
  /** A file can have a single isotope or channel. */
  readonly least: number;
  readonly isSure: boolean;
}

/** `Mn55`, `55Mn` and `S32 -> 48`; `Mn`. */
const SERIES: readonly Series[] = [
  { pattern: /^[A-Z][a-z]?\d{1,3}(?: ?-> ?\d{1,3})?$/, symbol: /^\D+(?=\d\d|[679])/, least: 1, isSure: true },
  { pattern: /^\d{1,3}[A-Z][a-z]?(?: ?-> ?\d{1,3})?$/, symbol: /(?<=\d\d|[679])[A-Z][a-z]?/, least: 1, isSure: true },
  { pattern: /^(?!N[or]$)[A-Z][a-z]?$/, symbol: /^.+$/, least: 2, isSure: false },
];

const CHANNEL =
  /^((?:C[Hh]|ch|[Cc]han(?:nel)?|[Ss]ensor|[Dd]etector|[Ee]lectrode|[Pp]robe|[Ss]ample|[Ss]pectrum)[ _-]?)\d+$/;

/** `CH1` and `CH2`, by their word: another file can have more of them. */
const channelsIn = (names: readonly string[]): Series[] =>
  [...new Set(names.flatMap((name) => CHANNEL.exec(name)?.[1] ?? []))].map((word) => ({
    ...{ pattern: new RegExp(`^${word}\\d+$`), least: 1, isSure: false },
  }));

const ELEMENTS = new Set(
  `Li Be B C N Na Mg Al Si P S Cl K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Rb Sr Y Zr Nb Mo Ru Rh Pd Ag Cd In Sn Sb Te
  I Cs Ba La Ce Pr Nd Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Th U`.split(/\s+/),
);

/** What has another unit than the readings, or none. */
const NO_READING =
  /(?<!\p{L})(?:n|no|nr|number|ph|time|date|zeit|ratio|factor|dilution|counts?|index|rank|score|passage|replicates?|rsd|cv|year|month|day|hours?|channel|position|line|row|column \d+)(?!\p{L})|[%#]/iu;
