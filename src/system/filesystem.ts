import {
  chmodSync,
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';

/** The files that SQLite writes beside a database get its permissions when they are created. */
const DATABASE_FILES = ['', '-wal', '-shm', '-journal'];

/** Creates an empty database that only its owner may read, whatever the umask; restricts one that exists. */
export function makePrivate(path: string): void {
  const isOwn = (uid: number): boolean => [0, uid].includes(process.geteuid?.() ?? uid);
  // SQLite takes an empty file for a new database.
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
  for (const file of DATABASE_FILES.map((suffix) => path + suffix)) {
    const stats = statSync(file, { throwIfNoEntry: false });
    // Others may only read it; the daemon restricts it.
    if (stats?.isFile() && (stats.mode & 0o777) !== 0o600 && isOwn(stats.uid)) chmodSync(file, 0o600);
  }
}

/**
 * Takes a kernel lock by keeping a transaction open on a separate database file. The lock ends with the process, even
 * if it crashes, and does not affect readers of the data it protects. Returns false, and closes the database, if
 * another process holds the lock.
 */
export function lockForLife(lock: DatabaseSyncInstance): boolean {
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;');
    return true;
  } catch (error) {
    lock.close();
    if (isLocked(error)) return false;
    throw error;
  }
}

export const isLocked = (error: unknown): boolean => error instanceof Error && /locked|busy/i.test(error.message);

/** A rename is durable only when its folder is. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export type Owner = Pick<Stats, 'uid' | 'gid'>;

/** Creates a file, readable only by its owner unless `mode` permits more. */
export function writeDurably(path: string, text: string, owner: Owner | undefined, mode = 0o600): void {
  const descriptor = openSync(path, 'wx', mode);
  try {
    // The umask may have removed more permissions than intended.
    fchmodSync(descriptor, mode);
    writeSync(descriptor, text);
    if (owner) fchownSync(descriptor, owner.uid, owner.gid);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
