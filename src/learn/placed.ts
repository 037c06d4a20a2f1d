import { compileSplit, withoutTrailingEmpty } from '../parse/cells.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';
import { escapeRegex } from '../text.js';
import { isFactName, isMeasure, isQuantity, isSubject, isWord, kindOf } from './kinds.js';
import type { FinderMapping } from './pieces.js';

/**
 * Facts whose value does not stand to the right of their name: before it, below it, or in a line whose positions another
 * line names. They look like rows of tables, so they are found before those.
 */
export interface PlacedFacts {
  readonly finders: readonly FinderMapping[];
  /** The numbers of their lines. */
  readonly lines: ReadonlySet<number>;
  /** What other finders would take for names in these lines. */
  readonly except: readonly string[];
}

interface Found {
  readonly finders: readonly FinderMapping[];
  readonly numbers: readonly number[];
  readonly except?: readonly string[];
}

/** Further down, there are rows. Longer lines are data. */
const [MAX_SEEN, MAX_LENGTH] = [400, 300];

/** `comment`: the mark before some of the lines. */
export function findPlaced(texts: readonly string[], comment?: string): PlacedFacts {
  const seen = texts.slice(0, MAX_SEEN).map((text) => (text.length > MAX_LENGTH ? OTHER : text.trimEnd()));
  const bare =
    comment === undefined
      ? seen
      : seen.map((text) => (text.startsWith(comment) ? text.slice(comment.length).replace(/^ /, '') : text));
  const start = comment === undefined ? '' : `(?:${escapeRegex(comment)})?\\s*`;
  const marked = findBelowMarks(seen, '');
  const below = marked.length === 0 && comment !== undefined ? findBelowMarks(bare, start) : marked;
  const found = [
    ...findValuesFirst(seen),
    ...(below.length > 0 ? below : findAlternating(seen)),
    ...findGroupedFacts(bare, start),
    ...findRowsOfNames(seen, texts.length),
  ];
  return {
    finders: found.flatMap(({ finders }) => finders),
    lines: new Set(found.flatMap(({ numbers }) => numbers)),
    except: found.flatMap(({ except = [] }) => except),
  };
}

/** Stands for a line that is no fact. */
const OTHER = '\u0000';

/** A letter of any alphabet: patterns have no flag `u`, with which V8 cannot match in linear time. */
const LETTER = '[A-Za-z\\u0080-\\uffff]';

const NUMBER = '[-+]?(?:\\d[\\d.,]*|\\.\\d+)(?:[eE][-+]?\\d+)?';
const IS_NUMBER = new RegExp(`^${NUMBER}$`);
const isNumber = (text: string): boolean => IS_NUMBER.test(text);

/** What stands between a value and its name. After blanks and delimiters, only numbers count: other cells are rows. */
const SIGNS = [
  { line: /^\s*([^!\s][^!]*?)\s*!\s*(\p{L}[^!]*)$/u, sign: '!', isStrict: false },
  { line: /^\s*([^#\s][^#]*?)\s*#\s*(\p{L}[^#]*)$/u, sign: '#', isStrict: false },
  { line: /^\s*([^/\s].*?)\s+\/\/\s*(\p{L}.*)$/u, sign: '//', isStrict: false },
  { line: /^\s*([^/\s].*?)\s+\/ +(\p{L}[^/]*)$/u, sign: '/', isStrict: false },
  { line: /^\s*([-+.\d][^\t;|]*?)\s*(?:\t\s*)(\p{L}[^\t;|]*)$/u, sign: 'tab', isStrict: true },
  { line: /^\s*([-+.\d][^\t;|]*?)\s*;\s*(\p{L}[^\t;|]*)$/u, sign: ';', isStrict: true },
  { line: /^\s*([-+.\d][^\t;|]*?)\s*\|\s*(\p{L}[^\t;|]*)$/u, sign: '|', isStrict: true },
  { line: /^\s*([-+.\d](?:[^\s;|]| (?! ))*) {2,}(\p{L}(?:[^\s;|:=]| (?! ))*)$/u, sign: 'spaces', isStrict: true },
] as const;

/** Two lines are enough if each has several values and as many names. */
const [MIN_LINES, MIN_LEGENDS] = [3, 2];

interface Commented {
  readonly number: number;
  readonly text: string;
  readonly value: string;
  readonly name: string;
}

function findValuesFirst(texts: readonly string[]): Found[] {
  // Most signs are in no line.
  const whole = texts.join('\n');
  return SIGNS.flatMap(({ line, sign, isStrict }) => {
    const found: Found[] = [];
    if (!hasSign(whole, sign)) return found;
    let run: Commented[] = [];
    for (const [n, text] of [...texts, OTHER].entries()) {
      const [, value = '', name = ''] = (hasSign(text, sign) ? line.exec(text) : undefined) ?? [];
      if (name !== '') {
        run.push({ number: n + 1, text, value, name });
        continue;
      }
      if (run.length >= MIN_LEGENDS && !(isStrict && isHeader(texts[n - run.length - 1] ?? '', sign)))
        found.push(...describeRun(run, sign, isStrict));
      run = [];
    }
    return found;
  });
}

const hasSign = (text: string, sign: string): boolean =>
  text.includes(sign === 'tab' ? '\t' : sign === 'spaces' ? '  ' : sign);

/** Names of columns directly above: then the lines are rows. */
function isHeader(text: string, sign: string): boolean {
  const cells = compileSplit(sign).all(text);
  return cells.length > 1 && cells.every((cell) => cell !== '' && isWord(cell));
}

/** A number, also with a unit. */
const isMeasured = (text: string): boolean => isNumber(text) || hasUnit(text);

/** A value before its name: a number or a date, or anything before the name of a fact. */
const isSure = ({ value, name, text }: Commented): boolean =>
  isMeasured(value) || kindOf(value) === 'date' || (isFactName(name) && text.includes(`${value} `));

function hasUnit(text: string): boolean {
  const [, unit] = new RegExp(`^${NUMBER}\\s*(\\D.*)$`).exec(text) ?? [];
  return unit !== undefined && isUnit(bareUnit(unit) ?? '');
}

function describeRun(run: readonly Commented[], sign: string, isStrict: boolean): Found[] {
  const lists = run.map((line) => namesOfValues(line));
  const single = run.filter((_, n) => lists[n] === 'one');
  const legends = run.flatMap((line, n) => {
    const names = lists[n];
    return names === 'one' || names === undefined || isStrict ? [] : [{ line, names }];
  });
  if (run.length < MIN_LINES && legends.length < run.length) return [];
  const names = [...single.map(({ name }) => name), ...legends.flatMap((legend) => legend.names)];
  const areNames = new Set(names).size === names.length && single.every(({ name }) => isName(name));
  const measured = single.filter(isSure).length + legends.length;
  if (!areNames || measured * 2 < run.length || (single.length + legends.length) * 5 < run.length * 3) return [];
  if (isStrict && !areSettings(single, run.length)) return [];
  const separator = sign.startsWith('/') ? `/\\s+${escapeRegex(sign)}\\s*/` : sign;
  const every = EVERY[sign] ?? `/^\\s*[^\\s${sign}][^${sign}]*${sign}\\s*${LETTER}/`;
  return [
    {
      finders: [
        ...legends.map(({ line, names: own }) => describeLegend(line, own, sign)),
        ...(single.length > 0 ? [{ every, separator, name: 2 }] : []),
      ],
      // Lines whose values cannot be assigned to names are no rows either.
      numbers: run.map(({ number }) => number),
    },
  ];
}

const EVERY: Readonly<Record<string, string>> = {
  '//': `/\\S\\s+\\/\\/\\s*${LETTER}/`,
  '/': `/\\S\\s+\\/ +${LETTER}/`,
  tab: `/^\\s*[-+.\\d][^\\t]*\\t\\s*${LETTER}[^\\t]*$/`,
  spaces: `/^\\s*[-+.\\d][^\\t;|]* {2,}${LETTER}[^\\t;|]*$/`,
  ';': `/^\\s*[-+.\\d][^;]*;\\s*${LETTER}/`,
  '|': `/^\\s*[-+.\\d][^|]*\\|\\s*${LETTER}/`,
};

/** `one`: a single value. Undefined if there are more or fewer names than values. */
function namesOfValues({ value, name }: Commented): 'one' | string[] | undefined {
  const values = value.split(/[\s,]+/);
  if (values.length < 2 || !values.every(isNumber)) return 'one';
  const names = name.split(name.includes(',') ? /\s*,\s*/ : /\s+/);
  return names.length === values.length && names.every((each) => /^\p{L}/u.test(each)) ? names : undefined;
}

/** Words that say what a value is: not a sentence, not a unit, not another value. */
const isName = (name: string): boolean =>
  name.length <= 60 &&
  /\p{L}{2}/u.test(name) &&
  !/[.!?]$|[:=]\s*\S/.test(name) &&
  !isUnit(name) &&
  kindOf(name) === 'text';

/** Numbers that are no count of rows, some of them with a unit, or most with a name of a quantity. */
function areSettings(lines: readonly Commented[], all: number): boolean {
  const isCounted = lines.every(({ value }, n) => n === 0 || Number(value) > Number(lines[n - 1]?.value));
  if (lines.length < all || isCounted || !lines.every(({ value }) => isMeasured(value))) return false;
  return lines.some(({ value }) => hasUnit(value)) || lines.filter(({ name }) => isQuantity(name)).length * 2 > all;
}

/** `100 0.5 2.0 ! points, step, start` */
const describeLegend = ({ text }: Commented, names: readonly string[], sign: string): FinderMapping => ({
  line: `/${escapeRegex(text.slice(text.indexOf(sign))).replace(/\s+/g, '\\s+')}\\s*$/`,
  delimiter: '/(?<=\\S)[\\s,]+/',
  cells: Object.fromEntries(names.map((name, n) => [name, n + 1])),
});

/** Names on lines of their own, each marked, with a value on the next line. `#`: only where the comment is the name. */
const MARKS = [
  '\\$[A-Za-z][\\w ]*:',
  `\\[${LETTER}[^\\]=:]*\\]`,
  `<${LETTER}[^<>=:]*>`,
  `#\\s?${LETTER}[^#:=\\t,;|]*`,
  `&?${LETTER}[^:=\\t,;|]*:`,
].map((source) => ({ source, mark: new RegExp(`^${source}$`) }));

/** `start`: a pattern for the comment mark before names. */
function findBelowMarks(texts: readonly string[], start: string): Found[] {
  // Most lines are seen to have no mark at once.
  const possible = texts.flatMap((text, n) => (text.startsWith('#') || ':]>'.includes(text.at(-1) ?? ' ') ? [n] : []));
  if (possible.length < MIN_LINES) return [];
  for (const { source, mark } of MARKS) {
    const marked = possible.filter((n) => mark.test(texts[n] ?? ''));
    if (marked.length < MIN_LINES) continue;
    const isNext = (at: number) => (texts[at] ?? '').trim() === '' || mark.test(texts[at] ?? '');
    // The last value can also be directly above a table or a pair.
    const isEnd = (n: number) => isNext(n + 2) || (n === marked.at(-1) && PAIR_OR_ROW.test(texts[n + 2] ?? ''));
    const named = marked.filter((n) => isLoneValue(texts[n + 1]) && !isNext(n + 1) && isEnd(n));
    const names = new Set(named.map((n) => texts[n]));
    // Names of sections are among them, so fewer values are enough if they are indented.
    const isIndented = named.length > 1 && named.every((n) => /^\s/.test(texts[n + 1] ?? ''));
    const isMost = isIndented ? named.length * 3 > marked.length : named.length * 2 >= marked.length;
    // A name that repeats is that of a section.
    if ((named.length < MIN_LINES && !isIndented) || !isMost || names.size < named.length) continue;
    const every = `/^${start}${source}\\s*$/`;
    const except = [...names].flatMap((name) => (name?.endsWith(':') ? name.slice(0, -1).trim() : []));
    return [{ finders: [{ every, separator: 'nextLine' }], numbers: named.flatMap((n) => [n + 1, n + 2]), except }];
  }
  return [];
}

const PAIR_OR_ROW = /^\s*\p{L}[^:=]*[:=]\s+\S|[,;|\t][^,;|\t]+[,;|\t]| {2,}\S+ {2,}\S/u;

/** More names would make the pattern unreadable. */
const MAX_ALTERNATING = 60;

/**
 * Names on lines of their own without a mark, each with a value on the next line. Numbers and dates show which lines are
 * names. Between two of those pairs, an even number of lines are pairs too, and a single line is a heading.
 */
function findAlternating(texts: readonly string[]): Found[] {
  const first = texts.findIndex((_, n) => isAlternatingPair(texts, n));
  if (first < 0) return [];
  const names: number[] = [];
  const headings: number[] = [];
  let sure = 0;
  let open: number[] = [];
  let at = first;
  for (; at < texts.length; at++) {
    if (isAlternatingPair(texts, at)) {
      if (open.length % 2 === 0) names.push(...open.filter((_, n) => n % 2 === 0));
      else if (open.length === 1) headings.push(...open);
      else return [];
      names.push(at++);
      sure++;
      open = [];
    } else if (isAlternatingText(texts[at]) && !isMeasure(kindOf(texts[at]?.trim() ?? ''))) open.push(at);
    else break;
  }
  const written = names.map((n) => texts[n]?.trim() ?? '');
  const isSure = sure >= MIN_LINES && sure * 5 >= names.length * 2 && names.length <= MAX_ALTERNATING;
  if (!isSure || new Set(written).size < written.length) return [];
  const all = [...names, ...headings].map((n) => escapeRegex(texts[n]?.trim() ?? ''));
  const every = `/^\\s*(?:${all.join('|')})\\s*$/`;
  return [{ finders: [{ every, separator: 'nextLine' }], numbers: names.flatMap((n) => [n + 1, n + 2]) }];
}

/** Words above a number or a date that has no other below it: a column of numbers is no fact. */
function isAlternatingPair(texts: readonly string[], n: number): boolean {
  // First, because most lines are rows.
  if (!ONE_WORDS.test(texts[n] ?? '') || !/\d/.test(texts[n + 1] ?? '')) return false;
  const [name = '', value = '', next = ''] = [texts[n], texts[n + 1], texts[n + 2]].map((text) => text?.trim());
  const isNamed = isAlternatingText(texts[n]) && kindOf(name) === 'text' && !isUnit(name);
  return isNamed && isMeasure(kindOf(value)) && !isMeasure(kindOf(next));
}

const ONE_WORDS = /^\s*[^\s\d,;|+.-][^,\t;|]*$/;

/** A single cell that is no sentence, no pair and no comment. */
const isAlternatingText = (text = ''): boolean =>
  /^\s*[\p{L}\p{N}([]/u.test(text) && !/[:=\t;|]|, | {2}\S|\S{2}[.!?]$/.test(text.trim()) && text.length <= 60;

/** Lines of three cells among pairs: a word that several of them start with, then name and value, or value and name. */
function findGroupedFacts(texts: readonly string[], start: string): Found[] {
  return (['tab', ',', ';'] as const).flatMap((sign) => {
    // First, because most files have no such lines.
    const three = THREE_CELLS[sign];
    if (!texts.some((text, n) => three.test(text) && three.test(texts[n + 1] ?? ''))) return [];
    const mark = sign === 'tab' ? '\t' : sign;
    const separator = compileSplit(sign);
    const lines = texts.map((text) => (text.includes(mark) ? withoutTrailingEmpty(separator.all(text)) : []));
    const groups = new Map<string, number[]>();
    for (const [n, cells] of lines.entries()) {
      const [group = ''] = cells;
      if (cells.length === 3 && GROUP.test(group)) groups.set(group, [...(groups.get(group) ?? []), n]);
    }
    const isPair = (n: number) => lines[n]?.length === 2 && isWord(lines[n]?.[0] ?? '');
    const found = [...groups].flatMap(([group, own]) => {
      // Rows of a table stand among other rows.
      const [from = 0, to = 0] = [own[0], own.at(-1)];
      const isAmongPairs = lines.some((_, n) => isPair(n) && n >= from - MAX_AWAY && n <= to + MAX_AWAY);
      let top = from;
      while (lines[top - 1]?.length === 3) top--;
      const [first = []] = lines.slice(top);
      const isHeader = areColumnNames(first) && (groups.get(first[0] ?? '')?.length ?? 0) < 2;
      if (!isAmongPairs || isHeader) return [];
      const [second, third] = [1, 2].map((cell) => own.map((n) => lines[n]?.[cell] ?? ''));
      const order = second && third ? orderOf(second, third) : undefined;
      return order ? [{ group, own, order }] : [];
    });
    // A group of one line is sure only beside others.
    const sure = found.filter(({ own }) => own.length > 1);
    const isSureGroup = ({ own, order }: (typeof found)[number]) =>
      sure.some((each) => each.order.name !== undefined) &&
      (own.length > 1 || sure.some((each) => each.order.name === order.name));
    return found.filter(isSureGroup).map(({ group, own, order }) => {
      const cell = sign === 'tab' ? '\\t' : sign;
      // A value with the sign in it moves the name.
      const isLike = own.length === texts.filter((text) => text.startsWith(`${group}${mark}`)).length;
      const every = `/^\\s*${start}${escapeRegex(group)}${cell}${isLike ? '' : `[^${cell}]*${cell}[^${cell}]*${cell}*$`}/`;
      const finders = order.name === undefined ? [] : [{ every, separator: sign, ...order }];
      return { finders, numbers: own.map((n) => n + 1), except: [group] };
    });
  });
}

const THREE_CELLS = {
  tab: /^[A-Za-z][^\d\t]*\t[^\t]*\t[^\t]+\t*$/,
  ',': /^[A-Za-z][^\d,]*,[^,]*,[^,]+,*$/,
  ';': /^[A-Za-z][^\d;]*;[^;]*;[^;]+;*$/,
};
const GROUP = /^\p{L}[\p{L}\d_ ]*$/u;
const MAX_AWAY = 10;

/** Names of three columns. */
const areColumnNames = (cells: readonly string[]): boolean =>
  cells.length === 3 && cells.every((cell) => cell !== '' && isWord(cell));

/** Which of the two cells is the name, if any: words that all differ. Names in capital letters can stand after any value. */
function orderOf(second: readonly string[], third: readonly string[]): { name?: number; value?: number } | undefined {
  const differ = (cells: readonly string[]) => new Set(cells).size === cells.length;
  const numbers = third.filter((cell) => kindOf(cell) === 'number');
  const isCounted = numbers.length > 1 && numbers.every((value, n) => Number(value) === Number(numbers[0]) + n);
  const areWords =
    second.every((name) => /^[A-Za-z]\w*(?: [\w%/()]+)*$/.test(name)) && !second.some((name) => isUnit(name));
  // Words that are numbered are no facts.
  if (areWords && differ(second) && isCounted) return {};
  if (areWords && differ(second) && numbers.length * 2 > third.length) return { name: 2, value: 3 };
  if (third.every((name) => /^\p{Lu}[\p{Lu}\d]*_?[\p{Lu}\d_]{2,}$/u.test(name)) && differ(third))
    return { name: 3, value: 2 };
  return undefined;
}

/** One value: no pair, no row, no comment. */
const isLoneValue = (text = ''): boolean =>
  text.trim() !== '' &&
  text !== OTHER &&
  !/^\s*[#$[<]|\t\S|\p{L} ?[:=]|[,;|]\S+[,;|]|[-\d.]+(?:\s+[-\d.]+){2}/u.test(text) &&
  !/ {2,}\S/.test(text.trim());

/** Splits for a row of names and the row of their values. */
const ROW_SPLITS = ['tab', ';', ',', 'spaces', 'whitespace'] as const;

/** A row of names above a single row of values, several times, or one that says who measured and how. */
function findRowsOfNames(texts: readonly string[], all: number): Found[] {
  const pairs: RowPair[] = [];
  for (let at = 0; at + 1 < texts.length; at++) {
    const pair = rowsAt(texts, at);
    if (!pair) continue;
    // Words below words directly above: only the rows below show that they are values.
    const above = pairs.length === 0 ? rowsOfWords(texts, at - (texts[at - 1] === '' ? 3 : 2), pair.split) : undefined;
    // A column that says which row it is makes a table of one row, unless the rows of names follow each other.
    const isNext = (above ?? pairs.at(-1))?.at === at - 2;
    const isWho = pair.isAbove && pair.names.some((name) => WHO.test(name));
    if (isSubject(pair.names[0] ?? '') && !COMMENT.test(pair.split) && !isNext && !isWho) continue;
    pairs.push(...(above ? [above] : []), { at, ...pair });
    at++;
  }
  const names = pairs.flatMap((pair) => pair.names);
  const last = pairs.at(-1);
  if (!last || new Set(names).size < names.length) return [];
  const isFollowed = all > last.at + 2 + MIN_BELOW;
  const isSaid = names.length > 2 && names.some((name) => OF_RUN.test(name));
  const isRun = pairs.length > 1 || (isSaid && isFollowed);
  const hasMarks = pairs.every(({ split }) => COMMENT.test(split));
  if (!isRun || (!isFollowed && !hasMarks && pairs.length < MIN_LINES)) return [];
  return pairs.map(({ at, split, names: own }) => ({
    finders: own.length === 0 ? [] : [describeRows(texts[at] ?? '', own, split)],
    numbers: [at + 1, at + 2],
  }));
}

interface RowPair {
  readonly at: number;
  readonly split: string;
  /** None if names and values can also be in every other cell. */
  readonly names: readonly string[];
}

function rowsOfWords(texts: readonly string[], at: number, split: string): RowPair | undefined {
  if (at < 0 || COMMENT.test(split)) return undefined;
  const [names = [], values = []] = [texts[at], texts[at + 1]].map((text) =>
    compileSplit(split).all(text?.trim() ?? ''),
  );
  if (names.length < 3 || names.length !== values.length || !areRowNames(names)) return undefined;
  return { at, split, names: names.length % 2 === 0 ? [] : names };
}

const COMMENT = /^[#!%/]+/;
/** Rows of a table below the facts. */
const MIN_BELOW = 3;
/** What is said once for a run, not for each row. */
const OF_RUN =
  /^(?:operator|user|analyst|method|instrument|serial|model|software|version|firmware|project|detector|bediener|benutzer|methode|ger[äa]t|op[ée]rateur|instrumento|operador)\b/i;

/** People measure several rows, so this is no column of a table of one row. */
const WHO = /^(?:operator|user|analyst|bediener|benutzer|op[ée]rateur|operador)\b/i;

/** `isAbove`: directly above other names. */
function rowsAt(
  texts: readonly string[],
  at: number,
): { split: string; names: readonly string[]; isAbove: boolean } | undefined {
  const [written = '', values = ''] = [texts[at], texts[at + 1]];
  // First, because most lines are rows.
  if (values === '' || !STARTS_WITH_NAME.test(written) || MARK.test(values)) return undefined;
  const [mark = ''] = MARK.exec(written) ?? [];
  if (mark === '' && (NUMBER_CELL.test(written) || NUMBER_CELL.test(texts[at + 2] ?? ''))) return undefined;
  const text = written.slice(mark.length).trim();
  for (const split of ROW_SPLITS) {
    const names = mark !== '' && split === 'whitespace' ? text.split(/[\s,]+/) : compileSplit(split).all(text);
    const cells = compileSplit(split).all(values.trim());
    // Two cells are a name and its value. Words with single blanks between them are a sentence.
    const isClear = mark !== '' || (names.length > 2 && split !== 'whitespace');
    if (names.length < 2 || !isClear || names.length !== cells.length || !areRowNames(names)) continue;
    const kinds = cells.map(kindOf);
    if (!kinds.some((kind) => kind === 'number' || kind === 'date') || cells.some((cell) => /\p{L} ?[:=]$/u.test(cell)))
      return undefined;
    // `Batch  B-12  Operator  Ada`: every other cell is a name.
    const isEven = mark === '' && cells.length % 2 === 0 && !names.some((name, n) => n % 2 === 1 && isQuantity(name));
    if (isEven && cells.every((cell, n) => n % 2 === 1 || isWord(cell))) return undefined;
    // More rows make a table.
    const next = texts[at + 2] ?? '';
    const isEnd = next === '' || (mark !== '' && next.trimStart().startsWith(mark.trim()));
    const isNext = areRowNames(compileSplit(split).all(next)) && compileSplit(split).all(next).length > 1;
    if (!isEnd && !isNext) return undefined;
    return { split: mark === '' ? split : `${mark.trim()}${split}`, names, isAbove: isNext };
  }
  return undefined;
}

/** A line with such a cell is a row. */
const NUMBER_CELL = /(?:^|[\t;,]|\s\s)\s*[-+]?\.?\d[\d.]*\s*(?:$|[\t;,]|\s\s)/;

const MARK = /^\s*[#!%/]+/;
const STARTS_WITH_NAME = /^\s*[#!%/]*\s*\p{L}/u;

const areRowNames = (names: readonly string[]): boolean =>
  new Set(names).size === names.length &&
  names.every((name) => /\p{L}/u.test(name) && isWord(name) && !NO_ROW_NAME.test(name) && !isUnit(name));

/** Names with their values: `Weight: 3`, `mount GA6432`. */
const NO_ROW_NAME = /[:=]|^[A-Z]\d+$|\s\S*\d{3}/;

/** Names behind a comment mark are not in a row of the file's own cells, so they are given by position. */
function describeRows(text: string, names: readonly string[], split: string): FinderMapping {
  const [mark = ''] = COMMENT.exec(split) ?? [];
  const delimiter = split.slice(mark.length);
  if (mark === '') return { line: text.trim(), separator: 'nextRow', delimiter };
  return { after: text.trim(), delimiter, cells: Object.fromEntries(names.map((name, n) => [name, n + 1])) };
}
