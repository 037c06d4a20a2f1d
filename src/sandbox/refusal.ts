import { STATUS_CODES } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../log.js';

export type RefusalStatus = 400 | 401 | 403 | 404 | 405 | 413 | 422;

/** A request that the notebook does not carry out, and what it tells the client about it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: RefusalStatus;

  constructor(status: RefusalStatus, message: string) {
    super(message);
    this.status = status;
  }
}

export const badRequest = (message: string) => new Refusal(400, message);
export const unprocessable = (message: string) => new Refusal(422, message);
export const notFound = (what: string) => new Refusal(404, `${what} not found`);

/** The contract's words for the statuses that it has, HTTP's own for the others. */
const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'Bad request: syntax error, invalid request or missing field',
  401: 'Unauthorized: authentication required',
  403: 'Insufficient permissions',
  404: 'Resource not found',
  422: 'Unprocessable content: the request is valid but the server cannot process it',
};

/** Answers every error in the one form that clients know: code, message, description. */
export function answerErrors(log?: Log) {
  return (error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    const status = statusOf(error);
    // A client that hangs up in the middle of its body is no fault of ours.
    if (status === 500 && !request.raw.readableAborted) {
      log?.error({ err: error, method: request.method, url: request.url }, 'sandbox failed to answer');
    }
    const description = DESCRIPTIONS[status] ?? STATUS_CODES[status];
    reply.code(status).send({ code: status, message: error.message, description });
  };
}

/** Fastify's own errors (a malformed address, say) carry a status as well. */
function statusOf(error: Error): number {
  if (error instanceof Refusal) return error.status;
  const status = 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && status >= 400 ? status : 500;
}
