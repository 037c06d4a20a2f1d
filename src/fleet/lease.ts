import { type Clock, every, type Loop } from '../clock.js';
import { explain } from '../errors.js';
import type { Log } from '../log.js';
import type { Postgres } from './database.js';

/** How long a leader leads without renewing its lease, by the clock of the database, and how often it does. */
const LEASE_MS = 15_000;
const RENEW_MS = 5000;

/** Before the lease ends by the clock of the database, the leader stops by its own: what it sends takes time, too. */
const MARGIN_MS = 3000;

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
  /** The leader before this one, unless it gave the lease back. */
  readonly predecessor: Predecessor | undefined;
  /** Whether it is certain that no other member delivers. */
  isHeld(): boolean;
  /** Recorded before the key is used, so that a successor can delete it. */
  recordKey(notebook: string, sessionKey: number | undefined): Promise<void>;
  /** Stops renewing it. `isOver`: nothing is in flight, so that a successor need not wait. */
  release(isOver: boolean): Promise<void>;
}

interface Row {
  readonly epoch: number;
  readonly seq: number;
  readonly leader: number | null;
  readonly notebook: string | null;
  readonly session_key: number | null;
}

/** Takes the lease if nobody has it. From then on, nothing is recorded of what an earlier leader does. */
export async function takeLease(
  postgres: Postgres,
  member: number,
  { clock, log, lost }: { readonly clock: Clock; readonly log: Log; lost(): void },
): Promise<Lease | undefined> {
  let renewedAt = clock.monotonic();
  const taken = await postgres.row<Row>(
    `WITH before AS (SELECT * FROM labfeed.fleet FOR UPDATE)
       UPDATE labfeed.fleet SET epoch = before.epoch + 1, leader = $1, until = clock_timestamp() + $2 * interval '1 ms'
       FROM before WHERE before.until < clock_timestamp() OR before.leader = $1
       RETURNING fleet.epoch, fleet.seq, before.leader, before.notebook, before.session_key`,
    [member, LEASE_MS],
  );
  if (!taken) return undefined;
  const { epoch, seq, leader, notebook, session_key: sessionKey } = taken;
  let isLost = false;

  async function renew(): Promise<void> {
    const began = clock.monotonic();
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
    predecessor:
      leader === null
        ? undefined
        : { isSelf: leader === member, notebook: notebook ?? undefined, sessionKey: sessionKey ?? undefined },
    isHeld: () => !isLost && clock.monotonic() - renewedAt < LEASE_MS - MARGIN_MS,
    recordKey: async (url, key) =>
      void (await postgres.run('UPDATE labfeed.fleet SET notebook = $2, session_key = $3 WHERE epoch = $1', [
        ...[epoch, url, key ?? null],
      ])),
    async release(isOver) {
      await loop.stop();
      const leaves = isOver ? ', leader = NULL, session_key = NULL' : '';
      await postgres
        .run(`UPDATE labfeed.fleet SET until = '-infinity'${leaves} WHERE epoch = $1`, [epoch])
        .then(() => postgres.run("SELECT pg_notify('labfeed', 'lease')"))
        .catch(() => undefined);
    },
  };
}
