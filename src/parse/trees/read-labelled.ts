import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import { tableSchema } from '../../config/vocabulary-table.js';
import type { FileRecord, Table, Value } from '../../model.js';
import { createUniqueNames } from '../table/names.js';
import { createCellContext, refuseManyRows, type TreeFile } from './read-tree.js';
import { type CellContext, type TextRow, tableFrom } from './table-from.js';
import { type FactSources, type NamedFact, readFacts } from './tree-facts.js';

/** A file that says everything by labels: facts, and data that need no mapping. */
export interface LabelledFile {
  readonly labels: readonly NamedFact[];
  readonly tables: readonly LabelledTable[];
}

export interface LabelledTable {
  readonly columns: readonly { readonly name: string; readonly unit: string | undefined }[];
  readonly rows: readonly TextRow[];
  readonly line: number;
  /** How many rows the file itself says that there are. */
  readonly declared: number | undefined;
}

/** Reads it, as it is; a mapping may name facts and, in the order of the file, tables and their columns. */
export async function readLabelled(
  { labels, tables: data }: LabelledFile,
  file: TreeFile,
  options: ParseOptions,
): Promise<FileRecord> {
  const { refuse, pace } = file;
  const sources: FactSources = {
    named: [...file.named, ...labels],
    tree: undefined,
    cell: undefined,
    refuse,
  };
  const context = createCellContext(options, sources, pace);
  const meta = readFacts(options.facts, sources, context.values, context.dates);
  const date = meta.has('date') ? undefined : dateIn(labels, context);
  if (date) meta.set('date', date);

  const rows = data.reduce((sum, table) => sum + table.rows.length, 0);
  refuseManyRows(rows, options, refuse);
  const wanted = Object.entries(options.tables);
  const lacking = wanted[data.length];
  if (lacking) {
    throw refuse(`there is no data for table ${lacking[0]}: the file has ${data.length} tables`, {
      hint: 'name at most as many tables as the file has, in its order',
    });
  }
  const unique = createUniqueNames();
  const tables: Table[] = [];
  for (const [n, table] of data.entries()) {
    const [name, how] = wanted[n] ?? ['readings', tableSchema.parse({})];
    requireCount(table, how, context);
    const columns = table.columns.map((column) => ({ ...column, spec: undefined }));
    tables.push(await tableFrom(unique(name), how, { columns, rows: table.rows }, context));
  }
  return { meta, tables };
}

/** A mapping that knows better than the file has the last word. */
function requireCount(
  { rows, declared, line }: LabelledTable,
  { count }: TableOptions,
  { refuse }: CellContext,
): void {
  const wanted = typeof count === 'number' ? count : declared;
  if (wanted === undefined || wanted === rows.length) return;
  throw refuse(`there are ${rows.length} points, and there must be ${wanted}`, {
    at: { line },
    hint: `the file may be cut short; if it is not, say so: \`table: { count: ${rows.length} }\``,
  });
}

/** The day by the file's own label, where it can mean one day only. */
function dateIn(labels: readonly NamedFact[], { values }: CellContext): Value | undefined {
  const textOf = (key: string) =>
    labels.find(({ name }) => name.replace(/[\s\-_/]/g, '').toUpperCase() === key)?.text;
  const [long, day, time] = [textOf('LONGDATE'), textOf('DATE'), textOf('TIME')];
  for (const text of [long, day && time && `${day} ${time}`, day]) {
    const iso = text ? values.dates.readAsDate(text) : undefined;
    if (text && iso !== undefined) return { value: iso, text };
  }
  return undefined;
}
