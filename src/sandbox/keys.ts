import type { FastifyInstance } from 'fastify';
import { readFields, required, text, zeroOrOne } from './fields.js';
import { type AnswerCreated, readId, resource } from './resource.js';
import type { Store } from './store.js';

const FIELDS = { name: text({ maxCharacters: 255, blank: 'refused' }), canwrite: zeroOrOne };

export function serveKeys(api: FastifyInstance, keys: Store['keys'], created: AnswerCreated): void {
  resource(api, '/apikeys', {
    GET: (_request, reply) => reply.send(keys.list()),
    POST: (request, reply) => {
      const { name, canwrite } = readFields(request.body, FIELDS);
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
