import type { Log } from '../log.js';
import { type FolderMemory, type Mount, missingMount, mountOf } from '../mounts.js';
import type { Listing } from './scan.js';

/** Whether a folder is there: a share can disappear, hang, or leave an empty folder behind. */

export type FolderState = 'present' | 'missing' | 'unreadable';

export type FolderReport = (state: FolderState, reason?: string) => void;

/** Returns a function that reports the state of the folder when it changes. */
export function createFolderReport(root: string, log: Log, folder: FolderReport): FolderReport {
  let reported: FolderState | undefined;
  let because: string | undefined;
  return (state, reason) => {
    if (state === reported && reason === because) return;
    if (state !== 'present') log.warn({ folder: root, reason }, 'cannot read the folder, retrying');
    else if (reported !== undefined) log.info({ folder: root }, 'the folder is available again');
    reported = state;
    because = reason;
    folder(state, reason);
  };
}

/**
 * Returns a function that recognises a folder without its share: an empty folder says nothing about the files of a share
 * that is not mounted, or that has just come back without them. `before`: the mount when the listing began.
 */
export function createMountCheck(root: string, memory: FolderMemory) {
  /** The mount that was last accepted. */
  let known: string | undefined;
  return async (listing: Listing, before: Mount): Promise<Listing> => {
    const mount = mountOf(root);
    const { id, point } = mount;
    const isKnown = id === known;
    known = undefined;
    if (listing.state !== 'present') return listing;
    const last = await memory.lastSeen(root);
    if (listing.empty) {
      const missing = await missingMount(root, memory);
      const isBack = !isKnown && last?.isEmpty === false && (mount.mayHang || point === root);
      const reason = missing === undefined ? isBack && CAME_BACK_EMPTY : notMounted(missing);
      if (reason) return { state: 'missing', reason };
      // It was mounted while it was listed.
      if (id !== before.id) return { state: 'missing', reason: 'it has just been mounted' };
    }
    known = id;
    if (last?.point !== point || last.isEmpty !== listing.empty)
      await memory.see(root, { point, isEmpty: listing.empty });
    return listing;
  };
}

const notMounted = (point: string): string =>
  `nothing is mounted at ${point}. If the folder is meant to be on this disk, put a file into it`;

const CAME_BACK_EMPTY =
  'the share or disk had files, and is empty now. If that is intended, put a file into the folder';
