import { type Dispatcher, Pool, ProxyAgent } from 'undici';
import { explain, NotebookError } from '../errors.js';
import { proxyFor } from '../system/process.js';
import { connectionError, quote, type RequestInfo, responseError, type Subject, statusError } from './errors.js';
import {
  exchange,
  type FileToSend,
  type Form,
  formOf,
  type HttpResponse,
  MAX_ERROR_BYTES,
  type Method,
  SUCCESS_STATUS,
} from './http.js';
import {
  isId,
  isKey,
  readComment,
  readComments,
  readCreatedId,
  readCreatedKey,
  readExperiment,
  readExperiments,
  readForcesTemplate,
  readKeys,
  readNamed,
  readPatched,
  readPatchedExperiment,
  readTags,
  readUploads,
} from './responses.js';

export interface NotebookOptions {
  /** Base address, to which `/api/v2` is appended. */
  readonly url: string;
  /** Called before each request, so that a replaced key is used. */
  readonly key: () => string;
  /** For one request, from connecting to the last byte of the response. */
  readonly timeoutMs: number;
  readonly connections: number;
  /** The certificates of the authority to trust instead of the public ones, as PEM. */
  readonly ca?: string | undefined;
  /** The name of the text field of a comment, which the contract does not show. */
  readonly commentField: string;
  /** The rate limiter. It sees the failure of each request. */
  readonly schedule?: <T>(request: () => Promise<T>, isWrite?: boolean) => Promise<T>;
  /** Called after each request with its status, or undefined if there was no response. */
  readonly onResponse?: ((method: Method, status: number | undefined) => void) | undefined;
}

export type Notebook = ReturnType<typeof createNotebook>;

interface ExperimentChanges {
  readonly title?: string;
  /** YYYY-MM-DD. */
  readonly date?: string;
  readonly body?: string;
  /** 1 is HTML. eLabFTW only. */
  readonly content_type?: number;
  readonly tags?: readonly string[];
}

/** Beyond the contract. */
interface ExperimentExtras {
  readonly category?: number;
  readonly status?: number;
  readonly canread_base?: number;
  readonly canwrite_base?: number;
}

interface FilledCreation extends ExperimentExtras {
  readonly title: string;
  readonly body: string;
  readonly content_type: number;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: object | undefined;
}

/** eLabFTW's names; the contract does not show them. */
interface NewKey {
  readonly name?: string;
  readonly canwrite?: 0 | 1;
}

/** The operations of the contract, and eLabFTW's tags and search. Each is one request and rejects with a NotebookError. */
export function createNotebook(options: NotebookOptions) {
  const connection = new Connection(options);
  const get = <T>(target: Target, read: Read<T>) => connection.request({ method: 'GET', target, read });
  const post = <T>(target: Target, body: object, read: Read<T>) =>
    connection.request({ method: 'POST', target, body, read });
  const patch = <T>(target: Target, body: object, read: Read<T>, check?: () => void) =>
    connection.request({ method: 'PATCH', target, body, read, check });
  const remove = (target: Target) => connection.request({ method: 'DELETE', target, read: () => undefined });
  const textOf = (text: string) => ({ [options.commentField]: text });
  return {
    /** Resolves with the id. No tags: a POST with a tag that the team forbids fails although the experiment is created. */
    createExperiment: async ({
      title,
      template,
    }: {
      readonly title?: string;
      readonly template?: number | undefined;
    } = {}) => post(EXPERIMENTS, { title, template }, readCreatedId),
    /** eLabFTW only: a creation that carries what its PATCH would. */
    createFilledExperiment: async (content: FilledCreation) => post(EXPERIMENTS, content, readCreatedId),
    readExperiment: async (id: number) => get(experiment(id), readExperiment(id)),
    /** Resolves with the experiment, if the server returns it. If `check` throws when it is its turn, it is not sent. */
    patchExperiment: async (id: number, changes: ExperimentChanges, check?: () => void) =>
      patch(experiment(id), inOrder(changes), readPatchedExperiment(id), check),

    /** eLabFTW only, as are the next two. Metadata is JSON in a string, unlike in a creation. */
    patchExtras: async (id: number, changes: ExperimentExtras & { readonly metadata?: string }) =>
      patch(experiment(id), changes, readPatched),
    /** Idempotent. */
    linkItem: async (id: number, item: number) => post(itemLink(id, item), {}, () => undefined),
    /** Whether the team creates experiments from templates only. */
    forcesTemplate: async () => get({ path: '/teams/current', subject: 'entry' }, readForcesTemplate),
    listNamed: async (kind: keyof typeof NAMED, wanted: string | number) => get(NAMED[kind](wanted), readNamed),

    /** eLabFTW only, as are the next four: its PATCH does not accept tags. Idempotent. */
    addTag: async (id: number, tag: string) => post(tags(id), { tag }, () => undefined),
    listTags: async (id: number) => get(tags(id), readTags),
    /** Removes the tag from this experiment. Idempotent. */
    removeTag: async (id: number, tagId: number) => patch(tag(id, tagId), { action: 'unreference' }, readPatched),
    /** The most recently changed experiments whose bodies contain all of these texts. */
    searchBodies: async (texts: readonly string[]) => get(search('body', texts, MAX_FOUND), readExperiments),
    /** The most recently changed experiments whose titles contain this text. */
    searchTitles: async (text: string, limit: number) => get(search('title', [text], limit), readExperiments),
    /** The experiment with the highest id that the key may read; none if there is no such experiment. */
    newestExperiments: async () => get(NEWEST, readExperiments),

    /** eLabFTW only, as are the next two: the attached files of an experiment, including archived and deleted ones. */
    listUploads: async (id: number) => get(allUploads(id), readUploads),
    /** Resolves with the id, also of a new version. The time limit grows with the size. */
    uploadFile: async (id: number, file: FileToSend) => {
      const { replaces } = file;
      const target = replaces === undefined ? uploads(id) : upload(id, replaces);
      return connection.request({ method: 'POST', target, form: formOf(file), read: readCreatedId });
    },
    deleteUpload: async (id: number, one: number) => remove(upload(id, one)),

    listComments: async (entity: Entity) => get(comments(entity), readComments),
    readComment: async (entity: Entity, id: number) => get(comment(entity, id), readComment(id)),
    /** Resolves with the id. */
    postComment: async (entity: Entity, text: string) => post(comments(entity), textOf(text), readCreatedId),
    patchComment: async (entity: Entity, id: number, text: string) =>
      patch(comment(entity, id), textOf(text), readComment(id)),
    deleteComment: async (entity: Entity, id: number) => remove(comment(entity, id)),

    listKeys: async () => get(KEYS, readKeys),
    /** Resolves with the cleartext of the key, which the server shows once. */
    createKey: async ({ name, canwrite }: NewKey = {}) => post(KEYS, { name, canwrite }, readCreatedKey),
    deleteKey: async (id: number) => remove(key(id)),

    /** Waits for pending requests, then closes the connections. */
    close: () => connection.close(),
  };
}

/**
 * eLabFTW rejects a PATCH with an unknown name after saving what comes before it. Tags may be rejected, so they are
 * last.
 */
const inOrder = ({ title, date, body, content_type, tags }: ExperimentChanges): object => ({
  title,
  date,
  body,
  content_type,
  tags,
});

/**
 * What the operation can need at most. A body in eLabFTW may have 16 MB, and a list all comments of an experiment. The
 * responses to POST and DELETE are read for an error message only.
 */
function maxBytes(method: Method, subject: Subject): number {
  if (method === 'POST' || method === 'DELETE') return MAX_ERROR_BYTES;
  return (subject === 'keys' ? 1 : 16) * 2 ** 20;
}

/** Longer idle connections are replaced: if a firewall has dropped one, the next POST would get no response. */
const MAX_IDLE_MS = 20_000;

/** An upload may take as long as it needs at 500 kB a second, in addition to the time limit of any request. */
const SLOWEST_BYTES_PER_MS = 500;

type Read<T> = (response: HttpResponse) => T;

interface Request<T> {
  readonly method: Method;
  readonly target: Target;
  readonly body?: object;
  /** Instead of a JSON body. */
  readonly form?: Form;
  readonly read: Read<T>;
  /** Called when it is the request's turn. If it throws, nothing is sent. */
  readonly check?: (() => void) | undefined;
}

/** Kept-alive connections to the API. Opens nothing before the first request. */
class Connection {
  readonly #options: NotebookOptions;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #pool: Dispatcher;
  /** The origin, and the proxy on the way to it. */
  readonly #route: string;
  readonly #pending = new Set<Promise<unknown>>();

  constructor(options: NotebookOptions) {
    const url = new URL(options.url);
    const proxy = proxyFor(url);
    this.#options = options;
    this.#origin = url.origin;
    this.#prefix = `${url.pathname.replace(/\/+$/, '')}/api/v2`;
    this.#pool = openPool(url.origin, proxy, options);
    this.#route = proxy ? `${url.origin} through the proxy ${proxy.origin}` : url.origin;
  }

  async request<T>(request: Request<T>): Promise<T> {
    const { schedule = (send) => send() } = this.#options;
    const scheduled = schedule(() => this.#send(request), request.method !== 'GET');
    this.#pending.add(scheduled);
    try {
      return await scheduled;
    } finally {
      this.#pending.delete(scheduled);
    }
  }

  /** `destroy` also ends attempts to connect that nobody waits for. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    await this.#pool.destroy();
  }

  /** Rejects with a NotebookError, or with what `check` throws. */
  async #send<T>({ method, target: { path, subject }, body, form, read, check }: Request<T>): Promise<T> {
    check?.();
    const { onResponse } = this.#options;
    const timeoutMs = this.#options.timeoutMs + (form ? form.length / SLOWEST_BYTES_PER_MS : 0);
    const request: RequestInfo = {
      method,
      path: this.#prefix + path,
      subject,
      key: readKey(this.#options),
      origin: this.#origin,
    };
    const limits = { timeoutMs, maxBytes: maxBytes(method, subject) };
    const result = await exchange(this.#pool, toHttp(request, body, form), limits);
    if (result.response === undefined) {
      const { isSent, error } = result;
      onResponse?.(method, undefined);
      throw connectionError(request, this.#route, isSent, error);
    }
    const { response } = result;
    onResponse?.(method, response.status);
    if (response.status !== SUCCESS_STATUS[method]) throw statusError(request, response, Date.now());
    try {
      return read(response);
    } catch (error) {
      throw responseError(request, response, error instanceof Error ? error : new Error(String(error)));
    }
  }
}

function openPool(origin: string, proxy: URL | undefined, { connections, timeoutMs, ca }: NotebookOptions): Dispatcher {
  // Explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED=0 does not apply: any server could get the key.
  const tls = { timeout: timeoutMs, rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
  const options = {
    connections,
    // One request per connection at a time: undici may repeat a pipelined request by itself.
    pipelining: 1,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    keepAliveMaxTimeout: MAX_IDLE_MS,
  };
  if (!proxy) return new Pool(origin, { connect: tls, ...options });
  const agent = new ProxyAgent({
    uri: proxy.href,
    requestTls: tls,
    proxyTls: { timeout: timeoutMs, rejectUnauthorized: true },
    ...options,
  });
  return agent.compose((dispatch) => (request, handler) => dispatch({ origin, ...request }, handler));
}

function toHttp({ method, path, key }: RequestInfo, body: object | undefined, form: Form | undefined) {
  const headers = { Authorization: key, Accept: 'application/json' };
  if (form) {
    const typed = { ...headers, 'Content-Type': form.type, 'Content-Length': String(form.length) };
    return { method, path, headers: typed, body: form.open() };
  }
  if (body === undefined) return { method, path, headers, body: null };
  // Without a charset, which eLabFTW rejects.
  const typed = { 'Content-Type': 'application/json', ...headers };
  return { method, path, headers: typed, body: JSON.stringify(body) };
}

/** A key that cannot be read or sent is like one that the server rejects: all requests wait for a better one. */
function readKey({ key }: NotebookOptions): string {
  const hint = 'check the location given in `notebook.key`';
  let text: string;
  try {
    text = key();
  } catch (cause) {
    throw new NotebookError('auth', `cannot read the API key: ${quote([explain(cause)], '')}`, { hint, cause });
  }
  if (isKey(text)) return text;
  const problem = text === '' ? 'is empty' : 'contains spaces or characters that are not allowed in an HTTP header';
  throw new NotebookError('auth', `the API key ${problem}`, { hint });
}

interface Target {
  /** Below `/api/v2`. */
  readonly path: string;
  readonly subject: Subject;
}

/** What comments belong to. A number is an experiment, the only type that the contract names. */
type Entity = number | { readonly type: string; readonly id: number };

const EXPERIMENTS: Target = { path: '/experiments', subject: 'experiments' };

const KEYS: Target = { path: '/apikeys', subject: 'keys' };

const key = (id: number): Target => ({ path: `/apikeys/${checked(id, 'an API key')}`, subject: 'keys' });

const entry = (path: string): Target => ({ path, subject: 'entry' });

const experiment = (id: number): Target => entry(`/experiments/${checked(id, 'an experiment')}`);

const tags = (id: number): Target => entry(`${experiment(id).path}/tags`);

const tag = (id: number, tagId: number): Target => entry(`${tags(id).path}/${checked(tagId, 'a tag')}`);

const itemLink = (id: number, item: number): Target =>
  entry(`${experiment(id).path}/items_links/${checked(item, 'a resource')}`);

const list = (path: string, query: Readonly<Record<string, string>> = {}): Target => ({
  path: `${path}?${new URLSearchParams({ limit: '1000', ...query })}`,
  subject: 'experiments',
});

/** Where eLabFTW lists what has a name and an id. */
const NAMED = {
  category: () => list('/teams/current/experiments_categories'),
  status: () => list('/teams/current/experiments_status'),
  template: () => list('/experiments_templates'),
  link: (wanted: string | number) => list('/items', { q: String(wanted) }),
} as const;

const uploads = (id: number): Target => entry(`${experiment(id).path}/uploads`);

const upload = (id: number, one: number): Target => entry(`${uploads(id).path}/${checked(one, 'an attached file')}`);

const allUploads = (id: number): Target => entry(`${uploads(id).path}?state=1,2,3`);

const comments = (entity: Entity): Target => entry(`${entityPath(entity)}/comments`);

const comment = (entity: Entity, id: number): Target =>
  entry(`${entityPath(entity)}/comments/${checked(id, 'a comment')}`);

const MAX_FOUND = 10;

/** Includes archived and deleted experiments. The texts must not contain quotes. */
function search(field: 'body' | 'title', texts: readonly string[], limit: number): Target {
  const extended = texts.map((text) => `${field}:"${text}"`).join(' AND ');
  const query = new URLSearchParams({ extended, state: '1,2,3', limit: String(limit) });
  return { path: `${EXPERIMENTS.path}?${query}`, subject: 'experiments' };
}

const NEWEST: Target = {
  path: `${EXPERIMENTS.path}?${new URLSearchParams({ order: 'id', sort: 'desc', state: '1,2,3', limit: '1' })}`,
  subject: 'experiments',
};

function entityPath(entity: Entity): string {
  if (typeof entity === 'number') return experiment(entity).path;
  const { type, id } = entity;
  if (!/^[a-z][a-z_]*$/.test(type)) throw new NotebookError('request', `${JSON.stringify(type)} is not an entity type`);
  return `/${type}/${checked(id, 'an entity')}`;
}

/** A wrong id must not become a URL: eLabFTW responds to `/experiments/0` with the list of all, and 200. */
function checked(id: number, what: string): number {
  if (isId(id)) return id;
  throw new NotebookError('request', `${id} is not the id of ${what}`, { hint: 'ids are positive integers' });
}
