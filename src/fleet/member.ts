import { type Clock, every } from '../clock.js';
import type { ListedInstrument } from '../config/load.js';
import { explain } from '../errors.js';
import { answerSchema } from '../journal/decisions.js';
import { contentsOf, type FleetState, type Operation, putForward, takeState } from '../journal/forwards.js';
import type { Journal } from '../journal/journal.js';
import { applyRequests, isAboutRun, type Outcome, withoutRuns } from '../journal/requests.js';
import { readFacts, readWholeRun } from '../journal/whole-runs.js';
import type { Live, LiveMember } from '../live.js';
import type { Log } from '../log.js';
import { differentNotebooks } from '../members.js';
import type { Spool } from '../spool.js';
import { sourceProbe } from '../watch/identify.js';
import { storeContent } from './contents.js';
import { isAway, type Postgres } from './database.js';
import { compareWithDatabase, readMembership } from './membership.js';
import { beat, listMembers } from './report.js';

type Journaled = Pick<Journal, 'store' | 'intake' | 'growing' | 'requests'>;

interface MemberDeps {
  readonly journal: Journaled;
  readonly postgres: Postgres;
  /** Its number, which changes if the database was restored to a time before it joined. */
  member(): number;
  /** Introduces this machine again. */
  rejoin(): Promise<void>;
  readonly name: string;
  /** Scans the folder of an instrument for files to read again. */
  rescan(instrument: string): void;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Log;
  /** How far the working copy has followed; undefined for a watcher. */
  followed(): number | undefined;
  live(): Live;
  /** Its address, on a machine that delivers or is ready to. */
  notebook(): string | undefined;
  /** The instruments of this machine, for `recover`. */
  listed(): readonly ListedInstrument[];
  /** How often the list of members is read. */
  readonly listEveryMs: number;
}

/** With 500 members, the database answers 200 short queries a second. */
const POLL_MS = 5000;
const HEARTBEAT_MS = 10_000;
const RETRY_MS = 2000;

/** Operations keep their order: with more, a live file would wait too long behind a backlog. */
const MAX_KEPT = 100;
const ROOM_POLL_MS = 100;

/** If the list of machines is overdue by this much, it says nothing about the present. */
const OLD_MS = 60_000;

/** This machine as a member of the fleet: it hands over, and follows the states of its runs. Whatever fails is tried again: nothing is removed before it arrived. */
export function createMember(deps: MemberDeps) {
  const { clock, log } = deps;
  let isAwayNow = false;
  /** While the database is away, files are read all the same. */
  let canSend = true;
  /** A database from a backup does not have what it acknowledged: the numbers of members may belong to others now. */
  async function check(): Promise<void> {
    const { db } = deps.journal.store;
    const known = readMembership(db);
    if (!known || (await compareWithDatabase(db, known, deps.postgres)) === 'current') return;
    log.warn('the database of the fleet was restored from a backup; runs that it does not know are handed over again');
    await deps.rejoin();
  }
  function failed(error: unknown): number {
    const reason = explain(error);
    if (!isAwayNow) log.warn({ reason }, 'the database of the fleet is away; runs are kept here until it is back');
    isAwayNow = isAway(error);
    return RETRY_MS;
  }
  const forwarding = every(POLL_MS, clock, async () => {
    try {
      const isMore = await forward({ ...deps, check });
      if (isAwayNow) log.info('the database of the fleet is back');
      isAwayNow = false;
      canSend = true;
      return isMore ? 0 : undefined;
    } catch (error) {
      canSend = false;
      return failed(error);
    }
  });
  const following = every(POLL_MS, clock, async () => {
    await followStates(deps).catch(failed);
    return undefined;
  });
  let members: LiveMember[] = [];
  let listed: { readonly at: number; readonly monotonic: number } | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let warned: string | undefined;
  /** Once for each difference, on the machines that could take over. */
  function compareNotebooks(): void {
    const different = deps.notebook() === undefined ? undefined : differentNotebooks(members);
    const { notebooks, hint } = different ?? {};
    if (notebooks !== undefined && notebooks !== warned)
      log.warn({ notebooks, hint }, 'the machines that deliver have different addresses of the notebook');
    warned = notebooks;
  }
  const beating = every(HEARTBEAT_MS, clock, async () => {
    try {
      await check();
      await beat(deps);
      // After a start, or while nobody delivers, that can change at any time.
      const isLed = members.some(({ leads }) => leads);
      if (isLed && clock.monotonic() - readAt < deps.listEveryMs) return undefined;
      readAt = clock.monotonic();
      members = await listMembers(deps.postgres, clock);
      compareNotebooks();
      listed = { at: clock.now(), monotonic: clock.monotonic() };
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
    /** The machines of the fleet that were seen within a month. Without the database, nobody knows how the others are. */
    list: () => {
      if (!listed) return { members };
      const isOld = clock.monotonic() - listed.monotonic > deps.listEveryMs + OLD_MS;
      const known = isOld ? members.map((one) => (one.name === deps.name ? one : { ...one, isAway: true })) : members;
      return { members: known, listedAt: listed.at };
    },
    /** Operations that wait for the database here. */
    kept: () => deps.journal.store.db.value<number>`SELECT count(*) FROM forwards` ?? 0,
    /** Resolves when the next file may be read. */
    async room(isClosed: () => boolean): Promise<void> {
      const isFull = () => deps.journal.store.db.exists`SELECT 1 FROM forwards LIMIT 1 OFFSET ${MAX_KEPT - 1} + 0`;
      while (canSend && !isClosed() && isFull()) await clock.sleep(ROOM_POLL_MS);
    },
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
export async function forward(deps: ForwardDeps): Promise<boolean> {
  const { journal, postgres, spool } = deps;
  const { store } = journal;
  if (store.db.exists`SELECT 1 FROM forwards`) await deps.check?.();
  const member = deps.member();
  const isImporting = await importNext(deps);
  const rows = store.db.rows<{ id: number; operation: string }>`
    SELECT id, operation FROM forwards ORDER BY id LIMIT ${AT_A_TIME} + 0`;
  let bytes = 0;
  const batch = rows.filter(({ operation }, index) => {
    bytes += operation.length;
    return index === 0 || bytes <= BATCH_BYTES;
  });
  const last = batch.at(-1)?.id;
  if (last === undefined) return isImporting;
  const ready: Ready[] = [];
  for (const { id, operation } of batch) ready.push({ id, ...(await withContents(operation, spool, postgres)) });
  // Forwards that the journal has are on disk before they leave it: a lost journal must not number others alike.
  await store.commit(() => undefined);
  const instance = readMembership(store.db)?.instance;
  if (!(await insertOperations(postgres, { member, instance }, ready))) return true;
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
  return isImporting || batch.length < rows.length || rows.length === AT_A_TIME;
}

type ForwardDeps = Pick<MemberDeps, 'journal' | 'postgres' | 'member' | 'spool'> & {
  /** Before anything is sent. */
  check?(): Promise<void>;
};

/**
 * Puts the next runs that the fleet may not know behind the operations that wait. Returns whether there may be more.
 * Together with the position, so that each is put once, whatever interrupts it.
 */
async function importNext({ journal, postgres, member }: ForwardDeps): Promise<boolean> {
  const { db, commit } = journal.store;
  const from = db.value<number>`SELECT importing FROM membership`;
  if (from === undefined || db.exists`SELECT 1 FROM forwards`) return from !== undefined;
  const own = db.rows<{ id: number; sha256: string; filed: number; grows: number }>`
    SELECT id, sha256, experiment IS NOT NULL AS filed, EXISTS (SELECT 1 FROM growths WHERE run = id AND ended_at IS NULL)
      AS grows FROM runs WHERE id > ${from} ORDER BY id LIMIT ${AT_A_TIME} + 0`;
  const known = await postgres.rows<{ run: number }>(
    `SELECT own.run FROM unnest($2::bigint[], $3::text[], $4::int[]) AS own (run, sha256, filed)
       JOIN labfeed.origins ON origins.member = $1 AND origins.run = own.run JOIN labfeed.runs ON runs.id = origins.filed
       WHERE runs.sha256 = own.sha256 AND (own.filed = 0 OR runs.experiment IS NOT NULL)`,
    [member(), own.map(({ id }) => id), own.map(({ sha256 }) => sha256), own.map(({ filed }) => filed)],
  );
  const skipped = new Set(known.map(({ run }) => run));
  await commit(() => {
    for (const { id, grows } of own) {
      const whole = grows === 1 || !skipped.has(id) ? readWholeRun(db, id) : undefined;
      if (whole) putForward(db, { kind: 'import', ...whole });
    }
    const last = own.at(-1)?.id ?? null;
    db.run`UPDATE membership SET importing = ${last}`;
    // With the numbers that their runs have in the fleet now.
    if (last === null) putForward(db, { kind: 'facts', ...readFacts(db), servers: [], spares: [] });
  });
  return own.length > 0;
}

/** Whether an operation that is still to be sent needs this content. */
const isForwarded = (db: Journaled['store']['db'], sha256: string): boolean =>
  db.exists`SELECT 1 FROM forwarded WHERE sha256 = ${sha256}`;

/**
 * False if a content that an operation needs was removed meanwhile: it was that of another run, which is filed. Or if the
 * database was restored meanwhile, and the number belongs to another member or to none.
 */
const insertOperations = (
  postgres: Postgres,
  { member, instance }: { readonly member: number; readonly instance: string | undefined },
  operations: readonly Ready[],
): Promise<boolean> =>
  postgres.transaction(async (client) => {
    const own = await client.query('SELECT id FROM labfeed.members WHERE id = $1 AND instance = $2', [
      member,
      instance,
    ]);
    if (own.rowCount === 0) return false;
    const needed = [...new Set(operations.flatMap(({ contents }) => contents))].sort();
    // Until the operations are visible, the leader cannot remove them.
    const held = await client.query('SELECT 1 FROM labfeed.complete WHERE sha256 = ANY($1) ORDER BY sha256 FOR SHARE', [
      needed,
    ]);
    if ((held.rowCount ?? 0) < needed.length) return false;
    // A repeated call writes, too: only a commit of something written waits until a synchronous replica has everything.
    await client.query(
      `INSERT INTO labfeed.operations (member, number, operation, contents)
         SELECT $1, number, operation, ARRAY(SELECT json_array_elements_text(contents))
         FROM unnest($2::bigint[], $3::json[], $4::json[]) AS sent (number, operation, contents)
         ON CONFLICT (member, number) DO UPDATE SET at = operations.at`,
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
export async function followStates(deps: FollowDeps): Promise<void> {
  const { journal, postgres, name, rescan } = deps;
  const { store } = journal;
  const member = deps.member();
  const from = store.db.value<number>`SELECT followed FROM membership` ?? 0;
  // Read first: shipments are committed in their order, so everything up to here is visible afterwards.
  const upto = (await postgres.row<{ seq: number }>('SELECT seq FROM labfeed.fleet'))?.seq ?? 0;
  if (upto < from) return deps.rejoin();
  if (upto === from) return;
  const rescans = new Set<string | undefined>();
  for (let after = { shipped: from, own: Number.MAX_SAFE_INTEGER }; ; ) {
    const states = await postgres.rows<FleetState & { readonly shipped: number }>(
      `SELECT shipped, origins.run AS own, sha256, step, parked, failure, reason, server, experiment, mapping,
         runs.path = '' AS "isErased", (SELECT substr(remaps.path, length($5) + 1) FROM labfeed.remaps WHERE run = runs.id
         AND starts_with(remaps.path, $5)) AS remap FROM labfeed.origins JOIN labfeed.runs ON runs.id = filed
         WHERE member = $1 AND (shipped, origins.run) > ($2, $3) ORDER BY shipped, origins.run LIMIT $4`,
      [...[member, after.shipped, after.own, STATES_AT_A_TIME, `${name}:`]],
    );
    for (const state of states) {
      rescans.add(await store.apply(() => takeState(store, state)));
      if (state.isErased) await erase(state.own, journal);
    }
    const last = states.at(-1);
    if (!last || states.length < STATES_AT_A_TIME) break;
    after = last;
  }
  await store.commit(() => void store.db.run`UPDATE membership SET followed = ${upto}`);
  for (const instrument of rescans) if (instrument !== undefined) rescan(instrument);
}

/** After the database was restored, a member asks for all of its runs. */
const STATES_AT_A_TIME = 500;

type FollowDeps = Pick<MemberDeps, 'journal' | 'postgres' | 'name' | 'member' | 'rescan' | 'rejoin'>;

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
  const outcomes = await applyRequests({ ...deps.journal, requests: withoutRuns(requests) }, sourceProbe);
  for (const { id, request } of await requests.pending(DECISIONS)) {
    if (!request || !isAboutRun(request)) continue;
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
    [member(), number],
  );
  return row && (JSON.parse(row.answer) as unknown);
}
