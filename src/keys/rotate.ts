import { hostname } from 'node:os';
import type { Clock } from '../clock.js';
import type { UsableConfig } from '../config/load.js';
import { readKey } from '../config/secrets.js';
import { openNotebook } from '../connection.js';
import { LabfeedError } from '../errors.js';
import {
  canWrite,
  type KeyFile,
  type KeyRecord,
  madeBetween,
  openMemory,
  printOf,
  type Remembered,
  recordOf,
  wasNeverUsed,
} from './key-file.js';

/** The notebook as rotation asks it, under one key. */
interface KeyRing {
  listKeys(): Promise<readonly KeyRecord[]>;
  /** Resolves with the new key, which is told this once. */
  createKey(fields: { readonly name: string; readonly canwrite: 0 | 1 }): Promise<string>;
  deleteKey(id: number): Promise<void>;
}

export interface RotateDeps {
  /** What a key of this labfeed is called. */
  readonly name: string;
  /** The key that is in use. */
  readonly current: string;
  as(key: string): KeyRing;
  readonly memory: { read(): Remembered; write(remembered: Remembered): void };
  /** Puts the key where the configuration reads it, durably and in one step. */
  write(key: string): void;
}

export interface Rotated {
  /** Its number, where the notebook tells. */
  readonly key: number | undefined;
  readonly deleted: readonly number[];
  /** Could not be deleted for now; the next rotation does it. */
  readonly failed: readonly { readonly id: number; readonly reason: string }[];
  /** The key that was in use before, where it is still there. `unknown`: which one it is cannot be told. */
  readonly kept:
    | { readonly id: number | undefined; readonly name: string | undefined }
    | 'unknown'
    | undefined;
  /** Others of the same name: who uses them is not known here. */
  readonly others: readonly number[];
}

/**
 * Makes a new key, proves it, writes it, then deletes the old one. What is about to be done is remembered before it is
 * done, so that it can be broken off anywhere: the key in use works all the time, and the next rotation removes what
 * this one has left. Nothing is deleted before a new key is in its place.
 */
export async function rotate(deps: RotateDeps): Promise<Rotated> {
  const { name, current, memory, as, write } = deps;
  const before = await as(current).listKeys();
  const stock = takeStock(memory.read(), current, before, name);
  const old = recordOf(current, before, stock);
  // Which one is in use is remembered: once there are two, the notebook may not tell it any more.
  const left = old?.id === undefined ? stock : { ...stock, key: { id: old.id, print: printOf(current) } };
  const isOurs = old?.name === name;
  const rotating = {
    before: idsOf(named(before, name)),
    ...(isOurs && old.id !== undefined && { old: old.id }),
  };
  memory.write({ ...left, rotating });
  const fresh = await as(current).createKey({ name, canwrite: 1 });
  // Listed with the old one: as long as the new one was never used, what becomes of it is no loss.
  const record = madeBetween(before, await as(current).listKeys(), name, fresh);
  const made = record?.id === undefined ? undefined : { id: record.id, print: printOf(fresh) };
  memory.write({ ...left, rotating: { ...rotating, ...(made && { made }) } });
  const proof = await prove(fresh, made?.id, deps);
  write(fresh);
  const { key: _, ...rest } = left;
  const remove = [...new Set([...left.remove, ...(rotating.old === undefined ? [] : [rotating.old])])];
  memory.write({ ...rest, remove, ...(made && { key: made }) });
  const removable = idsOf(proof.filter((one) => isRemovable(one, name, { ...left, remove }, made?.id)));
  const { deleted, failed } = await removeAll(removable, as(fresh));
  memory.write({ remove: failed.map(({ id }) => id), doubtful: [], ...(made && { key: made }) });
  const others = idsOf(named(proof, name)).filter((id) => id !== made?.id && !removable.includes(id));
  const kept = old === undefined ? 'unknown' : isOurs ? undefined : { id: old.id, name: old.name };
  return { key: made?.id, deleted, failed, kept, others: others.filter((id) => id !== old?.id) };
}

/** What an earlier rotation left, that was broken off: which key it made, and which one is to go. */
function takeStock(
  { rotating, ...rest }: Remembered,
  current: string,
  records: readonly KeyRecord[],
  name: string,
): Remembered {
  if (rotating === undefined) return rest;
  const { before, old, made } = rotating;
  if (made === undefined) {
    // Whether a key was made, and which, is not known. One that came since and was never used can only be that one, or
    // one that another rotation is about to prove, which then fails and has changed nothing.
    const came = named(records, name).filter(({ id }) => id !== undefined && !before.includes(id));
    return { ...rest, doubtful: [...rest.doubtful, ...idsOf(came.filter(wasNeverUsed))] };
  }
  // It was written already, or it never was: then nobody has it.
  if (made.print !== printOf(current)) return { ...rest, remove: [...rest.remove, made.id] };
  return { ...rest, key: made, remove: old === undefined ? rest.remove : [...rest.remove, old] };
}

/** A key that does not work, or is not of this account, must not take the place of one that does. */
async function prove(
  fresh: string,
  id: number | undefined,
  { as }: RotateDeps,
): Promise<readonly KeyRecord[]> {
  const records = await as(fresh).listKeys();
  const own = records.find((record) => record.id === id);
  if (id !== undefined && (own === undefined || canWrite(own) === false)) {
    throw new LabfeedError(
      own === undefined ? 'the new key belongs to another account' : 'the new key may only read',
      {
        hint: 'nothing was changed: the old key stays in use. Make one in the notebook, and `labfeed keys set` it',
      },
    );
  }
  return records;
}

function isRemovable(
  record: KeyRecord,
  name: string,
  { remove, doubtful }: Remembered,
  made: number | undefined,
): boolean {
  const { id } = record;
  if (id === undefined || id === made || record.name !== name) return false;
  return remove.includes(id) || (doubtful.includes(id) && wasNeverUsed(record));
}

async function removeAll(
  ids: readonly number[],
  ring: KeyRing,
): Promise<Pick<Rotated, 'deleted' | 'failed'>> {
  const deleted: number[] = [];
  const failed: { id: number; reason: string }[] = [];
  for (const id of ids) {
    try {
      await ring.deleteKey(id);
      deleted.push(id);
    } catch (error) {
      if (!(error instanceof LabfeedError)) throw error;
      failed.push({ id, reason: error.message });
    }
  }
  return { deleted, failed };
}

const named = (records: readonly KeyRecord[], name: string): KeyRecord[] =>
  records.filter((record) => record.name === name);

const idsOf = (records: readonly KeyRecord[]): number[] =>
  records.flatMap(({ id }) => (id === undefined ? [] : [id]));

interface RotationOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What a key of the labfeed on this machine is called in the notebook. */
export const keyName = (host: string = hostname()): string => `labfeed@${host}`;

/** From the old key to the new one: the notebook, the key's file and the memory beside it, put together. */
export async function rotateKey(
  config: UsableConfig,
  file: KeyFile,
  options: RotationOptions,
): Promise<Rotated> {
  const current = readKey(config.notebook.key, config.placeOf(['notebook', 'key']));
  const memory = openMemory(file.path, config.notebook.url);
  const { as, close } = openRings(config, options);
  try {
    return await rotate({ name: keyName(), current, as, memory, write: file.write });
  } finally {
    await close();
    memory.close();
  }
}

export interface KeyRings {
  as(key: string): KeyRing;
  close(): Promise<void>;
}

/** The notebook under one key or another, through one gate. One request at a time. */
export function openRings(config: UsableConfig, options: RotationOptions): KeyRings {
  let key = '';
  const notebook = openNotebook(config, {
    ...options,
    key: { current: () => key, refresh: () => undefined },
  });
  return {
    as(wanted) {
      const asking = <T>(request: () => Promise<T>): Promise<T> => {
        key = wanted;
        return request();
      };
      return {
        listKeys: () => asking(() => notebook.listKeys()),
        createKey: (fields) => asking(() => notebook.createKey(fields)),
        deleteKey: (id) => asking(() => notebook.deleteKey(id)),
      };
    },
    close: () => notebook.close(),
  };
}
