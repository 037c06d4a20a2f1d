import { z } from 'zod';

/** A text that is not empty. */
export const text = (what: string) => z.string({ error: `expected ${what}` }).min(1, `expected ${what}`);
