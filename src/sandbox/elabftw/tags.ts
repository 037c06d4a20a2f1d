import type { FastifyInstance } from 'fastify';
import { resource } from '../resource.js';
import type { Store } from '../store.js';
import { type Account, readable, refuseUnwritable } from './access.js';
import { cleanTag } from './clean.js';
import { created } from './created.js';
import { improper, typeError } from './failure.js';
import { fieldsOf, toInteger } from './php.js';
import { fullEntry } from './record.js';
import type { TeamTag } from './team-tags.js';

export function serveTags(api: FastifyInstance, store: Store, account: Account, createsTags: boolean): void {
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

export function addTag(
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
