import { isBlank, type Line } from '../lines.js';
import { dateForms } from '../values/date-forms.js';
import type { FinderMapping } from './pairs.js';

const MOST_LINES = 12;
const MOST_CELLS = 20;

/**
 * Lines near the top that say something without naming it: a title, an instrument, a date.
 * They become facts under the names that spreadsheets give to cells, A1, B1, for a person to rename.
 */
export function findLoose(
  lines: readonly Line[],
  isFree: (line: Line) => boolean,
  delimiter: string | undefined,
): FinderMapping[] {
  return lines
    .filter((line) => isFree(line) && !isBlank(line) && isTelling(line))
    .slice(0, MOST_LINES)
    .map((line) => describe(line, delimiter));
}

/** Not a rule, not the name of a section, not a page of prose. */
const isTelling = ({ text }: Line): boolean =>
  text.length <= 300 &&
  /[\p{L}\p{N}]{2}/u.test(text) &&
  !/^\W*\[[^\]]*\]\W*$/.test(text) &&
  !/^[~>]/.test(text.trim());

function describe(line: Line, delimiter: string | undefined): FinderMapping {
  const whole: FinderMapping = { line: line.number, match: `/(?<A${line.number}>\\S.*\\S)/` };
  // A date can have commas in it.
  if (dateForms(line.text).length > 0) return whole;
  // Quotes around all that a line says are not part of it.
  if (line.text.trim().startsWith('"') && line.cells.filter((cell) => cell !== '').length === 1) {
    const place = line.cells.findIndex((cell) => cell !== '') + 1;
    return { line: line.number, cells: { [`${letter(place)}${line.number}`]: place } };
  }
  const signs = [delimiter ?? ',', ',', ';', 'tab', '|'].filter((sign) => !/^[sw]/.test(sign));
  for (const sign of new Set(signs)) {
    const cells = line.text.split(sign === 'tab' ? '\t' : sign).map((cell) => cell.trim());
    const filled = cells.map((cell, n) => [cell, n + 1] as const).filter(([cell]) => cell !== '');
    // Words with a comma between them are one sentence.
    if (filled.length < (sign === delimiter ? 2 : 3) || filled.length > MOST_CELLS) continue;
    const named = filled.map(([, place]) => [`${letter(place)}${line.number}`, place]);
    return {
      line: line.number,
      ...(sign !== delimiter && { delimiter: sign }),
      cells: Object.fromEntries(named),
    };
  }
  return whole;
}

const letter = (place: number): string =>
  place > 26
    ? letter(Math.floor((place - 1) / 26)) + letter(((place - 1) % 26) + 1)
    : String.fromCharCode(64 + place);
