import type { DatabaseSyncInstance } from '@photostructure/sqlite';

/**
 * A kernel lock, held for life by an open transaction on a file of its own: it goes with the process, however that
 * ends, and whoever only reads what it guards never meets it. False where somebody else holds it; then it is closed.
 */
export function lockForLife(lock: DatabaseSyncInstance): boolean {
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;');
    return true;
  } catch (error) {
    lock.close();
    if (error instanceof Error && /locked|busy/i.test(error.message)) return false;
    throw error;
  }
}
