import { explain } from '../errors.js';
import type { Log } from '../log.js';
import type { Notebook } from '../notebook/client.js';
import type { Lease } from './lease.js';

type KeyApi = Pick<Notebook, 'listKeys' | 'createKey' | 'deleteKey'>;

/**
 * A database cannot stop a process that was paused between its last look at the lease and its request, but the notebook
 * can: each leader sends with a key of its own, and its successor deletes that key before it sends anything.
 */
export interface SessionKey {
  /** Undefined: the notebook gives no keys, and the configured one is used. */
  readonly key: string | undefined;
  /** Whether no earlier leader can send any more. */
  readonly isFence: boolean;
  /** Its id, if the notebook lists it. */
  readonly id: number | undefined;
}

const nameOf = (fleet: string): string => `labfeed fleet ${fleet}`;

/** `api`: with the configured key, which must be allowed to manage keys. */
export async function takeSessionKey(
  api: KeyApi,
  fleet: string,
  notebook: string,
  { recordKey, predecessor }: Lease,
  log: Log,
): Promise<SessionKey> {
  const name = nameOf(fleet);
  const before = await api.listKeys();
  const left = before.filter((one) => one.name === name).flatMap(({ id }) => id ?? []);
  const named = predecessor?.notebook === notebook ? predecessor.sessionKey : undefined;
  for (const id of new Set([...left, ...(named === undefined ? [] : [named])]))
    if (before.some((one) => one.id === id)) await api.deleteKey(id);
  const isFence = predecessor === undefined || predecessor.isSelf || named !== undefined || left.length > 0;
  try {
    const key = await api.createKey({ name, canwrite: 1 });
    const known = new Set(before.map(({ id }) => id));
    const own = (await api.listKeys()).find((one) => one.id !== undefined && !known.has(one.id) && one.name === name);
    // Recorded before it is used. One that was created just before a crash is found by its name.
    await recordKey(notebook, own?.id);
    return { key, isFence, id: own?.id };
  } catch (error) {
    log.warn(
      { reason: explain(error) },
      'the notebook gives no session keys: after a change of the leader, nothing is sent for the grace period',
    );
    await recordKey(notebook, undefined);
    return { key: undefined, isFence, id: undefined };
  }
}
