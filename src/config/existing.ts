import type { Existing } from './schema.js';

/** Of the files that were there before, those modified before this instant (in nanoseconds) are passed over. */
export function skipBeforeNs(existing: Existing): bigint {
  if (existing === 'ingest') return 0n;
  if (existing === 'skip') return 2n ** 62n;
  return BigInt(new Date(`${existing.since}T00:00:00`).getTime()) * 1_000_000n;
}
