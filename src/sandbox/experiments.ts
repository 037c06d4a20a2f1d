import type { FastifyInstance } from 'fastify';
import { calendarDate, found, listOf, readFields, text } from './fields.js';
import { badRequest } from './refusal.js';
import { type AnswerCreated, readId, resource } from './resource.js';
import type { Store } from './store.js';

const FIELDS = {
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
      const fields = readFields(request.body, FIELDS);
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
      const fields = readFields(request.body, FIELDS);
      if (Object.keys(fields).length === 0) {
        throw badRequest(`there is nothing to change; fields: ${Object.keys(FIELDS).join(', ')}`);
      }
      return reply.send(found(experiments.change(id, fields), `experiment ${id}`));
    },
  });
}
