import type { FastifyInstance } from 'fastify';
import type { EntryChange } from '../entries.js';
import { resource, type SandboxRequest } from '../resource.js';
import type { Store } from '../store.js';
import { type Account, readable, refuseChange } from './access.js';
import { checkDate, checkJson, cleanBody, cleanTitle } from './clean.js';
import { created } from './created.js';
import type { Customs } from './customs.js';
import { improper, typeError } from './failure.js';
import { fieldsOf, integerOrNothing, textOrNothing, toInteger, toText } from './php.js';
import { fullEntry } from './record.js';
import { listEntries } from './search.js';
import { addTag } from './tags.js';

export function serveExperiments(
  api: FastifyInstance,
  store: Store,
  account: Account,
  customs: Customs,
): void {
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
