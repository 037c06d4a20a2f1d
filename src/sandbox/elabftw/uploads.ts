import type { FastifyInstance } from 'fastify';
import { resource } from '../resource.js';
import type { Store } from '../store.js';
import { type Account, readable, refuseUnwritable } from './access.js';
import { created } from './created.js';
import { improper } from './failure.js';
import { toInteger } from './php.js';
import { uploadRecord } from './record.js';
import { SentFile } from './sent-file.js';

/** Files beside an experiment. The same one twice makes two. */
export function serveUploads(api: FastifyInstance, { entries, uploads }: Store, account: Account): void {
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
