import type { Connection } from '../../src/journal/database.js';
import type { FileToSend } from '../../src/notebook/http.js';
import type { Spool } from '../../src/spool.js';
import { FAULTS, type FakeRequest } from '../support/fake-notebook.js';
import { TIMEOUT_MS } from './network.js';
import type { SimulatedProcess, Timeline } from './timeline.js';
import { contentOf, type World } from './world.js';

/** What a statement yields. */
export type Result = { readonly rows: readonly object[]; readonly rowCount?: number; readonly count?: number };

/** A statement of src/fleet by its beginning, and what it does. */
export type Statement = readonly [begin: string, act: (values: readonly unknown[]) => Result];

/** A transaction that may lock contents. */
export interface Transaction {
  readonly process: SimulatedProcess;
  /** How often the database had started. */
  readonly starts: number;
  readonly at: number;
  /** Whether its commit is on its way. */
  isCommitting: boolean;
  isOver: boolean;
}

/** Whether a statement waits until no other transaction has the contents. */
export const isLock = (text: string, [wanted]: readonly unknown[]): boolean =>
  (text.includes('hashtextextended') || /labfeed\.complete .* FOR (SHARE|UPDATE)/.test(text)) &&
  (wanted as readonly string[]).length > 0;

/** As `idle_in_transaction_session_timeout`. */
const IDLE_MS = 10_000;
const LOCK_POLL_MS = 10;

/**
 * Raw files in the simulated database. One transaction at a time locks contents, whichever they are: that is more than
 * PostgreSQL does, and nobody waits for a transaction that waits.
 */
export function createContents(timeline: Timeline, starts: () => number) {
  const pieces = new Map<string, Map<number, Uint8Array>>();
  const complete = new Set<string>();
  let holder: Transaction | undefined;

  /** Whether the database has rolled it back. */
  const isLost = (one: Transaction): boolean =>
    one.isOver ||
    one.starts !== starts() ||
    timeline.elapsedMs() - one.at > IDLE_MS ||
    !(one.process.alive() || one.isCommitting);

  async function lock(transaction: Transaction): Promise<void> {
    while (holder && holder !== transaction && !isLost(holder))
      await new Promise<void>((resolve) => transaction.process.at(LOCK_POLL_MS, resolve));
    if (holder && holder !== transaction) holder.isOver = true;
    holder = transaction;
  }

  const found = (isFound: boolean): Result => ({ rows: isFound ? [{}] : [] });
  const sizeOf = (sha256: string): number =>
    [...(pieces.get(sha256)?.values() ?? [])].reduce((sum, { length }) => sum + length, 0);
  const remove =
    (from: { delete(sha256: string): unknown }): Statement[1] =>
    ([removed]) => {
      for (const sha256 of removed as string[]) from.delete(sha256);
      return found(false);
    };
  const statements: readonly Statement[] = [
    ['SELECT 1 FROM labfeed.complete WHERE sha256 = $1', ([sha256]) => found(complete.has(sha256 as string))],
    [
      'SELECT 1 FROM labfeed.complete WHERE sha256 = ANY($1)',
      ([wanted]) => ({ rows: (wanted as string[]).filter((sha256) => complete.has(sha256)).map(() => ({})) }),
    ],
    [
      'INSERT INTO labfeed.contents',
      ([sha256, n, bytes]) => {
        const own = pieces.get(sha256 as string) ?? new Map<number, Uint8Array>();
        pieces.set(sha256 as string, own);
        if (!own.has(n as number)) own.set(n as number, bytes as Uint8Array);
        return found(false);
      },
    ],
    [
      'INSERT INTO labfeed.complete',
      ([sha256, size]) => {
        if (sizeOf(sha256 as string) === size) complete.add(sha256 as string);
        return found(false);
      },
    ],
    [
      'SELECT bytes FROM labfeed.contents',
      ([sha256, n]) => {
        const bytes = pieces.get(sha256 as string)?.get(n as number);
        return { rows: bytes ? [{ bytes }] : [] };
      },
    ],
    // None of them is a day old.
    ['SELECT DISTINCT sha256 FROM labfeed.contents', () => found(false)],
    ['DELETE FROM labfeed.complete', remove(complete)],
    ['DELETE FROM labfeed.contents', remove(pieces)],
  ];
  return { statements, lock, isLost };
}

/** The spool of a member. `copies`: the fingerprints of the raw files in it. */
export const createSpool = (copies: Set<string>): Pick<Spool, 'open' | 'remove'> => ({
  open: async (sha256) =>
    copies.has(sha256)
      ? ({ createReadStream: () => [Buffer.from(contentOf(sha256))], close: async () => undefined } as never)
      : undefined,
  async remove(sha256, isNeeded) {
    if (!(await isNeeded())) copies.delete(sha256);
  },
});

/** A server has the whole file before it looks at the key. A client that cannot read the file in time gives up. */
export async function readFirst(
  { timeline, notebook }: World,
  { args: [id, file] }: FakeRequest,
): Promise<FakeRequest['carryOut']> {
  const until = timeline.elapsedMs() + TIMEOUT_MS;
  const bytes: Uint8Array[] = [];
  const read = async (): Promise<void> => {
    for await (const part of (file as FileToSend).open()) bytes.push(part);
  };
  await timeline.streaming(read());
  if (timeline.elapsedMs() > until) throw FAULTS.lost.error(true);
  return () => notebook.uploadFile(id as number, { ...(file as FileToSend), open: () => bytes as never });
}

/** Whether the notebook has all files of the runs that are done. */
export const areAttached = (db: Connection): boolean =>
  !db.exists`SELECT 1 FROM attachments JOIN runs ON id = run WHERE attachments.due_at IS NOT NULL AND step = 'done'
    AND parked IS NULL`;

/** Every file is there until it was sent to the database, and every content until it was sent to the notebook. */
export function verifyContents(db: Connection): void {
  const lost = db.values<string>`
    SELECT name || ': ' || reason FROM attachments WHERE refused = 1 AND (reason LIKE '%gone%' OR reason LIKE '%no copy%')`;
  if (lost.length > 0) throw new Error(`contents were lost: ${lost.join('; ')}`);
}
