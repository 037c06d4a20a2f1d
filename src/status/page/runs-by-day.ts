import { day } from './words.js';

export const DAYS = 30;

/** How many runs came in each hour since 1970 that had any. */
export type Hours = readonly { readonly hour: number; readonly runs: number }[];

/** Runs a day, the last being today. */
export function runsByDay(hours: Hours, now: number): { readonly day: string; readonly runs: number }[] {
  const sums = new Map<string, number>();
  for (const { hour, runs } of hours) {
    const key = day(hour * 3_600_000);
    sums.set(key, (sums.get(key) ?? 0) + runs);
  }
  const today = new Date(now);
  return Array.from({ length: DAYS }, (_, index) => {
    // At noon: a day on which the clocks change has another length.
    const noon = new Date(today.getFullYear(), today.getMonth(), today.getDate() - (DAYS - 1 - index), 12);
    const key = day(noon.getTime());
    return { day: key, runs: sums.get(key) ?? 0 };
  });
}
