import type { PageState } from '../api.js';
import { type CardModel, createCard } from './card.js';
import { byId, createList, setText } from './dom.js';
import { createPlots } from './plot.js';

/** These are told by the list of what needs a person, and by the configuration's mistakes. */
const ELSEWHERE: ReadonlySet<string> = new Set(['quarantine', 'held', 'configuration']);

/** A card an instrument, in the order of the configuration; those that only the journal knows come last. */
export function createInstruments(now: () => number): (state: PageState) => void {
  const plots = createPlots();
  const none = byId('instruments-none');
  const cards = createList<CardModel>(byId('instruments'), {
    key: ({ name }) => name,
    create: () => createCard(plots, now),
  });
  return (state) => {
    const models = modelsOf(state);
    cards(models);
    none.hidden = models.length > 0;
    setText(none, `No instrument is configured. labfeed reads ${state.live.config}.`);
  };
}

export function modelsOf({ live, overview }: PageState): CardModel[] {
  const summaries = new Map(overview.instruments.map((summary) => [summary.name, summary]));
  const configured = new Set(live.instruments.map(({ name }) => name));
  const alarmsOf = (name: string) =>
    live.alarms.filter(({ instrument, kind }) => instrument === name && !ELSEWHERE.has(kind));
  return [
    ...live.instruments.map((instrument) => ({
      name: instrument.name,
      live: instrument,
      summary: summaries.get(instrument.name),
      alarms: alarmsOf(instrument.name),
    })),
    ...overview.instruments
      .filter(({ name }) => !configured.has(name))
      .map((summary) => ({ name: summary.name, live: undefined, summary, alarms: [] })),
  ];
}
