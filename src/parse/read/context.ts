import type { ParseOptions } from '../../config/vocabulary.js';
import { type Cut, cutLine } from '../formats/cut.js';
import type { Line } from '../lines.js';
import type { Pace } from '../pace.js';
import type { Refuse } from '../refuse.js';

/** What every part of the reading knows of the file and of how it is to be read. */
export interface Context {
  readonly options: ParseOptions;
  readonly cut: Cut;
  readonly path: string;
  readonly name: string;
  /** The names of a workbook's sheets; none for other files. */
  readonly sheets: readonly string[];
  /** How many cells of a table are kept: a cell takes about 100 bytes. */
  readonly maxKeptCells: number;
  /** Whether a file that says nothing is fine, since only its name is asked for. */
  readonly isNameEnough?: boolean;
  /** Whether there are further mappings to try where this one is not for the file. */
  readonly isAlternative?: boolean | undefined;
  readonly refuse: Refuse;
  readonly pace: Pace;
  /** The first lines, to name the nearest where one is not found. */
  readonly first: readonly Line[];
}

export const isComment = ({ text }: Line, { options: { comment } }: Context): boolean =>
  comment !== undefined && text.trimStart().startsWith(comment);

/** A line as `meta` and `header` read it: without the mark of a comment. */
export function withoutMark(line: Line, context: Context, cut = context.cut): Line {
  if (!isComment(line, context)) return line;
  const text = line.text.trimStart().slice(context.options.comment?.length);
  return cutLine({ ...line, text }, cut);
}
