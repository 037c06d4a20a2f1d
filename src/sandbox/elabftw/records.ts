import { createHash } from 'node:crypto';
import { parseJson } from '../../text.js';
import type { SandboxRequest } from '../http.js';
import {
  type Comment,
  type Experiment,
  fullName,
  listComments,
  listUploads,
  readExperiment,
  STATE,
  type Store,
  teamTag,
  type Upload,
  USERS,
  userOf,
} from '../store.js';
import { forbidden, improper, missing, SITE_URL, toInteger } from './values.js';

/** One request as a resource sees it. */
export interface Call {
  readonly store: Store;
  readonly query: SandboxRequest['query'];
  /** The experiment of the path, which the key may read. */
  readonly experiment: Experiment | undefined;
  /** The id in the path; of a part of an experiment, the id of the part. Undefined if it is not a positive number. */
  readonly id: number | undefined;
  readonly action: string;
  /** The fields of the body in the order sent, which decides which of them are saved before an error. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly file: SentFile | undefined;
  /** Whether the team creates experiments from templates only. */
  readonly forcesTemplate: boolean;
}

/** The file of an upload form. */
export interface SentFile {
  readonly name: string;
  readonly comment: string | null;
  readonly content: Uint8Array;
}

/** What an endpoint does with each method. The others get 400. */
export interface Resource {
  /** Returns JSON, or the bytes of a file. */
  read?(call: Call): unknown;
  /** Returns the path of what was created. */
  create?(call: Call): string;
  /** Returns JSON. */
  change?(call: Call): unknown;
  remove?(call: Call): void;
  /** Whether a form is accepted. */
  readonly takesFiles?: boolean;
}

/** The experiment that a path names. */
export function loadExperiment(store: Store, id: number): Experiment {
  const experiment = readExperiment(store, id);
  if (!experiment) throw missing();
  if (!mayRead(experiment)) throw forbidden();
  return experiment;
}

/** Without an id in the path, permissions cannot be checked. */
export function experimentOf({ experiment }: Call): Experiment {
  if (!experiment) throw forbidden();
  return experiment;
}

const isOwn = ({ userid }: Experiment) => userid === USERS.owner.userid;

/** The team can read the experiments of others unless they are private. */
export const mayRead = (experiment: Experiment) => isOwn(experiment) || experiment.private === 0;

/** An experiment that somebody else locked cannot be written to, not even by its owner. */
export function refuseUnwritable(experiment: Experiment): void {
  const { lockedby } = experiment;
  if (!isOwn(experiment) || (lockedby !== null && lockedby !== USERS.owner.userid)) throw forbidden();
}

/** If a parameter was given several times, the last one counts. */
export const single = (value: string | string[] | undefined) => (Array.isArray(value) ? value.at(-1) : value);

const STATES = ['Normal', 'Archived', 'Deleted', 'Pending', 'Processing', 'Error'];

/** The states that a list is to contain. */
export function statesIn(query: Call['query']): readonly number[] {
  const states = single(query['state'])?.split(',').map(toInteger) ?? [STATE.normal];
  if (states.every((state) => state >= 1 && state <= STATES.length)) return states;
  const known = STATES.map((name, index) => `${index + 1} (${name})`);
  throw improper(`Invalid state parameter. Must be one of: ${known.join(', ')}`);
}

export const TEAM = { id: 1, name: 'Sandbox team' };

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');

export const elabidOf = ({ id, created_at }: Experiment) =>
  `${created_at.slice(0, 10).replaceAll('-', '')}-${sha1(`experiment ${id}`)}`;

function authorFields(userid: number) {
  const { firstname, lastname } = userOf(userid);
  return { fullname: fullName(userOf(userid)), firstname, lastname, orcid: null };
}

const NOBODY_ELSE = '{"teams": [], "users": [], "teamgroups": []}';

/** An experiment as it appears in a list: without body and metadata. */
export function listedRecord(experiment: Experiment, store: Store) {
  const { id, title, date, team, userid, state, lockedby, created_at, modified_at, attributes } = experiment;
  const { locked_at: _, access_key: __, emptied: ___, ...shown } = attributes;
  const tags = experiment.tags.map((tag) => teamTag(store, tag)).sort((a, b) => a.id - b.id);
  return {
    id,
    title,
    date,
    team,
    userid,
    state,
    created_at,
    modified_at,
    ...authorFields(userid),
    canread: NOBODY_ELSE,
    canread_base: experiment.private === 1 ? 20 : 30,
    canread_is_immutable: 0,
    canwrite: NOBODY_ELSE,
    canwrite_base: 20,
    canwrite_is_immutable: 0,
    category: null,
    category_color: null,
    category_title: null,
    custom_id: null,
    is_pinned: 0,
    locked: lockedby === null ? 0 : 1,
    next_step: null,
    page: 'experiments',
    rating: 0,
    recent_comment: listComments(store, id).at(-1)?.created_at ?? null,
    status: null,
    status_color: null,
    status_title: null,
    tags: tags.map(({ tag }) => tag).join('|') || null,
    tags_id: tags.map((tag) => tag.id).join(',') || null,
    team_name: team === TEAM.id ? TEAM.name : `Team ${team}`,
    timestamped: 0,
    type: 'experiments',
    ...shown,
  };
}

/** An experiment that is read by itself. */
export function fullRecord(experiment: Experiment, { store, query }: Pick<Call, 'store' | 'query'>) {
  const { id, body, editedby, metadata, attributes, lockedby, modified_at } = experiment;
  const { emptied, access_key = null, locked_at = lockedby === null ? null : modified_at } = attributes;
  const states = statesIn(query);
  return {
    ...listedRecord(experiment, store),
    access_key,
    body: body || (emptied ? '' : null),
    body_html: body || null,
    comments: listComments(store, id).map(commentRecord),
    compounds_links: [],
    containers: [],
    content_type: experiment.content_type,
    elabid: elabidOf(experiment),
    exclusive_edit_mode:
      editedby === null ? null : { locked_by: editedby, locked_by_human: fullName(userOf(editedby)) },
    experiments_links: [],
    items_links: (attributes.items ?? []).map((entityid) => ({ entityid })),
    lastchangeby: experiment.lastchangeby,
    locked_at,
    lockedby,
    metadata,
    ...(metadata !== null && { metadata_decoded: parseJson(metadata) }),
    related_experiments_links: [],
    related_items_links: [],
    sharelink: `${SITE_URL}/experiments.php?mode=view&id=${id}${access_key ? `&access_key=${access_key}` : ''}`,
    steps: [],
    timestamped_at: null,
    timestampedby: null,
    uploads: uploadsOf(id, states, store),
  };
}

/** Newest first. */
export const uploadsOf = (experiment: number, states: readonly number[], store: Store) =>
  listUploads(store, experiment)
    .filter(({ state }) => states.includes(state))
    .sort((a, b) => b.created_at.localeCompare(a.created_at))
    .map(uploadRecord);

export const commentRecord = (comment: Comment) => ({
  ...comment,
  ...authorFields(comment.userid),
  immutable: 0,
  email: userOf(comment.userid).email,
});

/** The name under which the server keeps a file: part of its address in a body. */
export function longNameOf({ id, real_name }: Pick<Upload, 'id' | 'real_name'>): string {
  const name = sha1(`upload ${id}`);
  return `${name.slice(0, 2)}/${name}.${extensionOf(real_name)}`;
}

export function uploadRecord(upload: Upload) {
  return {
    ...upload,
    long_name: longNameOf(upload),
    type: 'experiments',
    hash_algorithm: 'sha256',
    storage: 1,
    immutable: 0,
    fullname: fullName(userOf(upload.userid)),
  };
}

export const extensionOf = (name: string) => /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase() ?? 'unknown';

/** What a new team has on the built-in notebook: the names that experiments can be given. */
interface Named {
  readonly id: number;
  readonly title: string;
}

const list = (...titles: readonly string[]): Named[] => titles.map((title, index) => ({ id: index + 1, title }));

const CATEGORIES = list('Raw data', 'Analysis', 'Production');
const STATUSES = list('Running', 'Success', 'Need to be redone', 'Fail');
const ITEMS = list('Plate reader', 'Spectrometer', 'Balance', 'Chromatograph', 'Logger');

interface Template extends Named {
  readonly body: string;
  readonly metadata: string | null;
}

const [first = { id: 1, title: 'Measurement' }] = list('Measurement');
const TEMPLATES: readonly Template[] = [
  {
    ...first,
    body: '<p>Purpose:</p>',
    metadata: JSON.stringify({ extra_fields: { Operator: { type: 'text', value: '' } } }),
  },
];

export const templateOf = (id: number): Template | undefined => TEMPLATES.find((one) => one.id === id);

export const isItem = (id: number): boolean => ITEMS.some((item) => item.id === id);

const colour = (named: Named) => ({ ...named, color: '29aeb9', is_default: 0, state: 1, team: 1 });

/** `GET /teams/current/…`, by the last part of its path. */
export const TEAM_LISTS: Readonly<Record<string, () => object[]>> = {
  experiments_categories: () => CATEGORIES.map(colour),
  experiments_status: () => STATUSES.map(colour),
};

/** `q` is a substring of the title. */
export const searchItems = ({ query }: Pick<Call, 'query'>): object[] => {
  const wanted = String(query['q'] ?? '').toLowerCase();
  return ITEMS.filter(({ title }) => title.toLowerCase().includes(wanted));
};

export const listTemplates = (): object[] => TEMPLATES.map(({ id, title }) => ({ id, title }));
