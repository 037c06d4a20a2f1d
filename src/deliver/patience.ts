/** How long a limit is believed, how soon it is approached, and how fast more is tried afterwards. */
export interface Patience {
  /** Refusals were met at this pace, and cost so much time; the limit is now taken to be there. */
  refused(was: number, limit: number, closedMs: number): void;
  approachMs(): number;
  /** After so much more time without a refusal: by what part the limit may be raised. */
  tried(ms: number): number;
}

/** An approach takes half the time that the server took to forgive, within these bounds. */
const APPROACH_MS = { least: 3000, most: 30_000 };
/** A limit is believed for twenty times what a refusal costs, in time and in requests. */
const BELIEVED = { leastMs: 60_000, mostMs: 400_000, toClosed: 20, requests: 100 };
/** But only for a ninth or a third of that until refusals have been met about there twice more. */
const SURE = 2;
const ABOUT = 1.1;
/** Then this much more is tried in the time of an approach, and ever faster. */
const TRIED = { perApproach: 0.03, perRequest: 0.005 };

export function createPatience(): Patience {
  let lastWas = 0;
  let confirmed = 0;
  /** How long the server takes to forgive; fades, so that one long pause is not held against it for ever. */
  let forgivesMs = 0;
  let approachMs = APPROACH_MS.least;
  let leftMs = 0;
  return {
    refused(was, limit, closedMs) {
      const same = was < lastWas * ABOUT && was > lastWas / ABOUT;
      confirmed = same ? Math.min(confirmed + 1, SURE) : 0;
      lastWas = was;
      forgivesMs = Math.max(closedMs, 0.8 * forgivesMs);
      approachMs = Math.min(APPROACH_MS.most, Math.max(APPROACH_MS.least, forgivesMs / 2));
      const forTime = Math.min(BELIEVED.mostMs, Math.max(BELIEVED.leastMs, BELIEVED.toClosed * forgivesMs));
      leftMs = Math.max(forTime, (1000 * BELIEVED.requests) / limit) * 3 ** (confirmed - SURE);
    },
    approachMs: () => approachMs,
    tried(ms) {
      leftMs -= ms;
      if (leftMs >= 0) return 0;
      return Math.min(TRIED.perRequest, (TRIED.perApproach * ms * (1 - leftMs / approachMs)) / approachMs);
    },
  };
}
