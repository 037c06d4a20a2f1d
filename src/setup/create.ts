import { accessSync, chmodSync, constants, existsSync, linkSync, mkdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { explain, LabfeedError, systemCode } from '../errors.js';
import { ownerOf } from '../keys/rotate.js';
import { syncFolder, writeDurably } from '../system/filesystem.js';

export interface NewFile {
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

/** Rejects a folder in which this user cannot create files, before anything is asked. */
export function requireWritable(folder: string): void {
  let nearest = folder;
  while (!existsSync(nearest)) nearest = dirname(nearest);
  try {
    accessSync(nearest, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new LabfeedError(`cannot write to ${nearest} (${systemCode(error)})`, {
      hint: 'run this command with sudo, or use --config FILE in another folder',
    });
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Creates all files or none, and overwrites nothing. `check` gets a copy of the last file, in its folder. Signals wait.
 * The last file makes the others effective: if the power fails before, they are leftovers.
 */
export function createFiles(files: readonly NewFile[], check: (draft: string) => void): void {
  const wait = (): void => undefined;
  for (const signal of SIGNALS) process.on(signal, wait);
  const folders: string[] = [];
  const drafts: string[] = [];
  const created: string[] = [];
  try {
    for (const { path, text, mode } of files) {
      const folder = dirname(path);
      if (!existsSync(folder)) folders.push(...createFolders(folder));
      const draft = `${path}.${process.pid}.new`;
      drafts.push(draft);
      writeDurably(draft, text, ownerOf(path, folder), mode);
    }
    check(drafts.at(-1) ?? '');
    files.forEach(({ path }, n) => {
      linkSync(drafts[n] ?? '', path);
      created.push(path);
      syncFolder(dirname(path));
    });
  } catch (error) {
    for (const path of [...created, ...drafts]) rmSync(path, { force: true });
    for (const folder of folders) rmdirSync(folder);
    if (systemCode(error) === undefined) throw error;
    throw new LabfeedError(`nothing was written: ${explain(error)}`, { cause: error });
  } finally {
    for (const draft of drafts) rmSync(draft, { force: true });
    for (const signal of SIGNALS) process.off(signal, wait);
  }
}

/** Returns the created folders, innermost first. */
function createFolders(folder: string): string[] {
  if (existsSync(folder)) return [];
  const above = createFolders(dirname(folder));
  mkdirSync(folder, { mode: 0o755 });
  // Whatever the umask: the service must be able to read it.
  chmodSync(folder, 0o755);
  return [folder, ...above];
}
