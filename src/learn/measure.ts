import { stringify } from 'yaml';
import type { ParseMapping } from '../config/vocabulary.js';
import { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import { chooseDelimiter, lineFormat, splitAll } from '../parse/cells.js';
import { isBlank, type Line, type Refuse } from '../parse/lines.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { ambiguousNumber } from '../parse/values/value.js';
import { type FoundDates, findDates, findLineDate, settleDates } from './dates.js';
import {
  type Described,
  describePlates,
  describeRows,
  type Group,
  groupTables,
  isPlates,
  isRows,
  type TableMapping,
} from './describe.js';
import { type Found, findLayout, isNoValue, isRule, kindsOf } from './layout.js';
import { type Doubt, findMarks, type MarksMapping, type Measured, type Measuring } from './measured.js';
import { type FinderMapping, findPairs } from './pairs.js';

/** The first lines of a file, and what measuring them needs. */
interface TextFile extends Measuring {
  readonly texts: readonly string[];
}

/** Lines that were cut into cells, from whatever they came. */
interface Measurable extends Described {
  readonly delimiter: string | undefined;
  /** The part of the mapping that says how lines come about. */
  readonly base: ParseMapping;
}

/** Looks at a text and says, in the words of a mapping, how it is to be read. */
export async function measureText(file: TextFile): Promise<Measured> {
  const { texts } = file;
  if (texts.every((text) => text.trim() === ''))
    throw file.refuse('the file is empty: it has only blank lines');
  const comment = findCommentMark(texts);
  const bare = comment === undefined ? texts : texts.map((text) => withoutMark(text, comment));
  const { delimiter: word, from } = chooseDelimiter(bare, {});
  const lines = await splitAll(bare, lineFormat(word, '"'), from);
  const delimiter = typeof word === 'string' ? word : undefined;
  const raw = ({ number, text }: Line) => (comment === undefined ? text : (texts[number - 1] ?? text));
  return measureLines(
    {
      ...{ lines, raw, delimiter },
      isComment: (line) => comment !== undefined && raw(line).trimStart().startsWith(comment),
      base: { ...(delimiter !== undefined && { delimiter }), ...(comment !== undefined && { comment }) },
    },
    file,
  );
}

export async function measureLines(sheet: Measurable, file: Measuring): Promise<Measured> {
  const { lines } = sheet;
  const { tables: found, nameless } = await findLayout(lines, file.slice);
  const bodies = found.flatMap((table) => (table.kind === 'rows' ? [table.body] : []));
  const marks = findMarks(lines, bodies);
  const isOpen = 'settledBy' in marks;
  const settled: MarksMapping = isOpen ? {} : marks;
  const likely: MarksMapping = isOpen ? (marks.settledBy[0] ?? {}) : marks;
  const { mapping, isList, record } = await firstReadable(found, sheet, likely, file);
  const words = wordsForNothing(lines, found);
  const plain: ParseMapping = { ...mapping, ...(words.length > 0 && { missing: words }) };

  const dates = settleDates(withLineDate(findDates(record), record, outsideOf(found, lines)), file.name);
  return {
    mapping: dates.sure({ ...plain, ...settled }),
    likely: dates.likely({ ...plain, ...likely }),
    doubts: [...dates.doubts, ...(isOpen ? doubtsAbout(marks) : [])],
    refusal:
      refuseNameless(nameless, file.refuse) ??
      (isOpen
        ? refuseMarks(marks, plain, file.refuse)
        : isList
          ? refuseTwoColumns(outsideOf(found, lines), file.refuse)
          : undefined),
  };
}

/** Where no fact is the date of the run, a line may hold it among other words. */
function withLineDate(dates: FoundDates, { meta }: FileRecord, outside: readonly Line[]): FoundDates {
  const isTaken = [...meta.keys()].some((name) => /^date$/i.test(name));
  const inLine = dates.fact || isTaken ? undefined : findLineDate(outside);
  return inLine ? { ...dates, pools: [...dates.pools, [inLine.text]], inLine } : dates;
}

function doubtsAbout({ line, cell, settledBy }: Doubt): string[] {
  if (settledBy.length < 2) return [];
  return [`${line?.cells[cell]} reads as more than one number: ${settledBy.map(inOneLine).join(' or ')}`];
}

/** The largest description of the file that can be read; a table that cannot is left out. */
async function firstReadable(
  found: readonly Found[],
  sheet: Measurable,
  marks: MarksMapping,
  { read, refuse }: Measuring,
): Promise<{ mapping: ParseMapping; isList: boolean; record: FileRecord }> {
  let left = [...found];
  let refusal: FileError | undefined;
  for (;;) {
    const first = refusal;
    const { mapping, isList } = describeAll(left, sheet, first ? () => first : refuse);
    try {
      return { mapping, isList, record: await read({ ...mapping, ...marks }) };
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      refusal ??= withMapping(error, mapping);
      if (left.length === 0) throw refusal;
      const smallest = left.reduce((a, b) => (b.to - b.from < a.to - a.from ? b : a));
      left = left.filter((table) => table !== smallest);
    }
  }
}

/** `isList`: facts are cut where cells are, so that a small table could be taken for them. */
function describeAll(
  found: readonly Found[],
  sheet: Measurable,
  refuse: Refuse,
): { mapping: ParseMapping; isList: boolean } {
  const { lines, delimiter, base } = sheet;
  const groups = groupTables(found, lines).flatMap((group) => asDescribable(group, sheet));
  const tables = nameTables(groups);
  const inTable = new Set(found.flatMap(({ from, to }) => lines.slice(from, to)));
  const titles = new Set(groups.flatMap((each) => (usesTitle(each, groups.length) ? each.group.titles : [])));
  const outside = lines.filter((line) => !inTable.has(line));
  const { finders, separators, read } = findPairs(outside, delimiter);
  if (groups.length === 0) refuseProse(lines, read, refuse);
  const end = found[0]?.from ?? lines.length;
  const isFree = (line: Line) =>
    !inTable.has(line) && !read.has(line) && !titles.has(line) && lines.indexOf(line) < Math.min(end, 60);
  const meta = [...finders, ...findLoose(lines.slice(0, 60), isFree, delimiter)];
  const [only, ...others] = Object.entries(tables);
  const mapping: ParseMapping = {
    ...base,
    ...(meta.length > 0 && { meta: meta.length === 1 && meta[0] ? meta[0] : meta }),
    ...(only && others.length === 0 && { table: only[1] }),
    ...(others.length > 0 && { tables }),
  };
  return { mapping, isList: delimiter !== undefined && separators.includes(delimiter) };
}

interface DescribedGroup {
  readonly group: Group;
  readonly table: TableMapping;
}

/** Several tables are called by their titles. A title that no table is found or called by is a fact like another. */
function usesTitle({ group, table }: DescribedGroup, count: number): boolean {
  if (group.parts.length > 1) return true;
  return table.header !== 'none' && (count > 1 || table.after !== undefined);
}

/** One table, or where no pattern fits the titles of its parts, as many as there are parts. */
function asDescribable(group: Group, sheet: Measurable): DescribedGroup[] {
  const table = isPlates(group)
    ? describePlates(group, sheet)
    : isRows(group)
      ? describeRows(group, sheet)
      : undefined;
  if (table) return [{ group, table }];
  if (group.parts.length === 1) return [];
  return group.parts.flatMap((part, n) => asDescribable({ parts: [part], titles: [group.titles[n]] }, sheet));
}

/** By their titles, as far as they have any. */
function nameTables(groups: readonly DescribedGroup[]): Record<string, TableMapping> {
  const named: Record<string, TableMapping> = {};
  for (const [n, { group, table }] of groups.entries()) {
    const title = group.parts.length === 1 ? group.titles[0]?.cells.find((cell) => cell !== '') : undefined;
    const name =
      (title ?? '')
        .replace(/[^\p{L}\p{N} _-]+/gu, ' ')
        .trim()
        .slice(0, 40) || (n === 0 ? 'readings' : `table ${n + 1}`);
    named[name in named ? `${name} ${n + 1}` : name] = table;
  }
  return named;
}

/** A few facts out of a text that is mostly something else are not what the file says. */
function refuseProse(lines: readonly Line[], read: ReadonlySet<Line>, refuse: Refuse): void {
  const filled = lines.filter((line) => !isBlank(line) && !isRule(line)).length;
  if (read.size * 5 >= filled * 3) return;
  throw refuse('no table and no list of facts is recognised in the file', {
    hint: 'say in a mapping what it holds: `parse: { meta: { separator: ":" }, table: { after: "…" } }`',
  });
}

/** Lines in no table; where one was, a blank line. */
const outsideOf = (found: readonly Found[], lines: readonly Line[]): Line[] =>
  lines.map((line, n) => (found.some(({ from, to }) => n >= from && n < to) ? { ...line, cells: [] } : line));

const refuseNameless = (line: Line | undefined, refuse: Refuse): FileError | undefined =>
  line &&
  refuse('these look like rows of a table, and no line above names their columns', {
    line,
    hint: 'if the file has no header: `parse: { table: { header: none } }`',
  });

const inOneLine = (mapping: ParseMapping): string =>
  stringify(mapping, { collectionStyle: 'flow', lineWidth: 0 }).trim();

/** A mapping in one line, ready to be put into the configuration. */
const asLine = (mapping: ParseMapping): string => `parse: ${inOneLine(mapping)}`;

/** Without a mapping there is none that a hint could be put into, so a refusal also tells the one that was used. */
export const withMapping = ({ message, where, hint }: FileError, mapping: ParseMapping): FileError =>
  new FileError(message, {
    ...(where && { where }),
    hint: `${hint ? `${hint}; ` : ''}the file was read with \`${asLine(mapping)}\``,
  });

const withoutMark = (text: string, mark: string): string => {
  const start = text.trimStart();
  return start.startsWith(mark) ? start.slice(mark.length) : text;
};

/** Words that stand for no value in columns of numbers. */
function wordsForNothing(lines: readonly Line[], found: readonly Found[]): string[] {
  const words = found.flatMap((table) => {
    const rows = lines.slice(table.kind === 'rows' ? table.body.from : table.from + 1, table.to);
    const isNumeric = (n: number) => table.kind === 'plate' || table.body.kinds[n] === 'number';
    return rows.flatMap(({ cells }) => cells.filter((cell, n) => isNumeric(n) && isNoValue(cell)));
  });
  return [...new Set(words)];
}

function refuseMarks({ line, cell, settledBy }: Doubt, mapping: ParseMapping, refuse: Refuse): FileError {
  const choices = settledBy.map((choice) => `\`${asLine({ ...mapping, ...choice })}\``);
  const { problem, hint } = ambiguousNumber(line?.cells[cell] ?? '');
  return refuse(problem, {
    line,
    cell,
    hint: choices.length > 0 ? `say which: ${choices.join(' or ')}` : hint,
  });
}

const MARKS = ['#', '!', '~', '%', '//', '*', ';'];
const LOOK_LINES = 200;

/** What comments begin with: the first line is one, others are, and rows are not. */
function findCommentMark(texts: readonly string[]): string | undefined {
  const filled = texts.slice(0, LOOK_LINES).filter((text) => text.trim() !== '');
  const mark = MARKS.find((candidate) => filled[0]?.trimStart().startsWith(candidate));
  if (mark === undefined) return undefined;
  const marked = filled.filter((text) => text.trimStart().startsWith(mark)).length;
  const isLabelled = mark === '#' && filled.some((text) => text.startsWith('##'));
  return marked >= 2 && marked < filled.length && !isLabelled ? mark : undefined;
}

/**
 * Names with values, or a small table of two columns? `a,b` above `x,1` can be either, and taken for facts
 * its header would become one. Nobody but a person can tell.
 */
function refuseTwoColumns(lines: readonly Line[], refuse: Refuse): FileError | undefined {
  for (const [header, ...rows] of blocksOf(lines)) {
    if (
      !header ||
      rows.length === 0 ||
      !isPair(header, 'text') ||
      !rows.every((row) => isPair(row, 'number'))
    )
      continue;
    return refuse('these lines can be a table of two columns, or names with values', {
      line: header,
      hint: 'say which: `parse: { table: {} }`, or `parse: { meta: { separator: "," } }`',
    });
  }
  return undefined;
}

/** A text first, and this after it. */
function isPair(line: Line, second: 'text' | 'number'): boolean {
  const kinds = kindsOf(line);
  return kinds.length === 2 && kinds[0] === 'text' && kinds[1] === second;
}

/** Lines that stand together, without a blank one between them. */
function blocksOf(lines: readonly Line[]): Line[][] {
  const blocks: Line[][] = [[]];
  for (const line of lines) {
    if (isBlank(line)) blocks.push([]);
    else blocks.at(-1)?.push(line);
  }
  return blocks;
}

const MOST_LINES = 12;
const MOST_CELLS = 20;

/**
 * Lines near the top that say something without naming it: a title, an instrument, a date.
 * They become facts under the names that spreadsheets give to cells, A1, B1, for a person to rename.
 */
function findLoose(
  lines: readonly Line[],
  isFree: (line: Line) => boolean,
  delimiter: string | undefined,
): FinderMapping[] {
  return lines
    .filter((line) => isFree(line) && !isBlank(line) && isTelling(line))
    .slice(0, MOST_LINES)
    .map((line) => describe(line, delimiter));
}

/** Not a rule, not the name of a section, not a page of prose. */
const isTelling = ({ text }: Line): boolean =>
  text.length <= 300 &&
  /[\p{L}\p{N}]{2}/u.test(text) &&
  !/^\W*\[[^\]]*\]\W*$/.test(text) &&
  !/^[~>]/.test(text.trim());

function describe(line: Line, delimiter: string | undefined): FinderMapping {
  const whole: FinderMapping = { line: line.number, match: `/(?<A${line.number}>\\S.*\\S)/` };
  // A date can have commas in it.
  if (dateCandidates(line.text).length > 0) return whole;
  // Quotes around all that a line says are not part of it.
  if (line.text.trim().startsWith('"') && line.cells.filter((cell) => cell !== '').length === 1) {
    const place = line.cells.findIndex((cell) => cell !== '') + 1;
    return { line: line.number, cells: { [`${letter(place)}${line.number}`]: place } };
  }
  const signs = [delimiter ?? ',', ',', ';', 'tab', '|'].filter((sign) => !/^[sw]/.test(sign));
  for (const sign of new Set(signs)) {
    const cells = line.text.split(sign === 'tab' ? '\t' : sign).map((cell) => cell.trim());
    const filled = cells.map((cell, n) => [cell, n + 1] as const).filter(([cell]) => cell !== '');
    // Words with a comma between them are one sentence.
    if (filled.length < (sign === delimiter ? 2 : 3) || filled.length > MOST_CELLS) continue;
    const named = filled.map(([, place]) => [`${letter(place)}${line.number}`, place]);
    return {
      line: line.number,
      ...(sign !== delimiter && { delimiter: sign }),
      cells: Object.fromEntries(named),
    };
  }
  return whole;
}

const letter = (place: number): string =>
  place > 26
    ? letter(Math.floor((place - 1) / 26)) + letter(((place - 1) % 26) + 1)
    : String.fromCharCode(64 + place);
