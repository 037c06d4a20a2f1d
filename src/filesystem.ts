import { readFile, stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { systemCode } from './errors.js';

/** What is asked of the system. Handed in by tests, which cannot mount a share. */
export interface FilesystemProbe {
  /** The kind of file system, as statfs(2) numbers it. */
  magic(path: string): Promise<number>;
  /** The device that a path lives on, as the kernel writes it in mountinfo: `major:minor`. */
  device(path: string): Promise<string>;
  mountinfo(): Promise<string>;
}

/**
 * File systems whose files change on other machines: they send no events for that,
 * and SQLite's locks are not to be trusted on them. From linux/magic.h and statfs(2).
 */
const NETWORK_MAGIC = new Set([
  0x6969, // NFS
  0x517b, // SMB
  0xff534d42, // CIFS
  0xfe534d42, // SMB2
  0x01021997, // 9p, also the drives of WSL
  0x5346414f, // AFS
  0x6b414653, // kAFS
  0x00c36400, // Ceph
  0x73757245, // Coda
  0x564c, // NCP
  0x0bd00bd0, // Lustre
  0x47504653, // GPFS
  0x19830326, // BeeGFS
  0xaad7aaea, // PanFS
  0x786f4256, // folders shared by VirtualBox
  0xbacbacbc, // folders shared by VMware
]);

/** FUSE has one number for everything; only the mount table tells sshfs from an NTFS disk. */
const FUSE_MAGIC = 0x65735546;

const NETWORK_MOUNTS = new Set([
  'virtiofs',
  ...['sshfs', 'rclone', 's3fs', 'goofys', 'gcsfuse', 'blobfuse', 'blobfuse2', 'juicefs', 'seaweedfs'],
  ...['glusterfs', 'ceph', 'ceph-fuse', 'moosefs', 'mfs', 'lizardfs', 'saunafs', 'cvmfs2', 'onedata'],
  ...['davfs', 'davfs2', 'curlftpfs', 'smbnetfs', 'gvfsd-fuse', 'kio-fuse', 'afpfs', 'portal', 'vmhgfs-fuse'],
]);

/** What a remote source looks like where the kind says nothing: `https://…`, `//server/share`, `user@host:/path`. */
const REMOTE_SOURCE = /^[a-z][a-z0-9+.-]*:\/\/|^\/\/|^[^/]+@[^/]+:/i;

/** Whether a path is on a share. Of a path that does not exist yet, the nearest folder above it is asked. */
export async function isNetworkFilesystem(
  path: string,
  probe: FilesystemProbe = systemProbe,
): Promise<boolean> {
  const here = resolve(path);
  try {
    // 32-bit machines give the number with a sign.
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

/** Whether another file system is mounted at this very folder. */
export async function isMountPoint(folder: string): Promise<boolean> {
  // Not path.join: what is above the folder is the kernel's to say, where the folder is a link.
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

/** The kernel's own packing of a device number, see makedev(3). */
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
