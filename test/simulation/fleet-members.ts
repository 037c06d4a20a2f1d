import { createHash } from 'node:crypto';
import type { Fleet } from '../../src/fleet/fleet.js';
import type { Connection } from '../../src/journal/database.js';
import type { LiveMember } from '../../src/live.js';
import type { Result, Statement } from './fleet-contents.js';

interface MemberRow {
  readonly id: number;
  readonly instance: string;
  readonly name: string;
  role: string;
  version: string;
  seenAt: number;
  skewMs: number;
  live: string | undefined;
}

/** What the simulated database knows besides. */
interface Known {
  now(): number;
  /** The member that leads, unless its lease is over. */
  leader(): number | null;
  waiting(member: number): number;
  failures(member: number): number;
}

/** As in `member.ts` and `report.ts`. */
const SEEN_MS = 60_000;

/** The table of members in the simulated database, with what they report. */
export function createMembers({ now, leader, waiting, failures }: Known) {
  const members: MemberRow[] = [];
  const rowsOf = (row: object | undefined): Result => ({ rows: row ? [row] : [] });

  function insert(instance: string, name: string, role: string, version: string): Result {
    const known = members.find((member) => member.instance === instance);
    const member = known ?? {
      id: members.length + 1,
      instance,
      name,
      role,
      version,
      seenAt: 0,
      skewMs: 0,
      live: undefined,
    };
    if (!known) members.push(member);
    Object.assign(member, { role, version, seenAt: now() });
    return rowsOf({ id: member.id });
  }

  function beat(id: number, clock: number): Result {
    const member = members.find((one) => one.id === id);
    if (!member) return rowsOf(undefined);
    Object.assign(member, { seenAt: now(), skewMs: clock - now() });
    const hash = member.live === undefined ? null : createHash('md5').update(member.live).digest('hex');
    return rowsOf({ hash });
  }

  function list({ id, name, role, version, seenAt, skewMs, live }: MemberRow): object {
    const { instruments = null, alarms = null } = JSON.parse(live ?? '{}') as {
      instruments?: unknown;
      alarms?: unknown;
    };
    const ago = { seenAgoMs: now() - seenAt, databaseNow: now(), isAway: seenAt < now() - SEEN_MS };
    const counts = { waiting: waiting(id), failures: failures(id) };
    return { name, role, version, ...ago, skewMs, leads: id === leader(), ...counts, instruments, alarms };
  }

  const statements: readonly Statement[] = [
    [
      'SELECT seen_at::text',
      ([name, instance, ms]) => {
        const isOther = (one: MemberRow): boolean =>
          one.name === name && one.instance !== instance && one.seenAt > now() - (ms as number);
        return rowsOf(members.some(isOther) ? { seen: '' } : undefined);
      },
    ],
    ['INSERT INTO labfeed.members', (values) => insert(...(values as [string, string, string, string]))],
    ['UPDATE labfeed.members SET seen_at', ([id, , clock]) => beat(id as number, clock as number)],
    [
      'UPDATE labfeed.members SET live',
      ([id, live]) => {
        const member = members.find((one) => one.id === id);
        if (member) member.live = live as string;
        return { rows: [], count: 1 };
      },
    ],
    [
      'SELECT name, role, version',
      () => ({
        rows: [...members].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.seenAt - b.seenAt)).map(list),
      }),
    ],
  ];
  return { members, statements };
}

/** A machine of the fleet. */
interface Reporter {
  readonly name: string;
  readonly isDeliverer: boolean;
  readonly aheadMs: number;
  readonly slot: { readonly db: Connection };
  readonly running: { readonly fleet: Pick<Fleet, 'live'> } | undefined;
}

/** Each machine that delivers lists all that run, as they are. `skewMs`: how far the clock of the database is ahead. */
export function verifyReports(members: readonly Reporter[], skewMs: number, leader: Reporter): void {
  const running = members.filter((member) => member.running);
  for (const { name, isDeliverer, running: own } of running) {
    if (!isDeliverer || !own) continue;
    const listed = own.fleet.live()?.members ?? [];
    const problems = running.flatMap((member) => describeProblem(member, listed, skewMs, leader) ?? []);
    if (problems.length > 0) throw new Error(`${name} lists members wrongly: ${problems.join('; ')}`);
  }
}

/** Clocks are read while a request is on its way. */
const TRAVEL_MS = 1000;

function describeProblem(
  { name, aheadMs, slot }: Reporter,
  listed: readonly LiveMember[],
  databaseMs: number,
  leader: Reporter,
): string | undefined {
  const shown = listed.filter((one) => one.name === name);
  const [one] = shown;
  if (!one || shown.length > 1) return `${name} ${shown.length} times`;
  const [folder] = one.folders;
  const queued = slot.db.value<number>`SELECT count(*) FROM runs WHERE step <> 'done' AND parked IS NULL`;
  if (one.isAway) return `${name} as away`;
  if (Math.abs(one.skewMs - (aheadMs - databaseMs)) > TRAVEL_MS) return `${name} with a skew of ${one.skewMs} ms`;
  if (one.leads !== (name === leader.name)) return `${name} as ${one.leads ? '' : 'not '}leading`;
  if (one.waiting + one.failures > 0) return `${name} with ${one.waiting} operations that wait`;
  return folder?.runs?.queued === queued ? undefined : `${name} with ${folder?.runs?.queued} of ${queued} queued runs`;
}
