import { isBlank, type Line } from '../parse/lines.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';
import { isMeasure, isQuantity, isSubject, isWord, kindOf } from './kinds.js';

/** Lines of a head with one value for each channel: `HOffset,0.0,0.0`, `Coupling,DC,DC`, `VUnit,V,V`. */

/** `VUnit`, `Vertical units`. A row of units below names starts with the word alone. */
const UNITS = /[\p{L}\p{N}][ _.-]?(?:units?|einheit(?:en)?)\s*:?$/iu;
/** What is set for a channel and not measured. */
const SET =
  /(?:^|[\p{L}\p{N}][ _.-]?)(?:coupling|offset|scale|scaling|probe|gain|attenuation|impedance|termination|bandwidth|invert(?:ed)?|filter)\s*:?$/iu;

/** Whether the nearest line above the rows is such a line, so that its cells are no names of columns. */
export function isBelowSettings(lines: readonly Line[], rows: number, top: number): boolean {
  const [nearest, above] = lines
    .slice(top, rows)
    .filter((line) => !isBlank(line))
    .slice(-2)
    .reverse()
    .map(settingIn);
  if (!nearest) return false;
  const { label, values } = nearest;
  if (UNITS.test(label) && values.every((value) => isUnit(bareUnit(value) ?? ''))) return true;
  if (values.length < 2 || above?.values.length !== values.length) return false;
  if (!hasRepeated(above.values) && !above.values.every((value) => isMeasure(kindOf(value)))) return false;
  if (SET.test(label)) return true;
  const isName = isQuantity(label) || isSubject(label) || isUnit(bareUnit(label) ?? '');
  // Names repeat too, below those of their groups.
  const both = values.map((value, n) => `${value}\t${above.values[n]}`);
  return !isName && (new Set(values).size === 1 || hasRepeated(both));
}

/** `Inverted =,NO,NO`: what is the same for all columns names none of them. */
export const isAlike = ({ cells: [label = '', first, ...others] }: Line): boolean =>
  /[:=]\s*$/.test(label) && first !== '' && others.length > 0 && others.every((cell) => cell === first);

function settingIn({ cells }: Line) {
  const [label = '', ...values] = cells.slice(0, cells.findLastIndex((cell) => cell !== '') + 1);
  const isSetting = values.length > 0 && !values.includes('') && label !== '' && isWord(label);
  return isSetting ? { label, values } : undefined;
}

const hasRepeated = (values: readonly string[]): boolean => new Set(values).size < values.length;
