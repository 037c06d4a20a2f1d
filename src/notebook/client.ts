import { type ConnectionOptions, createConnection } from './http.js';
import {
  type Comment,
  type Experiment,
  type KeyRecord,
  readCommentRecord,
  readComments,
  readCreatedId,
  readCreatedKey,
  readExperimentRecord,
  readExperiments,
  readKeys,
  readPatched,
  readTags,
  type Tag,
} from './responses.js';
import {
  comment,
  comments,
  type Entity,
  EXPERIMENTS,
  experiment,
  holding,
  KEYS,
  key,
  tag,
  tags,
} from './targets.js';

/** The notebook's eleven operations, and eLabFTW's tags and search; each is one request. They reject with a NotebookError. */
export interface Notebook {
  /** Resolves with the new experiment's id. */
  createExperiment(fields?: NewExperiment, signal?: AbortSignal): Promise<number>;
  readExperiment(id: number, signal?: AbortSignal): Promise<Experiment>;
  patchExperiment(id: number, changes: ExperimentChanges, signal?: AbortSignal): Promise<void>;

  /** Beyond the contract, for eLabFTW: its PATCH does not take tags. Adding one that is there changes nothing. */
  addTag(experiment: number, tag: string, signal?: AbortSignal): Promise<void>;

  /** Beyond the contract, for eLabFTW. */
  listTags(experiment: number, signal?: AbortSignal): Promise<readonly Tag[]>;
  /** Beyond the contract, for eLabFTW: takes a tag off this experiment. One that is not there changes nothing. */
  removeTag(experiment: number, tag: number, signal?: AbortSignal): Promise<void>;

  /** Beyond the contract, for eLabFTW: the last changed experiments whose bodies hold all of these texts. */
  searchBodies(texts: readonly string[], signal?: AbortSignal): Promise<readonly Experiment[]>;

  listComments(entity: Entity, signal?: AbortSignal): Promise<readonly Comment[]>;
  readComment(entity: Entity, comment: number, signal?: AbortSignal): Promise<Comment>;
  /** Resolves with the new comment's id. */
  postComment(entity: Entity, text: string, signal?: AbortSignal): Promise<number>;
  patchComment(entity: Entity, comment: number, text: string, signal?: AbortSignal): Promise<Comment>;
  deleteComment(entity: Entity, comment: number, signal?: AbortSignal): Promise<void>;

  listKeys(signal?: AbortSignal): Promise<readonly KeyRecord[]>;
  /** Resolves with the new key in clear text, which the server tells this once. */
  createKey(fields?: NewKey, signal?: AbortSignal): Promise<string>;
  deleteKey(id: number, signal?: AbortSignal): Promise<void>;

  /** Lets what is under way end, then closes the connections. */
  close(): Promise<void>;
}

/** No tags: a POST with a tag that the team forbids fails although the experiment was made. */
interface NewExperiment {
  readonly title?: string;
}

interface ExperimentChanges {
  readonly title?: string;
  /** YYYY-MM-DD. */
  readonly date?: string;
  readonly body?: string;
  /** 1 is HTML. Only for eLabFTW: the contract does not know it. */
  readonly content_type?: number;
  readonly tags?: readonly string[];
}

/** The contract does not show these names; they are eLabFTW's. */
interface NewKey {
  readonly name?: string;
  readonly canwrite?: 0 | 1;
}

export interface NotebookOptions extends ConnectionOptions {
  /** The name of the text in a comment's body, which the contract does not show. */
  readonly commentField: string;
}

export function createNotebook({ commentField, ...options }: NotebookOptions): Notebook {
  const { get, post, patch, remove, close } = createConnection(options);
  const textOf = (text: string) => ({ [commentField]: text });
  return {
    createExperiment: async ({ title } = {}, signal) => post(EXPERIMENTS, { title }, readCreatedId, signal),
    readExperiment: async (id, signal) => get(experiment(id), readExperimentRecord(id), signal),
    patchExperiment: async (id, changes, signal) =>
      patch(experiment(id), known(changes), readPatched, signal),

    addTag: async (id, text, signal) => post(tags(id), { tag: text }, () => undefined, signal),
    listTags: async (id, signal) => get(tags(id), readTags, signal),
    removeTag: async (id, tagId, signal) =>
      patch(tag(id, tagId), { action: 'unreference' }, readPatched, signal),

    searchBodies: async (texts, signal) => get(holding(texts), readExperiments, signal),

    listComments: async (entity, signal) => get(comments(entity), readComments, signal),
    readComment: async (entity, id, signal) => get(comment(entity, id), readCommentRecord(id), signal),
    postComment: async (entity, text, signal) => post(comments(entity), textOf(text), readCreatedId, signal),
    patchComment: async (entity, id, text, signal) =>
      patch(comment(entity, id), textOf(text), readCommentRecord(id), signal),
    deleteComment: async (entity, id, signal) => remove(comment(entity, id), signal),

    listKeys: async (signal) => get(KEYS, readKeys, signal),
    createKey: async ({ name, canwrite } = {}, signal) =>
      post(KEYS, { name, canwrite }, readCreatedKey, signal),
    deleteKey: async (id, signal) => remove(key(id), signal),

    close,
  };
}

/**
 * Only what the server is known to take: eLabFTW refuses a PATCH for one name that it does not know, after
 * saving what stood before it. Tags last for the same reason: they are what it may refuse.
 */
const known = ({ title, date, body, content_type, tags }: ExperimentChanges): object => ({
  title,
  date,
  body,
  content_type,
  tags,
});
