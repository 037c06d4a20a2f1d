import { type Line, quoted } from '../lines.js';
import type { BlockSink, SinkDeps } from './blocks.js';
import { cleanName, createUniqueNames, type FileColumn, unnamed } from './columns.js';

/** A sink that holds its rows back until the last line was seen: one well can stand in several blocks. */
interface GridSink extends BlockSink {
  /** Whether a line looks like one more row of the plate. */
  fits(line: Line): boolean;
  flush(): void;
}

/** What all wells of one block share. */
interface Block {
  readonly captures: ReadonlyMap<string, string>;
  readonly captured: readonly string[];
  /** Side by side. */
  readonly plates: readonly Plate[];
  /** The names of the cells to the left of the plate; empty where they have none. */
  readonly left: readonly string[];
  readonly header: Line;
}

interface Well {
  readonly block: Block;
  /** The cells to the left of the plate. */
  readonly left: readonly string[];
  readonly well: string;
  readonly values: Map<string, string>;
  readonly line: Line;
}

/** What no plates come to: the wells are in memory until the last line was seen. */
const MOST_WELLS = 500_000;
const MOST_CELLS = 1_000_000;

/** A plate, printed as it lies on the bench: one row a well, one column for each label. */
export function createGridSink({ options, captureNames, builder, numbers, refuse }: SinkDeps): GridSink {
  const given = Array.isArray(options.grid) ? options.grid : [];
  const wells = new Map<string, Well>();
  const labels = new Set<string>();
  let block: Block | undefined;
  /** Whether rows have letters; undefined until the first one was seen. */
  let isLettered: boolean | undefined;
  let letter = '';
  let counted = 0;
  let stacked = 0;
  let left: string[] = [];

  /** The letter of a line: its own, the one above where lines are stacked, or one counted. */
  function letterOf(line: Line): string {
    const own = line.cells[0] ?? '';
    if (!isLettered) return letterAt(counted++);
    stacked = own === '' || own === letter ? stacked + 1 : 0;
    return own === '' ? letter : own;
  }

  function labelOf(line: Line, n: number, { plates, captures }: Block): string {
    const end = (plates[n]?.from ?? 0) + (plates[n]?.columns ?? 0);
    const right = end === plates[n + 1]?.from ? '' : (line.cells[end] ?? '');
    if (right !== '') return right;
    return given[plates.length > 1 ? n : stacked] ?? captures.get('label') ?? 'value';
  }

  function put(line: Line, plate: Plate, label: string, own: Block): void {
    const prefix = JSON.stringify([own.captured, left]);
    for (let n = 0; n < plate.columns; n++) {
      const text = line.cells[plate.from + n] ?? '';
      if (text === '') continue;
      const well = `${letter}${n + 1}`;
      const key = prefix + well;
      const known = wells.get(key) ?? { block: own, left, well, values: new Map(), line };
      const earlier = known.values.get(label);
      if (earlier !== undefined && earlier !== text)
        throw twice({ well, label, earlier, text, line }, refuse);
      known.values.set(label, text);
      wells.set(key, known);
      labels.add(label);
    }
    if (wells.size > MOST_WELLS || wells.size * labels.size > MOST_CELLS)
      throw refuse('these are more wells than plates have', { line });
  }

  return {
    begin(head, captures) {
      const header = head.header.at(-1);
      const plates = platesIn(header);
      const [first] = plates;
      if (!first || !header) {
        throw refuse('this is no plate: no cells 1, 2, 3 … name its columns', {
          line: header,
          hint: 'say which line they stand in: `header: "…"`',
          isMismatch: true,
        });
      }
      const captured = captureNames.map((name) => captures.get(name) ?? '');
      block = { captures, captured, plates, left: header.cells.slice(0, first.from).map(cleanName), header };
      [letter, counted, stacked, left] = ['', 0, 0, []];
    },
    row(line) {
      if (!block) return;
      isLettered ??= block.left.length > 0 && isLetter(line.cells[0]);
      letter = letterOf(line);
      // The letter is part of the well; what else stands left of the plate holds until something else does.
      left = block.left.map((_, n) => (n === 0 && isLettered ? '' : line.cells[n] || left[n] || ''));
      for (const [n, plate] of block.plates.entries()) put(line, plate, labelOf(line, n, block), block);
    },
    gap(line) {
      // Bare delimiters are a row of the plate that was not read; an empty line begins the next plate.
      counted = line.cells.length > 1 ? counted + 1 : 0;
    },
    fits({ cells }) {
      const values = block?.plates.map(({ from, columns }) => cells.slice(from, from + columns)) ?? [];
      const written = values.flat().filter((text) => text !== '');
      const isHeader = values.every((texts) => texts.every((text, n) => Number(text) === n + 1));
      if (written.length === 0 || isHeader) return false;
      if (isLettered) return cells[0] === '' || isLetter(cells[0]);
      return written.every((text) => numbers.read(text) !== undefined);
    },
    flush() {
      let open: Block | undefined;
      for (const { block: own, left: cells, well, values, line } of wells.values()) {
        if (own !== open)
          builder.begin(columnsOf(own, labels, isLettered ?? false), own.captured, own.header);
        open = own;
        builder.row([...cells, well, ...[...labels].map((label) => values.get(label) ?? '')], line);
      }
    },
  };
}

const isLetter = (cell: string | undefined): boolean => /^[A-Z]{1,2}$/.test(cell ?? '');

function columnsOf({ left }: Block, labels: ReadonlySet<string>, isLettered: boolean): FileColumn[] {
  const unique = createUniqueNames();
  return [...left, 'well', ...labels].map((name, cell) => ({
    name: unique(name || unnamed(cell).name),
    unit: undefined,
    cell,
    isNamed: name !== '' && (cell > 0 || !isLettered),
  }));
}

interface Twice {
  readonly well: string;
  readonly label: string;
  readonly earlier: string;
  readonly text: string;
  readonly line: Line;
}

/** Which of two values is meant is for a person to say. */
const twice = ({ well, label, earlier, text, line }: Twice, refuse: SinkDeps['refuse']): Error =>
  refuse(
    `well ${well} has more than one ${label === 'value' ? label : `value ${quoted(label)}`}: ${quoted(earlier)} and ${quoted(text)}`,
    {
      line,
      hint: "name what was measured, `grid: [first, second]`, or catch what tells the blocks apart: `every: '/^(?<plate>Plate \\d+)/'`",
    },
  );

/** Where a plate stands in its lines. */
interface Plate {
  /** The cell of plate column 1, and how many columns there are. */
  readonly from: number;
  readonly columns: number;
}

/** Where 1, 2, 3 … stand in a header; plates side by side begin anew at 1. */
function platesIn(header: Line | undefined): Plate[] {
  const plates: { from: number; columns: number }[] = [];
  header?.cells.forEach((cell, at) => {
    const open = plates.at(-1);
    if (cell === '1' || cell === '01') plates.push({ from: at, columns: 1 });
    else if (open && open.from + open.columns === at && Number(cell) === open.columns + 1) open.columns++;
  });
  return plates;
}

/** A, B … Z, AA, AB …, as plates count their rows. */
function letterAt(n: number): string {
  const letter = String.fromCharCode(65 + (n % 26));
  return n < 26 ? letter : letterAt(Math.floor(n / 26) - 1) + letter;
}
