import { createInterface } from 'node:readline';
import { UsageError } from '../errors.js';
import { terminalLine } from '../text.js';

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
    ...rows.map((row) => columns.map((column) => terminalLine(column.text(row)))),
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

function cut(text: string, width: number): string {
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

/** All of standard input. On a terminal it is said what is expected, and how it ends. */
export async function readInput(what: string): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(`${what}; a line with Ctrl-D ends it:\n`);
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

/** What cannot be taken back is asked for on a terminal; where nobody can answer, it must have been said before. */
export async function confirm(question: string, yes: boolean | undefined): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError('nobody can be asked here, and this cannot be taken back', {
      hint: 'add --yes to do it without being asked',
    });
  }
  process.stderr.write(`${question} [y/N] `);
  for await (const line of createInterface({ input: process.stdin })) return /^\s*y(es)?\s*$/i.test(line);
  return false;
}

const ENTER = new Set(['\r', '\n', '\x04']);

/** A secret: of a terminal one line that is not shown, else all of standard input. */
export async function readSecret(what: string): Promise<string> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY) return (await readInput(what)).trim();
  stderr.write(`${what} (it is not shown): `);
  stdin.setRawMode(true);
  let text = '';
  try {
    for await (const piece of stdin) {
      for (const character of String(piece)) {
        if (ENTER.has(character)) return text.trim();
        if (character === '\x03') throw new UsageError('nothing was entered');
        text = character === '\x7f' || character === '\b' ? text.slice(0, -1) : text + character;
      }
    }
    return text.trim();
  } finally {
    stdin.setRawMode(false);
    stderr.write('\n');
  }
}
