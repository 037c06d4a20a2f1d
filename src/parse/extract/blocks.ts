import { regexSource } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { isBlank, isEmpty, type Line, type Refuse } from '../lines.js';
import type { NumberReader } from '../values/value.js';
import { type Head, readHeader, refuseNumbers } from './columns.js';
import {
  type Context,
  compileCaptures,
  compileLinePattern,
  createRegion,
  groupNames,
  isComment,
  type LineMatcher,
  lineNotFound,
  namedGroups,
  stripComment,
} from './context.js';
import type { TableBuilder } from './table.js';

/** What is done with the lines of a table, once they are found. */
export interface BlockSink {
  begin(head: Head, captures: ReadonlyMap<string, string>): void;
  row(line: Line): void;
  /** A line within a plate that holds nothing. */
  gap(line: Line): void;
}

/** Finds the lines of one table while they go by. */
export interface TableFinder {
  /** Whether the line belongs to the table: `meta` then passes it over. */
  take(line: Line): boolean;
  /** Lines that turned out to belong to the table after they had gone by. */
  readonly late: readonly Line[];
  /** Below each blank line that ended a block, the first one with something in it. */
  readonly afterBlank: readonly Line[];
  /** Refuses where something that the mapping names was never found. */
  finish(): void;
}

/** Where no header comes among so many lines, the block has none. */
const HELD_LINES = 50;
/** Where so many blocks end in a blank line, the first of them tell whether blank lines are ends. */
const MOST_AFTER_BLANK = 1000;

type State = 'before' | 'between' | 'header' | 'names' | 'units' | 'rows' | 'ended';

/**
 * A table is found in one pass. The one thing that is only known later is whether a block without its header
 * line has none, or has it further down: until then its lines are held.
 */
export function createTableFinder(options: TableOptions, sink: BlockSink, context: Context): TableFinder {
  const match = compileTable(options, context);
  const place = createRegion(options, context);
  const isPattern = options.header[0] !== 'first' && options.header[0] !== 'none';
  const hasHeader = options.header[0] !== 'none' && options.rows === undefined;
  const late: Line[] = [];
  const afterBlank: Line[] = [];
  let state: State = options.after ? 'before' : options.every ? 'between' : 'header';
  let captures: ReadonlyMap<string, string> = new Map();
  let afterCaptures: ReadonlyMap<string, string> = new Map();
  let head: Head | undefined;
  /** A header above the first block, which serves where the block has none. */
  let above: Line | undefined;
  let names: Line[] = [];
  let held: Line[] = [];
  let repeated = new Set<string>();
  let hasRows = false;
  let blocks = 0;
  let found = 0;
  let isAfterBlank = false;

  function open(own: ReadonlyMap<string, string>): void {
    captures = new Map([...afterCaptures, ...own]);
    blocks++;
    [names, held, hasRows, isAfterBlank] = [[], [], false, false];
    state = hasHeader ? 'header' : options.units === 'nextRow' ? 'units' : 'rows';
    if (state === 'rows') start({ header: [], units: undefined });
  }

  function start(own: Head): void {
    head = own;
    repeated = new Set(own.header.map(({ text }) => text));
    sink.begin(own, captures);
    state = 'rows';
  }

  /** The block has no header of its own: the last one seen is valid in it. */
  function startWithout(): boolean {
    const known: Head | undefined =
      head ?? (above && { header: [stripComment(above, context, place.lineFormat)], units: undefined });
    if (!known) return false;
    if (!head && above) late.push(above);
    const lines = held;
    held = [];
    start(known);
    for (const line of lines) {
      noteAfterBlank(line);
      if (takeRow(line)) late.push(line);
    }
    return true;
  }

  function close(): void {
    if (state === 'header' && held.length > 0) startWithout();
    if (state === 'names' || state === 'units') start({ header: names, units: undefined });
  }

  function takeRow(line: Line): boolean {
    if (state !== 'rows') return false;
    const isVoid = options.grid === undefined ? isBlank(line) : isEmpty(line);
    if (isVoid && !hasRows) return false;
    if (match.until(line, isVoid)) {
      state = options.every ? 'between' : 'ended';
      isAfterBlank = isBlank(line);
      return false;
    }
    if (options.grid !== undefined && isBlank(line)) {
      sink.gap(line);
      return false;
    }
    if (!match.isRow(line) || repeated.has(line.text)) return false;
    hasRows = true;
    found++;
    sink.row(line);
    return true;
  }

  function noteAfterBlank(line: Line): void {
    if (!isAfterBlank || isBlank(line) || isComment(line, context)) return;
    isAfterBlank = false;
    if (!match.begins(line) && afterBlank.length < MOST_AFTER_BLANK) afterBlank.push(line);
  }

  function takeHeader(line: Line): boolean {
    if (match.isHeader(line)) {
      held = [];
      return takeName(line);
    }
    // Only a pattern can be passed by: `first` takes the first line there is.
    if (isPattern && (head || above) && (held.length > 0 || !isBlank(line))) {
      held.push(line);
      if (held.length > HELD_LINES) startWithout();
    }
    return false;
  }

  function takeName(line: Line): boolean {
    if (isBlank(line) || match.isSkipped(line)) return false;
    names.push(stripComment(line, context, place.lineFormat));
    hasRows = true;
    if (names.length < options.headerRows) state = 'names';
    else if (options.units === 'nextRow') state = 'units';
    else start({ header: names, units: undefined });
    return true;
  }

  function takeUnits(line: Line): boolean {
    if (isBlank(line) || match.isSkipped(line)) return false;
    hasRows = true;
    const units = stripComment(line, context, place.lineFormat);
    const [only, ...others] = names;
    const isByBlanks = place.lineFormat.split.text === undefined && others.length === 0;
    start({ header: names, units: only && isByBlanks ? alignUnits(units, only) : units });
    return true;
  }

  function take(original: Line): boolean {
    const line = place.view(original);
    if (!line) return false;
    noteAfterBlank(line);
    if (state === 'before') {
      if (isPattern && match.isHeader(line)) above = line;
      if (!match.after(line)) return false;
      afterCaptures = match.afterCaptures(line);
      if (options.every) state = 'between';
      else open(new Map());
      return false;
    }
    if (options.every && match.begins(line)) {
      close();
      open(match.captures(line));
      return false;
    }
    switch (state) {
      case 'between':
        if (isPattern && blocks === 0 && match.isHeader(line)) above = line;
        return false;
      case 'ended':
        return false;
      case 'header':
        return takeHeader(line);
      case 'names':
        return takeName(line);
      case 'units':
        return takeUnits(line);
      case 'rows':
        return takeRow(line);
    }
  }

  if (state === 'header') open(new Map());
  return {
    take,
    late,
    afterBlank,
    finish() {
      close();
      if (state === 'before') throw lineNotFound('after', options.after ?? [], context);
      if (options.every && blocks === 0) throw lineNotFound('every', options.every, context);
      if (hasHeader && !head) {
        if (isPattern) throw lineNotFound('header', options.header, context);
        throw context.refuse('there is no table: only blank lines', { isMismatch: true });
      }
      if (options.rows !== undefined && found === 0) {
        const hint = 'correct `rows` in the mapping';
        throw context.refuse(`no line fits \`rows: ${options.rows}\``, { hint, isMismatch: true });
      }
    },
  };
}

const never = () => false;

function compileTable(options: TableOptions, context: Context) {
  const skip = options.skip ? compileLinePattern(options.skip) : never;
  const rows = options.rows === undefined ? undefined : compileLinePattern([options.rows]);
  const until = compileLinePattern(options.until.filter((form) => form !== 'blank'));
  const endsAtBlank = options.until.includes('blank');
  const isFirst = options.header[0] === 'first';
  const header = isFirst ? undefined : compileLinePattern(options.header);
  const isOwn: LineMatcher = (line) => !isBlank(line) && !isComment(line, context) && !skip(line);
  return {
    after: options.after ? compileLinePattern(options.after) : never,
    afterCaptures: compileCaptures(options.after ?? []),
    begins: options.every ? compileLinePattern(options.every) : never,
    captures: compileCaptures(options.every ?? []),
    isHeader: header ?? isOwn,
    isSkipped: skip,
    /** `isVoid`: what counts as blank differs between rows and plates. */
    until: (line: Line, isVoid: boolean) => (isVoid ? endsAtBlank : false) || until(line),
    isRow: (line: Line) => isOwn(line) && (rows?.(line) ?? true),
  };
}

export interface SinkDeps {
  readonly options: TableOptions;
  /** Columns that the lines which begin a block can fill. */
  readonly captureNames: readonly string[];
  readonly builder: TableBuilder;
  readonly numbers: NumberReader;
  readonly refuse: Refuse;
}

/** Lines whose cells are the cells of the rows. */
export function createRowSink({ options, captureNames, builder, numbers, refuse }: SinkDeps): BlockSink {
  // The very text of a header that the mapping gives may be numbers.
  const isGiven = options.header.some((form) => typeof form === 'string' && form !== 'first');
  return {
    begin(head, captures) {
      if (!isGiven) refuseNumbers(head, numbers, refuse);
      const captured = captureNames.map((name) => captures.get(name) ?? '');
      builder.begin(readHeader(head), captured, head.header[0]);
    },
    row: (line) => builder.row(line.cells, line),
    gap: () => undefined,
  };
}

/** Rows that are lines of a certain form, such as a balance prints them: their named groups are the cells. */
export function createPatternSink(pattern: string, { captureNames, builder }: SinkDeps): BlockSink {
  const regex = new RegExp(regexSource(pattern) ?? pattern);
  const names = groupNames([pattern]);
  const columns = names.map((name, cell) => ({ name, unit: undefined, cell, isNamed: true }));
  return {
    begin(_, captures) {
      const captured = captureNames.map((name) => captures.get(name) ?? '');
      builder.begin(columns, captured, undefined);
    },
    row(line) {
      const groups = namedGroups(regex.exec(line.text));
      builder.row(
        names.map((name) => groups.get(name)?.trim() ?? ''),
        line,
      );
    },
    gap: () => undefined,
  };
}

/**
 * Where lines are cut at blanks, a column without a unit leaves no cell behind, and the units after it would
 * move to the left. They stand below their names: that tells which is whose, and where it does not, none is given.
 */
function alignUnits(units: Line, names: Line): Line {
  if (units.cells.length >= names.cells.length) return units;
  const columns = placesOf(names);
  const cells = names.cells.map(() => '');
  for (const { from, to, cell } of placesOf(units)) {
    const above = columns.flatMap((column, n) => (column.from < to && from < column.to ? [n] : []));
    const [only, ...others] = above;
    if (only === undefined || others.length > 0 || cells[only] !== '') return { ...units, cells: [] };
    cells[only] = cell;
  }
  return { ...units, cells };
}

interface Place {
  readonly from: number;
  readonly to: number;
  readonly cell: string;
}

/** Where in its line each cell stands. */
function placesOf({ text, cells }: Line): Place[] {
  let end = 0;
  return cells.map((cell) => {
    const from = text.indexOf(cell, end);
    end = from + cell.length;
    return { from, to: end, cell };
  });
}
