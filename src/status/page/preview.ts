import type { Preview, PreviewTable } from '../api.js';
import { copy } from './copy.js';
import { type Child, h } from './dom.js';
import { bodyFrame, factsOf, reasonOf } from './parts.js';
import { count, plural } from './words.js';

type Made = Extract<Preview, { ok: true }>;
type Refused = Extract<Preview, { ok: false }>;

/** The experiment that a file would become. */
export function previewOf({ instrument, draft, mapping, doubts, tables, meta }: Made): HTMLElement[] {
  return [
    h(
      'div',
      { className: 'panel draft' },
      h('h3', {}, draft.title),
      h(
        'p',
        { className: 'soft' },
        `${draft.date} (${draft.dateFrom}), of ${instrument}`,
        ...draft.tags.map((tag) => h('span', { className: 'tag' }, tag)),
      ),
      bodyFrame('Body of the experiment', draft.body, { srcdoc: paper(draft.body) }),
    ),
    ...draft.comments.map((text, index) =>
      h(
        'figure',
        { className: 'panel comment' },
        h('figcaption', {}, `Comment ${index + 1} of ${draft.comments.length}`),
        h('pre', { tabIndex: 0 }, text),
      ),
    ),
    ...doubtsOf(doubts),
    ...mappingOf(mapping),
    h('h2', {}, 'What was read'),
    ...(meta.length === 0 ? [] : [factsOf(meta.map(({ name, text, unit }) => [name, withUnit(text, unit)]))]),
    ...tables.map(tableOf),
  ];
}

/** Why a file would not be filed, and what a mapping could look like. */
export const refusalOf = ({ reason, mapping, doubts = [] }: Refused, name: string): HTMLElement[] => [
  h('div', { className: 'panel item bad' }, reasonOf(reason, name)),
  ...doubtsOf(doubts),
  ...(mapping === undefined ? [] : mappingOf(mapping)),
];

/** A value is shown as it is written, which may be with its unit. */
const withUnit = (text: string, unit: string | undefined): string =>
  unit === undefined || text.endsWith(unit) ? text : `${text} ${unit}`;

/** The frame has the page's own policy: no script, no style but this one, nothing from elsewhere. */
const paper = (body: string): string =>
  `<!doctype html><link rel="stylesheet" href="/page/paper.css">${body}`;

const doubtsOf = (doubts: readonly string[]): HTMLElement[] =>
  doubts.length === 0
    ? []
    : [
        h(
          'div',
          { className: 'panel item' },
          h('h3', {}, 'Unsure'),
          h('ul', { className: 'doubts' }, ...doubts.map((doubt) => h('li', {}, doubt))),
        ),
      ];

function tableOf({ name, columns, rows, count: all }: PreviewTable): HTMLElement {
  const heading = columns.map(({ name, unit }) =>
    h('th', { scope: 'col' }, unit ? `${name} (${unit})` : name),
  );
  const lines = rows.map((row) => h('tr', {}, ...row.map((cell): Child => h('td', {}, cell))));
  const shown = rows.length < all ? `, the first ${count(rows.length)} of them` : '';
  return h(
    'div',
    { className: 'panel table', tabIndex: 0, attrs: { role: 'region', 'aria-label': `Table ${name}` } },
    h(
      'table',
      {},
      h('caption', {}, h('b', {}, name), ` ${plural(all, 'row')}${shown}`),
      h('thead', {}, h('tr', {}, ...heading)),
      h('tbody', {}, ...lines),
    ),
  );
}

function mappingOf(mapping: string): HTMLElement[] {
  const text = h('pre', { tabIndex: 0 }, mapping);
  const button = h('button', { type: 'button' }, 'Copy the mapping');
  const told = h('span', { className: 'soft', attrs: { role: 'status' } });
  button.addEventListener('click', async () => {
    told.textContent = (await copy(mapping, text)) ? 'Copied' : 'Marked: copy it with Ctrl+C';
  });
  return [
    h('h2', {}, 'The mapping'),
    h('div', { className: 'panel comment' }, h('div', { className: 'actions' }, button, told), text),
  ];
}
