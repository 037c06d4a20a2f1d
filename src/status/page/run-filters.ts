import type { RunState } from '../../model.js';
import { createSlot, h } from './dom.js';

/** Every state that a run in the journal can have. */
const STATES: readonly RunState[] = ['queued', 'sending', 'done', 'quarantined', 'held', 'ignored'];

interface Chosen {
  readonly state: string | undefined;
  readonly instrument: string | undefined;
}

export interface Filters {
  readonly element: HTMLElement;
  offer(instruments: readonly string[]): void;
  choose(chosen: Chosen): void;
}

const option = (value: string, text: string): HTMLOptionElement => h('option', { value }, text);

/** Which runs are to be seen. */
export function createFilters(changed: (state: string, instrument: string) => void): Filters {
  const state = h(
    'select',
    { id: 'runs-state' },
    option('', 'any state'),
    ...STATES.map((name) => option(name, name)),
  );
  const instrument = h('select', { id: 'runs-instrument' }, option('', 'any instrument'));
  const names = createSlot(instrument);
  for (const select of [state, instrument])
    select.addEventListener('change', () => changed(state.value, instrument.value));

  return {
    element: h(
      'div',
      { className: 'filters' },
      h('label', { attrs: { for: 'runs-state' } }, 'State', state),
      h('label', { attrs: { for: 'runs-instrument' } }, 'Instrument', instrument),
    ),
    offer: (known) =>
      names(known, () => [option('', 'any instrument'), ...known.map((name) => option(name, name))]),
    choose(chosen) {
      const name = chosen.instrument ?? '';
      // An address may name an instrument that is not known, or not yet.
      if (![...instrument.options].some(({ value }) => value === name)) instrument.append(option(name, name));
      instrument.value = name;
      state.value = chosen.state ?? '';
    },
  };
}
