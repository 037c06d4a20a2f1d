import { z } from 'zod';
import { explainProblem } from '../errors.js';
import { changesBetween, type Shape } from '../model.js';
import type { Drift, Shaped } from '../outbox.js';
import { addHistory, type Connection, parseRow, parseRows } from './database.js';

/** How a run compares with the runs before it. */
export interface Comparison {
  readonly drift?: Drift | undefined;
  /** The shapes that later runs are compared with, if they change. */
  readonly accepted?: readonly Shape[] | undefined;
  /** What the shape depends on. */
  readonly layout?: string;
}

const columnSchema = z.object({ name: z.string(), unit: z.string().optional(), isInvented: z.boolean().optional() });
const tableSchema = z.object({ name: z.string(), columns: z.array(columnSchema) });
const shapesSchema = z.array(z.object({ tables: z.array(tableSchema) }));
const lastRow = z.object({ mapping: z.string(), shapes: z.string(), run: z.number().nullable() });
const driftRow = z.object({
  id: z.number(),
  instrument: z.string(),
  mapping: z.string(),
  layout: z.string(),
  shape: z.string(),
});

/** Within the transaction that adds the run: two runs that arrive together are compared with each other. */
export function compareShape(
  db: Connection,
  instrument: string,
  mapping: string,
  { shape, drift: policy, kinds, layout = mapping }: Shaped,
): Comparison {
  const { shapes, run } = lastOf(db, instrument, layout, mapping);
  // The usual case: nothing to compare, nothing to write.
  if (shapes === JSON.stringify([shape])) return {};
  const before = readShapes(shapes);
  if (before.some((one) => JSON.stringify(one) === JSON.stringify(shape))) return {};
  const { nearest, changes } = compare(shape, before);
  const isNew = nearest < 0 || (changes.length > 0 && before.length < kinds);
  const accepted = isNew ? [...before, shape] : before.with(nearest, shape);
  if (isNew || changes.length === 0 || policy === 'off') return { accepted, layout };
  const held = policy === 'hold';
  return { drift: { changes, since: run ?? undefined, held }, accepted: held ? undefined : accepted, layout };
}

const MAX_CHANGES_SHOWN = 5;

export function heldReason(run: number, { changes, since }: Drift): string {
  const shown = changes.slice(0, MAX_CHANGES_SHOWN).join('; ');
  const more = changes.length - MAX_CHANGES_SHOWN;
  return explainProblem({
    message: `compared with ${nameOf(run, since)}, ${shown}${more > 0 ? `; and ${more} more changes` : ''}`,
    hint: `to file it and accept the change: labfeed retry ${run}; or change the mapping, and the file is re-read`,
  });
}

function nameOf(run: number, since: number | undefined): string {
  if (since === undefined) return 'the previous run';
  return since === run ? 'the version before' : `run ${since}`;
}

export function recordShape(
  db: Connection,
  run: number,
  { drift, accepted, layout = '' }: Comparison,
  shape: Shape | undefined,
  at: number,
): void {
  if (accepted) putShapes(db, run, layout, accepted);
  if (!drift || !shape) return void db.run`DELETE FROM drifts WHERE run = ${run}`;
  db.run`
    INSERT OR REPLACE INTO drifts (run, at, changes, shape, layout)
      VALUES (${run}, ${at}, ${JSON.stringify(drift.changes)}, ${JSON.stringify(shape)}, ${layout})`;
  addHistory(db, run, at, 'drifted', drift);
}

/**
 * The runs that are held for the same drift as this one, and continue if a person accepts it. Undefined if accepting
 * has no effect: the run did not drift, or `parse` was changed since.
 */
export function driftPeers(db: Connection, run: number): number[] | undefined {
  const drifted = findDrift(db, run);
  if (drifted === undefined) return undefined;
  const { row, shape } = drifted;
  const held = db.rows`
    SELECT id, instrument, mapping, coalesce(layout, mapping) AS layout, shape
      FROM runs JOIN drifts ON drifts.run = runs.id
      WHERE instrument = ${row.instrument} AND coalesce(layout, mapping) = ${row.layout} AND parked = 'held'
      AND failure = 'drift' AND id <> ${run}`;
  return parseRows(driftRow, held)
    .filter((other) => changesBetween(shape, shapeOf(other)).length === 0)
    .map(({ id }) => id);
}

/** From now on runs are compared with the shape of this one. */
export function acceptShape(db: Connection, run: number): void {
  const drifted = findDrift(db, run);
  if (drifted) putShapes(db, run, drifted.row.layout, drifted.before.with(drifted.nearest, drifted.shape));
}

/** Undefined if the run did not drift, or if no shape of its mapping is known any more. */
function findDrift(db: Connection, run: number) {
  const found = db.row`
    SELECT id, instrument, mapping, coalesce(layout, mapping) AS layout, shape
      FROM runs JOIN drifts ON drifts.run = runs.id WHERE id = ${run}`;
  const row = parseRow(driftRow, found);
  if (row === undefined) return undefined;
  const shape = shapeOf(row);
  const before = readShapes(lastOf(db, row.instrument, row.layout, row.mapping).shapes);
  const { nearest } = compare(shape, before);
  return nearest < 0 ? undefined : { row, shape, before, nearest };
}

/**
 * The shapes of the previous runs. Those of another layout cannot be compared. A journal of an earlier version has the
 * mapping instead.
 */
function lastOf(db: Connection, instrument: string, layout: string, mapping: string): z.output<typeof lastRow> {
  const row = db.row`SELECT mapping, shapes, run FROM shapes WHERE instrument = ${instrument}`;
  const found = parseRow(lastRow, row);
  return found?.mapping === layout || found?.mapping === mapping ? found : { mapping, shapes: '[]', run: null };
}

function putShapes(db: Connection, run: number, layout: string, shapes: readonly Shape[]): void {
  db.run`
    INSERT OR REPLACE INTO shapes (instrument, mapping, shapes, run)
      SELECT instrument, ${layout}, ${JSON.stringify(shapes)}, id FROM runs WHERE id = ${run}`;
}

const readShapes = (json: string): Shape[] => shapesSchema.parse(JSON.parse(json));

const shapeOf = ({ shape }: z.output<typeof driftRow>): Shape => readShapes(`[${shape}]`)[0] ?? { tables: [] };

/** The known shape that this one differs least from; -1 if none is known. */
function compare(shape: Shape, known: readonly Shape[]): { nearest: number; changes: readonly string[] } {
  let best: { nearest: number; changes: readonly string[] } = { nearest: -1, changes: [] };
  for (const [index, before] of known.entries()) {
    const changes = changesBetween(before, shape);
    if (best.nearest < 0 || changes.length < best.changes.length) best = { nearest: index, changes };
  }
  return best;
}
