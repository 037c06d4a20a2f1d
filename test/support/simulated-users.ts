import type { Dialect } from '../../src/model.js';
import {
  changeComment,
  changeExperiment,
  changeQuietly,
  createComment,
  createExperiment,
  deleteComment,
  duplicateExperiment,
  type Experiment,
  type ExperimentChange,
  type NewExperiment,
  readExperiment,
  STATE,
  type Store,
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
    changeQuietly(store(), found(id).id, { editedby: editor });
  };
  const teamTags = (tags: readonly string[]) =>
    dialect === 'v2' ? tags : tags.map((tag) => teamTag(store(), tag).tag);

  return {
    create: ({ tags = [], ...fields } = {}) => createExperiment(store(), { ...fields, tags: teamTags(tags) }, userid),
    edit(id, { tags, ...fields }) {
      change(id, fields);
      if (tags) changeQuietly(store(), id, { tags: teamTags(tags) });
    },
    duplicate: (id) => duplicateExperiment(store(), found(id), userid),
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
