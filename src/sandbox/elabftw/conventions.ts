import { isUtf8 } from 'node:buffer';
import { createHash, randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../../log.js';
import { type Entries, type Entry, fullName, type Person, personOf, STATE } from '../entries.js';
import { Refusal, readBody } from '../requests.js';
import { sanitise } from '../sanitise.js';

interface Doorkeeper {
  useKey(key: string): { readonly canWrite: boolean } | undefined;
  /** How a key that is not known is refused: 4.9 to 5.1 answered 400 and plain text. */
  readonly badKey: 400 | 401;
  readonly log?: Log | undefined;
}

/** What holds for every request: the key, the type of a body, the form of errors, and a cookie nobody asked for. */
export function followElabftw(api: FastifyInstance, doorkeeper: Doorkeeper): void {
  api.setErrorHandler(answerFailures(doorkeeper.log));
  api.addHook('onRequest', async (request) => authorise(request, doorkeeper));
  api.addHook('preParsing', async (request) => checkContentType(request));
  api.addHook('onSend', async (_request, reply) => {
    const session = randomBytes(16).toString('hex');
    // Written without a charset, which Fastify would add.
    if (/^application\/json/.test(String(reply.getHeader('content-type')))) reply.type('application/json');
    reply.header('set-cookie', `PHPSESSID=${session}; path=/; secure; HttpOnly; SameSite=Lax`);
  });
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', parseBody);
  api.setNotFoundHandler(() => {
    throw improper('Incorrect endpoint.');
  });
}

function authorise({ method, headers }: FastifyRequest, { useKey, badKey }: Doorkeeper): void {
  const key = headers.authorization;
  const rights = key === undefined ? undefined : useKey(key);
  if (!rights) {
    const reason = key === undefined ? '' : 'No corresponding API key found!';
    throw badKey === 400 && reason ? new PageFailure(400, reason) : unauthorised(reason);
  }
  if (method !== 'GET' && !rights.canWrite) {
    throw improper('You are using a read-only key to execute a write action.');
  }
}

const isMultipart = ({ headers }: FastifyRequest) =>
  headers['content-type']?.startsWith('multipart/form-data') ?? false;

/** Also without a body: this is what keeps other sites' pages from posting in a user's name. */
function checkContentType(request: FastifyRequest): void {
  const { method, headers, url } = request;
  if (method === 'GET' || method === 'DELETE') return;
  if (isMultipart(request) && method === 'POST' && /\/uploads\/?(?:\?|$)/.test(url)) return;
  if (headers['content-type'] !== 'application/json') throw improper('Incorrect content-type header.');
}

async function parseBody(request: FastifyRequest, payload: AsyncIterable<Buffer>): Promise<unknown> {
  const bytes = await readBody(payload);
  if (!bytes) throw tooLarge();
  return isMultipart(request) ? readForm(request.headers['content-type'] ?? '', bytes) : parseJson(bytes);
}

/** In what eLabFTW servers differ from each other. Unless told otherwise: 5.6, and an ordinary user. */
export interface ElabftwOptions {
  /** Whether the keys' user is the team's administrator. */
  readonly administrator?: boolean;
  /** Whether that user writes markdown unless told otherwise. */
  readonly markdown?: boolean;
  /** Whether users may make tags that their team does not have yet. */
  readonly createsTags?: boolean;
  /** How many a list holds where nobody says: 15 before 5.4; 0 for all. */
  readonly listLimit?: number;
  /** What a key that is not known is refused with: 400 and plain text from 4.9 to 5.1. */
  readonly badKey?: 400 | 401;
}

export interface Customs extends Required<ElabftwOptions> {
  /** Whether a creation heeds its body. Versions before 5.3 made blank experiments. */
  readonly keepsTitle: boolean;
}

export const customsOf = (options: ElabftwOptions, keepsTitle: boolean): Customs => ({
  administrator: false,
  markdown: false,
  createsTags: true,
  listLimit: 0,
  badKey: 401,
  ...options,
  keepsTitle,
});

/** The user whose key is used. */
export interface Account {
  readonly person: Person;
  readonly administrator: boolean;
}

/** Others' entries can be read by the team unless they are private; an administrator reads all. */
export const mayRead = (entry: Entry, { person, administrator }: Account) =>
  administrator || entry.userid === person.userid || entry.private === 0;

/** A locked one nobody writes to but an administrator, not even its owner. */
function mayWrite(entry: Entry, { person, administrator }: Account): boolean {
  return administrator || (entry.userid === person.userid && entry.lockedby === null);
}

export function readable(entries: Entries, id: number, account: Account): Entry {
  if (id <= 0) throw forbidden();
  const entry = entries.read(id);
  if (!entry) throw missing();
  if (!mayRead(entry, account)) throw forbidden();
  return entry;
}

export function refuseUnwritable(entry: Entry, account: Account): void {
  if (!mayWrite(entry, account)) throw forbidden();
}

/** The order of the reasons is the server's: a deleted one that is locked is refused for being deleted. */
export function refuseChange(entry: Entry, account: Account): void {
  if (entry.state === STATE.deleted) {
    throw unprocessable('Only the Restore action is allowed on a deleted entity.');
  }
  if (entry.state === STATE.archived) {
    throw unprocessable('Only the Unarchive action is allowed on an archived entity.');
  }
  refuseUnwritable(entry, account);
  // Who has it open in a second window is let in all the same.
  if (entry.editedby !== null && entry.editedby !== account.person.userid) {
    throw improper(`This entry is being edited by ${fullName(personOf(entry.editedby))}.`);
  }
}

/** A request that eLabFTW does not carry out. What its body calls `code` need not be the status. */
class Failure extends Error {
  override readonly name = 'Failure';
  readonly status: number;
  readonly code: number;
  readonly description: string;

  constructor(status: number, message: string, { code = status, description = '' } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.description = description;
  }
}

/** An answer that is none of eLabFTW's own making: a page, or nothing at all, where JSON was expected. */
class PageFailure extends Error {
  override readonly name = 'PageFailure';
  readonly status: number;

  constructor(status: number, page: string) {
    super(page);
    this.status = status;
  }
}

export const improper = (message: string) => new Failure(400, message);
/** The exception is called 422, and its status is 400 all the same. */
const unprocessable = (message: string) => new Failure(400, message, { code: 422 });
const unauthorised = (description: string) => new Failure(401, 'Authentication required', { description });
const forbidden = () => new Failure(403, 'Sorry, you are not allowed to perform that action.');
export const missing = () => new Failure(404, 'Nothing to show with this id');
/** The database's own number for what it disliked. */
export const refusedBySql = (code: number, message: string) => new Failure(500, message, { code });
/** A value of the wrong type stops the script where it is: 500, and not a word. */
export const typeError = () => new PageFailure(500, '');
const tooLarge = () =>
  new PageFailure(413, '<html><body><h1>413 Request Entity Too Large</h1></body></html>\n');

function answerFailures(log?: Log) {
  return (error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    if (error instanceof PageFailure) {
      reply.code(error.status).type('text/html; charset=UTF-8').send(error.message);
    } else if (error instanceof Failure) {
      const { status, code, message, description } = error;
      reply.code(status).send({ code, message, description });
    } else if (error instanceof Refusal) {
      reply.code(error.status).send({ code: error.status, message: error.message, description: '' });
    } else {
      if (!request.raw.readableAborted) {
        log?.error({ err: error, method: request.method, url: request.url }, 'sandbox failed to answer');
      }
      reply.code(500).send({ code: 500, message: 'Unexpected error', description: error.message });
    }
  };
}

/** What PHP makes of a text where it wants a number: `12abc` is 12, and `abc` is 0. */
export function toInteger(text: string | undefined): number {
  const number = Number(/^\s*[+-]?\d+/.exec(text ?? '')?.[0] ?? 0);
  // Beyond this, SQLite would refuse the number; no record is there.
  return Math.min(number, Number.MAX_SAFE_INTEGER);
}

/** What PHP makes of a JSON value where it wants a text. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? '1' : '';
  return value === null || value === undefined ? '' : 'Array';
}

/** Where types are declared PHP converts nothing. A null counts as left out. */
export function textOrNothing(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw typeError();
  return value;
}

export function integerOrNothing(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value)) throw typeError();
  return value;
}

/** Of a parameter that was given several times, the last. */
export const single = (value: string | string[] | undefined) => (Array.isArray(value) ? value.at(-1) : value);

/** The body's fields in the order in which they were sent, which decides what is saved before an error. */
export function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined) return {};
  if (typeof body !== 'object' || body === null) throw typeError();
  return body as Record<string, unknown>;
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

const MAX_TITLE_GRAPHEMES = 255;
const MAX_TAG_CHARACTERS = 255;
const MAX_CONTENT_BYTES = 4_120_000;

/** Line breaks become spaces, and what is too long is cut without a word. */
export function cleanTitle(text: string): string {
  const title = text.trim().replace(/\r\n|\n|\r/g, ' ');
  if (title.length <= MAX_TITLE_GRAPHEMES) return title || 'Untitled';
  const graphemes = [...new Intl.Segmenter('en').segment(title)];
  return title.slice(0, graphemes[MAX_TITLE_GRAPHEMES]?.index ?? title.length);
}

/** Some elements keep their content and lose their tags. */
const UNWRAPPED = /<\/?(?:thead|tbody|tfoot|i|small|del|ins)>/g;

/** Takes scripts, comments, pictures and wrappers from a body, and writes its quotes as characters. */
export function cleanBody(text: string): string {
  if (Buffer.byteLength(text) > MAX_CONTENT_BYTES) throw improper('Content is too big! Cannot save!');
  return sanitise(text)
    .replace(UNWRAPPED, '')
    .replace(/<[^>]*>|&quot;|&#0?39;/g, (part) =>
      part.startsWith('<') ? part : part === '&quot;' ? '"' : "'",
    );
}

export function cleanTag(text: string): string {
  const tag = text.replaceAll('\\', '').replaceAll('|', ' ').trim();
  if (tag === '') throw improper('Input is too short! (minimum: 1)');
  if ([...tag].length > MAX_TAG_CHARACTERS) {
    throw refusedBySql(1406, "Data too long for column 'tag' at row 1");
  }
  return tag;
}

export function checkDate(text: string): string {
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined;
  // Some engines roll 30 February over into March.
  if (!day || Number.isNaN(day.getTime()) || !day.toISOString().startsWith(text)) {
    throw refusedBySql(1292, `Incorrect date value: '${text}' for column 'date' at row 1`);
  }
  return text;
}

export function checkJson(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    throw refusedBySql(
      3140,
      `Invalid JSON text: "Invalid value." at position 0 in value for column 'experiments.metadata'.`,
    );
  }
  return text;
}

/** What a form brought: its file, told by name, size and hash. */
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

/** Undefined where the form cannot be read, or has no file. */
async function readForm(contentType: string, bytes: Buffer): Promise<SentFile | undefined> {
  const sent = new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } });
  const form = await sent.formData().catch(() => undefined);
  const file = form?.get('file');
  const comment = form?.get('comment');
  if (!file || typeof file === 'string') return undefined;
  const content = new Uint8Array(await file.arrayBuffer());
  return new SentFile(file.name, content, typeof comment === 'string' ? comment : null);
}
