import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import { FileError } from '../../errors.js';
import type { FileRecord, Table } from '../../model.js';
import type { LineFormat } from '../cells.js';
import { type Line, lineKey, type Refuse, raiseLimit } from '../lines.js';
import type { OpenFile } from '../source.js';
import { type DateOptions, withFixedZone } from '../values/date.js';
import { createValueReader } from '../values/value.js';
import {
  type BlockSink,
  createPatternSink,
  createRowSink,
  finishTableFinder,
  offerTableLine,
  openTableFinder,
  type TableFinder,
} from './blocks.js';
import type { TableContext } from './columns.js';
import { type Context, groupNames, HINT_LINES, watchCells } from './context.js';
import { type Facts, finishFinders, offerLine, openFinder, readFacts, requireZone } from './facts.js';
import { createPlateSink, finishPlates, fitsPlate, openPlates, type PlateReader } from './grid.js';
import { finishTable, firstFitting, openTable, type TableBuilder } from './table.js';

/** A file that is made of lines. */
interface LineSource {
  /** From the first line at each call. */
  lines(): AsyncIterable<readonly Line[]>;
  readonly format: LineFormat;
  readonly sheets?: readonly string[];
  readonly maxKeptCells: number;
}

/** Reads a file of lines: tables claim theirs, `meta` reads the others, `facts` selects from all. */
export async function readLines(file: OpenFile, source: LineSource, options: ParseOptions): Promise<FileRecord> {
  const dates = withFixedZone(options.dates);
  const { zone } = options.dates;
  if (typeof zone !== 'object') return finishScan(await scan(file, source, options, dates));
  // Dates need the zone, which can be anywhere in the file, so a first pass looks for it.
  const { facts } = await scan(file, source, options, dates);
  return finishScan(await scan(file, source, options, { ...dates, zone: requireZone(facts, zone.from) }));
}

/** What one pass over the lines yields. */
interface Scan {
  readonly context: Context;
  readonly tables: readonly TableReader[];
  readonly facts: Facts;
  readonly deferred: Deferred;
}

async function scan(
  file: OpenFile,
  { lines, format: lineFormat, sheets = [], maxKeptCells }: LineSource,
  options: ParseOptions,
  dates: DateOptions,
): Promise<Scan> {
  const { refuse, slice } = file;
  const firstLines: Line[] = [];
  const context: Context = { ...file, options, lineFormat, sheets, maxKeptCells, firstLines };
  const values = createValueReader(options, dates);
  const cells = watchCells(context);
  const countRow = createRowCounter(options, refuse);
  const tableContext = { options, values, refuse, maxKeptCells, countRow, cellAt: cells.at };
  const deferred: Deferred = { error: undefined };
  const tables = Object.entries(options.tables).map(([name, table]) =>
    openTableReader(openTable(name, table, captureNames(table), tableContext), context, deferred),
  );
  const finders = options.meta.map((finder) => openFinder(finder, context));

  let isVoid = true;
  for await (const batch of lines()) {
    for (const line of batch) {
      isVoid &&= line.text.trim() === '';
      if (firstLines.length < HINT_LINES) firstLines.push(line);
      cells.take(line);
      let isClaimed = false;
      for (const { finder } of tables) if (offerTableLine(finder, line)) isClaimed = true;
      if (isClaimed) for (const table of tables) noteClaimed(table, line);
      for (const finder of finders) offerLine(finder, line, isClaimed);
    }
    if (slice.isOver()) await slice.renew();
  }
  if (isVoid && options.format !== 'none') throw refuse('the file is empty: all lines are blank');

  for (const { finder } of tables) finishTableFinder(finder);
  const late = new Set(tables.flatMap(({ finder }) => finder.late.map(lineKey)));
  const source = { named: finishFinders(finders, late), cellAt: cells.at };
  return { context, tables, deferred, facts: readFacts(options.facts, source, values, refuse) };
}

function finishScan({ context, tables, facts, deferred }: Scan): FileRecord {
  if (deferred.error) throw deferred.error;
  const record = { meta: facts.meta, tables: tables.map((table) => finishTableReader(table, facts)) };
  return requireContent(record, context.options, context.refuse, 'if the file is a plain table: `table: {}`');
}

/** Refuses a record without facts and rows. With `format: none`, the file name is enough. */
export function requireContent(record: FileRecord, { format }: ParseOptions, refuse: Refuse, hint: string): FileRecord {
  if (format === 'none' || record.meta.size > 0 || record.tables.some(({ count }) => count > 0)) return record;
  throw refuse('the mapping finds no facts and no rows', { hint, isMismatch: true });
}

/** Counts the rows of all tables. */
export function createRowCounter({ limits }: ParseOptions, refuse: Refuse): TableContext['countRow'] {
  let rows = 0;
  return (line) => {
    if (++rows <= limits.maxRows) return;
    throw refuse(`the tables have more than ${limits.maxRows} rows`, {
      line,
      hint: raiseLimit('rows', 10 * limits.maxRows),
    });
  };
}

/** The groups of the lines that start a block become columns, except the label of a plate. */
const captureNames = ({ every, after, grid }: TableOptions): string[] =>
  groupNames([...(every ?? []), ...(after ?? [])]).filter((name) => name !== 'label' || grid === undefined);

interface TableReader {
  readonly builder: TableBuilder;
  readonly finder: TableFinder;
  readonly plates: PlateReader | undefined;
  /** Lines below the table that another table claimed. */
  readonly claimed: Set<string>;
}

function openTableReader(builder: TableBuilder, context: Context, deferred: Deferred): TableReader {
  const { options } = builder;
  const plates = options.grid === undefined ? undefined : openPlates(builder);
  const sink = plates
    ? createPlateSink(plates)
    : options.rows === undefined
      ? createRowSink(builder)
      : createPatternSink(options.rows, builder);
  const finder = openTableFinder(options, context.hasAlternatives ? deferRefusals(sink, deferred) : sink, context);
  return { builder, finder, plates, claimed: new Set() };
}

function noteClaimed({ finder, claimed }: TableReader, line: Line): void {
  if (finder.afterBlank.at(-1)?.number === line.number) claimed.add(lineKey(line));
}

function finishTableReader({ builder, finder, plates, claimed }: TableReader, facts: Facts): Table {
  if (plates) finishPlates(plates);
  const table = finishTable(builder, facts);
  const below = finder.afterBlank.filter((line) => !claimed.has(lineKey(line)));
  const line = plates ? below.find((each) => fitsPlate(plates, each)) : firstFitting(builder, below);
  if (!line) return table;
  throw builder.context.refuse(`this line looks like a row of table ${builder.name}, which ended at a blank line`, {
    line,
    hint: 'if the table continues after blank lines: `until: eof`; otherwise specify its end: `until: "…"`',
  });
}

/** The first refusal, in the order of the lines. */
interface Deferred {
  error: FileError | undefined;
}

/**
 * Defers refusals until all lines are read. Only then is it known whether the file has all patterns of the mapping, or
 * whether the next alternative is to be tried.
 */
function deferRefusals(sink: BlockSink, deferred: Deferred): BlockSink {
  let isOff = false;
  const attempt = (act: () => void): void => {
    if (isOff) return;
    try {
      act();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      isOff = true;
      deferred.error ??= error;
    }
  };
  return {
    begin: (head, captures) => attempt(() => sink.begin(head, captures)),
    row: (line) => attempt(() => sink.row(line)),
    gap: (line) => attempt(() => sink.gap?.(line)),
  };
}
