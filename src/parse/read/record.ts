import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import type { FileRecord, Table } from '../../model.js';
import { groupNames } from '../grammar/line.js';
import { type Line, placeOf } from '../lines.js';
import type { Refuse } from '../refuse.js';
import { createTableBuilder } from '../table/build.js';
import { createDateReader, type DateOptions, withKnownZone } from '../values/date.js';
import { createNumberReader } from '../values/number.js';
import { createValueReader, type ValueReader } from '../values/value.js';
import { createWatchedCells, type WatchedCells } from './cells.js';
import type { Context } from './context.js';
import { createFacts, type Facts } from './facts.js';
import { createPairFinder } from './find-pairs.js';
import { createTableFinder, type TableFinder } from './find-table.js';
import { createGridSink } from './grid-sink.js';
import { guard, type Refused } from './guard.js';
import { FIRST_LINES } from './not-found.js';
import { createPatternSink, createRowSink } from './row-sink.js';
import { zoneOf } from './zone.js';

/** Lines as they come, and what is known of the file that they come from. */
export interface LineFile {
  /** From the first line, each time it is called. */
  lines(): AsyncIterable<readonly Line[]>;
  readonly context: Omit<Context, 'first'>;
}

/** Reads a file that was cut into lines: tables claim theirs, `meta` reads the others, `facts` picks from all. */
export async function readRecord({ lines, context }: LineFile): Promise<FileRecord> {
  const { dates } = context.options;
  const known = withKnownZone(dates);
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
  const context: Context = { ...file, first };
  const { options, pace, refuse } = context;
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
      if (first.length < FIRST_LINES) first.push(line);
      cells.take(line);
      let isClaimed = false;
      for (const { finder } of tables) if (finder.take(line)) isClaimed = true;
      if (isClaimed) for (const table of tables) table.yield(line);
      for (const finder of finders) finder.take(line, isClaimed);
    }
    if (pace.due()) await pace.rest();
  }
  if (isVoid && !context.isNameEnough) throw refuse('the file is empty: it has only blank lines');

  for (const { finder } of tables) finder.finish();
  const late = new Set(tables.flatMap(({ finder }) => finder.late.map(placeOf)));
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
  const finder = createTableFinder(options, context.isAlternative ? guard(sink, refused) : sink, context);
  const taken = new Set<string>();
  return {
    finder,
    yield(line) {
      if (finder.afterBlank.at(-1)?.number === line.number) taken.add(placeOf(line));
    },
    finish(facts) {
      grid?.flush();
      const table = builder.finish(facts);
      const open = finder.afterBlank.filter((line) => !taken.has(placeOf(line)));
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
    isAbsent: true,
  });
}
