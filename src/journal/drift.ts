import { z } from 'zod';
import { changesBetween, type Shape } from '../model.js';
import type { Database } from './database.js';

/** How a run is shaped, and what is to be done if that is not as it was. */
export interface Shaped {
  readonly shape: Shape;
  readonly drift: 'warn' | 'hold' | 'off';
  /** In how many ways the instrument's files may be shaped: one for each alternative of its mapping. */
  readonly kinds: number;
}

/** That a run is not shaped as the one before it. */
export interface Drift {
  readonly changes: readonly string[];
  /** The run that it was held against. */
  readonly since: number | undefined;
  readonly held: boolean;
}

interface Judgement {
  readonly drift: Drift | undefined;
  /** What the instrument's runs look like from now on, where that is new. */
  readonly accepted: readonly Shape[] | undefined;
}

/** To be called within a commit: what is compared is what the runs before have left. */
interface Shapes {
  judge(instrument: string, mapping: string, shaped: Shaped): Judgement;
  /** Records what was judged, for a run that has its number now. */
  record(run: number, judgement: Judgement, shape: Shape | undefined, at: number): void;
  /** A person takes a held run as it is: its shape is the new one, and those that wait for the same answer go on. */
  accept(run: number, at: number): number;
}

const shapesSchema = z.array(
  z.object({
    tables: z.array(
      z.object({
        name: z.string(),
        columns: z.array(z.object({ name: z.string(), unit: z.string().optional() })),
      }),
    ),
  }),
);
const lastRow = z.object({ mapping: z.string(), shapes: z.string(), run: z.number().nullable() });
const driftRow = z.object({ id: z.number(), instrument: z.string(), mapping: z.string(), shape: z.string() });

export function createShapes(database: Database): Shapes {
  const last = database.prepare('SELECT mapping, shapes, run FROM shapes WHERE instrument = ?');
  const put = database.prepare(
    'INSERT OR REPLACE INTO shapes (instrument, mapping, shapes, run) SELECT instrument, mapping, ?, id FROM runs WHERE id = ?',
  );
  const putDrift = database.prepare('INSERT OR REPLACE INTO drifts VALUES (?, ?, ?, ?)');
  const dropDrift = database.prepare('DELETE FROM drifts WHERE run = ?');
  const drifted = database.prepare(
    'SELECT id, instrument, mapping, shape FROM runs JOIN drifts ON drifts.run = runs.id WHERE id = ?',
  );
  const waiting = database.prepare(
    `SELECT id, instrument, mapping, shape FROM runs JOIN drifts ON drifts.run = runs.id
       WHERE instrument = ? AND mapping = ? AND resting = 'held' AND failure = 'drift'`,
  );
  const wake = database.prepare(
    'UPDATE runs SET resting = NULL, failure = NULL, reason = NULL, updated_at = ? WHERE id = ?',
  );
  const history = database.prepare('INSERT INTO history (run, at, event, detail) VALUES (?, ?, ?, ?)');

  /** What the last runs looked like. Those that another mapping read say nothing about these. */
  function lastOf(instrument: string, mapping: string): z.output<typeof lastRow> {
    const row: unknown = last.get(instrument);
    const found = row === undefined ? undefined : lastRow.parse(row);
    return found?.mapping === mapping ? found : { mapping, shapes: '[]', run: null };
  }

  return {
    judge(instrument, mapping, { shape, drift: policy, kinds }) {
      const { shapes, run } = lastOf(instrument, mapping);
      // Nearly always: nothing to compare, nothing to write.
      if (shapes === JSON.stringify([shape])) return NOTHING;
      const before = readShapes(shapes);
      if (before.some((one) => JSON.stringify(one) === JSON.stringify(shape))) return NOTHING;
      const { nearest, changes } = hold(shape, before);
      const isNew = nearest < 0 || (changes.length > 0 && before.length < kinds);
      const accepted = isNew ? [...before, shape] : before.with(nearest, shape);
      if (isNew || changes.length === 0 || policy === 'off') return { drift: undefined, accepted };
      const held = policy === 'hold';
      return { drift: { changes, since: run ?? undefined, held }, accepted: held ? undefined : accepted };
    },
    record(run, { drift, accepted }, shape, at) {
      if (accepted) put.run(JSON.stringify(accepted), run);
      if (!drift || !shape) return void dropDrift.run(run);
      putDrift.run(run, at, JSON.stringify(drift.changes), JSON.stringify(shape));
      history.run(run, at, 'drifted', JSON.stringify(drift));
    },
    accept(run, at) {
      const found: unknown = drifted.get(run);
      if (found === undefined) return 0;
      const { id, instrument, mapping, shape: json } = driftRow.parse(found);
      const shape = readShapes(`[${json}]`)[0] ?? { tables: [] };
      const before = readShapes(lastOf(instrument, mapping).shapes);
      const { nearest } = hold(shape, before);
      // The mapping was changed since: what this run looks like says nothing about those to come.
      if (nearest < 0) return 0;
      put.run(JSON.stringify(before.with(nearest, shape)), id);
      const rest = waiting.all(instrument, mapping).map((row) => driftRow.parse(row));
      const same = rest.filter((one) =>
        readShapes(`[${one.shape}]`).every((other) => changesBetween(shape, other).length === 0),
      );
      for (const other of same) {
        wake.run(at, other.id);
        history.run(other.id, at, 'retried', JSON.stringify({ with: run }));
      }
      return same.length;
    },
  };
}

const NOTHING: Judgement = { drift: undefined, accepted: undefined };

const readShapes = (json: string): Shape[] => shapesSchema.parse(JSON.parse(json));

/** The known shape that this one differs least from; -1 where none is known. */
function hold(shape: Shape, known: readonly Shape[]): { nearest: number; changes: readonly string[] } {
  let best: { nearest: number; changes: readonly string[] } = { nearest: -1, changes: [] };
  for (const [index, before] of known.entries()) {
    const changes = changesBetween(before, shape);
    if (best.nearest < 0 || changes.length < best.changes.length) best = { nearest: index, changes };
  }
  return best;
}
