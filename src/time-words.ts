import { DateTime } from 'luxon';

/** A time as people of this place read it, to the second. */
export const atTime = (ms: number): string => DateTime.fromMillis(ms).toFormat('yyyy-MM-dd HH:mm:ss');

/** To the minute, for lists; the year is left out where it is this one. */
export function atMinute(ms: number, now: number): string {
  const time = DateTime.fromMillis(ms);
  return time.toFormat(time.year === DateTime.fromMillis(now).year ? 'MM-dd HH:mm' : 'yyyy-MM-dd HH:mm');
}

/** `5 minutes ago`, `in 12 seconds`. */
export function fromNow(ms: number, now: number): string {
  if (Math.abs(ms - now) < 1000) return 'just now';
  const base = DateTime.fromMillis(now);
  return DateTime.fromMillis(ms).toRelative({ base, locale: 'en' }) ?? atTime(ms);
}
