import { z } from 'zod';

/** Amounts as people write them in the configuration, and the one unit in which the program counts them. */

const DURATION_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
  y: 365 * 86_400_000,
};
const SIZE_BYTES: Record<string, number> = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };
const PERIOD_S: Record<string, number> = { s: 1, m: 60, h: 3600 };

function amount(pattern: RegExp, expected: string, toNumber: (amount: number, unit: string) => number) {
  return z
    .string({ error: `expected ${expected}` })
    .regex(pattern, `expected ${expected}`)
    .transform((text) => {
      const [, digits = '', unit = ''] = pattern.exec(text) ?? [];
      return toNumber(Number(digits), unit);
    });
}

/** `500ms 5s 2m 24h 30d 1y`, in milliseconds. */
export const duration = () =>
  amount(/^(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)$/, 'a duration such as 500ms, 5s, 2m or 24h', (n, unit) =>
    Math.round(n * (DURATION_MS[unit] ?? 1)),
  );

/** A timer of Node's that is set to more than 2^31 ms goes off at once. */
const LONGEST_WAIT_MS = 24 * 86_400_000;

/** How long something is waited for. */
export const wait = () =>
  duration()
    .refine((ms) => ms > 0, 'expected more than nothing')
    .refine((ms) => ms <= LONGEST_WAIT_MS, 'expected at most 24d');

/** `64KB 10MB`, in bytes. */
export const size = () =>
  amount(/^(\d+(?:\.\d+)?)(B|KB|MB|GB)$/, 'a size such as 64KB or 10MB', (n, unit) =>
    Math.round(n * (SIZE_BYTES[unit] ?? 1)),
  );

/** `10/s 300/m`, in requests per second. */
export const rate = () =>
  amount(
    /^(\d+(?:\.\d+)?)\/(s|m|h)$/,
    'a rate such as 10/s or 300/m',
    (n, unit) => n / (PERIOD_S[unit] ?? 1),
  ).refine((perSecond) => perSecond > 0, 'the rate must be greater than zero');
