import { printableLine } from '../text.js';

export interface Column<Row> {
  readonly title: string;
  text(row: Row): string;
  readonly align?: 'right';
  /** Gives way where the terminal is too narrow; the other columns do not. */
  readonly flexible?: boolean;
}

const GAP = '  ';
const LEAST = 8;

/** How wide what is printed may be; without a terminal, or on one that does not know its width, as wide as it is. */
export function outputWidth(
  env: NodeJS.ProcessEnv = process.env,
  columns: number | undefined = process.stdout.columns,
): number {
  const wanted = Number(env['COLUMNS']);
  if (Number.isInteger(wanted) && wanted > 0) return wanted;
  return columns || Number.POSITIVE_INFINITY;
}

/** Rows below their titles, in columns that fit the width together. */
export function asTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number): string {
  const cells = [
    columns.map(({ title }) => title.toUpperCase()),
    ...rows.map((row) => columns.map((column) => printableLine(column.text(row)))),
  ];
  const natural = columns.map((_, index) => Math.max(...cells.map((line) => widthOf(line[index] ?? ''))));
  const widths = shrink(natural, columns, width - GAP.length * (columns.length - 1));
  const lines = cells.map((line) =>
    columns
      .map(({ align }, index) => pad(cut(line[index] ?? '', widths[index] ?? 0), widths[index] ?? 0, align))
      .join(GAP)
      .trimEnd(),
  );
  return lines.map((line) => cut(line, width)).join('\n');
}

/** Takes from the widest of those that give way, until all fit or none can give more. */
function shrink<Row>(natural: readonly number[], columns: readonly Column<Row>[], room: number): number[] {
  const widths = [...natural];
  let over = widths.reduce((sum, one) => sum + one, 0) - room;
  while (over > 0) {
    const giving = columns.map(({ flexible }, index) => (flexible ? (widths[index] ?? 0) : 0));
    const widest = giving.indexOf(Math.max(...giving));
    if ((giving[widest] ?? 0) <= LEAST) break;
    widths[widest] = (giving[widest] ?? 0) - 1;
    over -= 1;
  }
  return widths;
}

const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\uff01-\uff60\p{Emoji_Presentation}]/u;

/** How many cells of a terminal a character takes. */
const cellsOf = (character: string): number => (/\p{M}/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1);

const PLAIN = /^[\x20-\x7e]*$/;

function widthOf(text: string): number {
  return PLAIN.test(text) ? text.length : [...text].reduce((sum, one) => sum + cellsOf(one), 0);
}

export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 1;
  for (const character of text) {
    used += cellsOf(character);
    if (used > width) break;
    kept += character;
  }
  return `${kept}…`;
}

function pad(text: string, width: number, align: 'right' | undefined): string {
  const blanks = ' '.repeat(Math.max(0, width - widthOf(text)));
  return align === 'right' ? blanks + text : text + blanks;
}
