import type { Column, Table, Value } from '../model.js';
import { singleLine } from '../text.js';
import { type Plate, plateOf } from './plates.js';
import { cellWithUnit, headingOf, withoutIdleColumns } from './tables.js';

/** Readings as lines that read well in any font. */
export interface Lines {
  /** What they show, if not all columns of the table. */
  readonly about?: string;
  /** What one line is. */
  readonly noun: string;
  readonly count: number;
  line(index: number): string;
}

/** One line per row, or for a plate with nothing but numbers, one per row of the plate and column of the table. */
export function layOutLines(table: Table): Lines[] {
  const shown = withoutIdleColumns(table);
  const plate = plateOf(shown);
  const others = plate ? shown.columns.filter((_, at) => at !== plate.wells) : [];
  const isNumeric = plate && shown.rows.every((row) => row.every((cell, at) => at === plate.wells || isNumber(cell)));
  if (plate && isNumeric && others.length > 0)
    return shown.columns.flatMap((column, at) => (at === plate.wells ? [] : [plateLines(shown, plate, column, at)]));
  return [rowLines(shown)];
}

/** Or a missing one. */
const isNumber = ({ value, text }: Value): boolean => typeof value === 'number' || value === null || text === '';

/** `A: 0.12, 0.13, 0.15`. */
function plateLines({ rows }: Table, { letters, numbers, rowOf }: Plate, column: Column, at: number): Lines {
  const used = letters.filter((letter) => numbers.some((number) => rowOf(letter, number) !== undefined));
  const cells = (letter: string): string[] =>
    numbers.map((number) => {
      const row = rowOf(letter, number);
      return (row === undefined ? undefined : rows[row]?.[at]?.text) || '–';
    });
  const last = Math.max(...used.map((letter) => cells(letter).findLastIndex((cell) => cell !== '–'))) + 1;
  return {
    about: `${headingOf(column)}, columns 1–${last}`,
    noun: 'plate row',
    count: used.length,
    line: (index) =>
      singleLine(
        `${used[index]}: ${cells(used[index] ?? '')
          .slice(0, last)
          .join(', ')}`,
      ),
  };
}

/** With more columns, each value has the name of its column, even if the units differ. */
const MAX_UNNAMED = 3;

/** `A1: 2.100 AU, 37.0 °C`. With names if the units do not tell the columns apart: `A1: A260 2.100 AU, A280 1.1 AU`. */
function rowLines(table: Table): Lines {
  const { columns, rows } = withLabelFirst(table);
  const [label, ...others] = columns;
  const units = others.map(({ unit }) => unit);
  const areUnitsEnough =
    others.length <= MAX_UNNAMED && !units.includes(undefined) && new Set(units).size === units.length;
  const isNamed = others.length > 1 && !areUnitsEnough;
  return {
    noun: 'row',
    count: rows.length,
    ...(isNamed || columns.length === 0 ? {} : { about: columns.map(headingOf).join(', ') }),
    line(index) {
      const cells = rows[index] ?? [];
      const head = cells[0] && label ? cellWithUnit(cells[0], label) : '';
      const values: string[] = [];
      for (const [n, column] of others.entries()) {
        const cell = cells[n + 1];
        if (!cell || cell.text === '') continue;
        const value = cellWithUnit(cell, column);
        values.push(isNamed ? `${column.name} ${value}` : value);
      }
      const line = values.length === 0 ? head : `${head === '' ? '–' : head}: ${values.join(', ')}`;
      // A blank line would look like the end of the table.
      return singleLine(line).trim() || '–';
    },
  };
}

const LABEL_NAME = /^(?:sample|probe|well)(?:[\s_-]?(?:name|id|no\.?|position|pos\.?))?$/i;

/** A line starts with its sample or well, if every row has one. */
function withLabelFirst({ columns, rows }: Table): Pick<Table, 'columns' | 'rows'> {
  const at = columns.findIndex(({ name }, index) => LABEL_NAME.test(name) && rows.every((row) => row[index]?.text));
  if (at <= 0) return { columns, rows };
  const reorder = <Item>(items: readonly Item[]): Item[] => [...items.slice(at, at + 1), ...items.toSpliced(at, 1)];
  return { columns: reorder(columns), rows: rows.map(reorder) };
}
