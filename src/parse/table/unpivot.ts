import { regexSource } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { caught, groupNames } from '../grammar/line.js';
import type { Line } from '../lines.js';
import type { ColumnCollector } from './collect.js';
import { type Cells, type PlannedColumn, splitUnit } from './columns.js';

/** Columns that are one quantity under many names, `A1`, `A2`, …, become rows. */
export interface Unpivot {
  /** Whether a column is one of those. */
  claims(plan: PlannedColumn): boolean;
  /** For each row that a row of the file becomes: what puts its own cells in. */
  rowsOf(cells: Cells, line: Line | undefined): ((row: number, isKept: boolean) => void)[];
  columns(): ColumnCollector[];
  /** How many columns there are by now. */
  width(): number;
}

interface Pivoted {
  readonly plan: PlannedColumn;
  readonly groups: ReadonlyMap<string, string>;
  /** The name of the column that its cells go to. */
  readonly value: string;
  readonly unit: string | undefined;
}

/** The groups of the pattern become columns; the cell goes to `value`, or to what a group of that name says. */
export function createUnpivot(
  pattern: string,
  units: TableOptions['units'],
  collect: (plan: PlannedColumn) => ColumnCollector,
): Unpivot {
  const regex = new RegExp(regexSource(pattern) ?? pattern);
  const names = groupNames([pattern]).filter((name) => name !== 'value');
  const groups = names.map((name) => collect(madeUp(name, undefined)));
  const values = new Map<string, ColumnCollector>();
  const pivoted: Pivoted[] = [];

  function valueColumn({ value, plan }: Pivoted): ColumnCollector {
    const known = values.get(value) ?? collect(madeUp(value, plan));
    values.set(value, known);
    return known;
  }

  return {
    claims(plan) {
      const name = plan.given ?? plan.column?.name ?? '';
      const split = splitUnit(plan.column?.name ?? '', units, true);
      const match = regex.exec(name) ?? regex.exec(plan.given ?? split.name);
      if (!match || plan.spec.start !== undefined) return false;
      const found = caught(match);
      const value = found.get('value') ?? 'value';
      const given = typeof plan.spec.unit === 'string' ? plan.spec.unit : undefined;
      pivoted.push({ plan, groups: found, value, unit: given ?? plan.column?.unit ?? split.unit });
      return true;
    },
    rowsOf(cells, line) {
      const rows = new Map<string, { first: Pivoted; cells: [Pivoted, string][] }>();
      for (const column of pivoted) {
        const text = column.plan.text(cells);
        if (text === '') continue;
        const key = JSON.stringify(names.map((name) => column.groups.get(name) ?? ''));
        const row = rows.get(key) ?? { first: column, cells: [] };
        row.cells.push([column, text]);
        rows.set(key, row);
      }
      return [...rows.values()].map((made) => (row, isKept) => {
        for (const [n, group] of groups.entries())
          group.add(row, made.first.groups.get(names[n] ?? '') ?? '', line, isKept);
        for (const [column, text] of made.cells)
          valueColumn(column).add(row, text, line, isKept, column.unit);
      });
    },
    columns: () => [...groups, ...values.values()],
    width: () => groups.length + values.size,
  };
}

/** A column that the file does not have. Its unit is in its cells: the columns that it is made of may differ in it. */
function madeUp(name: string, of: PlannedColumn | undefined): PlannedColumn {
  const { unit, ...spec } = of?.spec ?? {};
  return {
    given: name,
    column: undefined,
    spec: typeof unit === 'object' ? { ...spec, unit } : spec,
    text: () => '',
  };
}
