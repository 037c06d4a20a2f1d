import { compileSplit, withoutTrailingEmpty } from '../parse/cells.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';
import { escapeRegex } from '../text.js';
import { isFactName, isMeasure, isQuantity, isWord, kindOf } from './kinds.js';
import { type Found, findBeside, findRowsOfNames, MIN_LEGENDS, MIN_LINES } from './name-rows.js';
import { type FinderMapping, LETTER } from './pieces.js';

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
    ...findValuesFirst(bare, start),
    ...(below.length > 0 ? below : findAlternating(seen)),
    ...findGroupedFacts(bare, start),
    ...findRowsOfNames(seen, texts.length, seen),
    ...(bare === seen ? [] : findRowsOfNames(bare, texts.length, seen)),
  ];
  const taken = new Set(found.flatMap(({ numbers }) => numbers));
  found.push(
    ...findBeside(
      bare.map((text, n) => (taken.has(n + 1) ? OTHER : text)),
      seen,
    ),
  );
  return {
    // Lists of one form need one finder.
    finders: [...new Map(found.flatMap(({ finders }) => finders.map((one) => [JSON.stringify(one), one]))).values()],
    lines: new Set(found.flatMap(({ numbers }) => numbers)),
    except: found.flatMap(({ except = [] }) => except),
  };
}

/** Stands for a line that is not a fact. */
const OTHER = '\u0000';

const NUMBER = '[-+]?(?:\\d[\\d.,]*|\\.\\d+)(?:[eE][-+]?\\d+)?';
const IS_NUMBER = new RegExp(`^${NUMBER}$`);
const isNumber = (text: string): boolean => IS_NUMBER.test(text);

const before = (sign: string, other: string, first = other.replace(']', '\\\\s]')): RegExp =>
  new RegExp(`^\\s*(${first}${other}*?)\\s*${sign}\\s*(\\p{L}${other}*)$`, 'u');

/** What stands between a value and its name. After blanks and delimiters, only numbers count: other cells are rows. */
const SIGNS = [
  { line: before('!', '[^!]'), sign: '!', isStrict: false },
  { line: before('#', '[^#]'), sign: '#', isStrict: false },
  { line: /^\s*([^;\s].*?)\s+;\s+(\p{L}[^;]*)$/u, sign: ' ; ', isStrict: false },
  { line: /^\s*([^/\s].*?)\s+\/\/\s*(\p{L}.*)$/u, sign: '//', isStrict: false },
  { line: /^\s*([^/\s].*?)\s+\/ +(\p{L}[^/]*)$/u, sign: '/', isStrict: false },
  { line: before('\\t', '[^\\t;|]', '[-+.\\d]'), sign: 'tab', isStrict: true },
  { line: before(';', '[^\\t;|]', '[-+.\\d]'), sign: ';', isStrict: true },
  { line: before('\\|', '[^\\t;|]', '[-+.\\d]'), sign: '|', isStrict: true },
  { line: /^\s*([-+.\d](?:[^\s;|]| (?! ))*) {2,}(\p{L}(?:[^\s;|:=]| (?! ))*)$/u, sign: 'spaces', isStrict: true },
] as const;

interface Commented {
  readonly number: number;
  readonly text: string;
  readonly value: string;
  readonly name: string;
}

function findValuesFirst(texts: readonly string[], start: string): Found[] {
  // Most signs are in no line.
  const whole = texts.join('\n');
  const taken = new Set<number>();
  return SIGNS.flatMap(({ line, sign, isStrict }) => {
    const found: Found[] = [];
    if (!hasSign(whole, sign)) return found;
    let run: Commented[] = [];
    for (const [n, text] of [...texts, OTHER].entries()) {
      const isFree = !taken.has(n + 1) && hasSign(text, sign);
      const [, value = '', name = ''] = (isFree ? line.exec(text) : undefined) ?? [];
      if (name !== '') {
        run.push({ number: n + 1, text, value, name });
        continue;
      }
      if (run.length >= MIN_LEGENDS && !(isStrict && isHeader(texts[n - run.length - 1] ?? '', sign)))
        found.push(...describeRun(run, sign, isStrict, start));
      run = [];
    }
    for (const number of found.flatMap(({ numbers }) => numbers)) taken.add(number);
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

function describeRun(run: readonly Commented[], sign: string, isStrict: boolean, start: string): Found[] {
  const lists = run.map((line) => namesOfValues(line));
  const single = run.filter((_, n) => lists[n] === 'one');
  const legends = run.flatMap((line, n) => {
    const names = lists[n];
    return names === 'one' || names === undefined || isStrict ? [] : [{ line, names }];
  });
  if (run.length < MIN_LINES && legends.length < run.length) return [];
  const names = [...single.map(({ name }) => name), ...legends.flatMap((legend) => legend.names)];
  // `S/N` and `pH` among words.
  const areWords = single.filter(({ name }) => isName(name)).length * 5 >= single.length * 4;
  const areNames = new Set(names).size === names.length && areWords;
  const measured = single.filter(isSure).length + legends.length;
  if (!areNames || measured * 2 < run.length || (single.length + legends.length) * 5 < run.length * 3) return [];
  if (isStrict && !areSettings(single, run.length)) return [];
  const separator = /^[ /]/.test(sign) ? `/\\s+${escapeRegex(sign.trim())}\\s*/` : sign;
  const every = EVERY[sign] ?? `/^\\s*${start}[^\\s${sign}][^${sign}]*${sign}\\s*${LETTER}/`;
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
  ' ; ': `/\\S\\s+; +${LETTER}/`,
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

/** Words above a number or a date that has no other below it: a column of numbers is not a fact. */
function isAlternatingPair(texts: readonly string[], n: number): boolean {
  // First, because most lines are rows.
  if (!ONE_WORDS.test(texts[n] ?? '') || !/\d/.test(texts[n + 1] ?? '')) return false;
  const [name = '', value = '', next = ''] = [texts[n], texts[n + 1], texts[n + 2]].map((text) => text?.trim());
  const isNamed = isAlternatingText(texts[n]) && kindOf(name) === 'text' && !isUnit(name);
  return isNamed && isMeasure(kindOf(value)) && !isMeasure(kindOf(next));
}

const ONE_WORDS = /^\s*[^\s\d,;|+.-][^,\t;|]*$/;

/** A single cell that is not a sentence, a pair or a comment. */
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
  !/^\s*[#$[<]|\t\S|\p{L} ?[:=](?![\\/])|[,;|]\S+[,;|]|-?\d[\d.]*(?:\s+-?\d[\d.]*){2}/u.test(text) &&
  !/ {2,}\S/.test(text.trim());
