import { type Random, seeded } from '../support/random.js';

/** What else can happen in a history. Each has random numbers of its own, so that switching one on or off leaves the others. */
const EVENTS = [
  /** The server skips up to 40 ids. */
  'gaps',
  /** The PC's clock jumps, by minutes to years. */
  'clock',
  /** A server that drops the titles of creations is upgraded, and keeps them. */
  'titles',
  /** The server always fails on the description or a comment of one run. */
  'poison',
  /** For a while, the server fails on every write with a 500. */
  'spell',
  /** For a while, the key may not create experiments. */
  'readonly',
  /** For a while, a proxy refuses every PATCH. */
  'refused',
  /** Reading another person's experiment always fails. */
  'unreadable',
  /** A second PC has an instrument of the same name, and files into the same notebook. */
  'second',
  /** The server is restored to an older state, and people continue to work. */
  'restored',
  /** The configuration is reloaded while requests are in flight. */
  'reload',
  /** Once, the journal cannot be synced: the process sends nothing more, until it is restarted. */
  'sync',
  /** The journal is removed, or replaced by an older copy. */
  'lost',
  /** A person creates experiments with our account. Where titles are dropped, the journal knows it. */
  'shared',
] as const;

type EventName = (typeof EVENTS)[number];

export type Events = ReadonlyMap<EventName, Random>;

/** How often an event happens by default. */
const SHARE = 0.1;

/** LABFEED_EVENTS=poison,gaps: exactly these happen, in every history. */
const named = process.env['LABFEED_EVENTS']?.split(',').filter((name) => name !== '');

export function chooseEvents(seed: number): Events {
  const unknown = named?.find((name) => !EVENTS.some((event) => event === name));
  if (unknown !== undefined) throw new Error(`there is no event ${unknown}; events are ${EVENTS.join(', ')}`);
  const chosen = EVENTS.map((name, index) => [name, seeded(seed * EVENTS.length * 7919 + index)] as const);
  return new Map(
    chosen.filter(([name, random]) => {
      const isChosen = random.chance(SHARE);
      return named === undefined ? isChosen : named.includes(name);
    }),
  );
}
