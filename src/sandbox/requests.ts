import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../clock.js';

/** A request to the API as it came over the wire. */
export interface SeenRequest {
  /** Counts from 1. */
  readonly number: number;
  readonly atMs: number;
  readonly method: string;
  /** With the query, as it was sent. */
  readonly path: string;
  /** All but the key. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Which key came with it, where it is one of the notebook's. */
  readonly keyId: number | undefined;
  readonly body: string;
  /** What the notebook answered, whether or not that got through; undefined where it was never asked. */
  readonly status: number | undefined;
}

/** Beyond this the oldest are forgotten, so that a notebook that runs for weeks does not fill the memory. */
const KEPT_BYTES = 64 * 1024 * 1024;
/** Roughly what a request takes besides its body. */
const OVERHEAD_BYTES = 1_024;

export type RequestLog = ReturnType<typeof createRequestLog>;
export type Arrived = Omit<SeenRequest, 'number' | 'atMs' | 'status'>;

export function createRequestLog(clock: Clock) {
  const kept: SeenRequest[] = [];
  const underWay = new Set<number>();
  let whenSettled: (() => void)[] = [];
  let count = 0;
  let bytes = 0;

  function forgetOldest(): void {
    while (bytes > KEPT_BYTES && kept.length > 1) bytes -= sizeOf(kept.shift());
  }

  return {
    add(arrived: Arrived): SeenRequest {
      count += 1;
      const seen: SeenRequest = { ...arrived, number: count, atMs: clock.now(), status: undefined };
      kept.push(seen);
      underWay.add(count);
      bytes += sizeOf(seen);
      forgetOldest();
      return seen;
    },
    /** The request is over: answered, or never to be. */
    end({ number }: SeenRequest, status?: number): void {
      const index = kept.findLastIndex((seen) => seen.number === number);
      const seen = kept[index];
      if (seen && status !== undefined) kept[index] = { ...seen, status };
      underWay.delete(number);
      if (underWay.size > 0) return;
      for (const settle of whenSettled) settle();
      whenSettled = [];
    },
    list: (): readonly SeenRequest[] => [...kept],
    forget(): void {
      kept.length = 0;
      bytes = 0;
    },
    /** Resolves when every request so far was carried out, or never will be: also those whose connection was cut. */
    settled: (): Promise<void> =>
      underWay.size === 0 ? Promise.resolve() : new Promise((resolve) => void whenSettled.push(resolve)),
  };
}

const sizeOf = (seen: SeenRequest | undefined) => (seen ? seen.body.length + OVERHEAD_BYTES : 0);
