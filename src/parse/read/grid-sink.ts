import type { Line } from '../lines.js';
import { type FileColumn, unnamed } from '../table/header.js';
import { cleanName } from '../table/names.js';
import type { BlockSink } from './find-table.js';
import type { SinkDeps } from './row-sink.js';

/** A sink that holds its rows back until the last line was seen: one well can stand in several blocks. */
export interface GridSink extends BlockSink {
  flush(): void;
}

interface Plate {
  /** The cell of plate column 1, and how many columns there are. */
  readonly from: number;
  readonly columns: number;
}

interface Well {
  readonly captured: readonly string[];
  /** The cells to the left of the plate. */
  readonly left: readonly string[];
  readonly well: string;
  readonly values: Map<string, string>;
  readonly line: Line;
}

/** A plate, printed as it lies on the bench: one row a well, one column for each label. */
export function createGridSink({ options, captureNames, builder, refuse }: SinkDeps): GridSink {
  const labels = Array.isArray(options.grid) ? options.grid : [];
  const names = captureNames.filter((name) => name !== 'label');
  const wells = new Map<string, Well>();
  const seen = new Set<string>();
  let plates: readonly Plate[] = [];
  let left: string[] = [];
  let header: Line | undefined;
  let captures: ReadonlyMap<string, string> = new Map();
  /** Whether rows have letters; undefined until the first one was seen. */
  let isLettered: boolean | undefined;
  let letter = '';
  let counted = 0;
  let stacked = 0;
  let above: string[] = [];

  /** The letter of a line: its own, the one above where lines are stacked, or one counted. */
  function letterOf(line: Line): string {
    const own = line.cells[0] ?? '';
    if (!isLettered) return letterAt(counted++);
    stacked = own === '' || own === letter ? stacked + 1 : 0;
    return own === '' ? letter : own;
  }

  function labelOf(line: Line, plate: number, last: Plate): string {
    const right = line.cells[last.from + last.columns] ?? '';
    if (right !== '') return right;
    const given = labels[plates.length > 1 ? plate : stacked];
    return given ?? captures.get('label') ?? 'value';
  }

  function put(line: Line, plate: Plate, label: string): void {
    const captured = names.map((name) => captures.get(name) ?? '');
    for (let n = 0; n < plate.columns; n++) {
      const text = line.cells[plate.from + n] ?? '';
      if (text === '') continue;
      const well = `${letter}${n + 1}`;
      const key = JSON.stringify([captured, above, well]);
      const known = wells.get(key) ?? { captured, left: [...above], well, values: new Map(), line };
      known.values.set(label, text);
      wells.set(key, known);
      seen.add(label);
    }
  }

  return {
    begin(head, own) {
      header = head.header.at(-1);
      plates = platesIn(header);
      const [first] = plates;
      if (!first || !header) {
        throw refuse('this is no plate: no cells 1, 2, 3 … name its columns', {
          line: header,
          hint: 'say which line they stand in: `header: "…"`',
          isAbsent: true,
        });
      }
      const cells = header.cells.slice(0, first.from);
      left = cells.map((name, cell) => cleanName(name) || unnamed(cell).name);
      [captures, letter, counted, stacked, above] = [own, '', 0, 0, []];
    },
    row(line) {
      const [first] = plates;
      const last = plates.at(-1);
      if (!first || !last) return;
      isLettered ??= first.from > 0 && /^[A-Z]{1,2}$/.test(line.cells[0] ?? '');
      letter = letterOf(line);
      // The letter is part of the well; what else stands left of the plate holds until something else does.
      above = left.map((_, n) => (n === 0 && isLettered ? '' : line.cells[n] || above[n] || ''));
      for (const [n, plate] of plates.entries()) put(line, plate, labelOf(line, n, last));
    },
    gap(line) {
      // Bare delimiters are a row of the plate that was not read; an empty line begins the next plate.
      if (line.cells.length > 1) counted++;
      else [letter, counted, stacked] = ['', 0, 0];
    },
    flush() {
      const labelled = [...seen];
      const columns = [...left, 'well', ...labelled].map(
        (name, cell): FileColumn => ({ name, unit: undefined, cell, isNamed: cell >= left.length }),
      );
      for (const { captured, left: cells, well, values, line } of wells.values()) {
        const all = captureNames.map((name) => captured[names.indexOf(name)] ?? '');
        builder.begin(columns, all, header);
        builder.row([...cells, well, ...labelled.map((label) => values.get(label) ?? '')], line);
      }
    },
  };
}

/** A, B … Z, AA, AB …, as plates count their rows. */
function letterAt(n: number): string {
  const letter = String.fromCharCode(65 + (n % 26));
  return n < 26 ? letter : letterAt(Math.floor(n / 26) - 1) + letter;
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
