import type { FileRecord } from '../model.js';
import type { Line } from '../parse/lines.js';
import { isNoValue, kindsOf } from './kinds.js';
import type { FoundTable } from './layout.js';

/** What stands for no value in columns of numbers: words, and numbers such as -9999. */

/** `doubts`: numbers that may mean that there is no value, for people. They are read as numbers. */
export function findNoValues(
  lines: readonly Line[],
  found: readonly FoundTable[],
  meta: FileRecord['meta'],
): { readonly missing: string[]; readonly doubts: readonly string[] } {
  const words = found.flatMap((table) => {
    const rows = lines.slice(table.kind === 'rows' ? table.body.from : table.from + 1, table.to);
    const isNumeric = (n: number) => table.kind === 'plate' || table.body.kinds[n] === 'number';
    return rows
      .filter((line) => kindsOf(line).includes('any'))
      .flatMap(({ cells }) => cells.filter((cell, n) => isNumeric(n) && isNoValue(cell)));
  });
  const declared = declaredIn(meta);
  const judged = found.flatMap((table) => (table.kind === 'rows' ? judgeTable(table, lines, declared) : []));
  // A text stands for no value in all columns or in none.
  const kept = new Set(judged.flatMap(({ text, is }) => (is === 'fill' ? [] : [text])));
  const fills = judged.filter(({ text, is }) => is === 'fill' && !kept.has(text)).map(({ text }) => text);
  const unclear = judged.filter(({ text, is }) => is === 'unclear' || (is === 'fill' && kept.has(text)));
  return {
    missing: [...new Set([...words, ...fills])],
    doubts: [...new Set(unclear.map(({ text, column }) => `${text} in ${column} may mean that there is no value`))],
  };
}

const SAYS_FILL = /missing|fill[ _]?value|no[ _]?data|null[ _]?value/i;

/** `missing value: -9999`, `NODATA_value -9999`. */
const declaredIn = (meta: FileRecord['meta']): ReadonlySet<number> =>
  new Set([...meta].flatMap(([name, { text }]) => (SAYS_FILL.test(name) ? text.split(/[\s,;]+/).map(toNumber) : [])));

interface Judged {
  readonly text: string;
  readonly column: string;
  readonly is: 'fill' | 'unclear' | 'reading';
}

/** Only nines, or a number near the largest that a computer can write. */
const FILL = /^[-+]?(?:9{2,}(?:[.,](?:9+|0+))?|\d(?:[.,]\d+)?[eE]\+?3\d)$/;

function judgeTable(
  { body, header }: Extract<FoundTable, { kind: 'rows' }>,
  lines: readonly Line[],
  declared: ReadonlySet<number>,
): Judged[] {
  const rows = lines.slice(body.from, body.to);
  const isFill = (cell: string) => FILL.test(cell) || (declared.size > 0 && declared.has(toNumber(cell)));
  return [...body.kinds.keys()].flatMap((n): Judged[] => {
    const cells = rows.map((row) => row.cells[n] ?? '');
    const fills = cells.filter(isFill);
    if (fills.length === 0) return [];
    const others = cells.filter((cell) => /\d/.test(cell) && !fills.includes(cell)).map(toNumber);
    const name = header.names.at(-1)?.cells[n] ?? '';
    const column = name === '' ? `column ${n + 1}` : `the column ${JSON.stringify(name)}`;
    return [...new Set(fills)].map((text) => {
      const count = fills.filter((each) => each === text).length;
      const isAxis = n === 0 || RATIO.test(name);
      return { text, column, is: judge(text, others, { count, isAxis, isDeclared: declared.has(toNumber(text)) }) };
    });
  });
}

/** Values of these can be 99.99. */
const RATIO = /%|purity|recovery|yield|confidence|match|similarity|saturation|score/i;
/** Larger numbers are not measured. */
const HUGE = 1e30;

interface Occurrence {
  readonly count: number;
  /** Its greatest values can be nines. */
  readonly isAxis: boolean;
  readonly isDeclared: boolean;
}

/** `others`: the other numbers of the column. */
function judge(text: string, others: readonly number[], { count, isAxis, isDeclared }: Occurrence): Judged['is'] {
  const value = toNumber(text);
  const [least, most] = others.reduce(
    ([low, high], each) => [Math.min(low, each), Math.max(high, each)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  if (/^-9{3,}(?:\D|$)/.test(text)) return least > value / 10 ? 'fill' : 'reading';
  if (others.length === 0) return 'reading';
  const distance = value > most ? value - most : least - value;
  const isFar = distance > most - least && Math.abs(value) > 2 * Math.max(Math.abs(least), Math.abs(most));
  if (!isFar) return 'reading';
  if (isDeclared) return 'fill';
  if (Math.abs(value) >= HUGE) return count > 1 ? 'fill' : 'unclear';
  // 999 can be a count, and 99.9 a percentage.
  const nines = text.replace(/[^9]/g, '').length;
  if (nines < 4 || isAxis) return 'reading';
  return count > 1 && (Math.abs(value) > 100 || others.length >= 2 * count) ? 'fill' : 'unclear';
}

const toNumber = (text: string): number => (text === '' ? Number.NaN : Number(text.replace(',', '.')));
