import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isDate, notFound, Refusal, readBody, readId, resource, type SandboxRequest } from './http.js';
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
  readComment,
  readExperiment,
  type Store,
  useKey,
} from './store.js';

/** The API exactly as the contract describes it. `origin` is the address that the server believes it has. */
export function serveContract(api: FastifyInstance, store: Store, origin: () => string): void {
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
    throw badRequest(`the body is not JSON: ${error instanceof Error ? error.message : error}`);
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
