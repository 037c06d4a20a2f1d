import { systemClock } from '../clock.js';
import { openCurrent } from './client.js';
import type { Database } from './database.js';
import { READABLE } from './hidden.js';
import {
  commentRow,
  draftRow,
  fileRow,
  happeningRow,
  IN_STATE,
  JOB,
  type Job,
  type JobDetail,
  type JobFilter,
  jobRow,
  type KnownFile,
} from './job.js';
import { createOverview, type Overview } from './overview.js';
import { textList } from './row.js';

/** The journal for those who only look. It is read as it is at that moment, whoever writes it. */
export interface JournalReader {
  /** All of the instruments and the queue, at a cost that does not grow with the journal. */
  overview(): Overview;
  /** The newest first. */
  jobs(filter: JobFilter): Job[];
  job(id: number): JobDetail | undefined;
  /** Files whose path holds this text, the newest first; also of files that are gone. */
  files(text: string, limit: number): KnownFile[];
  /** Runs of these bytes, of whatever instrument, the newest first. */
  sameContent(sha256: string): Job[];
  close(): void;
}

/** Where copies are runs of their own, there may be any number. */
const MOST_COPIES = 100;

export const openReader = (path: string): JournalReader => createReader(openCurrent(path));

export function createReader(database: Database, now = systemClock.now): JournalReader {
  const one = database.prepare(`SELECT ${JOB} WHERE runs.id = ?`);
  const draft = database.prepare('SELECT title, date, body, tags FROM drafts WHERE run = ?');
  const comments = database.prepare('SELECT n, text, comment FROM comments WHERE run = ? ORDER BY n');
  const history = database.prepare('SELECT at, event, detail FROM history WHERE run = ? ORDER BY id');
  const paths = database.prepare(`SELECT path FROM files WHERE run = ? AND ${READABLE} ORDER BY path`);
  const drift = database.prepare('SELECT changes FROM drifts WHERE run = ?');
  const files = database.prepare(
    `SELECT instrument, path, verdict, run FROM files WHERE instr(path, ?1) > 0 AND ${READABLE}
     UNION SELECT instrument, path, 'taken', id FROM runs WHERE instr(path, ?1) > 0
     ORDER BY run DESC, path LIMIT ?2`,
  );
  const same = database.prepare(
    // By instrument, since that is what the index begins with: none reads all runs.
    `SELECT ${JOB} WHERE runs.instrument IN (SELECT instrument FROM tallies) AND sha256 = ?
       ORDER BY runs.id DESC LIMIT ${MOST_COPIES}`,
  );

  function jobs({ state, instrument, limit, before }: JobFilter): Job[] {
    const conditions = [
      state === undefined ? 'true' : IN_STATE[state],
      ...(instrument === undefined ? [] : ['runs.instrument = :instrument']),
      ...(before === undefined ? [] : ['runs.id < :before']),
    ];
    // Without the sign, SQLite would rather look through all runs in their order than sort the few that are open.
    const order = state === 'queued' || state === 'sending' ? '+runs.id' : 'runs.id';
    const find = database.prepare(
      `SELECT ${JOB} WHERE ${conditions.join(' AND ')} ORDER BY ${order} DESC LIMIT :limit`,
    );
    const named = {
      limit,
      ...(instrument !== undefined && { instrument }),
      ...(before !== undefined && { before }),
    };
    return find.all(named).map((row) => jobRow.parse(row));
  }

  function job(id: number): JobDetail | undefined {
    const row = one.get(id);
    if (row === undefined) return undefined;
    const drafted = draft.get(id);
    const drifted = drift.get(id) as { changes: string } | undefined;
    return {
      ...jobRow.parse(row),
      draft: drafted === undefined ? undefined : draftRow.parse(drafted),
      comments: comments.all(id).map((comment) => commentRow.parse(comment)),
      history: history.all(id).map((happening) => happeningRow.parse(happening)),
      paths: (paths.all(id) as { path: string }[]).map(({ path }) => path),
      drift: drifted === undefined ? [] : textList.parse(drifted.changes),
    };
  }

  return {
    overview: createOverview(database, jobs, now),
    jobs,
    job,
    files: (text, limit) => files.all(text, limit).map((row) => fileRow.parse(row)),
    sameContent: (sha256) => same.all(sha256).map((row) => jobRow.parse(row)),
    close: () => database.close(),
  };
}
