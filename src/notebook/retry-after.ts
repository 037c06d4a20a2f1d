/** Longer waits are not believed: one request an hour hammers nobody, a mistyped year would stop us. */
const LONGEST_MS = 3_600_000;

/** The three forms that HTTP has for a date; `Date.parse` alone would find one in almost any text. */
const HTTP_DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d\d:\d\d:\d\d/i;

/** How long a `Retry-After` asks to wait, in seconds or as a date; undefined where it says nothing usable. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? '';
  const wait = /^[+-]?\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : (httpDate(text) ?? Number.NaN) - now;
  return Number.isNaN(wait) ? undefined : Math.round(Math.min(Math.max(wait, 0), LONGEST_MS));
}

/** Milliseconds since 1970. */
export function httpDate(text: string): number | undefined {
  if (!HTTP_DATE.test(text)) return undefined;
  // The oldest form has no zone and means GMT; left alone it would be read as local time.
  const time = Date.parse(/gmt|utc|[+-]\d{4}$/i.test(text) ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}
