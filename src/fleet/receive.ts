import type { SetAside } from '../alarms/conditions.js';
import { explain, FileError } from '../errors.js';
import type { NewBatch } from '../growth.js';
import type { Connection } from '../journal/database.js';
import type { Operation, SentReading, SentRun } from '../journal/forwards.js';
import { append, attach, flush, report } from '../journal/growths.js';
import { add, move } from '../journal/handover.js';
import { claimPath } from '../journal/versions.js';
import { mergeFacts } from '../journal/whole-runs.js';
import type { Log } from '../log.js';
import type { ContentKey, Match, NewRun, Reading } from '../outbox.js';
import type { Postgres } from './database.js';
import {
  filedAs,
  fleetGeneration,
  fleetPath,
  noteOrigin,
  ofMemberIfUnread,
  type Sent,
  takeImport,
  takeLeave,
} from './imports.js';
import type { LeadingJournal } from './working-copy.js';

/** How many operations of each member are applied before those of the others get their turn. */
const OF_EACH = 20;

/**
 * Applies the operations of members to the outbox of the fleet. The number of the last one is recorded in the same
 * transaction, so each takes effect once, whatever is sent or received twice. One that fails is set aside.
 * Returns how many were applied.
 */
export async function receive(journal: LeadingJournal, postgres: Postgres, log: Log): Promise<number> {
  const sent = await postgres.rows<Sent>(
    `SELECT members.id AS member, name, number, operation FROM labfeed.members CROSS JOIN LATERAL
       (SELECT number, operation FROM labfeed.operations WHERE member = members.id ORDER BY number LIMIT ${OF_EACH}) AS sent
       ORDER BY number, member`,
  );
  if (sent.length === 0) return 0;
  const blocked = new Set<number>();
  const received = new Map<number, number>();
  for (const one of sent) {
    if (blocked.has(one.member)) continue;
    // A run that is being sent takes its next version later. The operations of its member keep their order.
    if (await applyOnce(one, journal, log)) received.set(one.member, one.number);
    else blocked.add(one.member);
  }
  // Durable before the operations go.
  await journal.store.commit(() => undefined);
  for (const [member, number] of received)
    await postgres.run('DELETE FROM labfeed.operations WHERE member = $1 AND number <= $2', [member, number]);
  return received.size === 0 ? 0 : sent.length;
}

/** False if it has to wait. */
async function applyOnce(sent: Sent, journal: LeadingJournal, log: Log): Promise<boolean> {
  const { member, name, number, operation } = sent;
  const { db } = journal.store;
  const last = db.value<number>`SELECT number FROM received WHERE member = ${member}` ?? 0;
  if (number <= last) return true;
  try {
    return await apply(sent, journal);
  } catch (error) {
    // The journal cannot be written, or another member leads now.
    if (journal.trouble() !== undefined) throw error;
    const reason = explain(error);
    log.error({ member: name, operation: operation.kind, number, reason }, 'operation of a member set aside');
    await journal.store.apply(() => {
      setAside(sent, reason, journal);
      noteReceived(journal, sent);
    });
    return true;
  }
}

/** Within a commit. It is kept with the reason, and does not stop the others. */
function setAside({ member, name, number, operation }: Sent, reason: string, { store }: LeadingJournal): void {
  store.db.run`
    INSERT OR REPLACE INTO failures (member, name, number, at, reason, operation)
      VALUES (${member}, ${name}, ${number}, ${store.now()}, ${reason}, ${JSON.stringify(operation)})`;
}

/**
 * The first one, apart from lines that wait for a person's decision about their run, which has its own alarm, and those
 * that wait for another member.
 */
export function firstSetAside(db: Connection): SetAside | undefined {
  const found = db.row<{ member: string; number: number; reason: string; isGrowth: number }>`
    SELECT name AS member, number, reason,
        json_extract(operation, '$.kind') IN ('append', 'flush', 'report', 'attach') AS isGrowth FROM failures
      WHERE NOT EXISTS (SELECT 1 FROM runs WHERE parked = 'held' AND runs.reason = failures.reason)
        AND substr(reason, 1, ${WAITS.length}) <> ${WAITS}
      ORDER BY isGrowth, at, failures.member, number LIMIT 1`;
  return found && { ...found, isGrowth: found.isGrowth === 1 };
}

/**
 * Lines that wait for a person's decision about their run are tried again, in their order. So is what failed: a newer
 * version may be able to apply it.
 */
export async function retrySetAside(journal: LeadingJournal): Promise<void> {
  const { db, apply: change } = journal.store;
  const rows = db.rows<Omit<Sent, 'operation'> & { operation: string; at: number }>`
    SELECT member, name, number, operation, at FROM failures ORDER BY member, number LIMIT 1000`;
  const blocked = new Set<string>();
  for (const row of rows) {
    const operation = JSON.parse(row.operation) as Operation;
    const sent = { ...row, operation };
    const forget = (): void =>
      void db.run`DELETE FROM failures WHERE member = ${row.member} AND number = ${row.number}`;
    if (!isGrowth(operation)) {
      // These can be applied twice, if the process ends in between.
      if (await apply(sent, journal).catch(() => false)) await change(forget);
      continue;
    }
    const line = `${row.member} ${generationOf(operation)}`;
    if (blocked.has(line)) continue;
    const isApplied = await change(() => {
      if (grow(operation, sent, journal, row.at) !== undefined) return false;
      forget();
      return true;
    }).catch(() => false);
    if (!isApplied) blocked.add(line);
  }
}

function noteReceived({ store: { db } }: LeadingJournal, { member, number }: Sent): void {
  db.run`
    INSERT INTO received (member, number) VALUES (${member}, ${number})
      ON CONFLICT DO UPDATE SET number = max(number, excluded.number)`;
}

async function apply(sent: Sent, journal: LeadingJournal): Promise<boolean> {
  const { operation, member, name, number } = sent;
  const { store } = journal;
  const { db, now } = store;
  const once = <T>(change: () => T): Promise<T> =>
    store.apply(() => {
      const result = change();
      if (result !== false) noteReceived(journal, sent);
      return result;
    });
  switch (operation.kind) {
    case 'add':
      return addRun(operation, sent, journal);
    case 'move':
      return once(() => {
        const run = filedAs(db, sent, operation.own);
        if (run !== undefined) move(db, run, fleetPath(name, operation.path));
        return true;
      });
    case 'append':
    case 'flush':
    case 'report':
    case 'attach':
      return once(() => {
        const reason = waitsFor(operation, sent, journal) ?? grow(operation, sent, journal);
        if (reason !== undefined) setAside(sent, reason, journal);
        return true;
      });
    case 'request':
      return once(() => {
        const { own, request } = operation;
        // A member that was restarted meanwhile asks again.
        const inbox =
          db.value<number>`
            SELECT json_extract(asked, '$.inbox') FROM answers WHERE member = ${member} AND json_extract(asked, '$.own') = ${own}` ??
          db.value<number>`INSERT INTO inbox (at, request) VALUES (${now()}, ${JSON.stringify(request)}) RETURNING id`;
        return ask({ own, inbox });
      });
    case 'prove':
      return once(() => ask(operation));
    case 'import':
      return once(() => takeImport(operation, sent, journal, journal.outbox.id));
    case 'facts':
      return once(() => {
        // It has joined again.
        db.run`DELETE FROM departures WHERE member = ${member}`;
        mergeFacts(db, operation, (run) => filedAs(db, sent, run));
        store.facts.clear();
        return true;
      });
    case 'leave':
      return once(() => takeLeave(sent, journal));
  }

  function ask(asked: object): boolean {
    db.run`
      INSERT OR REPLACE INTO answers (member, number, at, asked) VALUES (${member}, ${number}, ${now()}, ${JSON.stringify(asked)})`;
    return true;
  }
}

type Growth = Extract<Operation, { kind: 'append' | 'flush' | 'report' | 'attach' }>;

const isGrowth = (operation: Operation): operation is Growth =>
  ['append', 'flush', 'report', 'attach'].includes(operation.kind);

const generationOf = (operation: Growth): number =>
  operation.kind === 'append' ? operation.batch.generation : operation.generation;

/** The lines of a file keep their order: if some were set aside, so are those after them. */
function waitsFor(operation: Growth, { member }: Sent, { store: { db } }: LeadingJournal): string | undefined {
  const earlier = db.rows<{ operation: string; reason: string }>`
    SELECT operation, reason FROM failures WHERE member = ${member} ORDER BY number`;
  const isSame = ({ operation: text }: { operation: string }): boolean => {
    const other = JSON.parse(text) as Operation;
    return isGrowth(other) && generationOf(other) === generationOf(operation);
  };
  return earlier.find(isSame)?.reason;
}

/** Within a commit. Returns why it has to wait. `since`: when it was set aside. */
function grow(operation: Growth, sent: Sent, journal: LeadingJournal, since?: number): string | undefined {
  const { store } = journal;
  const { db, now } = store;
  const own = fleetGeneration(sent.member, generationOf(operation));
  const generation = db.value<number>`SELECT filed FROM shared_generations WHERE generation = ${own}` ?? own;
  switch (operation.kind) {
    case 'append': {
      const parts = operation.batch.parts.map(({ run, ...part }) => ({ ...part, run: toFleetRun(run, sent) }));
      const tail = Buffer.from(operation.batch.tail, 'hex');
      const batch = { ...operation.batch, generation: own, tail, parts };
      const shared = share(db, batch, sent, now() - (since ?? now()) > WAIT_MS);
      if (shared.reason !== undefined) return shared.reason;
      for (const [n, run] of shared.runs.entries())
        if (run !== undefined) noteOrigin(db, sent, operation.own[n] ?? 0, run);
      if (shared.isKnown) return undefined;
      const appended = append(store, { ...batch, generation: shared.generation }, now());
      if (appended.blocked !== undefined) {
        // If a person has it filed again, it is with the lines of the file as they are read now.
        db.run`DELETE FROM drafts WHERE run = ${appended.blocked}`;
        return appended.reason;
      }
      for (const [n, added] of appended.added.entries()) noteOrigin(db, sent, operation.own[n] ?? 0, added.run);
      return undefined;
    }
    case 'flush':
      flush(db, generation, operation.isEnd && generation === own);
      return undefined;
    case 'report':
      // Of a file that several follow, the first one reports.
      if (generation === own) report(db, generation, operation.what, operation.isEnd, now());
      return undefined;
    case 'attach': {
      const files = operation.files.map((file) => ({ ...file, path: fleetPath(sent.name, file.path) }));
      attach(db, generation, files);
    }
  }
  return undefined;
}

/** How the reason begins for lines that wait for another member. */
const WAITS = 'the lines wait for ';

/** `every` is shorter. A member that has not handed over the lines by then is gone. */
const WAIT_MS = 24 * 3_600_000;

interface Shared {
  /** Whose runs get the lines. */
  readonly generation: number;
  /** Why they have to wait. */
  readonly reason?: string | undefined;
  /** Whether the fleet has the lines. */
  readonly isKnown: boolean;
  /** The runs that have them, for each part. */
  readonly runs: readonly (number | undefined)[];
}

/**
 * Several members can follow the same file on a share. Each reads it at other times, so their batches end at different
 * lines. Lines that the fleet has are known; a batch that continues them is appended, from any member. One that begins with
 * lines that the fleet has cannot be divided: another member hands over the rest of them.
 */
function share(db: Connection, batch: NewBatch, { name }: Sent, isOver: boolean): Shared {
  const { generation: own, from, upto, tail } = batch;
  const alone = { generation: own, isKnown: false, runs: [] };
  const generation = sharedWith(db, batch, name);
  const isShared = db.exists`SELECT 1 FROM shared_generations WHERE filed = ${generation}`;
  const at = db.row<{ upto: number; tail: Uint8Array }>`SELECT upto, tail FROM generations WHERE id = ${generation}`;
  if (!isShared || !at) return alone;
  const runs = batch.parts.map(
    ({ run }) =>
      db.value<number>`
        SELECT id FROM runs WHERE instrument = ${run.instrument} AND sha256 = ${run.file.sha256} AND copy = ''
          ORDER BY refiling DESC LIMIT 1`,
  );
  const isOther = upto === at.upto && tail.length === at.tail.length && Buffer.compare(tail, at.tail) !== 0;
  if (upto <= at.upto && !isOther) return { generation, isKnown: true, runs };
  if (from === at.upto) return { generation, isKnown: false, runs: [] };
  if (!isOver)
    return {
      ...alone,
      generation,
      reason: `${WAITS}another machine that follows ${batch.parts[0]?.run.file.path}, too`,
    };
  // Nobody knows any more which of its lines are in the notebook: a person decides.
  db.run`DELETE FROM growths WHERE generation = ${generation}`;
  db.run`DELETE FROM shared_generations WHERE filed = ${generation}`;
  return alone;
}

/** The generation of the member that first handed over lines of this file; its own if there is no other. */
function sharedWith(db: Connection, { generation: own, parts }: NewBatch, name: string): number {
  const known = db.value<number>`SELECT filed FROM shared_generations WHERE generation = ${own}`;
  if (known !== undefined || db.exists`SELECT 1 FROM growths WHERE generation = ${own}`) return known ?? own;
  for (const { run } of parts) {
    const filed = db.row<{ generation: number; path: string }>`
      SELECT generation, path FROM growths JOIN runs ON runs.id = run WHERE instrument = ${run.instrument}
        AND sha256 = ${run.file.sha256} AND copy = '' ORDER BY refiling DESC LIMIT 1`;
    // The same machine, which lost its journal.
    if (!filed || filed.path === '' || filed.path.startsWith(fleetPath(name, ''))) continue;
    for (const generation of [own, filed.generation])
      db.run`INSERT OR IGNORE INTO shared_generations (generation, filed) VALUES (${generation}, ${filed.generation})`;
    return filed.generation;
  }
  return own;
}

/** As intake does on one machine: looked up first, then added. */
async function addRun(
  { own, run: sentRun, reading }: Extract<Operation, { kind: 'add' }>,
  sent: Sent,
  journal: LeadingJournal,
): Promise<boolean> {
  const { store, outbox } = journal;
  const run = toFleetRun(sentRun, sent);
  if (sentRun.isSeparate)
    await store.apply(
      () => store.db.run`DELETE FROM paths WHERE instrument = ${run.instrument} AND path = ${run.file.path}`,
    );
  const match: Match = await outbox.match(run);
  if (match.kind === 'busy' || (match.kind === 'version' && match.isBusy)) return false;
  return store.apply(() => {
    if (match.kind === 'known') {
      if (run.revises) shareVersions(match, sentRun, run, journal);
      noteOrigin(store.db, sent, own, match.run);
    } else {
      const added = add(store, run, toReading(reading), store.now());
      if (added.outcome === 'busy') return false;
      noteOrigin(store.db, sent, own, added.run);
    }
    noteReceived(journal, sent);
    return true;
  });
}

/** Another member sees the same file at the same path, on a share: the one that sees its next version first hands it over. */
function shareVersions(
  match: Extract<Match, { kind: 'known' }>,
  { file }: SentRun,
  run: NewRun,
  { store: { db } }: LeadingJournal,
): void {
  const isSamePath = match.path.slice(match.path.indexOf(':') + 1) === file.path;
  if (isSamePath && !match.isErased && match.path !== run.file.path)
    claimPath(db, run.instrument, run.file.path, match.run, false);
}

function toFleetRun(run: SentRun, { name }: Sent): NewRun {
  const { file, copy, partOf, revises, attachments } = run;
  const content = <T extends ContentKey | undefined>(key: T) =>
    key && { sha256: key.sha256, copy: key.copy === '' ? '' : fleetPath(name, key.copy) };
  return {
    ...run,
    file: {
      path: fleetPath(name, file.path),
      location: '',
      size: file.size,
      mtimeNs: BigInt(file.mtimeNs),
      inode: 0n,
      sha256: ofMemberIfUnread(file.sha256, name),
    },
    copy: copy === '' ? '' : fleetPath(name, copy),
    partOf: content(partOf),
    revises: revises && { last: run.isSeparate ? undefined : content(revises.last) },
    attachments: attachments?.map((one) => ({ ...one, path: fleetPath(name, one.path) })),
  };
}

const toReading = (reading: SentReading): Reading =>
  reading.problem === undefined ? reading : { problem: new FileError(reading.problem) };
