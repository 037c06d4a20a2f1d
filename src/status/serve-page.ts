import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import serveFolder from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Access } from './access.js';
import { tooMany } from './guard.js';

/** The page's files: compiled and copied here when labfeed is built. */
const FOLDER = join(import.meta.dirname, 'page');

export interface PageDeps {
  /** Put into the page: whoever sends it back has read the page. */
  readonly pageToken: string;
  readonly access: Access | undefined;
}

const HTML = 'text/html; charset=utf-8';

/** The page itself, its parts, and the form that asks for the token. */
export async function servePage(app: FastifyInstance, { pageToken, access }: PageDeps): Promise<void> {
  const page = readFileSync(join(FOLDER, 'index.html'), 'utf8').replace(
    '<meta name="labfeed-token" content="">',
    `<meta name="labfeed-token" content="${pageToken}">`,
  );
  app.get('/', (_request, reply) => reply.type(HTML).send(page));

  const folders = [
    { root: FOLDER, prefix: '/page/' },
    { root: dirname(createRequire(import.meta.url).resolve('uplot')), prefix: '/page/uplot/' },
  ];
  for (const folder of folders) {
    await app.register(serveFolder, {
      ...folder,
      decorateReply: false,
      index: false,
      dotfiles: 'deny',
      // Kept by the browser, but asked for each time: after an upgrade page and server fit.
      cacheControl: false,
      setHeaders(reply, path) {
        reply.header('cache-control', 'no-cache');
        // For the frames that show drafts: nothing in them counts as being of this site.
        if (path.endsWith('paper.css')) reply.header('cross-origin-resource-policy', 'cross-origin');
      },
    });
  }
  if (access) serveLogIn(app, access);
}

function serveLogIn(app: FastifyInstance, access: Access): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: 4096 },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  app.post('/login', (request, reply) => {
    const given = request.body instanceof URLSearchParams ? request.body.get('token') : undefined;
    const result = access.logIn(given ?? '', request.ip);
    if (typeof result === 'number') throw tooMany(result);
    if (result === 'refused') return sendLogIn(reply, 'That is not the token.');
    return reply.header('set-cookie', result.cookie).redirect('/', 303);
  });
}

/** Asks for the token. */
export function sendLogIn(reply: FastifyReply, message = ''): FastifyReply {
  const form = readFileSync(join(FOLDER, 'login.html'), 'utf8').replace('<!-- message -->', message);
  return reply.code(401).type(HTML).send(form);
}
