import type { ParseMapping } from '../config/vocabulary.js';
import type { FinderMapping } from './pieces.js';

/**
 * Logs of boreholes (Log ASCII Standard): `BS .MM  200.0 : BIT SIZE` is a name, a unit, a value and a description. The
 * sections start with `~`: V(ersion), W(ell), C(urves), P(arameters), O(ther), A (the rows).
 */

/** The first dot ends the name, the first blank after it the unit. Only in lines with a colon. */
const NAME_AND_UNIT = String.raw`\s*\.(?<=^[^.:]*\.)(?=[^\s:]*\s.*:)|(?<=^[^.:]*\.[^\s:]*)\s+(?=.*:)`;
/** The first colon after a blank ends the value, or else the last one: a value can be a time. */
const COLON = String.raw`\s*:(?<=\s:)(?<!\s:.*\s:)\s*|:\s*(?=[^:]*$)(?<!\s:.*)(?<=^[^.:]*\.[^\s:]*\s.*)`;
const FIRST_COLON = String.raw`\s*:\s*(?<=^[^.:]*\.[^\s:]*\s[^:]*:\s*)`;

const FACT: FinderMapping = { separator: `/${NAME_AND_UNIT}|${COLON}/`, value: 3, unit: 2 };
/** Version 1.2 writes the description of the well before the colon, apart from these. */
const WELL_1_2: FinderMapping = {
  after: '/^~[Ww]/',
  until: '/^~[CPOAcpoa]/',
  separator: `/${NAME_AND_UNIT}|${FIRST_COLON}/`,
  value: 4,
  except: ['STRT', 'STOP', 'STEP', 'NULL'],
};

/** Undefined if the file is no such log. */
export function describeLas(texts: readonly string[]): { mapping: ParseMapping; doubts: string[] } | undefined {
  const filled = texts.filter((text) => text.trim() !== '' && !text.trimStart().startsWith('#'));
  const version = writtenFor('VERS', filled);
  if (!/^~V/i.test(filled[0] ?? '') || version === undefined) return undefined;
  const start = (section: RegExp) => filled.findIndex((text) => section.test(text));
  const [curves, parameters, rows] = [start(/^~C/i), start(/^~P/i), start(/^~A/i)];
  const next = filled.findIndex((text, n) => n > curves && text.startsWith('~'));
  const names = curves < 0 ? [] : filled.slice(curves + 1, next).map((text) => text.split('.')[0]?.trim() ?? '');
  const cells = rows < 0 ? [] : filled.slice(rows + 1).map((text) => text.trim().split(/\s+/));
  const isTable = cells.length > 0 && cells.every(({ length }) => length === names.length);
  const empty = Number(writtenFor('NULL', filled) ?? Number.NaN);
  const missing = [...new Set(cells.flat().filter((cell) => Number(cell) === empty))];
  const mapping: ParseMapping = {
    delimiter: 'whitespace',
    comment: '#',
    meta: [
      ...(Number(version) < 2 ? [WELL_1_2] : []),
      { until: '/^~[COAcoa]/', ...FACT },
      ...(parameters > curves && curves >= 0 ? [{ after: '/^~[Pp]/', until: '/^~[COAcoa]/', ...FACT }] : []),
    ],
    ...(missing.length > 0 && { missing }),
    ...(isTable && { table: { after: '/^~[Aa]/', header: 'none' } }),
  };
  const doubt = isTable
    ? `the names of the columns are in the section ~C. If all files have the same ones, add to the table: columns: [${names.join(', ')}]`
    : 'the rows below ~A do not have one cell for each name in the section ~C, so they are not in this mapping';
  return { mapping, doubts: rows < 0 ? [] : [doubt] };
}

const writtenFor = (name: string, texts: readonly string[]): string | undefined =>
  texts.map((text) => new RegExp(`^\\s*${name}\\s*\\.\\S*\\s+(\\S+)\\s*:`, 'i').exec(text)?.[1]).find(Boolean);
