import { z } from 'zod';

const id = z.int().positive();

/** What people decide about runs that labfeed will not guess about, as it stands in the inbox. */
export const requestSchema = z.discriminatedUnion('kind', [
  /** Goes on where it stood; what is quarantined is read anew. */
  z.strictObject({ kind: z.literal('retry'), run: id }),
  /** This experiment is the run's, whatever it holds. */
  z.strictObject({ kind: z.literal('adopt'), run: id, server: z.string(), experiment: id }),
  /** Files it once more, as a run of its own. */
  z.strictObject({ kind: z.literal('refile'), run: id }),
  /** Reads the file of a done run anew, and has its experiment and comments revised. */
  z.strictObject({ kind: z.literal('remap'), run: id }),
]);

export type Request = z.output<typeof requestSchema>;

export const answerSchema = z.strictObject({
  /** Whether it was carried out. What is refused has changed nothing. */
  done: z.boolean(),
  /** What became of it, for people. */
  text: z.string(),
  /** The instrument whose folder holds what is to be read anew. */
  rescan: z.string().optional(),
});

export type Answer = z.output<typeof answerSchema>;
