import type { ParseMapping } from '../config/vocabulary.js';
import type { FileError } from '../errors.js';
import type { FileRecord } from '../model.js';
import { compileSplit } from '../parse/cells.js';
import type { Line, Refuse } from '../parse/lines.js';
import { bareUnit, isUnit, unitInName } from '../parse/values/unit.js';
import { wordsIn } from '../text.js';
import { factorsIn } from './column-units.js';
import { kindOf } from './kinds.js';
import { type Fact, isWords, LABEL, openOddLines, PAIR, PATH, SAYS_NAME } from './odd-lines.js';
import { type Objection, objectToTable } from './odd-tables.js';
import { type FinderMapping, isRunningText } from './pieces.js';

/** Compares what was read with the text of the file, however it was read, because a wrong value is worse than none. */

interface Net {
  /** Without the facts that are wrong. */
  readonly mapping: ParseMapping;
  readonly record: FileRecord;
  /** For people: what was left out and what may be wrong. */
  readonly doubts: readonly string[];
  /** If so much is wrong that the file was not understood. */
  readonly refusal: FileError | undefined;
}

interface NetContext {
  /** Outside tables that are read. */
  readonly lines: readonly Line[];
  /** Those in tables that cannot be read. */
  readonly lost: ReadonlySet<Line>;
  /** The first lines of the file. */
  readonly top: readonly Line[];
  readonly delimiter: string | undefined;
  readonly refuse: Refuse;
  read(mapping: ParseMapping): Promise<FileRecord>;
}

/** More names would make the mapping unreadable. Where so many are wrong, no fact of their lines is read. */
const MAX_EXCEPT = 100;
/** Fewer wrong facts can be one odd line. */
const MIN_WRONG = 10;

/** Leaves out what is wrong, and says so. */
export async function leaveOutWrong(mapping: ParseMapping, record: FileRecord, context: NetContext): Promise<Net> {
  const objections = findObjections(record, context);
  const isTableWrong = ({ table, isWrong }: Objection) => table !== undefined && isWrong === true;
  const wrong = new Set(objections.flatMap(({ fact, isWrong }) => (fact !== undefined && isWrong ? [fact] : [])));
  const all = new Set([...record.meta.keys()].filter((name) => !wrong.has(name)).map(withoutNumber));
  // A name cannot be left out in one place and kept in another.
  const names = new Set([...wrong].map(withoutNumber).filter((name) => !all.has(name)));
  const left = names.size === 0 ? mapping : withoutFacts(mapping, names);
  const read = left === mapping ? record : await context.read(left);
  const isKept = ({ fact = '' }: Objection) => read.meta.get(fact)?.text === record.meta.get(fact)?.text;
  const many = wrong.size >= MIN_WRONG && wrong.size * 2 > record.meta.size;
  const unlike = objections.find(isTableWrong);
  return {
    mapping: left,
    record: read,
    doubts: describe(objections, record, isKept),
    refusal: unlike
      ? context.refuse(describeTable(unlike), { hint: 'describe it, for example `parse: { table: { header: "…" } }`' })
      : many
        ? context.refuse(`${wrong.size} of ${record.meta.size} facts in the file were not understood`, {
            hint: 'describe them, for example `parse: { meta: { separator: ":" } }`',
          })
        : undefined,
  };
}

function withoutFacts(mapping: ParseMapping, names: ReadonlySet<string>): ParseMapping {
  const { meta = [], ...rest } = mapping;
  const finders = [meta].flat().flatMap((finder): FinderMapping[] => {
    if (finder.match !== undefined) {
      const groups = [...finder.match.matchAll(/\(\?<(\w+)>/g)].map(([, name = '']) => name);
      return groups.length > 0 && groups.every((name) => names.has(name)) ? [] : [finder];
    }
    if (finder.cells !== undefined) {
      const cells = Object.entries(finder.cells).filter(([name]) => !names.has(name));
      return cells.length === 0 ? [] : [{ ...finder, cells: Object.fromEntries(cells) }];
    }
    return names.size > MAX_EXCEPT ? [] : [{ ...finder, except: [...[finder.except ?? []].flat(), ...names] }];
  });
  const [only, ...others] = finders;
  return { ...rest, ...(only && { meta: others.length === 0 ? only : finders }) };
}

/** More would hide the other doubts. */
const MAX_LISTED = 12;
const MAX_SHOWN = 40;

/** Facts with the same reason are one doubt. */
function describe(
  objections: readonly Objection[],
  { meta }: Read,
  isKept: (objection: Objection) => boolean,
): readonly string[] {
  const groups = new Map<string, Map<string, string>>();
  const doubts: string[] = [];
  for (const objection of objections) {
    const { fact, reason } = objection;
    if (fact === undefined) doubts.push(describeTable(objection));
    else if (reason !== IS_READ) {
      const group = `${isKept(objection) ? 'facts that may be wrong' : 'left out'}, because ${reason}`;
      const known = groups.get(group) ?? new Map<string, string>();
      groups.set(group, known);
      const name = withoutNumber(fact);
      if (!known.has(name)) known.set(name, (meta.get(fact)?.text ?? '').trim());
    }
  }
  for (const [group, facts] of groups) {
    const more = facts.size > MAX_LISTED ? ` and ${facts.size - MAX_LISTED} more` : '';
    const shown = [...facts]
      .slice(0, MAX_LISTED)
      .map(([name, text]) => `${JSON.stringify(name)} (${quoteStart(text)})`);
    doubts.push(`${group}: ${shown.join(', ')}${more}`);
  }
  return doubts;
}

const quoteStart = (text: string): string =>
  JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);

const describeTable = ({ table = '', column, reason }: Objection): string =>
  column === undefined
    ? `the table ${JSON.stringify(table)} may be wrong: ${reason}`
    : `the column ${JSON.stringify(column)} of ${JSON.stringify(table)} may be wrong: ${reason}`;

type Read = Pick<FileRecord, 'meta' | 'tables'>;

const findObjections = (record: Read, context: NetContext): Objection[] => [
  ...objectToFacts(record, context),
  ...record.tables.flatMap((table) => objectToTable(table, context.top, context.delimiter)),
  ...objectToUnscaled(record),
];

/** A factor whose name is that of no column can concern any number. */
function objectToUnscaled({ meta, tables }: Read): Objection[] {
  const factors = factorsIn(meta);
  if (factors.size === 0) return [];
  const factorOf = (column: string) => factors.get(wordsIn(column)) ?? factors.get(`${wordsIn(column)} axis`);
  const written = (factor: string) => `${JSON.stringify(factor)} (${meta.get(factor)?.text})`;
  const named = tables.flatMap(({ name: table, columns }) =>
    columns.flatMap(({ name: column }) => {
      const factor = factorOf(column);
      return factor === undefined ? [] : [{ table, column, factor }];
    }),
  );
  const others = [...factors.values()].filter((factor) => named.every((each) => each.factor !== factor));
  const unclear = tables.filter(({ rows }) => rows.some((row) => row.some(({ value }) => typeof value === 'number')));
  return [
    ...named.map(({ table, column, factor }) => ({
      ...{ table, column },
      reason: `its numbers are as written, not multiplied by ${written(factor)}`,
    })),
    ...others.flatMap((factor) =>
      unclear.map(({ name: table }) => ({
        table,
        reason: `its numbers are as written, and some may have to be multiplied by ${written(factor)}`,
      })),
    ),
  ];
}

interface Context {
  /** Of facts and columns. */
  readonly factNames: ReadonlySet<string>;
  readonly columnNames: ReadonlySet<string>;
  /** What separates cells. */
  readonly sign: string | undefined;
}

type Check = readonly [reason: string, fits: (fact: Fact, context: Context) => boolean];

/** Nothing is lost, so there is nothing to say. */
const IS_READ = 'its parts are facts of their own';

/** Why a name and its value are not a fact. */
const WRONG: readonly Check[] = [
  ['the name is not a word', ({ name }) => isNoName(name) || PATH.test(name)],
  ['the value is another name', isAnotherName],
  ['the value is only a colon or an equals sign', ({ text }) => /^[:=]$/.test(text)],
  // The unit of a column is written like a fact: `Humidity,%rh`.
  [
    'the value is only a unit',
    ({ name, text, isText }, { columnNames }) => isText && !columnNames.has(folded(name)) && isOnlyUnit(name, text),
  ],
  [
    'the name has a unit, but the value is a word',
    ({ name, text, isText }) => isText && isNameOfNumber(name) && isWordy(text),
  ],
  ['a cell was cut at a sign that is no delimiter', ({ name, text }) => CELL_ADDRESS.test(name) && /;\S*;/.test(text)],
  ['the value repeats the name', ({ name, text, isText }) => isText && isRepeated(name, text)],
  ['a bracket is open, so the line was cut', ({ name, text }) => hasOpenBracket(name, text)],
  ['the value is a placeholder', ({ text }) => PLACEHOLDER.test(text)],
  ['the line is a message of a log', isInMessage],
  [IS_READ, isReadAsPair],
  ['the name contains a value', ({ name, line }) => VALUE_IN_NAME.test(name) || (line !== undefined && arePairs(line))],
  ['a number, a time or a word was cut', isCut],
];

const DOUBTFUL: readonly Check[] = [
  ['the value is several cells of the line', isJoined],
  ['the value contains other names with values', ({ text, isText }) => isText && hasPairs(text)],
];

const CELL_ADDRESS = /^[A-Z]{1,2}\d+$/;
const VALUE_IN_NAME =
  /\S\s{3,}(?![[(]|-\p{L})\S|\S\s+[=:]\s+(?![-\d.]+$)\S|(?<!\d)(?:\d{4}-\d\d-\d\d|\d{1,2}([./])\d{1,2}\1\d{4})(?!\d)/u;
const PLACEHOLDER = /^\{\p{L}[\p{L} _]*\}$/u;

/** `12:03 Valve changed, Old:OFF`, or such a message behind other words. */
function isInMessage({ before, line }: Fact): boolean {
  return line !== undefined && ((LOG.test(line.text) && /\p{L}{2}/u.test(before)) || MESSAGE.test(before));
}

const CLOCK = '\\d{1,2}:\\d\\d(?::\\d\\d(?:[.,]\\d+)?)?(?: ?[AaPp][Mm])?';
const LOG = new RegExp(`^\\W*(?:\\d{1,4}[-/.]\\d{1,2}[-/.]\\d{1,4}[ T]+)?${CLOCK}\\W?\\s+\\p{L}{2}`, 'u');
const MESSAGE = new RegExp(`(?:^|\\s)${CLOCK}\\s+\\p{L}+ \\p{Ll}{2}[^:=,;]*[,;]`, 'u');

/** The name is a pair that another finder reads: `ID: 7` before `Mode: WB`. */
function isReadAsPair({ name }: Fact, { factNames }: Context): boolean {
  const [first = '', ...others] = name.split(/[:=]\s/);
  return others.length > 0 && factNames.has(folded(first));
}
/** `HEM 0`, `LIP 1+`, `ICT 0`: each cell is a name and its value. */
const arePairs = ({ cells }: Line): boolean => cells.length > 2 && cells.every((cell) => /^\p{L}+ \d\S*$/u.test(cell));
const folded = (text: string): string =>
  text
    .normalize('NFKC')
    .trim()
    .toLowerCase()
    .replace(/\s*[:=]$/, '');

const withoutNumber = (name: string): string => name.replace(/ \(\d+\)$/, '');

/** `[min]` is a unit. */
const isNoName = (name: string): boolean =>
  !/\p{L}|^[<>#≤≥]/u.test(name) || /^(?:number|date)$/.test(kindOf(name)) || isUnitInBrackets(withoutNumber(name));

const isUnitInBrackets = (name: string): boolean => /^[[(].*[\])]$/.test(name) && isUnit(bareUnit(name) ?? '');

/** A label, the name of another fact, or one of the names of columns in a row of them. */
function isAnotherName({ name, text, isText }: Fact, { factNames, columnNames }: Context): boolean {
  if (LABEL.test(text) && !PATH.test(text)) return !name.startsWith('heading');
  const [own, other] = [folded(name), folded(text)];
  if (!isText || own === other) return false;
  return (factNames.has(other) && !SAYS_NAME.test(name)) || (columnNames.has(own) && columnNames.has(other));
}

/** `Wavelength (nm)`, unlike `Serial number (S/N)` */
const isNameOfNumber = (name: string): boolean =>
  unitInName(withoutNumber(name)) !== undefined && !/serial|s\/n/i.test(name);
const isWordy = (text: string): boolean => /\p{L}{3}/u.test(text) && !/^\W*\d[\d.,]*(?:\s|$)/.test(text);

/** Symbols of letters are also words, and abbreviations of persons, gases and places. */
function isOnlyUnit(name: string, text: string): boolean {
  const unit = bareUnit(text) ?? '';
  if (SAYS_NAME.test(name) || UNITS_NAME.test(name) || !isUnit(unit)) return false;
  return unit === text ? /[°µμ%Ω]|\p{Ll}\/|\/\p{Ll}/u.test(text) : !/^\W*\d/.test(text);
}

const UNITS_NAME = /einheit|unidad|eenhe|единиц|単位|单位/i;

function isRepeated(name: string, text: string): boolean {
  const words = wordsIn(name);
  // A single word can be its own default: `User: USER`.
  return /[ [(]/.test(words + text) && words === wordsIn(text.replace(/\[[^\]]*\]|\([^)]*\)/g, ''));
}

const MAX_TEXT = 2000;

function hasOpenBracket(name: string, text: string): boolean {
  if (text.length > MAX_TEXT || !/[()[\]{}]/.test(name + text)) return false;
  return !isPaired(name) || (!isPaired(text) && !isPaired(name + text));
}

const isPaired = (text: string): boolean =>
  ['()', '[]', '{}'].every(([open = '', close = '']) => text.split(open).length === text.split(close).length);

function isCut({ name, text, before, between, after, line }: Fact, { sign }: Pick<Context, 'sign'>): boolean {
  if (!line) return false;
  const isNumber = /\d$/.test(text) && /^[.,:/-]\d/.test(after) && after[0] !== sign;
  const isTime = /^[:/-]$/.test(between) && /\d$/.test(name) && /^\d/.test(text);
  const isUnitCut = /\p{L}$/u.test(text) && /^\/\p{L}/u.test(after) && sign !== '/';
  const isWord = ([one = '', other = '']: readonly string[]) =>
    /[\p{L}\p{N}]$/u.test(one) && /^[\p{L}\p{N}]/u.test(other);
  return (
    isNumber ||
    isTime ||
    isUnitCut ||
    [
      [before, name],
      [name, between],
      [between, text],
      [text, after],
    ].some(isWord)
  );
}

/** Not a list of numbers: those are one value. */
function isJoined({ text, isText, line }: Fact, { sign }: Context): boolean {
  if (!isText) return false;
  if (text.includes('\t')) return true;
  if (sign === undefined || sign.trim() === '' || !text.includes(sign) || !line || line.cells.includes(text))
    return false;
  return (
    !isRunningText(line) && !text.includes(`${sign} `) && isFew(text.split(sign).filter((part) => part !== '').length)
  );
}

const isFew = (cells: number): boolean => cells > 1 && cells < 10;

const hasPairs = (text: string): boolean => !PATH.test(text) && (text.match(PAIR)?.length ?? 0) > 1;

function objectToFacts({ meta, tables }: Read, { lines, lost, delimiter }: NetContext): Objection[] {
  const columns = tables.flatMap((table) => table.columns.filter(({ invented }) => !invented));
  const context: Context = {
    factNames: new Set(
      [...meta.keys()].filter((name) => !CELL_ADDRESS.test(name)).map((name) => folded(withoutNumber(name))),
    ),
    columnNames: new Set(columns.map(({ name }) => folded(withoutNumber(name)))),
    sign: delimiter === undefined ? undefined : compileSplit(delimiter).text,
  };
  const objections: Objection[] = [];
  const facts = locate(meta, lines, context);
  const oddLine = openOddLines(lines, [...facts.values()], lost);
  const isSwapped = areSwapped([...facts.values()]);
  for (const [name, fact] of facts) {
    if (fact.text === '' || name === 'date' || meta.get(name)?.value === null) continue;
    const [wrong] = WRONG.find(([, fits]) => fits(fact, context)) ?? (isSwapped && isWords(fact) ? [SWAPPED] : []);
    const odd = wrong === undefined ? fact.line && oddLine(fact.line) : { reason: wrong, isWrong: true };
    const [doubt] = odd === undefined ? (DOUBTFUL.find(([, fits]) => fits(fact, context)) ?? []) : [];
    if (odd) objections.push({ fact: name, ...odd });
    else if (doubt !== undefined) objections.push({ fact: name, reason: doubt });
  }
  return objections;
}

const SWAPPED = 'values seem to stand before their names';
const MIN_SWAPPED = 3;

/** `3677,88  Mean`, several times: other names of the file are values, too. */
const areSwapped = (facts: readonly Fact[]): boolean =>
  facts.filter((fact) => isWords(fact) && kindOf(fact.name) === 'number').length >= MIN_SWAPPED;

/** Facts are mostly in the order of their lines, so the search for each starts at the line of the one before. */
function locate(meta: Read['meta'], lines: readonly Line[], context: Context): Map<string, Fact> {
  let start = 0;
  const facts = new Map<string, Fact>();
  for (const [written, { value, text: raw }] of meta) {
    const [name, text] = [withoutNumber(written), raw.trim()];
    const isText = typeof value === 'string' && kindOf(text) === 'text';
    let found: Fact = { name, text, isText, before: '', between: '', after: '', line: undefined };
    for (let n = 0; n < lines.length; n++) {
      const at = (start + n) % lines.length;
      const line = lines[at];
      const place = line && findPlace(line, found, context);
      if (!place || (place.isCut && found.line)) continue;
      found = place.fact;
      // The same letters can be a part of other words elsewhere.
      if (place.isCut) continue;
      start = at;
      break;
    }
    facts.set(written, found);
  }
  return facts;
}

/** More places would take too long, and real lines have few. */
const MAX_PLACES = 8;

/** Where a line has name and value, as whole words if it has them so. */
function findPlace(line: Line, fact: Fact, context: Context): { fact: Fact; isCut: boolean } | undefined {
  const { text: all } = line;
  let cut: Fact | undefined;
  let places = 0;
  for (let from = all.indexOf(fact.name); from >= 0; from = all.indexOf(fact.name, from + 1)) {
    const end = from + fact.name.length;
    for (let to = all.indexOf(fact.text, end); to >= 0; to = all.indexOf(fact.text, to + 1)) {
      const parts = {
        before: all.slice(0, from),
        between: all.slice(end, to),
        after: all.slice(to + fact.text.length),
      };
      const found = { ...fact, ...parts, line };
      if (!isCut(found, context)) return { fact: found, isCut: false };
      cut ??= found;
      places += 1;
      if (places >= MAX_PLACES) return { fact: cut, isCut: true };
    }
  }
  return cut && { fact: cut, isCut: true };
}
