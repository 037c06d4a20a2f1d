import type { RequestCount } from '../live.js';

/** How the requests of a daemon ended, since it started. */
export interface RequestCounter {
  count(method: string, status: number | undefined): void;
  list(): RequestCount[];
}

export function createRequestCounter(): RequestCounter {
  const counts = new Map<string, RequestCount>();
  return {
    count(method, answered) {
      const status = answered === undefined ? 'none' : String(answered);
      const key = `${method} ${status}`;
      counts.set(key, { method, status, count: (counts.get(key)?.count ?? 0) + 1 });
    },
    list: () => [...counts.keys()].sort().flatMap((key) => counts.get(key) ?? []),
  };
}
