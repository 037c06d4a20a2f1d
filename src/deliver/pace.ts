/**
 * So much may be caught up on after a late timer or a short lull. A timer's grain is a millisecond: at
 * 2,000 a second, each wake lets a few pass.
 */
const SLACK_MS = 100;

/** Spreads requests evenly: what a server grants by the minute or the second is not spent in its first moment. */
export interface Pace {
  waitMs(now: number, perSecond: number): number;
  started(now: number, perSecond: number): void;
  /** Nothing is saved up before this time. */
  restart(at: number): void;
}

export function createPace(): Pace {
  /** Requests that may go at once; grows with time. */
  let credit = 0;
  let creditAt = Number.NEGATIVE_INFINITY;

  function settle(now: number, perSecond: number): void {
    if (now <= creditAt) return;
    const most = Math.max(1, (perSecond * SLACK_MS) / 1000);
    credit = Math.min(most, credit + ((now - creditAt) * perSecond) / 1000);
    creditAt = now;
  }

  return {
    waitMs(now, perSecond) {
      settle(now, perSecond);
      return credit >= 1 ? 0 : ((1 - credit) / perSecond) * 1000 + creditAt - now;
    },
    started(now, perSecond) {
      settle(now, perSecond);
      credit -= 1;
    },
    restart(at) {
      credit = 0;
      creditAt = at;
    },
  };
}
