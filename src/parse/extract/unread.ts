import { regexSource } from '../../config/grammar.js';
import type { Unread } from '../../model.js';
import { isBlank, isRule, type Line } from '../lines.js';

/** The lines of a file that are in neither facts nor tables. Blank lines and drawn lines say nothing. */
export type UnreadLines = ReturnType<typeof openUnreadLines>;

interface Range {
  readonly kind: Unread['kind'];
  readonly sheet: number;
  readonly from: number;
  to: number;
}

/** The last of more ranges than this spans the rest of the file. */
const MAX_RANGES = 1000;

export const openUnreadLines = () => ({
  ranges: [] as Range[],
  /** The sheets that something was read from. */
  usedSheets: new Set<number>(),
  /** Columns that the mapping leaves out. */
  columns: [] as Unread[],
});

export function addUnread({ ranges }: Pick<UnreadLines, 'ranges'>, line: Line, kind: Unread['kind']): void {
  if (isBlank(line) || isRule(line)) return;
  const { sheet = 0, number: from } = line;
  // A quoted cell can span lines.
  const to = from + (line.text.includes('\n') ? line.text.split('\n').length - 1 : 0);
  const last = ranges.at(-1);
  const isNext = last?.kind === kind && last.sheet === sheet && from <= last.to + 1 && from >= last.from;
  if (last && (isNext || ranges.length >= MAX_RANGES)) last.to = Math.max(last.to, to);
  else ranges.push({ kind, sheet, from, to });
}

/** What became of a line that no table has: `texts` were read from it. */
export function judgeLine(unread: UnreadLines, line: Line, texts: readonly string[], isSkipped: boolean): void {
  if (texts.length > 0) unread.usedSheets.add(line.sheet ?? 0);
  if (texts.length === 0) addUnread(unread, line, isSkipped ? 'left out' : 'unread');
  else if (!covers(line.text, texts)) addUnread(unread, line, 'partly read');
}

/** `late`: lines that turned out to belong to a table after they were judged. */
export function finishUnread(unread: UnreadLines, sheets: readonly string[], late: readonly Line[]): Unread[] {
  const lateLines = new Set(late.map(({ sheet = 0, number }) => `${sheet} ${number}`));
  const ranges = unread.ranges.flatMap((range) => (lateLines.size === 0 ? [range] : without(range, lateLines)));
  const isWhole = (sheet: number) => sheets.length > 0 && !unread.usedSheets.has(sheet);
  const whole = [...new Set(ranges.map(({ sheet }) => sheet))].filter(isWhole);
  return [
    ...ranges
      .filter(({ sheet }) => !isWhole(sheet))
      .sort((a, b) => a.sheet - b.sheet || a.from - b.from)
      .map(({ kind, sheet, from, to }) => ({ kind, ...named(sheets[sheet]), from, to })),
    ...whole.map((sheet) => ({ kind: 'unread' as const, ...named(sheets[sheet]) })),
    ...unread.columns,
  ];
}

const named = (sheet: string | undefined) => (sheet === undefined ? {} : { sheet });

function without({ kind, sheet, from, to }: Range, lines: ReadonlySet<string>): Range[] {
  const kept: Range[] = [];
  for (let line = from; line <= to; line++) {
    if (lines.has(`${sheet} ${line}`)) continue;
    const last = kept.at(-1);
    if (last?.to === line - 1) last.to = line;
    else kept.push({ kind, sheet, from: line, to: line });
  }
  return kept;
}

/** The lines of these values as ranges. */
export function toRanges(lines: Iterable<number>, kind: Unread['kind']): Unread[] {
  const ranges: Range[] = [];
  for (const number of [...new Set(lines)].sort((a, b) => a - b))
    addUnread({ ranges }, { number, text: 'x', cells: ['x'] }, kind);
  return ranges.map(({ from, to }) => ({ kind, from, to }));
}

/** A number whatever the mapping says. The unit of any other value may be dropped, because only numbers have units. */
export const isPlainNumber = (text: string | undefined): boolean =>
  /^[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text?.trim() ?? '');

const WORD = /[\p{L}\p{N}]+/gu;

/** Whether every word and number of a text is in one of the others, as often as in the text. */
export function covers(text: string, others: readonly string[]): boolean {
  const left = new Map<string, number>();
  for (const other of others) for (const [word] of other.matchAll(WORD)) left.set(word, (left.get(word) ?? 0) + 1);
  for (const [word] of text.matchAll(WORD)) {
    const times = left.get(word) ?? 0;
    if (times === 0) return false;
    left.set(word, times - 1);
  }
  return true;
}

/** The words of a pattern itself. A line that a pattern finds says no more if it has only these and what is captured. */
export const wordsOf = (pattern: string | number): string => {
  const source = typeof pattern === 'number' ? '' : (regexSource(pattern) ?? undefined);
  return source === undefined ? String(pattern) : source.replace(/\(\?<[^>]*>|\\[a-zA-Z]/g, ' ');
};
