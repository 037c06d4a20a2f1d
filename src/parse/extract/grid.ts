import { isBlank, type Line, quoted } from '../lines.js';
import type { BlockSink } from './blocks.js';
import { cleanName, createUniqueNames, type FileColumn, unnamedColumn } from './columns.js';
import { addRow, beginBlock, type TableBuilder } from './table.js';
import { addUnread } from './unread.js';

/** What the wells of one block share. */
interface Block {
  readonly captures: ReadonlyMap<string, string>;
  readonly captured: readonly string[];
  /** Side by side. */
  readonly plates: readonly Plate[];
  /** The names of the cells to the left of the plate. */
  readonly left: readonly string[];
  readonly header: Line;
}

interface Plate {
  /** Index of the cell of plate column 1. */
  readonly from: number;
  readonly columns: number;
}

interface Well {
  readonly block: Block;
  readonly left: readonly string[];
  readonly well: string;
  /** By label. */
  readonly values: Map<string, string>;
  readonly line: Line;
}

/** Wells are in memory until the last line. */
const MAX_WELLS = 500_000;
const MAX_WELL_VALUES = 1_000_000;

/** Reads plates: one row per well, one column per label. Rows are held, because a well can be in several blocks. */
type PlateReader = ReturnType<typeof openPlates>;

export const openPlates = (table: TableBuilder) => ({
  table,
  /** The labels that the mapping gives. */
  given: Array.isArray(table.options.grid) ? table.options.grid : [],
  wells: new Map<string, Well>(),
  labels: new Set<string>(),
  block: undefined as Block | undefined,
  /** Whether rows have letters; undefined until the first row. */
  isLettered: undefined as boolean | undefined,
  letter: '',
  /** Without letters: the number of the row in its plate. */
  counted: 0,
  /** The number of the line among those with the same letter. */
  stacked: 0,
  /** The cells to the left of the plate, filled down. */
  left: [] as readonly string[],
});

export const createPlateSink = (reader: PlateReader): BlockSink => ({
  begin(head, captures) {
    const header = head.header.at(-1);
    const plates = platesIn(header);
    const [first] = plates;
    const { captureNames, context } = reader.table;
    if (!first || !header) {
      throw context.refuse('this is not the header of a plate: it has no cells 1, 2, 3 …', {
        line: header,
        hint: 'specify the line with the column numbers: `header: "…"`',
        isMismatch: true,
      });
    }
    // A number that continues no plate: the wells below it are in none.
    const isLeft = (cell: string, at: number) =>
      /^\d+$/.test(cell) && !plates.some(({ from, columns }) => at >= from && at < from + columns);
    if (header.cells.some(isLeft)) addUnread(context.unread, header, 'partly read');
    const captured = captureNames.map((name) => captures.get(name) ?? '');
    const left = header.cells.slice(0, first.from).map(cleanName);
    reader.block = { captures, captured, plates, left, header };
    Object.assign(reader, { letter: '', counted: 0, stacked: 0, left: [] });
  },
  row(line) {
    const { block, left } = reader;
    if (!block) return;
    if (isDrawn(line)) {
      // One line drawn per plate is none of its rows. One per column may be a row without letters that was not measured.
      if (line.cells.filter((cell) => cell !== '').length > block.plates.length) reader.counted++;
      return;
    }
    if (isTotals(block, line)) return addUnread(reader.table.context.unread, line, 'left out');
    reader.isLettered ??= block.left.length > 0 && isLetter(line.cells[0]);
    reader.letter = nextLetter(reader, line);
    // The letter is part of the well name; the other cells to the left are filled down.
    reader.left = block.left.map((_, n) => (n === 0 && reader.isLettered ? '' : line.cells[n] || left[n] || ''));
    for (const n of block.plates.keys()) addWells(reader, line, n, block);
    if (line.cells.some((text, at) => text !== '' && !isPlateCell(block, line, at)))
      addUnread(reader.table.context.unread, line, 'partly read');
  },
  gap(line) {
    // A line of delimiters is a row that was not measured; an empty line starts the next plate.
    reader.counted = line.cells.length > 1 ? reader.counted + 1 : 0;
  },
});

/** Each cell is empty or a drawn line. */
export const isDrawn = (line: Line): boolean =>
  !isBlank(line) && line.cells.every((cell) => cell === '' || /^[-=_*+|]{3,}$/.test(cell));

/** In a well, to the left of the plates, or the label to the right of one. */
const isPlateCell = (block: Block, line: Line, at: number): boolean =>
  at < block.left.length ||
  block.plates.some(({ from, columns }) => at >= from && at < from + columns + (isTotal(block, line, at) ? 0 : 1));

/** A number under a name to the right of the plate is computed from the row: `1 2 3 … 12 Sum`. It is not a label. */
const isTotal = ({ header }: Block, { cells }: Line, at: number): boolean =>
  (header.cells[at] ?? '') !== '' && /^[-+]?[\d.,]+$/.test(cells[at] ?? '');

/** The row of totals has the same name as their column. */
const isTotals = ({ header, plates }: Block, { cells: [first = ''] }: Line): boolean =>
  first !== '' && plates.some(({ from, columns }) => header.cells[from + columns] === first);

/** The letter of a line: its own, that of the line above if lines are stacked, or counted. */
function nextLetter(reader: PlateReader, line: Line): string {
  const own = line.cells[0] ?? '';
  if (!reader.isLettered) return letterAt(reader.counted++);
  reader.stacked = own === '' || own === reader.letter ? reader.stacked + 1 : 0;
  return own === '' ? reader.letter : own;
}

/** The cell to the right of the plate, the given label, the captured `label`, or `value`. */
function labelOf({ given, stacked, letter }: PlateReader, line: Line, n: number, block: Block): string {
  const { plates, captures } = block;
  const end = (plates[n]?.from ?? 0) + (plates[n]?.columns ?? 0);
  const right = end === plates[n + 1]?.from ? '' : (line.cells[end] ?? '');
  // The letter of the next plate is not a label.
  if (right !== '' && !isTotal(block, line, end) && (n === plates.length - 1 || right !== letter)) return right;
  return given[plates.length > 1 ? n : stacked] ?? captures.get('label') ?? 'value';
}

function addWells(reader: PlateReader, line: Line, n: number, block: Block): void {
  const { wells, labels, letter, left, table } = reader;
  const { from = 0, columns = 0 } = block.plates[n] ?? {};
  const label = labelOf(reader, line, n, block);
  const prefix = JSON.stringify([block.captured, left]);
  for (let column = 0; column < columns; column++) {
    const text = line.cells[from + column] ?? '';
    if (text === '') continue;
    const well = `${letter}${column + 1}`;
    const known = wells.get(prefix + well) ?? { block, left, well, values: new Map(), line };
    const earlier = known.values.get(label);
    if (earlier !== undefined && earlier !== text) {
      const what = label === 'value' ? 'values' : `values for ${quoted(label)}`;
      throw table.context.refuse(`well ${well} has two ${what}: ${quoted(earlier)} and ${quoted(text)}`, {
        line,
        hint: "name the measurements: `grid: [first, second]`; or capture what distinguishes the blocks: `every: '/^(?<plate>Plate \\d+)/'`",
      });
    }
    known.values.set(label, text);
    wells.set(prefix + well, known);
    labels.add(label);
  }
  if (wells.size > MAX_WELLS || wells.size * labels.size > MAX_WELL_VALUES)
    throw table.context.refuse('there are more wells than a plate can have', { line });
}

/** Whether a line looks like a row of the plate. */
export function fitsPlate({ block, isLettered, table }: PlateReader, { cells }: Line): boolean {
  const values = block?.plates.map(({ from, columns }) => cells.slice(from, from + columns)) ?? [];
  const written = values.flat().filter((text) => text !== '');
  const isHeader = values.every((texts) => texts.every((text, n) => Number(text) === n + 1));
  if (written.length === 0 || isHeader) return false;
  if (isLettered) return cells[0] === '' || isLetter(cells[0]);
  return written.every((text) => table.context.values.numbers.read(text) !== undefined);
}

/** Passes the wells on as rows, after the last line. */
export function finishPlates({ table, wells, labels, isLettered }: PlateReader): void {
  let open: Block | undefined;
  for (const { block, left, well, values, line } of wells.values()) {
    if (block !== open) beginBlock(table, columnsOf(block, labels, isLettered ?? false), block.captured, block.header);
    open = block;
    addRow(table, [...left, well, ...[...labels].map((label) => values.get(label) ?? '')], line);
  }
}

const isLetter = (cell: string | undefined): boolean => /^[A-Z]{1,2}$/.test(cell ?? '');

function columnsOf({ left }: Block, labels: ReadonlySet<string>, isLettered: boolean): FileColumn[] {
  const unique = createUniqueNames();
  return [...left, 'well', ...labels].map((name, cell) => ({
    name: unique(name || unnamedColumn(cell).name),
    unit: undefined,
    cell,
    isNamed: name !== '' && (cell > 0 || !isLettered),
  }));
}

/** Finds 1, 2, 3 … in a header. Each further 1 starts another plate side by side. */
function platesIn(header: Line | undefined): Plate[] {
  const plates: { from: number; columns: number }[] = [];
  header?.cells.forEach((cell, at) => {
    const open = plates.at(-1);
    if (cell === '1' || cell === '01') plates.push({ from: at, columns: 1 });
    else if (open && open.from + open.columns === at && Number(cell) === open.columns + 1) open.columns++;
  });
  return plates;
}

/** A, B … Z, AA, AB …, as plates count their rows and spreadsheets their columns. */
export function letterAt(n: number): string {
  const letter = String.fromCharCode(65 + (n % 26));
  return n < 26 ? letter : letterAt(Math.floor(n / 26) - 1) + letter;
}
