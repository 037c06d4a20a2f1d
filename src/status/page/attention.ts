import type { Job, PageState } from '../api.js';
import type { Decide } from './decide.js';
import { byId, type Child, createList, createSlot, h, type Row } from './dom.js';
import { chip, reasonOf, runLink, timeAgo } from './parts.js';
import { questionButtons } from './question-buttons.js';
import { runButtons } from './run-buttons.js';
import { plural } from './words.js';

/** More than these make nobody faster; the others are a click away. */
const MOST_SHOWN = 20;

export interface AttentionDeps {
  readonly decide: Decide;
  now(): number;
}

type Item =
  | { readonly kind: 'question'; readonly instrument: string; readonly asked: number }
  | { readonly kind: 'run'; readonly job: Job };

/** What needs a person: questions about old files, and runs that labfeed will not guess about. */
export function createAttention(deps: AttentionDeps): (state: PageState) => void {
  const section = byId('attention');
  const more = createSlot(byId('attention-more'));
  const list = createList<Item>(byId('attention-list'), {
    key: (item) => (item.kind === 'run' ? `run ${item.job.id}` : `question ${item.instrument}`),
    create: () => createItem(deps),
  });

  return ({ overview, attention, attentionCount }) => {
    const questions = overview.instruments.filter(({ asked }) => asked > 0);
    section.hidden = questions.length + attentionCount === 0;
    list([
      ...questions.map(({ name, asked }): Item => ({ kind: 'question', instrument: name, asked })),
      ...attention.slice(0, MOST_SHOWN).map((job): Item => ({ kind: 'run', job })),
    ]);
    const hidden = attentionCount - Math.min(attention.length, MOST_SHOWN);
    more(hidden, () => (hidden <= 0 ? [] : moreRuns(hidden)));
  };
}

const moreRuns = (hidden: number) => [
  `And ${plural(hidden, 'more run')}: `,
  h('a', { href: '#/runs?state=quarantined' }, 'all that are quarantined'),
  ', ',
  h('a', { href: '#/runs?state=held' }, 'all that are held'),
];

function createItem(deps: AttentionDeps): Row<Item> {
  const element = h('li', { className: 'panel item' });
  const slot = createSlot(element);
  return {
    element,
    update: (item) =>
      slot(item, () => (item.kind === 'run' ? runOf(item.job, deps) : questionOf(item, deps))),
  };
}

const runOf = (job: Job, { decide, now }: AttentionDeps): Child[] => [
  h('h3', {}, chip(job.state), runLink(job)),
  h('p', { className: 'soft' }, `Run ${job.id} of ${job.instrument}, `, timeAgo(job.updatedAt, now())),
  job.reason !== undefined && reasonOf(job.reason, job.path),
  runButtons(job, decide),
];

const questionOf = (
  { instrument, asked }: Extract<Item, { kind: 'question' }>,
  { decide }: AttentionDeps,
): Child[] => [
  h('h3', {}, chip('held', 'question'), `${plural(asked, 'old file')} of ${instrument}`),
  h(
    'p',
    {},
    `When ${instrument} was looked at for the first time, ${plural(asked, 'file was', 'files were')} already there. Shall they go into the notebook?`,
  ),
  questionButtons(instrument, asked, decide),
];
