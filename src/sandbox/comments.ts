import type { FastifyInstance } from 'fastify';
import { found, readFields, required, text } from './fields.js';
import { badRequest, notFound } from './refusal.js';
import { type AnswerCreated, readId, resource, type SandboxRequest } from './resource.js';
import type { Store } from './store.js';

// The contract lists no 422 for comments: what does not fit is a bad request.
const FIELDS = { comment: text({ blank: 'refused', maxBytes: 65_535, refuse: badRequest }) };

const readComment = (body: unknown) => required(readFields(body, FIELDS).comment, 'comment');

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
