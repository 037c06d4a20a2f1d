import type { ParseMapping } from '../config/vocabulary.js';
import { compileSplit } from '../parse/cells.js';
import { cleanName } from '../parse/extract/columns.js';
import type { Line } from '../parse/lines.js';
import { bareUnit, isMark, isUnit } from '../parse/values/unit.js';
import { escapeRegex } from '../text.js';

/** Facts in the cells of a line: which cells are names, values and units. */

export type FinderMapping = Exclude<NonNullable<ParseMapping['meta']>, readonly unknown[]>;

/** A letter of any alphabet: patterns have no flag `u`, with which V8 cannot match in linear time. */
export const LETTER = '[A-Za-z\\u0080-\\uffff]';

const MAX_CELLS = 20;

/**
 * Name, value, name, value: `Batch;B-12;Operator;Ada`. Also after a word: `Constants;Time;4;Oxygen;21`. `arePaired`: even
 * if all values are words.
 */
export function pairsBeside({ cells }: Line, arePaired = false): FinderMapping | undefined {
  const end = cells.findLastIndex((cell) => cell !== '') + 1;
  const filled = cells.slice(0, end);
  if (end < 4 || end > MAX_CELLS || filled.includes('')) return undefined;
  return alternatingPairs(filled, arePaired) ?? quantitiesBeside(filled);
}

function alternatingPairs(filled: readonly string[], arePaired: boolean): FinderMapping | undefined {
  const end = filled.length;
  const start = end % 2;
  const names = filled.filter((_, n) => n >= start && (n - start) % 2 === 0);
  const values = filled.filter((_, n) => n >= start && (n - start) % 2 === 1);
  const areNames = names.every((name) => /^\p{L}[\p{L} _.:/-]*$/u.test(name)) && new Set(names).size === names.length;
  const hasDigit = (value: string) => /\d/.test(value);
  const areLong = names.every((name) => /\p{L}{3}/u.test(name));
  // Other words are a list of values. After a word, one of them would be a name without a value.
  const areValues =
    values.every(hasDigit) ||
    (areLong && (values.some(hasDigit) || (arePaired && start === 0)) && !values.every(isUnitLike));
  if (!areNames || !areValues || (start === 1 && values.length < 2)) return undefined;
  // A unit belongs to the value before it, so it is not a name. A capital letter can be an element.
  const isName = (name: string, n: number) => n === 0 || !isUnit(name) || /^[A-Z]$/.test(name);
  if (start === 0 && names.every(isName)) return { separator: 'cell' };
  const prefix = start === 0 ? '' : cleanName(filled[0] ?? '');
  const places = names.flatMap((name, n) =>
    isName(name, n) ? [[`${prefix} ${cleanName(name)}`.trim(), start + 2 * n + 2] as const] : [],
  );
  return { cells: Object.fromEntries(places) };
}

const NUMBER = /^[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?$/;
const isLongName = (text: string): boolean => /^\p{L}[\p{L}\p{N} _.:/-]*$/u.test(text) && /\p{L}{3}/u.test(text);

/**
 * Name, number and unit, several times: `Height,69.3,in,176,cm,Weight,71,kg`. A second number of a name is the same in
 * another unit. Anything else in the line could belong to any of them, so there must be nothing else.
 */
function quantitiesBeside(cells: readonly string[]): FinderMapping | undefined {
  const [title = '', second = '', third = ''] = cells;
  const hasTitle = isLongName(title) && isLongName(second) && NUMBER.test(third);
  const places = new Map<string, number>();
  const names = new Set<string>();
  let name = '';
  let hadUnit = false;
  for (let at = Number(hasTitle); at < cells.length; ) {
    const cell = cells[at] ?? '';
    const isNamed = isLongName(cell) && !isUnit(cell);
    const value = at + Number(isNamed);
    const unit = bareUnit(cells[value + 1]) ?? '';
    // A number after the unit is the same value in another unit.
    const hasUnit = isUnit(unit) && (!NUMBER.test(cells[value + 2] ?? '') || isUnit(cells[value + 3] ?? ''));
    if (!NUMBER.test(cells[value] ?? '') || (!isNamed && !(hadUnit && hasUnit))) return undefined;
    if (isNamed && names.has(cell)) return undefined;
    if (isNamed) name = cleanName(cell);
    names.add(cell);
    hadUnit = hasUnit;
    const written = hasUnit ? `${name} [${unit}]` : name;
    if (places.has(written)) return undefined;
    places.set(written, value + 1);
    at = value + (hasUnit ? 2 : 1);
  }
  return places.size < 2 ? undefined : { cells: Object.fromEntries(places) };
}

/** A colon or `=` after a name. Within a time of day, a path or an address, a colon is none. */
const PAIR_SIGN = /\s*(?:=|:(?<!\d:(?=\d))(?![\\/]))\s*/;

/**
 * Several pairs with single blanks between them: `Lat: 35.04 Long: -106.57 Elev: 1630 m`. Where a value can end in two
 * places, it is left out, and so is the one after it.
 */
export function pairsInText({ text }: Line): FinderMapping | undefined {
  // Quotes show where each value ends: `Id: "A 4" Anode: "Cu"`.
  if (QUOTED_PAIRS.test(text.trim()))
    return { delimiter: `/^\\W+|(?<=")[\\s,;]+/`, in: 'cells', separator: /=\s*"/.test(text) ? '=' : ':' };
  const signs = new Set(text.match(/[:=]/g));
  const [first = '', ...parts] = text.trim().split(PAIR_SIGN);
  // All signs are written alike: `SN:21` after `Serial: ` is a value.
  const isAlike = ![/[:=]\s+\S/, /[:=](?![\\/\s]).*\S/].every((way) => way.test(text));
  // `Channel 1: Range: 5 V`: the first name is a title of the others.
  if (signs.size !== 1 || !isAlike || parts.length < 2 || !isShortName(first) || /^\S+$/.test(parts[0] ?? ''))
    return undefined;
  const names = [first];
  const except: string[] = [];
  let name: string | undefined = first;
  for (const part of parts.slice(0, -1)) {
    const areCapital = names.every((each) => /^\p{Lu}/u.test(each));
    const next: string | undefined = nameBehind(part, areCapital);
    if (next === undefined && name === undefined) return undefined;
    if (next === undefined && name !== undefined) except.push(name);
    if (next !== undefined) names.push(next);
    name = next;
  }
  const [sign = ':'] = signs;
  const [, ...others] = names;
  if (new Set(names).size < names.length || names.length < 2 + except.length) return undefined;
  const delimiter = `/\\s+(?=(?:${others.map(escapeRegex).join('|')})\\s*${sign})/`;
  return { delimiter, in: 'cells', separator: sign, ...(except.length > 0 && { except }) };
}

const QUOTED_PAIRS = /^\W?(?:\p{L}[^":=]*[:=]\s*"[^"]*"[\s,;]*){2,}$/u;

const isShortName = (name: string): boolean => /^\p{L}[\p{L}\p{N}_.()%-]*(?: [\p{L}\p{N}_.()%-]+){0,2}$/u.test(name);

/** The name after a value. A number ends with its unit; a word ends where the next one cannot be part of it. */
function nameBehind(part: string, areCapital: boolean): string | undefined {
  const [first = '', ...words] = part.split(' ');
  // No value: all of it is the next name.
  if (words.length === 0) return isShortName(first) ? first : undefined;
  if (!NUMBER.test(first)) {
    const [next = '', ...others] = words;
    const isValue = /[\d./_-]/.test(first) || (areCapital && /^\p{Ll}/u.test(first) && /^\p{Lu}/u.test(next));
    return others.length === 0 && isValue && isShortName(next) ? next : undefined;
  }
  const [unit = '', ...rest] = words;
  const hasUnit = rest.length > 0 && isUnit(unit.replace(/\.$/, ''));
  // `3 V range`: the letter can be part of the name.
  if (hasUnit && /^[A-Za-z]$/.test(unit) && !/^\p{Lu}/u.test(rest[0] ?? '')) return undefined;
  const name = (hasUnit ? rest : words).join(' ');
  return isShortName(name) ? name : undefined;
}

/** Which cell holds the value, if a type precedes it or a unit follows it. Cells are not joined unless they are text. */
function describePieces(lines: readonly Line[]): Pick<FinderMapping, 'name' | 'value' | 'unit'> {
  const filled = (line: Line) => line.cells.filter((cell) => cell !== '').length;
  const long = lines.filter((line) => filled(line) >= 3 && !isRunningText(line));
  if (long.length === 0) return {};
  const units = (at: number) => long.filter(({ cells }) => isUnit(bareUnit(cells[at]) ?? '')).length;
  const areUnits = long.every((line) => {
    const [name = '', , unit = ''] = line.cells;
    return filled(line) === 3 && isUnitLike(unit) && !isMark(unit, name);
  });
  if (areUnits && units(2) * 2 > long.length) return { value: 2, unit: 3 };
  const isBetween = ({ cells: [, unit = '', value = ''] }: Line) =>
    unit === '' || (isUnit(bareUnit(unit) ?? '') && NUMBER.test(value));
  if (long.length > 1 && units(1) > 0 && lines.every((line) => line.cells[2] !== '' && isBetween(line)))
    return { value: 3, unit: 2 };
  const type = [1, 2, 3].find((n) => long.every(({ cells }) => TYPE.test(cells[n] ?? '')));
  if (type !== undefined) return { ...(type > 1 && nameBehindGroup(long)), value: type + 2 };
  if (long.every(({ cells }) => cells[2] === '')) {
    // `Wavelength,600,,,nm`
    const measured = long.filter((line) => filled(line) === 3 && NUMBER.test(line.cells[1] ?? ''));
    const at = measured.map(({ cells }) => cells.findIndex((cell, n) => n > 1 && isUnitLike(cell)));
    const [unit = -1] = at;
    // Otherwise, a table stands beside the facts.
    return unit > 1 && at.every((each) => each === unit) ? { value: 2, unit: unit + 1 } : { value: 2 };
  }
  const types = long.map(({ cells }) => cells[1] ?? '');
  const areTypes = types.every((type) => /^[A-Z]\w*$/.test(type));
  const isMost = long.length > 1 && long.length * 3 >= lines.length;
  // Most types repeat.
  const isRepeated = types.filter((type) => types.filter((each) => each === type).length > 1).length * 2 > types.length;
  const isFew =
    new Set(types).size * 2 <= types.length || (isRepeated && types.every((type) => /^[A-Z]{3,}$/.test(type)));
  return areTypes && isMost && isFew ? { value: 3 } : { value: 'each' };
}

/** `key<tab>Dwell Time [ms]<tab><tab>int<tab>32`: a word that repeats stands before the names, which differ. */
function nameBehindGroup(lines: readonly Line[]): Pick<FinderMapping, 'name'> {
  const [groups, names] = [0, 1].map((n) => lines.map(({ cells }) => cells[n] ?? ''));
  const count = (texts: readonly string[] = []) => new Set(texts).size;
  const areNames = names?.every((name) => /\p{L}{2}/u.test(name)) && count(names) === lines.length;
  return areNames && count(groups) < lines.length ? { name: 2 } : {};
}

/** The type of a value, which stands before it. */
const TYPE = /^(?:u?int(?:eger)?\d*|double|float\d*|real|long|bool(?:ean)?|str(?:ing)?|text|datetime|date)$/i;

/** A text with commas: a blank follows each of them. */
export const isRunningText = ({ text, cells: [, ...values] }: Line): boolean => {
  const commas = text.split(',').length - 1;
  return commas > 1 && text.split(', ').length >= commas && values.some((value) => /\p{L}{2}/u.test(value));
};

/** A known unit, or a ratio of two symbols such as `µm/pt`. */
const isUnitLike = (text: string): boolean =>
  isUnit(bareUnit(text) ?? '') || (/^[^\s\d/]{1,6}\/[^\s\d/]{1,6}$/.test(text) && !/^n\/a$/i.test(text));

/** The ways in which pairs of name and value can be written. */

/** A way to read pairs, and the evidence that it needs. */
export interface Candidate {
  readonly finder: FinderMapping;
  /** In lines of one pair each: what separates name and value. */
  readonly signs: readonly string[];
  /** How many facts it must add to be worth it. */
  readonly cost: number;
  readonly minHits: number;
}

/** Name, type, value, unit, comment. */
export const MAX_PIECES = 5;

/** How each sign is written in a pattern. What is looked for comes first: looking back at each character takes long. */
const AS_PATTERN: Readonly<Record<string, string>> = {
  tab: '\\t',
  spaces: '(?<=\\S) {2,}(?![ :=])',
  dots: ' ?\\.{2,}[ :=]?',
  quote: '\\s(?=")',
  '|': '\\|',
  bracket: '(?<=[\\]>])\\s*[:=]?(?<=^\\s*(?:\\[[^\\]]*\\]|<[^<>]*>)\\s*[:=]?)',
  arrow: '\\s*[-=]>\\s*',
  // After `%` and `!`, words may be a remark.
  mark: '\\s+(?<=^(?:[$@]+[A-Za-z]|[%!]+[A-Z][A-Z\\d]*_)[\\w.]*\\s+)',
  hash: '# +(?<=^[^#:=|,;\\t]*[^#:=|,;\\s]# +)',
  dash: ' - (?<=^[^-:=#|,;\\t]+ - )(?!- )',
};

const MARKED = ['dots', 'quote', 'bracket', 'hash', 'arrow', 'mark', 'dash'];
/** Beside other signs, these are part of a value. */
const ALONE = ['dash', 'arrow', 'mark', '|'];

/** A colon that is not within a time of day, brackets, a path or an address. */
const SURE_COLON = ':(?<!\\d:(?=\\d)|\\([^)]{0,80})(?![\\\\/])';

/** The first colon of a line that is not within brackets, if nothing stands beside the value. */
const ONLY_PAIR = ':(?<=^[^:(]*(?:\\([^)]*\\)[^:(]*)?:)(?![\\\\/]|\\s*\\S.* {2}[A-Za-z]|.*[A-Za-z]: {2,}\\S)';

/** Two or more spaces after words that do not start with a digit: `14-Mar-2019   11:07` is not a name and a value. */
const AFTER_WORD = ' (?<=\\S )(?<!^ *\\d\\S* ) +(?![ :=])';

/** One pair per line, split at the first of one to three signs. */
export function pairsPerLine(lines: readonly Line[], delimiter: string | undefined): Candidate[] {
  const own = delimiter === undefined || delimiter === 'whitespace' ? [] : [delimiter];
  const signs = [...new Set([...own, ':', '=', 'tab', 'spaces', '|', ...MARKED])].filter((sign) => {
    const pattern = new RegExp(AS_PATTERN[sign] ?? sign);
    return lines.some(({ text }) => pattern.test(text));
  });
  const isAlone = (set: readonly string[]) => set.length === 1 || !set.some((sign) => ALONE.includes(sign));
  const sets = signs.flatMap((one, n) => [
    [one],
    ...signs
      .slice(n + 1)
      .flatMap((two, m) => [[one, two], ...signs.slice(n + m + 2).map((three) => [one, two, three])]),
  ]);
  return sets.filter(isAlone).flatMap((set) =>
    separatorsOf(set, lines, delimiter).map((finder, n) => ({
      finder,
      signs: set,
      cost: 0.1 * n + set.slice(1).reduce((sum, sign) => sum + (/^[:=]$/.test(sign) ? 0.6 : 1.5), 0),
      // Spaces and dashes separate words too, so they need more evidence.
      minHits: set.every((sign) => sign === 'spaces' || sign === 'dash') ? 4 : set.length === 1 ? 1 : 2,
    })),
  );
}

/** The ways to write a set of signs, simplest first. The last one leaves out rows: `B1=1,326,0,730,1570,687`. */
function separatorsOf(
  signs: readonly string[],
  lines: readonly Line[],
  delimiter: string | undefined,
): FinderMapping[] {
  const [first = ':', ...others] = signs;
  const isWord = first in AS_PATTERN && !['tab', 'spaces', '|'].includes(first);
  const plain =
    others.length > 0 || isWord ? [] : [{ separator: first, ...(first === delimiter && describePieces(lines)) }];
  // Delimiters directly after the sign only move the value to the right.
  const sign = delimiter === undefined ? undefined : compileSplit(delimiter).text;
  // `Sample:, Ni` above rows that are split at blanks.
  const other = sign ?? [',', ';'].find((each) => lines.some(({ text }) => text.includes(`:${each} `)));
  const padding = other === undefined || other === '\t' ? '[\\s]*' : `[\\s${other}]*`;
  const write = (colon: string) => {
    const patterns = signs.map((each) => (each === ':' ? colon : (AS_PATTERN[each] ?? each)));
    return {
      separator: patterns.length === 1 ? `/${patterns[0]}${padding}/` : `/(?:${patterns.join('|')})${padding}/`,
    };
  };
  const isPadded = first !== delimiter || others.length > 0;
  return [
    ...plain,
    ...(isPadded ? [write(':')] : []),
    ...(signs.includes(':') ? [write(SURE_COLON)] : []),
    ...(first === ':' && others.length === 0 ? [{ separator: `/${ONLY_PAIR}${padding}/` }] : []),
    ...(first === 'spaces' && others.length === 0 ? [{ separator: `/${AFTER_WORD}/` }] : []),
    ...(first === '=' && others.length === 0 && (sign === ',' || sign === ';')
      ? [{ separator: `/=(?!(?:[^${sign}]*${sign}){${MAX_PIECES}})\\s*/` }]
      : []),
  ];
}

/**
 * Two or more spaces, but not those that align the separators (`Method   :  A     Vial : 1`), and not those before a time
 * or a unit (`Acquired: 06 Jun 2024  16:21`, `Amount: 100.0  [ng/ul]`).
 */
const GAPS = '/(?<![ :=]) {2,}(?![ :=[]|\\d{1,2}:\\d\\d)/';

/** `VC:2f31 SV:2.1  SN:12-0117` */
const BEFORE_SHORT_NAME = '/\\s+(?=[A-Z]{2,4}:\\S)/';

/** The cells between empty ones: `Product` `Metformin`, then `Batch` `MF-22`. */
function groupsIn({ cells }: Line): string[][] {
  const groups: string[][] = [];
  for (const [n, cell] of cells.entries())
    if (cell !== '')
      (cells[n - 1] === '' || n === 0 ? (groups[groups.push([]) - 1] ?? []) : (groups.at(-1) ?? [])).push(cell);
  return groups;
}

/** Pairs, each perhaps with a unit, in several groups: their names are words, and differ. */
function arePairsApart(lines: readonly Line[]): boolean {
  const apart = lines.map(groupsIn).filter((groups) => groups.length > 1);
  const names = apart.map(([, second]) => second?.[0]);
  const isPair = (group: readonly string[]) => group.length <= 3 && /^\D*\p{L}{2}\D*$/u.test(group[0] ?? '');
  // `int<tab>32`
  if (names.every((name) => TYPE.test(name ?? ''))) return false;
  return apart.length > 1 && apart.flat().every(isPair) && new Set(names).size === names.length;
}

/** Several pairs per line, each in one cell (`User: A, Test: 3`) or in two (`User:` `A` `Test:` `3`). */
export function pairsInCells(lines: readonly Line[], delimiter: string | undefined): Candidate[] {
  const delimiters = new Set([
    ...(delimiter === undefined || delimiter === 'whitespace' ? [] : [delimiter]),
    ',',
    ';',
    'spaces',
    'tab',
    GAPS,
    BEFORE_SHORT_NAME,
  ]);
  const signs = [':', `/${SURE_COLON}\\s*/`, '='];
  const beforeName = [',', ';', '/', '|'].flatMap((sign) =>
    [':', '='].map((mark) => ({
      // `mV/div` is a unit.
      delimiter: `/${AS_PATTERN[sign] ?? (sign === '/' ? '(?:\\s\\/|\\/\\s)' : sign)}\\s*(?=${LETTER}[^${sign === '/' ? '\\/' : sign}${mark}]+${mark})/`,
      separator: mark === ':' ? `/${SURE_COLON}\\s*/` : mark,
    })),
  );
  const finders: FinderMapping[] = [
    ...[...delimiters].flatMap((each) => signs.map((separator) => ({ delimiter: each, separator }))),
    ...beforeName,
  ].map((each) => ({
    ...(each.delimiter !== delimiter && { delimiter: each.delimiter }),
    in: 'cells',
    separator: each.separator,
  }));
  // `Product,Metformin,,Batch,MF-22`: empty cells between pairs.
  const sign = delimiter === undefined ? undefined : compileSplit(delimiter).text;
  if (sign !== undefined && delimiter !== undefined && arePairsApart(lines))
    finders.push({
      ...{ delimiter: `/${AS_PATTERN[delimiter] ?? sign}{2,}/`, in: 'cells' },
      ...{ separator: delimiter, value: 'each' },
    });
  const alternating: FinderMapping[] = [...delimiters].map((each) => ({
    ...(each !== delimiter && { delimiter: each }),
    separator: 'cell',
  }));
  return [...finders, ...alternating].map((finder) => ({
    finder,
    signs: [],
    cost: finder.delimiter === undefined ? 0.2 : 0.6,
    minHits: finder.delimiter === undefined ? 2 : 3,
  }));
}
