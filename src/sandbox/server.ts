import { isUtf8 } from 'node:buffer';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { z } from 'zod';
import { type Clock, systemClock } from '../clock.js';
import { explain, LabfeedError, systemCode } from '../errors.js';
import type { Log } from '../log.js';
import type { Dialect } from '../model.js';
import { serveElabftw } from './elabftw/api.js';
import { answerErrors, isDate, notFound, Refusal, readBody, readId, resource, type SandboxRequest } from './http.js';
import { servePages } from './page.js';
import {
  changeComment,
  changeExperiment,
  createComment,
  createExperiment,
  createKey,
  deleteComment,
  deleteKey,
  type Experiment,
  listComments,
  listKeys,
  openStore,
  ownKey,
  readComment,
  readExperiment,
  type Store,
  useKey,
} from './store.js';

/** How long requests in flight may take when the sandbox stops. Browsers keep idle connections open for longer. */
const STOP_GRACE_MS = 1_000;

export interface SandboxOptions {
  /** Where the notebook is stored: a path, or `:memory:`. */
  readonly file: string;
  readonly host?: string;
  /** 0: any free port. */
  readonly port: number;
  /** `v2`: the contract to the letter (default). `elabftw`: as eLabFTW implements it. */
  readonly dialect?: Dialect;
  /** `elabftw` only: a longer upload gets 413. */
  readonly maxUploadBytes?: number;
  /** `elabftw` only: the team creates experiments from templates only. */
  readonly forcesTemplate?: boolean;
  readonly log?: Log;
  readonly clock?: Clock;
  /**
   * Called at each start before the routes are added, so that hooks added to `api` see every request first.
   * Tests inject faults with it.
   */
  readonly intercept?: (api: FastifyInstance, store: Store) => void;
}

export type Sandbox = ReturnType<typeof createSandbox>;

/** The built-in notebook: an HTTP server over one data file. */
export function createSandbox(options: SandboxOptions) {
  const { file, host = '127.0.0.1', port, clock = systemClock, log } = options;
  let running: { readonly app: FastifyInstance; readonly store: Store } | undefined;

  async function stop(): Promise<void> {
    if (!running) return;
    const { app, store } = running;
    running = undefined;
    const deadline = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS);
    await app.close();
    clearTimeout(deadline);
    store.close();
  }

  return {
    /** Returns the address and a read-write key, which is always the same for one data file. */
    async start(): Promise<{ url: string; key: string }> {
      if (running) throw new Error('the sandbox is already running');
      const store = openStore(file, clock);
      const app = buildServer(store, options);
      running = { app, store };
      try {
        const url = await app.listen({ host, port });
        log?.info({ url, file }, 'sandbox listening');
        return { url, key: ownKey(store) };
      } catch (error) {
        await stop();
        throw explainListening(error, host, port);
      }
    },
    stop,
  };
}

function buildServer(store: Store, options: SandboxOptions): FastifyInstance {
  const { dialect = 'v2', intercept, log } = options;
  const onError = answerErrors(log);
  // The contract has no HEAD.
  const app = fastify({ exposeHeadRoutes: false, frameworkErrors: onError });
  app.setErrorHandler(onError);
  app.setNotFoundHandler((request) => {
    throw notFound(`path ${request.url}`);
  });
  // The pages ignore bodies.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume();
    done(null);
  });
  app.addHook('onResponse', async ({ method, url }, { statusCode: status, elapsedTime: ms }) => {
    log?.debug({ method, url, status, ms }, 'sandbox request');
  });

  app.register(
    async (api) => {
      intercept?.(api, store);
      if (dialect === 'v2') serveContract(api, store, () => app.listeningOrigin);
      else serveElabftw(api, store, options);
    },
    { prefix: '/api/v2' },
  );
  app.register(async (pages) => servePages(pages, store));
  return app;
}

function explainListening(error: unknown, host: string, port: number): unknown {
  const fail = (reason: string, hint?: string) =>
    new LabfeedError(`the sandbox cannot listen: ${reason}`, { hint, cause: error });
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return fail(
        `port ${port} is in use`,
        'stop the program that uses it, or choose another port with --port (0: any free port)',
      );
    case 'EACCES':
      return fail(`port ${port} needs root privileges`, 'choose a port above 1023 with --port (0: any free port)');
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return fail(`${host} is not an address of this machine`);
    default:
      return error;
  }
}

/** The API exactly as the contract describes it. `origin` is the address that the server believes it has. */
function serveContract(api: FastifyInstance, store: Store, origin: () => string): void {
  const created: AnswerCreated = (reply, path) =>
    reply.code(201).header('location', `${origin()}/api/v2${path}`).send();
  enforceConventions(api, store);
  serveExperiments(api, store, created);
  serveComments(api, store, created);
  serveKeys(api, store, created);
}

/** Answers a creation: 201, the address of the new record, and no body. */
type AnswerCreated = (reply: FastifyReply, path: string) => FastifyReply;

const badRequest = (message: string) => new Refusal(400, message);

/** Checks the general conventions before a route is reached. What the contract does not rule out is accepted. */
function enforceConventions(api: FastifyInstance, store: Store): void {
  api.addHook('onRequest', async (request) => {
    authorise(request, store);
    if (!acceptsJson(request)) throw badRequest('requests must accept application/json');
    if (request.is404) throw notFound(`path ${request.url}`);
  });
  api.addHook('preParsing', async (request) => checkContentType(request));
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', (_request: FastifyRequest, payload: AsyncIterable<Buffer>) => readJson(payload));
  // Set within the prefix of the API, so that the hooks above run for unknown paths too.
  api.setNotFoundHandler((request) => {
    throw notFound(`path ${request.url}`);
  });
}

function authorise({ headers, method }: FastifyRequest, store: Store): void {
  if (!headers.authorization) throw new Refusal(401, 'the Authorization header with an API key is missing');
  const key = useKey(store, headers.authorization);
  if (!key) throw new Refusal(401, 'unknown API key');
  if (method !== 'GET' && !key.can_write) throw new Refusal(403, 'the API key is read-only');
}

/** A request without Accept accepts everything, by the rules of HTTP. */
function acceptsJson({ headers }: FastifyRequest): boolean {
  const types = (headers.accept ?? '*/*').split(',').map((type) => type.split(';', 1)[0]?.trim().toLowerCase());
  return ['application/json', 'application/*', '*/*'].some((type) => types.includes(type));
}

function checkContentType({ headers, method }: FastifyRequest): void {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (hasBody && (method === 'GET' || method === 'DELETE')) throw badRequest(`${method} takes no body`);
  if (hasBody && !/^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(headers['content-type'] ?? '')) {
    throw badRequest('a request with a body must send Content-Type: application/json');
  }
}

async function readJson(payload: AsyncIterable<Buffer>): Promise<object | undefined> {
  const bytes = await readBody(payload);
  if (!bytes) throw new Refusal(413, 'the body is too large');
  if (bytes.length === 0) return undefined;
  // Decoding would silently replace invalid bytes.
  if (!isUtf8(bytes)) throw badRequest('the body is not UTF-8');
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch (error) {
    throw badRequest(`the body is not JSON: ${explain(error)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest('the body must be a JSON object');
  }
  return value;
}

/** All fields are validated before any is used: a request is carried out in full or not at all. */
function readFields<S extends z.ZodObject>(body: unknown, fields: S): z.output<S> {
  const { success, data, error } = fields.safeParse(body ?? {});
  if (success) return data;
  const [issue] = error.issues;
  if (issue?.code === 'unrecognized_keys') {
    throw badRequest(`unknown field ${JSON.stringify(issue.keys[0])}; known: ${Object.keys(fields.shape).join(', ')}`);
  }
  const field = issue?.path.map((part) => (typeof part === 'number' ? `[${part}]` : part)).join('');
  const status = issue?.code === 'custom' && issue.params?.['status'];
  throw new Refusal(typeof status === 'number' ? status : 400, `${field} ${issue?.message}`);
}

function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw badRequest(`the field ${field} is missing`);
  return value;
}

function found<T>(record: T | undefined, what: string): T {
  if (record === undefined) throw notFound(what);
  return record;
}

/** `status`: how text that does not fit is refused, because not every operation has a 422. */
function text({ maxCharacters = Infinity, maxBytes = Infinity, status = 422 } = {}) {
  const params = { status };
  return (
    z
      .string('must be a string')
      // A lone surrogate has no UTF-8 form, and SQLite ends a text at NUL: neither could be read back unchanged.
      .refine((value) => !/\p{Surrogate}/u.test(value), 'is not valid Unicode')
      .refine((value) => !value.includes('\0'), { error: 'contains a NUL character', params })
      .refine((value) => value.length <= maxCharacters || [...value].length <= maxCharacters, {
        error: `is longer than ${maxCharacters} characters`,
        params,
      })
      .refine((value) => Buffer.byteLength(value) <= maxBytes, { error: `is longer than ${maxBytes} bytes`, params })
  );
}

const filledText = (limits: Parameters<typeof text>[0]) =>
  text(limits).refine((value) => value.trim() !== '', 'must not be empty');

const EXPERIMENT_FIELDS = z.strictObject({
  title: text({ maxCharacters: 255 }).exactOptional(),
  date: z
    .string('must be a string')
    .refine(isDate, { error: 'must be an existing date of the form YYYY-MM-DD', params: { status: 422 } })
    .exactOptional(),
  body: text({ maxBytes: 4_120_000 }).exactOptional(),
  tags: z.array(filledText({ maxCharacters: 255 }), 'must be an array').exactOptional(),
});

function recordOf(experiment: Experiment) {
  const { id, title, date, body, tags, created_at, modified_at, userid } = experiment;
  return { id, title, date, body, tags, created_at, modified_at, userid };
}

function serveExperiments(api: FastifyInstance, store: Store, created: AnswerCreated): void {
  resource(api, '/experiments', {
    POST: (request, reply) => {
      const id = createExperiment(store, readFields(request.body, EXPERIMENT_FIELDS));
      return created(reply, `/experiments/${id}`);
    },
  });

  resource(api, '/experiments/:id', {
    GET: (request, reply) => {
      const id = readId(request.params['id'], 'id');
      return reply.send(recordOf(found(readExperiment(store, id), `experiment ${id}`)));
    },
    PATCH: (request, reply) => {
      const id = readId(request.params['id'], 'id');
      const fields = readFields(request.body, EXPERIMENT_FIELDS);
      if (Object.keys(fields).length === 0) {
        throw badRequest(`nothing to change; fields: ${Object.keys(EXPERIMENT_FIELDS.shape).join(', ')}`);
      }
      return reply.send(recordOf(found(changeExperiment(store, id, fields), `experiment ${id}`)));
    },
  });
}

// The contract has no 422 for comments, so text that does not fit gets 400.
const COMMENT_FIELDS = z.strictObject({ comment: filledText({ maxBytes: 65_535, status: 400 }).exactOptional() });

const commentIn = (body: unknown) => required(readFields(body, COMMENT_FIELDS).comment, 'comment');

const idsIn = ({ params }: SandboxRequest) => [readId(params['id'], 'id'), readId(params['subid'], 'subid')] as const;

const nameOf = (experiment: number, id: number) => `comment ${id} on experiment ${experiment}`;

/** Only experiments have comments here. The path of any other entity type is unknown. */
function serveComments(api: FastifyInstance, store: Store, created: AnswerCreated): void {
  resource(api, '/experiments/:id/comments', {
    GET: (request, reply) => {
      const experiment = readId(request.params['id'], 'id');
      found(readExperiment(store, experiment), `experiment ${experiment}`);
      return reply.send(listComments(store, experiment));
    },
    POST: (request, reply) => {
      const experiment = readId(request.params['id'], 'id');
      const id = createComment(store, experiment, commentIn(request.body));
      return created(reply, `/experiments/${experiment}/comments/${found(id, `experiment ${experiment}`)}`);
    },
  });

  resource(api, '/experiments/:id/comments/:subid', {
    GET: (request, reply) => {
      const [experiment, id] = idsIn(request);
      return reply.send(found(readComment(store, experiment, id), nameOf(experiment, id)));
    },
    PATCH: (request, reply) => {
      const [experiment, id] = idsIn(request);
      const comment = commentIn(request.body);
      return reply.send(found(changeComment(store, experiment, id, comment), nameOf(experiment, id)));
    },
    DELETE: (request, reply) => {
      const [experiment, id] = idsIn(request);
      if (!deleteComment(store, experiment, id)) throw notFound(nameOf(experiment, id));
      return reply.code(204).send();
    },
  });
}

const KEY_FIELDS = z.strictObject({
  name: filledText({ maxCharacters: 255 }).exactOptional(),
  canwrite: z
    .number('must be the number 0 or 1')
    .refine((value) => value === 0 || value === 1, { error: 'must be 0 or 1', params: { status: 422 } })
    .exactOptional(),
});

function serveKeys(api: FastifyInstance, store: Store, created: AnswerCreated): void {
  resource(api, '/apikeys', {
    GET: (_request, reply) => reply.send(listKeys(store).map(({ hash: _, ...record }) => record)),
    POST: (request, reply) => {
      const { name, canwrite } = readFields(request.body, KEY_FIELDS);
      const key = createKey(store, required(name, 'name'), required(canwrite, 'canwrite') === 1);
      return created(reply, `/apikeys/${key}`);
    },
  });

  resource(api, '/apikeys/:id', {
    DELETE: (request, reply) => {
      // The contract has no 404 here: a missing key counts as deleted.
      deleteKey(store, readId(request.params['id'], 'id'));
      return reply.code(204).send();
    },
  });
}
