import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Clock, every } from '../clock.js';
import type { FleetConfig } from '../config/fleet.js';
import { explain, LabfeedError } from '../errors.js';
import { answerSchema } from '../journal/decisions.js';
import { contentsOf, type FleetState, type Operation, putForward, takeState } from '../journal/forwards.js';
import type { Journal } from '../journal/journal.js';
import { applyRequests, type Outcome } from '../journal/requests.js';
import type { Live, LiveMember } from '../live.js';
import type { Log } from '../log.js';
import { version } from '../process.js';
import type { Spool } from '../spool.js';
import { sourceProbe } from '../watch/identify.js';
import { storeContent } from './contents.js';
import { isAway, type Postgres } from './database.js';

/** This machine as a member of the fleet: it hands over what its journal has, and learns what became of it. */
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
}

type Journaled = Pick<Journal, 'store' | 'intake' | 'growing' | 'requests'>;

/** Another member with this name counts as running for this long after it was last seen. */
const SEEN_MS = 60_000;

/** What is known of the membership without the database; undefined before the first contact. */
export function knownMembership({ store: { db } }: Journaled): Membership | undefined {
  return readMembership(db);
}

const readMembership = (db: Journaled['store']['db']): MembershipRow | undefined =>
  db.row<MembershipRow>`SELECT instance, fleet, member, followed FROM membership`;

/** A copy of the folder on another machine is another member: otherwise, both would number their operations alike. */
function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim();
  } catch {
    return '';
  }
}

/** Introduces this machine to the fleet. The number of a member belongs to its folder, not to its name. */
export async function join(
  { store }: Journaled,
  { name, role }: FleetConfig,
  fleet: string,
  postgres: Postgres,
): Promise<Membership> {
  const { db } = store;
  const known = readMembership(db);
  const machine = machineId();
  const isSame = known?.instance.endsWith(`@${machine}`) && !(await isRestored(db, known.member, postgres));
  const instance = isSame && known ? known.instance : `${randomUUID()}@${machine}`;
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
  const followed = known?.member === member ? known.followed : 0;
  await store.commit(() => {
    db.run`DELETE FROM membership`;
    db.run`INSERT INTO membership (instance, name, fleet, member, followed) VALUES (${instance}, ${name}, ${fleet}, ${member}, ${followed})`;
  });
  return { fleet, member };
}

/** A journal from a backup would number its operations like those that the fleet already has: it is another member. */
async function isRestored(db: Journaled['store']['db'], member: number, postgres: Postgres): Promise<boolean> {
  const last = db.value<number>`SELECT seq FROM sqlite_sequence WHERE name = 'forwards'` ?? 0;
  const row = await postgres.row<{ last: number }>(
    `SELECT greatest((SELECT max(number) FROM labfeed.received WHERE member = $1),
       (SELECT max(number) FROM labfeed.operations WHERE member = $1)) AS last`,
    [member],
  );
  return (row?.last ?? 0) > last;
}

interface MemberDeps {
  readonly journal: Journaled;
  readonly postgres: Postgres;
  readonly member: number;
  readonly name: string;
  /** Scans the folder of an instrument for files to read again. */
  rescan(instrument: string): void;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Log;
  /** How far the working copy has followed; undefined for a watcher. */
  followed(): number | undefined;
  live(): Live;
  /** How often the list of members is read. */
  readonly listEveryMs: number;
}

/** With 500 members, the database answers 200 short queries a second. */
const POLL_MS = 5000;
const HEARTBEAT_MS = 10_000;
const RETRY_MS = 2000;

/** Hands over, and follows the states of its runs. Whatever fails is tried again: nothing is removed before it arrived. */
export function createMember(deps: MemberDeps) {
  const { clock, log } = deps;
  let isAwayNow = false;
  function failed(error: unknown): number {
    const reason = explain(error);
    if (!isAwayNow) log.warn({ reason }, 'the database of the fleet is away; runs are kept here until it is back');
    isAwayNow = isAway(error);
    return RETRY_MS;
  }
  const forwarding = every(POLL_MS, clock, async () => {
    try {
      const isMore = await forward(deps);
      if (isAwayNow) log.info('the database of the fleet is back');
      isAwayNow = false;
      return isMore ? 0 : undefined;
    } catch (error) {
      return failed(error);
    }
  });
  const following = every(POLL_MS, clock, async () => {
    await followStates(deps).catch(failed);
    return undefined;
  });
  let members: LiveMember[] = [];
  let listedAt = Number.NEGATIVE_INFINITY;
  const beating = every(HEARTBEAT_MS, clock, async () => {
    try {
      await beat(deps);
      if (clock.monotonic() - listedAt < deps.listEveryMs) return undefined;
      listedAt = clock.monotonic();
      members = await listMembers(deps);
    } catch (error) {
      failed(error);
    }
    return undefined;
  });
  const asked = new Map<string, number>();
  const decisions = new Map<number, number>();
  const ask: Ask = (operation) =>
    deps.journal.store.commit(() => putForward(deps.journal.store.db, operation)).finally(forwarding.wake);
  return {
    /** The machines of the fleet that were seen within a month. */
    members: () => members,
    /** Operations that wait for the database here. */
    kept: () => deps.journal.store.db.value<number>`SELECT count(*) FROM forwards` ?? 0,
    /** Something was handed over by intake. */
    wake: forwarding.wake,
    /** Sends a question to the leader and returns its number. */
    ask,
    decide: () => decide(deps, decisions, ask),
    answer: (number: number) => readAnswer(deps, number),
    /** The number of the question that was asked under this name before. */
    asked,
    async stop(): Promise<void> {
      await Promise.all([forwarding.stop(), following.stop(), beating.stop()]);
    },
  };
}

export type Member = ReturnType<typeof createMember>;

const AT_A_TIME = 50;
const BATCH_BYTES = 4 * 1024 * 1024;

/** Sends the next operations, each after the contents that it needs. Returns whether there are more. */
async function forward({ journal, postgres, member, spool }: MemberDeps): Promise<boolean> {
  const { store } = journal;
  const rows = store.db.rows<{ id: number; operation: string }>`
    SELECT id, operation FROM forwards ORDER BY id LIMIT ${AT_A_TIME} + 0`;
  let bytes = 0;
  const batch = rows.filter(({ operation }, index) => {
    bytes += operation.length;
    return index === 0 || bytes <= BATCH_BYTES;
  });
  const last = batch.at(-1)?.id;
  if (last === undefined) return false;
  const ready: Ready[] = [];
  for (const { id, operation } of batch) ready.push({ id, ...(await withContents(operation, spool, postgres)) });
  // Forwards that the journal has are on disk before they leave it: a lost journal must not number others alike.
  await store.commit(() => undefined);
  if (!(await insertOperations(postgres, member, ready))) return true;
  const contents = new Set(
    batch.flatMap(({ operation }) => contentsOf(JSON.parse(operation) as Operation)).map(({ sha256 }) => sha256),
  );
  await store.commit(() => {
    store.db.run`DELETE FROM forwards WHERE id <= ${last}`;
    store.db.run`DELETE FROM forwarded WHERE forward <= ${last}`;
    // The database has them now.
    for (const sha256 of contents)
      if (!isForwarded(store.db, sha256))
        store.db.run`
          UPDATE attachments SET upload = 0, due_at = NULL WHERE sha256 = ${sha256} AND upload IS NULL AND refused = 0`;
  });
  for (const sha256 of contents) await spool.remove(sha256, async () => isForwarded(store.db, sha256));
  return batch.length === rows.length ? rows.length === AT_A_TIME : true;
}

/** Whether an operation that is still to be sent needs this content. */
const isForwarded = (db: Journaled['store']['db'], sha256: string): boolean =>
  db.exists`SELECT 1 FROM forwarded WHERE sha256 = ${sha256}`;

/** False if a content that an operation needs was removed meanwhile: it was that of another run, which is filed. */
const insertOperations = (postgres: Postgres, member: number, operations: readonly Ready[]): Promise<boolean> =>
  postgres.transaction(async (client) => {
    const needed = [...new Set(operations.flatMap(({ contents }) => contents))].sort();
    // Until the operations are visible, the leader cannot remove them.
    const held = await client.query('SELECT 1 FROM labfeed.complete WHERE sha256 = ANY($1) ORDER BY sha256 FOR SHARE', [
      needed,
    ]);
    if ((held.rowCount ?? 0) < needed.length) return false;
    await client.query(
      `INSERT INTO labfeed.operations (member, number, operation, contents)
         SELECT $1, number, operation, ARRAY(SELECT json_array_elements_text(contents))
         FROM unnest($2::bigint[], $3::json[], $4::json[]) AS sent (number, operation, contents) ON CONFLICT DO NOTHING`,
      [
        ...[member, operations.map(({ id }) => id), operations.map(({ text }) => text)],
        operations.map(({ contents }) => JSON.stringify(contents)),
      ],
    );
    await client.query("SELECT pg_notify('labfeed', 'operations')");
    return true;
  });

interface Ready {
  readonly id: number;
  readonly text: string;
  readonly contents: readonly string[];
}

/** A file whose content is gone is not attached, and its run says so. */
async function withContents(text: string, spool: Spool, postgres: Postgres): Promise<Omit<Ready, 'id'>> {
  const operation = JSON.parse(text) as Operation;
  const problems = new Map<string, string>();
  const contents: string[] = [];
  for (const content of contentsOf(operation)) {
    const problem = await storeContent(content, spool, postgres);
    if (problem === undefined) contents.push(content.sha256);
    else problems.set(content.sha256, problem);
  }
  if (problems.size === 0) return { text, contents };
  const changed = JSON.stringify(operation, (key, value: unknown) => {
    if (key !== 'attachments' && key !== 'files') return value;
    return (value as { sha256: string }[]).map((file) => {
      const problem = problems.get(file.sha256);
      return problem === undefined ? file : { ...file, problem };
    });
  });
  return { text: changed, contents };
}

/** What became of the runs of this member since it last asked. */
async function followStates({ journal, postgres, member, name, rescan }: MemberDeps): Promise<void> {
  const { store } = journal;
  const from = store.db.value<number>`SELECT followed FROM membership` ?? 0;
  // Read first: shipments are committed in their order, so everything up to here is visible afterwards.
  const upto = (await postgres.row<{ seq: number }>('SELECT seq FROM labfeed.fleet'))?.seq ?? 0;
  if (upto <= from) return;
  const states = await postgres.rows<FleetState>(
    `WITH changed AS (
       SELECT run, filed FROM labfeed.origins WHERE member = $1 AND shipped > $2
       UNION SELECT origins.run, origins.filed FROM labfeed.runs JOIN labfeed.origins ON origins.filed = runs.id
         WHERE runs.shipped > $2 AND origins.member = $1)
     SELECT changed.run AS own, sha256, step, parked, failure, reason, server, experiment, mapping, path = '' AS "isErased",
       (SELECT substr(remaps.path, length($3) + 1) FROM labfeed.remaps WHERE run = runs.id AND starts_with(remaps.path, $3))
       AS remap FROM changed JOIN labfeed.runs ON runs.id = changed.filed ORDER BY changed.run`,
    [member, from, `${name}:`],
  );
  const rescans = new Set<string | undefined>();
  for (const state of states) {
    rescans.add(await store.apply(() => takeState(store, state)));
    if (state.isErased) await erase(state.own, journal);
  }
  await store.commit(() => void store.db.run`UPDATE membership SET followed = ${upto}`);
  for (const instrument of rescans) if (instrument !== undefined) rescan(instrument);
}

/** Erased in the fleet, so also here. */
async function erase(run: number, { requests, intake, growing }: Journaled): Promise<void> {
  const { answer, row } = await requests.decide({ kind: 'erase', run }, { path: '', has: 'nothing' });
  if (!answer.done || !row) return;
  await intake.erase(row.instrument, row);
  if (row.generation != null) await growing.erase(row.generation);
}

/**
 * Decisions about runs are made by the leader, for the runs of all members; those about the backlog of an instrument here.
 * Returns those that were answered.
 */
async function decide(deps: MemberDeps, asked: Map<number, number>, ask: Ask): Promise<Outcome[]> {
  const { requests } = deps.journal;
  const pending = await requests.pending(DECISIONS);
  const isLocal = ({ request }: (typeof pending)[number]): boolean => !request || request.kind === 'backfill';
  const local = { ...requests, pending: async () => pending.filter(isLocal) };
  const outcomes = await applyRequests({ ...deps.journal, requests: local }, sourceProbe);
  for (const { id, request } of pending) {
    if (!request || request.kind === 'backfill') continue;
    const number = asked.get(id) ?? (await ask({ kind: 'request', own: id, request }));
    asked.set(id, number);
    const answer = answerSchema.safeParse(await readAnswer(deps, number)).data;
    if (!answer) continue;
    asked.delete(id);
    outcomes.push({ ...(await requests.answer(id, answer)), rescan: undefined, request });
  }
  return outcomes;
}

const DECISIONS = 100;

type Ask = (operation: Operation) => Promise<number>;

async function readAnswer({ postgres, member }: MemberDeps, number: number): Promise<unknown> {
  const row = await postgres.row<{ answer: string }>(
    'SELECT answer FROM labfeed.answers WHERE member = $1 AND number = $2 AND answer IS NOT NULL',
    [member, number],
  );
  return row && (JSON.parse(row.answer) as unknown);
}

/** For the other members: it runs, its clock, and what it does. */
async function beat({ postgres, member, clock, followed, live }: MemberDeps): Promise<void> {
  const { fleet: _, ...own } = live();
  await postgres.run(
    `UPDATE labfeed.members SET seen_at = clock_timestamp(), followed = $2, live = $3,
       skew_ms = $4 - (extract(epoch FROM clock_timestamp()) * 1000)::bigint WHERE id = $1`,
    [member, followed() ?? null, JSON.stringify(own), clock.now()],
  );
}

const listMembers = ({ postgres }: MemberDeps): Promise<LiveMember[]> =>
  postgres.rows<LiveMember>(
    `SELECT name, role, version, (extract(epoch FROM seen_at) * 1000)::bigint AS "seenAt", skew_ms AS "skewMs",
       coalesce(members.id = leader AND until > now(), false) AS leads, coalesce(waiting, 0) AS waiting,
       coalesce(failures, 0) AS failures FROM labfeed.fleet, labfeed.members
       LEFT JOIN (SELECT member, count(*) AS waiting FROM labfeed.operations GROUP BY 1) AS sent ON sent.member = members.id
       LEFT JOIN (SELECT member, count(*) AS failures FROM labfeed.failures GROUP BY 1) AS failed
       ON failed.member = members.id WHERE seen_at > now() - interval '30 days' ORDER BY name`,
  );
