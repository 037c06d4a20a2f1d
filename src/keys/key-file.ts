import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { LabfeedError, systemCode } from '../errors.js';

/** A file that can take a key. */
export interface KeyFile {
  /** The file itself, where the configuration names a link to it. */
  readonly path: string;
  /** Durable when it returns. Whoever reads the file has the old key or the new one, never a part. */
  write(key: string): void;
}

interface KeyFileOptions {
  /** The step in which the new key takes the place of the old one. */
  readonly rename?: (from: string, to: string) => void;
}

/** Looks whether a key can be written there, before anybody makes one. What it cannot do it says now. */
export function openKeyFile(named: string, { rename = renameSync }: KeyFileOptions = {}): KeyFile {
  const path = targetOf(named);
  const folder = dirname(path);
  const owner = ownerOf(path, folder);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  return {
    path,
    write(key) {
      // One name for all: what a crash leaves there, with a key in it, the next one clears away.
      const fresh = `${path}.new`;
      try {
        rmSync(fresh, { force: true });
        writeDurably(fresh, `${key}\n`, owner);
        rename(fresh, path);
        syncFolder(folder);
      } catch (error) {
        rmSync(fresh, { force: true });
        throw cannotWrite(path, error);
      }
    },
  };
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** A link stays a link: what it leads to is replaced, also where that is not there yet. */
export function targetOf(path: string, links = 0): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || links > 40) throw cannotWrite(path, error);
  }
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? targetOf(resolve(dirname(path), readlinkSync(path)), links + 1) : path;
}

/** Who is to own it: who owned it, or, of a new one, who owns the folder. Undefined: whoever writes it. */
function ownerOf(path: string, folder: string): Owner | undefined {
  const there = statSync(path, { throwIfNoEntry: false });
  const user = process.geteuid?.();
  if (there?.isDirectory()) throw cannotWrite(path, new Error('it is a folder'));
  if (there) refuseShared(path, there);
  if (user === undefined) return undefined;
  if (there && user !== 0 && there.uid !== user) {
    throw new LabfeedError(`the key file ${path} belongs to another user (number ${there.uid})`, {
      hint: 'run this as that user, or as root: it must stay theirs, or the daemon could not read it any more',
    });
  }
  const { uid, gid } = there ?? statSync(folder, { throwIfNoEntry: false }) ?? { uid: user, gid: 0 };
  return user === 0 ? { uid, gid } : undefined;
}

/** A key is its owner's alone. Where root's file is read by a group, that would lock out the daemon that is in it. */
function refuseShared(path: string, { uid, gid, mode }: Stats): void {
  if (uid !== 0 || gid === 0 || (mode & constants.S_IRGRP) === 0) return;
  throw new LabfeedError(`the key file ${path} is root's, and read by a group (number ${gid})`, {
    hint: `labfeed writes it for its owner alone (mode 0600). Give it to the user that the daemon runs as first: chown labfeed ${path}`,
  });
}

function writeDurably(path: string, text: string, owner: Owner | undefined): void {
  const descriptor = openSync(path, 'wx', 0o600);
  try {
    // The mode of a new file is cut by the umask, never widened; this makes it exact.
    fchmodSync(descriptor, 0o600);
    writeSync(descriptor, text);
    if (owner) chownSync(path, owner.uid, owner.gid);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A rename is on disk only when its folder is. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function cannotWrite(path: string, error: unknown): LabfeedError {
  const why = systemCode(error) ?? (error instanceof Error ? error.message : String(error));
  return new LabfeedError(`the key cannot be written to ${path} (${why})`, {
    hint: 'its folder must be there, and this user must be able to write in it: the file is replaced as a whole',
    cause: error,
  });
}
