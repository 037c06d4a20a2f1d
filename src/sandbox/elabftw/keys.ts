import type { FastifyInstance } from 'fastify';
import type { Keys } from '../key-store.js';
import { resource } from '../resource.js';
import { cleanTitle } from './clean.js';
import { created } from './created.js';
import { fieldsOf, integerOrNothing, textOrNothing, toInteger } from './php.js';
import { TEAM } from './record.js';

export function serveKeys(api: FastifyInstance, keys: Keys): void {
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
