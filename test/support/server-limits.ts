/** A server's limit. Called when a request arrives; `waitMs` is how long the next one would have to wait. */
export type ServerLimit = (now: number) => { readonly served: boolean; readonly waitMs: number };

/** Counts from the start of each period; `offsetMs` shifts the periods. */
export function fixedWindow(most: number, windowMs: number, offsetMs = 0): ServerLimit {
  let current = Number.NEGATIVE_INFINITY;
  let count = 0;
  return (now) => {
    const period = Math.floor((now + offsetMs) / windowMs);
    if (period !== current) count = 0;
    current = period;
    const served = count < most;
    if (served) count += 1;
    return { served, waitMs: (period + 1) * windowMs - offsetMs - now };
  };
}

/** Counts over the last period. */
export function slidingWindow(most: number, windowMs: number): ServerLimit {
  let times: number[] = [];
  return (now) => {
    times = times.filter((at) => at > now - windowMs);
    const served = times.length < most;
    if (served) times.push(now);
    return { served, waitMs: (times[0] ?? now) + windowMs - now };
  };
}

/** Refills steadily, up to `burst`. */
export function tokenBucket(perSecond: number, burst: number): ServerLimit {
  let tokens = burst;
  let last = 0;
  return (now) => {
    tokens = Math.min(burst, tokens + ((now - last) * perSecond) / 1000);
    last = now;
    const served = tokens >= 1;
    if (served) tokens -= 1;
    return { served, waitMs: ((1 - tokens) / perSecond) * 1000 };
  };
}

/** One limit until a time, another from then on. */
export const changing =
  (before: ServerLimit, after: ServerLimit, atMs: number): ServerLimit =>
  (now) =>
    (now < atMs ? before : after)(now);
