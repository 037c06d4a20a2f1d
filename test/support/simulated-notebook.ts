import type { CommentRecord, ExperimentRecord, Notebook } from '../../src/deliver/context.js';
import { NotebookError } from '../../src/errors.js';

export interface SimulatedExperiment {
  title: string;
  date: string;
  body: string;
  tags: string[];
  userid: number;
  comments: Map<number, string>;
}

export interface SimulatedNotebook extends Notebook {
  readonly experiments: Map<number, SimulatedExperiment>;
  /** Method names of the requests that write, in order. */
  readonly writes: string[];
  /** Entries that our account may not read. */
  readonly hidden: Set<number>;
  /** Creates an entry as another user would, or by hand. */
  someoneCreates(title: string, userid?: number): number;
  /** Keeps a copy of everything; what it returns sets the notebook back to it, ids included. */
  save(): () => void;
}

export interface SimulationOptions {
  readonly dialect?: 'v2' | 'elabftw';
  /** Whether a creation's title is kept; older servers drop it. */
  readonly keepsTitle?: boolean;
}

const missing = (): NotebookError => new NotebookError('conflict', 'not found', { status: 404 });

/** A notebook in memory, as the contract or eLabFTW describes it. */
export function simulatedNotebook({
  dialect = 'v2',
  keepsTitle = true,
}: SimulationOptions = {}): SimulatedNotebook {
  const experiments = new Map<number, SimulatedExperiment>();
  const writes: string[] = [];
  const hidden = new Set<number>();
  let lastId = 100;
  let lastComment = 1000;
  const get = (id: number): SimulatedExperiment => {
    const found = experiments.get(id);
    if (!found) throw missing();
    return found;
  };
  const create = (title: string, userid: number): number => {
    lastId += 1;
    experiments.set(lastId, { title, date: '2026-01-01', body: '', tags: [], userid, comments: new Map() });
    return lastId;
  };
  const teamTags: string[] = [];
  const tagId = (tag: string): number => {
    if (!teamTags.includes(tag)) teamTags.push(tag);
    return teamTags.indexOf(tag) + 1;
  };
  const record = (id: number, text: string): CommentRecord => ({ id, comment: text });
  return {
    experiments,
    writes,
    hidden,
    someoneCreates: (title, userid = 2) => create(title, userid),
    save() {
      const saved = { entries: structuredClone(experiments), lastId, lastComment };
      return () => {
        experiments.clear();
        for (const [id, entry] of structuredClone(saved.entries)) experiments.set(id, entry);
        ({ lastId, lastComment } = saved);
      };
    },
    async createExperiment({ title }) {
      writes.push('createExperiment');
      return create(keepsTitle ? title : 'Untitled', 1);
    },
    async readExperiment(id): Promise<ExperimentRecord> {
      if (hidden.has(id)) throw new NotebookError('conflict', 'forbidden', { status: 403 });
      const { comments: _, ...shown } = get(id);
      return { id, ...shown, created_at: `at ${id}` };
    },
    async patchExperiment(id, { tags, ...changes }) {
      writes.push('patchExperiment');
      Object.assign(get(id), changes);
      if (tags === undefined) return;
      if (dialect === 'elabftw')
        throw new NotebookError('request', 'Invalid update target.', { status: 400 });
      get(id).tags = [...tags];
    },
    async addTag(id, tag) {
      writes.push('addTag');
      if (dialect === 'v2') throw missing();
      if (!get(id).tags.includes(tag)) get(id).tags.push(tag);
    },
    async listTags(id) {
      if (dialect === 'v2') throw missing();
      return get(id).tags.map((tag) => ({ id: tagId(tag), tag }));
    },
    async removeTag(id, removed) {
      writes.push('removeTag');
      if (dialect === 'v2') throw missing();
      get(id).tags = get(id).tags.filter((tag) => tagId(tag) !== removed);
    },
    listKeys: async () => [
      dialect === 'elabftw' ? { id: 1, name: 'k', can_write: 1, team: 1 } : { id: 1, name: 'k' },
    ],
    async searchBodies(texts) {
      if (dialect === 'v2') throw missing();
      return [...experiments]
        .filter(([, { body }]) => texts.every((text) => body.includes(text)))
        .map(([id, { comments: _, ...shown }]) => ({ id, ...shown }));
    },
    listComments: async (id) => [...get(id).comments].map(([comment, text]) => record(comment, text)),
    async readComment(id, comment) {
      const text = get(id).comments.get(comment);
      if (text === undefined) throw missing();
      return record(comment, text);
    },
    async postComment(id, text) {
      writes.push('postComment');
      lastComment += 1;
      get(id).comments.set(lastComment, text);
      return lastComment;
    },
    async patchComment(id, comment, text) {
      writes.push('patchComment');
      if (!get(id).comments.has(comment)) throw missing();
      get(id).comments.set(comment, text);
      return record(comment, text);
    },
    async deleteComment(id, comment) {
      writes.push('deleteComment');
      if (!get(id).comments.delete(comment)) throw missing();
    },
  };
}
