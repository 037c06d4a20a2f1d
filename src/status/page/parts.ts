import type { RunState } from '../../model.js';
import type { Job } from '../api.js';
import { h, setText } from './dom.js';
import { ago, fileName, fullTime, sentence, splitReason, withinFile } from './words.js';

/** A sign beside the word: colour alone tells nothing to some people, and to nobody on paper. */
const SIGNS: Readonly<Record<RunState, string>> = {
  waiting: '•',
  queued: '•',
  sending: '→',
  done: '✓',
  quarantined: '!',
  held: '?',
  ignored: '–',
};

const MEANINGS: Readonly<Record<RunState, string>> = {
  waiting: 'its file is not yet still',
  queued: 'waits for its turn',
  sending: 'its delivery has begun',
  done: 'is in the notebook',
  quarantined: 'could not be filed as it is',
  held: 'needs a decision',
  ignored: 'was set aside',
};

export const chip = (state: RunState, text: string = state): HTMLElement =>
  h(
    'span',
    { className: `chip ${state}`, title: `${state}: ${MEANINGS[state]}` },
    h('span', { className: 'sign', attrs: { 'aria-hidden': 'true' } }, SIGNS[state]),
    text,
  );

/** A time that goes on ageing while it is looked at. */
export const timeAgo = (at: number, now: number): HTMLElement =>
  h(
    'time',
    { dateTime: new Date(at).toISOString(), title: fullTime(at), attrs: { 'data-ago': String(at) } },
    ago(at, now),
  );

export function ageTimes(now: number): void {
  for (const element of document.querySelectorAll('time[data-ago]'))
    setText(element, ago(Number(element.getAttribute('data-ago')), now));
}

/** What a run is called: as in the notebook, else by its file. */
export const nameOf = ({ id, title, path }: Job): string => title || (path && fileName(path)) || `Run ${id}`;

export const runLink = (job: Job): HTMLElement =>
  h('a', { href: `#/runs/${job.id}`, className: 'run' }, nameOf(job));

/** Why, and below it what to do. Of the file itself, which stands beside it, only the place is told. */
export function reasonOf(reason: string, path = ''): HTMLElement {
  const { what, toDo } = splitReason(reason);
  return h(
    'div',
    { className: 'reason' },
    h('p', {}, sentence(withinFile(what, path))),
    toDo !== undefined && h('p', { className: 'todo' }, h('b', {}, 'What to do: '), toDo),
  );
}

/** Facts as a list of names and values; what is not there is left out. */
export const factsOf = (
  facts: readonly (readonly [name: string, value: Node | string | undefined])[],
): HTMLElement =>
  h(
    'dl',
    { className: 'facts' },
    ...facts.flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [h('div', {}, h('dt', {}, name), h('dd', {}, value))],
    ),
  );

/** A body as the notebook will show it: in a frame in which nothing runs and from which nothing leads out. */
export function bodyFrame(
  title: string,
  body: string,
  source: { readonly src: string } | { readonly srcdoc: string },
): HTMLElement {
  const frame = h('iframe', { className: 'body', title });
  // Set before the content: a frame is what it was when its document was made.
  frame.setAttribute('sandbox', '');
  // Nobody can measure what is in such a frame, so that its height is an estimate; people can pull it larger.
  const lines = body.match(/<(?:p|tr|h\d|li|br|pre|div)\b/gi)?.length ?? 0;
  frame.style.height = `${Math.min(Math.max(9, 3 + 2.3 * lines), 32)}rem`;
  Object.assign(frame, source);
  return frame;
}

/** Links to servers go only where a browser asks for pages. */
export const isWebAddress = (url: string): boolean => /^https?:\/\//i.test(url);
