import { parseJson } from '../text.js';
import { type HttpResponse, MAX_ERROR_BYTES } from './http.js';

/** The response has the expected status, but not the expected content. The message quotes nothing of it. */
class UnusableResponse extends Error {
  override readonly name = 'UnusableResponse';
}

/*
 * The contract shows no fields of records. Only what we rely on is checked, and everything else is passed through:
 * reconciliation compares whole records, and looks for marker lines in fields that it cannot name. The checks are
 * written by hand because they stop at the first mistake: zod reports one for each element, which for a list of
 * millions of numbers takes gigabytes.
 */

type Fields = Readonly<Record<string, unknown>>;

/** With the id that was requested. */
export interface Experiment extends Fields {
  readonly id: number;
  readonly title?: string | null;
  readonly date?: string | null;
  readonly body?: string | null;
  /** A list, or eLabFTW's `one|two`. */
  readonly tags?: unknown;
}

export interface Comment extends Fields {
  readonly id: number;
}

export interface Tag {
  readonly id: number;
  readonly tag: string;
}

/** A file attached to an experiment. */
export interface Upload {
  readonly id: number;
  /** Its name. */
  readonly real_name?: string | undefined;
  /** SHA-256, in hexadecimal digits. */
  readonly hash?: string | undefined;
  /** 1: normal, 2: archived, 3: deleted. */
  readonly state?: number | undefined;
}

/** Contains a hash of the key on some servers: never log or show it as a whole. */
export interface KeyRecord extends Fields {
  readonly id?: number | undefined;
  readonly name?: string | undefined;
}

export const isId = (id: unknown): id is number => Number.isSafeInteger(id) && Number(id) > 0;

/** A number, or its digits as text. */
function idOf(value: unknown): number | undefined {
  const id = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return isId(id) ? id : undefined;
}

export const readExperiment =
  (id: number) =>
  (response: HttpResponse): Experiment => {
    const record = experimentIn(contentOf(response), 'the experiment');
    const found = idOf(record['id']);
    // An experiment with another id must not be taken for ours.
    if (found !== undefined && found !== id) throw new UnusableResponse('the record of another experiment');
    return { ...record, id };
  };

/** Entries without an id are left out. */
export const readExperiments = (response: HttpResponse): readonly Experiment[] =>
  readList(response, 'experiments', (value, what) => {
    const record = experimentIn(value, what);
    const id = idOf(record['id']);
    return id === undefined ? undefined : { ...record, id };
  }).filter((experiment) => experiment !== undefined);

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
    try {
      const record = experimentIn(contentOf(response), 'the experiment');
      return typeof record['body'] === 'string' && idOf(record['id']) === id ? { ...record, id } : undefined;
    } catch (error) {
      if (error instanceof UnusableResponse) return undefined;
      throw error;
    }
  };

export const readComment =
  (id: number) =>
  (response: HttpResponse): Comment => ({ ...recordIn(contentOf(response), 'the comment'), id });

/** The contract calls the id of a comment `subid`, eLabFTW's records `id`. */
export const readComments = (response: HttpResponse): readonly Comment[] =>
  readList(response, 'comments', (value, what) => {
    const record = recordIn(value, what);
    return { ...record, id: requireId(idOf(record['subid']) ?? idOf(record['id']), what) };
  });

/** eLabFTW only. Its name for the id has changed over time. */
export const readTags = (response: HttpResponse): readonly Tag[] =>
  readList(response, 'tags', (value, what) => {
    const { tag, tag_id, tags_id } = recordIn(value, what);
    if (typeof tag !== 'string') throw unexpected(`${what} has no text`);
    return { tag, id: requireId(idOf(tag_id) ?? idOf(tags_id), what) };
  });

/** eLabFTW only: what has a name and an id. */
export const readNamed = (response: HttpResponse): readonly { readonly id: number; readonly title: string }[] =>
  readList(response, 'entries', (value, what) => {
    const { id, title } = recordIn(value, what);
    return { id: requireId(idOf(id), what), title: typeof title === 'string' ? title : '' };
  });

/** eLabFTW only: whether the team creates experiments from templates only. */
export const readForcesTemplate = (response: HttpResponse): boolean =>
  Number(recordIn(contentOf(response), 'the team')['force_exp_tpl']) === 1;

/** eLabFTW only. */
export const readUploads = (response: HttpResponse): readonly Upload[] =>
  readList(response, 'uploads', (value, what) => {
    const { id, hash, state, real_name, long_name, storage } = recordIn(value, what);
    return {
      id: requireId(idOf(id), what),
      real_name: typeof real_name === 'string' ? real_name : undefined,
      hash: typeof hash === 'string' ? hash.toLowerCase() : undefined,
      state: typeof state === 'number' ? state : undefined,
      long_name: typeof long_name === 'string' ? long_name : undefined,
      storage: typeof storage === 'number' ? storage : undefined,
    };
  });

export const readKeys = (response: HttpResponse): readonly KeyRecord[] =>
  readList(response, 'keys', (value, what) => {
    const record = recordIn(value, what);
    const name = record['name'];
    return { ...record, id: idOf(record['id']), name: typeof name === 'string' ? name : undefined };
  });

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

const unexpected = (problem: string): UnusableResponse => new UnusableResponse(`unexpected content: ${problem}`);

const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function recordIn(value: unknown, what: string): Fields {
  if (isRecord(value)) return value;
  throw unexpected(`${what} is not a record`);
}

function experimentIn(value: unknown, what: string): Fields {
  const record = recordIn(value, what);
  for (const field of ['title', 'date', 'body']) {
    const text = record[field] ?? '';
    if (typeof text !== 'string') throw unexpected(`the ${field} of ${what} is not text`);
  }
  return record;
}

function requireId(id: number | undefined, what: string): number {
  if (id !== undefined) return id;
  throw unexpected(`${what} has no id`);
}

/** Throws at the first element that is not as expected. */
function readList<T>(response: HttpResponse, name: string, read: (value: unknown, what: string) => T): T[] {
  const list = contentOf(response);
  if (Array.isArray(list)) return list.map((value, index) => read(value, `${name}[${index}]`));
  throw unexpected(`it is not a list of ${name}`);
}

function contentOf(response: HttpResponse): unknown {
  if (response.incomplete) throw response.incomplete;
  const content = parseContent(response);
  // A page from a proxy is not JSON; `null` is.
  if (content !== undefined) return content;
  throw isHtml(response) ? new UnusableResponse('a web page') : unexpected('it is not JSON');
}

/** eLabFTW's deepest record has about six levels, its longest list of comments some 20 fields for each. */
const MAX_DEPTH = 64;
const MAX_VALUES = 500_000;

/** The JSON of a response; undefined if it is not JSON. Absurd nesting or length is refused before it is parsed. */
function parseContent({ text }: HttpResponse): unknown {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth--;
    else if (character === ',') values++;
    if (depth > MAX_DEPTH) throw unexpected(`it is nested more than ${MAX_DEPTH} levels deep`);
    if (values > MAX_VALUES) throw unexpected(`it has more than ${MAX_VALUES} values`);
  }
  return parseJson(text);
}

/** The position of the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    if (at < 0) return text.length;
    let before = at;
    while (text[before - 1] === '\\') before--;
    if ((at - before) % 2 === 0) return at;
  }
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
  // A success with unusable content can be much longer than an error. It is data.
  if (text.length > MAX_ERROR_BYTES && /^[[{]/.test(text)) return { kind: 'json', messages: [], data: '' };
  const json = parseJson(text);
  if (json !== undefined) return readJsonError(json, text);
  if (isHtml(response)) return { kind: 'html', messages: titleOf(text) };
  if (text === '') return { kind: 'empty', messages: [] };
  // Truncated JSON is still data.
  return /^[[{]/.test(text) ? { kind: 'text', messages: [], data: text } : { kind: 'text', messages: [text] };
}

function readJsonError(json: unknown, text: string): ErrorBody {
  const { message, description, code } = isRecord(json) ? json : {};
  const messages = [message, description].filter((said) => typeof said === 'string').filter((said) => said.trim());
  return {
    kind: 'json',
    messages: [...new Set(messages)],
    ...(messages.length === 0 ? { data: text } : {}),
    ...(typeof code === 'number' ? { code } : {}),
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
