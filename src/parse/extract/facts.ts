import { regexSource, type Where } from '../../config/grammar.js';
import type { Finder } from '../../config/vocabulary.js';
import type { Value } from '../../model.js';
import { nearest } from '../../text.js';
import { compileSplit, type LineFormat, type Split } from '../cells.js';
import { isBlank, type Line, lineKey, type Refuse } from '../lines.js';
import { createDateReader, type DateOptions } from '../values/date.js';
import { bareUnit, unitInBrackets } from '../values/unit.js';
import { isUnreadable, readTyped, type ValueReader } from '../values/value.js';
import { cleanName, createUniqueNames } from './columns.js';
import {
  type Context,
  compileLinePattern,
  createRegion,
  lineNotFound,
  namedGroups,
  stripComment,
} from './context.js';

/** A name and a value that a finder found. */
interface Pair {
  readonly name: string;
  readonly text: string;
  readonly unit?: string | undefined;
  readonly line: Line | undefined;
}

/** A fact: what the file says, where, and what it means. */
interface Fact {
  readonly text: string;
  readonly line: Line | undefined;
  readonly value: Value;
}

export interface Facts {
  /** Under the names that the record will have. */
  readonly meta: Map<string, Value>;
  /** One thing that the mapping refers to: a fact by its name, or a place in the file. Refused where there is none. */
  require(name: string): Fact;
  /** The unit that the mapping gives to a fact or a column, or says where to find. */
  unitOf(spec: Where): string | undefined;
}

interface FactsDeps {
  readonly pairs: readonly Pair[];
  readonly values: ValueReader;
  readonly dates: DateOptions;
  readonly refuse: Refuse;
  /** What stands at a place that is no name: a cell such as `=C3`, or a path. Undefined where it is none. */
  at(place: string): { readonly text: string; readonly line: Line | undefined } | undefined;
}

/** Reads what the finders found, gives each fact a name of its own, and picks those that the mapping names. */
export function createFacts(wanted: Readonly<Record<string, Where>>, deps: FactsDeps): Facts {
  const { values, refuse } = deps;
  const { meta, known } = nameFacts(deps);
  /** Under your names, which do not hide the file's own. */
  const picked = new Map<string, Value>();

  function require(name: string): Fact {
    const place = deps.at(name);
    if (place) return { ...place, value: values.read(place.text) };
    const fact = known.get(name) ?? known.get(cleanName(name));
    if (fact) return fact;
    const own = picked.get(name);
    if (own) return { text: own.text, line: undefined, value: own };
    const names = [...known.keys()];
    const near = nearest(name, names);
    const all =
      names.length === 0
        ? 'the file says nothing by a name'
        : `the file says: ${names.slice(0, 20).join(', ')}`;
    throw refuse(`there is no fact ${JSON.stringify(name)}`, {
      line: near === undefined ? undefined : known.get(near)?.line,
      hint: near === undefined ? all : `did you mean ${JSON.stringify(near)}?`,
      isMismatch: true,
    });
  }

  const facts: Facts = {
    meta,
    require,
    unitOf: ({ unit }) => (typeof unit === 'object' ? require(unit.from).text : unit),
  };
  for (const [name, spec] of Object.entries(wanted)) picked.set(name, pickFact(name, spec, facts, deps));
  for (const [name, value] of picked) meta.set(name, value);
  return facts;
}

function nameFacts({ pairs, values }: FactsDeps): { meta: Map<string, Value>; known: Map<string, Fact> } {
  const meta = new Map<string, Value>();
  const known = new Map<string, Fact>();
  const seen = new Set<string>();
  const unique = createUniqueNames();
  for (const { name, text, unit, line } of pairs) {
    // Two finders that read the same line found one fact, not two.
    const place = `${line?.sheet ?? 0} ${line?.number ?? 0} ${name}`;
    if (seen.has(place)) continue;
    seen.add(place);
    const read = values.read(text);
    const isBare = typeof read.value === 'number' && read.unit === undefined;
    const given = bareUnit(unit);
    const own = isBare && given === undefined ? unitInBrackets(name) : undefined;
    const ownUnit = given ?? own?.unit;
    const value = isBare && ownUnit !== undefined ? { ...read, unit: ownUnit } : read;
    const final = unique(own?.name ?? name);
    meta.set(final, value);
    for (const alias of [final, name]) if (!known.has(alias)) known.set(alias, { text, line, value });
  }
  return { meta, known };
}

function pickFact(name: string, spec: Where, facts: Facts, deps: FactsDeps): Value {
  const parts = (spec.from ?? [name]).map((part) => facts.require(String(part)));
  const [only] = parts;
  const fact = only && parts.length === 1 ? only : join(parts, deps.values);
  const value = readAs(fact, spec, deps);
  const unit = facts.unitOf(spec);
  return unit === undefined || typeof value.value !== 'number' ? value : { ...value, unit };
}

function join(parts: readonly Fact[], values: ValueReader): Fact {
  const texts = parts.map(({ text }) => text).filter((text) => text !== '');
  const text = texts.join(' ');
  return { text, line: parts[0]?.line, value: values.read(text) };
}

/** As the mapping types it, else as it was read by its looks. */
function readAs({ text, line, value }: Fact, spec: Where, { values, dates, refuse }: FactsDeps): Value {
  const type = spec.type ?? (spec.format ? 'date' : undefined);
  if (type === undefined) return value;
  const reader = spec.format ? createDateReader({ ...dates, format: spec.format }) : values.dates;
  const read = readTyped(text, type, values, reader);
  if (isUnreadable(read)) throw refuse(read.problem, { line, hint: read.hint });
  return read;
}

/** Finds facts while the lines go by: in those that no table claimed, or in the range that the finder names. */
interface PairFinder {
  take(line: Line, isClaimed: boolean): void;
  /**
   * Refuses where something that the mapping names was never found.
   * `late`: places of lines that turned out to belong to a table after they had gone by.
   */
  finish(late: ReadonlySet<string>): Pair[];
}

/** More facts than this are no facts, but the rows of a table that the mapping does not name. */
const MOST_PAIRS = 100_000;

export function createPairFinder(finder: Finder, context: Context): PairFinder {
  const { after, until, line: only, match } = finder;
  const isNamed = after !== undefined || until !== undefined || only !== undefined;
  const isAfter = compileLinePattern(after ?? []);
  const isUntil = compileLinePattern((until ?? []).filter((form) => form !== 'blank'));
  const endsAtBlank = until?.includes('blank') ?? false;
  const isOnly = compileLinePattern(only ?? []);
  const place = createRegion(finder, context);
  const reader = match === undefined ? createPairReader(finder, place.lineFormat) : createMatcher(match);
  const pairs: Pair[] = [];
  let state: 'before' | 'within' | 'ended' = after === undefined ? 'within' : 'before';
  let hasBegun = false;
  let wasFound = false;

  function keep(found: readonly Pair[]): void {
    for (const { name, line, ...pair } of found) {
      const clean = cleanName(name);
      if (clean !== '') pairs.push({ ...pair, name: clean, line: line?.number ? line : undefined });
    }
    if (pairs.length <= MOST_PAIRS) return;
    throw context.refuse(`more than ${MOST_PAIRS} facts: these may be the rows of a table`, {
      line: pairs.at(-1)?.line,
      hint: 'say where the table is: `table: { after: "…" }`',
    });
  }

  if (finder.in === 'name' || finder.in === 'path') {
    const text = finder.in === 'name' ? context.name : context.path;
    // The name of the file is no line of it.
    keep(reader.read({ number: 0, text, cells: place.lineFormat.split.all(text) }));
    state = 'ended';
    wasFound = true;
  }

  return {
    take(original, isClaimed) {
      if (state === 'ended') return;
      const line = place.view(original);
      if (!line) return;
      if (state === 'before') {
        if (isAfter(line)) state = 'within';
        return;
      }
      const isVoid = isBlank(line);
      // Blank lines at the top do not end what has not begun.
      hasBegun ||= !isVoid;
      if (isUntil(line) || (endsAtBlank && isVoid && hasBegun)) {
        state = 'ended';
        return;
      }
      if (isVoid || (isClaimed && !isNamed) || (only !== undefined && !isOnly(line))) return;
      wasFound = true;
      keep(reader.read(stripComment(line, context, place.lineFormat)));
      if (only !== undefined || reader.isDone()) state = 'ended';
    },
    finish(late) {
      if (state === 'before') throw lineNotFound('after', after ?? [], context);
      if (only !== undefined && !wasFound) throw lineNotFound('line', only, context);
      if (match !== undefined && !reader.isDone()) {
        const hint = 'correct the pattern, or narrow it with `line`';
        throw context.refuse(`nothing fits \`match: ${match}\``, { hint, isMismatch: true });
      }
      return isNamed ? pairs : pairs.filter(({ line }) => !line || !late.has(lineKey(line)));
    },
  };
}

/** The named groups, from the first line that fits. */
function createMatcher(match: string) {
  const regex = new RegExp(regexSource(match) ?? match);
  let isDone = false;
  return {
    read(line: Line): Pair[] {
      const found = regex.exec(line.text);
      isDone ||= found !== null;
      return [...namedGroups(found)].map(([name, text]) => ({ name, text: text.trim(), line }));
    },
    isDone: () => isDone,
  };
}

/** Reads names and values out of lines. */
interface PairReader {
  read(line: Line): Pair[];
  /** Whether it has all that it looks for. */
  isDone(): boolean;
}

/** As the finder says: by a separator, cell by cell, line by line, or by the place in the line. */
function createPairReader(finder: Finder, cut: LineFormat): PairReader {
  const { separator, cells } = finder;
  if (cells !== undefined) return createPositional(cells);
  if (separator === 'nextLine') return createNextLine();
  if (separator === 'cell') return endless(alternating);
  if (separator === undefined) return endless(() => []);
  const split = compileSplit(separator);
  return endless((line) => separated(line, split, finder, cut));
}

const endless = (read: (line: Line) => Pair[]): PairReader => ({ read, isDone: () => false });

/** Cells of one line by their place. */
function createPositional(cells: NonNullable<Finder['cells']>): PairReader {
  const places = Array.isArray(cells)
    ? cells.map((name, n) => [name, n + 1] as const).filter(([name]) => name !== '_')
    : Object.entries(cells);
  let isDone = false;
  return {
    read(line) {
      isDone = true;
      return places.map(([name, place]) => ({ name, text: line.cells[place - 1] ?? '', line }));
    },
    isDone: () => isDone,
  };
}

/** The name on one line, the value on the next. */
function createNextLine(): PairReader {
  let open: string | undefined;
  return endless((line) => {
    const text = line.cells.join(' ').trim();
    if (open === undefined) {
      open = text;
      return [];
    }
    const name = open;
    open = undefined;
    return [{ name, text, line }];
  });
}

/**
 * Name, value, name, value: empty cells and those that only hold a sign are passed over.
 * Where a name is expected, a cell that holds both, `Weight: 12 mg`, is both.
 */
function alternating(line: Line): Pair[] {
  const pairs: Pair[] = [];
  let open: string | undefined;
  for (const cell of line.cells) {
    if (cell === '' || cell === ':' || cell === '=') continue;
    const both = open === undefined ? nameAndValue(cell) : undefined;
    if (both) pairs.push({ ...both, line });
    else if (open === undefined) open = cell;
    else {
      pairs.push({ name: open, text: cell, line });
      open = undefined;
    }
  }
  return pairs;
}

/** A word, a colon, a blank and more: `10:15` is a value and no name with one. */
function nameAndValue(cell: string): { name: string; text: string } | undefined {
  const at = cell.indexOf(':');
  if (at < 0 || !/^\s+\S/.test(cell.slice(at + 1))) return undefined;
  const name = cell.slice(0, at);
  return /\p{L}/u.test(name) ? { name, text: cell.slice(at + 1).trim() } : undefined;
}

/** Name and value of a line, or of each of its cells, cut at the first separator. */
function separated(line: Line, split: Split, finder: Finder, cut: LineFormat): Pair[] {
  if (finder.in === 'cells') {
    // A name whose value stands in the next cell is a pair for another finder.
    return line.cells.flatMap((cell) => pairOf(cell, split, finder, line)).filter(({ text }) => text !== '');
  }
  if (split.text === undefined || split.text !== cut.split.text) {
    return pairOf(plainText(line, cut), split, finder, line);
  }
  // The separator is the delimiter, so the cut was made already, and with regard to quotes.
  const cells = withoutTrailingEmpty(line.cells);
  const [name = '', ...rest] = cells;
  if (line.cells.length < 2) return [];
  // Values are often moved a cell or two to the right, to stand below each other.
  const start = rest.findIndex((cell) => cell !== '');
  return [pickPair(name, rest.slice(Math.max(0, start)).join(split.text), cells, finder, line)];
}

function pairOf(text: string, split: Split, finder: Finder, line: Line): Pair[] {
  const parts = split.once(text);
  if (!parts) return [];
  return [pickPair(parts[0], parts[1], finder.value || finder.unit ? split.all(text) : [], finder, line)];
}

/** The value is all that follows, or the piece that the finder says; where that is lacking, the last one. */
function pickPair(name: string, rest: string, pieces: readonly string[], finder: Finder, line: Line): Pair {
  const { value, unit } = finder;
  if (value === undefined)
    return { name, text: rest, unit: unit === undefined ? undefined : pieces[unit - 1], line };
  const piece = pieces[value - 1];
  if (piece === undefined) return { name, text: pieces.at(-1) ?? '', line };
  return { name, text: piece, unit: unit === undefined ? undefined : pieces[unit - 1], line };
}

/** The text of a line without its quotes and without the delimiters at its end. */
function plainText(line: Line, { split, quote }: LineFormat): string {
  if (split.text === undefined) return line.text;
  if (quote !== undefined && line.text.includes(quote))
    return withoutTrailingEmpty(line.cells).join(split.text);
  let end = line.text.length;
  // Blanks stay where no delimiter follows: a separator such as " : " may end in one.
  for (let at = end; ; ) {
    while (at > 0 && line.text[at - 1] === ' ') at--;
    if (!line.text.endsWith(split.text, at)) return line.text.slice(0, end);
    at -= split.text.length;
    end = at;
  }
}

function withoutTrailingEmpty(cells: readonly string[]): readonly string[] {
  let end = cells.length;
  while (end > 0 && cells[end - 1] === '') end--;
  return cells.slice(0, end);
}
