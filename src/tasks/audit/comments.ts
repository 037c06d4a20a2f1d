import type { Filing } from '../../journal/evidence.js';
import { commentMark, markComment } from '../../markers.js';
import type { ReadableComment, ReadableExperiment } from '../readable-notebook.js';
import type { Repair } from './findings.js';

export interface CommentDeps {
  listComments(experiment: number): Promise<readonly ReadableComment[]>;
  /** One by its id; undefined where it is not there. */
  readComment(experiment: number, comment: number): Promise<ReadableComment | undefined>;
  /** The text of markup, without its blanks; where cells of tables end counts, too. */
  textOf(markup: string): string;
}

export interface FiledComments extends Pick<Filing, 'comments'> {
  readonly experiment: number;
  readonly reference: string;
}

type Planned = Filing['comments'][number];

export interface HeldComments {
  readonly findings: readonly {
    readonly kind: 'comment missing' | 'comment twice' | 'edited';
    readonly text: string;
  }[];
  readonly missing: Repair['comments'];
  /** Whether each was read back, and says what was filed. */
  readonly isProved: boolean;
}

/** Holds the comments of a run against those of its experiment. */
export async function examineComments(
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

const squeezed = (text: string): string => text.replace(/\s+/g, '');
