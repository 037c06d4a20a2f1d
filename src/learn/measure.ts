import { stringify } from 'yaml';
import type { ParseMapping } from '../config/vocabulary.js';
import { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import { withoutMark } from '../parse/extract/context.js';
import { startOf } from '../parse/extract/table.js';
import { isBlank, isRule, type Line, MismatchError, type Refuse, type TimeSlice } from '../parse/lines.js';
import type { OpenFile, Source } from '../parse/source.js';
import { byWords, findUnnamed } from './anchors.js';
import { withUnitFacts } from './column-units.js';
import { type DatePlaces, openDatePlaces } from './date-roles.js';
import { type FoundDates, findDates, settleDates } from './dates.js';
import { characterOf, splitText } from './delimiters.js';
import { type DescribedFile, type DescribedTable, describeTables, type TableMapping } from './describe.js';
import { findPairs } from './facts.js';
import { findNoValues } from './fill-values.js';
import { fitsBody, type LongRow } from './header.js';
import { isFactName, isQuantity, kindsOf } from './kinds.js';
import { type FoundRows, type FoundTable, findLayout, type Layout, MAX_TABLES } from './layout.js';
import { findAnyDate, findLineDate, findSplitDate, type OtherDate } from './line-dates.js';
import { columnLines, withListedNames } from './listed-names.js';
import { findNumberFormat, type MarksMapping, numberDoubts, numberError } from './number-format.js';
import { leaveOutWrong } from './objections.js';
import { namesAbove } from './odd-lines.js';
import { findPlaced, type PlacedFacts } from './placed.js';
import { areCutNumbers } from './rows.js';
import { findOptions, withOptions } from './touchstone.js';

/** How a file can be read, as a mapping. */
export interface Measured {
  /** With what the file itself proves. */
  readonly mapping: ParseMapping;
  /** Also with the more likely answer to each question that the file leaves open. */
  readonly likely: () => ParseMapping;
  /** The column whose first date is that of the run. */
  readonly firstRow?: FoundDates['firstRow'];
  /** A date that is not that of the run, if the file has no other. */
  readonly undated?: OtherDate | undefined;
  /** Those questions. */
  readonly doubts: readonly string[];
  /** Those among them that concern what is read, and so every entry. */
  readonly objections?: readonly string[] | undefined;
  /** Why the file must not be read unless a person writes the mapping. */
  readonly ambiguity: FileError | undefined;
}

/** What measuring needs apart from the content. */
export interface MeasureContext {
  readonly source: Source;
  readonly refuse: Refuse;
  readonly slice: TimeSlice;
  readonly known?: OpenFile['known'];
  /** Reads the file with a mapping, to verify it. */
  read(mapping: ParseMapping): Promise<FileRecord>;
}

/** Lines split into cells, of a text or of a sheet. */
interface LineSource extends DescribedFile {
  readonly delimiter: string | undefined;
  /** The keys of the mapping that define how lines are split. */
  readonly base: ParseMapping;
  /** If it is known already. */
  readonly layout?: Layout;
  readonly placed?: PlacedFacts;
  /** Of all lines, such as the name of their sheet. */
  readonly title?: string | undefined;
}

export async function measureText(texts: readonly string[], file: MeasureContext): Promise<Measured> {
  if (texts.every((text) => text.trim() === '')) throw file.refuse('the file is empty: it has only blank lines');
  const comment = findCommentMark(texts);
  const bare =
    comment === undefined
      ? texts
      : texts.map((text) => (text.trimStart().startsWith(comment) ? withoutMark(text, comment) : text));
  const placed = findPlaced(texts, comment);
  const noRows = new Set([...placed.lines, ...columnLines(texts)]);
  const { delimiter, isPlain, ...split } = await splitText(bare, file.slice, noRows);
  if (isPlain && comment === undefined && file.known)
    file.known.split = { delimiter, count: texts.length, lines: split.lines };
  const raw = ({ number, text }: Line) => (comment === undefined ? text : (texts[number - 1] ?? text));
  const isComment = (line: Line) => comment !== undefined && raw(line).trimStart().startsWith(comment);
  const base = { ...(delimiter !== undefined && { delimiter }), ...(comment !== undefined && { comment }) };
  const measured = await measureLines({ raw, isComment, delimiter, base, placed, ...split }, file);
  const options = findOptions(texts);
  if (!options) return measured;
  const likely = () => withOptions(measured.likely(), options);
  return { ...measured, mapping: withOptions(measured.mapping, options), likely };
}

/** `#` as the name of the first column: the number of the row. */
const NAMED_NUMBER = /^#[\t,;|]/;
const COMMENT_MARKS = ['#', '!', '~', '%', '//', '*', ';'];
const COMMENT_LINES = 200;

/** The first line starts with the mark, and so does another; or a block of lines does, anywhere. But not all lines do. */
function findCommentMark(texts: readonly string[]): string | undefined {
  const isShort = texts.length <= 2 * COMMENT_LINES;
  const ends = isShort ? texts : [...texts.slice(0, COMMENT_LINES), ...texts.slice(-COMMENT_LINES)];
  const filled = ends.map((text) => text.trimStart()).filter((text) => text !== '');
  const isFirst = !NAMED_NUMBER.test(filled[0] ?? '');
  const mark = COMMENT_MARKS.find((each) => isFirst && filled[0]?.startsWith(each)) ?? findCommentBlock(filled);
  if (mark === undefined) return undefined;
  const marked = filled.filter((text) => text.startsWith(mark));
  const hasLabels = mark === '#' && filled.filter((text) => text.startsWith('##')).length * 2 > marked.length;
  // Empty cells: the other lines are split there, too.
  const others = filled.filter((text) => !text.startsWith(mark));
  const isDelimiter =
    mark === ';' && (marked.some((text) => /^;;|^;.*;/.test(text)) || others.every((text) => text.includes(mark)));
  return marked.length >= 2 && others.length > 0 && !hasLabels && !isDelimiter ? mark : undefined;
}

/** Fewer lines can be rows with a flag: `*S-101`. */
const MIN_COMMENTS = 3;

/** The mark of several lines of words that follow each other, or of the second line. */
function findCommentBlock(filled: readonly string[]): string | undefined {
  if (filled[1]?.startsWith('#') && !NAMED_NUMBER.test(filled[1])) return '#';
  return COMMENT_MARKS.find((mark) => {
    const words = mark === '#' ? /^\s*\p{L}|^\s+\p{N}.*\p{L}{3}/u : /^\s+\W?(?:\p{L}|\p{N}.*\p{L}{3})/u;
    let count = 0;
    return filled.some((text) => {
      count = text.startsWith(mark) && words.test(withoutMark(text, mark)) ? count + 1 : 0;
      return count >= MIN_COMMENTS;
    });
  });
}

/** Each line is compared with each table, so more of them would take minutes. */
const MAX_COMPARED_TABLES = 500;

export async function measureLines(source: LineSource, file: MeasureContext): Promise<Measured> {
  const { lines } = source;
  const { tables, headless, long, mixed, nameless, isCut } =
    source.layout ?? (await findLayout(lines, file.slice, characterOf(source.delimiter)));
  const found = withListedNames(tables, source);
  if (found.length > MAX_COMPARED_TABLES) {
    throw file.refuse(`the file seems to have ${found.length} tables, more than ${MAX_COMPARED_TABLES}`, {
      hint: 'describe its tables, for example `parse: { table: { every: "/^Cycle (?<cycle>\\d+)/" } }`',
    });
  }
  const numbers = findNumberFormat(lines, found);
  const { failure, refusal, ...description } = await describeReadable(found, source, numbers.likely, file);
  const { isList, isProse } = description;
  const outside = outsideTables(found, lines);
  const names = found.flatMap((table) =>
    table.kind === 'rows' && table.header.names.length === 0 ? namesAbove(table.body, lines) : [],
  );
  const lost = new Set([...description.lost, ...names]);
  const net = await leaveOutWrong(description.mapping, description.record, {
    ...file,
    lines: lines.filter((line, n) => lost.has(line) || !isBlank(outside[n] ?? line)),
    lost,
    top: lines.slice(0, COMMENT_LINES),
    delimiter: source.delimiter,
    read: (mapping) => file.read({ ...mapping, ...numbers.likely }),
  });
  const { record } = net;
  const { missing, doubts: fills } = findNoValues(lines, found, record.meta);
  const mapping = withUnitFacts({ ...net.mapping, ...(missing.length > 0 && { missing }) }, record);
  const texts = outside
    .slice(0, MAX_TEXTS)
    .filter(({ text }) => YEAR.test(text))
    .map(({ text }) => text);
  const places = openDatePlaces(outside, Math.max(0, ...found.map(({ to }) => to)), source.title);
  const inFacts = withLineDate(findDates(record, texts, places), record, outside, places);
  const isDated = inFacts.fact || inFacts.firstRow || inFacts.inLine;
  // A date that is not understood must not be replaced silently by the day of the file.
  const other = inFacts.other ?? (isDated ? undefined : (findAnyDate(lines) ?? findSplitDate(outside, record.tables)));
  const dates = settleDates({ ...inFacts, other }, file.source);
  const problem =
    (long && longRowError(long, file.refuse)) ??
    (mixed && mixedError(mixed, file.refuse)) ??
    (headless && headlessError(headless, file.refuse)) ??
    interruptedError(found, lines, file.refuse) ??
    (nameless &&
    found.some(
      (table) =>
        table.kind === 'rows' && table.isNameless && areCutNumbers(rowsOf(table, lines), nameless.cells.length),
    )
      ? cutNumbersError(nameless, file.refuse)
      : undefined) ??
    (isProse ? (refusal ?? proseError(file.refuse)) : undefined) ??
    (isList && !numbers.ambiguous ? twoColumnsError(outside, found, source.delimiter, file.refuse) : undefined);
  return {
    mapping: dates.settle({ ...mapping, ...numbers.sure }),
    likely: () => dates.settle({ ...mapping, ...numbers.likely }),
    firstRow: dates.firstRow,
    undated: dates.undated,
    objections: [...net.doubts, ...fills, ...dates.objections],
    doubts: [
      ...dates.doubts,
      ...dates.objections,
      ...net.doubts,
      ...fills,
      ...(numbers.ambiguous ? numberDoubts(numbers.ambiguous) : []),
      ...(isCut
        ? [`learn looks for at most ${MAX_TABLES} tables. If the file has more, they are not in this mapping`]
        : []),
      ...description.doubts,
      ...(nameless ? [doubtOf(namelessError(nameless, file.refuse))] : []),
      // A table that its own mapping does not find is left out: nobody can correct a line that is not there.
      ...[problem ?? (failure instanceof MismatchError ? undefined : failure)].flatMap((error) =>
        error ? [doubtOf(error)] : [],
      ),
    ],
    ambiguity:
      problem ??
      net.refusal ??
      (numbers.ambiguous && numberError(numbers.ambiguous, (marks) => asLine({ ...mapping, ...marks }), file.refuse)),
  };
}

/** Lines without a year show neither a day nor the order of day and month. */
const YEAR = /(?:19|20)\d\d|[-/. ]\d{4}/;

const doubtOf = (error: FileError): string =>
  [withLine(error), ...(error.hint === undefined ? [] : [error.hint])].join('; ');

export const withLine = ({ message, where }: FileError): string =>
  where?.line === undefined ? message : `line ${where.line}: ${message}`;

/** For each line, whether it is in a table or names its columns. There can be hundreds of tables. */
function markTables(found: readonly FoundTable[], lines: readonly Line[]): boolean[] {
  const marks = new Array<boolean>(lines.length).fill(false);
  for (const { from, to } of found) marks.fill(true, from, to);
  const listed = found.flatMap((table) =>
    table.kind === 'rows' ? (table.header.listed?.lines ?? []) : (table.names?.line ?? []),
  );
  for (const line of listed) marks[lines.indexOf(line)] = true;
  return marks;
}

/** Lines in a table become blank. */
function outsideTables(found: readonly FoundTable[], lines: readonly Line[]): Line[] {
  const inTable = markTables(found, lines);
  return lines.map((line, n) => (inTable[n] ? { ...line, cells: [] } : line));
}

/** `other`: a date of the file. */
export const noRunDate = ({ text }: OtherDate): string =>
  `no date in the file is known to be that of the run (${JSON.stringify(text)} may be another)`;

/** If no fact is the date of the run, a line may contain it among other words. */
function withLineDate(
  dates: FoundDates,
  { meta }: FileRecord,
  outside: readonly Line[],
  places: DatePlaces,
): FoundDates {
  if (dates.fact || dates.firstRow) return dates;
  const facts = [...meta.values()].map(({ text }) => text.trim());
  const { inLine, other } = findLineDate(outside, places, facts);
  if (!inLine) return { ...dates, other: dates.other ?? other };
  return { ...dates, pools: [...dates.pools, { name: '', texts: [inLine.text] }], inLine };
}

/** `isList`: facts are separated by the delimiter, so a small table could be mistaken for facts. */
interface Description {
  readonly mapping: ParseMapping;
  readonly isList: boolean;
  /** There is no table, and fewer than 60 % of the lines are facts. */
  readonly isProse: boolean;
  readonly doubts: readonly string[];
}

/**
 * Describes as many tables as can be read with the resulting mapping. Leaves out those that cannot, or the smallest.
 * `failure`: why a table was left out; `refusal`: the same with the mapping; `lost`: the lines of those tables.
 */
async function describeReadable(
  found: readonly FoundTable[],
  source: LineSource,
  marks: MarksMapping,
  { read, refuse }: MeasureContext,
): Promise<
  Description & {
    record: FileRecord;
    failure?: FileError | undefined;
    refusal?: FileError | undefined;
    lost: readonly Line[];
  }
> {
  let left = [...found];
  let [failure, refusal]: (FileError | undefined)[] = [];
  // The names and rows of tables that cannot be read are no facts either.
  const inTable = markTables(found, source.lines);
  const outside = source.lines.filter((_, n) => !inTable[n]);
  const end = source.lines.at(-1)?.number;
  const facts = { outside, pairs: findPairs(outside, source.delimiter, { placed: source.placed, end }) };
  for (;;) {
    const described = describeFile(left, source, facts);
    try {
      const record = await read({ ...described.mapping, ...marks });
      const isLeft = markTables(left, source.lines);
      return { record, failure, refusal, lost: source.lines.filter((_, n) => inTable[n] && !isLeft[n]), ...described };
    } catch (thrown) {
      if (!(thrown instanceof FileError)) throw thrown;
      failure ??= thrown;
      refusal ??= left.length === 0 && described.isProse ? proseError(refuse) : withMapping(thrown, described.mapping);
      if (left.length === 0) throw refusal;
      const at = source.lines.findIndex(({ number }) => number === thrown.where?.line);
      const failed = left.find(({ from, to }) => at >= from && at <= to);
      const smallest = left.reduce((a, b) => (b.to - b.from < a.to - a.from ? b : a));
      left = left.filter((table) => table !== (failed ?? smallest));
    }
  }
}

type Facts = { readonly outside: readonly Line[]; readonly pairs: ReturnType<typeof findPairs> };

/** Lines without a name are facts only near the top. */
const UNNAMED_LINES = 60;

function describeFile(found: readonly FoundTable[], source: LineSource, { outside, pairs }: Facts): Description {
  const { lines, delimiter, base } = source;
  const described = describeTables(found, source);
  const titles = new Set(described.flatMap((each) => usedTitles(each, described.length)));
  const top = lines.slice(0, Math.min(found[0]?.from ?? lines.length, UNNAMED_LINES));
  const isFree = (line: Line) => outside.includes(line) && !pairs.read.has(line) && !titles.has(line);
  const beside = found.flatMap((table) => (table.kind === 'rows' ? (table.described?.meta ?? []) : []));
  const meta = [
    ...beside,
    ...pairs.finders.map((finder) => byWords(finder, source)),
    ...findUnnamed(top, source, isFree),
  ];
  const tables = nameTables(described);
  const [only, ...others] = Object.values(tables);
  const mapping: ParseMapping = {
    ...base,
    ...(meta.length > 0 && { meta: meta.length === 1 && meta[0] ? meta[0] : meta }),
    ...(only && others.length === 0 && { table: only }),
    ...(others.length > 0 && { tables }),
  };
  return {
    mapping,
    isList: delimiter !== undefined && pairs.separators.includes(delimiter),
    isProse: described.length === 0 && isProse(lines, pairs.read),
    doubts: pairs.doubts,
  };
}

/** Titles by which a table is found or named. Other titles are facts. */
function usedTitles({ group, table }: DescribedTable, count: number): readonly (Line | undefined)[] {
  const isNamed = table.header !== 'none' && (count > 1 || table.after !== undefined);
  return group.parts.length > 1 || isNamed ? group.titles : [];
}

/** By their titles, if they have any. */
function nameTables(described: readonly DescribedTable[]): Record<string, TableMapping> {
  const named: Record<string, TableMapping> = {};
  for (const [n, { group, table, name: own }] of described.entries()) {
    const [first] = group.parts;
    const level = first?.kind === 'rows' ? first.described?.name : undefined;
    const title = own ?? level ?? (group.parts.length === 1 ? nameIn(group.titles[0]) : undefined);
    const clean = (title ?? '').replace(/[^\p{L}\p{N} _-]+/gu, ' ').trim();
    const name = clean.slice(0, 40) || (n === 0 ? 'readings' : `table ${n + 1}`);
    named[name in named ? `${name} ${n + 1}` : name] = table;
  }
  return named;
}

/** A fact is not a name of a table: its value differs in the next file. */
function nameIn(title: Line | undefined): string | undefined {
  const [name, ...others] = title?.cells.filter((cell) => cell !== '') ?? [];
  return others.length > 0 || /[:=]\s*\S/.test(name ?? '') ? undefined : name;
}

/** More lines would add no other form of a date. */
const MAX_TEXTS = 2000;

const headlessError = (line: Line, refuse: Refuse): FileError =>
  refuse('these lines look like rows of a table without a header', {
    line,
    hint: 'if the file has no header, write `parse: { table: { header: none } }`',
  });

const mixedError = (line: Line, refuse: Refuse): FileError =>
  refuse('rows of several kinds are mixed below this line, and some lines fit none of them', {
    line,
    hint: 'describe one table for each kind, for example `parse: { table: { header: "…", skip: "…" } }`',
  });

const longRowError = ({ line, columns, isAboveRows }: LongRow, refuse: Refuse): FileError =>
  refuse(
    `this row has ${line.cells.length} cells, but the ${isAboveRows ? 'rows below it have' : 'header has'} ${columns}`,
    {
      line,
      hint: `if it is not a row: \`parse: { table: { skip: ${startOf(line.text)} } }\`; if the header lacks names: \`parse: { table: { header: none, columns: […] } }\` with all of them`,
    },
  );

const rowsOf = ({ body }: FoundRows, lines: readonly Line[]): Line[] =>
  lines.slice(body.from, body.to).filter((line) => !isBlank(line));

const cutNumbersError = (line: Line, refuse: Refuse): FileError =>
  refuse('the rows have more cells than names, as if numbers with decimal commas were cut at the comma', {
    line,
    hint: 'export the file with another delimiter or with decimal points',
  });

const namelessError = (line: Line, refuse: Refuse): FileError =>
  refuse('the names cannot be assigned to the columns, so these have no names', {
    line,
    hint: 'name them: `parse: { table: { header: none, columns: […] } }`',
  });

/** Rows that follow a line that is not a row would become facts, or would be lost. */
function interruptedError(found: readonly FoundTable[], lines: readonly Line[], refuse: Refuse): FileError | undefined {
  for (const [n, table] of found.entries()) {
    const odd = lines[table.to];
    if (table.kind !== 'rows' || !odd || isBlank(odd)) continue;
    const between = lines.slice(table.to + 1, found[n + 1]?.from);
    // A longer line is not a title, so the line directly below it does not start another table.
    const isLonger = odd.cells.length > table.body.kinds.length;
    const row = [...between, ...(isLonger ? lines.slice(table.to + 1, table.to + 2) : [])].find((line) =>
      fitsBody(line, table.body),
    );
    if (!row) continue;
    return refuse(`the rows end above this line, but line ${row.number} looks like another row`, {
      line: odd,
      hint: `if the table continues below it: \`parse: { table: { skip: ${startOf(odd.text)} } }\``,
    });
  }
  return undefined;
}

/** A few facts in a text that is mostly something else do not represent the file. */
function isProse(lines: readonly Line[], read: ReadonlySet<Line>): boolean {
  const filled = lines.filter((line) => !isBlank(line) && !isRule(line)).length;
  return read.size * 5 < filled * 3;
}

const proseError = (refuse: Refuse): FileError =>
  refuse('found no table and no list of facts in the file', {
    hint: 'describe the file, for example `parse: { meta: { separator: ":" }, table: { after: "…" } }`',
  });

/** `a,b` above `x,1` can be a table or facts. As facts, its header would become one. */
function twoColumnsError(
  lines: readonly Line[],
  found: readonly FoundTable[],
  delimiter = ',',
  refuse: Refuse,
): FileError | undefined {
  const isPair = (line: Line, second: 'text' | 'number') => kindsOf(line).join() === `text,${second}`;
  // Directly above a table, there are facts.
  const isAbove = (line: Line | undefined) => found.some(({ from }) => line !== undefined && lines[from - 1] === line);
  for (const [header, ...rows] of blocksOf(lines)) {
    if (!header || rows.length === 0 || !isPair(header, 'text') || isAbove(rows.at(-1))) continue;
    if (isFactName(header.cells[0]) && !isQuantity(header.cells[1] ?? '')) continue;
    if (!rows.every((row) => isPair(row, 'number'))) continue;
    return refuse('these lines could be a table of two columns or a list of facts', {
      line: header,
      hint: `write \`parse: { table: {} }\` or \`parse: { meta: { separator: ${JSON.stringify(delimiter)} } }\``,
    });
  }
  return undefined;
}

/** Lines without a blank line between them. */
function blocksOf(lines: readonly Line[]): Line[][] {
  const blocks: Line[][] = [[]];
  for (const line of lines) {
    if (isBlank(line)) blocks.push([]);
    else blocks.at(-1)?.push(line);
  }
  return blocks;
}

/** Without a configured mapping, there is none to correct, so the error also shows the measured one. */
export const withMapping = ({ message, where, hint }: FileError, mapping: ParseMapping): FileError =>
  new FileError(message, {
    ...(where && { where }),
    hint: `${hint ? `${hint}; ` : ''}the file was read with \`${asLine(mapping)}\``,
  });

/** A mapping on one line, to be copied into the configuration. */
const asLine = (mapping: ParseMapping): string =>
  `parse: ${stringify(mapping, { collectionStyle: 'flow', lineWidth: 0 }).trim()}`;
