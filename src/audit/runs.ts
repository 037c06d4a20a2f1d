import type { FiledRun, Filing, UnfiledRun } from '../journal/reader.js';
import { commentMark, markComment } from '../markers.js';
import type { ReadableComment, ReadableExperiment } from '../recover/reconcile.js';
import type { Finding, FindingKind, Repair } from './findings.js';

export interface FiledRunDeps extends CommentDeps {
  readonly server: string;
  /** Whether an experiment that is read is one that somebody deleted, which some notebooks only mark. */
  isDeleted(experiment: ReadableExperiment): boolean;
  look(experiment: number): Promise<ReadableExperiment | 'missing' | 'private'>;
  /** Rejects unless it is the notebook itself who answers. */
  prove(): Promise<unknown>;
  filingOf(run: number): Promise<Filing>;
  /** Whether a body says that it came from this run. */
  isFiled(body: unknown, run: FiledRun): boolean;
}

type Draft = NonNullable<Filing['draft']>;

/** What became of a run in the notebook. */
export interface Examined {
  readonly findings: readonly Finding[];
  /** Whether the experiment and all comments were read back, and hold what was filed. */
  readonly isProved: boolean;
  readonly missing: Repair['comments'];
}

/** Holds one run that the journal has as done against the notebook. */
export async function examineFiled(run: FiledRun, deps: FiledRunDeps): Promise<Examined> {
  const { experiment } = run;
  if (run.server !== deps.server)
    return unproved(run, 'elsewhere', `it was filed at ${run.server ?? 'another notebook'}`);
  if (experiment === undefined) return unproved(run, 'vanished', 'the journal has no experiment of it');
  const page = await deps.look(experiment);
  if (page === 'missing') {
    // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
    await deps.prove();
    return unproved(run, 'vanished', 'there is no such experiment any more');
  }
  if (page === 'private') return unproved(run, 'forbidden', 'this key may not read it');
  if (deps.isDeleted(page)) return unproved(run, 'deleted', 'somebody deleted it');
  if (!deps.isFiled(page.body, run))
    return unproved(run, 'not ours', 'its body lacks the line that says which run it is');
  return examineContent(run, experiment, page, deps);
}

async function examineContent(
  run: FiledRun,
  experiment: number,
  page: ReadableExperiment,
  deps: FiledRunDeps,
): Promise<Examined> {
  const { draft, comments } = await deps.filingOf(run.id);
  const edited = draft ? editsOf(page, draft, deps) : [];
  const held = await examineComments({ experiment, reference: run.reference, comments }, page, deps);
  return {
    findings: [
      ...edited.map((text) => found(run, 'edited', text)),
      ...held.findings.map(({ kind, text }) => found(run, kind, text)),
    ],
    // A title is a name; a body or a comment that somebody changed may no longer hold what the file does.
    isProved: held.isProved && !edited.includes(OTHER_BODY),
    missing: held.missing,
  };
}

function editsOf(page: ReadableExperiment, draft: Draft, { textOf }: FiledRunDeps): string[] {
  const { title, date, body } = page;
  const edits: string[] = [];
  if (typeof title === 'string' && squeezed(title) !== squeezed(draft.title))
    edits.push(`the title is now ${JSON.stringify(title)}`);
  if (typeof date === 'string' && !date.startsWith(draft.date)) edits.push(`the date is now ${date}`);
  // Servers clean the markup that they store: only what it says is compared.
  if (textOf(String(body)) !== textOf(draft.body)) edits.push(OTHER_BODY);
  return edits;
}

const OTHER_BODY = 'the body says something else';

const squeezed = (text: string): string => text.replace(/\s+/g, '');

const found = (run: FiledRun, kind: FindingKind, text: string): Finding => ({
  kind,
  instrument: run.instrument,
  run: run.id,
  experiment: run.experiment,
  path: run.path,
  text,
});

/** A run that the notebook does not bear out. */
export const unproved = (run: FiledRun, kind: FindingKind, text: string): Examined => ({
  findings: [found(run, kind, text)],
  isProved: false,
  missing: [],
});

interface CommentDeps {
  listComments(experiment: number): Promise<readonly ReadableComment[]>;
  /** One by its id; undefined where it is not there. */
  readComment(experiment: number, comment: number): Promise<ReadableComment | undefined>;
  /** The text of markup, without its blanks; where cells of tables end counts, too. */
  textOf(markup: string): string;
}

interface FiledComments extends Pick<Filing, 'comments'> {
  readonly experiment: number;
  readonly reference: string;
}

type Planned = Filing['comments'][number];

interface HeldComments {
  readonly findings: readonly {
    readonly kind: 'comment missing' | 'comment twice' | 'edited';
    readonly text: string;
  }[];
  readonly missing: Repair['comments'];
  /** Whether each was read back, and says what was filed. */
  readonly isProved: boolean;
}

/** Holds the comments of a run against those of its experiment. */
async function examineComments(
  filed: FiledComments,
  page: ReadableExperiment,
  deps: CommentDeps,
): Promise<HeldComments> {
  const { experiment, comments } = filed;
  if (comments.length === 0) return { findings: [], missing: [], isProved: true };
  const listed = embedded(page, comments) ?? (await deps.listComments(experiment));
  const all = await Promise.all(comments.map((planned) => examineOne(planned, listed, filed, deps)));
  return {
    findings: all.flatMap(({ finding }) => finding ?? []),
    missing: all.flatMap(({ missing }) => missing ?? []),
    isProved: all.every(({ isProved }) => isProved),
  };
}

interface HeldComment {
  readonly isProved: boolean;
  readonly finding?: HeldComments['findings'][number];
  readonly missing?: Repair['comments'][number];
}

async function examineOne(
  { n, text, comment }: Planned,
  listed: readonly ReadableComment[],
  { experiment, reference }: FiledComments,
  deps: CommentDeps,
): Promise<HeldComment> {
  const mark = commentMark(reference, n);
  const marked = listed.filter((record) => linesOf(record).includes(mark));
  // What was recovered from the notebook has no text here: its mark is all that can be compared.
  const isAsFiled = (record: ReadableComment): boolean =>
    text === '' ? marked.includes(record) : says(record, markComment(text, reference, n), deps.textOf);
  if (marked.length > 1) {
    const ids = marked.map(({ id }) => id).join(' and ');
    const finding = { kind: 'comment twice', text: `comment ${n} is there as ${ids}` } as const;
    return { isProved: marked.some(isAsFiled), finding };
  }
  const record = marked[0] ?? (await findById(comment, listed, experiment, deps));
  if (record === undefined) {
    const finding = {
      kind: 'comment missing',
      text: `comment ${n}, id ${comment ?? 'unknown'}, is gone`,
    } as const;
    return { isProved: false, finding, ...(comment !== undefined && { missing: { n, comment } }) };
  }
  if (isAsFiled(record)) return { isProved: true };
  const finding = { kind: 'edited', text: `comment ${n}, id ${record.id}, says something else` } as const;
  return { isProved: false, finding };
}

/** A list that is cut short does not prove that a comment is gone. */
async function findById(
  comment: number | undefined,
  listed: readonly ReadableComment[],
  experiment: number,
  { readComment }: CommentDeps,
): Promise<ReadableComment | undefined> {
  if (comment === undefined) return undefined;
  return listed.find(({ id }) => id === comment) ?? readComment(experiment, comment);
}

/** Some notebooks show the comments with the experiment. It serves as proof of what is there, not of what is not. */
function embedded(
  { comments: shown }: ReadableExperiment,
  planned: readonly Planned[],
): readonly ReadableComment[] | undefined {
  if (!Array.isArray(shown)) return undefined;
  const records = shown.filter(isComment);
  const ids = new Set(records.map(({ id }) => id));
  return planned.every(({ comment }) => comment !== undefined && ids.has(comment)) ? records : undefined;
}

const isComment = (value: unknown): value is ReadableComment =>
  typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'number';

/** The contract names no fields: it may stand in any text of the record. */
const textsOf = (record: ReadableComment): string[] =>
  Object.values(record).filter((value) => typeof value === 'string');

const linesOf = (record: ReadableComment): string[] => textsOf(record).flatMap((text) => text.split(/\r?\n/));

/** As it was sent, or as markup of it. */
const says = (record: ReadableComment, wanted: string, textOf: CommentDeps['textOf']): boolean =>
  textsOf(record).some((text) => [squeezed(text), textOf(text)].includes(squeezed(wanted)));

/** What the journal says of a run that is not, or not yet, in the notebook. */
export function tellUnfiled(run: UnfiledRun): Finding {
  const { id, instrument, path, experiment } = run;
  return { kind: kindOf(run), instrument, run: id, experiment, path, text: textOf(run) };
}

function kindOf({ state, attempts }: UnfiledRun): FindingKind {
  if (state === 'held' || state === 'quarantined') return state;
  return attempts > 0 ? 'interrupted' : 'on its way';
}

/** The first line of a reason; the others say what to do, as `show` tells in full. */
const textOf = ({ state, reason }: UnfiledRun): string =>
  reason === undefined ? `it is ${state}` : (reason.split('\n', 1)[0] ?? '');
