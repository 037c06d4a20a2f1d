import { explain, LabfeedError } from '../errors.js';
import { erasedCopy, referenceOf } from '../markers.js';
import { parseJson } from '../text.js';
import { copyAttachments, lookForUploads, reattach } from './attachments.js';
import { addHistory, Connection, columnOf, openCurrent, parseRow, part, raw } from './database.js';
import {
  type Answer,
  answerSchema,
  type BacklogFacts,
  type Change,
  type Decision,
  decide,
  decideBackfill,
  type Request,
  type RunRequest,
  type RunRow,
  type RunValues,
  requestSchema,
  runRowSchema,
  type Source,
} from './decisions.js';
import { acceptShape, driftPeers } from './drift.js';
import { requireFleetView } from './fleet-view.js';
import type { GrowingJournal } from './growing.js';
import { moveGrowth } from './growths.js';
import type { IntakeJournal, SourceFile } from './intake.js';
import { dropSpare } from './outbox.js';
import { eraseSources, passSources } from './sources.js';
import type { Store } from './store.js';

interface PendingRequest {
  readonly id: number;
  /** Undefined if this version cannot read it. */
  readonly request: Request | undefined;
}

/** How long an answer is kept for the command that waits for it. */
const ANSWER_KEPT_MS = 3_600_000;

/** The outbox's part of decisions: requests, answers, and the changes that decisions make to runs. */
export type RequestStore = ReturnType<typeof createRequestStore>;

/** On a member of a fleet: runs have other numbers in its own journal, so the leader decides about them. */
export const withoutRuns = (requests: RequestStore): RequestStore => ({
  ...requests,
  pending: async (limit) => (await requests.pending(limit)).filter(({ request }) => !request || !isAboutRun(request)),
});

export const isAboutRun = (request: Request): boolean => request.kind !== 'backfill';

export function createRequestStore({ db, commit, now }: Store) {
  const putAnswer = (pending: number, answer: Answer): Answer => {
    db.run`UPDATE inbox SET answer = ${JSON.stringify(answer)} WHERE id = ${pending}`;
    return answer;
  };
  return {
    /** Requests without an answer, oldest first. */
    async pending(limit: number): Promise<PendingRequest[]> {
      const rows = db.rows<{ id: number; request: string }>`
        SELECT id, request FROM inbox WHERE answer IS NULL ORDER BY id LIMIT ${limit} + 0`;
      return rows.map(({ id, request }) => ({ id, request: requestSchema.safeParse(parseJson(request)).data }));
    },
    row: async (run: number) => readRow(db, run),
    /**
     * Decides about the run as it is now and applies the changes, in one transaction with the answer to the pending
     * request, if one is named. Resolves with the run as it was before.
     */
    decide: (request: RunRequest, source: Source, pending?: number) =>
      commit(() => {
        const row = readRow(db, request.run);
        const { answer, changes } = decideNow(db, row, request, source, now());
        if (row) for (const change of changes) applyChange(db, row, change, now());
        if (pending !== undefined) putAnswer(pending, answer);
        return { answer, row };
      }),
    answer: (pending: number, answer: Answer) => commit(() => putAnswer(pending, answer)),
    /** Removes old answers. */
    tidy: () =>
      commit(() => void db.run`DELETE FROM inbox WHERE answer IS NOT NULL AND at < ${now() - ANSWER_KEPT_MS}`),
  };
}

function readRow(db: Connection, run: number): RunRow | undefined {
  const row = db.row`
    SELECT id, instrument, sha256, copy, refiling, path, size, step, parked, failure, experiment, due_at AS
      dueAt, (SELECT count(*) FROM drafts WHERE run = runs.id) AS hasDraft, (SELECT id FROM runs AS later
      WHERE later.instrument = runs.instrument AND later.sha256 = runs.sha256 AND later.copy = runs.copy
      AND later.refiling > runs.refiling ORDER BY later.refiling DESC LIMIT 1) AS refiledAs, (SELECT generation
      FROM growths WHERE run = runs.id) AS generation, (SELECT ended_at IS NULL FROM growths WHERE run = runs.id) AS grows
      FROM runs WHERE id = ${run}`;
  return parseRow(runRowSchema, row);
}

/** Gathers what the decision needs. Within a commit. */
function decideNow(db: Connection, row: RunRow | undefined, request: RunRequest, source: Source, at: number): Decision {
  const { run } = request;
  const owner =
    request.kind === 'adopt'
      ? db.value<number>`
        SELECT id FROM runs WHERE server = ${request.server} AND experiment = ${request.experiment}
          AND id <> ${run}`
      : undefined;
  return decide(row, request, {
    at,
    source,
    owner,
    comments: db.rows`SELECT n, comment FROM comments WHERE run = ${run} AND comment IS NOT NULL`,
    uploads: db.rows`SELECT n, upload FROM attachments WHERE run = ${run} AND due_at IS NULL`,
    driftPeers: driftPeers(db, run),
    refiling: row ? freeRefiling(db, row) : 0,
    movedTo: db.value<string>`SELECT moved_to FROM sources WHERE run = ${run} AND outcome = 'moved' ORDER BY n LIMIT 1`,
    nextRun: (db.value<number>`SELECT max(id) FROM runs` ?? 0) + 1,
  });
}

/** A run whose file has changed since keeps the reference that it got from this content. */
function freeRefiling(db: Connection, { instrument, sha256, copy, ...row }: RunRow): number {
  for (let refiling = row.refiling + 1; ; refiling++) {
    const reference = referenceOf({ instrument, sha256, copy, refiling });
    const isTaken = db.exists`
      SELECT 1 FROM runs WHERE reference = ${reference} OR (instrument = ${instrument} AND sha256 = ${sha256}
        AND copy = ${copy} AND refiling = ${refiling})`;
    if (!isTaken) return refiling;
  }
}

/** Applies one change of a decision. Within a commit. */
function applyChange(db: Connection, row: RunRow, change: Change, at: number): unknown {
  const { id } = row;
  switch (change.kind) {
    case 'set':
      return setValues(db, change.run ?? id, change.values, at);
    case 'history':
      return addHistory(db, change.run ?? id, at, change.event, change.detail);
    case 'lookForComments':
      lookForUploads(db, id);
      return db.run`UPDATE comments SET comment = NULL, intent_at = 0 WHERE run = ${id}`;
    case 'repostComments':
      // Without an intent, which would cause a wait: the first POST was answered long ago.
      return change.comments.map(
        ({ n, comment }) =>
          db.run`
            UPDATE comments SET comment = NULL, intent_at = NULL, gone = ${comment} WHERE run = ${id}
              AND n = ${n}`,
      );
    case 'reattach':
      return reattach(db, id, change.numbers);
    case 'dropSpare':
      return dropSpare(db, change.server, change.experiment);
    case 'refile':
      return copyRun(db, row, change, at);
    case 'requestRemap':
      return db.run`
        INSERT OR REPLACE INTO remaps (run, instrument, path) VALUES (${id}, ${row.instrument}, ${change.path})`;
    case 'cancelRemap':
      return db.run`DELETE FROM remaps WHERE run = ${id}`;
    case 'acceptShape':
      return acceptShape(db, id);
    case 'erase':
      return eraseRun(db, row);
  }
}

function setValues(db: Connection, run: number, values: RunValues, at: number): void {
  const assignments = (Object.keys(values) as (keyof RunValues)[]).reduce(
    (before, name) => part`${columnOf(name)} = ${values[name] ?? null}, ${before}`,
    part`updated_at = ${at}`,
  );
  db.run`UPDATE runs SET ${assignments} WHERE id = ${run}`;
}

/** Without a draft, the copy is quarantined until its file is read. */
function copyRun(
  db: Connection,
  { id, hasDraft }: RunRow,
  { as, refiling, reference }: Extract<Change, { kind: 'refile' }>,
  at: number,
): void {
  db.run`
    INSERT INTO runs (id, instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog,
      mapping, step, parked, failure, reason, added_at, updated_at) SELECT ${as}, instrument, sha256, copy,
      ${refiling}, ${reference}, path, size, modified_ms, 0, iif(${Number(hasDraft)}, mapping, ''), 'pending',
      iif(${Number(hasDraft)}, NULL, 'quarantined'), iif(${Number(hasDraft)}, NULL, 'file'),
      iif(${Number(hasDraft)}, NULL, ${'refiled, but its file has not been seen since'}), ${at}, ${at} FROM runs
      WHERE id = ${id}`;
  db.run`
    INSERT INTO drafts (run, title, date, body, tags, extras, omits, unattached)
      SELECT ${as}, title, date, body, tags, extras, omits, unattached FROM drafts WHERE run = ${id}`;
  copyAttachments(db, id, as);
  moveGrowth(db, id, as);
  // The next version of its file belongs to the run that it was filed as last.
  db.run`UPDATE paths SET run = ${as} WHERE run = ${id}`;
  passSources(db, id, as);
  if (hasDraft) db.run`INSERT INTO comments (run, n, text) SELECT ${as}, n, text FROM comments WHERE run = ${id}`;
}

const ERASED_TABLES = [
  ...['drafts', 'earlier_drafts', 'earlier_comments', 'remaps', 'drifts', 'history', 'attachments'],
  ...['paths', 'versions'],
] as const;

function eraseRun(db: Connection, row: RunRow): void {
  const { id, instrument, sha256, copy } = row;
  for (const table of ERASED_TABLES) db.run`DELETE FROM ${raw(table)} WHERE run = ${id}`;
  eraseSources(db, id);
  // The generation stays: after a crash, intake still has to forget what it has of the content.
  db.run`UPDATE growths SET accumulation = '', next = NULL, plot = NULL, ready = 0 WHERE run = ${id}`;
  db.run`DELETE FROM comments WHERE run = ${id} AND comment IS NULL`;
  db.run`UPDATE comments SET text = '' WHERE run = ${id}`;
  // A quarantined run must never be read again, so it is ignored.
  db.run`
    UPDATE runs SET path = '', size = 0, modified_ms = 0, failure = NULL, reason = NULL, parked = iif(parked IS
      NULL, NULL, 'ignored') WHERE id = ${id}`;
  if (copy !== '')
    db.run`
      UPDATE runs SET copy = ${erasedCopy(row)} WHERE instrument = ${instrument} AND sha256 = ${sha256}
        AND copy = ${copy}`;
  // Answers to earlier requests name the file.
  db.run`
    UPDATE inbox SET answer = json_set(answer, '$.text', 'the run was erased since') WHERE answer IS NOT NULL
      AND json_valid(request) AND request NOT GLOB '{"kind":"erase"*'
      AND CASE WHEN json_valid(request) THEN json_extract(request, '$.run') END = ${id}`;
}

/** Inspects the file system. Provided by the caller: the journal itself reads no files. */
export interface SourceProbe {
  /** Whether the file is still there, with this size and time. */
  isThere(file: SourceFile): Promise<boolean>;
  /** The first path that has this content, or else what is at the first path. */
  find(content: { size: number; sha256: string }, paths: readonly [string, ...string[]]): Promise<Source>;
}

/** What was asked, and what became of it. */
export interface Outcome extends Answer {
  /** Undefined if this version cannot read it. */
  readonly request: Request | undefined;
}

interface Halves {
  readonly intake: IntakeJournal;
  readonly growing: Pick<GrowingJournal, 'erase'>;
  readonly requests: RequestStore;
}

/** The size of a batch; between batches, deliveries get their turn. */
const BATCH = 100;

/** Decides about the requests that people made, in their order. Each is applied completely or not at all. */
export async function applyRequests(journal: Halves, probe: SourceProbe): Promise<Outcome[]> {
  const { requests } = journal;
  const pending = await requests.pending(BATCH);
  if (pending.length === 0) return [];
  // Before the commits, none of which may wait for a network share.
  const facts = await Promise.all(pending.map(({ request }) => findFacts(journal, request, probe)));
  // First, so that the new answers are not removed.
  const tidied = requests.tidy();
  const answers = pending.map(async (one, index) => ({
    ...(await applyRequest(journal, one, facts[index] ?? NO_FACTS)),
    request: one.request,
  }));
  // Together: if the journal cannot be written, all of them fail, and one that nobody waits for would end the process.
  const [outcomes] = await Promise.all([Promise.all(answers), tidied]);
  return outcomes;
}

interface IntakeFacts {
  readonly source: Source;
  readonly backlog: BacklogFacts;
}

const NO_FACTS: IntakeFacts = {
  source: { path: '', has: 'nothing' },
  backlog: { isScanned: false, files: 0, toFile: 0 },
};

/** Nothing is awaited before the first commit, so that requests are decided in their order. */
async function applyRequest(
  { intake, growing, requests }: Halves,
  { id, request }: PendingRequest,
  { source, backlog }: IntakeFacts,
): Promise<Answer> {
  if (request === undefined) return requests.answer(id, UNREADABLE);
  try {
    switch (request.kind) {
      case 'backfill': {
        const { instrument, existing } = request;
        const answer = decideBackfill(instrument, existing, backlog);
        if (!answer.done) return await requests.answer(id, answer);
        const decided = intake.backfill(instrument, existing);
        const [stored] = await Promise.all([requests.answer(id, answer), decided]);
        return stored;
      }
      case 'erase': {
        const { answer, row } = await requests.decide(request, source);
        // Answered last: after a crash in between, the request is applied again.
        if (answer.done && row) await intake.erase(row.instrument, row);
        if (answer.done && row?.generation != null) await growing.erase(row.generation);
        return await requests.answer(id, answer);
      }
      default:
        return (await requests.decide(request, source, id)).answer;
    }
  } catch (error) {
    // If the journal cannot be written, the request stays. Any other error would occur again and again.
    if (error instanceof LabfeedError) throw error;
    return requests.answer(id, { done: false, text: `labfeed failed on this request: ${explain(error)}` });
  }
}

const UNREADABLE: Answer = { done: false, text: 'this version of labfeed does not support this request' };

async function findFacts(
  { intake, requests }: Halves,
  request: Request | undefined,
  probe: SourceProbe,
): Promise<IntakeFacts> {
  switch (request?.kind) {
    case 'backfill': {
      const isScanned = (await intake.firstScanAt(request.instrument)) !== undefined;
      const counted = await intake.countBacklog(request.instrument, request.existing);
      return { ...NO_FACTS, backlog: { isScanned, ...counted } };
    }
    case 'retry':
    case 'erase':
    case 'remap': {
      const row = await requests.row(request.run);
      if (row === undefined) return NO_FACTS;
      return { ...NO_FACTS, source: await findSource(intake, row, probe, request.kind) };
    }
    default:
      return NO_FACTS;
  }
}

/** What is now at the run's path or, if its content matters, at any path where that was seen. */
async function findSource(
  intake: IntakeJournal,
  row: RunRow,
  probe: SourceProbe,
  request: 'retry' | 'erase' | 'remap',
): Promise<Source> {
  const { instrument, path, size } = row;
  // A file that keeps growing is not read again from its beginning.
  if (row.generation != null) return { path, has: 'otherBytes' };
  // A retry with a draft reads the file again only if it still is the run's.
  const isHashed = request === 'remap' || (request === 'retry' && row.hasDraft && row.parked !== 'held');
  const files = await intake.sourcesOf(instrument, row, path);
  const hasSeveralFiles = files.some((file) => file.path !== path || file.size !== size);
  if (isHashed && !hasSeveralFiles) {
    const others = (await intake.pathsOf(instrument, row)).filter((other) => other !== path);
    return probe.find(row, [path, ...others]);
  }
  // Several files are judged by their sizes, and for a retry by their times: they are hashed again when they are read.
  const several = request === 'retry' ? files : files.map((file) => ({ path: file.path, size: file.size }));
  const there = await Promise.all((hasSeveralFiles ? several : [{ path, size }]).map(probe.isThere));
  return { path, has: there.every(Boolean) ? 'itsBytes' : 'nothing' };
}

const SCRUB_MS = 100;

/** The journal as commands use it beside the daemon: they read, and leave requests. */
export type JournalClient = ReturnType<typeof openClient>;

/** `busyMs`: how long to wait for another writer. */
export function openClient(path: string, busyMs?: number) {
  const db = new Connection(openCurrent(path, busyMs));
  requireFleetView(db.database, path);
  return {
    parked: async (as: 'quarantined' | 'held') =>
      db.values<number>`SELECT id FROM runs WHERE parked = ${as} ORDER BY id`,
    /** The runs that can be erased and were not changed since this time. */
    finishedBefore: async (time: number) => db.values<number>`
      SELECT id FROM runs WHERE updated_at < ${time} AND path <> '' AND (step = 'done'
        AND parked IS NULL OR parked IN ('ignored', 'quarantined')) ORDER BY id`,
    /** The done runs of an instrument, except those that were refiled. */
    done: async (instrument: string) => db.values<number>`
      SELECT id FROM runs WHERE instrument = ${instrument} AND step = 'done' AND parked IS NULL
        AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.instrument = runs.instrument
        AND later.sha256 = runs.sha256 AND later.copy = runs.copy AND later.refiling > runs.refiling)
        ORDER BY id`,
    /** Leaves the requests, durably and together; returns their numbers. */
    ask: async (requests: readonly Request[], at: number) => leaveRequests(db, path, requests, at),
    async answerTo(asked: number) {
      const answer = db.value<string>`SELECT answer FROM inbox WHERE id = ${asked}`;
      return answer === undefined ? undefined : answerSchema.parse(JSON.parse(answer));
    },
    /** Whether a request is still there without an answer. */
    isWaiting: async (asked: number) => db.exists`SELECT 1 FROM inbox WHERE id = ${asked} AND answer IS NULL`,
    /** Removes erased names from the write-ahead log too. False while others still read it. */
    async scrub() {
      // Briefly: waiting here for a reader keeps the daemon from writing.
      db.database.exec(`PRAGMA busy_timeout = ${SCRUB_MS}`);
      return db.value<number>`PRAGMA wal_checkpoint(TRUNCATE)` === 0;
    },
    close: async () => db.database.close(),
  };
}

function leaveRequests(db: Connection, path: string, requests: readonly Request[], at: number): number[] {
  try {
    db.run`BEGIN IMMEDIATE`;
    const ids = requests.map(
      (request) => db.value<number>`
        INSERT INTO inbox (at, request) VALUES (${at}, ${JSON.stringify(request)}) RETURNING id`,
    );
    db.run`COMMIT`;
    return ids.map((asked) => asked ?? 0);
  } catch (error) {
    if (db.database.isTransaction) db.run`ROLLBACK`;
    throw new LabfeedError(`cannot write the journal ${path}: ${explain(error)}`, {
      hint: 'use sudo, or run this command as the user that runs the daemon',
      cause: error,
    });
  }
}
