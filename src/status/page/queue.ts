import type { RequestCount } from '../../live.js';
import type { PageState } from '../api.js';
import { byId, createSlot, h } from './dom.js';
import { gateInWords } from './gate-words.js';
import { totalsOf } from './health.js';
import { factsOf, isWebAddress } from './parts.js';
import { count, duration, plural } from './words.js';

/** How much is on the way, and why it waits. */
export function createQueue(): (state: PageState, now: number) => void {
  const container = byId('queue');
  const words = h('div', { className: 'gate' });
  const facts = h('div');
  const requests = h('div');
  container.append(words, facts, requests);
  const slots = [createSlot(words), createSlot(facts), createSlot(requests)] as const;

  return (state, now) => {
    const { notebook } = state.live;
    const gate = gateInWords(notebook.gate, now);
    slots[0](gate, () => [h('p', { className: 'big' }, gate.what), h('p', {}, gate.why)]);
    const { onTheWay, notStill, oldestAt } = totalsOf(state);
    const lines = {
      onTheWay: onTheWay === 0 ? 'nothing waits' : plural(onTheWay, 'run'),
      oldest: oldestAt === undefined ? undefined : `waits for ${duration(now - oldestAt)}`,
      notStill: notStill === 0 ? 'none' : plural(notStill, 'file'),
      url: notebook.url,
      dialect: state.overview.servers.find(({ url }) => url === notebook.url)?.dialect,
    };
    slots[1](lines, () => [
      factsOf([
        ['On the way', lines.onTheWay],
        ['The oldest', lines.oldest],
        ['Files not yet still', lines.notStill],
        ['Notebook', addressOf(lines.url)],
        ['It speaks', lines.dialect],
      ]),
    ]);
    slots[2](notebook.requests, () => [requestsOf(notebook.requests)]);
  };
}

const addressOf = (url: string): Node | string =>
  isWebAddress(url) ? h('a', { href: url, target: '_blank', rel: 'noreferrer' }, url) : url;

function requestsOf(requests: readonly RequestCount[]): HTMLElement | undefined {
  if (requests.length === 0) return undefined;
  const all = requests.reduce((sum, request) => sum + request.count, 0);
  const rows = requests.map(({ method, status, count: n }) =>
    h(
      'tr',
      {},
      h('td', {}, method),
      h('td', {}, status === 'none' ? 'no answer' : status),
      h('td', {}, count(n)),
    ),
  );
  return h(
    'details',
    {},
    h('summary', {}, `${plural(all, 'request')} since the start`),
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h('tr', {}, ...['Method', 'Answer', 'How often'].map((name) => h('th', { scope: 'col' }, name))),
      ),
      h('tbody', {}, ...rows),
    ),
  );
}
