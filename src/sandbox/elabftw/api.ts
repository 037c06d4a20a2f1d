import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Log } from '../../log.js';
import { type Entry, type EntryChange, fullName, PEOPLE, STATE } from '../entries.js';
import { resource, type SandboxRequest } from '../requests.js';
import type { Comment, Keys, Store, TeamTag } from '../store.js';
import {
  type Account,
  type Customs,
  checkDate,
  checkJson,
  cleanBody,
  cleanTag,
  cleanTitle,
  fieldsOf,
  followElabftw,
  improper,
  integerOrNothing,
  mayRead,
  missing,
  readable,
  refuseChange,
  refusedBySql,
  refuseUnwritable,
  SentFile,
  single,
  textOrNothing,
  toInteger,
  toText,
  typeError,
} from './conventions.js';
import {
  commentRecord,
  extraFields,
  fullEntry,
  listedEntry,
  SITE_URL,
  TEAM,
  uploadRecord,
} from './records.js';

/** The API as eLabFTW answers it, where it differs from the contract, and where the contract is silent. */
export function serveElabftw(api: FastifyInstance, store: Store, customs: Customs, log?: Log): void {
  const account = { person: PEOPLE.owner, administrator: customs.administrator };
  followElabftw(api, { useKey: store.keys.use, badKey: customs.badKey, log });
  serveExperiments(api, store, account, customs);
  serveTags(api, store, account, customs.createsTags);
  serveComments(api, store, account);
  serveUploads(api, store, account);
  serveKeys(api, store.keys);
  serveAccount(api, account, customs);
}

function serveExperiments(api: FastifyInstance, store: Store, account: Account, customs: Customs): void {
  const { entries } = store;
  const answerList = ({ query }: SandboxRequest) => listEntries(query, store, account, customs.listLimit);

  resource(api, '/experiments', {
    GET: (request, reply) => reply.send(answerList(request)),
    POST: (request, reply) => {
      const id = create(customs.keepsTitle ? fieldsOf(request.body) : {}, store, account, customs);
      return created(reply, `api/v2/experiments/${id}`);
    },
  });

  resource(api, '/experiments/:id', {
    GET: (request, reply) => {
      const id = toInteger(request.params['id']);
      // What is no id is as good as none at all.
      if (id <= 0) return reply.send(answerList(request));
      return reply.send(fullEntry(readable(entries, id, account), store));
    },
    PATCH: (request, reply) => {
      const { id } = checkedForChange(request, store, account);
      for (const [target, value] of Object.entries(fieldsOf(request.body))) {
        // Saved one by one: what stands before a mistake stays saved.
        entries.change(id, update(target, toText(value)), account.person.userid);
      }
      return reply.send(fullEntry(readable(entries, id, account), store));
    },
  });
}

function checkedForChange({ params }: SandboxRequest, { entries }: Store, account: Account) {
  const entry = readable(entries, toInteger(params['id']), account);
  refuseChange(entry, account);
  return entry;
}

/** The date of a creation is not heeded; a tag that is refused leaves the experiment made. */
function create(
  fields: Readonly<Record<string, unknown>>,
  store: Store,
  account: Account,
  { markdown, createsTags }: Customs,
): number {
  const { metadata } = fields;
  const type = integerOrNothing(fields['content_type']) ?? (markdown ? 2 : 1);
  if (type !== 1 && type !== 2) throw typeError();
  const tags = typeof fields['tags'] === 'string' ? [fields['tags']] : (fields['tags'] ?? []);
  if (!Array.isArray(tags)) throw typeError();
  const id = store.entries.create(
    {
      title: cleanTitle(textOrNothing(fields['title']) ?? ''),
      body: cleanBody(textOrNothing(fields['body']) ?? ''),
      content_type: type,
      metadata: metadata ? JSON.stringify(metadata) : null,
    },
    account.person.userid,
  );
  for (const tag of tags) addTag(id, tag, store, createsTags);
  return id;
}

function update(target: string, value: string): EntryChange {
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

const MAX_COMMENT_BYTES = 65_535;

/** Who may read an experiment may comment on it, be it locked, deleted or another's. */
function serveComments(api: FastifyInstance, { entries, comments }: Store, account: Account): void {
  const experimentOf = ({ params }: SandboxRequest) => readable(entries, toInteger(params['id']), account).id;
  const read = (experiment: number, { params }: SandboxRequest): Comment => {
    const comment = comments.read(experiment, toInteger(params['subid']));
    if (!comment) throw missing();
    return comment;
  };

  resource(api, '/experiments/:id/comments', {
    GET: (request, reply) => reply.send(comments.list(experimentOf(request)).map(commentRecord)),
    POST: (request, reply) => {
      const experiment = experimentOf(request);
      const { comment } = fieldsOf(request.body);
      if (comment === undefined || comment === null) throw improper('Missing comment field.');
      const id = comments.create(experiment, checked(comment), account.person.userid);
      return created(reply, `api/v2/experiments/${experiment}/comments/${id}`);
    },
  });

  resource(api, '/experiments/:id/comments/:subid', {
    GET: (request, reply) => {
      const experiment = experimentOf(request);
      if (toInteger(request.params['subid']) <= 0) {
        return reply.send(comments.list(experiment).map(commentRecord));
      }
      return reply.send(commentRecord(read(experiment, request)));
    },
    // Another's comment is neither changed nor deleted, and nothing is said of it.
    PATCH: (request, reply) => {
      const experiment = experimentOf(request);
      const text = checked(fieldsOf(request.body)['comment']);
      const { id, userid } = read(experiment, request);
      if (userid === account.person.userid) comments.change(experiment, id, text);
      return reply.send(commentRecord(read(experiment, request)));
    },
    DELETE: (request, reply) => {
      const experiment = experimentOf(request);
      const { id, userid } = read(experiment, request);
      if (userid === account.person.userid) comments.delete(experiment, id);
      return reply.code(204).send();
    },
  });
}

function checked(comment: unknown): string {
  if (typeof comment !== 'string') throw typeError();
  if (comment === '') throw improper('Invalid comment.');
  if (Buffer.byteLength(comment) > MAX_COMMENT_BYTES) {
    throw refusedBySql(1406, "Data too long for column 'comment' at row 1");
  }
  return comment;
}

function serveKeys(api: FastifyInstance, keys: Keys): void {
  resource(api, '/apikeys', {
    GET: (_request, reply) =>
      reply.send(
        keys.listWithHashes().map(({ hash, ...record }) => ({
          ...record,
          hash: `$2y$10$${hash.slice(0, 53)}`,
          team: TEAM.id,
          team_name: TEAM.name,
        })),
      ),
    POST: (request, reply) => {
      const fields = fieldsOf(request.body);
      const name = cleanTitle(textOrNothing(fields['name']) ?? 'An API key');
      const canWrite = integerOrNothing(fields['canwrite']) ?? 0;
      // The only time that the key is seen in clear text. Not even an address within the API.
      return created(reply, keys.createNumbered(name, canWrite === 0 ? 0 : 1));
    },
  });

  resource(api, '/apikeys/:id', {
    DELETE: (request, reply) => {
      keys.delete(toInteger(request.params['id']));
      return reply.code(204).send();
    },
  });
}

/** Who the key belongs to, and which version this is. */
function serveAccount(
  api: FastifyInstance,
  { person, administrator }: Account,
  { keepsTitle, markdown }: { readonly keepsTitle: boolean; readonly markdown: boolean },
): void {
  resource(api, '/users/me', {
    GET: (_request, reply) =>
      reply.send({
        ...person,
        fullname: fullName(person),
        orcid: null,
        team: TEAM.id,
        teams: [{ ...TEAM, is_admin: administrator ? 1 : 0, is_owner: 0 }],
        is_sysadmin: 0,
        use_markdown: markdown ? 1 : 0,
        validated: 1,
      }),
  });

  const [version, number] = keepsTitle ? ['5.6.12', 50_612] : ['5.2.8', 50_208];
  resource(api, '/info', {
    GET: (_request, reply) => reply.send({ elabftw_version: version, elabftw_version_int: number }),
  });
}

function serveTags(api: FastifyInstance, store: Store, account: Account, createsTags: boolean): void {
  resource(api, '/experiments/:id/tags', {
    GET: (request, reply) => {
      const { tags } = readable(store.entries, toInteger(request.params['id']), account);
      const records = tags.map(store.tags.named).map(({ id, tag }) => ({ tag, tag_id: id, is_favorite: 0 }));
      return reply.send(records);
    },
    POST: (request, reply) => {
      const entry = readable(store.entries, toInteger(request.params['id']), account);
      refuseUnwritable(entry, account);
      const { tag } = fieldsOf(request.body);
      // Without a tag nothing is done, and that is a success.
      const id = typeof tag === 'string' ? addTag(entry.id, tag, store, createsTags).id : 0;
      return created(reply, `api/v2/experiments/${entry.id}/tags/${id}`);
    },
  });

  resource(api, '/experiments/:id/tags/:subid', {
    // The tag itself stays, for the others of the team. One that the experiment does not have is no mistake.
    PATCH: (request, reply) => {
      const entry = readable(store.entries, toInteger(request.params['id']), account);
      if (fieldsOf(request.body)['action'] !== 'unreference') throw improper('Invalid action for tags.');
      refuseUnwritable(entry, account);
      const id = toInteger(request.params['subid']);
      const left = entry.tags.filter((tag) => store.tags.named(tag).id !== id);
      store.entries.setTags(entry.id, left);
      return reply.send(fullEntry(readable(store.entries, entry.id, account), store));
    },
  });
}

function addTag(
  experiment: number,
  tag: unknown,
  { entries, tags }: Pick<Store, 'entries' | 'tags'>,
  createsTags: boolean,
): TeamTag {
  if (typeof tag !== 'string') throw typeError();
  const clean = cleanTag(tag);
  if (!createsTags && !tags.existing(clean)) throw improper('Users cannot create tags.');
  const known = tags.named(clean);
  const present = entries.read(experiment)?.tags ?? [];
  if (!present.includes(known.tag)) entries.setTags(experiment, [...present, known.tag]);
  return known;
}

/** Files beside an experiment. The same one twice makes two. */
function serveUploads(api: FastifyInstance, { entries, uploads }: Store, account: Account): void {
  resource(api, '/experiments/:id/uploads', {
    GET: (request, reply) => {
      const { id } = readable(entries, toInteger(request.params['id']), account);
      return reply.send(uploads.list(id).map(uploadRecord));
    },
    POST: (request, reply) => {
      const entry = readable(entries, toInteger(request.params['id']), account);
      const file = request.body;
      if (!(file instanceof SentFile)) throw improper('Error reading file!');
      refuseUnwritable(entry, account);
      const id = uploads.create({ ...file, item_id: entry.id, userid: account.person.userid });
      return created(reply, `api/v2/experiments/${entry.id}/uploads/${id}`);
    },
  });
}

type Query = SandboxRequest['query'];

/** The list of experiments, last changed first: those in use unless other states are asked for. */
function listEntries(query: Query, store: Store, account: Account, usualLimit: number) {
  const states = readStates(single(query['state']));
  const matches = parseSearch(single(query['extended']) ?? '');
  const limit = toInteger(single(query['limit'])) || usualLimit;
  const offset = Math.max(0, toInteger(single(query['offset'])));
  return store.entries
    .all()
    .filter((entry) => states.includes(entry.state) && mayRead(entry, account) && matches(entry))
    .sort((a, b) => b.modified_at.localeCompare(a.modified_at) || b.id - a.id)
    .slice(offset, limit > 0 ? offset + limit : undefined)
    .map((entry) => listedEntry(entry, store));
}

const readStates = (text: string | undefined) => (text ? text.split(',').map(toInteger) : [STATE.normal]);

type Matches = (entry: Entry) => boolean;

/** One term of a search: `title:word`, `title:"some words"`, `extrafield:KEY:"value"`, or words alone. */
const TERM =
  /\s*(?:AND\s+|&\s*)?(?:(title|body|extrafield:(?:"[^"]+"|'[^']+'|[^\s:"']+)):)?("[^"]*"|'[^']*'|[^\s:"'()|!]+)\s*/y;

/** All terms must match. Of the whole grammar of eLabFTW's search, the part that finds a title or a field. */
function parseSearch(text: string): Matches {
  const terms: Matches[] = [];
  const term = new RegExp(TERM);
  while (term.lastIndex < text.length) {
    const at = term.lastIndex;
    const found = term.exec(text);
    if (!found) throw improper(`Line 1, Column ${at + 1}: search syntax error.`);
    terms.push(matchTerm(found[1] ?? '', like(unquoted(found[2] ?? ''))));
  }
  return (entry) => terms.every((matches) => matches(entry));
}

function matchTerm(field: string, pattern: RegExp): Matches {
  if (field === 'title') return ({ title }) => pattern.test(title);
  if (field === 'body') return ({ body }) => pattern.test(body);
  if (field === '') return ({ title, body }) => pattern.test(title) || pattern.test(body);
  const key = unquoted(field.slice('extrafield:'.length));
  return ({ metadata }) => pattern.test(toText(extraFields(metadata)[key]?.value));
}

const unquoted = (text: string) => text.replace(/^(["'])(.*)\1$/s, '$2');

/** A substring in any case, in which `_` stands for any character and `%` for any number of them. */
function like(text: string): RegExp {
  const source = text.replace(/\\?[_%]|[.*+?^${}()|[\]\\/]/g, (part) => {
    if (part === '_') return '.';
    if (part === '%') return '.*';
    return part.startsWith('\\') && part.length > 1 ? part.slice(1) : `\\${part}`;
  });
  return new RegExp(source, 'isu');
}

/** Answers a creation: 201, an address under the server's own name, and an empty page. */
function created(reply: FastifyReply, path: string): FastifyReply {
  return reply.code(201).header('location', `${SITE_URL}/${path}`).type('text/html; charset=UTF-8').send('');
}
