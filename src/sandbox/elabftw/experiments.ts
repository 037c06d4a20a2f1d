import { randomUUID } from 'node:crypto';
import { parseJson } from '../../text.js';
import {
  changeExperiment,
  changeQuietly,
  changeUpload,
  createExperiment,
  duplicateExperiment,
  type Experiment,
  type ExperimentChange,
  fullName,
  listUploads,
  STATE,
  type Store,
  type TeamTag,
  teamTag,
  timestamp,
  USERS,
  userOf,
} from '../store.js';
import {
  type Call,
  experimentOf,
  fullRecord,
  loadExperiment,
  type Resource,
  refuseUnwritable,
  templateOf,
} from './records.js';
import { search } from './search.js';
import {
  checkBase,
  checkDate,
  checkJson,
  checkVisibility,
  cleanBody,
  cleanTag,
  cleanTitle,
  formatJson,
  improper,
  missing,
  optionalInteger,
  optionalText,
  toInteger,
  toPositive,
  toText,
  typeError,
  unprocessable,
  unsupported,
} from './values.js';

const OWNER = USERS.owner.userid;

export const experiments: Resource = {
  read: (call) => (call.experiment ? fullRecord(call.experiment, call) : search(call)),
  create(call) {
    if (call.action === 'create') return `api/v2/experiments/${create(call)}`;
    if (call.action !== 'duplicate') throw improper('Invalid action parameter.');
    return `api/v2/experiments/${duplicateExperiment(call.store, experimentOf(call))}`;
  },
  change(call) {
    const experiment = experimentOf(call);
    if (call.action !== 'review') act(experiment, call);
    return fullRecord(loadExperiment(call.store, experiment.id), call);
  },
  remove(call) {
    const experiment = experimentOf(call);
    refuseUnwritable(experiment);
    destroy(experiment, call.store);
  },
};

/** Ignores a date. If a tag is refused, the experiment exists all the same. */
function create({ fields, store, forcesTemplate }: Call): number {
  const named = toInteger(toText(fields['template'] ?? -1));
  if (named === -1 && forcesTemplate)
    throw improper('Your team administrator has disabled creating Experiments without using a template.');
  const template = named === -1 ? undefined : templateOf(named);
  if (named !== -1 && !template) throw missing();
  const { metadata } = fields;
  const type = optionalInteger(fields['content_type']) ?? 1;
  if (type !== 1 && type !== 2) throw typeError();
  const tags = typeof fields['tags'] === 'string' ? [fields['tags']] : (fields['tags'] ?? []);
  if (!Array.isArray(tags)) throw typeError();
  const bases = ['canread_base', 'canwrite_base'].filter((name) => fields[name] !== undefined);
  const id = createExperiment(store, {
    title: cleanTitle(optionalText(fields['title']) ?? ''),
    // A template replaces what the creation carries.
    body: template?.body ?? cleanBody(optionalText(fields['body']) ?? ''),
    content_type: type,
    metadata: template ? template.metadata : metadata ? formatJson(metadata) : null,
    attributes: {
      category: toInteger(toText(fields['category'])) || null,
      status: toInteger(toText(fields['status'])) || null,
      ...Object.fromEntries(bases.map((name) => [name, checkBase(toText(fields[name]))])),
    },
  });
  for (const tag of template ? [] : tags) addTag(id, tag, store);
  return id;
}

export function addTag(experiment: number, tag: unknown, store: Store): TeamTag {
  const known = teamTag(store, cleanTag(tag));
  const present = loadExperiment(store, experiment).tags;
  if (!present.includes(known.tag)) changeQuietly(store, experiment, { tags: [...present, known.tag] });
  return known;
}

/** Checked in this order: a locked experiment that was deleted is refused because it was deleted. */
function act(experiment: Experiment, call: Call): void {
  const { action } = call;
  const { state, editedby } = experiment;
  if (state === STATE.deleted && !['restore', 'removeexclusiveeditmode'].includes(action)) {
    throw unprocessable('Only the Restore action is allowed on a deleted entity.');
  }
  if (state === STATE.archived && action !== 'unarchive') {
    throw unprocessable('Only the Unarchive action is allowed on an archived entity.');
  }
  // Everybody who may read an experiment may pin it.
  if (action !== 'pin') refuseUnwritable(experiment);
  const isEdited = editedby !== null && editedby !== OWNER;
  if (isEdited && !['pin', 'accesskey', 'removeexclusiveeditmode'].includes(action)) {
    throw improper(`This entry is being edited by ${fullName(userOf(editedby))}.`);
  }
  if (UNSUPPORTED_ACTIONS.has(action)) throw unsupported(`the action ${action}`);
  const carryOut = ACTIONS[action];
  if (!carryOut) throw improper('Invalid action parameter.');
  carryOut(experiment, call);
}

/** They need other servers, keys of users, or other users. */
const UNSUPPORTED_ACTIONS = new Set(['bloxberg', 'sign', 'timestamp', 'updateowner']);

const ACTIONS: Readonly<Record<string, (experiment: Experiment, call: Call) => void>> = {
  accesskey({ id, attributes }, { store }) {
    const access_key = attributes.access_key ? null : randomUUID();
    changeExperiment(store, id, { attributes: { ...attributes, access_key } });
  },
  archive(experiment, { store }) {
    setLock(experiment, true, store);
    save(experiment, { state: STATE.archived }, store);
  },
  unarchive(experiment, { store }) {
    // An experiment that is not archived becomes so, without a lock: a slip of eLabFTW.
    if (experiment.state !== STATE.archived) return save(experiment, { state: STATE.archived }, store);
    setLock(experiment, false, store);
    save(experiment, { state: STATE.normal }, store);
  },
  destroy: (experiment, { store }) => destroy(experiment, store),
  restore(experiment, { store }) {
    setUploadStates(experiment, STATE.normal, store);
    save(experiment, { state: STATE.normal }, store);
  },
  lock: (experiment, { store }) => setLock(experiment, experiment.lockedby === null, store),
  forcelock: (experiment, { store }) => setLock(experiment, true, store),
  forceunlock: (experiment, { store }) => setLock(experiment, false, store),
  pin: ({ id, attributes }, { store }) =>
    changeQuietly(store, id, { attributes: { ...attributes, is_pinned: attributes.is_pinned ? 0 : 1 } }),
  removeexclusiveeditmode: ({ id }, { store }) => changeQuietly(store, id, { editedby: null }),
  setcanread: (experiment, { fields, store }) => update(experiment, { canread: fields['can'] }, store),
  setcanwrite: (experiment, { fields, store }) => update(experiment, { canwrite: fields['can'] }, store),
  setnextcustomid() {
    throw improper('A category is required to fetch the next Custom ID');
  },
  updatemetadatafield(experiment, { fields, store }) {
    for (const [key, value] of Object.entries(fields)) {
      if (key !== 'action') setExtraField(loadExperiment(store, experiment.id), key, value, store);
    }
  },
  update: (experiment, { fields, store }) => update(experiment, fields, store),
};

function destroy(experiment: Experiment, store: Store): void {
  setUploadStates(experiment, STATE.deleted, store);
  const attributes = { ...experiment.attributes, custom_id: null, is_pinned: 0 };
  save(experiment, { state: STATE.deleted, attributes }, store);
}

function setUploadStates({ id }: Experiment, state: number, store: Store): void {
  for (const upload of listUploads(store, id)) {
    if (upload.state !== STATE.archived || state === STATE.deleted)
      changeUpload(store, upload.id, { ...upload, state });
  }
}

function setLock({ id, attributes }: Experiment, isLocked: boolean, store: Store): void {
  const locked_at = timestamp(store.clock);
  changeExperiment(store, id, { lockedby: isLocked ? OWNER : null, attributes: { ...attributes, locked_at } });
}

/** Saved one by one: the fields before an invalid one stay saved. */
function update({ id }: Experiment, fields: Call['fields'], store: Store): void {
  for (const [target, value] of Object.entries(fields)) {
    // PHP turns such a name into a number, which is not accepted as a name.
    if (/^(?:0|-?[1-9]\d*)$/.test(target)) throw typeError();
    const experiment = loadExperiment(store, id);
    save(experiment, changeOf(target, toText(value), experiment), store);
  }
}

/** MySQL leaves the time of the last change alone if nothing changes. */
function save(experiment: Experiment, changes: ExperimentChange, store: Store): void {
  const current: ExperimentChange = experiment;
  const isSame = (Object.keys(changes) as (keyof ExperimentChange)[]).every(
    (name) => JSON.stringify(current[name]) === JSON.stringify(changes[name]),
  );
  if (!isSame || experiment.lastchangeby !== OWNER) changeExperiment(store, experiment.id, changes);
}

function changeOf(target: string, value: string, { body, attributes }: Experiment): ExperimentChange {
  const attribute = (content: number | string | null) => ({ attributes: { ...attributes, [target]: content } });
  switch (target) {
    case 'title':
      return { title: cleanTitle(value) };
    case 'date':
      return { date: checkDate(value) };
    case 'body':
    case 'bodyappend': {
      const content = (target === 'body' ? '' : body) + cleanBody(value);
      return { body: content, attributes: { ...attributes, emptied: content === '' } };
    }
    case 'metadata':
      return { metadata: checkJson(value) };
    case 'content_type':
    case 'userid':
      return { [target]: toInteger(value) };
    case 'state':
      return { state: checkState(toInteger(value)) };
    case 'rating':
      return attribute(toInteger(value));
    case 'hide_main_text':
      return attribute(value === '' || value === '0' || value === 'off' ? 0 : 1);
    case 'category':
    case 'status':
    case 'custom_id':
      return attribute(toPositive(value));
    case 'canread':
    case 'canwrite':
      return attribute(checkVisibility(value));
    case 'canread_base':
    case 'canwrite_base':
      return attribute(checkBase(value));
    case 'canread_is_immutable':
    case 'canwrite_is_immutable':
      throw unprocessable('Cannot modify permissions immutability settings.');
    default:
      throw improper('Invalid update target.');
  }
}

function checkState(state: number): number {
  if (state < 1 || state > 6) throw improper('Invalid value for enum Elabftw\\Enums\\State.');
  return state;
}

/** A field that the experiment does not have is ignored. */
function setExtraField(experiment: Experiment, key: string, value: unknown, store: Store): void {
  if (typeof value !== 'string' && !Number.isInteger(value) && !Array.isArray(value)) throw typeError();
  const metadata = Object(parseJson(experiment.metadata ?? 'null'));
  const field = Object.hasOwn(Object(metadata.extra_fields), key) ? metadata.extra_fields[key] : undefined;
  if (typeof field !== 'object' || field === null) return;
  field.value = value;
  save(experiment, { metadata: formatJson(metadata) }, store);
}
