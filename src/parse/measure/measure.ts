import { stringify } from 'yaml';
import type { ParseMapping } from '../../config/vocabulary.js';
import { cutAll, cutAt, delimiterOf } from '../formats/delimited.js';
import { compileSplit } from '../grammar/split.js';
import { isBlank, type Line } from '../lines.js';
import type { Pace } from '../pace.js';
import type { Refuse } from '../refuse.js';
import { doubtfulNumber } from '../values/typed.js';
import { type Body, findBody, refuseSecond } from './body.js';
import { findDateFormats } from './dates.js';
import { refuseForeign } from './foreign.js';
import { findHeading, type Heading } from './heading.js';
import { isNoValue } from './kinds.js';
import { findMarks, LOOK_ROWS } from './marks.js';
import { findCommentMark, findSeparator, namesIn } from './preamble.js';
import { describeTable, isTable, refusePlate } from './table.js';
import { refuseTwoColumns } from './two-columns.js';

/** The first lines of a file, and what measuring them needs. */
export interface TextFile {
  readonly path: string;
  readonly name: string;
  readonly texts: readonly string[];
  readonly refuse: Refuse;
  readonly pace: Pace;
}

/**
 * Looks at a file and says, in the words of a mapping, how it is to be read.
 * What the file leaves open is not decided here: it is refused, with the lines that would decide it.
 */
export async function measure(file: TextFile): Promise<ParseMapping> {
  const { texts, refuse } = file;
  refuseForeign(texts, refuse);
  const comment = findCommentMark(texts);
  const bare = comment === undefined ? texts : texts.map((text) => withoutMark(text, comment));
  const { delimiter: word, from } = delimiterOf(bare, {});
  const lines = await cutAll(bare, cutAt(word, '"'), from);
  const delimiter = typeof word === 'string' ? word : undefined;
  const raw = ({ number, text }: Line) => (comment === undefined ? text : (texts[number - 1] ?? text));
  const isComment = (line: Line) => comment !== undefined && raw(line).trimStart().startsWith(comment);

  const table = await findTable(lines, isComment, file);
  const options = table && describeTable(table.body, table.heading, lines, raw, isComment);
  const meta = describeMeta(lines, table, delimiter, refuse);
  const dates = findDateFormats([...dateColumns(table), ...factsOf(lines, table, meta?.separator)]);
  const missing = wordsForNothing(table);
  const mapping: ParseMapping = {
    ...(delimiter !== undefined && { delimiter }),
    ...(comment !== undefined && { comment }),
    ...(dates.length > 0 && { dates: { format: dates.length === 1 ? dates[0] : dates } }),
    ...(missing.length > 0 && { missing }),
    ...(meta && { meta }),
    ...(options && { table: options }),
  };
  return table ? { ...mapping, ...settleMarks(lines, table.body, mapping, refuse) } : mapping;
}

interface FoundTable {
  readonly body: Body;
  readonly heading: Heading;
  readonly rows: readonly Line[];
}

async function findTable(
  lines: readonly Line[],
  isComment: (line: Line) => boolean,
  { pace, refuse }: TextFile,
): Promise<FoundTable | undefined> {
  refusePlate(lines, refuse);
  const body = await findBody(lines, pace, refuse);
  if (!body) return undefined;
  const heading = findHeading(lines, body);
  if (!isTable(body, heading, lines, refuse)) return undefined;
  await refuseSecond(
    lines.slice(0, heading.from).filter((line) => !isComment(line)),
    pace,
    refuse,
  );
  await refuseSecond(
    lines.slice(body.to).filter((line) => !isComment(line)),
    pace,
    refuse,
  );
  return { body, heading, rows: lines.slice(Math.max(body.from, heading.from + heading.rows), body.to) };
}

/** The lines above the table, and those below it where they are facts as well. */
function describeMeta(
  lines: readonly Line[],
  table: FoundTable | undefined,
  delimiter: string | undefined,
  refuse: Refuse,
): { separator: string; until?: number } | undefined {
  const above = lines.slice(0, table?.heading.from);
  const below = table ? lines.slice(table.body.to).filter((line) => !isBlank(line)) : [];
  const separator = findSeparator([...above, ...below], delimiter);
  if (separator !== undefined && separator === delimiter) refuseTwoColumns(above, refuse);
  if (!table) refuseProse(lines, separator, delimiter, refuse);
  if (separator === undefined) return undefined;
  const header = lines[table?.heading.from ?? 0];
  const facts = namesIn(below, separator, delimiter);
  if (!header || facts.length * 5 >= below.length * 3) return { separator };
  return namesIn(above, separator, delimiter).length > 0 ? { separator, until: header.number } : undefined;
}

/** A few facts out of a text that is mostly something else are not what the file says. */
function refuseProse(
  lines: readonly Line[],
  separator: string | undefined,
  delimiter: string | undefined,
  refuse: Refuse,
): void {
  const filled = lines.filter((line) => !isBlank(line)).length;
  const facts = separator === undefined ? 0 : namesIn(lines, separator, delimiter).length;
  if (facts * 5 >= filled * 4) return;
  throw refuse('no table and no list of facts is recognised in the file', {
    hint: 'say in a mapping what it holds: `parse: { meta: { separator: ":" }, table: { after: "…" } }`',
  });
}

/** A mapping in one line, ready to be put into the configuration. */
export const asLine = (mapping: ParseMapping): string =>
  `parse: ${stringify(mapping, { collectionStyle: 'flow', lineWidth: 0 }).trim()}`;

const withoutMark = (text: string, mark: string): string => {
  const start = text.trimStart();
  return start.startsWith(mark) ? start.slice(mark.length) : text;
};

function dateColumns(table: FoundTable | undefined): string[][] {
  const { body } = table ?? {};
  const rows = table?.rows.slice(0, LOOK_ROWS) ?? [];
  const columns = body?.kinds.flatMap((kind, n) => (kind === 'date' ? [n] : [])) ?? [];
  return columns.map((n) =>
    rows.map(({ cells }) => cells[n] ?? '').filter((text) => text !== '' && !isNoValue(text)),
  );
}

function factsOf(
  lines: readonly Line[],
  table: FoundTable | undefined,
  separator: string | undefined,
): string[][] {
  if (separator === undefined) return [];
  const split = compileSplit(separator);
  const outside = lines.filter((_, n) => !table || n < table.heading.from || n >= table.body.to);
  return outside.flatMap(({ text }) => {
    const [, value] = split.cutOnce(text) ?? [];
    return value === undefined || value.length > 60 ? [] : [[value.replace(/[\s,;|]+$/, '')]];
  });
}

/** Words that stand for no value in columns of numbers. */
function wordsForNothing({ rows, body }: Partial<FoundTable> = {}): string[] {
  const words = rows?.flatMap(({ cells }) =>
    cells.filter((cell, n) => body?.kinds[n] === 'number' && isNoValue(cell)),
  );
  return [...new Set(words)];
}

function settleMarks(
  lines: readonly Line[],
  body: Body,
  mapping: ParseMapping,
  refuse: Refuse,
): Pick<ParseMapping, 'decimal' | 'thousands'> {
  const marks = findMarks(lines, body);
  if ('settledBy' in marks) {
    const { line, cell, settledBy } = marks;
    const choices = settledBy.map((choice) => `\`${asLine({ ...mapping, ...choice })}\``);
    const { problem, hint } = doubtfulNumber(line?.cells[cell] ?? '');
    throw refuse(problem, {
      line,
      cell,
      hint: choices.length > 0 ? `say which: ${choices.join(' or ')}` : hint,
    });
  }
  return {
    ...(marks.decimal && { decimal: marks.decimal }),
    ...(marks.thousands && { thousands: marks.thousands }),
  };
}
