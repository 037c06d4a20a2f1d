import { LabfeedError } from '../errors.js';
import { isFree } from '../journal/database.js';
import { type Live, readLive } from '../live.js';

/** Whether a daemon runs, and what it tells of itself, or the last one told. */
export interface DaemonState {
  readonly running: boolean;
  readonly live: Live | undefined;
}

/** The daemon tells of itself every ten seconds at least. */
const FRESH_MS = 30_000;

export function daemonState(journal: string, now: number): DaemonState {
  const live = readLive(journal);
  try {
    return { running: !isFree(journal), live };
  } catch (error) {
    // Who may read the journal but not touch its lock sees by its last words whether the daemon is there.
    if (!(error instanceof LabfeedError)) throw error;
    return { running: live !== undefined && now - live.at < FRESH_MS, live };
  }
}

/** What a daemon that runs tells of itself. */
export function runningLive(journal: string, now: number): Live | undefined {
  const { running, live } = daemonState(journal, now);
  return running ? live : undefined;
}
