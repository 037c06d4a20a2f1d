import type { Refuse } from '../refuse.js';
import { isZone } from '../values/date.js';
import type { WatchedCells } from './cells.js';
import type { Pair } from './facts.js';

/** The time zone that the file itself names. */
export function zoneOf(from: string, pairs: readonly Pair[], cells: WatchedCells, refuse: Refuse): string {
  const pair = pairs.find(({ name }) => name === from);
  const zone = cells.at(from)?.text ?? pair?.text;
  if (zone !== undefined && isZone(zone)) return zone;
  throw refuse(
    `${zone === undefined ? 'there is no fact' : 'this is no time zone:'} ${JSON.stringify(zone ?? from)}`,
    { line: pair?.line, hint: 'give the zone itself: `dates: { zone: Europe/Zurich }`' },
  );
}
