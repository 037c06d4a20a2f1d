import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import type { UsableConfig } from '../config/load.js';
import { openNotebook } from '../connection.js';
import { LabfeedError } from '../errors.js';
import { dialectOf } from '../model.js';
import type { Notebook } from '../notebook/client.js';
import type { KeyRecord } from '../notebook/responses.js';
import type { Rotation, RotationFile } from './key-file.js';

type KeyApi = Pick<Notebook, 'listKeys' | 'createKey' | 'deleteKey'>;

export interface RotateDeps {
  /** The name of the keys of this labfeed. */
  readonly name: string;
  /** The key in use. */
  readonly current: string;
  /** The notebook with this key, until the next call. */
  as(key: string): KeyApi;
  readonly rotation: Pick<RotationFile, 'read' | 'write'>;
  /** Writes the key to where the configuration reads it, durably and in one step. */
  write(key: string): void;
}

export interface Rotated {
  /** The number of the new key, if the notebook lists it. */
  readonly key: number | undefined;
  readonly deleted: readonly number[];
  /** Keys that could not be deleted; the next rotation tries again. */
  readonly failed: readonly { readonly id: number; readonly reason: string }[];
  /** The previous key, if it was kept. `unknown`: it is not known which of the listed keys it is. */
  readonly kept: { readonly id: number | undefined; readonly name: string | undefined } | 'unknown' | undefined;
  /** Other keys of the same name; another labfeed may use them. */
  readonly others: readonly number[];
}

/**
 * Creates a new key, tests it, writes it, then deletes the old one. Every step is recorded before it is taken, so that a
 * rotation can be interrupted anywhere: the key in use always works, and the next rotation cleans up. Nothing is
 * deleted before a new key is in its place.
 */
export async function rotate(deps: RotateDeps): Promise<Rotated> {
  const { name, current, rotation, as, write } = deps;
  const before = await as(current).listKeys();
  const resumed = resume(rotation.read(), current, before, name);
  const old = findRecord(current, before, resumed);
  // Recorded now, because with two keys the notebook may no longer show which one is in use.
  const state = old?.id === undefined ? resumed : { ...resumed, key: { id: old.id, print: printOf(current) } };
  const isOurs = old?.name === name;
  const rotating = {
    before: idsOf(named(before, name)),
    ...(isOurs && old.id !== undefined && { old: old.id }),
  };
  rotation.write({ ...state, rotating });
  const fresh = await as(current).createKey({ name, canwrite: 1 });
  // Listed with the old key: as long as the new key was never used, an interrupted rotation can be cleaned up.
  const record = findCreated(before, await as(current).listKeys(), name, fresh);
  const made = record?.id === undefined ? undefined : { id: record.id, print: printOf(fresh) };
  rotation.write({ ...state, rotating: { ...rotating, ...(made && { made }) } });
  const listed = await testKey(fresh, made?.id, deps);
  write(fresh);
  const { key: _, ...rest } = state;
  const remove = [...new Set([...state.remove, ...(rotating.old === undefined ? [] : [rotating.old])])];
  rotation.write({ ...rest, remove, ...(made && { key: made }) });
  const removable = idsOf(listed.filter((one) => isRemovable(one, name, { ...state, remove }, made?.id)));
  const { deleted, failed } = await deleteKeys(removable, as(fresh));
  rotation.write({ remove: failed.map(({ id }) => id), doubtful: [], ...(made && { key: made }) });
  const others = idsOf(named(listed, name)).filter((id) => id !== made?.id && !removable.includes(id));
  const kept = old === undefined ? 'unknown' : isOurs ? undefined : { id: old.id, name: old.name };
  return { key: made?.id, deleted, failed, kept, others: others.filter((id) => id !== old?.id) };
}

/** Finds out what an interrupted rotation left behind: the key that it created, and the key to delete. */
function resume(
  { rotating, ...rest }: Rotation,
  current: string,
  records: readonly KeyRecord[],
  name: string,
): Rotation {
  if (rotating === undefined) return rest;
  const { before, old, made } = rotating;
  if (made === undefined) {
    // It is unknown whether a key was created. A new one that was never used is either that key, or one that another
    // rotation is about to test: that rotation then fails and has changed nothing.
    const added = named(records, name).filter(({ id }) => id !== undefined && !before.includes(id));
    return { ...rest, doubtful: [...rest.doubtful, ...idsOf(added.filter(wasNeverUsed))] };
  }
  // Unless the new key was written, nobody has it.
  if (made.print !== printOf(current)) return { ...rest, remove: [...rest.remove, made.id] };
  return { ...rest, key: made, remove: old === undefined ? rest.remove : [...rest.remove, old] };
}

/** Lists the keys with the new key. It must work, belong to the same account and be able to write. */
async function testKey(fresh: string, id: number | undefined, { as }: RotateDeps): Promise<readonly KeyRecord[]> {
  const records = await as(fresh).listKeys();
  const own = records.find((record) => record.id === id);
  if (id !== undefined && (own === undefined || canWrite(own) === false)) {
    throw new LabfeedError(own === undefined ? 'the new key belongs to another account' : 'the new key is read-only', {
      hint: 'nothing was changed; the old key stays in use. Create a key in the notebook and run `labfeed keys set`',
    });
  }
  return records;
}

function isRemovable(
  record: KeyRecord,
  name: string,
  { remove, doubtful }: Rotation,
  made: number | undefined,
): boolean {
  const { id } = record;
  if (id === undefined || id === made || record.name !== name) return false;
  return remove.includes(id) || (doubtful.includes(id) && wasNeverUsed(record));
}

async function deleteKeys(ids: readonly number[], api: KeyApi): Promise<Pick<Rotated, 'deleted' | 'failed'>> {
  const deleted: number[] = [];
  const failed: { id: number; reason: string }[] = [];
  for (const id of ids) {
    try {
      await api.deleteKey(id);
      deleted.push(id);
    } catch (error) {
      if (!(error instanceof LabfeedError)) throw error;
      failed.push({ id, reason: error.message });
    }
  }
  return { deleted, failed };
}

/** Identifies a key without storing it. Keys are long and random, so this reveals nothing. */
export const printOf = (key: string): string =>
  createHash('sha256').update(`labfeed key ${key}`).digest('hex').slice(0, 16);

/**
 * The record of this key in the list of its own account; undefined if it cannot be identified. The API does not say
 * which key is which: rotations are recorded, keys of eLabFTW start with their number, and if the account has only one key, it is that one.
 */
export function findRecord(
  key: string,
  records: readonly KeyRecord[],
  { key: written, rotating }: Pick<Rotation, 'key' | 'rotating'> = {},
): KeyRecord | undefined {
  const print = printOf(key);
  const made = [written, rotating?.made].find((one) => one?.print === print);
  if (made) return records.find(({ id }) => id === made.id);
  return numbered(key, records) ?? (records.length === 1 ? records[0] : undefined);
}

/** The record whose number the key starts with, on servers that create such keys. */
function numbered(key: string, records: readonly KeyRecord[]): KeyRecord | undefined {
  const [, number] = /^(\d+)-/.exec(key) ?? [];
  if (number === undefined || dialectOf(records) !== 'elabftw') return undefined;
  return records.find(({ id }) => id === Number(number));
}

/** The key created between two lists; undefined if somebody else created one with this name at the same time. */
function findCreated(
  before: readonly KeyRecord[],
  after: readonly KeyRecord[],
  name: string,
  key: string,
): KeyRecord | undefined {
  const known = new Set(before.map(({ id }) => id));
  const added = named(after, name).filter(({ id }) => id !== undefined && !known.has(id));
  return numbered(key, added) ?? (added.length === 1 ? added[0] : undefined);
}

/** False if the server does not report it. */
const wasNeverUsed = (record: KeyRecord): boolean => record['last_used_at'] === null;

/** Undefined if the server does not report it. */
export function canWrite({ can_write, canwrite }: KeyRecord): boolean | undefined {
  const value = can_write ?? canwrite;
  return typeof value === 'number' || typeof value === 'boolean' ? Boolean(value) : undefined;
}

const named = (records: readonly KeyRecord[], name: string): KeyRecord[] =>
  records.filter((record) => record.name === name);

const idsOf = (records: readonly KeyRecord[]): number[] => records.flatMap(({ id }) => (id === undefined ? [] : [id]));

/** The name of the keys of the labfeed on this machine. */
export const keyName = (host: string = hostname()): string => `labfeed@${host}`;

/** The notebook with different keys, through one rate limiter. One request at a time. */
export function openKeyApis(config: UsableConfig): Pick<RotateDeps, 'as'> & Pick<Notebook, 'close'> {
  let key = '';
  const notebook = openNotebook(config, { key: { current: () => key, refresh: () => undefined } });
  return {
    as(wanted) {
      key = wanted;
      return notebook;
    },
    close: notebook.close,
  };
}
