import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs';
import { readFile, stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { systemCode } from './errors.js';

/** File-system calls. Replaced in tests, which cannot mount a share. */
export interface FilesystemProbe {
  /** The type of file system, as in statfs(2). */
  magic(path: string): Promise<number>;
  /** The device of a path, as in mountinfo: `major:minor`. */
  device(path: string): Promise<string>;
  mountinfo(): Promise<string>;
}

/**
 * File systems whose files other machines can change: they send no events for such changes, and SQLite cannot rely on
 * their locks. From linux/magic.h and statfs(2).
 */
const NETWORK_MAGIC = new Set([
  0x6969, // NFS
  0x517b, // SMB
  0xff534d42, // CIFS
  0xfe534d42, // SMB2
  0x01021997, // 9p, also WSL drives
  0x5346414f, // AFS
  0x6b414653, // kAFS
  0x00c36400, // Ceph
  0x73757245, // Coda
  0x564c, // NCP
  0x0bd00bd0, // Lustre
  0x47504653, // GPFS
  0x19830326, // BeeGFS
  0xaad7aaea, // PanFS
  0x786f4256, // VirtualBox shared folders
  0xbacbacbc, // VMware shared folders
]);

/** All FUSE file systems have the same type; only the mount table tells sshfs from an NTFS disk. */
const FUSE_MAGIC = 0x65735546;

const NETWORK_MOUNTS = new Set([
  'virtiofs',
  ...['sshfs', 'rclone', 's3fs', 'goofys', 'gcsfuse', 'blobfuse', 'blobfuse2', 'juicefs', 'seaweedfs'],
  ...['glusterfs', 'ceph', 'ceph-fuse', 'moosefs', 'mfs', 'lizardfs', 'saunafs', 'cvmfs2', 'onedata'],
  ...['davfs', 'davfs2', 'curlftpfs', 'smbnetfs', 'gvfsd-fuse', 'kio-fuse', 'afpfs', 'portal', 'vmhgfs-fuse'],
]);

/** The source of a remote mount whose type is unknown: `https://…`, `//server/share`, `user@host:/path`. */
const REMOTE_SOURCE = /^[a-z][a-z0-9+.-]*:\/\/|^\/\/|^[^/]+@[^/]+:/i;

/** Whether a path is on a network share. A path that does not exist is judged by its nearest existing parent. */
export async function isNetworkFilesystem(path: string, probe: FilesystemProbe = systemProbe): Promise<boolean> {
  const here = resolve(path);
  try {
    // The number is signed on 32-bit machines.
    const magic = (await probe.magic(here)) >>> 0;
    if (magic !== FUSE_MAGIC) return NETWORK_MAGIC.has(magic);
    return isNetworkMount(await probe.mountinfo(), await probe.device(here));
  } catch (error) {
    const above = dirname(here);
    const absent = systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR';
    if (!absent || above === here) throw error;
    return isNetworkFilesystem(above, probe);
  }
}

/** Whether another file system is mounted at this folder. */
export async function isMountPoint(folder: string): Promise<boolean> {
  // Not path.join: if the folder is a link, only the kernel knows its parent.
  const [here, above] = await Promise.all([stat(folder), stat(`${folder}/..`)]);
  return here.dev !== above.dev;
}

function isNetworkMount(mountinfo: string, device: string): boolean {
  for (const line of mountinfo.split('\n')) {
    const [mount = '', filesystem = ''] = line.split(' - ');
    if (mount.split(' ')[2] !== device) continue;
    const [kind = '', source = ''] = filesystem.split(' ');
    return NETWORK_MOUNTS.has(kind.replace(/^fuse\./, '')) || REMOTE_SOURCE.test(source);
  }
  return false;
}

/** Unpacks a device number, see makedev(3). */
function majorMinor(device: bigint): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & ~0xffn);
  return `${major}:${minor}`;
}

const systemProbe: FilesystemProbe = {
  magic: async (path) => (await statfs(path)).type,
  device: async (path) => majorMinor((await stat(path, { bigint: true })).dev),
  mountinfo: () => readFile('/proc/self/mountinfo', 'utf8'),
};

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
