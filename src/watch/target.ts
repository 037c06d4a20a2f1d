import { constants } from 'node:fs';
import { access, lstat, mkdir, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCode } from '../errors.js';
import { DisposalError, display, explaining, folderOf, inFolder, syncFolder } from './dispose.js';
import { isAbsent } from './identify.js';

interface TargetRules {
  /** All watched folders. */
  readonly watched: readonly string[];
  /** Whether files were moved there before. */
  wasUsed(): Promise<boolean>;
}

/** Throws unless files can be moved to this folder. Creates it if only the folder itself is missing. */
export function prepareTarget(folder: string, { watched, wasUsed }: TargetRules): Promise<void> {
  return explaining(`move files to ${folder}`, async () => {
    const there = await statOrAbsent(folder);
    if (there && !there.isDirectory())
      throw new DisposalError('folder', `cannot move files to ${folder}: it is a file, not a folder`, {
        hint: 'rename the file, or choose another folder in `source`',
      });
    if (!there) await create(folder, await wasUsed());
    await access(folder, constants.W_OK | constants.X_OK);
    await refuseWatched(folder, watched);
  });
}

async function create(folder: string, wasUsed: boolean): Promise<void> {
  const above = dirname(folder);
  // An unmounted share must not be replaced by a new folder on the disk below it.
  if (wasUsed)
    throw new DisposalError('folder', `cannot move files to ${folder}: it no longer exists`, {
      hint: 'if it is on a share, mount that; otherwise create the folder',
    });
  if ((await statOrAbsent(above))?.isDirectory() !== true)
    throw new DisposalError('folder', `cannot move files to ${folder}: the folder ${above} does not exist`, {
      hint: 'create it, mount its share, or choose another folder in `source`',
    });
  await mkdir(folder).catch(ignoreExisting);
  await syncFolder(Buffer.from(above));
}

/** The configuration was compared by name. Links and bind mounts give a folder several names. */
async function refuseWatched(folder: string, watched: readonly string[]): Promise<void> {
  const roots = new Set<string>();
  for (const root of watched) roots.add(idOf(await statOrAbsent(root)));
  for (let here = await realpath(folder); ; here = dirname(here)) {
    if (roots.has(idOf(await statOrAbsent(here))))
      throw new DisposalError('folder', `cannot move files to ${folder}: it is in a watched folder, ${here}`, {
        hint: 'choose a folder outside all watched folders in `source`',
      });
    if (here === dirname(here)) return;
  }
}

const idOf = (stats: { dev: bigint; ino: bigint } | undefined): string => (stats ? `${stats.dev}:${stats.ino}` : '-');

async function statOrAbsent(path: string) {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Creates the folders between the target folder and a file in it. */
export function createFolders(root: Buffer, target: Buffer): Promise<void> {
  const folder = folderOf(target);
  return explaining(`create the folder ${display(folder)}`, async () => {
    if (folder.length <= root.length) return;
    await createFolders(root, folder);
    await mkdir(folder).catch(ignoreExisting);
    // A link could lead into a watched folder.
    if (!(await lstat(folder)).isDirectory())
      throw new DisposalError('file', `cannot create the folder ${display(folder)}: it is a file or a link`, {
        hint: 'rename that',
      });
    await syncFolder(folderOf(inFolder(folder, '.')));
    await syncFolder(folderOf(folder));
  });
}

function ignoreExisting(error: unknown): void {
  if (systemCode(error) !== 'EEXIST') throw error;
}
