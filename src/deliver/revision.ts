import { NotebookError } from '../errors.js';
import type { Dialect, Draft, OpenRun } from '../model.js';
import type { ExperimentRecord } from './deps.js';
import { hasTag, isBlankBody, isSameTags, showsBody, tagsIn } from './shown.js';

type Description = Omit<Draft, 'comments'>;
type Part = keyof Description;

/**
 * Whether an experiment that holds an earlier reading of the run's file, or is to, already shows today's. Each part of
 * it must be as one of the readings has it, since a PATCH may have been carried out in part; anything else is a
 * person's, and throws.
 */
export function isRevised(
  record: ExperimentRecord,
  { id, draft, earlier }: OpenRun,
  experiment: number,
  dialect: Dialect | undefined,
): boolean {
  refuseClosed(record, experiment, dialect);
  const isWritten = earlier.some(({ written }) => written);
  const shows = (part: Part, reading: Description): boolean => isShown(part, record, reading);
  const isOurs = (part: Part): boolean =>
    [draft, ...earlier].some((reading) => shows(part, reading)) ||
    (part === 'tags' && dialect === 'elabftw' && !(isWritten && lacksOurs(record, draft, earlier))) ||
    // Where nothing was written yet as a whole, it may not have come to this part.
    (!isWritten && isBlank(part, record));
  const changed = PARTS.filter((part) => !isOurs(part));
  if (changed.length > 0) throw changedByHand(id, experiment, changed, isWritten);
  // There, tags are not part of the PATCH, and people's own stay among ours.
  const patched = PARTS.filter((part) => part !== 'tags' || dialect !== 'elabftw');
  const isAs = (reading: Description): boolean => patched.every((part) => shows(part, reading));
  const isOther = (reading: Description): boolean =>
    patched.some((part) => String(reading[part]) !== String(draft[part]));
  // What differs in nothing but its markup cannot be told apart: it is written once more.
  return isAs(draft) && !earlier.some((before) => isOther(before) && isAs(before));
}

const PARTS: readonly Part[] = ['title', 'date', 'body', 'tags'];

function isShown(part: Part, record: ExperimentRecord, reading: Description): boolean {
  switch (part) {
    case 'title':
    case 'date':
      return record[part] === reading[part];
    case 'body':
      return showsBody(record['body'], reading.body);
    case 'tags':
      return isSameTags(tagsIn(record) ?? reading.tags, reading.tags);
  }
}

function isBlank(part: Part, record: ExperimentRecord): boolean {
  if (part === 'body') return isBlankBody(record['body']);
  return part === 'tags' && (tagsIn(record) ?? []).length === 0;
}

/** Whether somebody took off a tag that every reading wants. Others labfeed may have taken off itself. */
function lacksOurs(record: ExperimentRecord, draft: Description, earlier: readonly Description[]): boolean {
  const tags = tagsIn(record) ?? [];
  return draft.tags.some((tag) => earlier.every((before) => hasTag(before.tags, tag)) && !hasTag(tags, tag));
}

/** As eLabFTW numbers them. It shows what is deleted, and lets an administrator's key change what is locked. */
const STATES: Readonly<Record<string, string>> = { 2: 'archived', 3: 'deleted' };

function refuseClosed(record: ExperimentRecord, experiment: number, dialect: Dialect | undefined): void {
  if (dialect !== 'elabftw') return;
  const state = STATES[String(record['state'])] ?? (Number(record['locked']) === 1 ? 'locked' : undefined);
  if (state === undefined) return;
  throw new NotebookError('conflict', `somebody has ${state} experiment ${experiment}`, {
    lost: false,
    hint: 'labfeed does not change it; undo that in the notebook and retry, or leave it as it is',
  });
}

const changedByHand = (
  run: number,
  experiment: number,
  parts: readonly Part[],
  isWritten: boolean,
): NotebookError =>
  isWritten
    ? new NotebookError(
        'conflict',
        `somebody changed the ${parts.join(' and the ')} of experiment ${experiment} since labfeed wrote it`,
        {
          lost: false,
          hint: `labfeed does not overwrite it; put it back as it was and \`labfeed retry ${run}\`, or have it overwritten: \`labfeed adopt ${run} ${experiment}\``,
        },
      )
    : changedBefore(experiment);

export const changedBefore = (experiment: number): NotebookError =>
  new NotebookError('conflict', `somebody changed experiment ${experiment} before labfeed had filled it in`, {
    lost: false,
    hint: 'labfeed does not overwrite it; finish it by hand, or give it back its provisional title',
  });
