import type { Clock } from '../clock.js';
import type { Database } from './datafile.js';

/** As eLabFTW numbers them. */
export const STATE = { normal: 1, archived: 2, deleted: 3 } as const;

export type StateName = keyof typeof STATE;

export function stateName(state: number): StateName {
  if (state === STATE.deleted) return 'deleted';
  return state === STATE.archived ? 'archived' : 'normal';
}

/** Records have the names of the fields that go over the wire. */
export interface Experiment {
  readonly id: number;
  readonly title: string;
  readonly date: string;
  readonly body: string;
  readonly tags: readonly string[];
  readonly created_at: string;
  readonly modified_at: string;
  readonly userid: number;
}

/** An experiment with all that stands behind it: whose it is, who holds it, what became of it. */
export interface Entry extends Experiment {
  readonly team: number;
  readonly state: number;
  readonly lockedby: number | null;
  /** Who has it open in the editor. */
  readonly editedby: number | null;
  readonly private: number;
  readonly content_type: number;
  /** JSON, as text. */
  readonly metadata: string | null;
  readonly lastchangeby: number | null;
}

/** What an experiment may begin with. */
export interface NewEntry {
  readonly title?: string;
  readonly date?: string;
  readonly body?: string;
  readonly tags?: readonly string[];
  readonly team?: number;
  readonly private?: number;
  readonly content_type?: number;
  readonly metadata?: string | null;
}

const CHANGEABLE = [
  'title',
  'date',
  'body',
  'state',
  'lockedby',
  'private',
  'content_type',
  'metadata',
] as const;

export type EntryChange = Partial<Pick<Entry, (typeof CHANGEABLE)[number]>>;

export type Entries = ReturnType<typeof storeEntries>;

/** The experiments again, as their own server sees them. The contract's view of the same rows is in store.ts. */
export function storeEntries(db: Database, clock: Clock) {
  const columns = `id, title, date, body, tags, created_at, modified_at, userid, team, state, lockedby, editedby,
    private, content_type, metadata, lastchangeby`;
  const insert = db.prepare(
    `INSERT INTO experiments
       (title, date, body, tags, created_at, modified_at, userid, team, private, content_type, metadata)
     VALUES (?, ?, ?, ?, ?5, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id`,
  );
  const select = db.prepare(`SELECT ${columns} FROM experiments WHERE id = ?`);
  const all = db.prepare(`SELECT ${columns} FROM experiments ORDER BY id`);
  const tag = db.prepare('UPDATE experiments SET tags = ? WHERE id = ?');
  const edit = db.prepare('UPDATE experiments SET editedby = ? WHERE id = ?');
  const remove = db.prepare('DELETE FROM experiments WHERE id = ?');

  return {
    create(fields: NewEntry, userid: number = PEOPLE.owner.userid): number {
      const { title = 'Untitled', date = today(clock), body = '', tags = [], team = 1 } = fields;
      const { private: hidden = 0, content_type: type = 1, metadata = null } = fields;
      const time = timestamp(clock);
      const row: { id: number } = insert.get(
        ...[title, date, body, JSON.stringify(tags), time, userid, team, hidden, type, metadata],
      );
      return row.id;
    },
    read(id: number): Entry | undefined {
      const row: EntryRow | undefined = select.get(id);
      return row && toEntry(row);
    },
    all(): Entry[] {
      const rows: EntryRow[] = all.all();
      return rows.map(toEntry);
    },
    /** Changes the row itself, and with it the time of the last change. */
    change(id: number, changes: EntryChange, by: number): void {
      const changed = CHANGEABLE.filter((column) => changes[column] !== undefined);
      const settings = [...changed.map((column) => `${column} = ?`), 'modified_at = ?', 'lastchangeby = ?'];
      const values = [...changed.map((column) => changes[column]), timestamp(clock), by, id];
      db.prepare(`UPDATE experiments SET ${settings.join(', ')} WHERE id = ?`).run(...values);
    },
    /** Tags are kept beside the row in eLabFTW: they leave the time of the last change as it was. */
    setTags(id: number, tags: readonly string[]): void {
      tag.run(JSON.stringify(tags), id);
    },
    setEditor(id: number, userid: number | null): void {
      edit.run(userid, id);
    },
    delete(id: number): void {
      remove.run(id);
    },
  };
}

type EntryRow = Omit<Entry, 'tags'> & { readonly tags: string };

const toEntry = (row: EntryRow): Entry => ({ ...row, tags: JSON.parse(row.tags) as readonly string[] });

/** Who writes in the notebook: `owner` is the user that the keys belong to. */
export type Who = 'owner' | 'colleague' | 'administrator';

export interface Person {
  readonly userid: number;
  readonly firstname: string;
  readonly lastname: string;
  readonly email: string;
}

export const PEOPLE: Readonly<Record<Who, Person>> = {
  owner: { userid: 1, firstname: 'Sam', lastname: 'Sandbox', email: 'sam@eln.invalid' },
  colleague: { userid: 2, firstname: 'Kim', lastname: 'Colleague', email: 'kim@eln.invalid' },
  administrator: { userid: 3, firstname: 'Ada', lastname: 'Admin', email: 'ada@eln.invalid' },
};

/** Nobody else ever writes here, so that an unknown number can only be the first user's. */
export function whoIs(userid: number): Who {
  if (userid === PEOPLE.colleague.userid) return 'colleague';
  return userid === PEOPLE.administrator.userid ? 'administrator' : 'owner';
}

export const personOf = (userid: number): Person => PEOPLE[whoIs(userid)];

export const fullName = ({ firstname, lastname }: Person) => `${firstname} ${lastname}`;

/** UTC, to the second: what notebooks of this kind show. Too coarse to tell two quick changes apart. */
export const timestamp = (clock: Clock) => new Date(clock.now()).toISOString().slice(0, 19).replace('T', ' ');

/** The local day. Sweden writes it YYYY-MM-DD. */
export const today = (clock: Clock) => new Date(clock.now()).toLocaleDateString('sv-SE');
