import { type BigIntStats, constants } from 'node:fs';
import { systemCode } from '../errors.js';
import { change, openWritable, realPlace, statOne } from '../system/disk.js';
import {
  DisposalError,
  display,
  explaining,
  folderOf,
  giveName,
  hash,
  inFolder,
  isInside,
  isSameFile,
  MAX_NUMBER,
  NO_LINKS,
  NotNow,
  nameOf,
  numbered,
  statOf,
  syncFolder,
  tooMany,
  toText,
  withFile,
} from './file-moves.js';
import { isAbsent } from './identify.js';
import { PRIVATE_PREFIX } from './match.js';

/**
 * The file-system half of `source: move | delete`. A file is renamed to a private name in its folder and then hashed: what
 * was written to it after it was filed is found out, and what is written to its old path meanwhile is another file. The
 * private name contains the file's own name, so a file can be restored without the journal.
 *
 * No step overwrites an existing file, and the file under its private name is the last to go: until the bytes that were
 * filed are at the target under their final name, it stays.
 */

/** A file that was filed and is to be moved away or deleted. */
export interface FiledFile {
  /** For people. */
  readonly path: string;
  readonly location: Buffer;
  /** Where it is under its private name. */
  readonly aside: Buffer;
}

/** With the id of the journal: several daemons can watch one share. */
const prefixOf = (journal: string): Buffer => Buffer.from(`${PRIVATE_PREFIX}${journal}-`);

export const asideOf = (location: Buffer, journal: string): Buffer =>
  inFolder(folderOf(location), Buffer.concat([prefixOf(journal), nameOf(location)]));

/** The place that a file with a private name of this journal belongs to. */
export function ownPlaceOf(aside: Buffer, journal: string): Buffer | undefined {
  const [name, prefix] = [nameOf(aside), prefixOf(journal)];
  const isOurs = name.length > prefix.length && name.subarray(0, prefix.length).equals(prefix);
  return isOurs ? inFolder(folderOf(aside), name.subarray(prefix.length)) : undefined;
}

type Stats = Pick<BigIntStats, 'dev' | 'size' | 'mtimeNs'>;

/**
 * What is compared to find out whether something was written to a file, with the device that it is on. Without its inode,
 * which some file systems invent: another file with the same time and size is hashed in any case.
 */
export const identityOf = ({ device = 0n, size, mtimeNs }: { device?: bigint; size: number; mtimeNs: bigint }) =>
  `${device}:${size}:${mtimeNs}`;

const identityFrom = ({ dev, size, mtimeNs }: Stats) => identityOf({ device: dev, size: Number(size), mtimeNs });

/** A share has another device each time it is mounted. */
const withoutDevice = (identity: string): string => identity.slice(identity.indexOf(':'));

export const isSameState = (a: string, b: string): boolean => withoutDevice(a) === withoutDevice(b);

/** The state of a plain file; undefined if there is none. Throws if it is a link, or has another name than `twin`. */
export const look = (path: string, location: Buffer, twin?: Buffer): Promise<string | undefined> =>
  explaining(`look for ${path}`, async () => {
    const stats = await statOf(location);
    if (!stats) return undefined;
    await refuseLinks(path, stats, twin);
    return identityFrom(stats);
  });

/** The same, of a file that may have several names; undefined for a link, too. */
export const stateAt = (location: Buffer): Promise<string | undefined> =>
  explaining(`look for ${display(location)}`, async () => {
    const stats = await statOf(location);
    return stats?.isFile() ? identityFrom(stats) : undefined;
  });

/**
 * Whether the folder of a file is there, on the device that the file was on, or one that contains it up to `watch`. If so,
 * a file that is not in it was removed. Otherwise, its disk or share may not be mounted.
 */
export async function isFolderThere(location: Buffer, identity: string, watch: Buffer | undefined): Promise<boolean> {
  for (let folder = folderOf(location); ; folder = folderOf(folder)) {
    const stats = await explaining(`look for ${display(folder)}`, () => statOrAbsent(folder));
    if (stats) return stats.isDirectory() && identity.startsWith(`${stats.dev}:`);
    if (!watch || !isInside(folder, watch)) return false;
  }
}

/** Of what a link leads to. Undefined if nothing has this name. */
export async function statOrAbsent(path: string | Buffer): Promise<BigIntStats | undefined> {
  const stats = await statOne(path);
  return stats instanceof Error ? ignoreAbsent(stats) : stats;
}

function ignoreAbsent(error: unknown): undefined {
  if (!isAbsent(error)) throw error;
}

/** Gives the file its private name. False if there is no file of this name. */
export function hide({ path, location, aside }: FiledFile, twin: Buffer | undefined): Promise<boolean> {
  return explaining(`rename ${path}`, async () => {
    if (await statOf(aside)) throw new DisposalError('file', `${display(aside)} exists`, { hint: 'rename it' });
    await change('rename', location, aside).catch(ignoreAbsent);
    // It may be another one than the one that was looked at.
    const hidden = await statOf(aside);
    if (hidden) await refuseLinks(path, hidden, twin);
    return hidden !== undefined;
  });
}

/** Throws if the file cannot be renamed: it would be copied for nothing. */
export const requireRemovable = ({ path, location, aside }: FiledFile): Promise<void> =>
  explaining(`rename ${path}`, async () => {
    await change('access', folderOf(location), constants.W_OK | constants.X_OK);
    // Its private name may be too long.
    await statOf(aside);
  });

/** Throws if a folder between the watched one and the file is a link: that could lead to a file from elsewhere. */
export function refuseLinkedFolders({ path, location }: FiledFile, watch: Buffer): Promise<void> {
  return explaining(`look for ${path}`, async () => {
    const folder = folderOf(location);
    const expected = Buffer.concat([await realPlace(watch), folder.subarray(watch.length)]);
    if (!expected.equals(await realPlace(folder)))
      throw new DisposalError('lasting', `${path} is behind a link, so it is neither moved nor deleted`, {
        hint: 'watch the folder that the link leads to',
      });
  });
}

/** What a link leads to is elsewhere, and others use it; a file with two names is still there under the other one. */
async function refuseLinks(path: string, stats: BigIntStats, twin: Buffer | undefined): Promise<void> {
  const hint = 'move or delete it yourself, or set `source: keep`';
  if (!stats.isFile())
    throw new DisposalError('lasting', `${path} is a link or no plain file, so it is neither moved nor deleted`, {
      hint,
    });
  const other = stats.nlink === 2n && twin ? await statOf(twin) : undefined;
  if (stats.nlink > 1n && !(other && isSameFile(stats, other)))
    throw new DisposalError(
      'lasting',
      `${path} has ${stats.nlink} names (hard links), so it is neither moved nor deleted`,
      { hint },
    );
}

/** A file under its private name, as it was hashed. */
export interface HiddenFile extends FiledFile {
  readonly sha256: string;
  readonly state: string;
}

/** Hashes the file under its private name. */
export function inspect(file: FiledFile, signal: AbortSignal): Promise<HiddenFile> {
  return explaining(`read ${file.path}`, async () => {
    const before = await stateOf(file.aside);
    const sha256 = await withFile(file.aside, (handle) => hash(handle, signal));
    const hidden = { ...file, sha256, state: before };
    await requireUnchanged(hidden);
    return hidden;
  });
}

/** By opening it: without that, a share may answer from its cache. */
const stateOf = (path: Buffer): Promise<string> => withFile(path, async ({ stats }) => identityFrom(stats));

/** A program that still had the file open may have written to it since it was hashed. */
async function requireUnchanged({ path, aside, state }: HiddenFile): Promise<void> {
  if (!isSameState(await stateOf(aside), state)) throw new NotNow(`${path} was written to meanwhile`);
}

/**
 * Gives a file its own name again, or the next free one, after `renaming`. Returns its location; undefined if there is
 * no file with this private name.
 */
export function putBack(
  aside: Buffer,
  location: Buffer,
  renaming: (to: Buffer, stats: BigIntStats) => Promise<void>,
): Promise<Buffer | undefined> {
  return explaining(`rename ${display(aside)} back`, async () => {
    const stats = await statOf(aside);
    if (!stats) return undefined;
    for (let n = 1; n <= MAX_NUMBER; n++) {
      const to = numbered(location, n);
      const there = n > 1 ? await statOf(to) : undefined;
      // It may have got this name just before a crash.
      if (there && !isSameFile(stats, there)) continue;
      if (n > 1) await renaming(to, stats);
      if (!(await giveName(aside, to))) continue;
      // Before the journal forgets that the file was hidden.
      await syncFolder(folderOf(location));
      return to;
    }
    throw tooMany(display(location));
  });
}

/** A free name at the target that is not in `taken`, or one where the same content is already. */
export function chooseTarget(
  target: Buffer,
  { location, sha256, identity }: Pick<FiledFile, 'location'> & { readonly sha256: string; readonly identity: string },
  taken: ReadonlySet<string>,
  signal: AbortSignal,
) {
  return explaining(`read the files at ${display(target)}`, async () => {
    const isUsed = async (n: number): Promise<boolean> => {
      const to = numbered(target, n);
      return taken.has(toText(to)) || (await statOf(to)) !== undefined;
    };
    for (let n = 1; n <= MAX_COMPARED; n++) {
      const to = numbered(target, n);
      if (taken.has(toText(to))) continue;
      const there = await statOf(to);
      if (!there) return { target: to, isThere: false };
      const own = await statOf(location);
      if (own && isOneFileElsewhere(own, there))
        throw new DisposalError('folder', `${display(to)} seems to be the file itself, through another mount`, {
          hint: 'choose a folder in `source` that is not a watched folder under another name',
        });
      // Others may write to a file that has further names.
      const isSingle = there.nlink === 1n || (own !== undefined && isSameFile(own, there));
      const mayBe = isSingle && identity.split(':')[1] === String(there.size);
      if (mayBe && (await isAt(to, sha256, signal))) return { target: to, isThere: true };
    }
    return { target: numbered(target, await firstFree(MAX_COMPARED, isUsed)), isThere: false };
  });
}

/** Some instruments give all files the same name. This many files at the target are compared by content. */
const MAX_COMPARED = 10;

/** A free number above a used one, found in few steps although thousands may be used. */
async function firstFree(start: number, isUsed: (n: number) => Promise<boolean>): Promise<number> {
  let [used, free] = [start, 2 * start];
  while (await isUsed(free)) [used, free] = [free, 2 * free];
  while (free - used > 1) {
    const middle = Math.floor((used + free) / 2);
    if (await isUsed(middle)) used = middle;
    else free = middle;
  }
  return free;
}

/** A folder of a server that is mounted twice has two devices. */
const isOneFileElsewhere = (a: BigIntStats, b: BigIntStats): boolean =>
  a.dev !== b.dev && a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs;

/** Whether a file with this content is at this path. */
export const isAt = (path: Buffer, sha256: string, signal?: AbortSignal): Promise<boolean> =>
  explaining(`read ${display(path)}`, async () => {
    const stats = await statOf(path);
    return stats?.isFile() === true && (await hashOf(path, signal)) === sha256;
  });

export const hashOf = (path: Buffer, signal?: AbortSignal): Promise<string> =>
  withFile(path, (handle) => hash(handle, signal));

export const exists = (path: Buffer): Promise<boolean> =>
  explaining(`look for ${display(path)}`, async () => (await statOf(path)) !== undefined);

/** Where a file is moved to. */
export interface Goal {
  readonly target: Buffer;
  /** Whether the target had the content before. */
  readonly isThere: boolean;
  /** Beside the target: a second name of the file, or its copy if the target is on another file system. */
  readonly beside: Buffer;
}

/**
 * Everything that can take long or fail for want of space, while the file still has its own name. Resolves with the
 * fingerprint of the bytes that were copied; undefined if nothing had to be copied.
 */
export function bring(
  { path, location, sha256, identity }: FiledFile & { readonly sha256: string; readonly identity: string },
  { target, isThere, beside }: Goal,
  signal: AbortSignal,
): Promise<string | undefined> {
  return explaining(`copy ${path} to ${display(folderOf(target))}`, async () => {
    if (isThere) return undefined;
    // Mounts can be of one device and yet have no links between them, so only the attempt shows it.
    const isLinked = await change('link', location, beside).then(
      () => true,
      (error: unknown) => {
        if (systemCode(error) === 'EXDEV' || NO_LINKS.has(systemCode(error) ?? '')) return false;
        throw error;
      },
    );
    // Some file systems do not count names, so that one could not be compared later.
    if (isLinked && (await haveOneFile(location, beside))) return undefined;
    if (isLinked) await change('unlink', beside);
    const copied = await copyBytes(path, location, beside, signal);
    if (copied === sha256 && (await isAt(beside, sha256, signal))) return copied;
    if (!isSameState(await stateOf(location), identity)) throw new NotNow(`${path} was written to meanwhile`);
    if (copied !== sha256) return copied;
    throw new DisposalError('folder', `the copy of ${path} in ${display(folderOf(target))} has other bytes`, {
      hint: 'check the disk there',
    });
  });
}

/** Whether these are two names of one file. */
export async function haveOneFile(one: Buffer, other: Buffer): Promise<boolean> {
  const [a, b] = [await statOf(one), await statOf(other)];
  return a !== undefined && b !== undefined && isSameFile(a, b);
}

/** The copy is on disk, and for those who can read the file. */
const copyBytes = (path: string, location: Buffer, to: Buffer, signal: AbortSignal): Promise<string> =>
  withFile(location, async (from) => {
    const into = await openWritable(to, 'wx', 0o600);
    let sha256: string;
    try {
      sha256 = await hash(from, signal, into);
    } finally {
      await into.close();
    }
    await giveAccess(`copy ${path}`, to, from.stats);
    const [accessed, modified] = [from.stats.atimeNs, from.stats.mtimeNs].map((ns) => Number(ns) / 1e9);
    await change('utimes', to, accessed ?? 0, modified ?? 0).catch(() => undefined);
    return sha256;
  });

/** What labfeed creates is for those who could use the original. Throws if some could no longer. */
export async function giveAccess(what: string, path: Buffer, original: BigIntStats): Promise<void> {
  const [mode, uid, gid] = [Number(original.mode), Number(original.uid), Number(original.gid)];
  const own = process.geteuid?.() ?? uid;
  await change('chown', path, uid, gid).catch(() => change('chown', path, own, gid).catch(() => undefined));
  // A file that is copied runs for nobody else. Some file systems and services refuse the setgid bit.
  const full = original.isFile() ? mode & 0o777 : mode & 0o7777;
  await change('chmod', path, full).catch(() => change('chmod', path, mode & 0o777).catch(() => undefined));
  const copy = await statOf(path);
  if (copy && mayRead(copy, original)) return;
  throw new DisposalError(
    'folder',
    `cannot ${what}: people who can read it now could not read it in ${display(folderOf(path))}`,
    {
      hint: 'let the user of labfeed give files away there (owner, group and mode), or move to a folder on the same disk',
    },
  );
}

/** Whether the copy can be read by the owner, the group and the others, if the original can. */
function mayRead(copy: BigIntStats, original: BigIntStats): boolean {
  const has = ({ mode }: BigIntStats, bit: bigint): boolean => (mode & bit) !== 0n;
  const isForAll = has(copy, OTHERS);
  const isForGroup = isForAll || (copy.gid === original.gid && has(copy, GROUP));
  // An owner is taken for a member of the group of the file.
  const isForOwner = isForGroup || (copy.uid === original.uid && has(copy, OWNER));
  return (
    (isForOwner || !has(original, OWNER)) &&
    (isForGroup || !has(original, GROUP)) &&
    (isForAll || !has(original, OTHERS))
  );
}

const [OWNER, GROUP, OTHERS] = [0o400n, 0o040n, 0o004n] as const;

/** Removes what `bring` has made: until the file is at its target, it also has its own or its private name. */
export const drop = (beside: Buffer): Promise<void> =>
  explaining(`remove ${display(beside)}`, () => change('unlink', beside).catch(ignoreAbsent));

/** Moves a file that was brought. Nothing is changed if another file has taken the name meanwhile. */
export function place(file: HiddenFile, { target, isThere, beside }: Goal): Promise<void> {
  const { path, sha256 } = file;
  return explaining(`move ${path} to ${display(target)}`, async () => {
    const taken = () => new NotNow(`another file was given the name ${display(target)} just now`);
    if (isThere && !(await isAt(target, sha256))) throw taken();
    // Others have put it there: its content must be on disk before the file goes.
    if (isThere) await withFile(target, (there) => there.sync());
    await requireUnchanged(file);
    if (!isThere && !(await giveName(beside, target))) throw taken();
    await syncFolder(folderOf(target));
    try {
      await requireUnchanged(file);
    } catch (error) {
      // If the target is the file itself, that has its private name, too.
      if (!isThere && (await haveOneFile(file.aside, target))) await change('unlink', target);
      throw error;
    }
    await remove(file);
  });
}

/** Deletes the file under its private name. */
export const deleteHidden = (file: HiddenFile): Promise<void> =>
  explaining(`delete ${file.path}`, async () => {
    await requireUnchanged(file);
    await remove(file);
  });

async function remove({ aside, location }: HiddenFile): Promise<void> {
  await change('unlink', aside);
  await syncFolder(folderOf(location));
}
