import type { Finder, TableOptions } from '../../config/vocabulary.js';
import { FileError } from '../../errors.js';
import type { FileRecord, Table } from '../../model.js';
import { type Line, lineKey } from '../lines.js';
import type { OpenFile } from '../source.js';
import { type DateOptions, withFixedZone } from '../values/date.js';
import {
  type BlockSink,
  createRowSink,
  finishTableFinder,
  type LineUse,
  offerTableLine,
  openTableFinder,
} from './blocks.js';
import { type Context, type FileLayout, groupNames, HINT_LINES, openContext } from './context.js';
import {
  type FactFinder,
  type Facts,
  finishFinders,
  type NamedFact,
  offerLine,
  openFinder,
  readFacts,
  requireZone,
} from './facts.js';
import { createPlateSink, finishPlates, fitsPlate, openPlates } from './grid.js';
import { finishTable, firstFitting, openTable, type TableBuilder } from './table.js';
import type { Tree } from './tree.js';
import { finishUnread, judgeLine } from './unread.js';

/** The lines of a file, and what it contains beside them. */
interface FileSource extends FileLayout {
  /** From the first line at each call. */
  lines(): AsyncIterable<readonly Line[]> | Iterable<readonly Line[]>;
  /** For files that are not made of lines. */
  readonly contents?: { readonly tree?: Tree; readonly labels?: readonly NamedFact[] };
}

/** Reads a file of lines: tables claim theirs, `meta` reads the others, `facts` selects from all. */
export async function readLines(file: OpenFile, source: FileSource): Promise<FileRecord> {
  const { tables: readers, facts, deferred } = await scan(file, source);
  if (deferred.error) throw deferred.error;
  const tables = readers.map((table) => finishTableReader(table, facts));
  const late = readers.flatMap(({ finder }) => finder.late);
  const { unread } = facts.context;
  const { tableLines } = unread;
  const record = { meta: facts.meta, tables, unread: finishUnread(unread, source.sheets, late), tableLines };
  return requireContent(record, facts.context, 'if the file is a plain table: `table: {}`');
}

/** Reads the facts of any file, and the tables of a file that is made of lines. */
export async function scan(file: OpenFile, source: FileSource) {
  const dates = withFixedZone(file.options.dates);
  const { zone } = file.options.dates;
  if (typeof zone !== 'object') return scanWith(dates, file, source);
  // Dates need the zone, which can be anywhere in the file, so a first pass looks for it.
  const { facts } = await scanWith(dates, file, source);
  return scanWith({ ...dates, zone: requireZone(facts, zone.from) }, file, source);
}

async function scanWith(dates: DateOptions, file: OpenFile, source: FileSource) {
  const { lines, contents, ...layout } = source;
  const context = openContext(file, layout, dates);
  const { options, refuse, slice, firstLines, cells } = context;
  const deferred: Deferred = { error: undefined };
  const tables = Object.entries(contents ? {} : options.tables).map(([name, table]) =>
    openTableReader(openTable(name, table, captureNames(table), context), deferred),
  );
  const finders = options.meta.map((finder) => openFinder(finder, context));
  // What a finder reads from the one line that it is for, no general finder reads again.
  const byPrecedence = finders.toSorted((a, b) => Number(isForOneLine(b)) - Number(isForOneLine(a)));

  let isVoid = true;
  for await (const batch of lines()) {
    for (const line of batch) {
      isVoid &&= line.text.trim() === '';
      if (firstLines.length < HINT_LINES) firstLines.push(line);
      let texts = cells.take(line);
      let use: LineUse;
      for (const { finder } of tables) use = strongerUse(use, offerTableLine(finder, line));
      const isClaimed = use === 'claimed';
      if (isClaimed) for (const table of tables) noteClaimed(table, line);
      let isTaken = use === 'skipped' || use === 'repeated';
      let isPlaced = false;
      for (const finder of byPrecedence) {
        const read = offerLine(finder, line, isClaimed || (isTaken && finder.options.separator !== undefined));
        if (read.length === 0) continue;
        texts = [...texts, ...read];
        isTaken ||= isForOneLine(finder);
        isPlaced ||= isByPlace(finder.options);
      }
      if (isClaimed) {
        context.unread.usedSheets.add(line.sheet ?? 0);
        context.unread.tableLines++;
      } else if (!contents && use !== 'marker' && use !== 'repeated')
        judgeLine(context.unread, line, texts, { isSkipped: use?.startsWith('skipped') ?? false, isPlaced });
    }
    if (slice.isOver()) await slice.renew();
  }
  if (isVoid && !contents && options.format !== 'none') throw refuse('the file is empty: all lines are blank');

  for (const { finder } of tables) finishTableFinder(finder);
  const late = new Set(tables.flatMap(({ finder }) => finder.late.map(lineKey)));
  const named = [...finishFinders(finders, late), ...(contents?.labels ?? [])];
  return { tables, deferred, facts: readFacts(named, context, contents?.tree) };
}

/** Whether a line of numbers can be all that the finder looks for. */
const isByPlace = ({ name, every, separator, cells, line, after }: Finder): boolean =>
  (name ?? every) !== undefined ||
  separator === 'nextRow' ||
  (cells !== undefined && [line ?? after].flat().some((place) => typeof place === 'string'));

const isForOneLine = ({ options }: FactFinder): boolean => options.line !== undefined || options.every !== undefined;

/** What a line is if it is one thing for a table and another for the next. */
function strongerUse(one: LineUse, other: LineUse): LineUse {
  if (one === 'claimed' || other === undefined) return one;
  return other === 'claimed' || one !== 'marker' ? other : one;
}

/** Refuses a record without facts and rows. With `format: none`, the file name is enough. */
export function requireContent(record: FileRecord, { options, refuse }: Context, hint: string): FileRecord {
  if (options.format === 'none' || record.meta.size > 0 || record.tables.some(({ count }) => count > 0)) return record;
  throw refuse('the mapping finds no facts and no rows', { hint, isMismatch: true });
}

/** The groups of the lines that start a block become columns, except the label of a plate. */
const captureNames = ({ every, after, grid }: TableOptions): string[] =>
  groupNames([...(every ?? []), ...(after ?? [])]).filter((name) => name !== 'label' || grid === undefined);

type TableReader = ReturnType<typeof openTableReader>;

function openTableReader(builder: TableBuilder, deferred: Deferred) {
  const { options, context } = builder;
  const plates = options.grid === undefined ? undefined : openPlates(builder);
  const sink = plates ? createPlateSink(plates) : createRowSink(builder);
  const finder = openTableFinder(options, context.hasAlternatives ? deferRefusals(sink, deferred) : sink, context);
  return {
    builder,
    finder,
    plates,
    /** Lines below the table that another table claimed. */
    claimed: new Set<string>(),
  };
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
