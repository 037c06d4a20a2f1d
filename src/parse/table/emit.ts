import type { TableOptions } from '../../config/vocabulary.js';
import type { Line } from '../lines.js';
import { bareUnit } from '../values/unit.js';
import { type CollectDeps, type CollectedColumn, type ColumnCollector, createCollector } from './collect.js';
import { type Cells, findColumn, type PlanDeps, type PlannedColumn, textOf } from './columns.js';
import { createUnpivot } from './unpivot.js';

/** Gives the cells of each row to their columns. */
export interface Emitter {
  /** How many rows the record will have. */
  readonly count: number;
  /** How many of them are kept. */
  readonly kept: number;
  /** Which row of the file a kept row was, from 0: rows are dropped, and one can become several. */
  originOf(row: number): number;
  /** The same of the last row, kept or not. */
  readonly lastOrigin: number;
  addColumn(column: PlannedColumn): void;
  emit(cells: Cells, line: Line | undefined, origin: number): void;
  collected(): CollectedColumn[];
}

export interface EmitDeps extends PlanDeps, Omit<CollectDeps, 'sampleSize'> {
  /** Of longer tables the first rows are kept, and all of them are counted and summed up. */
  readonly maxKeptCells: number;
}

/** Numbers, 8 bytes each, of all columns together. */
const SAMPLED_NUMBERS = 300_000;

export function createEmitter(planned: readonly PlannedColumn[], deps: EmitDeps): Emitter {
  const sampleSize = Math.max(1000, Math.min(100_000, Math.floor(SAMPLED_NUMBERS / (planned.length + 1))));
  const collect = (plan: PlannedColumn) => createCollector(plan, { ...deps, sampleSize });
  const unpivot =
    deps.options.unpivot === undefined
      ? undefined
      : createUnpivot(deps.options.unpivot, deps.options.units, collect);
  const own: ColumnCollector[] = [];
  const unitFor = createUnitColumn(deps.options, deps);
  const hasAxis = planned.some(({ spec }) => spec.start !== undefined);
  const origins: number[] = [];
  let lastOrigin = 0;
  let count = 0;
  let kept = 0;

  function addColumn(plan: PlannedColumn): void {
    if (!unpivot?.claims(plan)) own.push(collect(plan));
  }

  /** One row of the record. */
  function put(cells: Cells, line: Line | undefined, origin: number): number {
    const row = count++;
    const width = own.length + (unpivot?.width() ?? 0);
    if (kept === row && (row + 1) * width <= deps.maxKeptCells) kept++;
    const isKept = row < kept;
    lastOrigin = origin;
    if (hasAxis && isKept) origins.push(origin);
    for (const column of own) {
      column.add(row, column.plan.text(cells), line, isKept, unitFor?.(column.plan, cells));
    }
    return row;
  }

  for (const plan of planned) addColumn(plan);
  return {
    get count() {
      return count;
    },
    get kept() {
      return kept;
    },
    addColumn,
    originOf: (row) => origins[row] ?? row,
    get lastOrigin() {
      return lastOrigin;
    },
    emit(cells, line, origin) {
      if (!unpivot) put(cells, line, origin);
      else for (const add of unpivot.rowsOf(cells, line)) add(put(cells, line, origin), count <= kept);
    },
    collected: () => [...own, ...(unpivot?.columns() ?? [])].map((column) => column.finish()),
  };
}

/** `units: { column: Unit }`: what stands there is the unit of the number to the left of it. */
function createUnitColumn(
  { units }: TableOptions,
  deps: PlanDeps,
): ((plan: PlannedColumn, cells: Cells) => string | undefined) | undefined {
  if (typeof units !== 'object') return undefined;
  const column = findColumn(units.column, deps);
  const text = textOf(column, deps);
  return (plan, cells) => (plan.column?.cell === column.cell - 1 ? bareUnit(text(cells)) : undefined);
}
