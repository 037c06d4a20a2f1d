import { FileError } from '../../errors.js';
import type { BlockSink } from './find-table.js';

/** What was refused first, in the order of the lines. */
export interface Refused {
  error?: FileError;
}

/**
 * Keeps a refusal until all lines have gone by: only then it is known whether the mapping has all of its patterns
 * in this file, or whether the next of several alternatives is to be tried.
 */
export function guard(sink: BlockSink, refused: Refused): BlockSink {
  let isOff = false;
  const attempt = (act: () => void): void => {
    if (isOff) return;
    try {
      act();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      isOff = true;
      refused.error ??= error;
    }
  };
  return {
    begin: (head, captures) => attempt(() => sink.begin(head, captures)),
    row: (line) => attempt(() => sink.row(line)),
    gap: (line) => attempt(() => sink.gap(line)),
  };
}
