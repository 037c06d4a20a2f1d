import { setImmediate } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import type { ParseOptions } from '../config/vocabulary.js';
import { FileError } from '../errors.js';
import { nearest } from '../text.js';

/** A line of a file and its cells. Lines that a quoted cell spans are one Line. */
export interface Line {
  /** Number of its first line in the file, from 1. */
  readonly number: number;
  /** As in the file; empty if the row does not come from a line of text. */
  readonly text: string;
  /** Trimmed and unquoted. */
  readonly cells: readonly string[];
  /** How many lines of the file it is, if not one more than its text has line breaks. */
  readonly count?: number;
  /** Index of the sheet in a workbook. */
  readonly sheet?: number;
  /** 1 for the last line. Set only if the mapping counts lines from the end. */
  readonly fromEnd?: number;
}

/** Identifies a line, however it is split into cells. */
export const lineKey = ({ sheet = 0, number }: Line): string => `${sheet} ${number}`;

export const isBlank = (line: Line): boolean => line.cells.every((cell) => cell === '');

/** Blank and without delimiters. */
export const isEmpty = ({ cells }: Line): boolean => cells.length <= 1 && (cells[0] ?? '') === '';

const MAX_RULE = 1000;

const DRAWN = /^[\s\-=_+|*\u2500-\u257f]+$/;

/** A drawn line: `-----` or `├───┼───┤`. */
export const isRule = ({ text }: Pick<Line, 'text'>): boolean =>
  text.length < MAX_RULE && DRAWN.test(text) && /[-=_*\u2500\u2501\u2550]{3}/.test(text);

/** Instruments do not write longer lines: the file is of another kind, or damaged. */
const MAX_LINE_CHARACTERS = 16 * 2 ** 20;

/** Splits text into lines at LF, CR LF, CR and CR CR LF, also mixed. */
export async function* toLines(chunks: AsyncIterable<string>, refuse: Refuse): AsyncGenerator<string[]> {
  // Text is appended but not searched again, so a line that spans many chunks costs linear time.
  let open = '';
  let held = '';
  let number = 1;
  const take = (text: string): string[] => {
    const lines = text.includes('\r') ? text.split(/\r\r\n|\r\n|\n|\r/) : text.split('\n');
    lines[0] = open + lines[0];
    open = lines.pop() ?? '';
    number += lines.length;
    if (open.length > MAX_LINE_CHARACTERS)
      throw refuse(`line ${number} is longer than ${MAX_LINE_CHARACTERS / 2 ** 20} million characters`, {
        line: number,
        hint: 'if the file is not line-based, specify its format: `format: json` or `format: none`',
        isMismatch: true,
      });
    return lines;
  };
  for await (const chunk of chunks) {
    const text = held + chunk;
    // One or two CR at the end of a chunk may belong to a line break that continues in the next.
    let end = text.length;
    while (end > 0 && end > text.length - 2 && text[end - 1] === '\r') end--;
    held = text.slice(end);
    yield take(text.slice(0, end));
  }
  yield take(held);
  if (open !== '') yield [open];
}

/** Sets `fromEnd` of the last `depth` lines, which are held back for that. */
export async function* numberFromEnd(
  batches: AsyncIterable<readonly Line[]>,
  depth: number,
): AsyncGenerator<readonly Line[]> {
  let held: readonly Line[] = [];
  for await (const batch of batches) {
    const all = [...held, ...batch];
    held = all.slice(Math.max(0, all.length - depth));
    yield all.slice(0, all.length - held.length);
  }
  yield held.map((line, n) => ({ ...line, fromEnd: held.length - n }));
}

/** The largest line number from the end that a mapping uses: 3 for `until: -3`. */
export function depthFromEnd({ meta, tables, when }: Pick<ParseOptions, 'meta' | 'tables' | 'when'>): number {
  let depth = 0;
  const note = (pattern: unknown): void => {
    if (typeof pattern === 'number') depth = Math.max(depth, -pattern);
    else if (Array.isArray(pattern)) pattern.forEach(note);
  };
  for (const { after, every, until, header, skip } of Object.values(tables))
    [after, every, until, header, skip].forEach(note);
  for (const { after, until, line } of meta) [after, until, line].forEach(note);
  note(when);
  return depth;
}

interface Refusal {
  /** A line or its number; 0 is not a place. */
  readonly line?: Line | number | undefined;
  /** Index of the cell in `line`. */
  readonly cell?: number | undefined;
  /** From 1, if `line` is a number. */
  readonly column?: number;
  /** What to do; if possible, the text to write into the mapping. */
  readonly hint?: string | undefined;
  /** A pattern of the mapping is not found: the next alternative may match the file. */
  readonly isMismatch?: boolean;
}

/** The file is not of the kind that the mapping describes. */
export class MismatchError extends FileError {}

/** Creates the error that quarantines the run. The caller throws it. */
export type Refuse = (message: string, refusal?: Refusal) => FileError;

export const createRefuse =
  (file: string): Refuse =>
  (message, { line, cell, column, hint, isMismatch } = {}) => {
    const number = typeof line === 'object' ? line.number : line;
    const at = typeof line === 'object' && line.text !== '' && cell !== undefined ? columnOf(line, cell) : column;
    return new (isMismatch ? MismatchError : FileError)(message, {
      where: { file, ...(number && { line: number }), ...(at && { column: at }) },
      ...(hint !== undefined && { hint }),
    });
  };

/** The column at which a cell starts. Computed only for errors, so it is not stored. */
function columnOf(line: Line, cell: number): number {
  let at = 0;
  for (const earlier of line.cells.slice(0, cell)) {
    at = Math.max(at, line.text.indexOf(earlier, at)) + earlier.length;
  }
  return Math.max(at, line.text.indexOf(line.cells[cell] ?? '', at)) + 1;
}

/** `[Results]`, `=== data ===`, `</Experiment>`, `Results:` */
const MARKED_HEADING = /^(?:\[[^\]\d]+\]|([-=_*#])\1+ ?[^-=_*#\d]+ ?\1+|<\/?\w+>|\p{L}[^:=\d]*:)$/u;
/** What sections are called. Other words can be a sample or a method: `Caffeine`, `Absorbance`. */
const SECTION =
  /^(?:\p{L}[\p{L}-]* ){0,3}(?:actions|calibration|comments|conditions|configuration|data|details|information|parameters?|results?|sections?|settings|setup|statistics|steps|summary|tables?|validation|daten|einstellungen|ergebnisse)$/iu;
const NOTICE = /^(?:for research use only|not for (?:use in )?diagnostic|copyright\b|©|all rights reserved)/i;

/** Whether a line is only the heading of a section or a legal notice, which says nothing about the run. */
export function saysNothing({ text }: Pick<Line, 'text'>): boolean {
  if (text.length > 300) return false;
  const words = text.replace(/^[\s",;|]+|[\s",;|]+$/g, '');
  return NOTICE.test(words) || (words.length <= 60 && (MARKED_HEADING.test(words) || SECTION.test(words)));
}

/** The texts that are not empty, with a space between them. */
export const joinTexts = (texts: readonly (string | undefined)[]): string => texts.filter(Boolean).join(' ');

/** Text from a file in quotes, shortened for a message. */
export const quoted = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** The hint for a name that is not found: the nearest known name, or the first known names. */
export function suggestName(name: string, known: readonly string[], label: string): string {
  const near = nearest(
    name,
    known.map((each) => each.slice(0, 80)),
  );
  return near === undefined
    ? `${label}: ${known.slice(0, 20).join(', ') || 'none'}`
    : `did you mean ${JSON.stringify(near)}?`;
}

/** The hint for a file that exceeds a limit. */
export const raiseLimit = (key: string, value: string | number): string =>
  `to read such files, raise the limit: \`limits: { ${key}: ${value} }\``;

/** How long reading a file may take: a long file takes longer, and on a busy machine several times as long. */
export const maxMsFor = ({ limits }: Pick<ParseOptions, 'limits'>, bytes = 0): number =>
  limits.maxMs ?? 60_000 + Math.floor(bytes / 1_000_000) * 1000;

/** The hint for a file that takes too long. */
export const raiseSeconds = (maxMs: number): string => raiseLimit('seconds', Math.max(300, Math.ceil(maxMs / 200)));

/** How long parsing may block the event loop at a stretch. */
const SLICE_MS = 8;
/** If a thread runs out of memory, that can end the whole process. So parsing stops well before. */
const MAX_HEAP_MB = 512;

/** Keeps long work from blocking the event loop and from exceeding its time limit. */
export interface TimeSlice {
  /** Cheap; loops check it every few hundred steps: `if (slice.isOver()) await slice.renew()`. */
  isOver(): boolean;
  /** Lets other work run. Throws if the time limit is exceeded or the signal is aborted. */
  renew(): Promise<void>;
}

export function createTimeSlice(maxMs: number, refuse: Refuse, signal?: AbortSignal): TimeSlice {
  const start = performance.now();
  // What earlier files have left there may not be collected yet.
  const heapAtStart = getHeapStatistics().used_heap_size;
  let resumed = start;
  return {
    isOver: () => performance.now() - resumed > SLICE_MS,
    async renew() {
      if (performance.now() - start > maxMs) {
        throw refuse(`reading the file took longer than ${maxMs / 1000} s`, { hint: raiseSeconds(maxMs) });
      }
      if (getHeapStatistics().used_heap_size - heapAtStart > MAX_HEAP_MB * 2 ** 20) {
        throw refuse(`reading the file takes more than ${MAX_HEAP_MB} MB of memory`, { hint: 'split the file' });
      }
      signal?.throwIfAborted();
      await setImmediate();
      resumed = performance.now();
    },
  };
}
