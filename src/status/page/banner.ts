import type { PageState } from '../api.js';
import { byId, createSlot, h, setData, setText } from './dom.js';
import type { Connection } from './feed.js';
import { type Health, healthOf } from './health.js';
import { clockTime } from './words.js';

const MOST_ALSO = 6;

export interface Banner {
  show(state: PageState, now: number): void;
  connection(connection: Connection, now: number): void;
}

/** The sentence at the top, in the tab's title too, and whether what is shown is of now. */
export function createBanner(): Banner {
  const section = byId('health');
  const sentence = byId('sentence');
  const also = createSlot(byId('also'));
  const connected = byId('connection');
  let shownAt: number | undefined;

  return {
    show(state, now) {
      const health = healthOf(state, now);
      shownAt = state.at;
      setData(section, 'tone', health.tone);
      setText(sentence, health.sentence);
      also(health.also, () => alsoOf(health).map((text) => h('li', {}, text)));
      const title = health.tone === 'well' ? 'labfeed' : `${health.sentence} · labfeed`;
      if (document.title !== title) document.title = title;
    },
    connection(connection, now) {
      setData(connected, 'connection', connection);
      // What is old must not look like news: nobody is to trust a sentence that may long be wrong.
      setData(section, 'stale', String(connection === 'lost'));
      setText(connected, connectionInWords(connection, shownAt, now));
    },
  };
}

const alsoOf = ({ also }: Health): readonly string[] =>
  also.length <= MOST_ALSO
    ? also
    : [...also.slice(0, MOST_ALSO), `and ${also.length - MOST_ALSO} more troubles`];

function connectionInWords(connection: Connection, shownAt: number | undefined, now: number): string {
  switch (connection) {
    case 'live':
      return 'Live';
    case 'connecting':
      return 'Connecting …';
    case 'lost':
      return shownAt === undefined
        ? 'No connection to labfeed; trying again …'
        : `No connection to labfeed: this is of ${clockTime(shownAt, now)}. Trying again …`;
  }
}
