import type { SplitWord } from '../../config/grammar.js';
import type { ParseOptions } from '../../config/vocabulary.js';
import type { FileRecord } from '../../model.js';
import { compileSplit, NO_SPLIT } from '../grammar/split.js';
import type { Line } from '../lines.js';
import type { Pace } from '../pace.js';
import { readRecord } from '../read/record.js';
import type { Refuse } from '../refuse.js';
import { type Cut, cutLines } from './cut.js';
import { findDelimiter } from './find-delimiter.js';

/** A text that was taken apart into lines, not yet into cells. */
export interface TextFile {
  readonly path: string;
  readonly name: string;
  readonly texts: readonly string[];
  readonly refuse: Refuse;
  readonly pace: Pace;
}

/** Reads delimited text, as the options say. */
export async function readDelimited(file: TextFile, options: ParseOptions): Promise<FileRecord> {
  const { lines, cut } = await cutFile(file, options);
  const { path, name, refuse, pace } = file;
  return readRecord({ lines, options, cut, path, name, refuse, pace });
}

/** Cuts lines into cells, at the delimiter that the options name or at the one that is found. */
export async function cutFile(
  { texts, pace }: TextFile,
  options: Pick<ParseOptions, 'delimiter' | 'quote'>,
): Promise<{ lines: Line[]; cut: Cut; delimiter: SplitWord | undefined }> {
  // A spreadsheet's note to itself: it names the delimiter and is not shown as a line.
  const note = /^sep=(.)$/.exec(texts[0] ?? '')?.[1];
  const delimiter = options.delimiter ?? (note === '\t' ? 'tab' : note) ?? findDelimiter(texts);
  const cut: Cut = {
    split: delimiter === undefined ? NO_SPLIT : compileSplit(delimiter),
    quote: options.quote === 'none' ? undefined : options.quote,
  };
  const own = note === undefined ? texts : texts.slice(1);
  return { lines: await cutLines(own, cut, note === undefined ? 1 : 2, pace), cut, delimiter };
}
