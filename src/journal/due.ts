import type { Database } from './database.js';

export interface DueJournal {
  /** Runs to deliver now: live before backlog, then fair between instruments, then oldest first. */
  due(now: number, limit: number, except: ReadonlySet<number>): Promise<number[]>;
  /** When the next run that waits becomes due. */
  nextDueAt(except: ReadonlySet<number>): Promise<number | undefined>;
}

interface Candidate {
  readonly id: number;
  readonly backlog: number;
  /** Its place among the due runs of its instrument. */
  readonly rank: number;
}

const OPEN = "step <> 'done' AND resting IS NULL";

export function createDueJournal(database: Database): DueJournal {
  const nextInstrument = database.prepare(
    `SELECT instrument FROM runs WHERE ${OPEN} AND instrument > ? ORDER BY instrument LIMIT 1`,
  );
  // A bare `LIMIT ?` makes SQLite compile the statement anew whenever it is bound: two to three times the cost.
  const dueOf = database.prepare(
    `SELECT id, backlog FROM runs WHERE ${OPEN} AND instrument = ? AND due_at <= ? ORDER BY backlog, id LIMIT ? + 0`,
  );
  const waiting = database.prepare(
    `SELECT id, due_at AS dueAt FROM runs WHERE ${OPEN} ORDER BY due_at LIMIT ? + 0`,
  );

  /** Steps from name to name in the index rather than reading every open run for a DISTINCT. */
  function* instruments(): Generator<string> {
    for (let name = ''; ; ) {
      const row = nextInstrument.get(name) as { instrument: string } | undefined;
      if (row === undefined) return;
      name = row.instrument;
      yield name;
    }
  }

  function candidates(
    instrument: string,
    now: number,
    limit: number,
    except: ReadonlySet<number>,
  ): Candidate[] {
    const rows = dueOf.all(instrument, now, limit + except.size) as { id: number; backlog: number }[];
    return rows.filter(({ id }) => !except.has(id)).map((row, rank) => ({ ...row, rank }));
  }

  return {
    due: async (now, limit, except) =>
      [...instruments()]
        .flatMap((instrument) => candidates(instrument, now, limit, except))
        .sort((a, b) => a.backlog - b.backlog || a.rank - b.rank || a.id - b.id)
        .slice(0, limit)
        .map(({ id }) => id),
    async nextDueAt(except) {
      const rows = waiting.all(except.size + 1) as { id: number; dueAt: number }[];
      return rows.find(({ id }) => !except.has(id))?.dueAt;
    },
  };
}
