import { z } from 'zod';
import { parseJson } from '../text.js';
import type { HttpResponse } from './http.js';

/** The response has the expected status, but not the expected content. The message quotes nothing of it. */
class UnusableResponse extends Error {
  override readonly name = 'UnusableResponse';
}

/*
 * The contract shows no fields of records. Only what we rely on is checked, and everything else is passed through:
 * reconciliation compares whole records, and looks for marker lines in fields that it cannot name.
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

/** The contract calls the id of a comment `subid`, eLabFTW's records `id`. */
const commentRecord = z.looseObject({ id: looseId, subid: looseId });

const listedComment = commentRecord.transform((record, context) => {
  const id = record.subid ?? record.id;
  if (id !== undefined) return { ...record, id };
  context.addIssue('expected a comment with an id');
  return z.NEVER;
});

/** eLabFTW only. Its name for the id has changed over time. */
const listedTag = z
  .looseObject({ tag: z.string(), tag_id: looseId, tags_id: looseId })
  .transform(({ tag, tag_id, tags_id }, context) => {
    const id = tag_id ?? tags_id;
    if (id !== undefined) return { id, tag };
    context.addIssue('expected a tag with an id');
    return z.NEVER;
  });

const keyRecord = z.looseObject({ id: looseId, name: z.string().optional().catch(undefined) });

/** With the id that was requested. */
export type Experiment = z.output<typeof experimentRecord> & { readonly id: number };

export type Comment = z.output<typeof commentRecord> & { readonly id: number };

export type Tag = z.output<typeof listedTag>;

/** Contains a hash of the key on some servers: never log or show it as a whole. */
export type KeyRecord = z.output<typeof keyRecord>;

export const isId = (id: unknown): id is number => Number.isSafeInteger(id) && Number(id) > 0;

export const readExperiment =
  (id: number) =>
  (response: HttpResponse): Experiment => {
    const record = parse(experimentRecord, response);
    // An experiment with another id must not be taken for ours.
    if (record.id !== undefined && record.id !== id) throw new UnusableResponse('the record of another experiment');
    return { ...record, id };
  };

/** Entries without an id are left out. */
export const readExperiments = (response: HttpResponse): readonly Experiment[] =>
  parse(z.array(experimentRecord), response).flatMap(({ id, ...record }) =>
    id === undefined ? [] : [{ ...record, id }],
  );

/** The contract does not show the response to a PATCH: anything but a web page is accepted. */
export function readPatched(response: HttpResponse): void {
  if (isHtml(response)) throw new UnusableResponse('a web page');
}

/** The experiment as it is after the PATCH, if the server returns it, as eLabFTW does. */
export const readPatchedExperiment =
  (id: number) =>
  (response: HttpResponse): Experiment | undefined => {
    readPatched(response);
    if (response.incomplete) return undefined;
    const { success, data } = experimentRecord.safeParse(parseJson(response.text));
    return success && typeof data.body === 'string' && data.id === id ? { ...data, id } : undefined;
  };

export const readComment =
  (id: number) =>
  (response: HttpResponse): Comment => ({ ...parse(commentRecord, response), id });

export const readComments = (response: HttpResponse): readonly Comment[] => parse(z.array(listedComment), response);

export const readTags = (response: HttpResponse): readonly Tag[] => parse(z.array(listedTag), response);

export const readKeys = (response: HttpResponse): readonly KeyRecord[] => parse(z.array(keyRecord), response);

/** The id of what a POST created. By the contract, clients do not use the body. */
export function readCreatedId({ headers }: HttpResponse): number {
  const segment = lastSegment(headers['location']);
  const id = /^\d+$/.test(segment) ? Number(segment) : Number.NaN;
  if (!isId(id)) throw new UnusableResponse('no Location header that ends in an id');
  return id;
}

/** The cleartext of a created key, which the server shows once. */
export function readCreatedKey({ headers }: HttpResponse): string {
  const key = decoded(lastSegment(headers['location']));
  if (!isKey(key)) throw new UnusableResponse('no Location header that contains the key');
  return key;
}

/** Whether a header can carry the key. */
export const isKey = (key: string): boolean => /^[\x21-\x7e]+$/.test(key);

/** The host is ignored: it is the server's own idea of its address, and must never get our key. */
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
    // A percent sign that encodes nothing is part of the key.
    return segment;
  }
}

function parse<T>(schema: z.ZodType<T>, response: HttpResponse): T {
  if (response.incomplete) throw response.incomplete;
  const result = schema.safeParse(parseJson(response.text));
  if (result.success) return result.data;
  if (isHtml(response)) throw new UnusableResponse('a web page');
  // zod's messages name types and paths, never values.
  throw new UnusableResponse(`unexpected content: ${z.prettifyError(result.error).replace(/\s+/g, ' ')}`);
}

export type BodyKind = 'json' | 'html' | 'text' | 'empty';

/** The body of an unexpected response. */
export interface ErrorBody {
  readonly kind: BodyKind;
  /** The sentences that describe the error. */
  readonly messages: readonly string[];
  /** The whole body if it has no such sentences. It may contain records. */
  readonly data?: string;
  /** The number in eLabFTW's error body, which may differ from the status. */
  readonly code?: number;
}

export function readErrorBody(response: HttpResponse): ErrorBody {
  const text = response.text.trim();
  const json = parseJson(text);
  if (json !== undefined) return readJsonError(json, text);
  if (isHtml(response)) return { kind: 'html', messages: titleOf(text) };
  if (text === '') return { kind: 'empty', messages: [] };
  // Truncated JSON is still data.
  return /^[[{]/.test(text) ? { kind: 'text', messages: [], data: text } : { kind: 'text', messages: [text] };
}

const jsonError = z.looseObject({
  code: z.number().optional().catch(undefined),
  message: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
});

function readJsonError(json: unknown, text: string): ErrorBody {
  const { message, description, code } = jsonError.safeParse(json).data ?? {};
  const messages = [message, description].filter((said) => said !== undefined).filter((said) => said.trim());
  return {
    kind: 'json',
    messages: [...new Set(messages)],
    ...(messages.length === 0 ? { data: text } : {}),
    ...(code === undefined ? {} : { code }),
  };
}

/** A web page instead of JSON comes from a proxy, a login form or a maintenance notice, not from the API. */
const isHtml = ({ headers, text }: HttpResponse): boolean =>
  /^(?:text\/html|application\/xhtml)/i.test(headers['content-type'] ?? '') || /^\s*</.test(text);

/** Only the start is searched: on a long page without a title, the search would take quadratic time. */
function titleOf(html: string): string[] {
  const title = /<title[^>]*>([^<]*)</i.exec(html.slice(0, 4096))?.[1]?.trim();
  return title ? [title] : [];
}
