import { type BigIntStats, readlinkSync, realpathSync, statSync } from 'node:fs';
import type { AccessRules } from '../config/load.js';
import { FileError, systemCode } from '../errors.js';
import type { DiskFile } from '../model.js';

/**
 * Keeps links in a watched folder from publishing files from elsewhere. It judges what was opened, not a path, which
 * somebody could replace between the check and the opening.
 */
export interface Guard {
  /** Where a link leads, to be opened instead of it. Throws a FileError if it must not be followed. */
  follow(file: DiskFile): Buffer;
  /** Throws a FileError if the opened file must not be read. */
  check(descriptor: number, stats: BigIntStats, file: DiskFile): void;
}

/** How long the identities of own files are remembered: they are replaced when a key is rotated. */
const REMEMBERED_MS = 1000;

export function createGuard({ folder, links, own }: AccessRules, readLink: ReadLink = readlinkSync): Guard {
  const allowed = [folder, ...links.filter((link) => link !== 'hard')];
  const mayBeHardLinked = links.includes('hard');
  let roots = allowed.map(realFolder);
  let ownIds = new Set<string>();
  let readAt = Number.NEGATIVE_INFINITY;

  function isInside(path: string): boolean {
    const isBelow = (root: string): boolean => path.startsWith(root);
    if (roots.some(isBelow)) return true;
    // The folder may have been mounted, or its own link changed, since.
    roots = allowed.map(realFolder);
    return roots.some(isBelow);
  }

  function mustBeInside(path: string, file: DiskFile): void {
    if (isInside(path)) return;
    const target = Buffer.from(path, 'latin1').toString();
    throw refusal(
      file,
      `this is a link out of the watched folder, to ${target}`,
      `copy the file into the folder, or allow links to the folder that it is in: links: [${target.replace(/\/[^/]*$/, '') || '/'}]`,
    );
  }

  function isOwn({ dev, ino, nlink }: BigIntStats): boolean {
    const id = `${dev}:${ino}`;
    const isRecent = performance.now() - readAt < REMEMBERED_MS;
    if (isRecent && nlink === 1n && !ownIds.has(id)) return false;
    // A hit is checked again: a new file can get the inode of an own file that was replaced since.
    ownIds = new Set(own.flatMap(identityOf));
    readAt = performance.now();
    return ownIds.has(id);
  }

  return {
    follow(file) {
      const target = realpathSync.native(file.location, 'buffer');
      mustBeInside(target.toString('latin1'), file);
      return target;
    },
    check(descriptor, stats, file) {
      mustBeInside(pathOf(descriptor, stats, file, readLink), file);
      if (isOwn(stats))
        throw refusal(
          file,
          'this is the key, the token, the journal or the configuration of labfeed, which is never filed',
          'remove it from the watched folder',
        );
      if (stats.nlink > 1n && !mayBeHardLinked && isOthers(stats))
        throw refusal(
          file,
          `the file has ${stats.nlink} names (hard links) and belongs to another user, so it may be a file from elsewhere`,
          'copy the file instead of linking it, or allow hard links: links: [hard]',
        );
    },
  };
}

const refusal = ({ path }: DiskFile, message: string, hint: string): FileError =>
  new FileError(`not read: ${message}`, { where: { file: path }, hint });

/** Root reads everything, so no file counts as its own. */
function isOthers({ uid }: BigIntStats): boolean {
  const user = process.geteuid?.();
  return user === 0 || BigInt(user ?? -1) !== uid;
}

function identityOf(path: string): string[] {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return [`${dev}:${ino}`];
  } catch {
    return [];
  }
}

/** With a slash at its end, and one character per byte, as all paths here: a name need not be UTF-8. */
function realFolder(folder: string): string {
  try {
    const real = realpathSync.native(folder, 'latin1');
    return real.endsWith('/') ? real : `${real}/`;
  } catch {
    // Nothing is inside a folder that does not exist.
    return '\n';
  }
}

/** Replaced in tests: fails where there is no /proc. */
type ReadLink = (path: string, encoding: 'latin1') => string;

/** The path of an open file without links, one character per byte. */
function pathOf(descriptor: number, { dev, ino }: BigIntStats, file: DiskFile, readLink: ReadLink): string {
  try {
    return readLink(`/proc/self/fd/${descriptor}`, 'latin1');
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
  }
  // Systems without /proc.
  const path = realpathSync.native(file.location, 'buffer');
  const named = statSync(path, { bigint: true });
  if (named.dev === dev && named.ino === ino) return path.toString('latin1');
  throw refusal(file, 'it was replaced while it was opened', 'labfeed reads it when it changes again');
}
