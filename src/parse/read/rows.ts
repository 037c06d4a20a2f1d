import { regexSource } from '../../config/grammar.js';
import { caught } from '../grammar/line.js';
import type { Line } from '../lines.js';
import type { NumberReader } from '../values/number.js';
import type { Context } from './context.js';
import { type FileColumn, readHeader, refuseNumbers, widthOf } from './header.js';
import type { Block, LocatedTable } from './locate.js';

/** A row as the file has it: `cells` in the order of the table's columns. */
export interface RawRow {
  readonly line: Line;
  readonly cells: readonly string[];
}

export interface RawTable {
  readonly columns: readonly FileColumn[];
  readonly rows: readonly RawRow[];
}

/** Puts the blocks of a table together: one set of columns, and every row in their order. */
export function gatherRows(located: LocatedTable, numbers: NumberReader, context: Context): RawTable {
  const { rows: pattern } = located.options;
  if (pattern !== undefined) return byPattern(located, pattern);
  const width = widthOf(located);
  if (width > context.options.limits.maxColumns) {
    throw context.refuse(`table ${located.name} has ${width} columns, more than are read`, {
      line: located.blocks[0]?.header[0] ?? located.blocks[0]?.rows[0],
      hint: `if such tables are to be read, allow more: \`limits: { columns: ${width} }\``,
    });
  }
  refuseNumbers(located, numbers, context);
  return byCells(located, width);
}

function byCells(located: LocatedTable, width: number): RawTable {
  const names = [...new Set(located.blocks.flatMap(({ captures }) => [...captures.keys()]))];
  const [first] = located.blocks;
  const columns: FileColumn[] = first ? readHeader(first, width) : [];
  const rows: RawRow[] = [];
  for (const block of located.blocks) {
    const order = isSameHeader(block, first)
      ? undefined
      : readHeader(block, width).map((column) => placeOf(column, columns));
    for (const line of block.rows)
      rows.push({ line, cells: order ? reorder(line.cells, order) : line.cells });
  }
  return names.length === 0 ? { columns, rows } : withCaptures(names, columns, rows, located.blocks);
}

const isSameHeader = (block: Block, first: Block | undefined): boolean =>
  block === first || block.header.every(({ text }, n) => text === first?.header[n]?.text);

/** Where a column of a later block goes: to the one of its name, else to the right of all. */
function placeOf(column: FileColumn, columns: FileColumn[]): number {
  const same = columns.find(({ name }) => name === column.name);
  if (same) return same.cell;
  columns.push({ ...column, cell: columns.length });
  return columns.length - 1;
}

function reorder(cells: readonly string[], order: readonly number[]): string[] {
  const ordered: string[] = new Array(Math.max(...order) + 1).fill('');
  for (const [n, place] of order.entries()) ordered[place] = cells[n] ?? '';
  return ordered;
}

/** What the line that begins a block caught stands in columns of its own, before the others. */
function withCaptures(
  names: readonly string[],
  columns: readonly FileColumn[],
  rows: readonly RawRow[],
  blocks: readonly Block[],
): RawTable {
  const width = columns.length;
  const captures = blocks.flatMap((block) =>
    block.rows.map(() => names.map((name) => block.captures.get(name) ?? '')),
  );
  const added = names.map((name, n) => ({ name, unit: undefined, cell: width + n, isNamed: true }));
  return {
    columns: [...added, ...columns],
    rows: rows.map(({ line, cells }, n) => {
      const padded = Array.from({ length: width }, (_, cell) => cells[cell] ?? '');
      return { line, cells: [...padded, ...(captures[n] ?? [])] };
    }),
  };
}

/** Rows that are lines of a certain form, such as a balance prints them: their named groups are the cells. */
function byPattern(located: LocatedTable, pattern: string): RawTable {
  const regex = new RegExp(regexSource(pattern) ?? pattern);
  const found = located.blocks.flatMap(({ rows, captures }) =>
    rows.map((line) => ({ line, groups: new Map([...captures, ...caught(regex.exec(line.text))]) })),
  );
  const names = [...new Set(found.flatMap(({ groups }) => [...groups.keys()]))];
  return {
    columns: names.map((name, cell) => ({ name, unit: undefined, cell, isNamed: true })),
    rows: found.map(({ line, groups }) => ({ line, cells: names.map((name) => groups.get(name) ?? '') })),
  };
}

/** In these columns, an empty cell takes the one above. */
export function fillDown(rows: readonly RawRow[], cells: readonly number[]): RawRow[] {
  const above = new Map<number, string>();
  return rows.map((row) => {
    const filled = [...row.cells];
    for (const cell of cells) {
      if (filled[cell]) above.set(cell, filled[cell]);
      else filled[cell] = above.get(cell) ?? '';
    }
    return { line: row.line, cells: filled };
  });
}
