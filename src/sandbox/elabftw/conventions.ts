import { isUtf8 } from 'node:buffer';
import { createHash, randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { decodeEntities, escapeHtml } from '../../text.js';
import { isDate, Refusal, readBody } from '../http.js';
import { sanitise } from '../sanitise.js';
import {
  type Comment,
  type Experiment,
  fullName,
  listComments,
  listUploads,
  STATE,
  type Store,
  teamTag,
  type Upload,
  USERS,
  useKey,
  userOf,
} from '../store.js';

/** The address that the server believes it has. It does not resolve, so a client that follows it fails. */
const SITE_URL = 'https://eln.invalid';

/** Applies to every request: authentication, content type, form of errors, and the session cookie. */
export function followElabftw(api: FastifyInstance, store: Store): void {
  api.addHook('onRequest', async (request) => authorise(request, store));
  api.addHook('preParsing', async (request) => checkContentType(request));
  api.addHook('onSend', async (_request, reply) => {
    // Without the charset that Fastify adds.
    if (/^application\/json/.test(String(reply.getHeader('content-type')))) reply.type('application/json');
    const session = randomBytes(16).toString('hex');
    reply.header('set-cookie', `PHPSESSID=${session}; path=/; secure; HttpOnly; SameSite=Lax`);
  });
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', parseBody);
  api.setNotFoundHandler(() => {
    throw improper('Incorrect endpoint.');
  });
}

/** Answers a creation: 201, an address under the server's own name, and an empty HTML body. */
export function created(reply: FastifyReply, path: string): FastifyReply {
  return reply.code(201).header('location', `${SITE_URL}/${path}`).type('text/html; charset=UTF-8').send('');
}

export const improper = (message: string) => new Refusal(400, message, { description: '' });
/** eLabFTW names 422 in the body and answers 400. */
const unprocessable = (message: string) => new Refusal(400, message, { code: 422, description: '' });
export const forbidden = () =>
  new Refusal(403, 'Sorry, you are not allowed to perform that action.', { description: '' });
export const missing = () => new Refusal(404, 'Nothing to show with this id', { description: '' });
/** `code` is the error number of MySQL. */
const refusedBySql = (code: number, message: string) => new Refusal(500, message, { code, description: '' });
/** A value of the wrong type stops the PHP script: 500 with an empty page. */
export const typeError = () => new Refusal(500, '', { html: true });

function authorise({ method, headers }: FastifyRequest, store: Store): void {
  const key = headers.authorization === undefined ? undefined : useKey(store, headers.authorization);
  if (!key) {
    const description = headers.authorization === undefined ? '' : 'No corresponding API key found!';
    throw new Refusal(401, 'Authentication required', { description });
  }
  if (method !== 'GET' && !key.can_write) {
    throw improper('You are using a read-only key to execute a write action.');
  }
}

const isMultipart = ({ headers }: FastifyRequest) =>
  headers['content-type']?.startsWith('multipart/form-data') ?? false;

/** Required without a body too, to keep pages of other sites from posting in a user's name. */
function checkContentType(request: FastifyRequest): void {
  const { method, headers, url } = request;
  if (method === 'GET' || method === 'DELETE') return;
  if (isMultipart(request) && method === 'POST' && /\/uploads\/?(?:\?|$)/.test(url)) return;
  if (headers['content-type'] !== 'application/json') throw improper('Incorrect content-type header.');
}

async function parseBody(request: FastifyRequest, payload: AsyncIterable<Buffer>): Promise<unknown> {
  const bytes = await readBody(payload);
  if (!bytes) {
    const page = '<html><body><h1>413 Request Entity Too Large</h1></body></html>\n';
    throw new Refusal(413, page, { html: true });
  }
  return isMultipart(request) ? parseForm(request.headers['content-type'] ?? '', bytes) : parseJson(bytes);
}

function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw improper('Error decoding json payload: Malformed UTF-8 characters');
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw improper('Error decoding json payload: Syntax error');
  }
}

/** The file of an upload form. */
export class SentFile {
  readonly real_name: string;
  readonly filesize: number;
  readonly hash: string;
  readonly comment: string | null;

  constructor(name: string, bytes: Uint8Array, comment: string | null) {
    this.real_name = name;
    this.filesize = bytes.length;
    this.hash = createHash('sha256').update(bytes).digest('hex');
    this.comment = comment;
  }
}

/** Returns undefined if the form cannot be parsed or has no file. */
async function parseForm(contentType: string, bytes: Buffer): Promise<SentFile | undefined> {
  const sent = new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } });
  const form = await sent.formData().catch(() => undefined);
  const file = form?.get('file');
  const comment = form?.get('comment');
  if (!file || typeof file === 'string') return undefined;
  const content = new Uint8Array(await file.arrayBuffer());
  return new SentFile(file.name, content, typeof comment === 'string' ? comment : null);
}

/** The fields of a body in the order sent, which decides which of them are saved before an error. */
export function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined) return {};
  if (typeof body !== 'object' || body === null) throw typeError();
  return body as Record<string, unknown>;
}

/** As PHP converts text to an integer: `12abc` is 12, `abc` is 0. */
export function toInteger(text: string | undefined): number {
  const number = Number(/^\s*[+-]?\d+/.exec(text ?? '')?.[0] ?? 0);
  // SQLite rejects larger numbers, and no record has such an id.
  return Math.min(number, Number.MAX_SAFE_INTEGER);
}

/** As PHP converts a JSON value to text. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? '1' : '';
  return value === null || value === undefined ? '' : 'Array';
}

/** PHP converts nothing where a type is declared. Null counts as absent. */
const optional =
  <T>(type: z.ZodType<T>) =>
  (value: unknown): T | undefined => {
    const { success, data } = type.nullish().safeParse(value);
    if (!success) throw typeError();
    return data ?? undefined;
  };
export const optionalText = optional(z.string());
export const optionalInteger = optional(z.int());

/** If a parameter was given several times, the last one counts. */
export const single = (value: string | string[] | undefined) => (Array.isArray(value) ? value.at(-1) : value);

const isOwn = ({ userid }: Experiment) => userid === USERS.owner.userid;

/** The team can read the experiments of others unless they are private. */
export const mayRead = (experiment: Experiment) => isOwn(experiment) || experiment.private === 0;

/** Nobody may write to a locked experiment, not even its owner. */
export function refuseUnwritable(experiment: Experiment): void {
  if (!isOwn(experiment) || experiment.lockedby !== null) throw forbidden();
}

/** Checked in this order: a locked experiment that was deleted is refused because it was deleted. */
export function refuseUnchangeable(experiment: Experiment): void {
  const { state, editedby } = experiment;
  if (state === STATE.deleted) {
    throw unprocessable('Only the Restore action is allowed on a deleted entity.');
  }
  if (state === STATE.archived) {
    throw unprocessable('Only the Unarchive action is allowed on an archived entity.');
  }
  refuseUnwritable(experiment);
  if (editedby !== null && editedby !== USERS.owner.userid) {
    throw improper(`This entry is being edited by ${fullName(userOf(editedby))}.`);
  }
}

const MAX_TITLE_GRAPHEMES = 255;
const MAX_TAG_CHARACTERS = 255;
const MAX_CONTENT_BYTES = 4_120_000;
const MAX_COMMENT_BYTES = 65_535;

/** Line breaks become spaces, and a long title is cut silently. */
export function cleanTitle(text: string): string {
  const title = text.trim().replace(/\r\n|\n|\r/g, ' ');
  if (title.length <= MAX_TITLE_GRAPHEMES) return title || 'Untitled';
  const graphemes = [...new Intl.Segmenter('en').segment(title)];
  return title.slice(0, graphemes[MAX_TITLE_GRAPHEMES]?.index ?? title.length);
}

/** These elements lose their tags and keep their content. */
const UNWRAPPED = /<\/?(?:thead|tbody|tfoot|i|small|del|ins)>/g;

/** Removes scripts, comments, images and wrappers, and decodes all entities but those for `&`, `<` and `>`. */
export function cleanBody(text: string): string {
  if (Buffer.byteLength(text) > MAX_CONTENT_BYTES) throw improper('Content is too big! Cannot save!');
  return sanitise(text)
    .replace(UNWRAPPED, '')
    .replace(/<[^>]*>|&(?!(?:amp|lt|gt);)#?\w+;/g, (part) => (part.startsWith('<') ? part : decodeText(part)));
}

function decodeText(entity: string): string {
  const text = entity === '&nbsp;' ? '\u00a0' : decodeEntities(entity);
  return /^[&<>]$/.test(text) ? escapeHtml(text) : text;
}

export function cleanTag(tag: unknown): string {
  if (typeof tag !== 'string') throw typeError();
  const clean = tag.replaceAll('\\', '').replaceAll('|', ' ').trim();
  if (clean === '') throw improper('Input is too short! (minimum: 1)');
  if ([...clean].length > MAX_TAG_CHARACTERS) {
    throw refusedBySql(1406, "Data too long for column 'tag' at row 1");
  }
  return clean;
}

export function checkComment(comment: unknown): string {
  if (typeof comment !== 'string') throw typeError();
  if (comment === '') throw improper('Invalid comment.');
  if (Buffer.byteLength(comment) > MAX_COMMENT_BYTES) {
    throw refusedBySql(1406, "Data too long for column 'comment' at row 1");
  }
  return comment;
}

export function checkDate(text: string): string {
  if (isDate(text)) return text;
  throw refusedBySql(1292, `Incorrect date value: '${text}' for column 'date' at row 1`);
}

export function checkJson(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw refusedBySql(
      3140,
      `Invalid JSON text: "Invalid value." at position 0 in value for column 'experiments.metadata'.`,
    );
  }
}

export const TEAM = { id: 1, name: 'Sandbox team' };

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');

function authorFields(userid: number) {
  const { firstname, lastname } = userOf(userid);
  return { fullname: fullName(userOf(userid)), firstname, lastname, orcid: null };
}

/** An experiment as it appears in a list. */
export function listedRecord(experiment: Experiment, store: Store) {
  const { private: hidden, editedby: _, ...row } = experiment;
  const { id, userid, team, lockedby, body, created_at, modified_at } = row;
  const tags = row.tags.map((tag) => teamTag(store, tag)).sort((a, b) => a.id - b.id);
  return {
    ...row,
    ...authorFields(userid),
    access_key: null,
    body: body || null,
    canread: '{"teams": [], "teamgroups": [], "users": []}',
    canread_base: hidden === 1 ? 20 : 30,
    canwrite: '{"teams": [], "teamgroups": [], "users": []}',
    canwrite_base: 20,
    category: null,
    category_title: null,
    custom_id: null,
    elabid: `${created_at.slice(0, 10).replaceAll('-', '')}-${sha1(`experiment ${id}`)}`,
    locked: lockedby === null ? 0 : 1,
    locked_at: lockedby === null ? null : modified_at,
    page: 'experiments',
    rating: 0,
    status: null,
    status_title: null,
    tags: tags.map(({ tag }) => tag).join('|') || null,
    tags_id: tags.map((tag) => tag.id).join(',') || null,
    team_name: team === TEAM.id ? TEAM.name : `Team ${team}`,
    timestamped: 0,
    type: 'experiments',
  };
}

/** An experiment that is read by itself. */
export function fullRecord(experiment: Experiment, store: Store) {
  const { id, body, editedby, metadata } = experiment;
  return {
    ...listedRecord(experiment, store),
    body_html: body || null,
    comments: listComments(store, id).map(commentRecord),
    exclusive_edit_mode:
      editedby === null ? null : { locked_by: editedby, locked_by_human: fullName(userOf(editedby)) },
    experiments_links: [],
    items_links: [],
    ...(metadata !== null && { metadata_decoded: JSON.parse(metadata) }),
    sharelink: `${SITE_URL}/experiments.php?mode=view&id=${id}`,
    steps: [],
    uploads: listUploads(store, id).map(uploadRecord),
  };
}

export const commentRecord = (comment: Comment) => ({
  ...comment,
  ...authorFields(comment.userid),
  immutable: 0,
  email: userOf(comment.userid).email,
});

export const uploadRecord = (upload: Upload) => ({
  ...upload,
  long_name: `${sha1(`upload ${upload.id}`)}.bin`,
  type: 'experiments',
  hash_algorithm: 'sha256',
  storage: 1,
  state: 1,
  immutable: 0,
  fullname: fullName(userOf(upload.userid)),
});
