import { DateTime } from 'luxon';
import type { Silence, Weekday } from '../config/silence.js';

/** Whether so much of the time between two instants was on the days that count, in the time of this zone. */
export function isSilent({ afterMs, days }: Silence, from: number, to: number, zone = 'local'): boolean {
  let elapsedMs = 0;
  let start = DateTime.fromMillis(from, { zone });
  while (start.toMillis() < to && elapsedMs < afterMs) {
    // A day is not always 24 hours long.
    const end = start.startOf('day').plus({ days: 1 });
    if (days.has(start.weekday as Weekday)) elapsedMs += Math.min(end.toMillis(), to) - start.toMillis();
    start = end;
  }
  return elapsedMs >= afterMs;
}
