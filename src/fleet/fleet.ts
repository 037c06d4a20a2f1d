import { createHash } from 'node:crypto';
import { relative } from 'node:path';
import { type Clock, every, type Loop, retry } from '../clock.js';
import type { FleetConfig } from '../config/fleet.js';
import type { UsableConfig } from '../config/load.js';
import { connect, type OnResponse, openNotebook } from '../connection.js';
import type { FleetAlarms } from '../daemon/reporting.js';
import type { FleetPart } from '../daemon/runtime.js';
import { explain, LabfeedError } from '../errors.js';
import { answerSchema } from '../journal/decisions.js';
import { fleetCopyOf } from '../journal/fleet-view.js';
import { forwardingGrowths, forwardingOutbox } from '../journal/forwards.js';
import type { Journal } from '../journal/journal.js';
import type { Live, LiveInstrument } from '../live.js';
import type { Log } from '../log.js';
import type { Observer, Reader } from '../pipeline.js';
import type { Spool } from '../spool.js';
import { mountOf } from '../system/mounts.js';
import { DisposalError, NotNow } from '../watch/file-moves.js';
import { type FolderPlace, isReporter } from './alarm-claims.js';
import { adviseConnection, isAway, Postgres } from './database.js';
import { type Kept, NEWEST } from './kept-runs.js';
import { type Leader, type LeaderOutside, startLeading } from './leader.js';
import { takeLease } from './lease.js';
import { createMember, type Member } from './member.js';
import { join, type Membership, readMembership } from './membership.js';
import { firstSetAside } from './receive.js';
import { prepareSchema } from './upgrade.js';
import { follow, openWorkingCopy, type WorkingCopy } from './working-copy.js';

interface FleetDeps {
  readonly config: UsableConfig;
  readonly fleet: FleetConfig;
  readonly journal: Journal;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  readonly onResponse: OnResponse;
  readonly stopping: AbortSignal;
  live(): Live;
  conceal(secret: string): void;
  isSecretIn(text: string): boolean;
  readonly outside?: Outside;
}

/** What a member reaches outside of its process. The simulation has another world. */
export interface Outside extends LeaderOutside {
  openDatabase(fleet: FleetConfig, conceal: (secret: string) => void): Postgres;
  /** With all runs, or some. */
  openCopy(path: string, kept?: Kept): WorkingCopy;
}

const REAL: Outside = {
  openDatabase: (fleet, conceal) => new Postgres(fleet, conceal),
  openCopy: openWorkingCopy,
  openNotebook,
  connect,
  random: Math.random,
};

export type Fleet = Awaited<ReturnType<typeof joinFleet>>;

const ELECT_MS = 2000;

/** With 500 watchers, the list is read eight times a second. */
const LIST_MS = 60_000;

/** Within this time, another leader has raised an alarm about the notebook, or there is no reason to. */
const HANDED_OVER_MS = 15 * 60_000;

/** A watcher needs the runs of others only for commands and page. */
const FOLLOW_MS = 10_000;

/**
 * Makes this labfeed a member of a fleet. The first start needs the database, since everything that is filed names the
 * fleet. Later ones do not.
 */
export async function joinFleet(deps: FleetDeps) {
  const { fleet, journal, spool, clock, log, stopping, outside = REAL } = deps;
  const postgres = outside.openDatabase(fleet, deps.conceal);
  stopping.addEventListener('abort', () => postgres.hurry(), { once: true });
  const known = readMembership(journal.store.db);
  const isDeliverer = fleet.role !== 'watch';
  const introduce = async (): Promise<Membership> => {
    const { id } = await prepareSchema(postgres, isDeliverer);
    return join(journal, fleet, id, postgres);
  };
  let membership = await introduceFirst(introduce, known, deps, postgres);
  let isIntroduced = membership.isFresh;
  let isStopped = false;
  const path = fleetCopyOf(journal.store.db.database.location() ?? '');
  let copy: WorkingCopy | undefined;
  let leader: Leader | undefined;
  const halts = new Map<string, string | undefined>();
  let { config } = deps;
  let changing: Promise<void> = Promise.resolve();
  let ledAt = Number.NEGATIVE_INFINITY;
  let rescan: (instrument: string) => void = () => undefined;
  const places: Places = new Map();

  const member: Member = createMember({
    ...{ journal, postgres, name: fleet.name, spool, clock, log },
    member: () => membership.member,
    async rejoin() {
      membership = { ...(await introduce()), isFresh: true };
    },
    rescan: (instrument) => rescan(instrument),
    followed: () => (leader ? undefined : copy?.position()),
    live() {
      const own = deps.live();
      for (const instrument of own.instruments) notePlace(places, instrument);
      return own;
    },
    notebook: () => (isDeliverer ? config.notebook.url : undefined),
    listed: () => config.listed,
    listEveryMs: isDeliverer ? 0 : LIST_MS,
  });

  /** Ends the leadership of this process, if it has it. One change at a time. */
  function stepDown(reason: string | undefined): Promise<void> {
    changing = changing.then(async () => {
      const before = leader;
      leader = undefined;
      if (!before) return;
      ledAt = clock.monotonic();
      if (reason !== undefined) log.warn({ reason }, 'not delivering for the fleet any more');
      await before.stop(reason !== undefined);
      copy = undefined;
    });
    return changing;
  }

  function openCopy(): WorkingCopy {
    if (copy) return copy;
    copy = outside.openCopy(path, isDeliverer ? undefined : { member: membership.member, newest: NEWEST });
    const { url } = config.notebook;
    // A copy that is about to be loaded again still has what this machine knew.
    if (!halts.has(url)) halts.set(url, haltIn(copy, url));
    return copy;
  }

  async function elect(): Promise<void> {
    if (leader || isStopped) return;
    if (!isIntroduced) {
      membership = { ...(await introduce()), isFresh: true };
      isIntroduced = true;
    }
    if (copy?.kept && copy.kept.member !== membership.member) {
      // The database was restored to a time before this machine joined.
      copy.db.database.close();
      copy = undefined;
    }
    await follow(openCopy(), postgres);
    if (!isDeliverer) return;
    let isOver = false;
    const over = (reason: string): void => {
      if (isOver) return;
      isOver = true;
      void stepDown(reason).then(electing.wake);
    };
    const lost = () => over('the lease was lost');
    const lease = await takeLease(postgres, membership.member, { clock, log, lost });
    if (!lease) return;
    try {
      await follow(openCopy(), postgres);
    } catch (error) {
      await lease.release(false);
      throw error;
    }
    // The lease was lost meanwhile, for example while this process was paused. Nothing else would stop this leader.
    if (isOver) return lease.release(false);
    const { observer, onResponse, conceal, isSecretIn } = deps;
    const shared = { config, lease, copy: openCopy(), path, postgres, id: membership.fleet, clock, log };
    leader = startLeading({ ...shared, observer, onResponse, conceal, isSecretIn, over, outside });
    copy = undefined;
    log.info({ epoch: lease.epoch }, 'leading the fleet');
  }
  let isWarned = false;
  const electing: Loop = every(isDeliverer ? ELECT_MS : FOLLOW_MS, clock, async () => {
    try {
      await changing;
      await elect();
      isWarned = false;
    } catch (error) {
      if (!isWarned) log.warn({ reason: explain(error) }, 'cannot follow the fleet, retrying');
      isWarned = true;
    }
    return undefined;
  });
  // Watchers poll: notifications would wake all of them for each shipment.
  const listening = isDeliverer ? postgres.listen(wakeFor) : undefined;
  function wakeFor(payload: string): void {
    if (payload === 'operations') leader?.wake();
    else if (!leader) electing.wake();
  }

  const own = forwardingOutbox(journal.store, journal.outbox);
  /** What another leader has found out about the notebook by then is its own concern. */
  const hasAnswered = (): boolean => leader?.hasAnswered() ?? clock.monotonic() - ledAt > HANDED_OVER_MS;
  const alarms: FleetAlarms = {
    name: fleet.name,
    database: () => (isDeliverer ? postgres.trouble : undefined),
    setAside,
    isReporter: (notice) => isReporter(postgres, membership.member, notice, places.get(notice.instrument ?? '')?.place),
  };
  /** Every deliverer knows of them, so that a change of the leader neither clears nor repeats the alarm. */
  function setAside(): ReturnType<FleetAlarms['setAside']> {
    if (!isDeliverer) return undefined;
    if (leader) return leader.setAside();
    // While it is loaded, it is empty.
    return copy?.position() === undefined ? 'unknown' : firstSetAside(copy.db);
  }
  /** Every deliverer knows of a halt, also one that does not lead. While its copy is loaded, what it knew before counts. */
  function server(url: string): ReturnType<Leader['server']> {
    const known = (leader ?? own).server(url);
    return {
      ...known,
      async facts() {
        const facts = await known.facts();
        if (leader) halts.set(url, facts.halted);
        else if (copy?.position() !== undefined) halts.set(url, haltIn(copy, url));
        return { ...facts, halted: halts.get(url) };
      },
    };
  }
  try {
    // What it knows counts at once, also if the database is away. Nobody reads it yet, so it can be replaced.
    openCopy();
  } catch (error) {
    log.warn({ reason: explain(error) }, 'cannot open the working copy yet, retrying');
  }
  const part: FleetPart = {
    id: membership.fleet,
    hasAnswered,
    reader: (reader) => ofMember(reader, fleet.name, member),
    decide(scan) {
      rescan = scan;
      return member.decide();
    },
    delivery: {
      start: () => undefined,
      wake: member.wake,
      queued: member.wake,
      gate: () => leader?.gate() ?? gateOf(config, postgres, clock),
      stop: async (_, ended) => ended?.(),
      proof: () => createProof(member, clock, stopping),
    },
  };
  return {
    part,
    alarms,
    live: (): Live['fleet'] => ({
      ...{ name: fleet.name, delivers: isDeliverer, trouble: postgres.trouble },
      ...{ kept: member.kept(), ...member.list() },
    }),
    /** The journal of this member, which forwards what intake hands over. The leader's speaks for the fleet. */
    journal: {
      ...journal,
      outbox: {
        ...own,
        overdue: (before: number) => (leader ?? own).overdue(before),
        server,
      },
      growths: forwardingGrowths(journal.store),
    },
    /** A reload: what delivers begins again with the new configuration. */
    async use(next: UsableConfig): Promise<void> {
      config = next;
      await stepDown(undefined);
      electing.wake();
    },
    async stop(): Promise<void> {
      isStopped = true;
      await electing.stop();
      await stepDown(undefined);
      await member.stop();
      listening?.close();
      copy?.db.database.close();
      await postgres.close();
    },
  };
}

/** Where the folders of instruments are, by instrument. */
type Places = Map<string, { readonly watch: string; readonly place: FolderPlace | undefined }>;

/** Of a folder that is missing, nobody can tell where it was, unless it was seen before. */
function notePlace(places: Places, { name, watch, folder }: LiveInstrument): void {
  const known = places.get(name);
  if (known?.watch === watch && (known.place || folder.state !== 'present')) return;
  const place = folder.state === 'present' ? placeOf(watch) : undefined;
  places.set(name, { watch, place });
}

/** Undefined for a share that does not name its server. */
function placeOf(watch: string): FolderPlace | undefined {
  const { share, source, point } = mountOf(watch);
  if (source !== undefined) return { share: `${source} ${relative(point, watch)}` };
  return share === undefined ? 'own' : undefined;
}

const haltIn = ({ db }: WorkingCopy, url: string): string | undefined =>
  db.value<string>`SELECT halted FROM servers WHERE url = ${url}` ?? undefined;

/** Before the first contact with the fleet, nothing can be read. */
async function introduceFirst(
  introduce: () => Promise<Membership>,
  known: Membership | undefined,
  { clock, log, stopping, outside = REAL }: FleetDeps,
  postgres: Postgres,
): Promise<Membership & { isFresh: boolean }> {
  let membership: (Membership & { isFresh: boolean }) | undefined;
  let refused: unknown;
  await retry(
    async () => {
      try {
        membership = { ...(await introduce()), isFresh: true };
      } catch (error) {
        if (error instanceof LabfeedError || !isAway(error)) refused = error;
        else if (known) {
          log.warn(
            { reason: explain(error) },
            'the database of the fleet is away; runs are kept here until it is back',
          );
          membership = { ...known, isFresh: false };
        } else throw error;
      }
    },
    {
      ...{ clock, signal: stopping, maxMs: 30_000, random: outside.random },
      failed: (error, waitMs) => {
        const hint = adviseConnection(error);
        log.warn({ waitMs, reason: explain(error), ...(hint && { hint }) }, 'cannot join the fleet yet, retrying');
      },
    },
  );
  if (membership) return membership;
  await postgres.close();
  if (refused instanceof LabfeedError) throw refused;
  throw new LabfeedError(`cannot use the database of the fleet: ${explain(refused ?? 'stopped')}`, {
    hint: adviseConnection(refused),
    cause: refused,
  });
}

/**
 * Two machines can have a growing file at the same path, with the same first lines. On a share that both have mounted, it is
 * the same file.
 */
function ofMember(reader: Reader, name: string, { room }: Pick<Member, 'room'>): Reader {
  let isClosed = false;
  return {
    ...reader,
    async read(...file) {
      await room(() => isClosed);
      return reader.read(...file);
    },
    async findHeader(task) {
      const found = await reader.findHeader(task);
      if (!found.header) return found;
      const place = mountOf(task.path).source ?? name;
      const start = createHash('sha256').update(`${place} ${found.header.start}`).digest('hex');
      return { header: { ...found.header, start } };
    },
    close() {
      isClosed = true;
      reader.close();
    },
  };
}

const gateOf = ({ notebook }: UsableConfig, { trouble }: Postgres, clock: Clock): Live['notebook']['gate'] =>
  trouble === undefined
    ? { kind: 'open', perSecond: notebook.rate }
    : { kind: 'held', until: clock.now() + 60_000, reason: `the database of the fleet is away: ${trouble}` };

const PROOF_MS = 60_000;

/** The leader reads back from the notebook what was filed: this machine may have no access to it. */
function createProof(member: Member, clock: Clock, stopping: AbortSignal): ReturnType<FleetPart['delivery']['proof']> {
  return async ({ run }, source) => {
    const isDelete = source === 'delete';
    const name = `${run.id} ${run.sha256} ${isDelete}`;
    const number =
      member.asked.get(name) ?? (await member.ask({ kind: 'prove', own: run.id, sha256: run.sha256, isDelete }));
    member.asked.set(name, number);
    const deadline = clock.monotonic() + PROOF_MS;
    while (clock.monotonic() < deadline && !stopping.aborted) {
      const answer = answerSchema.safeParse(await member.answer(number).catch(() => undefined)).data;
      if (answer) member.asked.delete(name);
      if (answer?.done) return;
      if (answer) throw new DisposalError('lasting', answer.text);
      await clock.sleep(1000, stopping);
    }
    throw new NotNow('the fleet has not read back yet what was filed');
  };
}
