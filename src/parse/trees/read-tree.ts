import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import type { FileRecord, Table } from '../../model.js';
import type { Pace } from '../pace.js';
import type { Refuse } from '../refuse.js';
import { createDateReader } from '../values/date.js';
import { createNumberReader } from '../values/number.js';
import { createValueReader } from '../values/value.js';
import { type CellContext, type TextTable, tableFrom } from './table-from.js';
import type { Tree } from './tree.js';
import { type FactSources, knownDates, type NamedFact, readFacts, requireFound } from './tree-facts.js';
import { readTreeTable } from './tree-table.js';

/** What else is known of a file that is a tree. */
export interface TreeFile {
  readonly refuse: Refuse;
  readonly pace: Pace;
  /** What `meta` found: in the file's name or path, or in its lines where it has some. */
  readonly named: readonly NamedFact[];
  /** The text of a cell such as `=C3`, where the file has lines. */
  readonly cell?: (written: string) => string | undefined;
}

/** Reads JSON, XML or records: facts and tables by their paths. */
export async function readTree(tree: Tree, file: TreeFile, options: ParseOptions): Promise<FileRecord> {
  const { refuse, pace, named } = file;
  const sources: FactSources = { named, tree, cell: file.cell, refuse };
  const context = createCellContext(options, sources, pace);
  const meta = readFacts(options.facts, sources, context.values, context.dates);
  const tables: Table[] = [];
  let rows = 0;
  for (const [name, table] of Object.entries(options.tables)) {
    const text = await readTreeTable(name, table, tree, (from) => requireFound(from, sources), context);
    rows += text.rows.length;
    refuseManyRows(rows, options, refuse);
    tables.push(await tableFrom(name, withoutPaths(table, text), text, context));
  }
  if (meta.size === 0 && tables.every(({ count }) => count === 0)) {
    throw refuse('the mapping finds no fact and no row', {
      hint: 'say where they are: `facts: { sample: //Sample }`, `table: { rows: //Reading }`',
    });
  }
  return { meta, tables };
}

/** What is left to be heeded, once the cells were found: which columns there are, and what is no column, is settled. */
function withoutPaths(table: TableOptions, { columns }: TextTable): TableOptions {
  const own = Object.entries(table.where ?? {}).filter(([key]) => columns.some(({ name }) => name === key));
  return { ...table, columns: undefined, where: Object.fromEntries(own) };
}

/** How the values of a file are read, once it is known where its time zone stands. */
export function createCellContext(options: ParseOptions, sources: FactSources, pace: Pace): CellContext {
  const dates = knownDates(options, sources);
  const values = createValueReader({
    numbers: createNumberReader(options),
    dates: createDateReader(dates),
    missing: options.missing,
  });
  return { options, values, dates, refuse: sources.refuse, pace };
}

export function refuseManyRows(rows: number, { limits }: ParseOptions, refuse: Refuse): void {
  if (rows <= limits.maxRows) return;
  throw refuse(`the tables have ${rows} rows, more than are read`, {
    hint: `if such files are to be read, allow more: \`limits: { rows: ${rows} }\``,
  });
}
