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
  const own: ColumnCollector[] = [];
  const collect = (plan: PlannedColumn) => {
    const share = Math.floor(SAMPLED_NUMBERS / (Math.max(planned.length, own.length) + 1));
    return createCollector(plan, { ...deps, sampleSize: Math.max(1000, Math.min(100_000, share)) });
  };
  const unpivot =
    deps.options.unpivot === undefined
      ? undefined
      : createUnpivot(deps.options.unpivot, deps.options.units, collect);
  const unitFor = createUnitColumn(deps.options, deps);
  const hasAxis = planned.some(({ spec }) => spec.start !== undefined);
  const origins: number[] = [];
  let lastOrigin = 0;
  let count = 0;
  let kept = 0;

  function addColumn(plan: PlannedColumn): void {
    if (!unpivot?.claims(plan)) own.push(collect(plan));
  }

  const width = () => own.length + (unpivot?.width() ?? 0);

  /** Columns that came late may be more than there is room for in the rows that were kept before. */
  const keptInTheEnd = () => Math.min(kept, Math.floor(deps.maxKeptCells / Math.max(1, width())));

  /** One row of the record. */
  function put(cells: Cells, line: Line | undefined, origin: number): number {
    const row = count++;
    if (kept === row && (row + 1) * width() <= deps.maxKeptCells) kept++;
    const isKept = row < kept;
    lastOrigin = origin;
    if (hasAxis && isKept) origins.push(origin);
    for (const column of own) {
      // Where each block has columns of its own, most cells of a row are not there.
      const text = column.plan.text(cells);
      if (text !== '') column.add(row, text, line, isKept, unitFor?.(column.plan, cells));
    }
    return row;
  }

  for (const plan of planned) addColumn(plan);
  return {
    get count() {
      return count;
    },
    get kept() {
      return keptInTheEnd();
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
    collected() {
      const isCut = keptInTheEnd() < count;
      return [...own, ...(unpivot?.columns() ?? [])].map((column) => column.finish(isCut));
    },
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
