import type { Where } from '../../config/grammar.js';
import type { Finder } from '../../config/vocabulary.js';
import type { Value } from '../../model.js';
import { nearest } from '../../text.js';
import { withoutTrailingEmpty } from '../cells.js';
import { isBlank, joinTexts, type Line, lineKey, quoted, suggestName } from '../lines.js';
import { parseZone } from '../values/date-candidates.js';
import { bareUnit, gluedUnit, isFlag, isHemisphere, unitInName } from '../values/unit.js';
import { EXPONENT_ONLY, isCodeName, isUnreadable, startsWithLetter } from '../values/value.js';
import { isReadingIn } from './column-values.js';
import { cleanName, createUniqueNames } from './columns.js';
import { type Context, compileLinePattern, createRegion, lineNotFound, stripComment } from './context.js';
import {
  createPairReader,
  factName,
  isNumeric,
  isOfTwoLines,
  MOMENT,
  OPEN_QUOTE,
  PAIR,
  type Pair,
  unquote,
} from './pairs.js';
import type { Found, Tree } from './tree.js';
import { isPlainNumber } from './unread.js';

/** A fact by the name that the file gives it. */
export interface NamedFact extends Found {
  readonly name: string;
}

interface Fact extends Found {
  readonly value: Value;
}

/** The facts of one file. */
export interface Facts {
  /** By the names in the record. */
  readonly meta: Map<string, Value>;
  /** The file's own facts, by their names as written and as in the record. */
  readonly known: ReadonlyMap<string, Fact>;
  readonly context: Context;
  /** Set if names can also be paths. */
  readonly tree: Tree | undefined;
}

/** Reads the file's own facts, then those that the mapping selects. */
export function readFacts(named: readonly NamedFact[], context: Context, tree: Tree | undefined): Facts {
  const meta = new Map<string, Value>();
  const known = new Map<string, Fact>();
  const unique = createUniqueNames();
  for (const { name, ...found } of named) {
    const written = readFact(name, context.values.read(found.text), context);
    // `007.25` is a number if it has a unit.
    const padded = written.value === written.text ? context.values.numbers.readPadded(written.text) : undefined;
    const isBare = padded !== undefined || (typeof written.value === 'number' && written.unit === undefined);
    const beside = bareUnit(found.unit);
    const inName = isBare && beside === undefined ? unitInName(name) : undefined;
    const isReading = padded !== undefined && isReadingIn(inName?.name ?? name, beside ?? inName?.unit);
    const read = isReading ? { value: padded, text: written.text } : written;
    const value = withUnit(read, read.unit ?? beside ?? inName?.unit);
    const final = unique(typeof value.value === 'number' ? (inName?.name ?? name) : name);
    meta.set(final, value);
    for (const alias of [final, name]) if (!known.has(alias)) known.set(alias, { ...found, value });
  }
  const facts: Facts = { meta, known, context, tree };
  for (const [name, spec] of Object.entries(context.options.facts)) meta.set(name, selectFact(name, spec, facts));
  return facts;
}

/** A number whose unit only the name makes certain, or with a remark: `140000 (USB2E7196)`. */
function readFact(name: string, read: Value, { values: { numbers } }: Context): Value {
  if (isHemisphere(read.unit, name)) return { value: read.text, text: read.text };
  if (isFlag(read.unit, name)) return { value: read.value, text: read.text };
  // Programs write a point or a sign in an exponent: `12E5` is a serial number.
  const isCode = CODE.test(read.text) || (EXPONENT_ONLY.test(read.text) && isCodeName(name));
  if (typeof read.value === 'number' && isCode) return { value: read.text, text: read.text };
  if (typeof read.value !== 'string' || startsWithLetter(read.text)) return read;
  const glued = gluedUnit(name, read.text);
  const value = numbers.read(glued?.digits ?? WITH_REMARK.exec(read.text)?.[1] ?? '');
  return value === undefined ? read : { value, text: read.text, ...(glued && { unit: glued.unit }) };
}

const CODE = /^\d{2,}[eE]\d+$/;
const WITH_REMARK = /^([-+−]?\d\S*) \([^()]*\p{L}[^()]*\)$/u;

function selectFact(name: string, spec: Where, facts: Facts): Value {
  const parts = (spec.from ?? [name]).map((part) => requireFact(facts, String(part)));
  const [first] = parts;
  const text = joinTexts(parts.map((part) => part.text.trim()));
  const isTyped = spec.type !== undefined || spec.format !== undefined;
  const isOne = parts.length === 1;
  const read = isOne && first && !isTyped ? first.value : facts.context.values.typed(spec)(text);
  if (isUnreadable(read)) {
    throw facts.context.refuse(read.problem, { line: first?.line, hint: read.hint });
  }
  return withUnit(read, unitOf(facts, spec) ?? read.unit ?? (isOne ? first?.value.unit : undefined));
}

/** Only numbers have units. */
const withUnit = (value: Value, unit: string | undefined): Value =>
  unit === undefined || unit === '' || typeof value.value !== 'number' ? value : { ...value, unit };

/** The fact, cell or path to which a mapping refers. Refuses the file if it has none. */
export function requireFact(facts: Facts, name: string): Fact {
  const fact = findFact(facts, name);
  if (fact) return fact;
  const { context, known, tree } = facts;
  const missing = tree?.explainMissing(name);
  const names = [...known.keys()];
  const line = missing ? missing.line : known.get(nearest(name, names) ?? '')?.line;
  throw context.refuse(missing?.message ?? `there is no fact ${JSON.stringify(name)}`, {
    line,
    hint: missing?.hint ?? suggestName(name, names, 'the facts in the file are'),
    isMismatch: true,
  });
}

function findFact({ context: { values, cells }, known, meta, tree }: Facts, name: string): Fact | undefined {
  const cell = cells.at(name);
  if (cell) return { ...cell, value: values.read(cell.text) };
  const own = tree && name.startsWith('/') ? undefined : (known.get(name) ?? known.get(cleanName(name)));
  if (own) return own;
  const found = tree?.lookup(name)();
  if (found) {
    const value = values.read(found.text);
    return { ...found, value: withUnit(value, value.unit ?? found.unit) };
  }
  const selected = meta.get(name);
  return selected && { text: selected.text, unit: selected.unit, line: 0, value: selected };
}

/** The unit that a mapping gives, or that the file has where the mapping says. */
export const unitOf = (facts: Facts, { unit }: Where): string | undefined =>
  typeof unit === 'object' ? requireFact(facts, unit.from).text.trim() : unit;

/** A number that a mapping gives itself or as the name of a fact. */
export function requireNumber(facts: Facts, written: string | number | undefined): number {
  if (typeof written === 'number') return written;
  const { text, line, value } = requireFact(facts, written ?? '');
  if (typeof value.value === 'number') return value.value;
  throw facts.context.refuse(`the fact ${JSON.stringify(written)} is not a number: ${quoted(text)}`, { line });
}

/** The time zone that the file names. */
export function requireZone(facts: Facts, name: string): string {
  const { text, line } = requireFact(facts, name);
  const zone = parseZone(text);
  if (zone !== undefined) return zone;
  throw facts.context.refuse(`${quoted(text)} is not a time zone`, {
    line,
    hint: 'specify the zone in the mapping: `dates: { zone: Europe/Zurich }`',
  });
}

/** More facts than this are the rows of a table that the mapping does not have. */
const MAX_PAIRS = 100_000;

/** Finds named facts in the lines that no table claimed, or in the range that the mapping gives. */
export type FactFinder = ReturnType<typeof createFinder>;

function createFinder(options: Finder, context: Context) {
  const region = createRegion(options, context);
  return {
    options,
    context,
    region,
    pairs: [] as Pair[],
    read: createPairReader(options, region.lineFormat),
    isAfter: compileLinePattern(options.after ?? []),
    isUntil: compileLinePattern((options.until ?? []).filter((pattern) => pattern !== 'blank')),
    isOnly: compileLinePattern(options.line ?? options.every ?? []),
    except: new Set(options.except),
    state: (options.after === undefined ? 'within' : 'before') as 'before' | 'within' | 'ended',
    hasRange: isRange(options, context),
    /** A blank line ends the range only after a line that is not blank. */
    hasBegun: false,
    ...{ isLineFound: false, isMatched: false },
    /** With `nextLine` and `nextRow`: the names whose values are in the next line. */
    names: undefined as Line | undefined,
    /** With `every`: how many of the pairs may be the first of several lines below a name. */
    unsure: 0,
  };
}

export function openFinder(options: Finder, context: Context): FactFinder {
  const finder = createFinder(options, context);
  if (options.in === 'name' || options.in === 'path') {
    const text = context.source[options.in];
    readPairs(finder, { number: 0, text, cells: finder.region.lineFormat.split.all(text) });
    finder.state = 'ended';
  }
  return finder;
}

const NOTHING: readonly string[] = [];
/** Returns the texts that were read from the line. */
export function offerLine(finder: FactFinder, original: Line, isClaimed: boolean): readonly string[] {
  if (finder.state === 'ended') return NOTHING;
  const { options, context, region } = finder;
  const line = region.view(original);
  if (!line) return NOTHING;
  if (finder.state === 'before') {
    if (finder.isAfter(line)) finder.state = 'within';
    return NOTHING;
  }
  const isVoid = isBlank(line);
  finder.hasBegun ||= !isVoid;
  if (finder.isUntil(line) || (isVoid && finder.hasBegun && options.until?.includes('blank'))) {
    finder.state = 'ended';
    return NOTHING;
  }
  const isOther = isVoid || (isClaimed && !finder.hasRange);
  if (isOfTwoLines(options)) return offerOfTwo(finder, line, isOther);
  if (isOther || ((options.line || options.every) && !finder.isOnly(line))) return NOTHING;
  const known = finder.pairs.length;
  readPairs(finder, stripComment(line, context, region.lineFormat));
  const isSingle = options.line !== undefined || (options.cells !== undefined && options.every === undefined);
  if (isSingle || (options.match !== undefined && finder.isMatched)) finder.state = 'ended';
  return finder.pairs
    .slice(known)
    .flatMap(({ name, text, unit = '' }) => (isPlainNumber(text) ? [name, text, unit] : [name, text]));
}

/** Names in one line, values in the next. */
function offerOfTwo(finder: FactFinder, line: Line, isVoid: boolean): readonly string[] {
  const { options, pairs, names, context, region } = finder;
  const hasMarks = options.line !== undefined || options.every !== undefined;
  const own = stripComment(line, context, region.lineFormat);
  // A pair is not a value of the name above.
  const isOther = isVoid || (options.every !== undefined && PAIR.test(own.text));
  const isNames = !isOther && (hasMarks ? finder.isOnly(line) : names === undefined);
  if (hasMarks) {
    // Several lines below a name are not its value, and a blank line ends it.
    if (!isOther && !isNames && names === undefined) pairs.length -= finder.unsure;
    finder.unsure = 0;
    if (isOther) finder.names = undefined;
  }
  if (isOther || (!isNames && names === undefined)) return NOTHING;
  finder.names = isNames ? own : undefined;
  finder.isLineFound ||= isNames;
  if (names && !isNames) {
    const known = pairs.length;
    addPairs(finder, options.separator === 'nextRow' ? pairsInRows(names, own) : [pairInLines(names, own)]);
    if (options.line !== undefined) finder.state = 'ended';
    else if (options.every !== undefined) finder.unsure = pairs.length - known;
  }
  return [line.text];
}

const pairInLines = (names: Line, line: Line): Pair => ({
  name: names.cells.join(' ').replace(/^\s*#(?=\p{L})/u, ''),
  text: line.cells.filter((cell) => cell !== '').length > 1 ? line.text.trim() : line.cells.join(' ').trim(),
  line,
});

/** With more values than names, or fewer, any of them could be that of another name. */
function pairsInRows({ cells: names }: Line, line: Line): Pair[] {
  const isWhole = line.cells.length >= withoutTrailingEmpty(names).length;
  if (!isWhole || withoutTrailingEmpty(line.cells).length > names.length) return [];
  return names.flatMap((name, n) => (name === '' ? [] : [{ name, text: line.cells[n] ?? '', line }]));
}

/** Also reads lines that belong to tables. The area of a table itself is not a range of its own. */
const isRange = ({ after, until, line, area }: Finder, { options: { tables } }: Context): boolean =>
  [after, until, line].some((each) => each !== undefined) ||
  (area !== undefined && Object.values(tables).every((table) => table.area !== area));

function readPairs(finder: FactFinder, line: Line): void {
  finder.isLineFound = true;
  const found = finder.read(line);
  finder.isMatched ||= found !== undefined;
  addPairs(finder, found ?? []);
}

function addPairs(finder: FactFinder, found: readonly Pair[]): void {
  const { pairs, context } = finder;
  for (const pair of found) {
    const name = factName(pair.name);
    // After it, names and values are no longer where they are expected.
    if (MOMENT.test(name) || (finder.options.separator === 'cell' && isNumeric(name))) break;
    // An open quote shows that the line was split within a cell.
    if (OPEN_QUOTE.test(name) || OPEN_QUOTE.test(pair.text)) continue;
    if (name !== '' && !finder.except.has(name)) pairs.push({ ...pair, name, text: unquote(pair.text) });
  }
  if (pairs.length <= MAX_PAIRS) return;
  throw context.refuse(`\`meta\` finds more than ${MAX_PAIRS} facts, which may be the rows of a table`, {
    line: pairs.at(-1)?.line,
    hint: 'describe the table: `table: { after: "…" }`',
  });
}

/**
 * All facts that were found. Refuses the file if a line or pattern was not found.
 * `late`: keys of lines that turned out to belong to a table after they were offered.
 */
export function finishFinders(finders: readonly FactFinder[], late: ReadonlySet<string>): NamedFact[] {
  const facts: NamedFact[] = [];
  // Two finders that read the same line find one fact. One finder can find several values of one name.
  const known = new Map<string, FactFinder>();
  for (const finder of finders) {
    requireMatches(finder);
    for (const { name, text, unit, line } of finder.pairs) {
      if (!finder.hasRange && late.has(lineKey(line))) continue;
      const key = `${lineKey(line)} ${name}`;
      const first = known.get(key) ?? finder;
      known.set(key, first);
      if (first === finder) facts.push({ name, text, unit, line: line.number });
    }
  }
  return facts;
}

function requireMatches({ options, context, state, isLineFound, isMatched }: FactFinder): void {
  const { after, line, every, match } = options;
  if (state === 'before') throw lineNotFound('after', after ?? [], context);
  if (line !== undefined && !isLineFound) throw lineNotFound('line', line, context);
  if (every !== undefined && !isLineFound) throw lineNotFound('every', every, context);
  if (match === undefined || isMatched) return;
  const isPath = options.in === 'name' || options.in === 'path';
  throw context.refuse(
    `${isPath ? `the file's ${options.in} does not match` : 'no line matches'} \`match: ${match}\``,
    {
      hint: isPath ? 'correct the pattern' : 'correct the pattern, or select a line with `line`',
      isMismatch: true,
    },
  );
}
