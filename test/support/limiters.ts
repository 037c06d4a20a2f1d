/** How servers limit requests. Each takes the time of a request and says whether it is served, and if not, when to come back. */
export type Limiter = (now: number) => { readonly served: boolean; readonly waitMs: number };

/** Counts from the start of each period; `offsetMs` is where the periods lie. */
export function fixedWindow(most: number, windowMs: number, offsetMs = 0): Limiter {
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

/** Counts over the last period; where `strict`, refused requests count as well. */
export function slidingWindow(most: number, windowMs: number, strict = false): Limiter {
  let times: number[] = [];
  return (now) => {
    times = times.filter((at) => at > now - windowMs);
    const served = times.length < most;
    if (served || strict) times.push(now);
    return { served, waitMs: (times[times.length - most] ?? now) + windowMs - now };
  };
}

/** Refills steadily, and saves up to `burst`. */
export function tokenBucket(perSecond: number, burst: number): Limiter {
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
