import type { ParseMapping } from '../config/vocabulary.js';
import { lineFormat, splitLine } from '../parse/cells.js';
import type { Line } from '../parse/lines.js';
import { unitInName } from '../parse/values/unit.js';
import { escapeRegex, unique } from '../text.js';
import type { TableMapping } from './describe.js';
import { isMeasure, isWord, kindsOf } from './kinds.js';
import type { FinderMapping } from './pieces.js';

/**
 * Lines of several kinds, each named by its first cell: `H,Operator,Ada`, `D,1,0.52`, `$GPGGA,…`. Each kind is a table of
 * its own, or facts.
 */

type Spec = NonNullable<ParseMapping['facts']>[string];
type Columns = Record<string, Spec>;

/** All lines with the same first cell. */
interface Kind {
  readonly code: string;
  readonly lines: readonly Line[];
}

export interface TypedLines {
  readonly mapping: ParseMapping;
  readonly doubts: readonly string[];
}

const DELIMITERS = [',', ';', 'tab', '|', 'whitespace'] as const;
/** A code is short and has capital letters, or starts with a sign. Words in small letters are names. */
const CODE = /^(?:[$#!@%&*:]{1,2}[A-Za-z][A-Za-z0-9_]{0,9}|[A-Z][A-Z0-9_]{0,9})$/;
/** Fewer lines can have the same first word by chance. */
const MIN_LINES = 3;

/** Undefined if a line has no code, or if all kinds look the same: then the codes are a column of one table. */
export function describeTypedLines(texts: readonly string[]): TypedLines | undefined {
  const [first = ''] = texts.filter((text) => text.trim() !== '');
  if (!/^\s*["']?[$#!@%&*:A-Z]/.test(first)) return undefined;
  for (const delimiter of DELIMITERS) {
    const lines = splitTyped(texts, delimiter);
    if (!lines) continue;
    const kinds = kindsIn(lines);
    if (areKinds(kinds, lines, delimiter)) return describe(kinds, lines, delimiter);
  }
  return undefined;
}

/** Undefined if a line does not start with a code. */
function splitTyped(texts: readonly string[], delimiter: string): Line[] | undefined {
  const format = lineFormat(delimiter, '"');
  const lines: Line[] = [];
  const last = texts.findLastIndex((text) => text.trim() !== '');
  for (const [n, text] of texts.entries()) {
    // `END`
    if (text.trim() === '' || (n === last && n > 0 && CODE.test(text.trim()))) continue;
    const { cells } = splitLine({ number: n + 1, text, cells: [] }, format);
    if (cells.length < 2 || !CODE.test(cells[0] ?? '')) return undefined;
    lines.push({ number: n + 1, text, cells: withoutEmptyEnd(cells) });
  }
  return lines;
}

const withoutEmptyEnd = (cells: readonly string[]): string[] =>
  cells.slice(0, cells.findLastIndex((cell) => cell !== '') + 1);

function kindsIn(lines: readonly Line[]): Kind[] {
  const kinds = new Map<string, Line[]>();
  for (const line of lines) {
    const [code = ''] = line.cells;
    const known = kinds.get(code);
    if (known) known.push(line);
    else kinds.set(code, [line]);
  }
  return [...kinds].map(([code, own]) => ({ code, lines: own }));
}

/** Some kind has rows of numbers, most lines are of kinds that repeat, and these differ in their cells. */
function areKinds(kinds: readonly Kind[], lines: readonly Line[], delimiter: string): boolean {
  const repeated = kinds.filter((kind) => kind.lines.length >= MIN_LINES);
  const inRepeated = kinds.reduce((sum, { lines: own }) => sum + (own.length > 1 ? own.length : 0), 0);
  const rows = repeated.filter((kind) => !isPairs(kind));
  const hasNumbers = rows.some((kind) => kind.lines.some((line) => kindsOf(line).some(isMeasure)));
  if (kinds.length < 2 || !hasNumbers || inRepeated * 2 < lines.length) return false;
  // Names in the first line of each kind: rows within rows.
  if (rows.length > 1 && rows.every(hasOwnNames)) return false;
  const widths = rows.map(widthOf);
  if (delimiter === 'whitespace' && widths.includes(undefined)) return false;
  // One header for several kinds: they are rows of one table, and the codes a column of it.
  const isShared = ({ cells }: Line) =>
    widths.filter((width) => width === undefined || width === cells.length).length > 1;
  if (kinds.some((kind) => kind.lines.length === 1 && isNames(kind.lines[0]) && kind.lines.some(isShared)))
    return false;
  return rows.length === 1 || new Set(rows.filter((_, n) => widths[n] !== undefined).map(shapeOf)).size > 1;
}

/** The number of cells, if it is the same in all lines. */
function widthOf({ lines }: Kind): number | undefined {
  const width = lines[0]?.cells.length;
  return lines.every(({ cells }) => cells.length === width) ? width : undefined;
}

const shapeOf = (kind: Kind): string => {
  const [first] = kind.lines;
  return `${widthOf(kind)} ${first ? kindsOf(first).slice(1).map(isMeasure) : ''}`;
};

const isNames = (line: Line | undefined): boolean => {
  const cells = line?.cells.slice(1) ?? [];
  return cells.length > 1 && cells.every(isWord) && new Set(cells).size === cells.length;
};

/** Names in the first line of a kind, numbers below them. */
const hasOwnNames = ({ lines: [first, ...others] }: Kind): boolean =>
  isNames(first) && others.length > 0 && others.every((line) => kindsOf(line).slice(1).some(isMeasure));

/** Lines of a code, a name and a value, possibly with its unit. */
function isPairs({ lines }: Kind): boolean {
  const names = lines.map(({ cells }) => cells[1] ?? '');
  if (new Set(names).size < names.length || !names.every((name) => isWord(name) && /\p{L}{2}/u.test(name)))
    return false;
  return lines.every(
    ({ cells }) => cells.length === 3 || (cells.length === 4 && isNumber(cells[2]) && isWord(cells[3] ?? '')),
  );
}

const isNumber = (cell: string | undefined): boolean =>
  cell !== undefined && cell !== '' && Number.isFinite(Number(cell));

function describe(kinds: readonly Kind[], lines: readonly Line[], delimiter: string): TypedLines {
  const facts: NonNullable<ParseMapping['facts']> = {};
  const tables: Record<string, TableMapping> = {};
  const doubts: string[] = [];
  const headers = new Set(kinds.flatMap((kind) => headerOf(kind, kinds, lines)?.cells[0] ?? []));
  for (const kind of kinds) {
    if (headers.has(kind.code)) continue;
    if (isPairs(kind)) addPairs(kind, facts);
    else if (kind.lines.length === 1) addFields(kind, facts);
    else {
      const { table, isNamed } = tableOf(kind, kinds, lines);
      tables[nameOf(kind.code)] = table;
      if (!isNamed) doubts.push(`the file has no names for the columns of the lines that start with ${kind.code}`);
    }
  }
  return { mapping: { format: 'records', delimiter, facts, tables }, doubts };
}

const nameOf = (code: string): string => code.replace(/^[^\p{L}]+/u, '');

/** Whether a path finds the line by this name. */
const isFindable = (name: string): boolean => !/[[\]="'/]/.test(name);

function addPairs({ code, lines }: Kind, facts: Record<string, Spec>): void {
  for (const { cells } of lines) {
    const [, written = '', value, unit] = cells;
    if (!isFindable(written)) continue;
    const line = `/${code}[2=${written}]`;
    const inName = isNumber(value) ? unitInName(written) : undefined;
    const name = unique(inName?.name ?? written.replace(/\s*[:=]$/, ''), facts);
    const given = unit === undefined ? inName?.unit : { from: `${line}/4` };
    facts[name] = given === undefined ? `${line}/3` : { from: `${line}/3`, unit: given };
  }
}

/** The cells of a line that occurs once. A number with a unit is one fact. */
function addFields({ code, lines: [line] }: Kind, facts: Record<string, Spec>): void {
  const [, ...cells] = line?.cells ?? [];
  const [value, unit] = cells;
  if (cells.length === 2 && isNumber(value) && isWord(unit ?? ''))
    facts[unique(nameOf(code), facts)] = { from: `/${code}/2`, unit: { from: `/${code}/3` } };
  else
    for (const [n, cell] of cells.entries()) {
      const name = cells.length === 1 ? nameOf(code) : `${nameOf(code)} ${n + 2}`;
      if (/[\p{L}\p{N}]/u.test(cell)) facts[unique(name, facts)] = `/${code}/${n + 2}`;
    }
}

/** The line directly above the first line of a kind that has a word for each of its cells. */
function headerOf(
  { code, lines: [first, ...others] }: Kind,
  kinds: readonly Kind[],
  lines: readonly Line[],
): Line | undefined {
  const above = first && lines[lines.indexOf(first) - 1];
  if (!first || others.length === 0 || !above || above.cells[0] === code || !isNames(above)) return undefined;
  const same = kinds.find((kind) => kind.code === above.cells[0])?.lines ?? [];
  const isOnly = same.every(({ text }) => text === above.text);
  const width = [first, ...others].reduce((most, { cells }) => Math.max(most, cells.length), 0);
  const hasNumbers = kindsOf(first).slice(1).some(isMeasure);
  return isOnly && hasNumbers && above.cells.length === width ? above : undefined;
}

function tableOf(
  kind: Kind,
  kinds: readonly Kind[],
  lines: readonly Line[],
): { table: TableMapping; isNamed: boolean } {
  const { code, lines: own } = kind;
  const ownNames = hasOwnNames(kind) ? own[0] : undefined;
  const header = ownNames ?? headerOf(kind, kinds, lines);
  const rows = ownNames ? own.slice(1) : own;
  const width = own.reduce((most, { cells }) => Math.max(most, cells.length), 0);
  const columns: Columns = {};
  const outer = outerOf(kind, kinds, lines);
  if (outer) columns[`${nameOf(outer.code)} 2`] = `/${outer.code}/2`;
  let measure: string | undefined;
  for (let n = 1; n < width; n++) {
    const isNumeric = rows.every(({ cells }) => cells[n] === undefined || cells[n] === '' || isNumber(cells[n]));
    const isFilled = rows.some(({ cells }) => (cells[n] ?? '') !== '');
    if (!isFilled) continue;
    const written = header?.cells[n] ?? '';
    const inName = isNumeric ? unitInName(written) : undefined;
    const name = unique(inName?.name ?? (written || `${nameOf(code)} ${n + 1}`), columns);
    columns[name] = inName ? { from: String(n + 1), unit: inName.unit } : String(n + 1);
    if (isNumeric && rows.every(({ cells }) => isNumber(cells[n]))) measure ??= name;
  }
  const where = ownNames && measure !== undefined ? { [measure]: '/^[-+.\\d]/' } : undefined;
  return { table: { rows: code, columns, ...(where && { where }) }, isNamed: header !== undefined };
}

/** A kind whose lines each have several lines of this kind below them, and differ in their first cell. */
function outerOf({ code, lines: own }: Kind, kinds: readonly Kind[], lines: readonly Line[]): Kind | undefined {
  const candidates = kinds.filter((kind) => {
    const keys = new Set(kind.lines.map(({ cells }) => cells[1]));
    const isFirst = (kind.lines[0]?.number ?? 0) < (own[0]?.number ?? 0);
    return kind.code !== code && kind.lines.length > 1 && keys.size === kind.lines.length && isFirst && !isPairs(kind);
  });
  return candidates.find((kind) => {
    if (kind.lines.length >= own.length) return false;
    const groups = new Set<number>();
    let group = 0;
    for (const { cells } of lines) {
      if (cells[0] === kind.code) group++;
      else if (cells[0] === code) groups.add(group);
    }
    return groups.size > 1;
  });
}

/**
 * Logs of boreholes (Log ASCII Standard): `BS .MM  200.0 : BIT SIZE` is a name, a unit, a value and a description. The
 * sections start with `~`: V(ersion), W(ell), C(urves), P(arameters), O(ther), A (the rows).
 */

/** The first dot ends the name, the first blank after it the unit. Only in lines with a colon. */
const NAME_AND_UNIT = String.raw`\s*\.(?<=^[^.:]*\.)(?=[^\s:]*\s.*:)|(?<=^[^.:]*\.[^\s:]*)\s+(?=.*:)`;
/** The first colon after a blank ends the value, or else the last one: a value can be a time. */
const COLON = String.raw`\s*:(?<=\s:)(?<!\s:.*\s:)\s*|:\s*(?=[^:]*$)(?<!\s:.*)(?<=^[^.:]*\.[^\s:]*\s.*)`;
const FIRST_COLON = String.raw`\s*:\s*(?<=^[^.:]*\.[^\s:]*\s[^:]*:\s*)`;

const FACT: FinderMapping = { separator: `/${NAME_AND_UNIT}|${COLON}/`, value: 3, unit: 2 };
/** Version 1.2 writes the description of the well before the colon, apart from these. */
const WELL_1_2: FinderMapping = {
  after: '/^~[Ww]/',
  until: '/^~[CPOAcpoa]/',
  separator: `/${NAME_AND_UNIT}|${FIRST_COLON}/`,
  value: 4,
  except: ['STRT', 'STOP', 'STEP', 'NULL'],
};

/** Undefined if the file is no such log. */
export function describeLas(texts: readonly string[]): { mapping: ParseMapping; doubts: string[] } | undefined {
  const isFilled = (text: string) => text.trim() !== '' && !text.trimStart().startsWith('#');
  if (!/^~V/i.test(texts.find(isFilled) ?? '')) return undefined;
  const filled = texts.filter(isFilled);
  const version = writtenFor('VERS', filled);
  if (version === undefined) return undefined;
  const start = (section: RegExp) => filled.findIndex((text) => section.test(text));
  const [curves, parameters, rows] = [start(/^~C/i), start(/^~P/i), start(/^~A/i)];
  const next = filled.findIndex((text, n) => n > curves && text.startsWith('~'));
  const names = curves < 0 ? [] : filled.slice(curves + 1, next).map((text) => text.split('.')[0]?.trim() ?? '');
  const cells = rows < 0 ? [] : filled.slice(rows + 1).map((text) => text.trim().split(/\s+/));
  const isTable = cells.length > 0 && cells.every(({ length }) => length === names.length);
  // A mnemonic that other sections have too would be another name.
  const isOnce = (name: string) => filled.filter((text) => text.split('.')[0]?.trim() === name).length === 1;
  const header = names.every((name) => name !== '' && isOnce(name))
    ? `/^\\s*(?<name>${names.map(escapeRegex).join('|')})\\s*\\.(?<unit>\\S*)\\s.*:/`
    : 'none';
  const empty = Number(writtenFor('NULL', filled) ?? Number.NaN);
  const missing = [...new Set(cells.flat().filter((cell) => Number(cell) === empty))];
  const mapping: ParseMapping = {
    delimiter: 'whitespace',
    comment: '#',
    meta: [
      ...(Number(version) < 2 ? [WELL_1_2] : []),
      { until: '/^~[COAcoa]/', ...FACT },
      ...(parameters > curves && curves >= 0 ? [{ after: '/^~[Pp]/', until: '/^~[COAcoa]/', ...FACT }] : []),
    ],
    ...(missing.length > 0 && { missing }),
    ...(isTable && { table: { after: '/^~[Aa]/', header } }),
  };
  const isRead = isTable || rows < 0;
  const doubt =
    'the rows below ~A do not have one cell for each name in the section ~C, so they are not in this mapping';
  return { mapping, doubts: isRead ? [] : [doubt] };
}

const writtenFor = (name: string, texts: readonly string[]): string | undefined =>
  texts.map((text) => new RegExp(`^\\s*${name}\\s*\\.\\S*\\s+(\\S+)\\s*:`, 'i').exec(text)?.[1]).find(Boolean);
