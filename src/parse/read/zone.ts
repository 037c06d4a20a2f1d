import type { Refuse } from '../refuse.js';
import { zoneNamed } from '../values/zones.js';
import type { Facts } from './facts.js';

/** The time zone that the file itself names. */
export function zoneOf(from: string, facts: Facts, refuse: Refuse): string {
  const { text, line } = facts.require(from);
  const zone = zoneNamed(text);
  if (zone !== undefined) return zone;
  throw refuse(`this is no time zone: ${JSON.stringify(text)}`, {
    line,
    hint: 'give the zone itself: `dates: { zone: Europe/Zurich }`',
  });
}
