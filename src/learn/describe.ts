import { regexSource } from '../config/grammar.js';
import type { ParseMapping } from '../config/vocabulary.js';
import { isBlank, type Line } from '../parse/lines.js';
import { type Found, type FoundPlate, type FoundRows, isRule, kindsOf, merge } from './layout.js';
import { escaped, titlePattern } from './measured.js';

export type TableMapping = NonNullable<ParseMapping['table']>;

/** A file whose tables are described. */
export interface Described {
  readonly lines: readonly Line[];
  /** A line as the file has it, with its comment mark. */
  raw(line: Line): string;
  isComment(line: Line): boolean;
}

/** The words for where a table begins, ends and has its names. */
export function describeRows(group: Group<FoundRows>, file: Described): TableMapping | undefined {
  const [first] = group.parts;
  const last = group.parts.at(-1);
  if (!first || !last) return undefined;
  const { heading, body } = first;
  const hasRules = file.lines.slice(first.from, last.to).some(isRule);
  const end = describeEnd(last, file.lines);
  const breaks = breaksOf(group, file.lines);
  const until = breaks.length === 0 ? end : [...new Set([end ?? 'blank', ...breaks])];
  const names = {
    ...(heading.rows > 1 && { headerRows: heading.rows }),
    ...(heading.units !== 'inHeader' && { units: heading.units }),
    ...(until !== undefined && { until }),
    ...unpivotOf(first),
  };
  // The line that begins a part is passed over in any case.
  const between = heading.skip.filter((line) => group.parts.length === 1 || line !== heading.title);
  const skip = [...between.map((line) => skipBy(line, file)), ...(hasRules ? [RULES] : [])];
  const skipped = skip.length > 0 && { skip: skip.length === 1 && skip[0] !== undefined ? skip[0] : skip };
  if (group.parts.length > 1) {
    const every = titlePattern(
      group.titles.map((title) => (title ? file.raw(title) : '')),
      'section',
    );
    if (every === undefined) return undefined;
    return {
      every,
      ...(heading.rows === 0 ? { header: 'none' } : headerBy(heading.names[0], file)),
      ...names,
    };
  }
  const place = heading.rows === 0 ? describeStart(body.from, file) : describeHeader(group, file);
  return {
    ...place,
    ...names,
    ...skipped,
  };
}

/** A line that is only drawn, among the names or the rows. */
const RULES = '/^[-=_+|* ]+$/';

function skipBy(line: Line, { raw }: Described): string | number {
  const text = raw(line).trim();
  return isWord(text) ? line.number : text;
}

/** Rows without names: below the last line above them. */
function describeStart(from: number, { lines, isComment, raw }: Described): TableMapping {
  const own = lines.filter((line) => !isComment(line));
  const isTop = own.find((line) => !isBlank(line)) === lines[from];
  const above = lines.slice(0, from).findLast((line) => !isBlank(line));
  if (isTop || !above) return { header: 'none' };
  const text = raw(above).trim();
  const isFirst = lines.find((line) => raw(line).trimStart().startsWith(text)) === above;
  const isName = isFirst && text.length <= 60 && !isWord(text) && !/\d{3}/.test(text);
  return { header: 'none', after: isName ? text : above.number };
}

/** By its first names, if no line above begins so too; else below its title; else by its number. */
function describeHeader(
  { parts: [first], titles: [title] }: Group<FoundRows>,
  file: Described,
): TableMapping {
  const [header] = first?.heading.names ?? [];
  const { lines, raw, isComment } = file;
  if (!header) return {};
  const own = lines.filter((line) => !isComment(line));
  if (own.find((line) => !isBlank(line)) === header) return {};
  const by = headerBy(header, file);
  if (typeof by.header === 'string' || !title) return by;
  const text = raw(title).trim();
  const isFirst = lines.find((line) => raw(line).trimStart().startsWith(text)) === title;
  return isFirst && !isWord(text) ? { after: text } : by;
}

function headerBy(header: Line | undefined, { lines, raw }: Described): TableMapping {
  if (!header) return {};
  const text = raw(header).trimStart();
  const name = header.cells.find((cell) => cell !== '') ?? '';
  const earlier = lines.slice(0, lines.indexOf(header)).map((line) => raw(line).trimStart());
  const isOnly = (start: string) => !isWord(start) && !earlier.some((line) => line.startsWith(start));
  const starts = [text.slice(0, text.indexOf(name) + name.length), text.trimEnd()];
  return { header: starts.find((start) => start.length > 1 && isOnly(start)) ?? header.number };
}

/** What a mapping would not take for the beginning of a line. */
const isWord = (start: string): boolean =>
  regexSource(start) !== undefined || ['', 'first', 'none', 'blank', 'eof'].includes(start);

/** Undefined where the first blank line ends the table, or the file does. */
function describeEnd({ to, from, body }: FoundRows, lines: readonly Line[]): string | number | undefined {
  const next = lines.slice(to).find((line) => !isBlank(line));
  const hasBlanks = lines.slice(from, to).some(isBlank);
  const isRow = (line: Line) => isBlank(line) || merge(body.kinds, kindsOf(line)) !== undefined;
  const below = () => (next ? endBy(next, lines, from, to) : undefined);
  if (hasBlanks) return !next || lines.slice(to).every(isRow) ? 'eof' : below();
  if (!next) return undefined;
  if (next === lines[to]) return below();
  return lines.slice(to).every(isRow) ? 'eof' : undefined;
}

/** What ends a part before the line that begins the next one: `[step]` above `Flow sweep - 2`. */
const breaksOf = ({ parts, titles }: Group<FoundRows>, lines: readonly Line[]): (string | number)[] =>
  parts.slice(0, -1).flatMap(({ from, to }, n) => {
    const title = titles[n + 1];
    const next = lines[to];
    return !title || !next || next === title || isBlank(next) ? [] : [endBy(next, lines, from, to)];
  });

/** The line below a table, by how it begins, unless a row begins so too. */
function endBy(next: Line, lines: readonly Line[], from: number, to: number): string | number {
  const text = next.text.trim();
  const word = /^\W*[\p{L}\p{N}_]+\W?/u.exec(text)?.[0].trim() ?? text;
  const isRow = (start: string) =>
    lines.slice(from, to).some((line) => line.text.trimStart().startsWith(start));
  const start = [word, text].find((each) => /\p{L}/u.test(each) && !isWord(each) && !isRow(each));
  return start ?? next.number;
}

const WELL = /^[A-P]\d{1,2}$/;

/** Columns that are wells are one quantity, measured in each of them. */
function unpivotOf({ heading }: FoundRows): TableMapping {
  const names = heading.rows === 1 ? (heading.names[0]?.cells ?? []) : [];
  return names.filter((name) => WELL.test(name)).length >= 6 ? { unpivot: '/^(?<well>[A-P]\\d{1,2})$/' } : {};
}

/** `Temperature: 25.3 °C` is another one in every file, and names none. */
const isReading = ({ text }: Line): boolean => /[:=].*\d[.,]\d/.test(text);

/** A plate, or several under titles of their own. */
export function describePlates(
  { parts, titles }: Group<FoundPlate>,
  file: Described,
): TableMapping | undefined {
  const [first] = parts;
  const last = parts.at(-1);
  if (!first || !last) return undefined;
  const { lines, raw } = file;
  const next = lines.slice(last.to).find((line) => !isBlank(line));
  const until = parts.some(({ hasGaps }) => hasGaps)
    ? { until: next ? exactly(next, lines, first.from, last.to) : 'eof' }
    : next && next === lines[last.to]
      ? { until: exactly(next, lines, first.from, last.to) }
      : {};
  const names = titles.map((title) => (title ? raw(title) : ''));
  const header = lines[first.from];
  const isFurther = parts.some(({ from }, n) => {
    const title = titles[n];
    return !title || lines.indexOf(title) < from - 2;
  });
  const grid = labelsOf(header);
  const start = isFurther && header ? { header: `/^${startOf(raw(header))}/` } : {};
  if (parts.length === 1) {
    const [title] = titles;
    const pattern = title && !isReading(title) && titlePattern([raw(title)], 'label');
    if (!title || !pattern) return { ...(header ? headerBy(header, file) : {}), grid, ...until };
    const isFirst = lines.find((line) => raw(line).trim() === raw(title).trim()) === title;
    return { after: isFirst ? pattern : title.number, ...start, grid, ...until };
  }
  const every = titlePattern(names, 'label');
  return every === undefined ? undefined : { every, ...start, grid, ...until };
}

/** Plates side by side are told apart by their place. */
function labelsOf(header: Line | undefined): true | string[] {
  const plates = header?.cells.filter((cell) => cell === '1').length ?? 0;
  return plates < 2 ? true : Array.from({ length: plates }, (_, n) => `plate ${n + 1}`);
}

/** The line with the numbers begins with what stands before them, then 1. */
const startOf = (text: string): string => escaped(/^\D*1\D/.exec(text)?.[0] ?? text.slice(0, 10));

/** Within a plate, the line that ends it is told by all of its beginning: rows begin with letters, too. */
function exactly(next: Line, lines: readonly Line[], from: number, to: number): string | number {
  const text = next.text.slice(0, 30);
  const isRow = lines.slice(from, to).some((line) => line.text.trimStart().startsWith(text.trim()));
  if (/\p{L}/u.test(text) && !isRow && !isWord(text.trim())) return text.trim();
  const pattern = `/^${startOf(next.text)}/`;
  return lines.slice(from + 1, to).some((line) => new RegExp(pattern.slice(1, -1)).test(line.text))
    ? next.number
    : pattern;
}

/** Stretches of a file that are one table: the same columns under titles of their own, or the plates of a run. */
export interface Group<T extends Found = Found> {
  readonly parts: readonly T[];
  /** The line above each part that says what it is; none where a part has no such line. */
  readonly titles: readonly (Line | undefined)[];
}

export function groupTables(found: readonly Found[], lines: readonly Line[]): Group[] {
  const groups: { parts: Found[]; titles: (Line | undefined)[] }[] = [];
  for (const [n, next] of found.entries()) {
    const title = titleOf(next, lines, found[n - 1]?.to ?? 0);
    const open = groups.at(-1);
    if (open && belongs(next, title, open)) {
      open.parts.push(next);
      open.titles.push(title);
    } else groups.push({ parts: [next], titles: [title] });
  }
  return groups;
}

function belongs(next: Found, title: Line | undefined, { parts, titles }: Group): boolean {
  const [first] = parts;
  // Without a title nothing tells where one part ends and the next begins.
  if (!first || !title || titles[0] === undefined || first.kind !== next.kind) return false;
  return first.kind === 'plate' || (next.kind === 'rows' && isContinued(first, next));
}

/** The same columns, under the same names or under none. */
function isContinued(first: FoundRows, next: FoundRows): boolean {
  if (merge(first.body.kinds, next.body.kinds) === undefined) return false;
  return next.heading.rows === 0 || namesOf(next) === namesOf(first);
}

const namesOf = ({ heading }: FoundRows): string => heading.names.map(({ text }) => text.trim()).join('\n');

/** The line above a table, where it is a few words by itself; for rows whose names stand further up, the line between. */
function titleOf(found: Found, lines: readonly Line[], top: number): Line | undefined {
  const between = found.kind === 'rows' && found.heading.skip.length > 0 ? found.heading.title : undefined;
  if (between) return between;
  for (let index = found.from - 1; index >= top; index--) {
    const line = lines[index];
    if (!line || isBlank(line)) continue;
    const filled = line.cells.filter((cell) => cell !== '');
    return filled.length <= 2 && line.text.trim().length <= 100 ? line : undefined;
  }
  return undefined;
}

export const isPlates = (group: Group): group is Group<FoundPlate> => group.parts[0]?.kind === 'plate';
export const isRows = (group: Group): group is Group<FoundRows> => group.parts[0]?.kind === 'rows';
