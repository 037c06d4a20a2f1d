import type { Log } from '../log.js';

export type FolderState = 'present' | 'missing' | 'unreadable';

export interface PresenceDeps {
  readonly root: string;
  readonly log: Log;
  folder(state: FolderState, reason?: string): void;
}

/** Makes the function that is told each time how the folder was found, and passes on what changed: once. */
export function createPresence({ root, log, folder }: PresenceDeps) {
  let state: FolderState | undefined;

  return (found: FolderState, reason?: string): void => {
    if (found === state) return;
    if (found !== 'present') {
      log.warn({ folder: root, reason }, 'the folder cannot be read: it is looked for until it can');
    } else if (state !== undefined) {
      log.info({ folder: root }, 'the folder is there: watching it');
    }
    state = found;
    folder(found, reason);
  };
}
