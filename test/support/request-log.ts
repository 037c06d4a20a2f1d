import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../src/clock.js';

/** A request to the API as it was received. */
export interface SeenRequest {
  /** Counts from 1. */
  readonly number: number;
  readonly atMs: number;
  readonly method: string;
  /** With the query, as it was sent. */
  readonly path: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Which of the notebook's keys was used, if the key is known. */
  readonly keyId: number | undefined;
  readonly body: string;
  /** The status of the notebook's answer, whether or not it was delivered. Undefined if it was not carried out. */
  readonly status: number | undefined;
}

export type RequestLog = ReturnType<typeof createRequestLog>;

export function createRequestLog(clock: Clock) {
  const seen: SeenRequest[] = [];
  const inFlight = new Set<number>();
  let waiting: (() => void)[] = [];
  let count = 0;

  return {
    add(arrived: Omit<SeenRequest, 'number' | 'atMs' | 'status'>): SeenRequest {
      count += 1;
      const request: SeenRequest = { ...arrived, number: count, atMs: clock.now(), status: undefined };
      seen.push(request);
      inFlight.add(count);
      return request;
    },
    /** The request was answered, or never will be. */
    end({ number }: SeenRequest, status?: number): void {
      const index = seen.findLastIndex((request) => request.number === number);
      const request = seen[index];
      if (request && status !== undefined) seen[index] = { ...request, status };
      inFlight.delete(number);
      if (inFlight.size > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    list: (): readonly SeenRequest[] => [...seen],
    forget(): void {
      seen.length = 0;
    },
    settled: (): Promise<void> =>
      inFlight.size === 0 ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve)),
  };
}
