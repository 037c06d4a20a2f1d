import { createInterface } from 'node:readline';
import { systemClock } from '../clock.js';
import { UsageError } from '../errors.js';
import { decodeEntities, describeImages, escapeControls, terminalLine } from '../text.js';

export interface Column<Row> {
  readonly title: string;
  text(row: Row): string;
  readonly align?: 'right';
  /** Shrinks if the terminal is too narrow; the other columns do not. */
  readonly flexible?: boolean;
}

const GAP = '  ';
const MIN_WIDTH = 8;

/** The width of the terminal; infinite if there is none or it does not report its width. */
export function terminalWidth(
  env: NodeJS.ProcessEnv = process.env,
  columns: number | undefined = process.stdout.columns,
): number {
  const wanted = Number(env['COLUMNS']);
  if (Number.isInteger(wanted) && wanted > 0) return wanted;
  return columns || Number.POSITIVE_INFINITY;
}

/** A table with a heading, as wide as the terminal allows. */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number): string {
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

/** Shrinks the widest flexible column until the table fits or no column can shrink further. */
function shrink<Row>(natural: readonly number[], columns: readonly Column<Row>[], available: number): number[] {
  const widths = [...natural];
  let over = widths.reduce((sum, one) => sum + one, 0) - available;
  while (over > 0) {
    const flexible = columns.map((column, index) => (column.flexible ? (widths[index] ?? 0) : 0));
    const max = Math.max(...flexible);
    if (max <= MIN_WIDTH) break;
    widths[flexible.indexOf(max)] = max - 1;
    over -= 1;
  }
  return widths;
}

const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\uff01-\uff60\p{Emoji_Presentation}]/u;

/** The width of a character on a terminal. */
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

/** Returns to the start of the line and clears it. */
const CLEAR_LINE = '\r\x1b[K';

/**
 * Escapes control characters in everything that a command prints: names and contents come from files, and could move
 * the cursor, forge a line or reverse the direction of the text. The only sequence that stays is our own.
 */
export function escapeOutput(stream: NodeJS.WriteStream): void {
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    if (typeof chunk !== 'string') return write(chunk, ...rest);
    const start = chunk.startsWith(CLEAR_LINE) ? CLEAR_LINE : '';
    return write(start + escapeControls(chunk.slice(start.length)), ...rest);
  };
}

export type ProgressLine = ReturnType<typeof createProgressLine>;

/** Each write to a terminal takes time. */
const SHOW_INTERVAL_MS = 100;

/** A line on stderr that shows how far a command has come. Not shown if stderr is not a terminal. */
export function createProgressLine() {
  const { stderr } = process;
  const replaceLine = (text: string): void => {
    if (stderr.isTTY) stderr.write(`${CLEAR_LINE}${escapeControls(text)}`);
  };
  let shownAt = Number.NEGATIVE_INFINITY;
  return {
    show(text: string): void {
      const now = systemClock.monotonic();
      if (now - shownAt < SHOW_INTERVAL_MS) return;
      shownAt = now;
      replaceLine(text);
    },
    /** Prints a message that stays, on a line of its own. */
    print(message: string): void {
      replaceLine('');
      stderr.write(`${message}\n`);
    },
    end: (): void => replaceLine(''),
  };
}

/** All of standard input; on a terminal with a prompt. */
export async function readInput(what: string): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(`${what}, then press Ctrl-D on a new line:\n`);
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

/** Asks before something that cannot be undone. Without a terminal, --yes is required. */
export async function confirm(question: string, yes: boolean | undefined): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError('this cannot be undone, and there is no terminal to ask for confirmation', {
      hint: 'add --yes to confirm',
    });
  }
  process.stderr.write(`${question} [y/N] `);
  for await (const line of createInterface({ input: process.stdin })) return /^\s*y(es)?\s*$/i.test(line);
  return false;
}

const ENTER = new Set(['\r', '\n', '\x04']);

/** A secret: one hidden line from a terminal, otherwise all of standard input. */
export async function readSecret(what: string): Promise<string> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY) return (await readInput(what)).trim();
  stderr.write(`${what} (hidden): `);
  stdin.setRawMode(true);
  let text = '';
  try {
    for await (const piece of stdin) {
      for (const character of String(piece)) {
        if (ENTER.has(character)) return text.trim();
        if (character === '\x03') throw new UsageError('cancelled');
        text = character === '\x7f' || character === '\b' ? text.slice(0, -1) : text + character;
      }
    }
    return text.trim();
  } finally {
    stdin.setRawMode(false);
    stderr.write('\n');
  }
}

const tags = (names: string) => new RegExp(`<(?:${names})(?:"[^"]*"|'[^']*'|[^>"'])*>`, 'gi');

const TABLE = /<table\b[^>]*>([\s\S]*?)<\/table>/gi;
const ROW = tags('tr\\b');
const CELL = tags('t[dh]\\b');
const BLOCK = tags('/?(?:p|div|h[1-6]|ul|ol|pre|blockquote|hr|br)\\b');
const ITEM = tags('li\\b');
const ANY = tags('/?[a-z]|!--');

/** A longer cell overflows its column instead of widening every row. */
const MAX_WIDTH = 40;

/** The body of an experiment as a terminal can show it: paragraphs, list items, and tables with aligned columns. */
export function htmlToText(html: string): string {
  const described = describeImages(html);
  const lines: string[] = [];
  let end = 0;
  for (const { 0: table, 1: content = '', index } of described.matchAll(TABLE)) {
    lines.push(...paragraphs(described.slice(end, index)), ...alignRows(content));
    end = index + table.length;
  }
  return [...lines, ...paragraphs(described.slice(end))].join('\n');
}

function paragraphs(html: string): string[] {
  const lines = html.replace(BLOCK, '\n').replace(ITEM, '\n- ').split('\n');
  return lines.map(textOf).filter((line) => line !== '');
}

const textOf = (html: string): string => decodeEntities(html.replace(ANY, '')).replace(/\s+/g, ' ').trim();

function alignRows(table: string): string[] {
  const rows = table.split(ROW).slice(1);
  const cells = rows.map((row) => row.split(CELL).slice(1).map(textOf));
  const widths: number[] = [];
  for (const row of cells)
    for (const [at, { length }] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, Math.min(length, MAX_WIDTH));
  const lines = cells.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).filter((line) => line !== '');
}
