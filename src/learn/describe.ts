import type { ParseMapping } from '../config/vocabulary.js';
import { areWells } from '../map/plates.js';
import { compileLinePattern } from '../parse/extract/context.js';
import { isBlank, isRule, type Line } from '../parse/lines.js';
import { bareUnit, isUnit, unitInName } from '../parse/values/unit.js';
import { escapeRegex } from '../text.js';
import {
  type AnchoredFile,
  anchorOf,
  generalise,
  hasStart,
  isKeyword,
  lineAbove,
  shapeOf,
  startsOf,
} from './anchors.js';
import { type Aside, setAside } from './aside.js';
import { type Group, groupTables, isFact } from './groups.js';
import { MAX_UNIT_ROWS, unitColumnsOf } from './header.js';
import { isQuantity, kindsOf, mergeKinds } from './kinds.js';
import type { FoundPlate, FoundRows, FoundTable } from './layout.js';

/** How the tables that were found in a file are written in a mapping. */

export type TableMapping = NonNullable<ParseMapping['table']>;

/** `table: T` is short for `tables: { readings: T }`. */
export const mapTables = (
  { table, tables }: ParseMapping,
  change: (table: TableMapping, name: string) => TableMapping,
): ParseMapping => ({
  ...(table && { table: change(table, 'readings') }),
  ...(tables && {
    tables: Object.fromEntries(Object.entries(tables).map(([name, each]) => [name, change(each, name)])),
  }),
});

export interface DescribedFile extends AnchoredFile {
  isComment(line: Line): boolean;
}

export interface DescribedTable {
  readonly group: Group;
  readonly table: TableMapping;
  /** If its lines are within another table. */
  readonly name?: string;
}

/** Tables that no mapping can express are left out. */
export function describeTables(found: readonly FoundTable[], file: DescribedFile): DescribedTable[] {
  const starts = found.map(({ from }) => from);
  const groups = groupTables(found, file.lines);
  return groups.flatMap((group) => describeGroup(group, { ...file, starts }));
}

/** `starts`: the first lines of all tables. */
interface TableFile extends DescribedFile {
  readonly starts: readonly number[];
}

/** One table, or if no pattern fits the titles of the parts, one for each part. */
function describeGroup(group: Group, file: TableFile): DescribedTable[] {
  const table = isPlates(group) ? describePlates(group, file) : isRows(group) ? describeRows(group, file) : undefined;
  const delimiter = group.parts[0]?.delimiter;
  if (table) return withAsides(group, delimiter === undefined ? table : { ...table, delimiter }, file);
  if (group.parts.length === 1) return [];
  return group.parts.flatMap((part, n) => describeGroup({ parts: [part], titles: [group.titles[n]] }, file));
}

/** The table, and tables of the lines among its rows that are not readings. */
function withAsides(group: Group, table: TableMapping, { raw, lines }: DescribedFile): DescribedTable[] {
  const rows = group.parts.filter((part) => part.kind === 'rows');
  const asides = rows.flatMap((part) => part.asides ?? []);
  const [{ header, body } = {}] = rows;
  const isUnits = (line: Line) => !isBlank(line) && !header?.names.includes(line) && !header?.properties.includes(line);
  const units = header?.units === 'nextRow' ? lines.slice(header.from, body?.from).find(isUnits) : undefined;
  const set = setAside(table, joinAsides(asides), (header?.names ?? []).map(raw), units && raw(units));
  return [{ group, table: set.table }, ...set.others.map((other) => ({ group, ...other }))];
}

const joinAsides = (asides: readonly Aside[]): Aside[] =>
  [...new Set(asides.map(({ name }) => name))].map((name) => {
    const parts = asides.filter((aside) => aside.name === name);
    const heading = parts.find((part) => part.heading)?.heading;
    const { column, isUnnamed } = parts[0] ?? {};
    return { name, lines: parts.flatMap(({ lines }) => lines), heading, column, isUnnamed };
  });

const isPlates = (group: Group): group is Group<FoundPlate> => group.parts[0]?.kind === 'plate';
const isRows = (group: Group): group is Group<FoundRows> => group.parts[0]?.kind === 'rows';

function describeRows(group: Group<FoundRows>, file: TableFile): TableMapping | undefined {
  const [first] = group.parts;
  const last = group.parts.at(-1);
  if (!first || !last) return undefined;
  if (first.described) return first.described.mapping;
  const { header, body } = first;
  const end = describeEnd(last, file);
  const breaks = breaksBetween(group, file);
  const until = breaks.length === 0 ? end : [...new Set([end ?? 'blank', ...breaks])];
  const hasRules = group.parts.some(({ from, to }) => file.lines.slice(from, to).some(isRule));
  const skip = [
    ...header.skip.map((line) => skipLine(line, file)),
    ...skipBetween(first, file),
    ...(hasRules ? [RULES] : []),
  ];
  const common = {
    ...(header.rows > 1 && { headerRows: header.rows }),
    ...(header.units === 'inHeader' ? unitColumns(first, file.lines) : { units: header.units }),
    ...(until !== undefined && { until }),
    ...unpivotWells(first),
    ...(first.isTransposed ? { columns: { quantity: 1 } } : nameByCells(first, file.lines)),
    ...(skip.length > 0 && { skip: skip.length === 1 && skip[0] !== undefined ? skip[0] : skip }),
  };
  if (group.parts.length > 1) {
    const titles = group.titles.map((title) => (title ? file.raw(title) : ''));
    const every = titlePattern(titles, 'section');
    if (every === undefined) return undefined;
    const names = header.rows === 0 ? { header: header.listed?.header ?? 'none' } : locateNames(header.names[0], file);
    return { every, ...names, ...common };
  }
  return {
    ...(header.rows === 0
      ? withListed(first, describeStart(first.isNameless ? first.from : body.from, file, [until ?? []].flat()), file)
      : describeHeader(group, file)),
    ...common,
  };
}

/** Drawn lines among names or rows. */
const RULES = '/^[-=_+|* ]+$/';

function skipLine(line: Line, { raw }: DescribedFile): string | number {
  const text = raw(line).trim();
  return isKeyword(text) ? line.number : text;
}

/** Words between rows: other files have others. Without a delimiter, they could be names of columns. */
function skipBetween({ header, body: { between = [], from, to } }: FoundRows, file: DescribedFile) {
  if (between.length === 0) return [];
  const others = file.lines.slice(from, to).filter((line) => !isBlank(line) && !between.includes(line));
  const isDelimited = [...header.names, ...others].every(({ text }) => /[^\t;,|][\t;,|]+[^\t;,|]/.test(text));
  if (isDelimited) return ['/^[^\\t;,|]*[A-Za-z][^\\t;,|]*[\\t;,|]*$/'];
  return [...new Set(between.map((line) => skipLine(line, file)))];
}

/** Rows without names: below the last line above them. The first rows need no start, unless a line above would end them. */
function describeStart(from: number, file: DescribedFile, until: readonly (string | number)[]): TableMapping {
  const { lines, raw } = file;
  const above = lineAbove(lines, from);
  const isEnd = compileLinePattern(until.filter((end) => end !== 'blank'));
  const isEndedAbove = () => lines.slice(0, from).some((line) => isEnd({ ...line, text: raw(line) }));
  if (!above || (firstLine(file) === lines[from] && !isEndedAbove())) return { header: 'none' };
  // Numbers differ in the next file.
  const isFirst = !/\p{L}{2}/u.test(above.text) && firstLine(file) === above;
  return {
    header: 'none',
    after: isFirst ? above.number : (anchorOf(above, file) ?? shapeOf(above, file) ?? above.number),
  };
}

/** Rows directly below the names that are listed need no other start, unless other names are listed above. */
function withListed(
  { header: { listed }, body }: FoundRows,
  start: TableMapping,
  { lines, raw }: DescribedFile,
): TableMapping {
  if (!listed) return start;
  const { after, ...others } = start;
  const isNames = compileLinePattern([listed.header]);
  const first = lines.find((line) => isNames({ ...line, text: raw(line) }));
  const above = lineAbove(lines, body.from);
  const isBelow = above !== undefined && listed.lines.includes(above) && listed.lines[0] === first;
  return { ...others, header: listed.header, ...(!isBelow && after !== undefined && { after }) };
}

/** By its names if no earlier line starts with them, otherwise below its title, otherwise by its number. */
function describeHeader({ parts: [first], titles: [title] }: Group<FoundRows>, file: DescribedFile): TableMapping {
  const [header, ...further] = first?.header.names ?? [];
  // A header of numbers is read only if the mapping gives its start.
  const hasWords = header?.cells.some((cell) => /\p{L}/u.test(cell));
  if (!header || (hasWords && firstLine(file) === header)) return {};
  const located = locateNames(header, file, further.length > 0);
  if (typeof located.header === 'string' || !title) return located;
  const after = anchorOf(title, file);
  return after === undefined ? located : { after };
}

const firstLine = ({ lines, isComment }: DescribedFile): Line | undefined =>
  lines.find((line) => !isComment(line) && !isBlank(line));

function locateNames(header: Line | undefined, { lines, raw }: DescribedFile, isOfGroups = false): TableMapping {
  if (!header) return {};
  const text = raw(header).trimStart();
  const earlier = lines.slice(0, lines.indexOf(header)).map(raw);
  const isUnique = (start: string) => !isKeyword(start) && !earlier.some((line) => hasStart(line, start));
  const [label = '', ...groups] = header.cells;
  const group = groups.find((cell) => cell !== '');
  // The name of a method or sample beside the names of groups: `Method_17,,Area,,RT,`.
  if (isOfGroups && /\d/.test(label) && group !== undefined && text.startsWith(label)) {
    const rest = text.slice(label.length, text.indexOf(group, label.length) + group.length);
    const pattern = `^[^${escapeRegex(rest.charAt(0))}]*${escapeRegex(rest)}`;
    if (!earlier.some((line) => new RegExp(pattern).test(line.trimStart()))) return { header: `/${pattern}/` };
  }
  let end = 0;
  // As few names as possible: a later one may be that of a sample.
  const starts = header.cells.flatMap((name) => {
    if (name === '') return [];
    end = Math.max(end, text.indexOf(name, end) + name.length);
    return [text.slice(0, end)];
  });
  return { header: [...starts, text.trimEnd()].find((start) => start.length > 1 && isUnique(start)) ?? header.number };
}

/** Undefined if the table ends with the first blank line or with the file. */
function describeEnd({ to, from, body }: FoundRows, file: TableFile): string | number | undefined {
  const { lines } = file;
  const next = lines.slice(to).find((line) => !isBlank(line));
  const isRow = (line: Line) => isBlank(line) || mergeKinds(body.kinds, kindsOf(line)) !== undefined;
  const areRows = () => lines.slice(to).every(isRow) && !file.starts.some((start) => start >= to);
  const below = () => (next ? locateEnd(next, file, from, to) : undefined);
  if (lines.slice(from, to).some(isBlank)) return !next || areRows() ? 'eof' : below();
  if (!next) return undefined;
  if (next === lines[to]) return below();
  return areRows() ? 'eof' : undefined;
}

/** Lines that end a part above the title of the next one: `[step]` above `Flow sweep - 2`. */
const breaksBetween = ({ parts, titles }: Group<FoundRows>, file: DescribedFile): (string | number)[] =>
  parts.slice(0, -1).flatMap(({ from, to }, n) => {
    const title = titles[n + 1];
    const next = file.lines[to];
    return !title || !next || next === title || isBlank(next) ? [] : [locateEnd(next, file, from, to)];
  });

/** The line below a table by its words, or else by its shape, unless a row looks like that. Patterns see comment marks. */
function locateEnd(next: Line, { lines, raw }: DescribedFile, from: number, to: number): string | number {
  const rows = lines.slice(from, to).map((line) => raw(line).trimStart());
  const start = startsOf(raw(next)).find((words) => !rows.some((row) => row.startsWith(words)));
  if (start !== undefined) return start;
  const shape = `^${generalise(raw(next).trim().slice(0, MAX_SHAPE))}`;
  return rows.some((row) => new RegExp(shape).test(row)) ? next.number : `/${shape.replace('^', '^\\s*')}/`;
}

const MAX_SHAPE = 60;

/** These have no unit, or per cent. */
const RATIO = /\b(?:%?rsd|%?cv|ratio|n)\s*%?$|%/i;

/** The columns that are named after units, have nothing else, and stand to the right of a column of numbers. */
function unitColumns({ header, body }: FoundRows, lines: readonly Line[]): TableMapping {
  const [names, ...others] = header.names;
  if (!names || others.length > 0) return {};
  const rows = lines.slice(body.from, Math.min(body.to, body.from + MAX_UNIT_ROWS));
  const hasUnits = (n: number) => {
    const units = rows.map(({ cells }) => bareUnit(cells[n])).filter((unit) => unit !== undefined);
    return units.length > 0 && units.every(isUnit);
  };
  const isUnits = (name: string | undefined) => /(?:^|[ _.])(?:units?|einheit)$/i.test(name ?? '');
  // The only unit, before several columns of numbers, can be theirs.
  const isLeft = (n: number) =>
    body.kinds[n - 1] === 'number' &&
    !RATIO.test(names.cells[n - 1] ?? '') &&
    unitInName(names.cells[n - 1] ?? '') === undefined &&
    (names.cells.filter(isUnits).length > 1 ||
      body.kinds.slice(n + 1).filter((kind) => kind === 'number').length < 2 ||
      isQuantity(names.cells[n - 1] ?? ''));
  // One of many can be empty or have a unit that is not known.
  const columns = [...new Set(names.cells.filter(isUnits))].filter((name) => {
    const places = names.cells.flatMap((cell, n) => (cell === name ? [n] : []));
    return places.every(isLeft) && places.filter(hasUnits).length * 2 > places.length;
  });
  const [column, ...further] = columns;
  return column === undefined ? {} : { units: { column: further.length === 0 ? column : columns } };
}

const WELL = /^[A-P]\d{1,2}$/;
const MIN_WELLS = 6;

/** Columns without a name whose cells say what they are: wells, or units, which are those of the numbers to their left. */
function nameByCells({ header, body }: FoundRows, lines: readonly Line[]): TableMapping {
  const rows = lines.slice(body.from, Math.min(body.to, body.from + MAX_UNIT_ROWS));
  const names = header.names.flatMap(({ cells }) => cells.map((cell) => cell.toLowerCase()));
  const isUnnamed = (n: number) => header.names.every(({ cells }) => !cells[n]);
  const areThose = (n: number) => {
    const texts = rows.flatMap(({ cells }) => cells[n] || []);
    return texts.length >= MIN_WELLS && areWells(texts);
  };
  const wells = body.kinds.flatMap((kind, n) => (kind === 'text' && isUnnamed(n) && areThose(n) ? [n] : []));
  const beside = unitColumnsOf(lines, body, header);
  const places = beside.length > 0 ? beside : unitColumnsOf(lines, body, header, false).slice(0, 1);
  const nameOf = (n: number) =>
    places.length === 1 ? 'unit' : `${header.names.at(-1)?.cells[n - 1] ?? ''} unit`.trim();
  const units = new Map(places.map((n) => [nameOf(n), n + 1]));
  const hasUnits =
    units.size > 0 && units.size === places.length && ![...units.keys()].some((name) => names.includes(name));
  const columns = {
    ...(wells.length === 1 && !names.includes('well') && { well: (wells[0] ?? 0) + 1 }),
    ...(hasUnits && Object.fromEntries(units)),
  };
  if (Object.keys(columns).length === 0) return {};
  const [unit = '', ...others] = units.keys();
  return {
    ...(hasUnits && beside.length > 0 && { units: { column: others.length === 0 ? unit : [unit, ...others] } }),
    columns,
  };
}

/** Columns named after wells are one quantity, measured in each well. */
function unpivotWells({ header }: FoundRows): TableMapping {
  const names = header.rows === 1 ? (header.names[0]?.cells ?? []) : [];
  const wells = names.filter((name) => WELL.test(name));
  return wells.length >= MIN_WELLS && areWells(wells) ? { unpivot: '/^(?<well>[A-P]\\d{1,2})$/' } : {};
}

/** One plate, or several under titles. */
function describePlates({ parts, titles }: Group<FoundPlate>, file: DescribedFile): TableMapping | undefined {
  const [first] = parts;
  const last = parts.at(-1);
  if (!first || !last) return undefined;
  const { lines, raw } = file;
  const until = describePlatesEnd(parts, first.from, last.to, lines);
  const header = lines[first.from];
  const isDistant = parts.some(({ from }, n) => {
    const title = titles[n];
    return !title || lines.indexOf(title) < from - 2;
  });
  const start = isDistant && header ? { header: `/^${startPattern(raw(header))}/` } : {};
  const grid = gridOf(header, first.names?.texts);
  if (parts.length > 1) {
    const names = titles.map((title) => (title ? raw(title) : ''));
    const every = titlePattern(names, 'label');
    return every === undefined ? undefined : { every, ...start, grid, ...until };
  }
  const [title] = titles;
  const pattern = title && !isFact(title) && titlePattern([raw(title)], 'label');
  if (!title || !pattern) return { ...locateNames(header, file), grid, ...until };
  const isFirst = lines.find((line) => raw(line).trim() === raw(title).trim()) === title;
  return { after: isFirst ? pattern : title.number, ...start, grid, ...until };
}

function describePlatesEnd(
  parts: readonly FoundPlate[],
  from: number,
  to: number,
  lines: readonly Line[],
): TableMapping {
  const next = lines.slice(to).find((line) => !isBlank(line));
  const hasGaps = parts.some((part) => part.hasGaps);
  if (next && (hasGaps || next === lines[to])) return { until: locatePlateEnd(next, lines, from, to) };
  return hasGaps ? { until: 'eof' } : {};
}

/** Plates side by side have the names in the line above them, or numbers. */
function gridOf(header: Line | undefined, names: readonly string[] | undefined): true | string[] {
  const plates = header?.cells.filter((cell) => cell === '1').length ?? 0;
  if (plates < 2) return true;
  return names ? [...names] : Array.from({ length: plates }, (_, n) => `plate ${n + 1}`);
}

/** A header of plate columns by its beginning, up to the 1. */
const startPattern = (text: string): string => escapeRegex(/^\D*1\D/.exec(text)?.[0] ?? text.slice(0, 10));

/** The line below a plate by the start of its text. A letter is not enough, because plate rows start with one. */
function locatePlateEnd(next: Line, lines: readonly Line[], from: number, to: number): string | number {
  const rows = lines.slice(from, to).map(({ text }) => text.trimStart());
  const start = startsOf(next.text).find((words) => !rows.some((row) => row.startsWith(words)));
  if (start !== undefined) return start;
  const pattern = `^${startPattern(next.text)}`;
  const matchesRow = lines.slice(from + 1, to).some((line) => new RegExp(pattern).test(line.text));
  return matchesRow ? next.number : `/${pattern}/`;
}

/** A pattern for titles that differ in one place; the group captures what differs. */
function titlePattern(titles: readonly string[], group: string): string | undefined {
  const texts = [...new Set(titles.map((title) => title.trim()))];
  if (texts.length !== titles.length || texts.length === 0) return undefined;
  const named = new Set(texts.map((text) => /^(\p{L}[\p{L}\p{N}_]*)([;,|\t])+(?=[^;,|\t])/u.exec(text)?.[0]));
  const [start = ''] = named;
  // `Sweep;1`, `Sweep;2`: a name and its value.
  if (named.size === 1 && start !== '' && texts.length > 1) {
    const [name, mark] = [start.replace(/\W+$/u, ''), escapeRegex(start.at(-1) ?? '')];
    return `/^${escapeRegex(start)}(?<${name}>[^${mark}]+?)[${mark}\\s]*$/`;
  }
  const skeletons = new Set(texts.map(generalise));
  // Some titles are centred above their table.
  const begin = titles.some((title) => /^\s/.test(title)) ? '^\\s*' : '^';
  if (skeletons.size === 1 && texts.length > 1) return `/${begin}(?<${group}>${[...skeletons][0]})\\s*$/`;
  const common = commonStart(texts);
  const [, close = ''] = /([)\]]*)$/.exec(texts[0] ?? '') ?? [];
  const end = texts.every((text) => text.endsWith(close)) ? escapeRegex(close) : '';
  if (texts.length > 1 && common.replace(/\W/g, '').length >= 4)
    return `/${begin}${escapeRegex(common)}(?<${group}>.+?)${end}${titles.some((title) => title.includes('"')) ? '["\\s]' : '\\s'}*$/`;
  if (texts.length > 12) return undefined;
  // A drawn line says nothing, and the value of a fact differs in the next file.
  const said = texts
    .filter((text) => !RULE.test(text))
    .map((text) => (/[:=]\s*[-+\d]/.test(text) ? generalise : escapeRegex)(text.replace(/\s*:$/, '')));
  const colons = texts.some((text) => text.endsWith(':')) ? '[:\\s]*' : '\\s*';
  const drawn = said.length < texts.length ? `${RULE.source.slice(1, -1)}|` : '';
  return said.length === 0
    ? undefined
    : `/${begin}(?:${drawn}(?<${group}>${said.join('|')}))${colons}$/`.replace(/\(\?:(\(\?<.*\))\)(?=\\s|\[:)/, '$1');
}

const RULE = /^[-=_+|*#~]{3,}$/;

/** Up to the end of a word: of `Group: A` and `Group: B`, `Group: `. */
function commonStart(texts: readonly string[]): string {
  const [first = '', ...others] = texts;
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length--;
  return first.slice(0, length).replace(/[\p{L}\p{N}]+$/u, '');
}
