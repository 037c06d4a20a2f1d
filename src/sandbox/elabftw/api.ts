import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal, readBody, type SandboxRequest } from '../http.js';
import { createKey, deleteKey, fullName, listKeys, type Store, USERS, useKey } from '../store.js';
import { experiments } from './experiments.js';
import { PARTS } from './parts.js';
import {
  type Call,
  listTemplates,
  loadExperiment,
  type Resource,
  type SentFile,
  searchItems,
  single,
  TEAM,
  TEAM_LISTS,
} from './records.js';
import {
  cleanTitle,
  improper,
  optionalInteger,
  optionalText,
  SITE_URL,
  toInteger,
  toText,
  typeError,
  unsupported,
} from './values.js';

/**
 * The API as eLabFTW 5.6 implements it, used with an ordinary user's key. Like there, one place handles every request:
 * it splits the path into endpoint, id, part and id of the part, ignores what follows, and knows no other routes.
 */
interface Settings {
  readonly maxUploadBytes?: number;
  readonly forcesTemplate?: boolean;
}

export function serveElabftw(api: FastifyInstance, store: Store, settings: Settings = {}): void {
  const { maxUploadBytes = MAX_UPLOAD_BYTES, forcesTemplate = false } = settings;
  api.addHook('onRequest', async (request, reply) => {
    if (!METHODS.includes(request.method)) throw new Refusal(405, NOT_ALLOWED, { html: true });
    if (request.method === 'OPTIONS') return sendEmpty(reply.code(200));
    return authorise(request, store);
  });
  api.addHook('preParsing', async ({ headers }) => {
    // Fastify would refuse an invalid content type.
    if (!/\w\/\w/.test(headers['content-type'] ?? 'a/b')) throw improper(WRONG_TYPE);
  });
  api.addHook('onSend', async (_request, reply) => {
    // Without the charset that Fastify adds.
    if (/^application\/json/.test(String(reply.getHeader('content-type')))) reply.type('application/json');
    const session = randomBytes(16).toString('hex');
    reply.header('set-cookie', `PHPSESSID=${session}; path=/; secure; HttpOnly; SameSite=Lax`);
  });
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', (request: FastifyRequest, payload: AsyncIterable<Buffer>) =>
    readBytes(payload, isMultipart(request) ? maxUploadBytes : undefined),
  );
  for (const url of ['/', '/*']) {
    api.all(url, async (request: SandboxRequest, reply) => answer(request, reply, store, forcesTemplate));
  }
}

/** eLabFTW's default. */
const MAX_UPLOAD_BYTES = 100 * 1024 * 1024;

/** The web server in front of PHP refuses other methods. */
const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS'];
const WRONG_TYPE = 'Incorrect content-type header.';
const NOT_ALLOWED = '<html><body><h1>405 Not Allowed</h1></body></html>\n';
const TOO_LARGE = '<html><body><h1>413 Request Entity Too Large</h1></body></html>\n';

/** Ignores a key of HTTP's basic authentication: it may belong to a proxy. */
function authorise({ method, headers }: FastifyRequest, store: Store): void {
  const sent = headers.authorization?.startsWith('Basic') ? undefined : headers.authorization;
  const key = sent === undefined ? undefined : useKey(store, sent);
  if (!key) {
    const description = sent === undefined ? '' : 'No corresponding API key found!';
    throw new Refusal(401, 'Authentication required', { description });
  }
  if (method !== 'GET' && !key.can_write) {
    throw improper('You are using a read-only key to execute a write action.');
  }
}

async function readBytes(payload: AsyncIterable<Buffer>, maxBytes: number | undefined): Promise<Buffer> {
  const bytes = await readBody(payload, maxBytes);
  if (!bytes) throw new Refusal(413, TOO_LARGE, { html: true });
  return bytes;
}

/** The checks are in eLabFTW's order, which decides what a request with two mistakes gets. */
async function answer(
  request: SandboxRequest,
  reply: FastifyReply,
  store: Store,
  forcesTemplate: boolean,
): Promise<FastifyReply> {
  const { method, query } = request;
  const { resource, ...target } = route(request.params['*'] ?? '', store);
  checkFormat(single(query['format']));
  const isForm = isMultipart(request);
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const fields = isForm ? {} : parseFields(bytes);
  checkContentType(request, isForm && resource.takesFiles === true);
  const file = isForm ? await parseForm(request.headers['content-type'] ?? '', bytes) : undefined;
  const call: Call = { ...target, store, query, fields, file, forcesTemplate, action: actionOf(method, fields) };
  switch (method) {
    case 'GET':
      return reply.send(supported(resource.read, method)(call));
    case 'POST':
      return sendEmpty(reply.code(201).header('location', `${SITE_URL}/${supported(resource.create, method)(call)}`));
    case 'PATCH':
      return reply.send(supported(resource.change, method)(call));
    case 'DELETE':
      supported(resource.remove, method)(call);
      return reply.code(204).type('application/json').send();
    default:
      return sendEmpty(reply.code(405).header('allow', 'GET, POST, DELETE, PATCH'));
  }
}

const sendEmpty = (reply: FastifyReply) => reply.type('text/html; charset=UTF-8').send('');

function supported<T>(handler: T | undefined, method: string): T {
  if (!handler) throw improper(`No ${method} action for this endpoint!`);
  return handler;
}

type Target = Pick<Call, 'id' | 'experiment'> & { readonly resource: Resource };

function route(path: string, store: Store): Target {
  const [endpoint = '', first = '', part = '', second = ''] = path.split('/');
  const [id, partId] = [first, second].map((text) => Math.max(0, toInteger(text)) || undefined);
  if (!ENDPOINTS.includes(endpoint)) {
    throw improper(`Invalid endpoint: available endpoints: ${ENDPOINTS.join(', ')}`);
  }
  if (endpoint === 'users' && first === 'me' && !part) return { resource: me, id, experiment: undefined };
  if (endpoint === 'teams' && first === 'current' && !part) return { resource: team, id, experiment: undefined };
  const teamList = endpoint === 'teams' && first === 'current' ? TEAM_LISTS[part] : undefined;
  if (teamList) return { resource: { read: teamList }, id: undefined, experiment: undefined };
  if (endpoint !== 'experiments') {
    const resource = OTHERS[endpoint];
    if (!resource) throw unsupported(`/${endpoint}`);
    if (part) throw improper('Incorrect endpoint.');
    return { resource, id, experiment: undefined };
  }
  const experiment = id === undefined ? undefined : loadExperiment(store, id);
  if (!part) return { resource: experiments, id, experiment };
  if (!PART_NAMES.includes(part)) {
    throw improper(`Incorrect submodel for experiments: available models are: ${PART_NAMES.join(', ')}.`);
  }
  const resource = PARTS[part];
  if (!resource) throw unsupported(`the ${part} of an experiment`);
  return { resource, id: partId, experiment };
}

const ENDPOINTS =
  `apikeys batch compounds config dspace experiments experiments_templates exports extra_fields_keys event
  events favtags idps idps_sources import info instance items items_types reports storage_units team_tags teams todolist
  unfinished_steps users`.split(/\s+/);
const PART_NAMES = `comments compounds containers experiments_links items_links request_actions revisions steps tags
  uploads`.split(/\s+/);

const FORMATS = 'binary csv eln elnhtml json pdf pdfa qrpdf qrpng zip zipa'.split(' ');

function checkFormat(format: string | undefined): void {
  if (format === undefined || format === 'json' || format === 'binary') return;
  if (FORMATS.includes(format)) throw unsupported(`the format ${format}`);
  throw improper(`Incorrect value for format parameter. Available values are: ${FORMATS.join(', ')}.`);
}

/** Required without a body too, to keep pages of other sites from posting in a user's name. */
function checkContentType({ method, headers }: FastifyRequest, acceptsForm: boolean): void {
  if (method === 'GET' || method === 'DELETE' || (acceptsForm && method === 'POST')) return;
  if (headers['content-type'] !== 'application/json') throw improper(WRONG_TYPE);
}

const isMultipart = ({ headers }: FastifyRequest) =>
  headers['content-type']?.startsWith('multipart/form-data') ?? false;

/** PHP counts the text `0` as empty. */
function parseFields(bytes: Buffer): Record<string, unknown> {
  if (bytes.length === 0 || bytes.toString() === '0') return {};
  const fail = (problem: string) => improper(`Error decoding json payload: ${problem}`);
  if (!isUtf8(bytes)) throw fail('Malformed UTF-8 characters, possibly incorrectly encoded');
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    throw fail('Syntax error');
  }
  if (typeof value !== 'object' || value === null) throw typeError();
  return value as Record<string, unknown>;
}

const ACTIONS =
  `accesskey add archive bloxberg create createfromstring destroy duplicate finish forcelock forceunlock lock
  notif pin removeexclusiveeditmode replace restore review setcanread setcanwrite setnextcustomid sign timestamp unarchive
  unreference update updatemetadatafield updateowner updatetag validate`.split(/\s+/);

/** An unknown action counts as none. */
function actionOf(method: string, fields: Readonly<Record<string, unknown>>): string {
  const named = toText(fields['action']);
  const action = ACTIONS.includes(named) ? named : 'create';
  return method === 'PATCH' && action === 'create' ? 'update' : action;
}

/** Returns undefined if the form cannot be parsed or has no file. */
async function parseForm(contentType: string, bytes: Buffer): Promise<SentFile | undefined> {
  const sent = new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } });
  const form = await sent.formData().catch(() => undefined);
  const file = form?.get('file');
  const comment = form?.get('comment');
  if (!file || typeof file === 'string') return undefined;
  const content = new Uint8Array(await file.arrayBuffer());
  return { name: file.name, content, comment: typeof comment === 'string' ? comment : null };
}

const apikeys: Resource = {
  /** The most recently used key comes first. An id in the path is ignored. */
  read: ({ store }) =>
    listKeys(store)
      .map(({ hash, ...key }) => ({
        ...key,
        hash: `$2y$10$${hash.slice(0, 53)}`,
        team: TEAM.id,
        team_name: TEAM.name,
      }))
      .sort((a, b) => (b.last_used_at ?? '').localeCompare(a.last_used_at ?? '') || a.id - b.id),
  /** The address ends in the key and is not part of the API. */
  create: ({ store, fields }) =>
    createKey(
      store,
      cleanTitle(optionalText(fields['name']) ?? 'An API key'),
      (optionalInteger(fields['canwrite']) ?? 0) !== 0,
      'numbered',
    ),
  remove: ({ store, id = 0 }) => deleteKey(store, id),
};

/** Whose key it is. */
const me: Resource = {
  read: () => ({
    ...USERS.owner,
    fullname: fullName(USERS.owner),
    orcid: null,
    team: TEAM.id,
    teams: [{ ...TEAM, is_admin: 0, is_owner: 0 }],
    is_sysadmin: 0,
    use_markdown: 0,
    validated: 1,
  }),
};

const team: Resource = { read: ({ forcesTemplate }) => ({ ...TEAM, force_exp_tpl: Number(forcesTemplate) }) };

const OTHERS: Readonly<Record<string, Resource>> = {
  apikeys,
  items: { read: searchItems },
  experiments_templates: { read: listTemplates },
  info: { read: () => ({ elabftw_version: '5.6.12', elabftw_version_int: 50_612 }) },
};
