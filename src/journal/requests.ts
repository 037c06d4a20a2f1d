import { z } from 'zod';
import { existingSchema } from '../config/schema.js';

const id = z.int().positive();

/** What people decide about runs that labfeed will not guess about, as it stands in the inbox. */
export const requestSchema = z.discriminatedUnion('kind', [
  /** Goes on where it stood; what is quarantined is read anew. */
  z.strictObject({ kind: z.literal('retry'), run: id }),
  /** This experiment is the run's, whatever it holds. */
  z.strictObject({ kind: z.literal('adopt'), run: id, server: z.string(), experiment: id }),
  /** Files it once more, as a run of its own. */
  z.strictObject({ kind: z.literal('refile'), run: id }),
  /** Sets it aside: it is not filed. */
  z.strictObject({ kind: z.literal('ignore'), run: id }),
  /** Removes all of it but what it is known by. */
  z.strictObject({ kind: z.literal('erase'), run: id }),
  /** What is to become of the old files that an instrument's first scan found. */
  z.strictObject({ kind: z.literal('backfill'), instrument: z.string(), existing: existingSchema }),
  /** Posts again what is gone: each comment with the id under which it was missed. Without any: goes on at once. */
  z.strictObject({
    kind: z.literal('repair'),
    run: id,
    comments: z.array(z.strictObject({ n: id, comment: id })).readonly(),
  }),
  /** Reads the file of a done run anew, and has its experiment and comments revised. */
  z.strictObject({ kind: z.literal('remap'), run: id }),
]);

export type Request = z.output<typeof requestSchema>;

/** What a request is about, for people. */
export const subjectOf = (request: Request): string =>
  'run' in request ? `run ${request.run}` : request.instrument;

export const answerSchema = z.strictObject({
  /** Whether it was carried out. What is refused has changed nothing. */
  done: z.boolean(),
  /** What became of it, for people. */
  text: z.string(),
  /** The instrument whose folder holds what is to be read anew. */
  rescan: z.string().optional(),
});

export type Answer = z.output<typeof answerSchema>;
