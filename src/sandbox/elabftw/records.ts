import { createHash } from 'node:crypto';
import { type Entry, fullName, personOf } from '../entries.js';
import type { Comment, Store, Upload } from '../store.js';

/** The server's own idea of its address. It resolves nowhere: whoever follows it is found out. */
export const SITE_URL = 'https://eln.invalid';

export const TEAM = { id: 1, name: 'Sandbox team' };

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');

const names = (userid: number) => {
  const { firstname, lastname } = personOf(userid);
  return { fullname: fullName(personOf(userid)), firstname, lastname, orcid: null };
};

/** Who may see it: the team, or its owner alone. */
const base = (entry: Entry) => ({ canread_base: entry.private === 1 ? 20 : 30, canwrite_base: 20 });

/** An experiment as it stands in a list. */
export function listedEntry(entry: Entry, { tags }: Pick<Store, 'tags'>) {
  const { private: _, tags: written, editedby: __, ...row } = entry;
  const known = written.map(tags.named).sort((a, b) => a.id - b.id);
  return {
    ...row,
    ...names(entry.userid),
    ...base(entry),
    access_key: null,
    body: entry.body || null,
    canread: '{"teams": [], "teamgroups": [], "users": []}',
    canwrite: '{"teams": [], "teamgroups": [], "users": []}',
    category: null,
    category_title: null,
    custom_id: null,
    elabid: `${entry.created_at.slice(0, 10).replaceAll('-', '')}-${sha1(`experiment ${entry.id}`)}`,
    locked: entry.lockedby === null ? 0 : 1,
    locked_at: entry.lockedby === null ? null : entry.modified_at,
    page: 'experiments',
    rating: 0,
    status: null,
    status_title: null,
    tags: known.map(({ tag }) => tag).join('|') || null,
    tags_id: known.map(({ id }) => id).join(',') || null,
    team_name: entry.team === TEAM.id ? TEAM.name : `Team ${entry.team}`,
    timestamped: 0,
    type: 'experiments',
  };
}

/** An experiment read by itself. */
export function fullEntry(entry: Entry, store: Pick<Store, 'tags' | 'comments' | 'uploads'>) {
  return {
    ...listedEntry(entry, store),
    body_html: entry.body || null,
    comments: store.comments.list(entry.id).map(commentRecord),
    exclusive_edit_mode:
      entry.editedby === null
        ? null
        : { locked_by: entry.editedby, locked_by_human: fullName(personOf(entry.editedby)) },
    experiments_links: [],
    items_links: [],
    ...(entry.metadata === null ? {} : { metadata_decoded: decode(entry.metadata) }),
    sharelink: `${SITE_URL}/experiments.php?mode=view&id=${entry.id}`,
    steps: [],
    uploads: store.uploads.list(entry.id).map(uploadRecord),
  };
}

export function commentRecord({ id, created_at, modified_at, item_id, comment, userid }: Comment) {
  const written = { id, created_at, modified_at, item_id, comment, userid, immutable: 0 };
  return { ...written, ...names(userid), email: personOf(userid).email };
}

export const uploadRecord = (upload: Upload) => ({
  ...upload,
  long_name: `${sha1(`upload ${upload.id}`)}.bin`,
  type: 'experiments',
  hash_algorithm: 'sha256',
  storage: 1,
  state: 1,
  immutable: 0,
  fullname: fullName(personOf(upload.userid)),
});

interface ExtraField {
  readonly value?: unknown;
  readonly blank_value_on_duplicate?: unknown;
}

type ExtraFields = Readonly<Record<string, ExtraField>>;

/** The extra fields of an experiment's metadata, where it has any. */
export function extraFields(metadata: string | null): ExtraFields {
  const decoded = decode(metadata);
  const fields = isObject(decoded) ? decoded['extra_fields'] : undefined;
  if (!isObject(fields)) return {};
  return Object.fromEntries(
    Object.entries(fields).filter((field): field is [string, ExtraField] => isObject(field[1])),
  );
}

function decode(metadata: string | null): unknown {
  return metadata === null ? undefined : JSON.parse(metadata);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
