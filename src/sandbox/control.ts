import type { Dialect } from './dialect.js';
import { blankOnDuplicate } from './elabftw/records.js';
import {
  type Entry,
  type EntryChange,
  type NewEntry,
  PEOPLE,
  STATE,
  type StateName,
  stateName,
  type Who,
  whoIs,
} from './entries.js';
import type { Fault, Faults, Outage, PlannedFault, RateLimit, Scope } from './faults.js';
import type { RequestLog, SeenRequest } from './requests.js';
import type { Comment, Store, Upload } from './store.js';

/** An experiment with all that belongs to it. */
interface HeldExperiment extends Omit<Entry, 'state' | 'private'> {
  readonly state: StateName;
  readonly locked: boolean;
  readonly private: boolean;
  readonly owner: Who;
  readonly comments: readonly Comment[];
  readonly uploads: readonly Upload[];
}

/**
 * What the network, the server's keeper and other people do to a notebook, and a view of all it holds:
 * for tests in the same process, and not to be reached over HTTP.
 */
export interface Control {
  /** Lets requests fail from now on. Of several that fit, the one planned first is met. */
  plan(fault: Fault, scope?: Scope): PlannedFault;
  /** 429 beyond this rate; undefined lifts the limit. */
  limitRate(limit: RateLimit | undefined): void;
  /** Takes the whole server down; undefined brings it back. */
  setOutage(outage: Outage | undefined): void;
  /** Somebody at the notebook's own pages; `owner` is the user whose keys they are. */
  as(who: Who): Hand;
  /** Everything, deleted ones too, by id. */
  experiments(): readonly HeldExperiment[];
  /** The requests to the API so far, by arrival. The oldest are forgotten beyond 64 MB. */
  requests(): readonly SeenRequest[];
  forgetRequests(): void;
  /** Resolves when every request so far was carried out, or never will be: also those whose connection was cut. */
  settled(): Promise<void>;
}

interface ControlDeps {
  readonly dialect: Dialect;
  readonly faults: Faults;
  readonly requests: RequestLog;
  /** Throws while the notebook is not running. */
  store(): Store;
}

export function createControl({ dialect, faults, requests, store }: ControlDeps): Control {
  return {
    plan: faults.plan,
    limitRate: faults.limitRate,
    setOutage: faults.setOutage,
    as: (who) => handOf(who, store, dialect),
    experiments: () =>
      store()
        .entries.all()
        .map((entry) => held(entry, store())),
    requests: requests.list,
    forgetRequests: requests.forget,
    settled: requests.settled,
  };
}

function held(entry: Entry, { comments, uploads }: Store): HeldExperiment {
  return {
    ...entry,
    state: stateName(entry.state),
    locked: entry.lockedby !== null,
    private: entry.private === 1,
    owner: whoIs(entry.userid),
    comments: comments.list(entry.id),
    uploads: uploads.list(entry.id),
  };
}

interface Edit extends Pick<EntryChange, 'title' | 'date' | 'body' | 'metadata'> {
  readonly tags?: readonly string[];
}

/** What a person does in the notebook's own pages. The API's limits and rights are not asked. */
interface Hand {
  create(fields?: NewEntry): number;
  edit(id: number, fields: Edit): void;
  /** A copy in this person's name. Extra fields that say so are blank in it. */
  duplicate(id: number): number;
  /** Gone in dialect v2; in eLabFTW, only marked so. */
  delete(id: number): void;
  comment(id: number, text: string): number;
  editComment(id: number, comment: number, text: string): void;
  deleteComment(id: number, comment: number): void;
  // What follows is eLabFTW's alone.
  restore(id: number): void;
  archive(id: number): void;
  lock(id: number): void;
  unlock(id: number): void;
  /** Only its owner can read it from now on. */
  hide(id: number): void;
  /** Opens it in the editor, and closes that again. */
  open(id: number): void;
  close(id: number): void;
}

function handOf(who: Who, store: () => Store, dialect: Dialect): Hand {
  const { userid } = PEOPLE[who];
  const found = (id: number): Entry => {
    const entry = store().entries.read(id);
    if (!entry) throw new Error(`the notebook has no experiment ${id}`);
    return entry;
  };
  const change = (id: number, changes: EntryChange) => store().entries.change(found(id).id, changes, userid);
  const beyondTheContract = (id: number, changes: EntryChange) => {
    onlyIn('elabftw', dialect);
    change(id, changes);
  };
  const spelt = (tags: readonly string[]) =>
    dialect === 'v2' ? tags : tags.map((tag) => store().tags.named(tag).tag);
  const setEditor = (id: number, editor: number | null) => {
    onlyIn('elabftw', dialect);
    store().entries.setEditor(found(id).id, editor);
  };

  return {
    create: ({ tags = [], ...fields } = {}) =>
      store().entries.create({ ...fields, tags: spelt(tags) }, userid),
    edit(id, { tags, ...fields }) {
      change(id, fields);
      if (tags) store().entries.setTags(id, spelt(tags));
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
    restore: (id) => beyondTheContract(id, { state: STATE.normal }),
    archive: (id) => beyondTheContract(id, { state: STATE.archived }),
    lock: (id) => beyondTheContract(id, { lockedby: userid }),
    unlock: (id) => beyondTheContract(id, { lockedby: null }),
    hide: (id) => beyondTheContract(id, { private: 1 }),
    open: (id) => setEditor(id, userid),
    close: (id) => setEditor(id, null),
  };
}

function onlyIn(needed: Dialect, dialect: Dialect): void {
  if (dialect !== needed) throw new Error(`a notebook of dialect ${dialect} cannot do this, only ${needed}`);
}

function existing<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the notebook has no ${what}`);
  return value;
}
