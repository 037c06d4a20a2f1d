import type { FileError } from '../../src/errors.js';
import type { Database } from '../../src/journal/database.js';
import type { Journal } from '../../src/journal/journal.js';
import { applyRequests, type Outcome } from '../../src/journal/requests.js';
import type { Draft } from '../../src/model.js';
import type { Added, NewRun, Shaped, Taken } from '../../src/outbox.js';
import { sourceProbe } from '../../src/watch/identify.js';

type Halves = Pick<Journal, 'intake' | 'outbox'>;

/** Hands a run over as the pipeline does: first to the outbox, then intake records the file. */
export async function take({ intake, outbox }: Halves, run: NewRun, draft: Draft, shaped?: Shaped): Promise<Added> {
  const added = await outbox.add(run, { draft, shaped });
  await remember(intake, run, added);
  return added;
}

/** A query about the file writes what is pending, so that other connections see it too. */
async function remember(intake: Journal['intake'], run: NewRun, taken: Taken): Promise<void> {
  intake.remember(run.instrument, run.file, taken);
  await intake.unknown(run.instrument, [run.file]);
}

/** The same for a file that cannot be read. */
export async function refuse({ intake, outbox }: Halves, run: NewRun, problem: FileError): Promise<Added> {
  const added = await outbox.add(run, { problem });
  await remember(intake, run, added);
  return added;
}

/** Whether the pipeline would stop here, because the file need not be read. */
export async function knows({ intake, outbox }: Halves, run: NewRun): Promise<boolean> {
  const match = await outbox.match({ ...run, partOf: await intake.partOf(run.instrument, run.file) });
  if (match.kind === 'known') await remember(intake, run, match);
  return match.kind === 'known' || match.kind === 'busy';
}

/** The runs that are due, without claiming them. */
export async function due(
  { outbox }: Pick<Journal, 'outbox'>,
  now = Number.MAX_SAFE_INTEGER,
  limit = 100,
): Promise<number[]> {
  const runs = await outbox.claim(now, limit);
  for (const run of runs) await outbox.release(run);
  return runs;
}

/** Re-reads the files whose runs wait for it, as a rescan does, and returns their number. */
export const recheck = async ({ intake, outbox }: Halves, instrument: string, mapping: string): Promise<number> =>
  intake.recheck(instrument, await outbox.unread(instrument, mapping));

/** Applies pending requests as the daemon does, and re-reads the files that they ask for. */
export async function decide(journal: Journal): Promise<Outcome[]> {
  const outcomes = await applyRequests(journal, sourceProbe);
  for (const { rescan } of outcomes) if (rescan !== undefined) await recheck(journal, rescan, 'm1');
  return outcomes;
}

/** Adds the statements that are prepared from now on. */
export const noteStatements = (database: Database, statements: Set<string>): Database =>
  new Proxy(database, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (name === 'prepare') statements.add(String(args[0]));
        return Reflect.apply(value, target, args);
      };
    },
  });
