import { regexSource } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { isBlank, isEmpty, type Line } from '../lines.js';
import { alignCells } from './aligned.js';
import { type Cells, type Head, namedColumn, readHeader, refuseNumbers } from './columns.js';
import {
  type Context,
  compileCaptures,
  compileLinePattern,
  compileMarker,
  createRegion,
  groupNames,
  isComment,
  type LinePattern,
  lineNotFound,
  namedGroups,
  stripComment,
} from './context.js';
import { compileListed, listedRow, NO_NAMES } from './listed.js';
import { addRow, beginBlock, startOf, type TableBuilder } from './table.js';
import { addUnread, covers, wordsOf } from './unread.js';

/** Receives the lines of a table, block by block. */
export interface BlockSink {
  begin(head: Head, captures: ReadonlyMap<string, string>): void;
  row(line: Line): void;
  /** A line within a plate that is blank. */
  gap?(line: Line): void;
}

/**
 * `claimed`: a header or row, which `meta` does not read. `repeated`: the header again, which says nothing new. `marker`:
 * it only says where the table or a block is.
 */
export type LineUse = 'claimed' | 'repeated' | 'marker' | 'skipped' | 'skipped above' | undefined;

type State = 'before' | 'between' | 'header' | 'names' | 'units' | 'rows' | 'ended';

/** If no header is found in this many lines, the block has none. */
const MAX_HELD_LINES = 50;
/** The first blocks that end at a blank line are enough to tell whether blank lines end the table. */
const MAX_AFTER_BLANK = 1000;
const NONE: ReadonlyMap<string, string> = new Map();

/**
 * Finds the lines of one table in one pass. Only one thing is known late: whether a block without its header line has
 * none, or has it further down. Until then its lines are held.
 */
type TableFinder = ReturnType<typeof createFinder>;

const createFinder = (options: TableOptions, sink: BlockSink, context: Context) => ({
  options,
  context,
  sink,
  region: createRegion(options, context),
  match: compilePatterns(options, context),
  /** Whether `header` is a line pattern, not `first` or `none`. */
  isHeaderPattern: options.header[0] !== 'first' && options.header[0] !== 'none',
  hasHeader: options.header[0] !== 'none' && options.rows === undefined,
  state: (options.after ? 'before' : 'between') as State,
  /** Captures of the current block, and those of `after`, which all blocks have. */
  ...{ captures: NONE, afterCaptures: NONE },
  head: undefined as Head | undefined,
  /** The lines that started the block, if they capture something and no row has it yet. */
  markers: [] as Line[],
  /** Names in lines of their own, for the rows below. */
  listed: compileListed(options.header),
  ...{ listing: NO_NAMES, isListUsed: false },
  /** A header above the first block, for blocks without one. */
  headerAbove: undefined as Line | undefined,
  names: [] as Line[],
  held: [] as Line[],
  /** How the lines between the start of this block and its header begin, and those of all blocks with a header. */
  begins: [] as string[],
  factNames: new Set<string>(),
  /** Lines that turned out to belong to the table after they were offered. */
  late: [] as Line[],
  /** The first line with content below each blank line that ended a block. */
  afterBlank: [] as Line[],
  ...{ hasContent: false, isAfterBlank: false, blocks: 0, rows: 0 },
});

export function openTableFinder(options: TableOptions, sink: BlockSink, context: Context): TableFinder {
  const finder = createFinder(options, sink, context);
  if (!options.after && !options.every) openBlock(finder, NONE);
  return finder;
}

const never = () => false;

function compilePatterns(options: TableOptions, context: Context) {
  const skip = options.skip ? compileLinePattern(options.skip) : never;
  const rows = options.rows === undefined ? undefined : compileLinePattern([options.rows]);
  const until = compileLinePattern(options.until.filter((pattern) => pattern !== 'blank'));
  const endsAtBlank = options.until.includes('blank');
  const header = options.header[0] === 'first' ? undefined : compileLinePattern(options.header);
  const isContent = (line: Line) => !isBlank(line) && !isComment(line, context) && !skip(line);
  return {
    after: options.after ? compileLinePattern(options.after) : never,
    afterCaptures: compileCaptures(options.after ?? []),
    begins: options.every ? compileLinePattern(options.every) : never,
    captures: compileNested(options.every ?? []),
    isOnlyMarker: compileMarker([...(options.after ?? []), ...(options.every ?? [])]),
    isHeader: header ?? isContent,
    isSkipped: skip,
    /** `isVoid`: rows and plates differ in what is blank. */
    ends: (line: Line, isVoid: boolean) => (isVoid && endsAtBlank) || until(line),
    isRow: (line: Line) => isContent(line) && (rows?.(line) ?? true),
  };
}

/** What a line that starts a block captures. What lines of earlier patterns captured stays: a step is within its cycle. */
function compileNested(every: readonly LinePattern[]) {
  const patterns = every.map((pattern, n) => ({
    matches: compileLinePattern([pattern]),
    captures: compileCaptures([pattern]),
    outer: new Set(groupNames(every.slice(0, n))),
  }));
  return (line: Line, before: ReadonlyMap<string, string>) => {
    const own = patterns.find(({ matches }) => matches(line));
    const kept = [...before].filter(([name]) => own?.outer.has(name));
    return { captures: new Map([...kept, ...(own?.captures(line) ?? [])]), isNested: kept.length > 0 };
  };
}

/** What the line is for the table. Must be called once for every line. */
export function offerTableLine(finder: TableFinder, original: Line): LineUse {
  const { options, match } = finder;
  const line = finder.region.view(original);
  if (!line) return undefined;
  noteAfterBlank(finder, line);
  const isListed = finder.listed !== undefined && takeListed(finder, line);
  if (isListed && finder.state !== 'before') return 'claimed';
  if (finder.state === 'before') {
    if (!isListed) noteHeaderAbove(finder, line);
    if (!match.after(line)) return isListed ? 'claimed' : undefined;
    finder.afterCaptures = match.afterCaptures(line);
    if (options.every) finder.state = 'between';
    else openBlock(finder, NONE);
    return markBlock(finder, line);
  }
  if (options.every && match.begins(line)) {
    closeBlock(finder);
    const { captures, isNested } = match.captures(line, finder.captures);
    if (!isNested) dropMarkers(finder);
    openBlock(finder, captures);
    return markBlock(finder, line);
  }
  switch (finder.state) {
    case 'between':
      if (finder.blocks === 0) noteHeaderAbove(finder, line);
      return undefined;
    case 'ended':
      return undefined;
    case 'header':
      return takeHeader(finder, line);
    case 'names':
      return takeName(finder, line);
    case 'units':
      return takeUnits(finder, line);
    case 'rows':
      return takeRow(finder, line);
  }
}

/** Whether the line is one of the names. They can be anywhere above the rows. */
function takeListed(finder: TableFinder, line: Line): boolean {
  if (finder.state === 'rows' || finder.state === 'ended') return false;
  const listing = finder.listed?.(line, finder.isListUsed ? NO_NAMES : finder.listing);
  if (!listing) return false;
  finder.listing = listing;
  finder.isListUsed = false;
  return true;
}

function startListed(finder: TableFinder, line: Line): void {
  finder.isListUsed = true;
  finder.hasContent = true;
  const { names, units } = finder.listing;
  const hasUnits = units.some((unit) => unit !== '');
  startRows(finder, { header: [listedRow(line, names)], units: hasUnits ? listedRow(line, units) : undefined });
}

function markBlock(finder: TableFinder, line: Line): LineUse {
  if (!finder.match.isOnlyMarker(line)) return undefined;
  if (finder.captures.size > 0) finder.markers.push(line);
  return 'marker';
}

/** What a marker captures becomes part of the rows below it, so without rows it is lost. */
function dropMarkers(finder: TableFinder): void {
  for (const marker of finder.markers) addUnread(finder.context.unread, marker, 'unread');
  finder.markers = [];
}

function noteHeaderAbove(finder: TableFinder, line: Line): void {
  if (finder.isHeaderPattern && finder.match.isHeader(line)) finder.headerAbove = line;
}

function noteAfterBlank(finder: TableFinder, line: Line): void {
  if (!finder.isAfterBlank || isBlank(line) || isComment(line, finder.context)) return;
  finder.isAfterBlank = false;
  if (!finder.match.begins(line) && finder.afterBlank.length < MAX_AFTER_BLANK) finder.afterBlank.push(line);
}

function openBlock(finder: TableFinder, captures: ReadonlyMap<string, string>): void {
  finder.captures = new Map([...finder.afterCaptures, ...captures]);
  finder.blocks++;
  finder.names = [];
  finder.held = [];
  finder.begins = [];
  finder.hasContent = false;
  finder.isAfterBlank = false;
  if (finder.hasHeader) finder.state = 'header';
  else if (finder.options.units === 'nextRow') finder.state = 'units';
  else startRows(finder, { header: [], units: undefined });
}

function closeBlock(finder: TableFinder): void {
  const { state, names, held } = finder;
  if (state === 'header' && held.length > 0) startWithoutHeader(finder);
  if (state === 'names' || state === 'units') startRows(finder, { header: names, units: undefined });
}

function startRows(finder: TableFinder, head: Head): void {
  finder.head = head;
  finder.sink.begin(head, finder.captures);
  finder.state = 'rows';
}

/** The block has no header, so it uses the last one seen. */
function startWithoutHeader(finder: TableFinder): void {
  const { head, headerAbove, held, factNames } = finder;
  if (!head && !headerAbove) return;
  finder.held = [];
  // What stands between title and header in other blocks is not a row: `# of Peaks,0` of an empty block.
  if (factNames.has(held[0]?.cells[0] ?? '')) return;
  if (head) startRows(finder, head);
  else if (headerAbove) {
    finder.late.push(headerAbove);
    startRows(finder, { header: [strip(finder, headerAbove)], units: undefined });
  }
  for (const line of held) {
    noteAfterBlank(finder, line);
    if (takeRow(finder, line) === 'claimed') finder.late.push(line);
  }
}

const strip = ({ context, region }: TableFinder, line: Line): Line => stripComment(line, context, region.lineFormat);

function takeHeader(finder: TableFinder, line: Line): LineUse {
  const { isHeaderPattern, match, held } = finder;
  if (finder.listed && finder.listing.names.length > 0 && match.isRow(line)) {
    startListed(finder, line);
    return takeRow(finder, line);
  }
  if (match.isHeader(line)) {
    finder.held = [];
    for (const name of finder.begins) finder.factNames.add(name);
    return takeName(finder, line);
  }
  const [name = ''] = line.cells;
  if (/\p{L}{2}/u.test(name) && finder.begins.length < MAX_HELD_LINES) finder.begins.push(name);
  const hasEarlier = finder.head !== undefined || finder.headerAbove !== undefined;
  if (isHeaderPattern && hasEarlier && (held.length > 0 || !isBlank(line))) {
    held.push(line);
    if (held.length > MAX_HELD_LINES) startWithoutHeader(finder);
  }
  return match.isSkipped(line) ? 'skipped above' : undefined;
}

function takeName(finder: TableFinder, line: Line): LineUse {
  const { options, match, names } = finder;
  if (isBlank(line) || match.isSkipped(line)) return 'skipped';
  names.push(strip(finder, line));
  finder.hasContent = true;
  if (names.length < options.headerRows) finder.state = 'names';
  else if (options.units === 'nextRow') finder.state = 'units';
  else if (options.units === 'firstRow') startRows(finder, { header: names.slice(1), units: names[0] });
  else startRows(finder, { header: names, units: undefined });
  return 'claimed';
}

function takeUnits(finder: TableFinder, line: Line): LineUse {
  const { match, names, region } = finder;
  if (isBlank(line) || match.isSkipped(line)) return 'skipped';
  finder.hasContent = true;
  const units = strip(finder, line);
  const [only, ...others] = names;
  const isSplitAtBlanks = region.lineFormat.split.text === undefined && others.length === 0;
  startRows(finder, { header: names, units: only && isSplitAtBlanks ? alignUnits(units, only) : units });
  return 'claimed';
}

function takeRow(finder: TableFinder, line: Line): LineUse {
  const { options, match, sink } = finder;
  if (finder.state !== 'rows') return undefined;
  const isVoid = options.grid === undefined ? isBlank(line) : isEmpty(line);
  if (isVoid && !finder.hasContent) return undefined;
  if (match.ends(line, isVoid)) {
    finder.state = options.every ? 'between' : 'ended';
    finder.isAfterBlank = isBlank(line);
    return undefined;
  }
  if (options.grid !== undefined && isBlank(line)) {
    sink.gap?.(line);
    return undefined;
  }
  const isRepeatedHeader = finder.head?.header.some(({ text }) => text === line.text);
  if (isRepeatedHeader) return 'repeated';
  if (!match.isRow(line)) return match.isSkipped(line) ? 'skipped' : undefined;
  finder.hasContent = true;
  finder.markers = [];
  finder.rows++;
  sink.row(line);
  return 'claimed';
}

/** Refuses the file if a line that the mapping names was not found. */
export function finishTableFinder(finder: TableFinder): void {
  closeBlock(finder);
  dropMarkers(finder);
  const { options, context, state, blocks, head, rows, hasHeader, isHeaderPattern } = finder;
  if (state === 'before') throw lineNotFound('after', options.after ?? [], context);
  if (options.every && blocks === 0) throw lineNotFound('every', options.every, context);
  if (hasHeader && !head) {
    if (isHeaderPattern) throw lineNotFound('header', options.header, context);
    throw context.refuse('there is no table: all lines are blank', { isMismatch: true });
  }
  if (options.rows !== undefined && rows === 0) {
    throw context.refuse(`no line matches \`rows: ${options.rows}\``, {
      hint: 'correct `rows` in the mapping',
      isMismatch: true,
    });
  }
}

/** Rows whose cells are the cells of the lines, or what the pattern `rows` captures in them. */
export function createRowSink(table: TableBuilder): BlockSink {
  const { options, captureNames, context } = table;
  const pattern = options.rows === undefined ? undefined : compileRow(options.rows);
  // A header that the mapping itself gives may consist of numbers.
  const isGiven = options.header.some((written) => typeof written === 'string' && written !== 'first');
  const isSplitAtBlanks = !pattern && AT_BLANKS.includes(options.delimiter ?? context.options.delimiter);
  let width = 0;
  let whole: Line[] = [];
  const place = (line: Line): Cells => {
    const { length } = line.cells;
    if (length === width && whole.length < MAX_WHOLE) whole.push(line);
    const cells = length < width && line.text !== '' ? alignCells(line, whole) : line.cells;
    if (cells) return cells;
    throw context.refuse(
      `this row has ${length} cells, but the header has ${width}, and it is not clear which is missing`,
      {
        line,
        hint: `if it is not a row: \`skip: ${startOf(line.text)}\`; if the columns have a fixed width: \`delimiter: { at: […] }\``,
      },
    );
  };
  return {
    begin(head, captures) {
      if (!isGiven) refuseNumbers(head, context.values.numbers, context.refuse);
      const captured = captureNames.map((name) => captures.get(name) ?? '');
      const columns = pattern?.columns ?? readHeader(head);
      width = columns.length;
      whole = head.header
        .filter(({ cells, text }) => cells.length === width && cells.every((cell) => text.includes(cell)))
        .slice(0, 1);
      beginBlock(table, columns, captured, head.header[0]);
    },
    row(line) {
      const cells = pattern ? pattern.cellsIn(line) : isSplitAtBlanks ? place(line) : line.cells;
      if (pattern && !covers(line.text, [pattern.words, ...cells])) addUnread(context.unread, line, 'partly read');
      addRow(table, cells, line);
    },
  };
}

const AT_BLANKS: readonly unknown[] = ['spaces', 'whitespace'];
/** More rows would hardly change where the columns are. */
const MAX_WHOLE = 20;

/** Lines of a given form, as balances print them. The named groups of the pattern are the cells. */
function compileRow(pattern: string) {
  const regex = new RegExp(regexSource(pattern) ?? pattern);
  const names = groupNames([pattern]);
  return {
    words: wordsOf(pattern),
    columns: names.map((name, cell) => namedColumn(name, cell)),
    cellsIn({ text }: Line): string[] {
      const groups = namedGroups(regex.exec(text));
      return names.map((name) => groups.get(name)?.trim() ?? '');
    },
  };
}

/**
 * In lines that are split at blanks, a column without a unit leaves no empty cell, which shifts the units after it to
 * the left. Units are therefore assigned by their position below the names. If that is not clear, none is assigned.
 */
function alignUnits(units: Line, names: Line): Line {
  if (units.cells.length >= names.cells.length) return units;
  const columns = spansOf(names);
  const cells = names.cells.map(() => '');
  for (const { from, to, cell } of spansOf(units)) {
    const above = columns.flatMap((column, n) => (column.from < to && from < column.to ? [n] : []));
    const [only, ...others] = above;
    if (only === undefined || others.length > 0 || cells[only] !== '') return { ...units, cells: [] };
    cells[only] = cell;
  }
  return { ...units, cells };
}

/** The characters of a line that each cell takes. */
function spansOf({ text, cells }: Line): { from: number; to: number; cell: string }[] {
  let end = 0;
  return cells.map((cell) => {
    const from = text.indexOf(cell, end);
    end = from + cell.length;
    return { from, to: end, cell };
  });
}
