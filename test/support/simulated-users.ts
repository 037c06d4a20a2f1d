import type { Dialect } from '../../src/model.js';
import {
  changeComment,
  changeExperiment,
  createComment,
  createExperiment,
  deleteComment,
  type Experiment,
  type ExperimentChange,
  type NewExperiment,
  readExperiment,
  STATE,
  type Store,
  setTags,
  teamTag,
  USERS,
} from '../../src/sandbox/store.js';

export type UserName = keyof typeof USERS;

interface Edit extends Pick<ExperimentChange, 'title' | 'date' | 'body' | 'metadata'> {
  readonly tags?: readonly string[];
}

/** A person at the notebook's web pages. The limits and permissions of the API do not apply. */
export interface SimulatedUser {
  create(fields?: NewExperiment): number;
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

export function simulatedUser(name: UserName, store: () => Store, dialect: Dialect): SimulatedUser {
  const { userid } = USERS[name];
  const found = (id: number): Experiment => existing(readExperiment(store(), id), `experiment ${id}`);
  const change = (id: number, changes: ExperimentChange) =>
    void changeExperiment(store(), found(id).id, changes, userid);
  const changeElabftw = (id: number, changes: ExperimentChange) => {
    requireElabftw(dialect);
    change(id, changes);
  };
  const setEditor = (id: number, editor: number | null) => {
    requireElabftw(dialect);
    store().db.prepare('UPDATE experiments SET editedby = ? WHERE id = ?').run(editor, found(id).id);
  };
  const teamTags = (tags: readonly string[]) =>
    dialect === 'v2' ? tags : tags.map((tag) => teamTag(store(), tag).tag);

  return {
    create: ({ tags = [], ...fields } = {}) => createExperiment(store(), { ...fields, tags: teamTags(tags) }, userid),
    edit(id, { tags, ...fields }) {
      change(id, fields);
      if (tags) setTags(store(), id, teamTags(tags));
    },
    duplicate(id) {
      const { title, body, tags, team, content_type, metadata } = found(id);
      const copy = { title: `${title} I`, body, tags, team, content_type };
      return createExperiment(store(), { ...copy, metadata: blankOnDuplicate(metadata) }, userid);
    },
    delete(id) {
      if (dialect === 'v2') store().db.prepare('DELETE FROM experiments WHERE id = ?').run(found(id).id);
      else change(id, { state: STATE.deleted });
    },
    comment: (id, text) => existing(createComment(store(), id, text, userid), `experiment ${id}`),
    editComment: (id, comment, text) =>
      void existing(changeComment(store(), id, comment, text), `comment ${comment} of experiment ${id}`),
    deleteComment(id, comment) {
      const deleted = deleteComment(store(), id, comment);
      existing(deleted || undefined, `comment ${comment} of experiment ${id}`);
    },
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
  const decoded = JSON.parse(metadata ?? 'null');
  for (const field of Object.values<Record<string, unknown>>(decoded?.extra_fields ?? {})) {
    if (field['blank_value_on_duplicate'] === true) field['value'] = '';
  }
  return decoded && JSON.stringify(decoded);
}
