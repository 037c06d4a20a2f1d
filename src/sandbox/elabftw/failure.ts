import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../../log.js';
import { Refusal } from '../refusal.js';

/** A request that eLabFTW does not carry out. What its body calls `code` need not be the status. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly status: number;
  readonly code: number;
  readonly description: string;

  constructor(status: number, message: string, { code = status, description = '' } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.description = description;
  }
}

/** An answer that is none of eLabFTW's own making: a page, or nothing at all, where JSON was expected. */
export class PageFailure extends Error {
  override readonly name = 'PageFailure';
  readonly status: number;

  constructor(status: number, page: string) {
    super(page);
    this.status = status;
  }
}

export const improper = (message: string) => new Failure(400, message);
/** The exception is called 422, and its status is 400 all the same. */
export const unprocessable = (message: string) => new Failure(400, message, { code: 422 });
export const unauthorised = (description: string) =>
  new Failure(401, 'Authentication required', { description });
export const forbidden = () => new Failure(403, 'Sorry, you are not allowed to perform that action.');
export const missing = () => new Failure(404, 'Nothing to show with this id');
/** The database's own number for what it disliked. */
export const refusedBySql = (code: number, message: string) => new Failure(500, message, { code });
/** A value of the wrong type stops the script where it is: 500, and not a word. */
export const typeError = () => new PageFailure(500, '');
export const tooLarge = () =>
  new PageFailure(413, '<html><body><h1>413 Request Entity Too Large</h1></body></html>\n');

export function answerFailures(log?: Log) {
  return (error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    if (error instanceof PageFailure) {
      reply.code(error.status).type('text/html; charset=UTF-8').send(error.message);
    } else if (error instanceof Failure) {
      const { status, code, message, description } = error;
      reply.code(status).send({ code, message, description });
    } else if (error instanceof Refusal) {
      reply.code(error.status).send({ code: error.status, message: error.message, description: '' });
    } else {
      if (!request.raw.readableAborted) {
        log?.error({ err: error, method: request.method, url: request.url }, 'sandbox failed to answer');
      }
      reply.code(500).send({ code: 500, message: 'Unexpected error', description: error.message });
    }
  };
}
