import type { ConfigProblem } from '../../live.js';
import type { PageState } from '../api.js';
import { byId, type Child, createSlot, h } from './dom.js';
import { timeAgo } from './parts.js';
import { plural } from './words.js';

/** What is wrong with the configuration that runs, and with a newer one that was refused. */
export function createMistakes(now: () => number): (state: PageState) => void {
  const section = byId('mistakes');
  const slot = createSlot(byId('mistakes-list'));
  return ({ live: { problems, refused, config } }) => {
    section.hidden = problems.length === 0 && refused === undefined;
    slot({ problems, refused }, () => [
      ...(problems.length === 0 ? [] : running(problems, config)),
      ...(refused === undefined ? [] : refusal(refused.problems, refused.at, now())),
    ]);
  };
}

const running = (problems: readonly ConfigProblem[], config: string): Child[] => [
  h(
    'div',
    { className: 'panel item bad' },
    h('h3', {}, `${plural(problems.length, 'mistake')} in the configuration that runs`),
    listOf(problems),
    h(
      'p',
      { className: 'soft' },
      `Mend it, prove it with labfeed check, then reload labfeed (SIGHUP). It reads ${config}.`,
    ),
  ),
];

const refusal = (problems: readonly ConfigProblem[], at: number, now: number): Child[] => [
  h(
    'div',
    { className: 'panel item bad' },
    h('h3', {}, 'A new configuration was refused; the old one goes on'),
    h(
      'p',
      { className: 'soft' },
      'Asked for ',
      timeAgo(at, now),
      '. All of it has to be right before it is taken.',
    ),
    listOf(problems),
  ),
];

const listOf = (problems: readonly ConfigProblem[]): HTMLElement =>
  h(
    'ul',
    { className: 'plain problems' },
    ...problems.map(({ at, message, hint, instrument }) =>
      h(
        'li',
        {},
        h('code', {}, at),
        h('p', {}, message),
        hint !== undefined && h('p', { className: 'todo' }, h('b', {}, 'What to do: '), hint),
        instrument !== undefined &&
          h('p', { className: 'soft' }, `Until then, ${instrument} is stopped; the others run.`),
      ),
    ),
  );
