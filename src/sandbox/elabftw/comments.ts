import type { FastifyInstance } from 'fastify';
import { resource, type SandboxRequest } from '../resource.js';
import type { Comment, Store } from '../store.js';
import { type Account, readable } from './access.js';
import { created } from './created.js';
import { improper, missing, refusedBySql, typeError } from './failure.js';
import { fieldsOf, toInteger } from './php.js';
import { commentRecord } from './record.js';

const MAX_COMMENT_BYTES = 65_535;

/** Who may read an experiment may comment on it, be it locked, deleted or another's. */
export function serveComments(api: FastifyInstance, { entries, comments }: Store, account: Account): void {
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
