import { randomUUID } from 'node:crypto';
import type { FleetConfig } from '../config/fleet.js';
import { LabfeedError } from '../errors.js';
import type { Connection } from '../journal/database.js';
import { putForward } from '../journal/forwards.js';
import type { Journal } from '../journal/journal.js';
import { readFacts } from '../journal/whole-runs.js';
import { machineId, version } from '../system/process.js';
import { plural } from '../text.js';
import type { Postgres } from './database.js';

/** That this machine belongs to a fleet, as its journal knows it. */
export interface Membership {
  /** The id of the fleet, which is part of every origin line. */
  readonly fleet: string;
  readonly member: number;
}

interface MembershipRow {
  readonly instance: string;
  readonly fleet: string;
  readonly member: number;
  readonly followed: number;
  /** The last of its own runs that was handed over; null: all of them were. */
  readonly importing: number | null;
}

/** Another member with this name counts as running for this long after it was last seen. */
const SEEN_MS = 60_000;

/** What is known of the membership without the database; undefined before the first contact. */
export const readMembership = (db: Connection): MembershipRow | undefined =>
  db.row<MembershipRow>`SELECT instance, fleet, member, followed, importing FROM membership`;

/**
 * Introduces this machine to the fleet. The number of a member belongs to its folder, not to its name. `isMoving`: the runs
 * of its journal are handed over, with what it knows about notebooks and instruments.
 */
export async function join(
  { store }: Pick<Journal, 'store'>,
  { name, role, url }: FleetConfig,
  fleet: string,
  postgres: Postgres,
  isMoving = false,
): Promise<Membership> {
  const { db } = store;
  const known = readMembership(db);
  if (!known && !isMoving) refuseUnknownRuns(db, url);
  // A copy of the folder on another machine is another member: otherwise, both would number their operations alike.
  const machine = machineId();
  const state = known && (await compareWithDatabase(db, known, postgres));
  const isSame = known?.instance.endsWith(`@${machine}`) && state !== 'journal restored';
  const instance = isSame && known ? known.instance : await newInstance(db, machine, postgres);
  if (known && known.fleet !== fleet)
    throw new LabfeedError(
      `this machine belongs to another fleet (${known.fleet}), and the database is that of ${fleet}`,
      {
        hint: 'set `journal` back, or give this machine another folder with `fleet: { state: FOLDER }`',
      },
    );
  const other = await postgres.row<{ seen: string }>(
    `SELECT seen_at::text AS seen FROM labfeed.members WHERE name = $1 AND instance <> $2
       AND seen_at > clock_timestamp() - $3 * interval '1 ms'`,
    [name, instance, SEEN_MS],
  );
  if (other)
    throw new LabfeedError(`another machine of the fleet has the name ${name}; it was last seen at ${other.seen}`, {
      hint: 'give this one another name: fleet: { name: NAME }',
    });
  const row = await postgres.row<{ id: number }>(
    `INSERT INTO labfeed.members (instance, name, role, version, seen_at) VALUES ($1, $2, $3, $4, clock_timestamp())
       ON CONFLICT (instance) DO UPDATE SET name = $2, role = $3, version = $4, seen_at = clock_timestamp() RETURNING id`,
    [instance, name, role, version()],
  );
  const member = row?.id ?? 0;
  const isContinued = known?.member === member && state === 'current';
  const { followed, importing } = isContinued ? known : { followed: 0, importing: known || isMoving ? 0 : null };
  await store.commit(() => {
    db.run`DELETE FROM membership`;
    db.run`
      INSERT INTO membership (instance, name, fleet, member, followed, url, importing)
        VALUES (${instance}, ${name}, ${fleet}, ${member}, ${followed}, ${url}, ${importing})`;
    if (!known && isMoving) putForward(db, { kind: 'facts', ...readFacts(db) });
  });
  return { fleet, member };
}

/**
 * Derived from the journal, so that an attempt that was interrupted is continued. A journal that was lost and created again
 * has the same id, but its operations would have the numbers of others: then it is another member.
 */
async function newInstance(db: Connection, machine: string, postgres: Postgres): Promise<string> {
  const instance = `${db.value<string>`SELECT id FROM identity`}@${machine}`;
  const isTaken = await postgres.row(
    `SELECT 1 FROM labfeed.members WHERE instance = $1 AND ($2 = 0 OR $2 < ${LAST_NUMBER})
       AND ${LAST_NUMBER} IS NOT NULL`,
    [instance, lastForward(db)],
  );
  return isTaken ? `${randomUUID()}@${machine}` : instance;
}

/** The number of the last operation, in the journal and in the database. */
const lastForward = (db: Connection): number =>
  db.value<number>`SELECT seq FROM sqlite_sequence WHERE name = 'forwards'` ?? 0;
const LAST_NUMBER = `greatest((SELECT max(number) FROM labfeed.received WHERE member = members.id),
  (SELECT max(number) FROM labfeed.operations WHERE member = members.id))`;

/** The fleet would not know them, and nobody would deliver those that are not done. */
function refuseUnknownRuns(db: Connection, url: string): void {
  const runs = db.value<number>`SELECT count(*) FROM runs` ?? 0;
  if (runs === 0) return;
  throw new LabfeedError(`the journal of this machine has ${plural(runs, 'run')} that the fleet does not know`, {
    hint: `hand them over first: labfeed migrate --to ${url}`,
  });
}

/**
 * A journal from a backup would number its operations like those that the fleet already has, so it is another member. A
 * database from a backup lacks operations that it had: the runs of this machine are handed over again. Others may be sent
 * meanwhile: the database has what was sent before the question, and nothing that the journal does not have after it.
 */
export async function compareWithDatabase(
  db: Connection,
  { member, instance, followed }: MembershipRow,
  postgres: Postgres,
): Promise<'current' | 'journal restored' | 'database restored'> {
  const unsent = db.value<number>`SELECT min(id) FROM forwards`;
  const sent = unsent === undefined ? lastForward(db) : unsent - 1;
  const row = await postgres.row<{ instance: string | null; last: number | null; seq: number }>(
    `SELECT instance, seq, ${LAST_NUMBER} AS last FROM labfeed.fleet LEFT JOIN labfeed.members ON members.id = $1`,
    [member],
  );
  if (row?.instance !== instance) return 'database restored';
  if ((row.last ?? 0) > lastForward(db)) return 'journal restored';
  return (row.last ?? 0) < sent || row.seq < followed ? 'database restored' : 'current';
}
