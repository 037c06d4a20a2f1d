import { FileError } from '../errors.js';
import type { Line } from './lines.js';

export interface Refusal {
  /** The line that is meant, and which of its cells (from 0). */
  readonly line?: Line | undefined;
  readonly cell?: number | undefined;
  /** The place itself, from 1, where the file is not made of cells; 0 where it is in no line. */
  readonly at?: { readonly line: number; readonly column?: number } | undefined;
  /** What settles it: the ready line for the mapping, wherever there is one. */
  readonly hint?: string;
  /** A pattern of the mapping is not found: another alternative may fit the file. */
  readonly isAbsent?: boolean;
}

/** The file is not of the kind that the mapping describes. */
export class AbsentError extends FileError {}

/** Makes the error that quarantines the file; the caller throws it. */
export type Refuse = (message: string, refusal?: Refusal) => FileError;

export const createRefuse =
  (file: string): Refuse =>
  (message, { line, cell, at, hint, isAbsent } = {}) =>
    new (isAbsent ? AbsentError : FileError)(message, {
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
export const quote = (text: string): string =>
  JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
