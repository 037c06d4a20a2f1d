import { setImmediate } from 'node:timers/promises';
import type { ParseOptions } from '../config/vocabulary.js';
import { FileError } from '../errors.js';

/** A line of a file and the cells in it. A quoted cell can span several lines of the file: they are one here. */
export interface Line {
  /** Of its first line in the file, from 1. */
  readonly number: number;
  /** As it stands in the file. */
  readonly text: string;
  /** Trimmed, and without their quotes. */
  readonly cells: readonly string[];
  /** Of a workbook: the sheet that it stands in, from 0. */
  readonly sheet?: number;
  /** 1 for the last line; known only where a mapping counts lines from the end. */
  readonly fromEnd?: number;
}

/** No instrument writes such a line; it is a file of another kind, or a broken one. */
const MAX_LINE_CHARACTERS = 16 * 2 ** 20;

/** The lines of a text that comes in pieces, whatever ends them: LF, CR LF, CR, CR CR LF, also mixed. */
export async function* toLines(pieces: AsyncIterable<string>, refuse: Refuse): AsyncGenerator<string[]> {
  // Joined but not searched again: a line that spans many pieces costs no more than its length.
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
        line: { number, text: '', cells: [] },
        hint: 'this may be no text of lines: say what it is, `format: json` or `format: none`',
        isMismatch: true,
      });
    return lines;
  };
  for await (const piece of pieces) {
    const text = held + piece;
    // What ends in CR, or in two, may go on with LF in the next piece.
    let end = text.length;
    while (end > 0 && end > text.length - 2 && text[end - 1] === '\r') end--;
    held = text.slice(end);
    yield take(text.slice(0, end));
  }
  yield take(held);
  if (open !== '') yield [open];
}

/** The same for all copies of a line, however they are cut. */
export const lineKey = ({ sheet = 0, number }: Line): string => `${sheet} ${number}`;

export const isBlank = (line: Line): boolean => line.cells.every((cell) => cell === '');

/** Nothing at all, not even delimiters. */
export const isEmpty = ({ cells }: Line): boolean => cells.length <= 1 && (cells[0] ?? '') === '';

/** Tells the last lines how far from the end they are, where somebody asks: `depth` lines are held back for it. */
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

/** How many lines from the end a mapping counts at most: `until: -3`. */
export function depthFromEnd({
  meta,
  tables,
  when = [],
}: Pick<ParseOptions, 'meta' | 'tables' | 'when'>): number {
  const forms = [
    ...Object.values(tables).map(({ after, every, until, header, skip }) => [
      after,
      every,
      until,
      header,
      skip,
    ]),
    ...meta.map(({ after, until, line }) => [after, until, line]),
  ].flat(2);
  const numbers = [...forms, ...when].filter((form) => typeof form === 'number');
  return Math.max(0, ...numbers.map((number) => -number));
}

interface Refusal {
  /** The line that is meant, and which of its cells (from 0). */
  readonly line?: Line | undefined;
  readonly cell?: number | undefined;
  /** The place itself, from 1, where the file is not made of cells; 0 where it is in no line. */
  readonly at?: { readonly line: number; readonly column?: number } | undefined;
  /** What settles it: the ready line for the mapping, wherever there is one. */
  readonly hint?: string;
  /** A pattern of the mapping is not found: another alternative may fit the file. */
  readonly isMismatch?: boolean;
}

/** The file is not of the kind that the mapping describes. */
export class MismatchError extends FileError {}

/** Makes the error that quarantines the file; the caller throws it. */
export type Refuse = (message: string, refusal?: Refusal) => FileError;

export const createRefuse =
  (file: string): Refuse =>
  (message, { line, cell, at, hint, isMismatch } = {}) =>
    new (isMismatch ? MismatchError : FileError)(message, {
      where: {
        file,
        ...(line && { line: line.number }),
        ...(line && cell !== undefined && { column: columnOf(line, cell) }),
        ...(at?.line ? at : undefined),
      },
      ...(hint !== undefined && { hint }),
    });

/** Where a cell begins, in characters from 1. Only errors ask, so it is looked for and not kept. */
function columnOf(line: Line, cell: number): number {
  let at = 0;
  for (const earlier of line.cells.slice(0, cell)) {
    at = Math.max(at, line.text.indexOf(earlier, at)) + earlier.length;
  }
  return Math.max(at, line.text.indexOf(line.cells[cell] ?? '', at)) + 1;
}

/** Quotes what a file says, cut to what fits in a sentence. */
export const quoted = (text: string): string =>
  JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** How long reading may keep the rest of the daemon waiting at a stretch. */
const SLICE_MS = 8;

/** Keeps long work from blocking the daemon and from going on for ever. */
export interface TimeSlice {
  /**
   * To be asked every few hundred steps of a loop, `if (pace.due()) await pace.rest()`:
   * asking costs next to nothing, an `await` at every step would not.
   */
  isOver(): boolean;
  /** Lets others run; throws once the time is up or the signal was given. */
  renew(): Promise<void>;
}

interface TimeSliceOptions {
  readonly maxMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly refuse: Refuse;
}

export function createTimeSlice({ maxMs, signal, refuse }: TimeSliceOptions): TimeSlice {
  const start = performance.now();
  let resumed = start;
  return {
    isOver: () => performance.now() - resumed > SLICE_MS,
    async renew() {
      if (performance.now() - start > maxMs) {
        throw refuse(`reading took longer than ${maxMs / 1000} s`, {
          hint: 'if such files are to be read, allow more: `limits: { seconds: 300 }`',
        });
      }
      signal?.throwIfAborted();
      await setImmediate();
      resumed = performance.now();
    },
  };
}
