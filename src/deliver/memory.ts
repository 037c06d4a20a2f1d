/** How many requests the server took, and over how much time in which they could have been sent. */
export interface Taken {
  readonly taken: number;
  readonly openMs: number;
}

export interface Memory {
  add(taken: number, openMs: number): void;
  /** Over about this long, or as far back as is known. */
  recall(ms: number): Taken;
  clear(): void;
}

const HORIZONS_MS = [2000, 10_000, 60_000, 240_000];

/** What lies further back than a horizon fades by halves, so that no times of single requests are kept. */
export function createMemory(): Memory {
  const spans = HORIZONS_MS.map((horizonMs) => ({ horizonMs, taken: 0, openMs: 0 }));
  return {
    add(taken, openMs) {
      for (const span of spans) {
        span.taken += taken;
        span.openMs += openMs;
        if (span.openMs > span.horizonMs) {
          span.taken /= 2;
          span.openMs /= 2;
        }
      }
    },
    recall: (ms) => spans.find(({ horizonMs }) => horizonMs >= ms) ?? spans.at(-1) ?? { taken: 0, openMs: 0 },
    clear() {
      for (const span of spans) {
        span.taken = 0;
        span.openMs = 0;
      }
    },
  };
}
