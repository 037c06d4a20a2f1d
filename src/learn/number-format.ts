import type { ParseMapping } from '../config/vocabulary.js';
import type { FileError } from '../errors.js';
import type { Line, Refuse } from '../parse/lines.js';
import { isUnit } from '../parse/values/unit.js';
import { ambiguousNumber, createNumberReader, type NumberMarks } from '../parse/values/value.js';
import { type Body, type CellKind, kindsOf, type Range } from './kinds.js';
import type { FoundTable } from './layout.js';

/** How the numbers of the tables are written: their decimal mark, and what separates thousands. */

/** More rows would add nothing. If one does not fit, reading the file reports it. */
const MAX_ROWS = 2000;

/** `1.234` has one meaning everywhere, so plain numbers need no evidence. */
const PLAIN = createNumberReader({ decimal: undefined, thousands: undefined });
const NUMBER_FORMATS: readonly NumberMarks[] = [
  { decimal: ',', thousands: undefined },
  { decimal: undefined, thousands: ',' },
  { decimal: ',', thousands: '.' },
  { decimal: undefined, thousands: ' ' },
  { decimal: ',', thousands: ' ' },
  { decimal: undefined, thousands: "'" },
];

export type MarksMapping = Pick<ParseMapping, 'decimal' | 'thousands'>;

interface NumberCell {
  readonly line: Line;
  readonly cell: number;
  readonly text: string;
  readonly isPlain: boolean;
}

/** An ambiguous number, and the marks for each way to read it, most likely first. */
interface AmbiguousNumber extends NumberCell {
  readonly choices: readonly MarksMapping[];
}

/** Called for each number, in one pass: there can be thousands. */
type IsWanted = (isPlain: boolean, text: string) => boolean;

/** The marks with which all numbers of the tables can be read. */
export function findNumberFormat(
  lines: readonly Line[],
  found: readonly FoundTable[],
): { readonly sure: MarksMapping; readonly likely: MarksMapping; readonly ambiguous?: AmbiguousNumber } {
  const cellsOf = (isWanted: IsWanted) =>
    found.flatMap((table) => numberCells(lines, table.kind === 'rows' ? table.body : table, isWanted));
  let hasPoints = false;
  const isOther = (isPlain: boolean, text: string) => {
    hasPoints ||= text.includes('.');
    return !isPlain;
  };
  // In most files all numbers are plain.
  if (cellsOf(isOther).length === 0) {
    const marks: MarksMapping = !hasPoints && decimalIn(lines) === ',' ? { decimal: ',' } : {};
    return { sure: marks, likely: marks };
  }
  const cells = cellsOf(() => true);
  const fitting = NUMBER_FORMATS.map((marks) => ({ marks, read: createNumberReader(marks).read })).filter(({ read }) =>
    cells.every(({ text }) => read(text) !== undefined),
  );
  const [first, ...others] = fitting;
  // Dots in an integer may be left by a spreadsheet that damaged a fraction: 50.026.184.
  const isDamaged = first?.marks.thousands === '.' && cells.every(({ text }) => !text.includes(','));
  const ambiguous = cells.find(({ text, isPlain }) =>
    isDamaged ? !isPlain : first ? others.some(({ read }) => read(text) !== first.read(text)) : !isPlain,
  );
  const likely = first && !isDamaged ? toMapping(first.marks) : {};
  if (!ambiguous) return { sure: likely, likely };
  const shown = fitting.find(({ marks }) => marks.decimal === decimalIn(lines));
  if (shown && !isDamaged) return { sure: toMapping(shown.marks), likely: toMapping(shown.marks) };
  const values = fitting.map(({ read }) => read(ambiguous.text));
  const choices = fitting.filter((_, n) => values.indexOf(values[n]) === n).map(({ marks }) => toMapping(marks));
  return { sure: {}, likely, ambiguous: { ...ambiguous, choices } };
}

/** More lines above the tables would not show more. */
const MAX_SHOWN = 400;

/** A comma in the quantities among the facts, which no point contradicts: `Flow: 1,3 mL/min`. */
function decimalIn(lines: readonly Line[]): ',' | 'unknown' {
  const marks = lines.slice(0, MAX_SHOWN).flatMap(({ text }) => {
    const [, before, mark, behind] = (text.length < MAX_SHOWN && FRACTION.exec(text)) || [];
    return mark !== undefined && isUnit(behind ?? before ?? '') ? [mark] : [];
  });
  return marks.length > 0 && marks.every((mark) => mark === ',') ? ',' : 'unknown';
}

/** With a unit behind it, or in brackets before it. */
const FRACTION =
  /(?:[([]([^\s()[\]]+)[)\]]["\s:=;,]*)?(?<![\d.,])\d+([.,])(?:\d{1,2}|\d{4,})(?: ?([^\s\d,;|)\]"]+))?["\s,;|)]*$/;

const toMapping = ({ decimal, thousands }: NumberMarks): MarksMapping => ({
  ...(decimal && { decimal }),
  ...(thousands && { thousands }),
});

/** Without kinds, all cells that look like numbers: those of a plate. */
function numberCells(
  lines: readonly Line[],
  { from, to, kinds }: Range & Partial<Body>,
  isWanted: IsWanted,
): NumberCell[] {
  const found: NumberCell[] = [];
  const rows = lines.slice(from, Math.min(to, from + MAX_ROWS));
  const isNumeric = kinds?.map((kind, cell) => kind === 'number' || (kind === 'text' && isMostlyNumbers(rows, cell)));
  for (const line of rows) {
    line.cells.forEach((written, cell) => {
      if (isNumeric && !isNumeric[cell]) return;
      // `0,91 %` shows the decimal mark too.
      const [, number = written, unit = ''] = QUANTITY.exec(written) ?? [];
      const text = isUnit(unit) ? number : written;
      const isPlain = PLAIN.read(text) !== undefined;
      if (isWanted(isPlain, text) && (isPlain || PLAIN.isAmbiguous(text))) found.push({ line, cell, text, isPlain });
    });
  }
  return found;
}

const QUANTITY = /^([-+]?\d[\d.,]*) ?([^\d\s.,].*)$/;

/** As when the file is read: words among the numbers, such as `n.b.`, do not make a column one of words. */
function isMostlyNumbers(rows: readonly Line[], cell: number): boolean {
  const count = (isOf: (kind: CellKind) => boolean) => rows.filter((row) => isOf(kindsOf(row)[cell] ?? 'any')).length;
  return (
    count((kind) => kind === 'number') >=
    Math.max(
      1,
      count((kind) => kind === 'text' || kind === 'date'),
    )
  );
}

export function numberDoubts({ text, choices: [assumed, ...others] }: AmbiguousNumber): string[] {
  if (!assumed || others.length === 0) return [];
  const show = (marks: MarksMapping) =>
    Object.entries(marks)
      .map(([key, mark]) => `${key}: ${JSON.stringify(mark)}`)
      .join(' and ');
  const instead = others.map(show).join(', or ');
  return [`${text} is ambiguous. This mapping has ${show(assumed)}; if that is wrong, write ${instead}`];
}

/** `asLine`: how a mapping is written on one line. */
export function numberError(
  { line, cell, text, choices }: AmbiguousNumber,
  asLine: (marks: MarksMapping) => string,
  refuse: Refuse,
): FileError {
  const { problem, hint } = ambiguousNumber(text);
  const lines = choices.map((marks) => `\`${asLine(marks)}\``);
  return refuse(problem, { line, cell, hint: lines.length > 0 ? `write ${lines.join(' or ')}` : hint });
}
