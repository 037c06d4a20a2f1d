import { z } from 'zod';
import type { Answer } from './http.js';

/** The answer has the expected status, but not what it must say. The message quotes nothing of it. */
class UnusableAnswer extends Error {
  override readonly name = 'UnusableAnswer';
}

/*
 * The contract shows no record's fields. So only what we rely on is checked, everything else passes through
 * as it came: recovery compares whole records, and looks for its marks in fields that it cannot name.
 */

const looseId = z
  .union([z.int(), z.string().regex(/^\d+$/).transform(Number)])
  .refine((id) => isId(id))
  .optional()
  .catch(undefined);

const experimentRecord = z.looseObject({
  id: looseId,
  title: z.string().nullish(),
  date: z.string().nullish(),
  body: z.string().nullish(),
  /** A list, or eLabFTW's `one|two`. */
  tags: z.unknown().optional(),
});

/** The contract calls a comment's id `subid`; eLabFTW's records call it `id`. */
const commentRecord = z.looseObject({ id: looseId, subid: looseId });

const listedComment = commentRecord.transform((record, context) => {
  const known = record.subid ?? record.id;
  if (known !== undefined) return { ...record, id: known };
  context.addIssue('expected a comment with an id');
  return z.NEVER;
});

/** eLabFTW's own; its name for the id has changed over time. */
const listedTag = z
  .looseObject({ tag: z.string(), tag_id: looseId, tags_id: looseId })
  .transform(({ tag, tag_id, tags_id }, context) => {
    const id = tag_id ?? tags_id;
    if (id !== undefined) return { id, tag };
    context.addIssue('expected a tag with an id');
    return z.NEVER;
  });

const keyRecord = z.looseObject({ id: looseId, name: z.string().optional().catch(undefined) });

/** An experiment as the server holds it. Its id is the one that was asked for. */
export type Experiment = z.output<typeof experimentRecord> & { readonly id: number };

/** A comment as the server holds it, with its id under that name. */
export type Comment = z.output<typeof commentRecord> & { readonly id: number };

/** A tag that an experiment has. */
export type Tag = z.output<typeof listedTag>;

/** Carries a hash of the key on some servers: never to be logged or shown as a whole. */
export type KeyRecord = z.output<typeof keyRecord>;

export const isId = (id: unknown): id is number => Number.isSafeInteger(id) && Number(id) > 0;

export const readExperimentRecord =
  (id: number) =>
  (answer: Answer): Experiment =>
    asked(check(experimentRecord, answer), id);

/** Of a list, what has an id. */
export const readExperiments = (answer: Answer): readonly Experiment[] =>
  check(z.array(experimentRecord), answer).flatMap(({ id, ...record }) =>
    id === undefined ? [] : [{ ...record, id }],
  );

/** What a PATCH of an experiment answers is not shown by the contract: anything but a web page will do. */
export function readPatched(answer: Answer): void {
  if (isPage(answer)) throw new UnusableAnswer('a web page');
}

export const readCommentRecord =
  (id: number) =>
  (answer: Answer): Comment => ({ ...check(commentRecord, answer), id });

export const readComments = (answer: Answer): readonly Comment[] => check(z.array(listedComment), answer);

export const readTags = (answer: Answer): readonly Tag[] => check(z.array(listedTag), answer);

export const readKeys = (answer: Answer): readonly KeyRecord[] => check(z.array(keyRecord), answer);

/** The id of what a POST created. The body is not looked at: the contract says that clients do not use it. */
export function readCreatedId({ headers }: Answer): number {
  const segment = lastSegment(headers['location']);
  const id = /^\d+$/.test(segment) ? Number(segment) : Number.NaN;
  if (!isId(id)) throw new UnusableAnswer('no Location that ends in an id');
  return id;
}

/** The clear text of a created key, which is told this once. */
export function readCreatedKey({ headers }: Answer): string {
  const key = decoded(lastSegment(headers['location']));
  // One that no header can carry is not the key, or of no use.
  if (!isKey(key)) throw new UnusableAnswer('no Location that holds the key');
  return key;
}

/** Whether a header can carry it as it is. */
export const isKey = (key: string): boolean => /^[\x21-\x7e]+$/.test(key);

/** The host is cut off unread: it is the server's own idea of its address, and must never get our key. */
function lastSegment(location: string | undefined): string {
  const path = (location ?? '')
    .trim()
    .replace(/^(?:[a-z][a-z\d+.-]*:)?\/\/[^/?#]*/i, '')
    .replace(/[?#].*$/, '');
  return path.split('/').filter(Boolean).at(-1) ?? '';
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // A percent sign that encodes nothing belongs to the key itself.
    return segment;
  }
}

function check<T>(schema: z.ZodType<T>, answer: Answer): T {
  if (answer.cut) throw answer.cut;
  const result = schema.safeParse(parseJson(answer.text));
  if (result.success) return result.data;
  if (isPage(answer)) throw new UnusableAnswer('a web page');
  // zod's messages name types and places, never values.
  throw new UnusableAnswer(`something unexpected: ${z.prettifyError(result.error).replace(/\s+/g, ' ')}`);
}

/** An experiment of another id is not what was asked for, and must not be taken for ours. */
function asked(record: z.output<typeof experimentRecord>, id: number): Experiment {
  if (record.id !== undefined && record.id !== id) throw new UnusableAnswer('the record of another id');
  return { ...record, id };
}

/** What an answer's body is made of, as far as that can be told without knowing the operation. */
export type Form = 'json' | 'page' | 'text' | 'empty';

/** A refusal's body, read. */
export interface Body {
  readonly form: Form;
  /** The sentences in which the server says what is wrong. */
  readonly words: readonly string[];
  /** Data that came instead of sentences, in full: records may stand in it. */
  readonly data?: string;
  /** The number in eLabFTW's error body, which may differ from the status. */
  readonly code?: number;
}

const errorBody = z.looseObject({
  code: z.number().optional().catch(undefined),
  message: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
});

/** A web page where JSON belongs: from a proxy, a login form or a maintenance notice, not from the API. */
const isPage = ({ headers, text }: Answer): boolean =>
  /^(?:text\/html|application\/xhtml)/i.test(headers['content-type'] ?? '') || /^\s*</.test(text);

/** Undefined where it is not JSON, which no JSON text can say. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function readBody(answer: Answer): Body {
  const text = answer.text.trim();
  const json = parseJson(text);
  if (json !== undefined) return readError(json, text);
  if (isPage(answer)) return { form: 'page', words: titleOf(text) };
  if (text === '') return { form: 'empty', words: [] };
  // JSON that broke off is still data.
  return /^[[{]/.test(text) ? { form: 'text', words: [], data: text } : { form: 'text', words: [text] };
}

function readError(json: unknown, text: string): Body {
  const { message, description, code } = errorBody.safeParse(json).data ?? {};
  const words = [message, description].filter((said) => said !== undefined).filter((said) => said.trim());
  return {
    form: 'json',
    words: [...new Set(words)],
    ...(words.length === 0 ? { data: text } : {}),
    ...(code === undefined ? {} : { code }),
  };
}

/** Looked for in the beginning only: on a long page without one, the search would take quadratic time. */
function titleOf(html: string): string[] {
  const title = /<title[^>]*>([^<]*)</i.exec(html.slice(0, 4096))?.[1]?.trim();
  return title ? [title] : [];
}
