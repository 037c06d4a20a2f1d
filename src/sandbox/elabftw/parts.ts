import {
  type Comment,
  changeComment,
  changeExperiment,
  changeQuietly,
  changeUpload,
  createComment,
  createUpload,
  deleteComment,
  type Experiment,
  listComments,
  listExperiments,
  readComment,
  readContent,
  readTag,
  readUpload,
  STATE,
  teamTag,
  type Upload,
  USERS,
} from '../store.js';
import { addTag } from './experiments.js';
import {
  type Call,
  commentRecord,
  experimentOf,
  extensionOf,
  fullRecord,
  isItem,
  loadExperiment,
  type Resource,
  refuseUnwritable,
  single,
  statesIn,
  TEAM,
  uploadRecord,
  uploadsOf,
} from './records.js';
import { checkComment, improper, missing, toText } from './values.js';

const OWNER = USERS.owner.userid;

const required = <T>(record: T | undefined): T => {
  if (record === undefined) throw missing();
  return record;
};

const commentOf = (call: Call): Comment => required(readComment(call.store, experimentOf(call).id, call.id ?? 0));

/**
 * A user who can read an experiment can comment on it, even if it is locked, deleted or someone else's. A request to
 * change or delete someone else's comment succeeds and does nothing.
 */
const comments: Resource = {
  read: (call) =>
    call.id === undefined
      ? listComments(call.store, experimentOf(call).id).map(commentRecord)
      : commentRecord(commentOf(call)),
  create(call) {
    const { store, fields } = call;
    const experiment = experimentOf(call).id;
    if ((fields['comment'] ?? null) === null) throw improper('Missing comment field.');
    const id = createComment(store, experiment, checkComment(fields['comment']));
    return `api/v2/experiments/${experiment}/comments/${id}`;
  },
  change(call) {
    const text = checkComment(call.fields['comment']);
    const { item_id, id, userid } = commentOf(call);
    if (userid === OWNER) changeComment(call.store, item_id, id, text);
    return commentRecord(commentOf(call));
  },
  remove(call) {
    const { item_id, id, userid } = commentOf(call);
    if (userid === OWNER) deleteComment(call.store, item_id, id);
  },
};

/** Tags belong to the team, which keeps them when they are removed from an experiment. */
const tags: Resource = {
  read: (call) => (call.id === undefined ? tagsOf(call) : tagRecord(call.id, call)),
  create(call) {
    const { store, fields } = call;
    const experiment = experimentOf(call);
    const one = typeof fields['tag'] === 'string' ? [fields['tag']] : [];
    const all: unknown[] = Array.isArray(fields['tags']) ? fields['tags'] : one;
    // Without a tag, nothing is checked or done.
    if (all.length > 0) refuseUnwritable(experiment);
    const ids = all.map((tag) => addTag(experiment.id, tag, store).id);
    return `api/v2/experiments/${experiment.id}/tags/${ids.at(-1) ?? 0}`;
  },
  // A tag that the experiment does not have is not an error.
  change(call) {
    const { store, action, id: removed } = call;
    const { id, ...experiment } = experimentOf(call);
    if (action !== 'unreference') throw improper('Invalid action for tags.');
    refuseUnwritable({ id, ...experiment });
    const kept = experiment.tags.filter((tag) => teamTag(store, tag).id !== removed);
    changeQuietly(store, id, { tags: kept });
    return fullRecord(loadExperiment(store, id), call);
  },
  /** All of them, even if the path names one. */
  remove: (call) => changeQuietly(call.store, experimentOf(call).id, { tags: [] }),
};

/** In the order of the alphabet. */
const tagsOf = (call: Call) =>
  experimentOf(call)
    .tags.map((name) => teamTag(call.store, name))
    .sort((a, b) => a.tag.localeCompare(b.tag, 'en', { sensitivity: 'base' }))
    .map(({ id, tag }) => ({ tag, tag_id: id, is_favorite: 0 }));

function tagRecord(id: number, { store }: Call) {
  const { tag } = required(readTag(store, id));
  const item_count = listExperiments(store).filter((experiment) => experiment.tags.includes(tag)).length;
  return { id, tag, is_favorite: 0, item_count, team: TEAM.id };
}

const uploadOf = (call: Call): Upload => required(readUpload(call.store, experimentOf(call).id, call.id ?? 0));

/** The same file sent twice makes two uploads. */
const uploads: Resource = {
  takesFiles: true,
  read(call) {
    if (call.id === undefined) return uploadsOf(experimentOf(call).id, statesIn(call.query), call.store);
    const upload = uploadOf(call);
    return single(call.query['format']) === 'binary'
      ? Buffer.from(required(readContent(call.store, upload.id)))
      : uploadRecord(upload);
  },
  create(call) {
    const { store } = call;
    const experiment = experimentOf(call);
    const replaced = call.id === undefined ? undefined : uploadOf(call);
    const { name, content, comment } = sentFile(call);
    refuseUnwritable(experiment);
    if (extensionOf(name) === 'php') throw improper('PHP files are forbidden!');
    if (replaced) changeUpload(store, replaced.id, { ...replaced, state: STATE.archived });
    const file = { real_name: name, content, comment: replaced ? replaced.comment : comment };
    const id = createUpload(store, { ...file, item_id: experiment.id, userid: OWNER });
    changeExperiment(store, experiment.id, {});
    return `api/v2/experiments/${experiment.id}/uploads/${id}`;
  },
  change(call) {
    const { store, fields, action } = call;
    const upload = uploadOf(call);
    refuseUnwritable(experimentOf(call));
    changeExperiment(store, upload.item_id, {});
    const state = upload.state === STATE.archived ? STATE.normal : STATE.archived;
    changeUpload(store, upload.id, action === 'archive' ? { ...upload, state } : changedUpload(upload, fields));
    return uploadRecord(uploadOf(call));
  },
  remove(call) {
    const upload = uploadOf(call);
    const experiment = experimentOf(call);
    refuseUnwritable(experiment);
    if (experiment.body.includes(uploadRecord(upload).long_name)) {
      throw improper('Please make sure to remove any reference to this file in the body!');
    }
    changeExperiment(call.store, upload.item_id, {});
    changeUpload(call.store, upload.id, { ...upload, state: STATE.deleted });
  },
};

function changedUpload(upload: Upload, fields: Call['fields']): Upload {
  const changes = Object.entries(fields).filter(([name]) => name !== 'action');
  for (const [name] of changes) {
    if (name !== 'real_name' && name !== 'comment') throw improper('Incorrect upload parameter.');
  }
  return { ...upload, ...Object.fromEntries(changes.map(([name, value]) => [name, toText(value)])) };
}

const TEXT_FILES = ['chemjson', 'json', 'mol', 'rxn', 'csv', 'txt', 'html'];

/** From a form, or made of a text. */
function sentFile({ file, fields, action, id }: Call) {
  if (action !== 'createfromstring' || id !== undefined) {
    if (!file) throw improper('Error reading file!');
    return file;
  }
  const { file_type: type, real_name: name, content } = fields;
  if (!name) throw improper('Cannot create an upload with an empty real_name value.');
  if (typeof type !== 'string' || !TEXT_FILES.includes(type)) {
    throw improper(`Invalid file_type parameter. Valid values are: ${TEXT_FILES.join(', ')}.`);
  }
  if (!content) throw improper('Cannot create file from string with empty content!');
  const extension = extensionOf(toText(name)) === 'unknown' ? `.${type}` : '';
  return { name: `${toText(name)}${extension}`, content: Buffer.from(toText(content)), comment: null };
}

/** These always seem to be empty. */
const none: Resource = { read: () => [] };

/** Links to resources. Idempotent. */
const itemLinks: Resource = {
  read: (call) => linksOf(experimentOf(call)).map((itemid) => ({ entityid: itemid })),
  create(call) {
    const experiment = experimentOf(call);
    const item = call.id ?? 0;
    if (!isItem(item)) throw missing();
    const items = [...new Set([...linksOf(experiment), item])];
    changeQuietly(call.store, experiment.id, { attributes: { ...experiment.attributes, items } });
    return `api/v2/experiments/${experiment.id}/items_links/${item}`;
  },
};

const linksOf = ({ attributes: { items = [] } }: Experiment): readonly number[] => items;

export const PARTS: Readonly<Record<string, Resource>> = {
  comments,
  tags,
  uploads,
  compounds: none,
  containers: none,
  experiments_links: none,
  items_links: itemLinks,
  request_actions: none,
  steps: none,
};
