import type { DecisionAnswer, DecisionRequest } from '../api.js';
import { h } from './dom.js';

export type Decide = (request: DecisionRequest) => Promise<void>;

const MOST_SHOWN = 4;

/** Carries decisions out and shows what became of them, until that is closed: the run itself may be gone from view. */
export function createDecide(
  container: HTMLElement,
  ask: (request: DecisionRequest) => Promise<DecisionAnswer>,
): Decide {
  function show({ done, text }: DecisionAnswer): void {
    const close = h('button', { type: 'button', className: 'quiet' }, 'Close');
    const outcome = h(
      'div',
      { className: `outcome ${done ? 'done' : 'refused'}` },
      h('p', {}, h('b', {}, done ? 'Done: ' : 'Not done: '), text),
      close,
    );
    close.addEventListener('click', () => outcome.remove());
    container.append(outcome);
    while (container.childElementCount > MOST_SHOWN) container.firstElementChild?.remove();
  }

  return async (request) => {
    try {
      show(await ask(request));
    } catch (error) {
      show({ done: false, text: error instanceof Error ? error.message : String(error) });
    }
  };
}
