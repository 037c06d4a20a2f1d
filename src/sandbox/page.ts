import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { escapeHtml, formatBytes, plural } from '../text.js';
import { extensionOf, longNameOf } from './elabftw/records.js';
import { type Handler, notFound, Refusal, readId, resource } from './http.js';
import { SHOWN, sanitise } from './sanitise.js';
import {
  allUploads,
  type Comment,
  countExperiments,
  type Experiment,
  type ExperimentSummary,
  listComments,
  listSummaries,
  listUploads,
  readContent,
  readExperiment,
  readUpload,
  STATE,
  type Store,
  type Upload,
} from './store.js';

const PAGE_SIZE = 50;

/** No scripts and nothing from other hosts, so that markup in a record cannot run anything. */
const POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The list contains no markup of records. */
const LIST_POLICY = `${POLICY}; script-src 'self'; connect-src 'self'`;

/** New experiments appear in the list. Reloading all of it would move readers away from where they are. */
const LIST_SCRIPT = `setInterval(async () => {
  const response = await fetch(location.href).catch(() => undefined);
  if (!response?.ok) return;
  const next = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('main');
  const main = document.querySelector('main');
  // Somebody moves through the list with the keyboard: the focus must stay.
  if (main.contains(document.activeElement)) return;
  if (next.innerHTML !== main.innerHTML) main.replaceWith(document.adoptNode(next));
}, 5000);
`;

const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/**
 * Read-only pages. They need no key, because everybody on this machine may see a trial notebook. So they are served
 * to this machine only, and not under the name of another site.
 */
export function servePages(app: FastifyInstance, store: Store): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    if (!isLocal(request)) {
      throw new Refusal(
        403,
        'this page is only available on the machine that runs the sandbox, at 127.0.0.1 or localhost',
      );
    }
  });

  resource(app, '/', {
    GET: (request, reply) => {
      const total = countExperiments(store);
      const pages = Math.max(1, Math.ceil(total / PAGE_SIZE));
      const asked = Number(request.query['page'] ?? 1);
      const page = Number.isInteger(asked) ? Math.min(Math.max(asked, 1), pages) : 1;
      const list = listSummaries(store, PAGE_SIZE, (page - 1) * PAGE_SIZE);
      return send(reply.header('content-security-policy', LIST_POLICY), renderList(list, total, page, pages));
    },
  });

  const view: Handler = (request, reply) => {
    const id = readId(request.params['id'], 'id');
    const experiment = readExperiment(store, id);
    if (!experiment) return send(reply.code(404), renderMissing(id));
    const uploads = listUploads(store, id).filter(({ state }) => state === STATE.normal);
    return send(reply, renderExperiment(experiment, listComments(store, id), uploads));
  };
  resource(app, '/view/:id', { GET: view });
  // The address of an experiment in eLabFTW.
  resource(app, '/experiments.php', {
    GET: ({ query }, reply) => reply.redirect(`/view/${readId(String(query['id']), 'id')}`, 303),
  });

  const download: Handler = (request, reply) => {
    const id = readId(request.params['upload'], 'upload');
    const upload = readUpload(store, readId(request.params['id'], 'id'), id);
    const content = upload && readContent(store, id);
    if (!content) throw notFound(`upload ${id}`);
    return sendFile(reply, upload.real_name, content);
  };
  resource(app, '/view/:id/uploads/:upload', { GET: download });
  resource(app, '/app/download.php', { GET: (request, reply) => sendByLongName(request.query, reply, store) });

  resource(app, '/list.js', {
    GET: (_request, reply) => reply.type('text/javascript; charset=utf-8').send(LIST_SCRIPT),
  });
  resource(app, '/style.css', {
    GET: (_request, reply) => reply.type('text/css; charset=utf-8').send(STYLE),
  });
}

/** As eLabFTW serves the images of bodies. Nothing but a picture is shown: markup could contain a script. */
function sendByLongName({ f }: Parameters<Handler>[0]['query'], reply: FastifyReply, store: Store) {
  const upload = allUploads(store).find((one) => longNameOf(one) === f);
  const content = upload && readContent(store, upload.id);
  if (!content) throw notFound(`file ${f}`);
  const extension = extensionOf(upload.real_name);
  if (!/^(?:png|jpe?g|gif|webp)$/.test(extension)) return sendFile(reply, upload.real_name, content);
  return reply.type(`image/${extension.replace('jpg', 'jpeg')}`).send(Buffer.from(content));
}

function sendFile(reply: FastifyReply, fileName: string, content: Uint8Array) {
  const name = encodeURIComponent(fileName).replace(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  reply.header('content-disposition', `attachment; filename*=UTF-8''${name}`);
  return reply.type('application/octet-stream').send(Buffer.from(content));
}

const send = (reply: FastifyReply, page: string) => reply.type('text/html; charset=utf-8').send(page);

/**
 * A site can point a name of its own at 127.0.0.1 and make a browser read this page (DNS rebinding). The browser
 * then sends that name as Host. No site can own an IP address or localhost.
 */
export function isLocal({ hostname, ip }: Pick<FastifyRequest, 'hostname' | 'ip'>): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const byAddress = host === 'localhost' || isIP(host) !== 0;
  return byAddress && /^(?:::ffff:)?127\.|^::1$/.test(ip);
}

function layOut(title: string, content: Html, script?: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Sandbox notebook</title>
<link rel="stylesheet" href="/style.css">
${script === undefined ? '' : html`<script src="${script}" defer></script>`}
</head>
<body>
<header><a href="/">Sandbox notebook</a><span>for trying things out: no login, this machine only</span></header>
<main>
${content}
</main>
</body>
</html>
`.markup;
}

/** A link needs text, even if the title is blank. */
const named = (title: string) => title.trim() || 'Untitled';

const showTags = (tags: readonly string[]) => tags.map((tag) => html`<span class="tag">${tag}</span>`);

function renderList(list: readonly ExperimentSummary[], total: number, page: number, pages: number): string {
  const rows = list.map(
    (one) => html`<tr><td class="fixed">${one.id}</td><td class="fixed">${one.date}</td>
<td><a href="/view/${one.id}">${named(one.title)}</a> ${showTags(one.tags)}</td>
<td class="count">${one.comments}</td><td class="fixed wide">${one.modified_at}</td></tr>
`,
  );
  const table = html`<p class="facts">${plural(total, 'experiment')}, newest first. Times are in UTC.</p>
<div class="card list"><table>
<thead><tr><th>No.</th><th>Date</th><th>Title</th><th class="count">Comments</th>
<th class="wide">Last change</th></tr></thead>
<tbody>
${rows}</tbody>
</table></div>`;
  const empty = html`<div class="card empty"><b>No experiments yet</b>New experiments appear here automatically.</div>`;
  const newer = page > 1 ? html`<a href="/?page=${page - 1}" rel="prev">← Newer</a>` : '';
  const older = page < pages ? html`<a href="/?page=${page + 1}" rel="next">Older →</a>` : '';
  const paging = html`<nav><span>${newer}</span><span>Page ${page} of ${pages}</span><span>${older}</span></nav>`;
  const content = html`<h1>Experiments</h1>
${total === 0 ? empty : table}
${pages > 1 ? paging : ''}`;
  // Not on later pages, where a change would disturb reading.
  return layOut('Experiments', content, page === 1 ? '/list.js' : undefined);
}

function renderExperiment(experiment: Experiment, comments: readonly Comment[], uploads: readonly Upload[]): string {
  const title = named(experiment.title);
  // A body cannot contain <section>, so unbalanced tags in it end here.
  const body = experiment.body.trim()
    ? html`<section class="card content">${trusted(sanitise(experiment.body, SHOWN))}</section>`
    : html`<p class="soft">The body is empty.</p>`;
  return layOut(
    title,
    html`<nav><a href="/">← All experiments</a></nav>
<h1>${title}</h1>
<p class="facts"><span>No. <b>${experiment.id}</b></span><span>Date <b>${experiment.date}</b></span>
<span>Created ${experiment.created_at} UTC</span><span>Last change ${experiment.modified_at} UTC</span></p>
<p>${showTags(experiment.tags)}</p>
${body}
${
  uploads.length === 0
    ? ''
    : html`<h2>${plural(uploads.length, 'attached file')}</h2>
<ul>${uploads.map(renderUpload)}</ul>`
}
<h2>${plural(comments.length, 'comment')}</h2>
${comments.map(renderComment)}`,
  );
}

const renderUpload = ({ id, item_id, real_name, filesize }: Upload): Html =>
  html`<li><a href="/view/${item_id}/uploads/${id}">${real_name}</a> <span class="soft">${formatBytes(filesize)}</span></li>
`;

/** Comments are plain text. Browsers drop the first line break after `<pre>`, so one is added. */
function renderComment({ id, comment, created_at, modified_at }: Comment): Html {
  const changed = modified_at === created_at ? '' : `, changed ${modified_at} UTC`;
  return html`<article class="card comment"><h3>No. ${id}, ${created_at} UTC${changed}</h3><pre>
${comment}</pre></article>
`;
}

const renderMissing = (id: number): string =>
  layOut(
    'Not found',
    html`<nav><a href="/">← All experiments</a></nav>
<div class="card empty"><b>There is no experiment ${id}</b>It was deleted, or it never existed.</div>`,
  );

/** Markup that needs no escaping. */
interface Html {
  readonly markup: string;
}

const trusted = (markup: string): Html => ({ markup });

type Part = string | number | Html | readonly Html[];

/** Markup from a template literal. Every interpolated text is escaped. */
function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const markup = literals.map((literal, index) => literal + render(parts[index] ?? ''));
  return trusted(markup.join(''));
}

function render(part: Part): string {
  if (typeof part === 'string') return escapeHtml(part);
  if (typeof part === 'number') return String(part);
  return 'markup' in part ? part.markup : part.map(({ markup }) => markup).join('');
}

/** A constant, because the compiler copies no CSS files. */
const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #fcfcfa;
  --card: #ffffff;
  --ink: #1f2428;
  --soft: #667078;
  --line: #e3e5e3;
  --accent: #0b6b61;
  --wash: #eef5f3;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181b; --card: #1d2024; --ink: #e4e6e8; --soft: #98a1a9;
    --line: #30353a; --accent: #62c9b9; --wash: #1f2c2c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", "Noto Sans", sans-serif;
}
header, main { max-width: 62rem; margin: 0 auto; padding: 0 1.5rem; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1rem; padding-block: 1.25rem; }
header a { color: var(--ink); font-weight: 650; text-decoration: none; }
header span { color: var(--soft); font-size: .875rem; }
main { padding-bottom: 3rem; }
a { color: var(--accent); text-underline-offset: .2em; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 1rem 0 .5rem; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.0625rem; margin: 2.25rem 0 .75rem; }
.soft { color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 0 0 .75rem; color: var(--soft); font-size: .9375rem; }
.facts b { color: var(--ink); font-weight: 550; }
.tag {
  display: inline-block; margin: .1rem .3rem .1rem 0; padding: .05rem .6rem; border-radius: 1rem;
  background: var(--wash); color: var(--accent); font-size: .8125rem; overflow-wrap: anywhere;
}
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.empty { padding: 3.5rem 1.5rem; text-align: center; color: var(--soft); }
.empty b { display: block; margin-bottom: .25rem; color: var(--ink); font-size: 1.125rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .9rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { font-weight: 600; }
.list { overflow-x: auto; }
.list table { width: 100%; font-size: .9375rem; }
.list thead th { color: var(--soft); font-size: .8125rem; font-weight: 500; }
.list tbody tr:hover { background: var(--wash); }
.list tbody tr:last-child td { border-bottom: 0; }
.list td a { margin-right: .4rem; color: var(--ink); font-weight: 500; text-decoration: none; overflow-wrap: anywhere; }
.list td a:hover { color: var(--accent); text-decoration: underline; }
.fixed { width: 1%; white-space: nowrap; color: var(--soft); }
.count { width: 1%; text-align: right; }
nav { display: flex; justify-content: space-between; gap: 1rem; margin: 1rem 0; font-size: .9375rem; color: var(--soft); }
.content { padding: .25rem 1.5rem; overflow-x: auto; overflow-wrap: break-word; }
.content h1, .content h2, .content h3 { font-size: 1.125rem; margin: 1.25rem 0 .5rem; }
.content table { margin: 1rem 0; font-size: .9375rem; }
.content th, .content td { padding-inline: .6rem; }
.content thead th, .content tr:first-child:not(:has(td)) th { border-bottom: 2px solid var(--line); }
.content pre, .content code { font-family: var(--mono); font-size: .875em; }
.content pre { overflow-x: auto; }
.content img { max-width: 100%; height: auto; }
.comment { margin-bottom: 1rem; overflow: hidden; }
.comment h3 {
  margin: 0; padding: .5rem 1rem; border-bottom: 1px solid var(--line);
  color: var(--soft); font-size: .8125rem; font-weight: 400;
}
.comment pre {
  margin: 0; padding: .85rem 1rem; overflow-x: auto; white-space: pre; tab-size: 8;
  font: .84375rem/1.5 var(--mono);
}
@media (max-width: 40rem) { .wide { display: none; } header, main { padding-inline: 1rem; } }
`;
