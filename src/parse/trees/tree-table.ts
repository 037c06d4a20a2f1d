import type { Where } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import type { CellContext, TextColumn, TextRow, TextTable } from './table-from.js';
import type { Found, Tree } from './tree.js';
import { readLists } from './tree-lists.js';
import { readRows } from './tree-rows.js';

/** A column whose cells were found, with a unit each. */
export interface FoundColumn {
  readonly name: string;
  /** What the mapping says of it; undefined where the column is the file's own. */
  readonly spec: Where | undefined;
  readonly cells: readonly (Found | undefined)[];
}

export interface FoundTable {
  readonly columns: readonly FoundColumn[];
  /** The line of each row. */
  readonly lines: readonly number[];
  /** Whether `where` keeps a row, as far as it asks for what is no column. */
  keeps(row: number): boolean;
}

/** Something that the mapping refers to beyond the table; what is not there is refused. */
export type RequireFact = (from: string | number) => Found;

/** Finds the cells of a table in a tree: a row for each hit of `rows`, else lists that stand beside each other. */
export async function readTreeTable(
  name: string,
  options: TableOptions,
  tree: Tree,
  fact: RequireFact,
  context: CellContext,
): Promise<TextTable> {
  const found =
    options.rows === undefined
      ? readLists(name, options, tree, context)
      : await readRows(options.rows, options, tree, context);
  requireCount(name, options, found.lines.length, fact, context);
  const columns = found.columns.flatMap((column) => textColumns(column, fact, context));
  const rows: TextRow[] = [];
  for (const [n, line] of found.lines.entries()) {
    if (found.keeps(n)) rows.push({ line, cells: columns.map(({ texts }) => texts[n] ?? '') });
    if (n % 512 === 0 && context.pace.due()) await context.pace.rest();
  }
  return { columns, rows };
}

function requireCount(
  name: string,
  { count }: TableOptions,
  rows: number,
  fact: RequireFact,
  { refuse, values }: CellContext,
): void {
  if (count === undefined) return;
  const said = typeof count === 'number' ? undefined : fact(count);
  const wanted = said ? values.numbers.read(said.text) : count;
  if (wanted === rows) return;
  throw refuse(`table ${name} has ${rows} rows, and there must be ${said?.text ?? count}`, {
    at: said && { line: said.line },
    hint: 'the file may be cut short; else correct `count` in the mapping',
  });
}

type Texts = TextColumn & { readonly texts: readonly string[] };

/** One column; and its units beside it, where they are not the same in all rows. */
function textColumns({ name, spec, cells }: FoundColumn, fact: RequireFact, context: CellContext): Texts[] {
  const texts = cells.map((cell) => cell?.text ?? '');
  const units = new Set(cells.filter((cell) => cell && cell.text !== '').map((cell) => cell?.unit));
  const [only] = units;
  const given =
    typeof spec?.unit === 'object' && units.size <= 1 && !only ? fact(spec.unit.from).text : spec?.unit;
  const unit = typeof given === 'string' ? given : units.size === 1 ? only : undefined;
  const column = { name, unit, spec: spec && plainSpec(spec, fact, context), texts };
  if (units.size < 2 || typeof given === 'string') return [column];
  const beside = cells.map((cell) => cell?.unit ?? '');
  return [column, { name: `${name} unit`, unit: undefined, spec: spec && { type: 'text' }, texts: beside }];
}

/** Without what was heeded already; start and step of an axis are numbers by now. */
function plainSpec({ type, format, start, step }: Where, fact: RequireFact, context: CellContext): Where {
  const number = (from: string | number): number => {
    if (typeof from === 'number') return from;
    const { text, line } = fact(from);
    const value = context.values.read(text).value;
    if (typeof value === 'number') return value;
    throw context.refuse(`${JSON.stringify(text)} is no number that an axis could begin or go on with`, {
      at: { line },
      hint: `correct \`start\` or \`step\`: ${from}`,
    });
  };
  const axis = start === undefined || step === undefined ? {} : { start: number(start), step: number(step) };
  return { ...(type && { type }), ...(format && { format }), ...axis };
}
