import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from './refusal.js';
import { type Handler, readId, resource } from './resource.js';
import type { Store } from './store.js';
import { STYLE } from './style.js';
import { renderExperiment, renderList, renderMissing } from './views.js';

const ON_A_PAGE = 50;

/** No script at all, and nothing from elsewhere: what a file smuggled into a record has nothing to run with. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/**
 * The pages for people, to look at only. They ask for no key: this is a play notebook, and who sits at this
 * machine may see it. So they are shown to this machine alone, and not through another site's name.
 */
export function servePages(app: FastifyInstance, { experiments, comments }: Store): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    if (!isLocal(request)) {
      throw new Refusal(403, 'this page is for the machine it runs on: open it by its address, 127.0.0.1');
    }
  });

  resource(app, '/', {
    GET: (request, reply) => {
      const total = experiments.count();
      const pages = Math.max(1, Math.ceil(total / ON_A_PAGE));
      const asked = Number(request.query['page'] ?? 1);
      const page = Number.isInteger(asked) ? Math.min(Math.max(asked, 1), pages) : 1;
      const list = experiments.listNewest(ON_A_PAGE, (page - 1) * ON_A_PAGE);
      return send(reply, renderList({ list, total, page, pages }));
    },
  });

  const view: Handler = (request, reply) => {
    const id = readId(request.params['id'], 'id');
    const experiment = experiments.read(id);
    if (!experiment) return send(reply.code(404), renderMissing(id));
    return send(reply, renderExperiment(experiment, comments.list(id)));
  };
  resource(app, '/view/:id', { GET: view });

  resource(app, '/style.css', {
    GET: (_request, reply) => reply.type('text/css; charset=utf-8').send(STYLE),
  });
}

const send = (reply: FastifyReply, page: string) => reply.type('text/html; charset=utf-8').send(page);

/**
 * Another site can point a name of its own at 127.0.0.1 and have the browser read this page for it.
 * The browser then sends that name as Host; an address, or localhost, no site can own.
 */
export function isLocal({ hostname, ip }: Pick<FastifyRequest, 'hostname' | 'ip'>): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const byAddress = host === 'localhost' || isIP(host) !== 0;
  return byAddress && /^(?:::ffff:)?127\.|^::1$/.test(ip);
}
