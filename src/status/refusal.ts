import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../log.js';
import type { ApiError } from './api.js';

/** An answer that is not what was asked for, in words for people. */
export class Refusal extends Error {
  readonly statusCode: number;
  readonly retryAfterS: number | undefined;

  constructor(statusCode: number, message: string, retryAfterS?: number) {
    super(message);
    this.statusCode = statusCode;
    this.retryAfterS = retryAfterS;
  }
}

const FAILED = 'labfeed failed on this request; its log says more';
const REFUSED = 'this request is refused';

/** Words of our own for what fastify refuses by itself. */
const OWN_WORDS: Readonly<Record<number, string>> = {
  400: 'this request cannot be read',
  413: 'this is larger than what is taken here',
  415: 'this kind of content is not taken here',
};

/** Answers with the reason alone: what failed within labfeed is for the log. */
export const answerErrors =
  (log: Log) =>
  (error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply): void => {
    const status = error.statusCode ?? 500;
    if (error instanceof Refusal) {
      if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS);
      void reply.code(status).send({ error: error.message } satisfies ApiError);
      return;
    }
    if (status >= 500) log.error({ err: error, method: request.method, url: request.url }, 'the page failed');
    void reply
      .code(status)
      .send({ error: OWN_WORDS[status] ?? (status < 500 ? REFUSED : FAILED) } satisfies ApiError);
  };
