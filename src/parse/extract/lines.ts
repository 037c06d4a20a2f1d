import { type CellReference, cellReference } from '../../config/grammar.js';
import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import { FileError } from '../../errors.js';
import type { FileRecord, Table } from '../../model.js';
import { type Line, lineKey, type Refuse } from '../lines.js';
import { createDateReader, type DateOptions, withFixedZone } from '../values/date.js';
import { parseZone } from '../values/date-candidates.js';
import { createNumberReader, createValueReader, type ValueReader } from '../values/value.js';
import {
  type BlockSink,
  createPatternSink,
  createRowSink,
  createTableFinder,
  type TableFinder,
} from './blocks.js';
import { type Context, groupNames, HINT_LINES } from './context.js';
import { createFacts, createPairFinder, type Facts } from './facts.js';
import { createGridSink } from './grid.js';
import { createTableBuilder } from './table.js';

/** Lines as they come, and what is known of the file that they come from. */
interface LineFile {
  /** From the first line, each time it is called. */
  lines(): AsyncIterable<readonly Line[]>;
  readonly context: Omit<Context, 'firstLines'>;
}

/** Reads a file that was cut into lines: tables claim theirs, `meta` reads the others, `facts` picks from all. */
export async function readRecord({ lines, context }: LineFile): Promise<FileRecord> {
  const { dates } = context.options;
  const known = withFixedZone(dates);
  if (typeof dates.zone !== 'object') return (await readOnce(lines(), context, known)).finish();
  // Every date waits for the zone, which may stand anywhere: it is looked for first.
  const { facts } = await readOnce(lines(), context, known);
  const zone = zoneOf(dates.zone.from, facts(), context.refuse);
  return (await readOnce(lines(), context, { ...known, zone })).finish();
}

interface Reading {
  facts(): Facts;
  finish(): FileRecord;
}

async function readOnce(
  batches: AsyncIterable<readonly Line[]>,
  file: LineFile['context'],
  dates: DateOptions,
): Promise<Reading> {
  const first: Line[] = [];
  const context: Context = { ...file, firstLines: first };
  const { options, slice: pace, refuse } = context;
  const values = createValueReader({
    numbers: createNumberReader(options),
    dates: createDateReader(dates),
    missing: options.missing,
  });
  const cells = createWatchedCells(context);
  const countRow = createRowLimit(options, context);
  const refused: Refused = {};
  const tables = Object.entries(options.tables).map(([name, table]) =>
    createTableReader(name, table, { context, values, dates, countRow, cells, refused }),
  );
  const finders = options.meta.map((finder) => createPairFinder(finder, context));

  let isVoid = true;
  for await (const batch of batches) {
    for (const line of batch) {
      isVoid &&= line.text.trim() === '';
      if (first.length < HINT_LINES) first.push(line);
      cells.take(line);
      let isClaimed = false;
      for (const { finder } of tables) if (finder.take(line)) isClaimed = true;
      if (isClaimed) for (const table of tables) table.yield(line);
      for (const finder of finders) finder.take(line, isClaimed);
    }
    if (pace.isOver()) await pace.renew();
  }
  if (isVoid && !context.isNameEnough) throw refuse('the file is empty: it has only blank lines');

  for (const { finder } of tables) finder.finish();
  const late = new Set(tables.flatMap(({ finder }) => finder.late.map(lineKey)));
  const pairs = finders.flatMap((finder) => finder.finish(late));
  const facts = () => createFacts(options.facts, { pairs, values, dates, refuse, at: cells.at });
  return {
    facts,
    finish() {
      const known = facts();
      if (refused.error) throw refused.error;
      return requireSomething(
        { meta: known.meta, tables: tables.map((table) => table.finish(known)) },
        context,
      );
    },
  };
}

interface TableReader {
  readonly finder: TableFinder;
  /** Another table took this line. */
  yield(line: Line): void;
  finish(facts: Facts): Table;
}

interface TableDeps {
  readonly context: Context;
  readonly values: ValueReader;
  readonly dates: DateOptions;
  readonly cells: WatchedCells;
  readonly refused: Refused;
  countRow(line: Line | undefined): void;
}

function createTableReader(name: string, options: TableOptions, deps: TableDeps): TableReader {
  const { context, values, dates, cells, refused, countRow } = deps;
  const { refuse } = context;
  const captureNames = groupNames([...(options.every ?? []), ...(options.after ?? [])]).filter(
    (group) => group !== 'label' || options.grid === undefined,
  );
  const builder = createTableBuilder({
    ...{ name, options, captureNames, values, dates, refuse, countRow },
    maxColumns: context.options.limits.maxColumns,
    maxKeptCells: context.maxKeptCells,
    fixed: (written) => (written.startsWith('=') ? () => cells.at(written)?.text ?? '' : undefined),
  });
  const sinkDeps = { options, captureNames, builder, numbers: values.numbers, refuse };
  const grid = options.grid === undefined ? undefined : createGridSink(sinkDeps);
  const plain = options.rows === undefined ? createRowSink : createPatternSink.bind(undefined, options.rows);
  const sink = grid ?? plain(sinkDeps);
  const finder = createTableFinder(options, context.hasAlternatives ? guard(sink, refused) : sink, context);
  const taken = new Set<string>();
  return {
    finder,
    yield(line) {
      if (finder.afterBlank.at(-1)?.number === line.number) taken.add(lineKey(line));
    },
    finish(facts) {
      grid?.flush();
      const table = builder.finish(facts);
      const open = finder.afterBlank.filter((line) => !taken.has(lineKey(line)));
      const line = grid ? open.find(grid.fits) : builder.firstFitting(open);
      if (line) throw moreRows(line, name, refuse);
      return table;
    },
  };
}

/** A blank line ended the table, and what follows looks like more of it: then it was not the end. */
const moreRows = (line: Line, name: string, refuse: Refuse): Error =>
  refuse(`this line fits the columns of table ${name}, which a blank line ended`, {
    line,
    hint: 'if the table goes on after blank lines: `until: eof`; else say where it ends: `until: "…"`',
  });

/** Counts the rows of all tables together. */
function createRowLimit({ limits: { maxRows } }: ParseOptions, { refuse }: Context) {
  let rows = 0;
  return (line: Line | undefined): void => {
    if (++rows <= maxRows) return;
    throw refuse(`the tables have more than ${maxRows} rows`, {
      line,
      hint: `if such files are to be read, allow more: \`limits: { rows: ${10 * maxRows} }\``,
    });
  };
}

function requireSomething(record: FileRecord, { refuse, isNameEnough }: Context): FileRecord {
  if (isNameEnough || record.meta.size > 0 || record.tables.some(({ count }) => count > 0)) return record;
  throw refuse('the mapping finds no fact and no row', {
    hint: 'if the file is one plain table: `table: {}`',
    isMismatch: true,
  });
}

/** The single cells that a mapping refers to, `=C3`, as they go by. */
interface WatchedCells {
  take(line: Line): void;
  /** What stands in a cell; undefined where the text names none. Refused where there is no such cell. */
  at(written: string): { readonly text: string; readonly line: Line | undefined } | undefined;
}

export function createWatchedCells(context: Context): WatchedCells {
  const { refuse, sheets } = context;
  const wanted = new Map<string, { reference: CellReference; sheet: number }>();
  for (const written of referencesIn(context.options)) {
    const reference = cellReference(written);
    if (reference) wanted.set(written, { reference, sheet: sheetOf(reference, sheets) });
  }
  const lines = new Map<string, Line>();
  // As in a spreadsheet, a quoted cell with line breaks stands in one line: lines are counted, not looked up.
  const counted: number[] = [];
  return {
    take(line) {
      if (wanted.size === 0) return;
      const sheet = line.sheet ?? 0;
      const place = (counted[sheet] ?? 0) + 1;
      counted[sheet] = place;
      for (const [written, { reference, sheet: own }] of wanted) {
        if (own === sheet && reference.line === place) lines.set(written, line);
      }
    },
    at(written) {
      const cell = wanted.get(written)?.reference.cell;
      if (cell === undefined) return undefined;
      const line = lines.get(written);
      const text = line?.cells[cell - 1];
      if (text === undefined)
        throw refuse(`there is no cell ${written}, or it lies below`, { line, isMismatch: true });
      return { text, line };
    },
  };
}

const sheetOf = ({ sheet }: CellReference, sheets: readonly string[]): number =>
  sheet === undefined ? 0 : sheets.indexOf(sheet);

/** All texts of a mapping that may name a cell, wherever they stand in it. */
function referencesIn(part: ParseOptions | unknown): string[] {
  if (typeof part === 'string') return part.startsWith('=') ? [part] : [];
  return typeof part === 'object' && part !== null ? Object.values(part).flatMap(referencesIn) : [];
}

/** What was refused first, in the order of the lines. */
interface Refused {
  error?: FileError;
}

/**
 * Keeps a refusal until all lines have gone by: only then it is known whether the mapping has all of its patterns
 * in this file, or whether the next of several alternatives is to be tried.
 */
function guard(sink: BlockSink, refused: Refused): BlockSink {
  let isOff = false;
  const attempt = (act: () => void): void => {
    if (isOff) return;
    try {
      act();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      isOff = true;
      refused.error ??= error;
    }
  };
  return {
    begin: (head, captures) => attempt(() => sink.begin(head, captures)),
    row: (line) => attempt(() => sink.row(line)),
    gap: (line) => attempt(() => sink.gap(line)),
  };
}

/** The time zone that the file itself names. */
function zoneOf(from: string, facts: Facts, refuse: Refuse): string {
  const { text, line } = facts.require(from);
  const zone = parseZone(text);
  if (zone !== undefined) return zone;
  throw refuse(`this is no time zone: ${JSON.stringify(text)}`, {
    line,
    hint: 'give the zone itself: `dates: { zone: Europe/Zurich }`',
  });
}
