import type { FastifyInstance } from 'fastify';
import { resource, type SandboxRequest } from '../http.js';
import {
  type Comment,
  changeComment,
  changeExperiment,
  createComment,
  createExperiment,
  createKey,
  createUpload,
  deleteComment,
  deleteKey,
  type Experiment,
  type ExperimentChange,
  fullName,
  listComments,
  listExperiments,
  listKeys,
  listUploads,
  readComment,
  readExperiment,
  STATE,
  type Store,
  setTags,
  type TeamTag,
  teamTag,
  USERS,
} from '../store.js';
import {
  checkComment,
  checkDate,
  checkJson,
  cleanBody,
  cleanTag,
  cleanTitle,
  commentRecord,
  created,
  fieldsOf,
  followElabftw,
  forbidden,
  fullRecord,
  improper,
  listedRecord,
  mayRead,
  missing,
  optionalInteger,
  optionalText,
  refuseUnchangeable,
  refuseUnwritable,
  SentFile,
  single,
  TEAM,
  toInteger,
  toText,
  typeError,
  uploadRecord,
} from './conventions.js';

/** The API as eLabFTW 5.6 implements it, used with an ordinary user's key. */
export function serveElabftw(api: FastifyInstance, store: Store): void {
  followElabftw(api, store);
  serveExperiments(api, store);
  serveTags(api, store);
  serveComments(api, store);
  serveUploads(api, store);
  serveKeys(api, store);
  serveAccount(api);
}

/** The experiment that the path names, if the key may read it. */
function experimentOf({ params }: SandboxRequest, store: Store): Experiment {
  const id = toInteger(params['id']);
  if (id <= 0) throw forbidden();
  const experiment = readExperiment(store, id);
  if (!experiment) throw missing();
  if (!mayRead(experiment)) throw forbidden();
  return experiment;
}

function serveExperiments(api: FastifyInstance, store: Store): void {
  resource(api, '/experiments', {
    GET: ({ query }, reply) => reply.send(search(query, store)),
    POST: (request, reply) => created(reply, `api/v2/experiments/${create(fieldsOf(request.body), store)}`),
  });

  resource(api, '/experiments/:id', {
    GET: (request, reply) => {
      // An id that is not a positive number counts as absent.
      if (toInteger(request.params['id']) <= 0) return reply.send(search(request.query, store));
      return reply.send(fullRecord(experimentOf(request, store), store));
    },
    PATCH: (request, reply) => {
      const experiment = experimentOf(request, store);
      refuseUnchangeable(experiment);
      // Saved one by one: the fields before an invalid one stay saved.
      for (const [target, value] of Object.entries(fieldsOf(request.body))) {
        changeExperiment(store, experiment.id, changeOf(target, toText(value)));
      }
      return reply.send(fullRecord(experimentOf(request, store), store));
    },
  });
}

/** Ignores a date. If a tag is refused, the experiment exists all the same. */
function create(fields: Readonly<Record<string, unknown>>, store: Store): number {
  const { metadata } = fields;
  const type = optionalInteger(fields['content_type']) ?? 1;
  if (type !== 1 && type !== 2) throw typeError();
  const tags = typeof fields['tags'] === 'string' ? [fields['tags']] : (fields['tags'] ?? []);
  if (!Array.isArray(tags)) throw typeError();
  const id = createExperiment(store, {
    title: cleanTitle(optionalText(fields['title']) ?? ''),
    body: cleanBody(optionalText(fields['body']) ?? ''),
    content_type: type,
    metadata: metadata ? JSON.stringify(metadata) : null,
  });
  for (const tag of tags) addTag(id, tag, store);
  return id;
}

function changeOf(target: string, value: string): ExperimentChange {
  switch (target) {
    case 'title':
      return { title: cleanTitle(value) };
    case 'date':
      return { date: checkDate(value) };
    case 'body':
      return { body: cleanBody(value) };
    case 'metadata':
      return { metadata: checkJson(value) };
    case 'content_type':
      return { content_type: toInteger(value) };
    default:
      throw improper('Invalid update target.');
  }
}

/** A user who can read an experiment can comment on it, even if it is locked, deleted or someone else's. */
function serveComments(api: FastifyInstance, store: Store): void {
  const commentOf = (experiment: number, { params }: SandboxRequest): Comment => {
    const comment = readComment(store, experiment, toInteger(params['subid']));
    if (!comment) throw missing();
    return comment;
  };

  resource(api, '/experiments/:id/comments', {
    GET: (request, reply) => reply.send(listComments(store, experimentOf(request, store).id).map(commentRecord)),
    POST: (request, reply) => {
      const experiment = experimentOf(request, store).id;
      const { comment } = fieldsOf(request.body);
      if (comment === undefined || comment === null) throw improper('Missing comment field.');
      const id = createComment(store, experiment, checkComment(comment));
      return created(reply, `api/v2/experiments/${experiment}/comments/${id}`);
    },
  });

  resource(api, '/experiments/:id/comments/:subid', {
    GET: (request, reply) => {
      const experiment = experimentOf(request, store).id;
      if (toInteger(request.params['subid']) <= 0) {
        return reply.send(listComments(store, experiment).map(commentRecord));
      }
      return reply.send(commentRecord(commentOf(experiment, request)));
    },
    // A request to change or delete someone else's comment succeeds and does nothing.
    PATCH: (request, reply) => {
      const experiment = experimentOf(request, store).id;
      const text = checkComment(fieldsOf(request.body)['comment']);
      const { id, userid } = commentOf(experiment, request);
      if (userid === USERS.owner.userid) changeComment(store, experiment, id, text);
      return reply.send(commentRecord(commentOf(experiment, request)));
    },
    DELETE: (request, reply) => {
      const experiment = experimentOf(request, store).id;
      const { id, userid } = commentOf(experiment, request);
      if (userid === USERS.owner.userid) deleteComment(store, experiment, id);
      return reply.code(204).send();
    },
  });
}

function serveTags(api: FastifyInstance, store: Store): void {
  resource(api, '/experiments/:id/tags', {
    GET: (request, reply) => {
      const tags = experimentOf(request, store).tags.map((name) => teamTag(store, name));
      return reply.send(tags.map(({ id, tag }) => ({ tag, tag_id: id, is_favorite: 0 })));
    },
    POST: (request, reply) => {
      const experiment = experimentOf(request, store);
      refuseUnwritable(experiment);
      const { tag } = fieldsOf(request.body);
      // A request without a tag succeeds and does nothing.
      const id = typeof tag === 'string' ? addTag(experiment.id, tag, store).id : 0;
      return created(reply, `api/v2/experiments/${experiment.id}/tags/${id}`);
    },
  });

  resource(api, '/experiments/:id/tags/:subid', {
    // The team keeps the tag. A tag that the experiment does not have is not an error.
    PATCH: (request, reply) => {
      const experiment = experimentOf(request, store);
      if (fieldsOf(request.body)['action'] !== 'unreference') throw improper('Invalid action for tags.');
      refuseUnwritable(experiment);
      const removed = toInteger(request.params['subid']);
      const kept = experiment.tags.filter((tag) => teamTag(store, tag).id !== removed);
      setTags(store, experiment.id, kept);
      return reply.send(fullRecord(experimentOf(request, store), store));
    },
  });
}

function addTag(experiment: number, tag: unknown, store: Store): TeamTag {
  const known = teamTag(store, cleanTag(tag));
  const present = readExperiment(store, experiment)?.tags ?? [];
  if (!present.includes(known.tag)) setTags(store, experiment, [...present, known.tag]);
  return known;
}

/** The same file sent twice makes two uploads. */
function serveUploads(api: FastifyInstance, store: Store): void {
  resource(api, '/experiments/:id/uploads', {
    GET: (request, reply) => reply.send(listUploads(store, experimentOf(request, store).id).map(uploadRecord)),
    POST: (request, reply) => {
      const experiment = experimentOf(request, store);
      const file = request.body;
      if (!(file instanceof SentFile)) throw improper('Error reading file!');
      refuseUnwritable(experiment);
      const id = createUpload(store, { ...file, item_id: experiment.id, userid: USERS.owner.userid });
      return created(reply, `api/v2/experiments/${experiment.id}/uploads/${id}`);
    },
  });
}

function serveKeys(api: FastifyInstance, store: Store): void {
  resource(api, '/apikeys', {
    GET: (_request, reply) => {
      const records = listKeys(store).map(({ hash, ...key }) => ({
        ...key,
        hash: `$2y$10$${hash.slice(0, 53)}`,
        team: TEAM.id,
        team_name: TEAM.name,
      }));
      // The most recently used key comes first.
      return reply.send(
        records.sort((a, b) => (b.last_used_at ?? '').localeCompare(a.last_used_at ?? '') || a.id - b.id),
      );
    },
    POST: (request, reply) => {
      const fields = fieldsOf(request.body);
      const name = cleanTitle(optionalText(fields['name']) ?? 'An API key');
      const canWrite = optionalInteger(fields['canwrite']) ?? 0;
      // The address ends in the key and is not part of the API.
      return created(reply, createKey(store, name, canWrite !== 0, 'numbered'));
    },
  });

  resource(api, '/apikeys/:id', {
    DELETE: (request, reply) => {
      deleteKey(store, toInteger(request.params['id']));
      return reply.code(204).send();
    },
  });
}

/** Whose key it is, and the version of the server. */
function serveAccount(api: FastifyInstance): void {
  const me = {
    ...USERS.owner,
    fullname: fullName(USERS.owner),
    orcid: null,
    team: TEAM.id,
    teams: [{ ...TEAM, is_admin: 0, is_owner: 0 }],
    is_sysadmin: 0,
    use_markdown: 0,
    validated: 1,
  };
  resource(api, '/users/me', { GET: (_request, reply) => reply.send(me) });
  resource(api, '/info', {
    GET: (_request, reply) => reply.send({ elabftw_version: '5.6.12', elabftw_version_int: 50_612 }),
  });
}

/** Last changed first, unless ordered by id. Archived and deleted experiments only if their state is asked for. */
function search(query: SandboxRequest['query'], store: Store) {
  const state = single(query['state']);
  const states: readonly number[] = state ? state.split(',').map(toInteger) : [STATE.normal];
  const matches = parseSearch(single(query['extended']) ?? '');
  const limit = toInteger(single(query['limit']));
  const offset = Math.max(0, toInteger(single(query['offset'])));
  const byId = single(query['order']) === 'id';
  const direction = single(query['sort']) === 'asc' ? 1 : -1;
  return listExperiments(store)
    .filter((experiment) => states.includes(experiment.state) && mayRead(experiment) && matches(experiment))
    .sort((a, b) => direction * (byId ? 0 : a.modified_at.localeCompare(b.modified_at)) || direction * (a.id - b.id))
    .slice(offset, limit > 0 ? offset + limit : undefined)
    .map((experiment) => listedRecord(experiment, store));
}

type Matches = (experiment: Experiment) => boolean;

/** One term of a search: `title:word`, `title:"some words"`, `extrafield:KEY:"value"`, or words alone. */
const TERM =
  /\s*(?:AND\s+|&\s*)?(?:(title|body|extrafield:(?:"[^"]+"|'[^']+'|[^\s:"']+)):)?("[^"]*"|'[^']*'|[^\s:"'()|!]+)\s*/y;

/** All terms must match. Supports only the part of eLabFTW's search syntax that finds titles, bodies and fields. */
function parseSearch(text: string): Matches {
  const terms: Matches[] = [];
  const term = new RegExp(TERM);
  while (term.lastIndex < text.length) {
    const at = term.lastIndex;
    const found = term.exec(text);
    if (!found) throw improper(`Line 1, Column ${at + 1}: search syntax error.`);
    terms.push(matchTerm(found[1] ?? '', like(unquoted(found[2] ?? ''))));
  }
  return (experiment) => terms.every((matches) => matches(experiment));
}

function matchTerm(field: string, pattern: RegExp): Matches {
  if (field === 'title') return ({ title }) => pattern.test(title);
  if (field === 'body') return ({ body }) => pattern.test(body);
  if (field === '') return ({ title, body }) => pattern.test(title) || pattern.test(body);
  const key = unquoted(field.slice('extrafield:'.length));
  return ({ metadata }) => pattern.test(toText(JSON.parse(metadata ?? '{}')?.extra_fields?.[key]?.value));
}

const unquoted = (text: string) => text.replace(/^(["'])(.*)\1$/s, '$2');

/** A substring in any case. `_` stands for any character and `%` for any number of characters. */
function like(text: string): RegExp {
  const source = text.replace(/\\?[_%]|[.*+?^${}()|[\]\\/]/g, (part) => {
    if (part === '_') return '.';
    if (part === '%') return '.*';
    return part.startsWith('\\') && part.length > 1 ? part.slice(1) : `\\${part}`;
  });
  return new RegExp(source, 'isu');
}
