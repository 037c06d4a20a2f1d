import type { Clock } from '../clock.js';
import { type Database, openDatafile } from './datafile.js';
import { storeTeamTags, type TeamTags } from './elabftw/team-tags.js';
import { storeUploads, type Uploads } from './elabftw/upload-store.js';
import { type Entries, type Experiment, STATE, storeEntries } from './entries.js';
import { type Keys, storeKeys } from './key-store.js';
import { PEOPLE } from './people.js';
import { timestamp, today } from './times.js';

export interface ExperimentFields {
  readonly title?: string;
  readonly date?: string;
  readonly body?: string;
  readonly tags?: readonly string[];
}

/** An experiment as the page lists it. */
export interface ExperimentSummary extends Omit<Experiment, 'body'> {
  readonly comments: number;
}

export interface Comment {
  readonly id: number;
  readonly comment: string;
  readonly item_id: number;
  readonly userid: number;
  readonly created_at: string;
  readonly modified_at: string;
}

export interface Store {
  readonly experiments: ReturnType<typeof storeExperiments>;
  readonly comments: ReturnType<typeof storeComments>;
  readonly keys: Keys;
  readonly entries: Entries;
  readonly tags: TeamTags;
  readonly uploads: Uploads;
  close(): void;
}

/** Everything the notebook holds, in one SQLite file. Each operation is one statement, so none is half done. */
export function openStore(file: string, clock: Clock): Store {
  const { db, close } = openDatafile(file);
  return {
    experiments: storeExperiments(db, clock),
    comments: storeComments(db, clock),
    keys: storeKeys(db, clock),
    entries: storeEntries(db, clock),
    tags: storeTeamTags(db),
    uploads: storeUploads(db, clock),
    close,
  };
}

type WithTagsAsText<T> = Omit<T, 'tags'> & { readonly tags: string };

const withTags = <T extends { readonly tags: string }>(row: T) => ({
  ...row,
  tags: JSON.parse(row.tags) as readonly string[],
});

function storeExperiments(db: Database, clock: Clock) {
  const columns = 'id, title, date, body, tags, created_at, modified_at, userid';
  const insert = db.prepare(
    'INSERT INTO experiments (title, date, tags, created_at, modified_at, body) VALUES (?, ?, ?, ?4, ?4, ?5) RETURNING id',
  );
  const select = db.prepare(`SELECT ${columns} FROM experiments WHERE id = ?`);
  const exists = db.prepare('SELECT 1 FROM experiments WHERE id = ?');
  const update = db.prepare(
    `UPDATE experiments SET title = coalesce(?2, title), date = coalesce(?3, date), body = coalesce(?4, body),
       tags = coalesce(?5, tags), modified_at = ?6 WHERE id = ?1 RETURNING ${columns}`,
  );
  const page = db.prepare(
    `SELECT id, title, date, tags, created_at, modified_at, userid,
       (SELECT count(*) FROM comments WHERE item_id = experiments.id) AS comments
     FROM experiments WHERE state <> ${STATE.deleted} ORDER BY id DESC LIMIT ? OFFSET ?`,
  );
  const count = db.prepare(`SELECT count(*) AS total FROM experiments WHERE state <> ${STATE.deleted}`);
  const tagsAsText = (tags: readonly string[] | undefined) => (tags ? JSON.stringify(tags) : null);

  return {
    create({ title = 'Untitled', date = today(clock), body = '', tags = [] }: ExperimentFields): number {
      const row: { id: number } = insert.get(title, date, JSON.stringify(tags), timestamp(clock), body);
      return row.id;
    },
    exists: (id: number): boolean => exists.get(id) !== undefined,
    read(id: number): Experiment | undefined {
      const row: WithTagsAsText<Experiment> | undefined = select.get(id);
      return row && withTags(row);
    },
    change(id: number, { title, date, body, tags }: ExperimentFields): Experiment | undefined {
      const row: WithTagsAsText<Experiment> | undefined = update.get(
        id,
        title ?? null,
        date ?? null,
        body ?? null,
        tagsAsText(tags),
        timestamp(clock),
      );
      return row && withTags(row);
    },
    count(): number {
      const row: { total: number } = count.get();
      return row.total;
    },
    listNewest(limit: number, offset: number): ExperimentSummary[] {
      const rows: WithTagsAsText<ExperimentSummary>[] = page.all(limit, offset);
      return rows.map(withTags);
    },
  };
}

function storeComments(db: Database, clock: Clock) {
  const columns = 'id, comment, item_id, userid, created_at, modified_at';
  // Takes the experiment from its table, so that there is no row where there is no experiment.
  const insert = db.prepare(
    `INSERT INTO comments (comment, item_id, created_at, modified_at, userid)
     SELECT ?2, id, ?3, ?3, ?4 FROM experiments WHERE id = ?1 RETURNING id`,
  );
  const list = db.prepare(`SELECT ${columns} FROM comments WHERE item_id = ? ORDER BY id`);
  const select = db.prepare(`SELECT ${columns} FROM comments WHERE item_id = ? AND id = ?`);
  const update = db.prepare(
    `UPDATE comments SET comment = ?3, modified_at = ?4 WHERE item_id = ?1 AND id = ?2 RETURNING ${columns}`,
  );
  const remove = db.prepare('DELETE FROM comments WHERE item_id = ? AND id = ?');

  return {
    /** The new comment's id, or undefined where there is no such experiment. */
    create(experiment: number, comment: string, userid = PEOPLE.owner.userid): number | undefined {
      const row: { id: number } | undefined = insert.get(experiment, comment, timestamp(clock), userid);
      return row?.id;
    },
    list(experiment: number): Comment[] {
      return list.all(experiment);
    },
    read(experiment: number, id: number): Comment | undefined {
      return select.get(experiment, id);
    },
    change(experiment: number, id: number, comment: string): Comment | undefined {
      return update.get(experiment, id, comment, timestamp(clock));
    },
    delete(experiment: number, id: number): boolean {
      return remove.run(experiment, id).changes > 0;
    },
  };
}
