import type { Experiment } from './entries.js';
import { type Html, html, trusted } from './html.js';
import { sanitise } from './sanitise.js';
import type { Comment, ExperimentSummary } from './store.js';

interface Layout {
  readonly title: string;
  readonly content: Html;
  /** Loads the page anew by itself, so that new experiments appear without a script. */
  readonly refreshSeconds?: number;
}

function layOut({ title, content, refreshSeconds }: Layout): string {
  const refresh = refreshSeconds ? html`<meta http-equiv="refresh" content="${refreshSeconds}">` : '';
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${refresh}
<title>${title}</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header><a href="/">Sandbox notebook</a><span>to try things out: no login, on this machine only</span></header>
<main>
${content}
</main>
</body>
</html>
`.markup;
}

/** A title may be blank, but a link must have something to click on. */
const named = (title: string) => title.trim() || 'Untitled';

const showTags = (tags: readonly string[]) => tags.map((tag) => html`<span class="tag">${tag}</span>`);

const count = (n: number, one: string, many: string) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

export interface ListPage {
  readonly list: readonly ExperimentSummary[];
  readonly total: number;
  readonly page: number;
  readonly pages: number;
}

export function renderList({ list, total, page, pages }: ListPage): string {
  const rows = list.map(
    (one) => html`<tr><td class="fixed">${one.id}</td><td class="fixed">${one.date}</td>
<td><a href="/view/${one.id}">${named(one.title)}</a> ${showTags(one.tags)}</td>
<td class="count">${one.comments}</td><td class="fixed wide">${one.modified_at}</td></tr>
`,
  );
  const table = html`<p class="facts">${count(total, 'experiment', 'experiments')}, newest first. Times are in UTC.</p>
<div class="card list"><table>
<thead><tr><th>No.</th><th>Date</th><th>Title</th><th class="count">Comments</th>
<th class="wide">Last change</th></tr></thead>
<tbody>
${rows}</tbody>
</table></div>`;
  const empty = html`<div class="card empty"><b>No experiments yet</b>What is filed in this notebook appears here by itself.</div>`;
  const newer = page > 1 ? html`<a href="/?page=${page - 1}" rel="prev">← Newer</a>` : '';
  const older = page < pages ? html`<a href="/?page=${page + 1}" rel="next">Older →</a>` : '';
  const paging = html`<nav><span>${newer}</span><span>Page ${page} of ${pages}</span><span>${older}</span></nav>`;
  return layOut({
    title: 'Experiments · Sandbox notebook',
    content: html`<h1>Experiments</h1>
${total === 0 ? empty : table}
${pages > 1 ? paging : ''}`,
    // Not while somebody leafs through the older ones.
    ...(page === 1 ? { refreshSeconds: 5 } : {}),
  });
}

export function renderExperiment(experiment: Experiment, comments: readonly Comment[]): string {
  const title = named(experiment.title);
  // No element that a body may hold: whatever is left open in it, or closed too often, ends with the section.
  const body = experiment.body.trim()
    ? html`<section class="card content">${trusted(sanitise(experiment.body))}</section>`
    : html`<p class="soft">The body is empty.</p>`;
  return layOut({
    title: `${title} · Sandbox notebook`,
    content: html`<nav><a href="/">← All experiments</a></nav>
<h1>${title}</h1>
<p class="facts"><span>No. <b>${experiment.id}</b></span><span>Date <b>${experiment.date}</b></span>
<span>Created ${experiment.created_at} UTC</span><span>Last change ${experiment.modified_at} UTC</span></p>
<p>${showTags(experiment.tags)}</p>
${body}
<h2>${count(comments.length, 'comment', 'comments')}</h2>
${comments.map(renderComment)}`,
  });
}

/** A comment is plain text. The line break after `<pre>` is one that browsers drop; without it they drop the text's own. */
function renderComment({ id, comment, created_at, modified_at }: Comment): Html {
  const changed = modified_at === created_at ? '' : `, changed ${modified_at} UTC`;
  return html`<article class="card comment"><h3>No. ${id}, ${created_at} UTC${changed}</h3><pre>
${comment}</pre></article>
`;
}

export function renderMissing(id: number): string {
  return layOut({
    title: 'Not found · Sandbox notebook',
    content: html`<nav><a href="/">← All experiments</a></nav>
<div class="card empty"><b>There is no experiment ${id}</b>It was deleted, or never made.</div>`,
  });
}
