import type pg from 'pg';
import type { Notice } from '../model.js';
import type { Postgres } from './database.js';

/** A machine that was not seen for as long does not speak for others. */
const SEEN = "interval '1 hour'";

interface Claim {
  readonly key: string;
  readonly told: boolean;
  readonly told_over: boolean | null;
}

/** There is one of each in a fleet, whatever run or operation its text names. */
const OF_FLEET: ReadonlySet<string> = new Set(['auth', 'outage', 'overdue', 'operation']);

/** Two machines may count them at different times. */
const COUNTED =
  /(?<!\S)\d[\d,]* ((?:existing |filed )?(?:file|run))s? (?:is|are|has|have|needs?)(?: a)?(?: names?)?(?!\S)/g;

/** They are about a folder: that of one machine, or one on a share. */
const OF_FOLDER: ReadonlySet<string> = new Set(['silence', 'folder', 'unmatched', 'unreadable', 'stuck']);

/** Where the folder of an instrument is: on a share, or only on this machine. */
export type FolderPlace = { readonly share: string } | 'own';

/**
 * The same for machines that see the same trouble. A halt belongs to no instrument: it concerns the whole fleet. Folders of two
 * machines can have the same path and be two folders. Without a place, as for a share that is gone, the text decides.
 */
function keyOf({ kind, instrument = '', text }: Notice, member: number, place: FolderPlace | undefined): string {
  if (OF_FLEET.has(kind) || (kind === 'held' && instrument === '')) return kind;
  if (place === 'own' && OF_FOLDER.has(kind)) return `${kind} ${instrument} of ${member}`;
  // Machines list a share at different times, so their texts name different times.
  if (typeof place === 'object' && kind === 'silence') return `${kind} ${instrument} ${place.share}`;
  return `${kind} ${text.replace(COUNTED, '$1')}`;
}

/**
 * Whether this member is the one that notifies people. Members that raise an alarm with the same text, apart from numbers of
 * files and runs, see the same trouble, such as a share that is gone: the first one reports it, and the last one for which
 * it is over reports that. The answer for a notice stays the same, however often it is asked: a notice can go to several
 * places, and be repeated.
 */
export const isReporter = (
  postgres: Postgres,
  member: number,
  notice: Notice,
  place?: FolderPlace | undefined,
): Promise<boolean> =>
  postgres.transaction(async (client) => {
    const { kind, instrument = '', since, state } = notice;
    const own = await client.query<Claim>(
      'SELECT key, told, told_over FROM labfeed.raised WHERE member = $1 AND kind = $2 AND instrument = $3 AND since = $4',
      [member, kind, instrument, since],
    );
    const [claim] = own.rows;
    // It was raised while the database was away, so it was reported from here.
    if (state === 'over' && !claim) return true;
    if (state === 'raised' && claim) return claim.told;
    if (claim && claim.told_over !== null) return claim.told_over;
    const key = claim?.key ?? keyOf(notice, member, place);
    await client.query('SELECT pg_advisory_xact_lock(hashtext($1))', [key]);
    const isAlone = !(await isRaisedElsewhere(client, key, member));
    if (state === 'over')
      await client.query(
        'UPDATE labfeed.raised SET told_over = $4 WHERE member = $1 AND kind = $2 AND instrument = $3',
        [...[member, kind, instrument, isAlone]],
      );
    else
      await client.query(
        `INSERT INTO labfeed.raised (member, kind, instrument, since, key, told) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (member, kind, instrument) DO UPDATE SET since = $4, key = $5, told = $6, told_over = NULL`,
        [...[member, kind, instrument, since, key, isAlone]],
      );
    return isAlone;
  });

async function isRaisedElsewhere(client: pg.ClientBase, key: string, member: number): Promise<boolean> {
  const { rows } = await client.query(
    `SELECT 1 FROM labfeed.raised JOIN labfeed.members ON members.id = member WHERE key = $1 AND member <> $2
       AND told_over IS NULL AND seen_at > clock_timestamp() - ${SEEN} LIMIT 1`,
    [key, member],
  );
  return rows.length > 0;
}
