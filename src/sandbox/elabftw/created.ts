import type { FastifyReply } from 'fastify';
import { SITE_URL } from './record.js';

/** Answers a creation: 201, an address under the server's own name, and an empty page. */
export function created(reply: FastifyReply, path: string): FastifyReply {
  return reply.code(201).header('location', `${SITE_URL}/${path}`).type('text/html; charset=UTF-8').send('');
}
