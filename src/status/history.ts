import { z } from 'zod';
import { capitalize, formatClock, plural } from '../text.js';

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
  upload: number,
  files: number,
  comments: z.union([z.number(), z.array(z.object({ n: z.number() }))]).optional(),
  dueAt: number,
  times: number,
  lastAt: number,
  as: z.union([z.string(), z.number()]).optional(),
  of: number,
  with: number,
  was: text,
  became: text,
  since: number,
  changes: z.array(z.string()).optional(),
  noPlot: text,
  isPlot: z.boolean().optional(),
  outcome: text,
  to: text,
  renamed: z.looseObject({ path: z.string() }).optional(),
  range: text,
  rows: number,
  notes: z.array(z.string()).optional(),
});

type Detail = z.output<typeof detailSchema>;

/** One event of a run's history as a sentence, for the page and for `labfeed show`. */
export function describeEvent({ at, event, detail }: { at: number; event: string; detail: unknown }): string {
  const known = detailSchema.safeParse(detail ?? {}).data;
  const sentence = known && SENTENCES[event]?.(known, at);
  // An event of a later version is shown as it is stored.
  return sentence || [event, detail === undefined ? '' : JSON.stringify(detail)].join(' ').trim();
}

const SENTENCES: Readonly<Record<string, (detail: Detail, at: number) => string>> = {
  read: ({ path, noPlot }) => `File read: ${path}${noPlot ? `. No plot: ${noPlot}` : ''}`,
  versionRead: ({ path, noPlot }) => `File has changed and was read: ${path}${noPlot ? `. No plot: ${noPlot}` : ''}`,
  refused: ({ reason }) => `File could not be read: ${reason ?? ''}`,
  drifted: ({ since, changes = [] }) =>
    `Differs from ${since === undefined ? 'the previous runs' : `run ${since}`}: ${changes.join('; ')}`,
  intended: ({ server }) => `About to create an experiment on ${server}`,
  notCreated: () => 'Experiment not created',
  created: ({ experiment, found }) =>
    found ? `Experiment ${experiment} found: it was created earlier` : `Experiment ${experiment} created`,
  described: () => 'Title, date, body and tags written',
  commentIntended: ({ n }) => `About to post comment ${n}`,
  notCommented: ({ n }) => `Comment ${n} not posted`,
  commented: ({ n, comment, found }) => `Comment ${n} ${found ? 'found in the notebook' : 'posted'}, id ${comment}`,
  commentRevised: ({ n }) => `Comment ${n} updated`,
  commentDropped: ({ n }) => `Comment ${n} removed: the file no longer contains it`,
  grown: ({ range, rows = 0, notes = [] }) =>
    [`${capitalize(range ?? 'Lines')} taken, with ${plural(rows, 'reading')}`, ...notes.map(capitalize)].join('. '),
  fileChanged: ({ reason }) => capitalize(reason ?? ''),
  bodyKept: ({ reason }) => `The experiment stays as it is, and only comments are added: ${reason}`,
  finished: () => 'Filed: everything is in the notebook',
  postponed: ({ dueAt = 0, reason, times = 1, lastAt = 0 }, at) =>
    times === 1
      ? `Postponed until ${formatClock(dueAt, at)}: ${reason}`
      : `Postponed ${times} times since then, the last time at ${formatClock(lastAt, at)} until ${formatClock(dueAt, at)}: ${reason}`,
  rested: ({ as, reason }) => `${capitalize(String(as))}: ${reason}`,
  retried: (detail) => (detail.with === undefined ? 'Retry requested' : `Released together with run ${detail.with}`),
  remapAsked: () => 'Update with the current mapping requested',
  remapped: () => 'The mapping gives a different result: experiment and comments are updated',
  remapUnchanged: () => 'The mapping gives the same result: nothing was sent',
  remapRefused: ({ reason }) => `Not updated${reason ? `: ${reason}` : ''}`,
  adopted: ({ experiment }) => `Experiment ${experiment} adopted`,
  refiled: ({ as, of }) => (as === undefined ? `Refiled from run ${of}` : `Refiled as run ${as}`),
  recovered: ({ experiment, comments }) =>
    `Recovered from the notebook: experiment ${experiment}, ${plural(Number(comments ?? 0), 'comment')}`,
  repaired: ({ comments, files = 0 }) =>
    [
      ...(Array.isArray(comments) && comments.length === 0
        ? []
        : [`Missing comments are posted again: ${listComments(comments)}`]),
      ...(files === 0 ? [] : [`${plural(files, 'missing raw file')} attached again`]),
    ].join('. '),
  uploaded: ({ n, upload, found, isPlot }) =>
    `${isPlot ? 'Plot' : `Raw file ${n}`} ${found ? 'found in the notebook' : 'attached'}, id ${upload}`,
  uploadRemoved: () => 'A plot or raw file of an earlier reading was deleted from the notebook',
  additionDropped: () =>
    'The body was left as it is, without plot or note: somebody changed it, or the notebook refused it',
  uploadRefused: ({ reason }) => `${capitalize(String(reason))}`,
  uploadPostponed: ({ reason }) => `${capitalize(String(reason))}`,
  sourceSettled: ({ path, outcome, to }) =>
    `${SOURCE_OUTCOMES[outcome ?? ''] ?? outcome}: ${path}${to ? ` → ${to}` : ''}`,
  sourceRestored: ({ renamed }) => `A new file has taken the name of the file, which is now ${renamed?.path}`,
  sourcePostponed: ({ reason }) => `The file is neither moved nor deleted yet: ${reason}`,
  setBack: ({ experiment, became }) => `The notebook was restored: ${describeRestored(experiment, became)}`,
  ignored: ({ was }) => `Ignored; was ${was}`,
  ignoreUndone: ({ became }) => `No longer ignored: ${became} again`,
  erased: () => 'File name, draft and history erased',
};

const SOURCE_OUTCOMES: Readonly<Record<string, string>> = {
  moved: 'File moved',
  deleted: 'File deleted, after the attached file or every reading in it was read back from the notebook',
  gone: 'File no longer there: somebody removed it, or labfeed did just before it was interrupted',
  changed: 'File neither moved nor deleted: it has other content than what was filed',
  kept: 'File stays where it is: the configuration, or another file of the run, has changed',
};

const listComments = (comments: Detail['comments']): string =>
  Array.isArray(comments) ? comments.map(({ n }) => `comment ${n}`).join(', ') : 'all';

function describeRestored(experiment: number | undefined, became: string | undefined): string {
  if (became === 'released') return `experiment ${experiment} no longer exists`;
  if (became === 'outdated') return `experiment ${experiment} has an earlier version of the file`;
  return became === 'created'
    ? `experiment ${experiment} is empty and is filled in again`
    : `comments on experiment ${experiment} are missing and are posted again`;
}
