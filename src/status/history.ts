import { z } from 'zod';
import { formatTime } from '../text.js';

/** What the journal wrote down about a run, and when. */
interface Happening {
  readonly event: string;
  readonly detail: unknown;
}

const text = z.string().optional();
const number = z.number().optional();
const detailSchema = z.looseObject({
  path: text,
  reason: text.nullable(),
  server: text,
  experiment: number,
  found: z.boolean().optional(),
  n: number,
  comment: number,
  comments: z.union([z.number(), z.array(z.object({ n: z.number() }))]).optional(),
  dueAt: number,
  as: z.union([z.string(), z.number()]).optional(),
  of: number,
  with: number,
  was: text,
  became: text,
  since: number,
  changes: z.array(z.string()).optional(),
});

type Detail = z.output<typeof detailSchema>;

/** One event of a run's history, in a sentence for people. */
export function happeningInWords({ event, detail }: Happening): string {
  const known = detailSchema.safeParse(detail ?? {}).data;
  const words = known && WORDS[event]?.(known);
  // What a later version writes is better shown as it is than left out.
  return words || [event, detail === undefined ? '' : JSON.stringify(detail)].join(' ').trim();
}

const WORDS: Readonly<Record<string, (detail: Detail) => string>> = {
  read: ({ path }) => `its file was read: ${path}`,
  refused: ({ reason }) => `its file could not be read: ${reason ?? ''}`,
  drifted: ({ since, changes = [] }) =>
    `not like ${since === undefined ? 'the runs before it' : `run ${since}`}: ${changes.join('; ')}`,
  intended: ({ server }) => `its experiment is to be created at ${server}`,
  notCreated: () => 'the experiment was not created',
  created: ({ experiment, found }) =>
    found ? `experiment ${experiment}, created before, is used` : `experiment ${experiment} was created`,
  described: () => 'title, date, body and tags were written',
  commentIntended: ({ n }) => `comment ${n} is to be posted`,
  notCommented: ({ n }) => `comment ${n} was not posted`,
  commented: ({ n, comment, found }) =>
    found
      ? `comment ${n} was found in the notebook, as ${comment}`
      : `comment ${n} was posted, as ${comment}`,
  commentRevised: ({ n }) => `comment ${n} was changed to what the file reads as now`,
  commentDropped: ({ n }) => `comment ${n}, which the file no longer gives, is gone`,
  finished: () => 'all of it is in the notebook',
  postponed: ({ dueAt = 0, reason }) => `put off until ${formatTime(dueAt)}: ${reason}`,
  rested: ({ as, reason }) => `${as}: ${reason}`,
  retried: (detail) =>
    detail.with === undefined ? 'somebody had it tried again' : `goes on together with run ${detail.with}`,
  remapAsked: () => 'somebody had its file read anew, with the mapping of that time',
  remapped: () => 'its file reads otherwise now: its experiment and comments are revised',
  remapUnchanged: () => 'its file reads as it was filed: nothing was sent',
  remapRefused: ({ reason }) => reason ?? 'it could not be read anew',
  adopted: ({ experiment }) => `somebody gave it experiment ${experiment}`,
  refiled: ({ as, of }) =>
    as === undefined ? `it is run ${of}, filed anew` : `somebody had it filed anew, as run ${as}`,
  recovered: ({ experiment, comments = 0 }) =>
    `recovered from the notebook: experiment ${experiment}, ${comments} comments`,
  repaired: ({ comments }) => `posted again, since gone: ${numbersOf(comments)}`,
  setBack: ({ experiment, became }) => `the notebook was set back: ${setBack(experiment, became)}`,
  ignored: ({ was }) => `somebody set it aside; it was ${was}`,
  erased: () => 'its name, draft and history were erased',
};

const numbersOf = (comments: Detail['comments']): string =>
  Array.isArray(comments) ? comments.map(({ n }) => `comment ${n}`).join(', ') : 'comments';

function setBack(experiment: number | undefined, became: string | undefined): string {
  if (became === 'released') return `experiment ${experiment} is gone`;
  return became === 'created'
    ? `experiment ${experiment} is blank, and is filled in again`
    : `comments of experiment ${experiment} are gone, and are posted again`;
}
