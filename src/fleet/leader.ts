import { atMost, type Clock, every, type Loop, retry, systemClock } from '../clock.js';
import type { UsableConfig } from '../config/load.js';
import { holdKey, type Key, readKey } from '../config/secrets.js';
import { type connect, keyOf, type OnResponse, type openNotebook, type Schedule } from '../connection.js';
import { openDelivery } from '../daemon/runtime.js';
import { createProof } from '../daemon/sources.js';
import { applyDecisions, pruneDaily } from '../daemon/upkeep.js';
import { StoppedError, trackUnknownOutcomes } from '../deliver/context.js';
import { explain, LabfeedError } from '../errors.js';
import { answerSchema } from '../journal/decisions.js';
import type { Operation } from '../journal/forwards.js';
import { applyRequests, type SourceProbe } from '../journal/requests.js';
import type { StoreOptions } from '../journal/store.js';
import { createLog, type Log } from '../log.js';
import type { Notebook } from '../notebook/client.js';
import type { Observer } from '../pipeline.js';
import { attachFromDatabase, sweepContents } from './contents.js';
import type { Postgres } from './database.js';
import { LEASE_MS, type Lease, takeLease } from './lease.js';
import { firstSetAside, receive, retrySetAside } from './receive.js';
import { type SessionKey, takeSessionKey } from './session-keys.js';
import { follow, type LeadingJournal, lead, openWorkingCopy, type WorkingCopy } from './working-copy.js';

export interface LeaderOutside {
  readonly openNotebook: typeof openNotebook;
  readonly connect: typeof connect;
  readonly schedule?: StoreOptions['schedule'];
  /** For back-off. */
  readonly random: () => number;
}

export interface LeaderDeps {
  readonly config: UsableConfig;
  readonly lease: Lease;
  readonly copy: WorkingCopy;
  /** Of the working copy. */
  readonly path: string;
  readonly postgres: Postgres;
  /** The id of the fleet. */
  readonly id: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  readonly onResponse: OnResponse;
  conceal(secret: string): void;
  isSecretIn(text: string): boolean;
  /** Another member leads, or this one has to begin again. */
  over(reason: string): void;
  readonly outside: LeaderOutside;
}

export type Leader = ReturnType<typeof startLeading>;

const POLL_MS = 1000;
const UPKEEP_MS = 60_000;

/** A stop may take 10 s; this part of it is for pending requests. */
const FINISH_WITHIN_MS = 6000;

/** The one member that delivers: it applies the operations of all members to the outbox of the fleet, and sends. */
export function startLeading(deps: LeaderDeps) {
  const { config, lease, copy, postgres, id, log, conceal, over, outside } = deps;
  // What one leader records, the next one reads: when a run is due must not depend on the clock of a machine.
  const clock: Clock = { ...deps.clock, now: () => deps.clock.now() + lease.aheadMs };
  const stopping = new AbortController();
  const { schedule, random } = outside;
  const { epoch } = lease;
  const journal = lead({ copy, postgres, epoch, id, clock, log, fenced: () => over('fenced'), schedule, random });
  /** Grows while the fleet does: delivery keeps this list. */
  const instruments: string[] = [];
  let delivery: ReturnType<typeof openDelivery> | undefined;
  let session: SessionKey | undefined;
  let attempt = 0;
  let hasAnswered = false;
  const onResponse: OnResponse = (method, status) => {
    hasAnswered ||= status !== undefined && status >= 200 && status < 300;
    deps.onResponse(method, status);
  };
  const deleted = new Set<number>();

  function listInstruments(): void {
    const known = journal.store.db.values<string>`SELECT DISTINCT instrument FROM tallies ORDER BY instrument`;
    for (const name of known) if (!instruments.includes(name)) instruments.push(name);
  }
  const wake = (): void => delivery?.wake();

  const receiving = every(POLL_MS, clock, async () => {
    const received = await receive(journal, postgres, log).catch((error: unknown) => {
      log.warn({ reason: explain(error) }, 'cannot apply the operations of members, retrying');
      return undefined;
    });
    if (received === 0) return undefined;
    // Also after a failure: what was applied before it is not applied again, and may be of a new instrument.
    listInstruments();
    wake();
    return received && 0;
  });
  const apply = () => applyRequests(journal, ELSEWHERE);
  const decisions = applyDecisions({ apply, clock, log, wakeDelivery: wake, rescan: () => undefined });
  const answering = every(POLL_MS, clock, async () => {
    await answerMembers(deps, journal, delivery, stopping.signal).catch((error: unknown) =>
      log.warn({ reason: explain(error) }, 'cannot answer members, retrying'),
    );
    return undefined;
  });
  const upkeep = every(UPKEEP_MS, clock, async () => {
    await retrySetAside(journal).catch(() => undefined);
    await tidy(postgres, journal).catch(() => undefined);
    return undefined;
  });
  const loops: Loop[] = [receiving, decisions, answering, upkeep];
  const keepMs = config.invalidSettings.has('keep') ? undefined : config.settings.keep;
  if (keepMs !== undefined) loops.push(pruneDaily(journal.outbox, keepMs, clock, log));

  async function startDelivery(): Promise<void> {
    const configured = holdKey(() => readKey(config.notebook.key, config.placeOf(['notebook', 'key'])), conceal);
    const { url } = config.notebook;
    // Within the last second, the leader before may have sent as many requests as `rate` allows.
    if (attempt === 0) await clock.sleep(1000, stopping.signal);
    if (stopping.signal.aborted) return;
    attempt += 1;
    session ??= await withNotebook(outside, config, configured, (api) =>
      takeSessionKey(api, id, url, lease, log, { deleted, attempt }),
    );
    if (session.key !== undefined) conceal(session.key);
    const { dialect } = await journal.outbox.server(url).facts();
    if (!session.isFence) await clock.sleep(graceMs(config, dialect), stopping.signal);
    if (stopping.signal.aborted) return;
    // Only now: until the wait is over, a successor has to stop the leader before this one, too.
    await lease.recordSender(url, session.id);
    if (stopping.signal.aborted) return;
    listInstruments();
    const key = session.key === undefined ? configured : sessionKey(session.key, deps);
    delivery = openDelivery({
      notebook: config.notebook,
      connect: (send) => outside.connect(config.notebook, key, whileHeld(send), onResponse),
      instruments,
      outbox: journal.outbox,
      unknown: trackUnknownOutcomes(clock, config.notebook.timeout, log),
      attach: attachFromDatabase(postgres, journal, instruments, deps.isSecretIn),
      clock,
      log,
      observer: deps.observer,
      random,
    });
    delivery.start();
    log.info({ epoch: lease.epoch }, 'delivering for the fleet');
  }

  /** While the lease may be over, requests wait: it is renewed soon, or this process stops delivering. */
  const whileHeld =
    (schedule: Schedule): Schedule =>
    (request, isWrite) =>
      schedule(async () => {
        while (!lease.isHeld()) {
          if (stopping.signal.aborted) throw new StoppedError('this member does not lead the fleet any more');
          await clock.sleep(100, stopping.signal);
        }
        return request();
      }, isWrite);

  /** One that stays is deleted by the next leader. */
  async function removeKey(): Promise<void> {
    const key = session?.id;
    if (key === undefined) return;
    const removed = withNotebook(outside, config, keyOf(config), (api) => api.deleteKey(key)).catch(() => undefined);
    await atMost(REMOVE_KEY_MS, clock, removed);
  }

  void retry(startDelivery, {
    ...{ clock, signal: stopping.signal, maxMs: 30_000, random },
    failed: (error) => log.warn({ reason: explain(error) }, 'cannot begin to deliver, retrying'),
  });
  return {
    wake: receiving.wake,
    gate: () => delivery?.gate(),
    /** Whether the notebook has accepted a request since this machine leads. */
    hasAnswered: () => hasAnswered,
    /** For the alarms and the status of this machine, which speaks for the fleet while it leads. */
    overdue: journal.outbox.overdue,
    setAside: () => firstSetAside(journal.store.db),
    server: journal.outbox.server,
    /** `isOver`: another member leads, so nothing can be recorded any more. */
    async stop(isOver: boolean): Promise<void> {
      stopping.abort();
      const ending = delivery?.stop(FINISH_WITHIN_MS);
      await Promise.all([ending, ...loops.map((loop) => loop.stop())]);
      await journal.close().catch(() => undefined);
      if (!isOver) await removeKey();
      // After a clean stop nothing is in flight, so the next leader need not wait.
      await lease.release(!isOver);
    },
  };
}

const REMOVE_KEY_MS = 1500;

interface CommandDeps {
  readonly postgres: Postgres;
  /** The id of the fleet, and the number of this machine in it. */
  readonly fleet: string;
  readonly member: number;
  /** Of the working copy, which no daemon uses. */
  readonly path: string;
}

/**
 * For commands, while no machine delivers: all operations of members are applied, then `work` is done with the outbox of the
 * fleet. Nothing is sent. `mayFollow`: whether the last machine that delivered may not have stopped properly. Returns
 * undefined if a machine delivers.
 */
export async function leadForCommand<T>(
  { postgres, fleet, member, path }: CommandDeps,
  work: (journal: LeadingJournal) => Promise<T>,
  mayFollow = true,
): Promise<{ readonly result: T } | undefined> {
  const { log } = createLog({ level: 'error', format: 'json' });
  const shared = { clock: systemClock, log };
  const lease = await takeLease(postgres, member, { ...shared, lost: () => undefined });
  if (!lease) return undefined;
  try {
    // It may only be paused, with a key that a successor would have deleted.
    if (!mayFollow && lease.predecessor?.isSelf === false)
      throw new LabfeedError('the machine that delivered for the fleet did not stop properly', {
        hint: 'start it, or another one that delivers, and run this command again',
      });
    const copy = openWorkingCopy(path);
    await follow(copy, postgres).catch((error: unknown) => {
      copy.db.database.close();
      throw error;
    });
    const journal = lead({ ...shared, copy, postgres, epoch: lease.epoch, id: fleet, fenced: () => undefined });
    try {
      while ((await receive(journal, postgres, log)) > 0);
      return { result: await work(journal) };
    } finally {
      await journal.close();
    }
  } finally {
    await lease.release(true);
  }
}

async function withNotebook<T>(
  { openNotebook: open }: LeaderOutside,
  config: UsableConfig,
  key: Key,
  act: (api: Notebook) => Promise<T>,
): Promise<T> {
  const api = open(config, { key });
  try {
    return await act(api);
  } finally {
    await api.close();
  }
}

/** A session key that is rejected was deleted by a successor, or by a person: this member begins again. */
const sessionKey = (key: string, { over }: LeaderDeps): Key => ({
  current: () => key,
  refresh: () => over('the notebook has rejected the session key'),
});

/**
 * First the time of a lease: if somebody sets the clock of the database, a lease can end while its holder still relies on
 * it. Then the time that a late request can take.
 */
const graceMs = ({ notebook: { timeout } }: UsableConfig, dialect: string | undefined): number =>
  LEASE_MS + Math.max(2 * timeout, dialect === 'v2' ? LEASE_MS : 130_000);

/** The files of runs are on other machines, so nothing is known about them here. */
const ELSEWHERE: SourceProbe = {
  isThere: async () => true,
  find: async (_, [path]) => ({ path, has: 'itsBytes' }),
};

/** Members need answers for an hour at most. */
const ANSWER_KEPT_MS = 3_600_000;

async function answerMembers(
  { config, path, clock, log }: LeaderDeps,
  journal: LeadingJournal,
  delivery: ReturnType<typeof openDelivery> | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { db, commit, now } = journal.store;
  const waiting = db.rows<{ member: number; number: number; asked: string }>`
    SELECT member, number, asked FROM answers WHERE answer IS NULL ORDER BY at LIMIT 50`;
  for (const { member, number, asked } of waiting) {
    const question = JSON.parse(asked) as Extract<Operation, { kind: 'prove' }> | { kind?: never; inbox: number };
    const answer =
      question.kind === undefined
        ? db.value<string>`SELECT answer FROM inbox WHERE id = ${question.inbox}`
        : delivery && (await prove(question, member));
    if (answer !== undefined)
      await commit(() => db.run`UPDATE answers SET answer = ${answer} WHERE member = ${member} AND number = ${number}`);
  }
  const old = now() - ANSWER_KEPT_MS;
  if ((db.value<number>`SELECT min(at) FROM answers` ?? old) < old)
    await commit(() => db.run`DELETE FROM answers WHERE at < ${old}`);

  /** Undefined if the notebook cannot be asked now. */
  async function prove(
    { own, sha256, isDelete }: Extract<Operation, { kind: 'prove' }>,
    member: number,
  ): Promise<string | undefined> {
    const run = db.row<{
      id: number;
      instrument: string;
      sha256: string;
      reference: string;
      path: string;
      server: string;
      experiment: number;
      step: string;
      parked: string | null;
    }>`
      SELECT id, instrument, sha256, reference, path, server, experiment, step, parked FROM runs
        WHERE id = (SELECT filed FROM origins WHERE member = ${member} AND run = ${own})`;
    if (!run || run.sha256 !== sha256 || run.step !== 'done' || run.parked !== null)
      return JSON.stringify(
        answerSchema.parse({ done: false, text: 'the run has other content by now, or is not filed' }),
      );
    const settings = { ...config.settings, journal: path };
    if (!delivery) return undefined;
    const { notebook } = delivery;
    const check = createProof({ config: { ...config, settings }, journal, notebook, clock, log, signal });
    try {
      await check(
        { run, attempts: 0, missingSince: undefined, isBegun: false, files: [] },
        isDelete ? 'delete' : { move: '' },
      );
      return JSON.stringify({ done: true, text: '' });
    } catch (error) {
      return JSON.stringify({ done: false, text: explain(error) });
    }
  }
}

/**
 * Copies need the changes that they have not followed yet. One that finds them gone loads everything again, which takes
 * minutes for a million runs: so they are kept for machines that were off for some days, up to a few hundred megabytes.
 */
const KEPT_SHIPMENTS = 100_000;
const TIDIED_AT_A_TIME = 5000;

export async function tidy(postgres: Postgres, journal: LeadingJournal): Promise<void> {
  await postgres.run(
    `DELETE FROM labfeed.changes WHERE seq IN (SELECT seq FROM labfeed.changes ORDER BY seq LIMIT $1)
       AND (at < now() - interval '7 days' OR seq <= (SELECT seq FROM labfeed.fleet) - $2)`,
    [TIDIED_AT_A_TIME, KEPT_SHIPMENTS],
  );
  await forgetDeparted(postgres, journal);
  await sweepContents(postgres, journal);
}

/** A member deletes itself once it has the runs that it took along. */
async function forgetDeparted(postgres: Postgres, { store: { db, commit } }: LeadingJournal): Promise<void> {
  if (!db.exists`SELECT 1 FROM departures`) return;
  const members = new Set((await postgres.rows<{ id: number }>('SELECT id FROM labfeed.members')).map(({ id }) => id));
  const gone = db.values<number>`SELECT DISTINCT member FROM departures`.filter((member) => !members.has(member));
  await commit(() => {
    for (const member of gone) db.run`DELETE FROM departures WHERE member = ${member}`;
  });
}
