import type { FastifyInstance } from 'fastify';
import {
  type AnswerCreated,
  badRequest,
  notFound,
  type Refusal,
  readId,
  resource,
  type SandboxRequest,
  unprocessable,
} from './requests.js';
import type { Store } from './store.js';

/** Takes a field's value from a request's body, or refuses it. */
type Reader<T> = (value: unknown, field: string) => T;

type Readers = Readonly<Record<string, Reader<unknown>>>;
type Fields<R extends Readers> = { [Field in keyof R]?: ReturnType<R[Field]> };

/**
 * Reads a body whose fields are all optional. Everything is checked before anything is returned:
 * a request is carried out whole or not at all.
 */
function readFields<R extends Readers>(body: unknown, readers: R): Fields<R> {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(body ?? {})) {
    const read = Object.hasOwn(readers, field) ? readers[field] : undefined;
    if (!read) {
      throw badRequest(`unknown field ${JSON.stringify(field)}; known: ${Object.keys(readers).join(', ')}`);
    }
    fields[field] = read(value, field);
  }
  return fields as Fields<R>;
}

function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw badRequest(`the field ${field} is missing`);
  return value;
}

function found<T>(record: T | undefined, what: string): T {
  if (record === undefined) throw notFound(what);
  return record;
}

interface TextLimits {
  readonly maxCharacters?: number;
  readonly maxBytes?: number;
  readonly blank?: 'refused';
  /** What answers a text of the right type that does not fit. Not every operation knows a 422. */
  readonly refuse?: (message: string) => Refusal;
}

function text(limits: TextLimits = {}): Reader<string> {
  const { maxCharacters = Infinity, maxBytes = Infinity, blank, refuse = unprocessable } = limits;
  return (value, field) => {
    if (typeof value !== 'string') throw badRequest(`${field} must be a string`);
    if (blank && value.trim() === '') throw badRequest(`${field} must not be empty`);
    // Half a surrogate pair has no UTF-8, and SQLite ends a text at NUL: both would come back changed.
    if (/\p{Surrogate}/u.test(value)) throw badRequest(`${field} is not valid Unicode`);
    if (value.includes('\0')) throw refuse(`${field} has a NUL character`);
    if (value.length > maxCharacters && [...value].length > maxCharacters) {
      throw refuse(`${field} is longer than ${maxCharacters} characters`);
    }
    if (Buffer.byteLength(value) > maxBytes) throw refuse(`${field} is longer than ${maxBytes} bytes`);
    return value;
  };
}

/** A day that is in the calendar, as YYYY-MM-DD. */
const calendarDate: Reader<string> = (value, field) => {
  if (typeof value !== 'string') throw badRequest(`${field} must be a string`);
  const day = /^\d{4}-\d{2}-\d{2}$/.test(value) ? new Date(`${value}T00:00:00Z`) : undefined;
  // Some engines roll 30 February over into March.
  if (!day || Number.isNaN(day.getTime()) || !day.toISOString().startsWith(value)) {
    throw unprocessable(`${field} must be a date of the form YYYY-MM-DD that exists`);
  }
  return value;
};

function listOf<T>(read: Reader<T>): Reader<readonly T[]> {
  return (value, field) => {
    if (!Array.isArray(value)) throw badRequest(`${field} must be an array`);
    return value.map((item: unknown, index) => read(item, `${field}[${index}]`));
  };
}

/** A switch as the notebook writes it: the number 0 or 1. */
const zeroOrOne: Reader<0 | 1> = (value, field) => {
  if (typeof value !== 'number') throw badRequest(`${field} must be the number 0 or 1`);
  if (value !== 0 && value !== 1) throw unprocessable(`${field} must be 0 or 1`);
  return value;
};

const EXPERIMENT_FIELDS = {
  title: text({ maxCharacters: 255 }),
  date: calendarDate,
  body: text({ maxBytes: 4_120_000 }),
  tags: listOf(text({ maxCharacters: 255, blank: 'refused' })),
};

export function serveExperiments(
  api: FastifyInstance,
  experiments: Store['experiments'],
  created: AnswerCreated,
  keepsTitle: boolean,
): void {
  resource(api, '/experiments', {
    POST: (request, reply) => {
      const fields = readFields(request.body, EXPERIMENT_FIELDS);
      return created(reply, `/experiments/${experiments.create(keepsTitle ? fields : {})}`);
    },
  });

  resource(api, '/experiments/:id', {
    GET: (request, reply) => {
      const id = readId(request.params['id'], 'id');
      return reply.send(found(experiments.read(id), `experiment ${id}`));
    },
    PATCH: (request, reply) => {
      const id = readId(request.params['id'], 'id');
      const fields = readFields(request.body, EXPERIMENT_FIELDS);
      if (Object.keys(fields).length === 0) {
        throw badRequest(`there is nothing to change; fields: ${Object.keys(EXPERIMENT_FIELDS).join(', ')}`);
      }
      return reply.send(found(experiments.change(id, fields), `experiment ${id}`));
    },
  });
}

// The contract lists no 422 for comments: what does not fit is a bad request.
const COMMENT_FIELDS = { comment: text({ blank: 'refused', maxBytes: 65_535, refuse: badRequest }) };

const readComment = (body: unknown) => required(readFields(body, COMMENT_FIELDS).comment, 'comment');

const readIds = ({ params }: SandboxRequest) =>
  [readId(params['id'], 'id'), readId(params['subid'], 'subid')] as const;

const nameOf = (experiment: number, id: number) => `comment ${id} of experiment ${experiment}`;

/** Comments belong to experiments here; any other entity type is a path that this notebook does not have. */
export function serveComments(
  api: FastifyInstance,
  { experiments, comments }: Pick<Store, 'experiments' | 'comments'>,
  created: AnswerCreated,
): void {
  resource(api, '/experiments/:id/comments', {
    GET: (request, reply) => {
      const experiment = readId(request.params['id'], 'id');
      if (!experiments.exists(experiment)) throw notFound(`experiment ${experiment}`);
      return reply.send(comments.list(experiment));
    },
    POST: (request, reply) => {
      const experiment = readId(request.params['id'], 'id');
      const id = comments.create(experiment, readComment(request.body));
      return created(reply, `/experiments/${experiment}/comments/${found(id, `experiment ${experiment}`)}`);
    },
  });

  resource(api, '/experiments/:id/comments/:subid', {
    GET: (request, reply) => {
      const [experiment, id] = readIds(request);
      return reply.send(found(comments.read(experiment, id), nameOf(experiment, id)));
    },
    PATCH: (request, reply) => {
      const [experiment, id] = readIds(request);
      const comment = readComment(request.body);
      return reply.send(found(comments.change(experiment, id, comment), nameOf(experiment, id)));
    },
    DELETE: (request, reply) => {
      const [experiment, id] = readIds(request);
      if (!comments.delete(experiment, id)) throw notFound(nameOf(experiment, id));
      return reply.code(204).send();
    },
  });
}

const KEY_FIELDS = { name: text({ maxCharacters: 255, blank: 'refused' }), canwrite: zeroOrOne };

export function serveKeys(api: FastifyInstance, keys: Store['keys'], created: AnswerCreated): void {
  resource(api, '/apikeys', {
    GET: (_request, reply) => reply.send(keys.list()),
    POST: (request, reply) => {
      const { name, canwrite } = readFields(request.body, KEY_FIELDS);
      const key = keys.create(required(name, 'name'), required(canwrite, 'canwrite'));
      // The only time that the key is seen in clear text.
      return created(reply, `/apikeys/${key}`);
    },
  });

  resource(api, '/apikeys/:id', {
    DELETE: (request, reply) => {
      // The contract has no 404 here: a key that is not there is as good as deleted.
      keys.delete(readId(request.params['id'], 'id'));
      return reply.code(204).send();
    },
  });
}
