import { NotebookError } from '../errors.js';
import type { Dialect, Draft } from '../model.js';
import type { OpenRun } from '../outbox.js';
import { type DeliverDeps, type ExperimentRecord, graceMsOf, NotYetError } from './context.js';
import { surelyNotDone } from './failures.js';

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
          hint: `labfeed does not overwrite it; put it back as it was and \`labfeed retry ${run}\`, or have it overwritten: \`labfeed adopt ${run} ${experiment}\``,
        },
      )
    : changedBefore(experiment);

export const changedBefore = (experiment: number): NotebookError =>
  new NotebookError('conflict', `somebody changed experiment ${experiment} before labfeed had filled it in`, {
    hint: 'labfeed does not overwrite it; finish it by hand, or give it back its provisional title',
  });

/** eLabFTW's way: tags are put on and taken off one by one. Only those that labfeed has set are taken off. */
export async function setTags(run: OpenRun, experiment: number, deps: DeliverDeps): Promise<void> {
  const { draft, earlier } = run;
  const { notebook, goOn } = deps;
  const present = earlier.length > 0 ? await notebook.listTags(experiment) : [];
  const names = present.map(({ tag }) => tag);
  for (const tag of draft.tags) {
    if (hasTag(names, tag)) continue;
    goOn();
    await edit(run, deps, () => notebook.addTag(experiment, tag));
  }
  for (const { id, tag } of present) {
    if (hasTag(draft.tags, tag) || !earlier.some(({ tags }) => hasTag(tags, tag))) continue;
    goOn();
    await edit(run, deps, () => notebook.removeTag(experiment, id));
  }
}

/**
 * Whether an experiment's body shows what was written, and nothing that somebody added. Servers clean the markup that
 * they store: so the text is compared, without its blanks, and there must be no element or link that was not written.
 */
export function showsBody(shown: unknown, written: string): boolean {
  if (typeof shown !== 'string' || cellsOf(shown) !== cellsOf(written)) return false;
  const [now, before] = [markupOf(shown), markupOf(written)];
  return [...now].every(([what, count]) => count <= (before.get(what) ?? 0));
}

/** Servers show an empty body as nothing at all, or as markup without text. */
const isBlankBody = (shown: unknown): boolean =>
  shown === null || (typeof shown === 'string' && textOf(shown) === '' && markupOf(shown).size === 0);

/** The tags of a record: a list, or eLabFTW's `one|two`. Undefined where the server does not show them. */
function tagsIn({ tags }: Readonly<Record<string, unknown>>): string[] | undefined {
  if (tags === null) return [];
  if (typeof tags === 'string') return tags.split('|');
  return Array.isArray(tags) ? tags.map(String) : undefined;
}

const isSameTags = (a: readonly string[], b: readonly string[]): boolean =>
  a.every((tag) => hasTag(b, tag)) && b.every((tag) => hasTag(a, tag));

/** Servers fold the case of tags, and their blanks. */
const hasTag = (tags: readonly string[], wanted: string): boolean =>
  tags.some((tag) => folded(tag) === folded(wanted));

const folded = (tag: string): string => textOf(tag).toLowerCase();

/** Its text, and where the cells of tables end: a number that somebody moved to the next cell is another one. */
export const cellsOf = (html: string): string => textOf(html.replace(/<\/(?:td|th)\s*>/gi, '\u0000'));

/** The text of markup, without its blanks. */
const textOf = (html: string): string => decoded(html.replace(/<[^>]*>/g, '')).replace(/\s+/g, '');

/** Elements that servers add, drop or move by themselves. */
const LAYOUT = /^(?:p|br|div|thead|tbody|tfoot|colgroup|col|html|head|body)$/;

const SYNONYMS: Readonly<Record<string, string>> = { b: 'strong', i: 'em', del: 's', strike: 's' };

/** How often each kind of element, and each link, is there. */
function markupOf(html: string): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  for (const [, name = '', attributes = ''] of html.matchAll(
    /<([a-z][a-z0-9]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/gi,
  )) {
    const element = name.toLowerCase();
    if (!LAYOUT.test(element)) count(SYNONYMS[element] ?? element);
    for (const [, , link = ''] of attributes.matchAll(/\b(?:href|src)\s*=\s*(["'])(.*?)\1/gi))
      count(decoded(link));
  }
  return counts;
}

const decoded = (text: string): string => text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|([a-z]+));/gi, character);

function character(entity: string, decimal?: string, hex?: string, name = ''): string {
  const code = decimal ? Number(decimal) : Number.parseInt(hex ?? '', 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : (NAMED[name] ?? entity);
}

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
};

/** Sends a change that may be sent again. One whose answer is lost may still be carried out, which is noted. */
export async function edit<T>(run: OpenRun, { edits }: DeliverDeps, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!surelyNotDone(error)) edits.note(run.id);
    throw error;
  }
}

/** Waits until no change that this process sent before can come any more, and undo what is sent now. */
export async function outwaitEdits(run: OpenRun, deps: DeliverDeps): Promise<void> {
  const { edits, clock } = deps;
  if (!edits.isNoted(run.id)) return;
  const leftMs = (await graceMsOf(deps)) - edits.sinceMs(run.id);
  if (leftMs > 0)
    throw new NotYetError('a change whose answer was lost may still be carried out', clock.now() + leftMs);
}
