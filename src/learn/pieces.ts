import type { ParseMapping } from '../config/vocabulary.js';
import { cleanName } from '../parse/extract/columns.js';
import type { Line } from '../parse/lines.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';

/** Facts in the cells of a line: which cells are names, values and units. */

export type FinderMapping = Exclude<NonNullable<ParseMapping['meta']>, readonly unknown[]>;

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
  // A unit belongs to the value before it, so it is no name. A capital letter can be an element.
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
  for (let at = Number(hasTitle); at < cells.length; ) {
    const cell = cells[at] ?? '';
    const isNamed = isLongName(cell) && !isUnit(cell);
    const value = at + Number(isNamed);
    const unit = bareUnit(cells[value + 1]) ?? '';
    // A number after the unit is the same value in another unit.
    const hasUnit = isUnit(unit) && (!NUMBER.test(cells[value + 2] ?? '') || isUnit(cells[value + 3] ?? ''));
    if (!NUMBER.test(cells[value] ?? '') || (!isNamed && (name === '' || !hasUnit))) return undefined;
    if (isNamed && names.has(cell)) return undefined;
    if (isNamed) name = cleanName(cell);
    names.add(cell);
    const written = hasUnit ? `${name} [${unit}]` : name;
    if (places.has(written)) return undefined;
    places.set(written, value + 1);
    at = value + (hasUnit ? 2 : 1);
  }
  return places.size < 2 ? undefined : { cells: Object.fromEntries(places) };
}

/** Which cell holds the value, if a type precedes it or a unit follows it. Cells are not joined unless they are text. */
export function describePieces(lines: readonly Line[]): Pick<FinderMapping, 'value' | 'unit'> {
  const filled = (line: Line) => line.cells.filter((cell) => cell !== '').length;
  const long = lines.filter((line) => filled(line) >= 3 && !isRunningText(line));
  if (long.length === 0) return {};
  const units = long.filter(({ cells }) => isUnit(bareUnit(cells[2]) ?? '')).length;
  const areUnits = long.every((line) => filled(line) === 3 && isUnitLike(line.cells[2] ?? ''));
  if (areUnits && units * 2 > long.length) return { value: 2, unit: 3 };
  const isBetween = ({ cells: [, unit, value = ''] }: Line) => isUnit(bareUnit(unit) ?? '') && NUMBER.test(value);
  if (long.length > 1 && long.every((line) => filled(line) === 3 && isBetween(line))) return { value: 3, unit: 2 };
  const type = [1, 2, 3].find((n) => long.every(({ cells }) => TYPE.test(cells[n] ?? '')));
  if (type !== undefined) return { value: type + 2 };
  // A table stands beside the facts.
  if (long.every(({ cells }) => cells[2] === '')) return { value: 2 };
  const types = new Set(long.map(({ cells }) => cells[1]));
  const areTypes = [...types].every((type) => /^[A-Z]\w*$/.test(type ?? ''));
  const isMost = long.length > 1 && long.length * 3 >= lines.length;
  return areTypes && isMost && types.size * 2 <= long.length ? { value: 3 } : { value: 'each' };
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
