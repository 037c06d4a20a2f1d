import { constants } from 'node:fs';
import { dirname } from 'node:path';
import { systemCode } from '../errors.js';
import { change, realPlace, statOne } from '../system/disk.js';
import { type FolderMemory, missingMount, mountOf } from '../system/mounts.js';
import { giveAccess, statOrAbsent } from './dispose.js';
import { DisposalError, display, explaining, folderOf, statOf, syncFolder } from './file-moves.js';

interface TargetRules {
  /** The folder that the files come from. */
  readonly watch: string;
  /** All watched folders. */
  readonly watched: readonly string[];
  readonly memory: FolderMemory;
  /** Whether files were moved there before. */
  wasUsed(): Promise<boolean>;
}

/**
 * Throws unless files can be moved to this folder. Creates it if only the folder itself is missing. Resolves with its
 * device.
 */
export function prepareTarget(folder: string, { watch, watched, memory, wasUsed }: TargetRules): Promise<bigint> {
  return explaining(`move files to ${folder}`, async () => {
    if ((await checkTarget(folder, watched, memory)) === 'absent') {
      await create(folder, watch, await wasUsed());
      await checkTarget(folder, watched, memory);
    }
    // Durable before the first file is moved: what is moved beneath a share is hidden once that is mounted.
    const { point } = mountOf(folder);
    if ((await memory.lastSeen(folder))?.point !== point) await memory.see(folder, { point, isEmpty: false });
    return (await statOrAbsent(folder))?.dev ?? -1n;
  });
}

/** Throws if something was mounted or unmounted there since the folder had this device. */
export function requireMounted(folder: string, device: bigint, memory: FolderMemory): Promise<void> {
  return explaining(`move files to ${folder}`, async () => {
    await refuseUnmounted(folder, memory);
    if ((await statOrAbsent(folder))?.dev !== device)
      throw new DisposalError(
        'folder',
        `cannot move files to ${folder}: another disk is mounted there than just before`,
        {
          hint: 'labfeed tries again later',
        },
      );
  });
}

async function refuseUnmounted(folder: string, memory: FolderMemory | undefined): Promise<void> {
  // So that an automounter mounts it.
  await statOne(folder);
  const unmounted = await missingMount(folder, memory);
  if (unmounted !== undefined)
    throw new DisposalError('folder', `cannot move files to ${folder}: nothing is mounted at ${unmounted}`, {
      hint: 'mount the disk or share, or choose another folder in `source`',
    });
}

/** Throws if files cannot be moved to this folder. It may still have to be created. */
export function checkTarget(
  folder: string,
  watched: readonly string[],
  memory?: FolderMemory,
): Promise<'present' | 'absent'> {
  return explaining(`move files to ${folder}`, async () => {
    await refuseUnmounted(folder, memory);
    const there = await statOrAbsent(folder);
    if (there && !there.isDirectory())
      throw new DisposalError('folder', `cannot move files to ${folder}: it is a file, not a folder`, {
        hint: 'rename the file, or choose another folder in `source`',
      });
    const above = dirname(folder);
    if (!there && (await statOrAbsent(above))?.isDirectory() !== true)
      throw new DisposalError('folder', `cannot move files to ${folder}: the folder ${above} does not exist`, {
        hint: 'create it, mount its share, or choose another folder in `source`',
      });
    await refuseWatched(there ? folder : above, watched);
    await change('access', there ? folder : above, constants.W_OK | constants.X_OK);
    return there ? 'present' : 'absent';
  });
}

async function create(folder: string, watch: string, wasUsed: boolean): Promise<void> {
  if (wasUsed)
    throw new DisposalError('folder', `cannot move files to ${folder}: it no longer exists`, {
      hint: 'if it is on a share, mount that; otherwise create the folder',
    });
  await mkdirLike(Buffer.from(folder), Buffer.from(watch));
}

/** Whether the folder that a file was moved to, or one above it, has everything mounted that it had then. */
export async function isTargetThere(target: Buffer, memory: FolderMemory): Promise<boolean> {
  for (let folder = dirname(display(target)); ; folder = dirname(folder)) {
    if (await memory.lastSeen(folder)) {
      // So that an automounter mounts it.
      const stats = await statOne(folder);
      return !(stats instanceof Error) && (await missingMount(folder, memory)) === undefined;
    }
    if (folder === dirname(folder)) return false;
  }
}

/** The configuration was compared by name. Links and bind mounts give a folder several names. */
async function refuseWatched(folder: string, watched: readonly string[]): Promise<void> {
  const roots = new Set<string | undefined>();
  // What is in a folder that does not respond would not respond, either.
  for (const root of watched) roots.add(idOf(await statOne(root)));
  for (let here = String(await realPlace(folder)); ; here = dirname(here)) {
    const id = idOf(await statOne(here));
    if (id !== undefined && roots.has(id))
      throw new DisposalError('folder', `cannot move files to ${folder}: it is in a watched folder, ${here}`, {
        hint: 'choose a folder outside all watched folders in `source`',
      });
    if (here === dirname(here)) return;
  }
}

const idOf = (stats: { dev: bigint; ino: bigint } | Error): string | undefined =>
  stats instanceof Error ? undefined : `${stats.dev}:${stats.ino}`;

/** Creates the folders between the target folder and a file in it, for those who can use the watched ones. */
export function createFolders(root: Buffer, target: Buffer, watch: Buffer): Promise<void> {
  const folder = folderOf(target);
  return explaining(`create the folder ${display(folder)}`, async () => {
    if (folder.length <= root.length) return;
    await createFolders(root, folder, watch);
    await mkdirLike(folder, Buffer.concat([watch, folder.subarray(root.length)]));
    // A link could lead into a watched folder.
    if ((await statOf(folder))?.isDirectory() !== true)
      throw new DisposalError('file', `cannot create the folder ${display(folder)}: it is a file or a link`, {
        hint: 'rename that',
      });
  });
}

/** The service creates files for itself alone (UMask), but people must reach what is moved. */
async function mkdirLike(folder: Buffer, model: Buffer): Promise<void> {
  try {
    await change('mkdir', folder);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
    return;
  }
  try {
    const original = await statOrAbsent(model);
    if (original) await giveAccess(`create the folder ${display(folder)}`, folder, original);
  } catch (error) {
    await change('rmdir', folder).catch(() => undefined);
    throw error;
  }
  await syncFolder(folder);
  await syncFolder(folderOf(folder));
}
