import { type Dispatcher, Pool } from 'undici';
import { type Clock, systemClock } from '../clock.js';
import { explain, NotebookError } from '../errors.js';
import { type Asked, quote, refused, type Subject, unanswered, unusable } from './errors.js';
import { type Answer, CalledOff, exchange, type Limits, type Method } from './http.js';
import {
  type Comment,
  type Experiment,
  isId,
  isKey,
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

interface ConnectionOptions {
  /** Base address, to which `/api/v2` is added. */
  readonly url: string;
  /** Asked before each request, so that a changed key is picked up. */
  readonly key: () => string;
  /** For one request as a whole, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly connections: number;
  /** The gate: each request is sent from inside it, and its failure is seen inside it. */
  readonly admit?: <T>(send: () => Promise<T>, signal?: AbortSignal) => Promise<T>;
  /** Told of each request with the status of its answer; undefined where none came. */
  readonly heard?: ((method: Method, status: number | undefined) => void) | undefined;
}

/** How an answer of the expected status becomes a value; throws where it cannot. */
type Read<T> = (answer: Answer) => T;

/** Far above what a notebook has to say, far below what would hurt this process. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * A connection that idles longer is opened anew, whatever the server promises: a firewall that forgot it in
 * between would let the next POST vanish without an answer.
 */
const IDLE_MS = 20_000;

/** The four verbs of the API, through the gate and over kept-alive connections. Nothing is opened yet. */
function createConnection({ url, key, timeoutMs, connections, admit = atOnce, heard }: ConnectionOptions) {
  const base = new URL(url);
  const pool = new Pool(base.origin, {
    connections,
    // One request on a connection at a time: undici may send a pipelined one again by itself.
    pipelining: 1,
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    keepAliveMaxTimeout: IDLE_MS,
  });
  const request = createRequest({ pool, base, key, timeoutMs, maxBytes: MAX_ANSWER_BYTES, heard });
  const underWay = new Set<Promise<unknown>>();

  async function send<T>(
    method: Method,
    target: Target,
    body: object | undefined,
    read: Read<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const sending = admit(() => request({ method, ...target, body, read }, signal), signal);
    underWay.add(sending);
    try {
      return await sending;
    } finally {
      underWay.delete(sending);
    }
  }

  return {
    get: <T>(target: Target, read: Read<T>, signal?: AbortSignal) =>
      send('GET', target, undefined, read, signal),
    post: <T>(target: Target, body: object, read: Read<T>, signal?: AbortSignal) =>
      send('POST', target, body, read, signal),
    patch: <T>(target: Target, body: object, read: Read<T>, signal?: AbortSignal) =>
      send('PATCH', target, body, read, signal),
    remove: (target: Target, signal?: AbortSignal) => send('DELETE', target, undefined, () => {}, signal),

    /** Lets what is under way end. Then without ceremony: attempts to connect that nobody awaits go, too. */
    async close(): Promise<void> {
      await Promise.allSettled(underWay);
      await pool.destroy();
    },
  };
}

const atOnce = <T>(send: () => Promise<T>): Promise<T> => send();

/** One request of the API, and how its answer is read. */
interface Call<T> extends Target {
  readonly method: Method;
  readonly body: object | undefined;
  /** Throws where the answer has not what it must. */
  readonly read: (answer: Answer) => T;
}

interface RequestOptions extends Limits {
  readonly pool: Dispatcher;
  readonly base: URL;
  /** Asked before each request, so that a changed key is picked up. */
  readonly key: () => string;
  readonly clock?: Clock;
  /** Told of each request with the status of its answer; undefined where none came. */
  readonly heard?: ((method: Method, status: number | undefined) => void) | undefined;
}

/** The only status that means done. */
const EXPECTED = { GET: 200, POST: 201, PATCH: 200, DELETE: 204 } as const satisfies Record<Method, number>;

/**
 * Sends one request and gives what was read from the answer. Everything that can go wrong comes as a
 * NotebookError; only a signal that called it off before it left comes as the signal's own reason.
 */
function createRequest({ pool, base, key, clock = systemClock, heard, ...limits }: RequestOptions) {
  const prefix = `${base.pathname.replace(/\/+$/, '')}/api/v2`;

  return async function request<T>(call: Call<T>, signal?: AbortSignal): Promise<T> {
    const asked: Asked = { method: call.method, path: prefix + call.path, on: call.on, key: present(key) };
    const outcome = await exchange(pool, sending(asked, call.body), limits, signal);
    const { answer } = outcome;
    if (answer === undefined) {
      const { sent, error } = outcome;
      // A write that had left may be carried out: that must not look like one that never was.
      if (error instanceof CalledOff && !(sent && call.method !== 'GET')) throw error.cause;
      heard?.(call.method, undefined);
      throw unanswered(asked, base.origin, sent, error);
    }
    heard?.(call.method, answer.status);
    if (answer.status !== EXPECTED[call.method]) throw refused(asked, answer, clock.now());
    try {
      return call.read(answer);
    } catch (error) {
      throw unusable(asked, answer, error instanceof Error ? error : new Error(String(error)));
    }
  };
}

function sending({ method, path, key }: Asked, body: object | undefined) {
  const headers = { Authorization: key, Accept: 'application/json' };
  if (body === undefined) return { method, path, headers, body: null };
  // Without a charset: eLabFTW refuses the type with one.
  const typed = { ...headers, 'Content-Type': 'application/json' };
  return { method, path, headers: typed, body: JSON.stringify(body) };
}

/** A key that cannot be had or sent is like one that the server refuses: everybody waits for a better one. */
function present(key: () => string): string {
  const hint = 'check where `notebook.key` points';
  let text: string;
  try {
    text = key();
  } catch (cause) {
    const why = quote([explain(cause)], '');
    throw new NotebookError('auth', `the API key cannot be read: ${why}`, { hint, cause });
  }
  if (isKey(text)) return text;
  const what = text === '' ? 'is empty' : 'has spaces or characters that no header can carry';
  throw new NotebookError('auth', `the API key ${what}`, { hint });
}

/** Where a request goes, and whom its refusal concerns. */
interface Target {
  /** Below `/api/v2`. */
  readonly path: string;
  readonly on: Subject;
}

/** What comments belong to. A bare number is an experiment, the one type that the contract names. */
type Entity = number | { readonly type: string; readonly id: number };

const EXPERIMENTS: Target = { path: '/experiments', on: 'experiments' };

const KEYS: Target = { path: '/apikeys', on: 'keys' };

const experiment = (id: number): Target => entry(`/experiments/${checked(id, 'an experiment')}`);

/** eLabFTW's own: the contract has tags in the PATCH. */
const tags = (id: number): Target => entry(`${experiment(id).path}/tags`);

const tag = (id: number, tagId: number): Target => entry(`${tags(id).path}/${checked(tagId, 'a tag')}`);

/** So many of the last changed ones are enough to know. */
const MOST_FOUND = 10;

/** eLabFTW's own: its search, also of what is archived or deleted. Texts are without quotes. */
function holding(texts: readonly string[]): Target {
  const extended = texts.map((text) => `body:"${text}"`).join(' AND ');
  const query = new URLSearchParams({ extended, state: '1,2,3', limit: String(MOST_FOUND) });
  return { path: `${EXPERIMENTS.path}?${query}`, on: 'experiments' };
}

const comments = (entity: Entity): Target => entry(`${addressOf(entity)}/comments`);

const comment = (entity: Entity, id: number): Target =>
  entry(`${addressOf(entity)}/comments/${checked(id, 'a comment')}`);

const key = (id: number): Target => ({ path: `/apikeys/${checked(id, 'an API key')}`, on: 'keys' });

const entry = (path: string): Target => ({ path, on: 'entry' });

function addressOf(entity: Entity): string {
  if (typeof entity === 'number') return experiment(entity).path;
  const { type, id } = entity;
  if (!/^[a-z][a-z_]*$/.test(type)) throw refusal(`${JSON.stringify(type)} is not a type of entity`);
  return `/${type}/${checked(id, 'an entity')}`;
}

/** A wrong id must not become a URL: eLabFTW answers `/experiments/0` with the list of all, and 200. */
function checked(id: number, what: string): number {
  if (!isId(id)) throw refusal(`${String(id)} is not the id of ${what}`);
  return id;
}

const refusal = (message: string): NotebookError =>
  new NotebookError('request', message, { hint: 'ids are whole numbers from 1 on' });
