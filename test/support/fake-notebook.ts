import { createHash } from 'node:crypto';
import type { CommentRecord, ExperimentRecord, FilledCreation, Notebook } from '../../src/deliver/context.js';
import { NotebookError } from '../../src/errors.js';

/**
 * The notebook for unit tests and simulation: in memory, without HTTP, with the behaviour of the contract or of
 * eLabFTW. Faults are injected by wrapping it (`withFaults`, `intercept`). Everything else uses the sandbox.
 */
export interface FakeNotebook extends Notebook {
  readonly experiments: Map<number, FakeExperiment>;
  /** The names of the write requests that were carried out, in order. */
  readonly writes: string[];
  /** Experiments that our account may not read. */
  readonly privateIds: Set<number>;
  /** Creates an experiment in the web interface: by default, as another user. */
  addExperiment(title: string, userid?: number): number;
  /** What `listNamed` answers. */
  readonly named: Partial<Record<string, { readonly id: number; readonly title: string }[]>>;
  /** The next experiment gets an id that is higher by this much. */
  skipIds(count: number): void;
  /** From now on, the titles of creations are kept. */
  keepTitles(): void;
  /** eLabFTW only: the experiment with the highest id that our account may read. */
  newestExperiments(): Promise<{ readonly id: number }[]>;
  /** The notebook as another account sees it. */
  as(userid: number): FakeNotebook;
  /** Copies everything. The result restores the copy, including the id counters. */
  snapshot(): () => void;
}

export interface FakeExperiment {
  title: string;
  date: string;
  body: string;
  tags: string[];
  userid: number;
  comments: Map<number, string>;
  /** Absent if nothing was ever attached. */
  uploads?: Map<number, FakeUpload>;
  /** eLabFTW only, as are the next two: JSON. */
  metadata?: string;
  category?: number;
  items?: number[];
}

interface FakeUpload {
  readonly real_name: string;
  readonly hash: string;
  readonly long_name: string;
  readonly storage: number;
  state: number;
}

export interface NotebookKind {
  readonly dialect?: 'v2' | 'elabftw';
  /** Whether the title of a creation is kept. Older servers drop it. */
  readonly keepsTitle?: boolean;
  /** Whether the body and the tags of a creation are kept. Older versions of eLabFTW drop them. */
  readonly keepsBody?: boolean;
}

/** Every kind of server that delivery has to work with. */
export const NOTEBOOK_KINDS: readonly NotebookKind[] = [{}, { keepsTitle: false }, { dialect: 'elabftw' }];

/** As eLabFTW lists it: without its body. */
const listed = ([id, { title, date, userid }]: [number, FakeExperiment]) => ({ id, title, date, userid });

const notFound = (): NotebookError => new NotebookError('conflict', 'not found', { status: 404 });

/** `lastId`: the id of the last experiment that was created and deleted before. */
export function fakeNotebook({ dialect = 'v2', ...kind }: NotebookKind = {}, lastId = 100): FakeNotebook {
  let keepsTitle = kind.keepsTitle ?? true;
  const { keepsBody = true } = kind;
  const experiments = new Map<number, FakeExperiment>();
  const writes: string[] = [];
  const privateIds = new Set<number>();
  const named: FakeNotebook['named'] = {};
  let lastComment = 1000;
  const get = (id: number): FakeExperiment => {
    const found = experiments.get(id);
    if (!found) throw notFound();
    return found;
  };
  const shown = (id: number): ExperimentRecord => {
    const { comments, uploads, ...parts } = get(id);
    const record = { id, ...parts, created_at: `at ${id}` };
    if (dialect === 'v2') return record;
    // eLabFTW shows what belongs to the experiment, too.
    return {
      ...record,
      comments: [...comments].map(([comment, text]) => ({ id: comment, comment: text })),
      uploads: [...(uploads ?? [])].map(([upload, fields]) => ({ id: upload, ...fields })),
    };
  };
  const add = (title: string, userid: number): number => {
    lastId += 1;
    experiments.set(lastId, {
      title,
      date: '2026-01-01',
      body: '',
      tags: [],
      userid,
      comments: new Map(),
    });
    return lastId;
  };
  const create = async (title: string, userid: number): Promise<number> => {
    writes.push('createExperiment');
    return add(keepsTitle ? title : 'Untitled', userid);
  };
  const createFilled = async (content: FilledCreation, userid: number): Promise<number> => {
    if (dialect === 'v2') throw new Error('the contract has no such creation');
    const { title, body, tags = [], content_type: _, ...rest } = content;
    const id = await create(title, userid);
    const { metadata, ...others } = rest;
    if (keepsBody) Object.assign(get(id), { body, tags: [...tags], ...others });
    if (keepsBody && metadata) get(id).metadata = JSON.stringify(metadata);
    return id;
  };
  return {
    experiments,
    writes,
    privateIds,
    named,
    skipIds(count) {
      lastId += count;
    },
    keepTitles() {
      keepsTitle = true;
    },
    as(userid) {
      return {
        ...this,
        createExperiment: ({ title }) => create(title, userid),
        createFilledExperiment: (content) => createFilled(content, userid),
      };
    },
    addExperiment: (title, userid = 2) => add(title, userid),
    snapshot() {
      const saved = { entries: structuredClone(experiments), lastId, lastComment };
      return () => {
        experiments.clear();
        for (const [id, entry] of structuredClone(saved.entries)) experiments.set(id, entry);
        ({ lastId, lastComment } = saved);
      };
    },
    createExperiment: ({ title }) => create(title, 1),
    createFilledExperiment: (content) => createFilled(content, 1),
    async readExperiment(id): Promise<ExperimentRecord> {
      if (privateIds.has(id)) throw new NotebookError('conflict', 'forbidden', { status: 403 });
      return shown(id);
    },
    async patchExperiment(id, { tags, ...changes }, check) {
      check?.();
      writes.push('patchExperiment');
      Object.assign(get(id), changes);
      // The contract does not say what a PATCH returns; eLabFTW returns the experiment.
      if (tags === undefined) return dialect === 'elabftw' ? shown(id) : undefined;
      if (dialect === 'elabftw') throw new NotebookError('request', 'Invalid update target.', { status: 400 });
      get(id).tags = [...tags];
      return undefined;
    },
    async patchExtras(id, changes) {
      writes.push('patchExtras');
      Object.assign(get(id), changes);
    },
    async linkItem(id, item) {
      writes.push('linkItem');
      get(id).items = [...new Set([...(get(id).items ?? []), item])];
    },
    listNamed: async (kind) => named[kind] ?? [],
    listKeys: async () => [dialect === 'elabftw' ? { id: 1, name: 'k', can_write: 1, team: 1 } : { id: 1, name: 'k' }],
    async searchBodies(texts) {
      if (dialect === 'v2') throw notFound();
      return [...experiments].filter(([, { body }]) => texts.every((text) => body.includes(text))).map(listed);
    },
    async searchTitles(text, limit) {
      if (dialect === 'v2') throw notFound();
      return [...experiments]
        .filter(([id, { title }]) => title.includes(text) && !privateIds.has(id))
        .map(listed)
        .reverse()
        .slice(0, limit);
    },
    async newestExperiments() {
      if (dialect === 'v2') throw notFound();
      const readable = [...experiments.keys()].filter((id) => !privateIds.has(id));
      return readable
        .sort((a, b) => b - a)
        .slice(0, 1)
        .map((id) => ({ id }));
    },
    ...tagOperations(dialect, get, writes),
    ...commentOperations(get, writes, () => ++lastComment),
    ...uploadOperations(dialect, get, writes, () => ++lastComment),
  };
}

type Get = (id: number) => FakeExperiment;

function tagOperations(
  dialect: 'v2' | 'elabftw',
  get: Get,
  writes: string[],
): Pick<Notebook, 'addTag' | 'listTags' | 'removeTag'> {
  const teamTags: string[] = [];
  const idOf = (tag: string): number => {
    if (!teamTags.includes(tag)) teamTags.push(tag);
    return teamTags.indexOf(tag) + 1;
  };
  return {
    async addTag(id, tag) {
      writes.push('addTag');
      if (dialect === 'v2') throw notFound();
      if (!get(id).tags.includes(tag)) get(id).tags.push(tag);
    },
    async listTags(id) {
      if (dialect === 'v2') throw notFound();
      return get(id).tags.map((tag) => ({ id: idOf(tag), tag }));
    },
    async removeTag(id, removed) {
      writes.push('removeTag');
      if (dialect === 'v2') throw notFound();
      get(id).tags = get(id).tags.filter((tag) => idOf(tag) !== removed);
    },
  };
}

function commentOperations(
  get: Get,
  writes: string[],
  nextId: () => number,
): Pick<Notebook, 'listComments' | 'readComment' | 'postComment' | 'patchComment' | 'deleteComment'> {
  const record = (id: number, text: string): CommentRecord => ({ id, comment: text });
  return {
    listComments: async (id) => [...get(id).comments].map(([comment, text]) => record(comment, text)),
    async readComment(id, comment) {
      const text = get(id).comments.get(comment);
      if (text === undefined) throw notFound();
      return record(comment, text);
    },
    async postComment(id, text) {
      writes.push('postComment');
      const comment = nextId();
      get(id).comments.set(comment, text);
      return comment;
    },
    async patchComment(id, comment, text) {
      writes.push('patchComment');
      if (!get(id).comments.has(comment)) throw notFound();
      get(id).comments.set(comment, text);
      return record(comment, text);
    },
    async deleteComment(id, comment) {
      writes.push('deleteComment');
      if (!get(id).comments.delete(comment)) throw notFound();
    },
  };
}

function uploadOperations(
  dialect: 'v2' | 'elabftw',
  get: Get,
  writes: string[],
  nextId: () => number,
): Pick<Notebook, 'listUploads' | 'uploadFile' | 'deleteUpload'> {
  return {
    async listUploads(id) {
      if (dialect === 'v2') throw notFound();
      return [...(get(id).uploads ?? [])].map(([upload, fields]) => ({ id: upload, ...fields }));
    },
    async uploadFile(id, { name, size, replaces, open }) {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of open()) {
        hash.update(chunk);
        bytes += chunk.length;
      }
      if (bytes !== size) throw new Error(`${bytes} bytes instead of ${size}`);
      writes.push('uploadFile');
      if (dialect === 'v2') throw notFound();
      const upload = nextId();
      const experiment = get(id);
      experiment.uploads ??= new Map();
      const replaced = replaces === undefined ? undefined : experiment.uploads.get(replaces);
      if (replaces !== undefined && !replaced) throw notFound();
      if (replaced) replaced.state = 2;
      const place = { long_name: `ab/file${upload}.png`, storage: 1 };
      experiment.uploads.set(upload, { real_name: name, hash: hash.digest('hex'), ...place, state: 1 });
      return upload;
    },
    async deleteUpload(id, upload) {
      writes.push('deleteUpload');
      const found = get(id).uploads?.get(upload);
      if (!found) throw notFound();
      if (get(id).body.includes(found.long_name))
        throw new NotebookError('request', 'Please remove any reference to this file in the body', { status: 400 });
      found.state = 3;
    },
  };
}

/** A request on its way to the notebook. */
export interface FakeRequest {
  readonly operation: Operation;
  readonly args: readonly unknown[];
  readonly isWrite: boolean;
  /** The server carries it out. */
  carryOut(): Promise<unknown>;
}

export type Operation = keyof Notebook;

export const isCreation = (operation: Operation): boolean => operation.startsWith('create');

/** The same notebook, with `handle` between it and its client. */
export function intercept<N extends Notebook>(notebook: N, handle: (request: FakeRequest) => Promise<unknown>): N {
  const parts = Object.entries(notebook).map(([name, part]) => {
    if (typeof part !== 'function' || !isOperation(name)) return [name, part];
    const isWrite = !/^(read|list|search)/.test(name);
    const request = (...args: unknown[]) => handle({ operation: name, args, isWrite, carryOut: () => part(...args) });
    return [name, request];
  });
  return Object.fromEntries(parts) as N;
}

const isOperation = (name: string): name is Operation =>
  /^(create|read|patch|add|link|list|remove|search|post|delete|upload)[A-Z]/.test(name);

/** What can go wrong with a request; the comments say whether the server carries it out. */
export const FAULTS = {
  /** Not carried out: there was no connection. */
  unreachable: { carriedOut: 'never', error: () => new NotebookError('server', 'connection refused') },
  /** Not carried out: 429. */
  busy: {
    carriedOut: 'never',
    error: () => new NotebookError('rate', 'slow down', { status: 429 }),
  },
  /** Not carried out: 401. */
  unauthorized: {
    carriedOut: 'never',
    error: () => new NotebookError('auth', 'unauthorized', { status: 401 }),
  },
  /** Not carried out, but the client cannot know. */
  dropped: { carriedOut: 'never', error: lost },
  /** Not carried out, but the client cannot know: 502. */
  badGateway: {
    carriedOut: 'never',
    error: (outcomeUnknown: boolean) => new NotebookError('server', 'bad gateway', { status: 502, outcomeUnknown }),
  },
  /** Carried out, and the response was lost. */
  lost: { carriedOut: 'now', error: lost },
  /** Carried out, and answered with 500. */
  failed: {
    carriedOut: 'now',
    error: (outcomeUnknown: boolean) => new NotebookError('server', 'internal error', { status: 500, outcomeUnknown }),
  },
  /** The connection was cut, and the request is carried out later. */
  late: { carriedOut: 'later', error: lost },
} as const satisfies Record<string, { carriedOut: 'never' | 'now' | 'later'; error(isWrite: boolean): NotebookError }>;

export type Fault = keyof typeof FAULTS;

function lost(outcomeUnknown: boolean): NotebookError {
  return new NotebookError('server', 'connection reset', { outcomeUnknown });
}

/** Applies the faults in the script to the requests of their operations. */
export const withFaults = <N extends Notebook>(
  notebook: N,
  script: Partial<Record<Operation, Exclude<Fault, 'late'> | NotebookError>>,
): N =>
  intercept(notebook, async ({ operation, isWrite, carryOut }) => {
    const fault = script[isCreation(operation) ? 'createExperiment' : operation];
    if (fault === undefined) return carryOut();
    if (fault instanceof NotebookError) throw fault;
    if (FAULTS[fault].carriedOut === 'now') await carryOut();
    throw FAULTS[fault].error(isWrite);
  });
