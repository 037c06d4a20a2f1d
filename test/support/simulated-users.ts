import type { Dialect } from '../../src/sandbox/dialect.js';
import { extraFields } from '../../src/sandbox/elabftw/records.js';
import {
  type Entry,
  type EntryChange,
  type NewEntry,
  PEOPLE,
  STATE,
  type Who,
} from '../../src/sandbox/entries.js';
import type { Store } from '../../src/sandbox/store.js';

interface Edit extends Pick<EntryChange, 'title' | 'date' | 'body' | 'metadata'> {
  readonly tags?: readonly string[];
}

/** A person at the notebook's web pages. The limits and permissions of the API do not apply. */
export interface SimulatedUser {
  create(fields?: NewEntry): number;
  edit(id: number, fields: Edit): void;
  /** A copy owned by this person. Extra fields with `blank_value_on_duplicate` are blank in it. */
  duplicate(id: number): number;
  /** Removes the row in dialect v2; marks it deleted in eLabFTW. */
  delete(id: number): void;
  comment(id: number, text: string): number;
  editComment(id: number, comment: number, text: string): void;
  deleteComment(id: number, comment: number): void;
  // The rest exists in eLabFTW only.
  restore(id: number): void;
  archive(id: number): void;
  lock(id: number): void;
  unlock(id: number): void;
  /** Makes it readable by its owner only. */
  hide(id: number): void;
  /** Opens it in the editor. */
  open(id: number): void;
  /** Closes the editor. */
  close(id: number): void;
}

export function simulatedUser(who: Who, store: () => Store, dialect: Dialect): SimulatedUser {
  const { userid } = PEOPLE[who];
  const found = (id: number): Entry => existing(store().entries.read(id), `experiment ${id}`);
  const change = (id: number, changes: EntryChange) => store().entries.change(found(id).id, changes, userid);
  const changeElabftw = (id: number, changes: EntryChange) => {
    requireElabftw(dialect);
    change(id, changes);
  };
  const setEditor = (id: number, editor: number | null) => {
    requireElabftw(dialect);
    store().entries.setEditor(found(id).id, editor);
  };
  const teamTags = (tags: readonly string[]) =>
    dialect === 'v2' ? tags : tags.map((tag) => store().tags.named(tag).tag);

  return {
    create: ({ tags = [], ...fields } = {}) =>
      store().entries.create({ ...fields, tags: teamTags(tags) }, userid),
    edit(id, { tags, ...fields }) {
      change(id, fields);
      if (tags) store().entries.setTags(id, teamTags(tags));
    },
    duplicate(id) {
      const { title, body, tags, team, content_type, metadata } = found(id);
      const copy = { title: `${title} I`, body, tags, team, content_type };
      return store().entries.create({ ...copy, metadata: blankOnDuplicate(metadata) }, userid);
    },
    delete(id) {
      if (dialect === 'v2') store().entries.delete(found(id).id);
      else change(id, { state: STATE.deleted });
    },
    comment: (id, text) => existing(store().comments.create(id, text, userid), `experiment ${id}`),
    editComment: (id, comment, text) =>
      void existing(store().comments.change(id, comment, text), `comment ${comment} of experiment ${id}`),
    deleteComment: (id, comment) =>
      void existing(
        store().comments.delete(id, comment) || undefined,
        `comment ${comment} of experiment ${id}`,
      ),
    restore: (id) => changeElabftw(id, { state: STATE.normal }),
    archive: (id) => changeElabftw(id, { state: STATE.archived }),
    lock: (id) => changeElabftw(id, { lockedby: userid }),
    unlock: (id) => changeElabftw(id, { lockedby: null }),
    hide: (id) => changeElabftw(id, { private: 1 }),
    open: (id) => setEditor(id, userid),
    close: (id) => setEditor(id, null),
  };
}

function requireElabftw(dialect: Dialect): void {
  if (dialect !== 'elabftw') throw new Error('only a notebook of dialect elabftw can do this');
}

function existing<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the notebook has no ${what}`);
  return value;
}

/** The metadata of a copy: fields with `blank_value_on_duplicate` lose their value. */
function blankOnDuplicate(metadata: string | null): string | null {
  const fields = Object.entries(extraFields(metadata)).map(([name, field]) => [
    name,
    field.blank_value_on_duplicate === true ? { ...field, value: '' } : field,
  ]);
  if (metadata === null || fields.length === 0) return metadata;
  return JSON.stringify({ ...JSON.parse(metadata), extra_fields: Object.fromEntries(fields) });
}
