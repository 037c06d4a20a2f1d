import { type Clock, every, type Loop } from '../clock.js';
import { explain } from '../errors.js';
import type { Log } from '../log.js';
import { FencedError, type Postgres } from './database.js';

/** How long a leader leads without renewing its lease, by the clock of the database, and how often it does. */
export const LEASE_MS = 15_000;
const RENEW_MS = 5000;

/** Before the lease ends by the clock of the database, the leader stops by its own: what it sends takes time, too. */
export const MARGIN_MS = 3000;

/** The member that sent last. One that led but has not begun to send is none: it may not have stopped those before it. */
interface Predecessor {
  /** Whether it was this member: that process has ended, since the journal of a member is locked. */
  readonly isSelf: boolean;
  readonly notebook: string | undefined;
  readonly sessionKey: number | undefined;
}

/** The right to deliver, for one epoch. */
export interface Lease {
  readonly epoch: number;
  /** The last shipment before it began. */
  readonly seq: number;
  /** Undefined: nobody has sent yet, or the last one gave the lease back. */
  readonly predecessor: Predecessor | undefined;
  /** How far the clock of the database is ahead of this machine's. */
  readonly aheadMs: number;
  /** Whether it is certain that no other member delivers. */
  isHeld(): boolean;
  /** This member sends from now on. Recorded before the key is used, so that a successor can delete it. */
  recordSender(notebook: string, sessionKey: number | undefined): Promise<void>;
  /** Stops renewing it. `isOver`: nothing is in flight, so that a successor need not wait. */
  release(isOver: boolean): Promise<void>;
}

interface Row {
  readonly epoch: number;
  readonly seq: number;
  readonly sender: number | null;
  readonly notebook: string | null;
  readonly session_key: number | null;
  readonly now: number;
}

/** Takes the lease if nobody has it. From then on, nothing is recorded of what an earlier leader does. */
export async function takeLease(
  postgres: Postgres,
  member: number,
  { clock, log, lost }: { readonly clock: Clock; readonly log: Log; lost(): void },
): Promise<Lease | undefined> {
  /** The monotonic clock stops while a machine sleeps. The other one does not, but somebody may set it back. */
  const times = () => [clock.monotonic(), clock.now()] as const;
  let renewedAt = times();
  const taken = await postgres.row<Row>(
    `WITH before AS (SELECT * FROM labfeed.fleet FOR UPDATE)
       UPDATE labfeed.fleet SET epoch = before.epoch + 1, leader = $1, until = clock_timestamp() + $2 * interval '1 ms'
       FROM before WHERE before.until < clock_timestamp() OR before.leader = $1
       RETURNING fleet.epoch, fleet.seq, before.sender, before.notebook, before.session_key,
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now`,
    [member, LEASE_MS],
  );
  if (!taken) return undefined;
  const { epoch, seq, sender, notebook, session_key: sessionKey } = taken;
  let isLost = false;

  async function renew(): Promise<void> {
    const began = times();
    const renewed = await postgres.run(
      `UPDATE labfeed.fleet SET until = clock_timestamp() + $2 * interval '1 ms' WHERE epoch = $1`,
      [epoch, LEASE_MS],
    );
    if (renewed > 0) renewedAt = began;
    else if (!isLost) {
      isLost = true;
      lost();
    }
  }
  const loop: Loop = every(RENEW_MS, clock, async () => {
    try {
      await renew();
    } catch (error) {
      log.warn({ reason: explain(error) }, 'cannot renew the lease, retrying');
      return 1000;
    }
    return undefined;
  });
  return {
    epoch,
    seq,
    aheadMs: taken.now - clock.now(),
    predecessor:
      sender === null
        ? undefined
        : { isSelf: sender === member, notebook: notebook ?? undefined, sessionKey: sessionKey ?? undefined },
    isHeld: () => !isLost && times().every((time, n) => time - (renewedAt[n] ?? 0) < LEASE_MS - MARGIN_MS),
    async recordSender(url, key) {
      const recorded = await postgres.run(
        'UPDATE labfeed.fleet SET sender = $2, notebook = $3, session_key = $4 WHERE epoch = $1',
        [epoch, member, url, key ?? null],
      );
      if (recorded === 0) throw new FencedError('another member of the fleet delivers now');
    },
    async release(isOver) {
      await loop.stop();
      // One that has not begun to send leaves the sender before it to its successor.
      const leaves = `, leader = NULL, sender = nullif(sender, $2),
        session_key = CASE WHEN sender = $2 THEN NULL ELSE session_key END`;
      await postgres
        .run(`UPDATE labfeed.fleet SET until = '-infinity'${isOver ? leaves : ''} WHERE epoch = $1`, [
          ...(isOver ? [epoch, member] : [epoch]),
        ])
        .then(() => postgres.run("SELECT pg_notify('labfeed', 'lease')"))
        .catch(() => undefined);
    },
  };
}
