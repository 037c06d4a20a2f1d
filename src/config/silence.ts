import { z } from 'zod';
import { duration } from './units.js';

/** From 1 for Monday to 7 for Sunday. */
export type Weekday = 1 | 2 | 3 | 4 | 5 | 6 | 7;

/** When to tell that nothing comes. */
export interface Silence {
  readonly afterMs: number;
  /** Only time on these days counts. */
  readonly days: ReadonlySet<Weekday>;
}

const NAMES: readonly string[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const ALL: readonly Weekday[] = [1, 2, 3, 4, 5, 6, 7];
const EXPECTED = 'expected days such as mon-fri, or mon,wed,fri';

const days = z
  .string({ error: EXPECTED })
  .transform((text, context): ReadonlySet<Weekday> => {
    const chosen = text.split(',').flatMap((part) => {
      const span = spanOf(part.trim());
      if (span.length === 0) context.addIssue({ code: 'custom', message: `${EXPECTED}, found "${part}"` });
      return span;
    });
    return new Set(chosen);
  })
  .describe('Only time on these days counts, as this machine’s clock has them: mon-fri, or mon,wed,fri.');

/** `mon-fri`, `sat-mon`, `wed`; nothing where it is not written so. */
function spanOf(text: string): readonly Weekday[] {
  const [first, last = first, more] = text.split('-').map((name) => NAMES.indexOf(name));
  if (first === undefined || last === undefined || first < 0 || last < 0 || more !== undefined) return [];
  const length = ((last - first + 7) % 7) + 1;
  return [...ALL, ...ALL].slice(first, first + length);
}

const after = () => duration().refine((ms) => ms > 0, 'expected more than nothing');

export const silenceSchema = z
  .union(
    [
      after().transform((afterMs): Silence => ({ afterMs, days: new Set(ALL) })),
      z
        .strictObject({ after: after().describe('How long.'), days: days.optional() })
        .transform((written): Silence => ({ afterMs: written.after, days: written.days ?? new Set(ALL) })),
    ],
    { error: 'expected a duration such as 24h, or { after: 24h, days: mon-fri }' },
  )
  .describe('Raise an alarm when nothing has come for this long: 24h, or { after: 24h, days: mon-fri }.');
