import type { SplitWord } from '../../config/grammar.js';
import type { ParseOptions } from '../../config/vocabulary.js';
import { type Cut, cutLine } from '../formats/cut.js';
import { compileSplit } from '../grammar/split.js';
import type { Line } from '../lines.js';
import type { Pace } from '../pace.js';
import type { Refuse } from '../refuse.js';

/** A file that was cut into lines and cells, and how it is to be read: what every part of the reading works on. */
export interface Context {
  readonly lines: readonly Line[];
  readonly options: ParseOptions;
  readonly cut: Cut;
  readonly path: string;
  readonly name: string;
  readonly refuse: Refuse;
  readonly pace: Pace;
}

/** The same with lines that are cut by another delimiter, where a table or a finder has one of its own. */
export async function recut(context: Context, delimiter: SplitWord | undefined): Promise<Context> {
  if (delimiter === undefined) return context;
  const cut: Cut = { split: compileSplit(delimiter), quote: context.cut.quote };
  const lines: Line[] = [];
  for (const line of context.lines) {
    lines.push(cutLine(line, cut));
    if (line.number % 512 === 0 && context.pace.due()) await context.pace.rest();
  }
  return { ...context, lines, cut };
}

export const isComment = ({ text }: Line, { options: { comment } }: Context): boolean =>
  comment !== undefined && text.trimStart().startsWith(comment);

/** A line as `meta` and `header` read it: without the mark of a comment. */
export function withoutMark(line: Line, context: Context): Line {
  if (!isComment(line, context)) return line;
  const text = line.text.trimStart().slice(context.options.comment?.length);
  return cutLine({ ...line, text }, context.cut);
}
