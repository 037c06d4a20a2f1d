import type { Pace } from './pace.js';

/** A line of a file and the cells in it. A quoted cell can span several lines of the file: they are one here. */
export interface Line {
  /** Of its first line in the file, from 1. */
  readonly number: number;
  /** As it stands in the file. */
  readonly text: string;
  /** Trimmed, and without their quotes. */
  readonly cells: readonly string[];
}

/** The lines of a text that comes in pieces, whatever ends them: LF, CR LF, CR, CR CR LF, also mixed. */
export async function toLines(pieces: Iterable<string>, pace: Pace): Promise<string[]> {
  const lines: string[] = [];
  // Joined but not searched again: a line that spans many pieces costs no more than its length.
  let open = '';
  let held = '';
  const take = (text: string) => {
    const [first = '', ...others] = text.includes('\r') ? text.split(/\r\r\n|\r\n|\n|\r/) : text.split('\n');
    open += first;
    for (const other of others) {
      lines.push(open);
      open = other;
    }
  };
  for (const piece of pieces) {
    const text = held + piece;
    // What ends in CR may go on with LF in the next piece.
    let end = text.length;
    while (end > 0 && text[end - 1] === '\r') end--;
    take(text.slice(0, end));
    held = text.slice(end);
    if (pace.due()) await pace.rest();
  }
  take(held);
  if (open !== '') lines.push(open);
  return lines;
}

export const isBlank = (line: Line): boolean => line.cells.every((cell) => cell === '');
