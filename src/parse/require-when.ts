import type { ParseOptions } from '../config/vocabulary.js';
import { openLines } from './formats/delimited.js';
import type { FormatReader } from './formats/formats.js';
import type { OpenFile } from './formats/open-file.js';
import { compileLine } from './grammar/line.js';
import type { Line } from './lines.js';
import { FIRST_LINES, lineNotFound } from './read/not-found.js';

/** Refuses a file that has no such line as `when` says: the mapping is not for it. */
export async function requireWhen(
  file: OpenFile,
  options: ParseOptions,
  format: FormatReader,
): Promise<void> {
  const { when } = options;
  if (when === undefined) return;
  const isMeant = compileLine(when);
  const lines = format.lines ? await format.lines(file, options) : (await openLines(file, options)).lines;
  const first: Line[] = [];
  for await (const batch of lines()) {
    if (batch.some(isMeant)) return;
    if (first.length < FIRST_LINES) for (const line of batch) first.push(line);
    if (file.pace.due()) await file.pace.rest();
  }
  throw lineNotFound('when', when, { first, refuse: file.refuse });
}
