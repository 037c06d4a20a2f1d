import { InvalidArgumentError } from 'commander';
import { z } from 'zod';

/** A day, as in the configuration. */
export function readDate(text: string): string {
  const { success, data } = z.iso.date().safeParse(text);
  if (!success) throw new InvalidArgumentError('expected a date such as 2026-01-01.');
  return data;
}

/** When that day begins here. */
export const startOf = (date: string): number => new Date(`${date}T00:00:00`).getTime();
