import { createHash } from 'node:crypto';
import { NotebookError } from '../errors.js';
import { originIn } from '../markers.js';
import type { Dialect, Draft } from '../model.js';
import type { OpenRun, StoredParts } from '../outbox.js';
import { decodeEntities } from '../text.js';
import { describeDifference, readableText } from './comments.js';
import { type ExperimentRecord, type Filing, gracePeriodMs, NotYetError } from './context.js';
import { editedFields } from './extras.js';
import { sendEdit } from './failures.js';

type Description = Omit<Draft, 'comments' | 'attached'> & { readonly stored?: StoredParts };
type Part = keyof Omit<Draft, 'comments' | 'extras' | 'attached'>;

const PARTS: readonly Part[] = ['title', 'date', 'body', 'tags'];

/**
 * Throws if a person changed, locked or deleted an experiment that holds an earlier reading of the run's file. Each
 * part must be as in one of the readings, since a PATCH may have been applied in part.
 */
export function checkUnedited(
  record: ExperimentRecord,
  { run, experiment }: Filing,
  dialect: Dialect | undefined,
): void {
  const { id, draft, earlier } = run;
  checkOpen(record, experiment, dialect);
  const isWritten = earlier.some(({ written }) => written);
  const isOurs = (part: Part): boolean =>
    [draft, ...earlier].some((reading) => shows(part, record, reading)) ||
    // On eLabFTW, tags are not part of the PATCH, and people's own are kept.
    (part === 'tags' && dialect === 'elabftw' && !(isWritten && lacksCommonTag(record, draft, earlier))) ||
    // No reading was written in full, so this part may not have been written at all.
    (!isWritten && isBlank(part, record));
  const changed = PARTS.filter((part) => !isOurs(part));
  const fields = dialect === 'elabftw' && isWritten && isNextVersion(run) ? editedFields(record, run) : [];
  if (changed.length + fields.length === 0) return;
  if (!isWritten) throw changedBeforeFilled(experiment);
  const written = earlier.findLast((reading) => reading.written) ?? draft;
  throw changedByPerson(
    id,
    experiment,
    [...changed, ...fields.map(({ name }) => `field ${name}`)],
    [
      ...changed.map((part) => differenceIn(part, record, written)),
      ...fields.map(({ name, value, wrote }) => describeDifference(`field ${name}`, value, wrote)),
    ],
  );
}

/** The file itself has changed since it was filed, not only its mapping. */
const isNextVersion = ({ draft, earlier }: OpenRun): boolean =>
  earlier.some(({ body }) => originIn(body)?.sha256 !== originIn(draft.body)?.sha256);

function differenceIn(part: Part, record: ExperimentRecord, written: Description): string {
  const has = part === 'tags' ? (tagsOf(record) ?? []).join(', ') : String(record[part] ?? '');
  const wrote = part === 'tags' ? written.tags.join(', ') : written[part];
  return part === 'body'
    ? describeDifference(part, readableText(has), readableText(wrote))
    : describeDifference(part, has, wrote);
}

/** Whether the experiment shows the draft and not an earlier reading. */
export function showsDraft(
  record: ExperimentRecord,
  { draft, earlier }: OpenRun,
  dialect: Dialect | undefined,
): boolean {
  const patched = PARTS.filter((part) => part !== 'tags' || dialect !== 'elabftw');
  const showsAll = (reading: Description): boolean => patched.every((part) => shows(part, record, reading));
  const differs = (reading: Description): boolean =>
    patched.some((part) => String(reading[part]) !== String(draft[part]));
  // Readings that differ only in markup cannot be distinguished: the draft is written once more.
  return showsAll(draft) && !earlier.some((before) => differs(before) && showsAll(before));
}

function shows(part: Part, record: ExperimentRecord, reading: Description): boolean {
  if (part !== 'tags' && isAsStored(part, record, reading.stored)) return true;
  switch (part) {
    case 'title':
    case 'date':
      return record[part] === reading[part];
    case 'body':
      return showsBody(record['body'], reading.body);
    case 'tags':
      return isSameTags(tagsOf(record) ?? reading.tags, reading.tags);
  }
}

/** Whether a part is as the server returned it to our own write. */
export const isAsStored = (part: keyof StoredParts, record: ExperimentRecord, stored: StoredParts = {}): boolean =>
  stored[part] !== undefined && stored[part] === fingerprintOf(record[part]);

/**
 * The parts that the server stored differently from the draft, as its response to our PATCH shows them; undefined if
 * there are none. A response without our origin line does not show the result of the PATCH. `hadBody`: whether the
 * PATCH contained the body.
 */
export function storedDifferently(
  record: ExperimentRecord | undefined,
  draft: Description,
  hadBody = true,
): StoredParts | undefined {
  if (typeof record?.['body'] !== 'string' || originIn(record['body'])?.sha256 !== originIn(draft.body)?.sha256)
    return undefined;
  // A body that was not part of the PATCH may have been changed by a person.
  const isOurs = (part: keyof StoredParts): boolean =>
    part !== 'body' || hadBody || showsBody(record['body'], draft.body);
  const parts = (['title', 'date', 'body'] as const).filter(
    (part) => typeof record[part] === 'string' && record[part] !== draft[part] && isOurs(part),
  );
  return parts.length === 0 ? undefined : Object.fromEntries(parts.map((part) => [part, fingerprintOf(record[part])]));
}

const fingerprintOf = (value: unknown): string =>
  createHash('sha256').update(String(value).replace(/\s+/g, '')).digest('hex').slice(0, 32);

function isBlank(part: Part, record: ExperimentRecord): boolean {
  const { body } = record;
  // Servers show an empty body as null, or as markup without text.
  if (part === 'body')
    return body === null || (typeof body === 'string' && textOf(body) === '' && countMarkup(body).size === 0);
  return part === 'tags' && (tagsOf(record) ?? []).length === 0;
}

/** Whether somebody removed a tag that every reading has. labfeed itself may have removed the others. */
function lacksCommonTag(record: ExperimentRecord, draft: Description, earlier: readonly Description[]): boolean {
  const tags = tagsOf(record) ?? [];
  return draft.tags.some((tag) => earlier.every((before) => hasTag(before.tags, tag)) && !hasTag(tags, tag));
}

/** eLabFTW's numbers. It shows deleted experiments, and lets an administrator's key change locked ones. */
const STATES: Readonly<Record<string, string>> = { 2: 'archived', 3: 'deleted' };

/** Throws if the experiment is locked, archived or deleted. */
export function checkOpen(record: ExperimentRecord, experiment: number, dialect: Dialect | undefined): void {
  if (dialect !== 'elabftw') return;
  const state = STATES[String(record['state'])] ?? (Number(record['locked']) === 1 ? 'locked' : undefined);
  if (state === undefined) return;
  throw new NotebookError('conflict', `experiment ${experiment} is ${state}`, {
    hint: 'labfeed does not change it. Undo that in the notebook and retry, or leave it as it is',
  });
}

/** A person changed what labfeed wrote, and keeps it. */
export class EditedError extends NotebookError {}

const changedByPerson = (
  run: number,
  experiment: number,
  parts: readonly string[],
  differences: readonly string[],
): NotebookError =>
  new EditedError(
    'conflict',
    [
      `somebody changed the ${parts.join(' and the ')} of experiment ${experiment} after labfeed wrote it`,
      ...differences,
    ].join('\n  '),
    {
      hint: `labfeed does not overwrite it. Restore it and run \`labfeed retry ${run}\`, or let labfeed overwrite it: \`labfeed adopt ${run} ${experiment}\``,
    },
  );

export const changedBeforeFilled = (experiment: number): NotebookError =>
  new NotebookError('conflict', `somebody changed experiment ${experiment} before labfeed filled it in`, {
    hint: 'labfeed does not overwrite it. Finish it by hand, or restore its provisional title and retry',
  });

/** On eLabFTW, tags are added and removed one by one. Only tags that labfeed has set are removed. */
export async function setTags(filing: Filing): Promise<void> {
  const { run, experiment, notebook, stopping } = filing;
  const { draft, earlier } = run;
  const present = earlier.length > 0 ? await notebook.listTags(experiment) : [];
  const names = present.map(({ tag }) => tag);
  for (const tag of draft.tags.filter((wanted) => !hasTag(names, wanted))) {
    stopping.throwIfAborted();
    await sendEdit(filing, () => notebook.addTag(experiment, tag));
  }
  for (const { id, tag } of present) {
    if (hasTag(draft.tags, tag) || !earlier.some(({ tags }) => hasTag(tags, tag))) continue;
    stopping.throwIfAborted();
    await sendEdit(filing, () => notebook.removeTag(experiment, id));
  }
}

/**
 * Waits until no earlier change can arrive late and undo what is sent now. An earlier process may have been ended while
 * it sent a version that is replaced by now.
 */
export async function awaitEarlierEdits({ run, server, unknown, clock }: Filing): Promise<void> {
  if (!unknown.edits.has(run.id) && run.earlier.every(({ written }) => written)) return;
  const leftMs = (await gracePeriodMs(server)) - unknown.edits.elapsedMs(run.id);
  if (leftMs > 0) throw new NotYetError('a change with an unknown outcome may still take effect', clock.now() + leftMs);
}

/** The tags of a record: a list, or eLabFTW's `one|two`. Undefined if the server does not show them. */
function tagsOf({ tags }: ExperimentRecord): string[] | undefined {
  if (tags === null) return [];
  if (typeof tags === 'string') return tags.split('|');
  return Array.isArray(tags) ? tags.map(String) : undefined;
}

/** Whether the record shows all of these, if it shows tags. eLabFTW may get them after the rest. */
export function hasTags(record: ExperimentRecord, wanted: readonly string[], ifHidden = true): boolean {
  const tags = tagsOf(record);
  return tags === undefined ? ifHidden : wanted.every((tag) => hasTag(tags, tag));
}

/** A spare may have the tags of the run that it was created for. */
export async function clearSpare(record: ExperimentRecord, filing: Filing): Promise<void> {
  const { run, experiment, notebook } = filing;
  if ((tagsOf(record) ?? []).length === 0 || (await filing.server.facts()).dialect !== 'elabftw') return;
  for (const { id, tag } of await notebook.listTags(experiment))
    if (!hasTag(run.draft.tags, tag)) await sendEdit(filing, () => notebook.removeTag(experiment, id));
}

const isSameTags = (a: readonly string[], b: readonly string[]): boolean =>
  a.every((tag) => hasTag(b, tag)) && b.every((tag) => hasTag(a, tag));

/** Servers fold the case and the spaces of tags. */
const hasTag = (tags: readonly string[], wanted: string): boolean => tags.some((tag) => folded(tag) === folded(wanted));

const folded = (tag: string): string => textOf(tag).toLowerCase();

/**
 * Whether a body shows what was written and nothing that somebody added. Servers sanitise markup: the text is compared
 * without spaces, and there must be no element or link that was not written.
 */
export function showsBody(shown: unknown, written: string): boolean {
  if (typeof shown !== 'string' || cellTexts(shown) !== cellTexts(written)) return false;
  const before = countMarkup(written);
  return [...countMarkup(shown)].every(([what, count]) => count <= (before.get(what) ?? 0));
}

/**
 * The text with the starts of table cells: a number that was moved to the next cell is a change. Their ends may be
 * missing, and servers add them.
 */
export const cellTexts = (html: string): string => textOf(html.replace(/<(?:td|th)\b[^>]*>/gi, '\u0000'));

/** The text of markup, without spaces. A `<` that starts no tag is text. */
const textOf = (html: string): string => decodeEntities(html.replace(/<[/!?a-z][^>]*>/gi, '')).replace(/\s+/g, '');

/** Elements that servers add, drop or move by themselves. */
const LAYOUT = /^(?:p|br|div|thead|tbody|tfoot|colgroup|col|html|head|body)$/;

const SYNONYMS: Readonly<Record<string, string>> = { b: 'strong', i: 'em', del: 's', strike: 's' };

/** How often each kind of element, and each link, occurs. */
function countMarkup(html: string): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  for (const [, name = '', attributes = ''] of html.matchAll(/<([a-z][a-z0-9]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/gi)) {
    const element = name.toLowerCase();
    if (!LAYOUT.test(element)) count(SYNONYMS[element] ?? element);
    for (const [, , link = ''] of attributes.matchAll(/\b(?:href|src)\s*=\s*(["'])(.*?)\1/gi))
      count(decodeEntities(link));
  }
  return counts;
}
