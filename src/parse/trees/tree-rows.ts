import type { Where } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { createUniqueNames } from '../table/names.js';
import { type CellContext, conditionOn } from './table-from.js';
import type { Found, Row, Tree } from './tree.js';
import type { FoundColumn, FoundTable } from './tree-table.js';

/** A table with a row for each hit of a path, or for each record of a type. */
export async function readRows(
  path: string,
  options: TableOptions,
  tree: Tree,
  context: CellContext,
): Promise<FoundTable> {
  const rows = tree.rows(path);
  if (!rows) {
    const { message, hint, line } = tree.deadEnd(path);
    throw context.refuse(`nothing fits \`rows: ${path}\`: ${message}`, {
      hint,
      at: line ? { line } : undefined,
    });
  }
  const columns = options.columns
    ? await wantedColumns(options.columns, rows, tree, context)
    : await ownColumns(rows, tree, context);
  const tests: ((row: number) => boolean)[] = [];
  for (const [name, conditions] of Object.entries(options.where ?? {})) {
    if (columns.some((column) => column.name === name)) continue;
    const cells = await cellsAt(name, rows, tree, context);
    const test = conditionOn(conditions, context.values);
    tests.push((row) => test(cells[row]?.text ?? ''));
  }
  return {
    columns,
    lines: rows.map(({ line }) => line),
    keeps: (row) => tests.every((test) => test(row)),
  };
}

async function wantedColumns(
  wanted: NonNullable<TableOptions['columns']>,
  rows: readonly Row[],
  tree: Tree,
  context: CellContext,
): Promise<FoundColumn[]> {
  const specs: [string, Where | undefined][] = Array.isArray(wanted)
    ? wanted.filter((name) => name !== '_').map((name) => [name, undefined])
    : Object.entries(wanted);
  const columns: FoundColumn[] = [];
  for (const [name, spec] of specs) {
    const cells = spec?.start === undefined ? await joinedCells(name, spec, rows, tree, context) : [];
    columns.push({ name, spec, cells });
  }
  return columns;
}

/** `[Date, Time]` are joined by a blank. A unit that stands in each row goes with its value. */
async function joinedCells(
  name: string,
  spec: Where | undefined,
  rows: readonly Row[],
  tree: Tree,
  context: CellContext,
): Promise<(Found | undefined)[]> {
  const parts: (Found | undefined)[][] = [];
  for (const part of spec?.from ?? [name]) parts.push(await cellsAt(part, rows, tree, context));
  const joined = rows.map((_, n) => join(parts.map((part) => part[n])));
  if (typeof spec?.unit !== 'object') return joined;
  const unitOf = tree.lookup(spec.unit.from);
  return joined.map((cell, n) => {
    const unit = cell && unitOf(rows[n])?.text;
    return cell && unit ? { ...cell, unit } : cell;
  });
}

function join(parts: readonly (Found | undefined)[]): Found | undefined {
  const [first] = parts;
  if (parts.length === 1) return first;
  const there = parts.filter((part) => part !== undefined && part.text !== '');
  const [found] = there;
  return found && { ...found, unit: undefined, text: there.map((part) => part?.text).join(' ') };
}

/** What a path yields in each row. It must be there in one of them. */
async function cellsAt(
  path: string | number,
  rows: readonly Row[],
  tree: Tree,
  { refuse, pace }: CellContext,
): Promise<(Found | undefined)[]> {
  const lookup = tree.lookup(path);
  const cells: (Found | undefined)[] = [];
  let isThere = rows.length === 0;
  for (const row of rows) {
    const cell = lookup(row);
    isThere ||= cell !== undefined;
    cells.push(cell);
    if (cells.length % 512 === 0 && pace.due()) await pace.rest();
  }
  if (isThere) return cells;
  const { message, hint, line } = tree.deadEnd(path, rows[0]);
  throw refuse(`${message} in any row`, { hint, at: { line: line ?? rows[0]?.line ?? 1 } });
}

/** The values that stand right in the rows, in the order in which they first come. */
async function ownColumns(rows: readonly Row[], tree: Tree, context: CellContext): Promise<FoundColumn[]> {
  const unique = createUniqueNames();
  const columns = new Map<string, { name: string; spec: undefined; cells: (Found | undefined)[] }>();
  for (const [n, row] of rows.entries()) {
    const times = new Map<string, number>();
    for (const [name, found] of tree.values(row)) {
      const time = (times.get(name) ?? 0) + 1;
      times.set(name, time);
      const key = `${time} ${name}`;
      const column = columns.get(key) ?? { name: unique(name), spec: undefined, cells: [] };
      column.cells[n] = found;
      columns.set(key, column);
    }
    refuseWide(columns.size, rows.length, row, tree, context);
    if (n % 512 === 0 && context.pace.due()) await context.pace.rest();
  }
  return [...columns.values()];
}

/** Rows that have hardly a name in common would make a table that is mostly empty, and of any size. */
function refuseWide(
  width: number,
  rows: number,
  row: Row,
  tree: Tree,
  { options, refuse }: CellContext,
): void {
  const isSparse = width * rows > 1_000_000 + 4 * tree.size;
  if (width <= options.limits.maxColumns && !isSparse) return;
  throw refuse(`the rows have ${width} columns, more than are read`, {
    at: { line: row.line },
    hint: 'name those that are wanted: `columns: [ … ]`',
  });
}
