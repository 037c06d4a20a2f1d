import type { CommentRecord, Notebook } from '../../src/deliver/deps.js';
import { NotebookError } from '../../src/errors.js';
import type { Draft } from '../../src/model.js';

export interface SimulatedExperiment {
  title: string;
  date: string;
  comments: Map<number, string>;
}

export interface SimulatedNotebook extends Notebook {
  readonly experiments: Map<number, SimulatedExperiment>;
  /** Method names of the requests that write, in order. */
  readonly writes: string[];
  /** Creates an entry as another user would. */
  someoneElseCreates(title: string): number;
}

const missing = (): NotebookError => new NotebookError('conflict', 'not found', { status: 404, lost: false });

/** A notebook in memory that keeps titles and comments, as the contract describes it. */
export function simulatedNotebook(): SimulatedNotebook {
  const experiments = new Map<number, SimulatedExperiment>();
  const writes: string[] = [];
  let lastId = 100;
  let lastComment = 1000;
  const get = (id: number): SimulatedExperiment => {
    const found = experiments.get(id);
    if (!found) throw missing();
    return found;
  };
  const create = (title: string): number => {
    lastId += 1;
    experiments.set(lastId, { title, date: '2026-01-01', comments: new Map() });
    return lastId;
  };
  const record = (id: number, text: string): CommentRecord => ({ id, comment: text });
  return {
    experiments,
    writes,
    someoneElseCreates: create,
    async createExperiment({ title }) {
      writes.push('createExperiment');
      return create(title);
    },
    readExperiment: async (id) => ({ ...get(id) }),
    async patchExperiment(id, { title, date }: Omit<Draft, 'comments'>) {
      writes.push('patchExperiment');
      Object.assign(get(id), { title, date });
    },
    listKeys: async () => [],
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
  };
}
