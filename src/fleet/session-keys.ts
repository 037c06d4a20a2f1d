import { explain, NotebookError } from '../errors.js';
import type { Log } from '../log.js';
import type { Notebook } from '../notebook/client.js';
import { FencedError } from './database.js';
import type { Lease } from './lease.js';

type KeyApi = Pick<Notebook, 'listKeys' | 'createKey' | 'deleteKey'>;

/**
 * A database cannot stop a process that was paused between its last check of the lease and its request, but the notebook
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

/** Before this many attempts, a server that fails to create a key may be down. */
const ATTEMPTS = 10;

/**
 * `api`: with the configured key, which must be allowed to manage keys. The result takes effect once the caller has recorded
 * it. `deleted`: the keys that earlier attempts have deleted.
 */
export async function takeSessionKey(
  api: KeyApi,
  fleet: string,
  notebook: string,
  { isHeld, predecessor }: Pick<Lease, 'isHeld' | 'predecessor'>,
  log: Log,
  { deleted, attempt }: { readonly deleted: Set<number>; readonly attempt: number },
): Promise<SessionKey> {
  const name = nameOf(fleet);
  const before = await api.listKeys();
  const named = predecessor?.notebook === notebook ? predecessor.sessionKey : undefined;
  for (const { id, name: given } of before) {
    if (id === undefined || (id !== named && given !== name)) continue;
    // It may be that of a successor.
    if (!isHeld()) throw new FencedError('the lease may be over');
    await api.deleteKey(id);
    deleted.add(id);
  }
  // A key that is not listed may belong to another account, and only the one of the last sender stops that one.
  const isFence = predecessor === undefined || predecessor.isSelf || (named !== undefined && deleted.has(named));
  try {
    const key = await api.createKey({ name, canwrite: 1 });
    const known = new Set(before.map(({ id }) => id));
    const own = (await api.listKeys()).find((one) => one.id !== undefined && !known.has(one.id) && one.name === name);
    // If this process ends before it is recorded, the next leader finds it by its name.
    return { key, isFence, id: own?.id };
  } catch (error) {
    const isRefused = error instanceof NotebookError && !error.outcomeUnknown && error.failure !== 'server';
    if (!(isRefused && error.failure !== 'rate') && attempt < ATTEMPTS) throw error;
    log.warn(
      { reason: explain(error) },
      'the notebook gives no session keys: after a change of the leader, nothing is sent for the grace period',
    );
    return { key: undefined, isFence, id: undefined };
  }
}
