import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type FolderMemory, listMounts, missingMount, mountOf } from '../../src/system/mounts.js';
import { tempFolder } from '../support/temp-folder.js';

const MOUNTINFO = [
  '22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw',
  '23 22 254:1 / /mnt/disk rw - xfs /dev/vdb rw',
  '40 22 0:51 / /mnt/sshfs rw,nosuid shared:9 master:2 - fuse.sshfs lab@nas:/data rw,user_id=0',
  '41 22 0:52 / /mnt/ntfs\\040disk rw - fuseblk /dev/sdb1 rw',
  '42 22 0:53 / /mnt/dav rw - fuse https://dav.example.org/lab rw',
  '43 22 0:54 / /mnt/rclone rw - fuse.rclone remote: rw',
  '44 22 0:55 / /mnt/cipher rw - fuse.gocryptfs /home/lab/cipher rw',
  '45 22 0:56 / /mnt/host rw - virtiofs lab rw',
  '46 22 0:57 / /mnt/nfs rw - nfs4 nas:/lab rw',
  '47 22 0:58 / /mnt/smb rw - cifs //nas/lab rw',
  // An automatic mount point, before and after its mount.
  '48 22 0:59 / /auto/early rw - autofs systemd-1 rw',
  '49 22 0:60 / /auto/late rw - autofs systemd-1 rw',
  '50 49 0:61 / /auto/late rw - nfs4 nas:/late rw',
  // A folder that systemd has mounted on itself, and one that is mounted elsewhere.
  '51 22 254:0 /srv/self /srv/self rw - ext4 /dev/vda rw',
  '52 22 254:0 /home/lab /srv/bound rw - ext4 /dev/vda rw',
  '',
].join('\n');

const tables = (fstab = '', mountinfo = MOUNTINFO) => ({ mountinfo: () => mountinfo, fstab: () => fstab });

const mounts = listMounts(tables());

test.each([
  ['/srv/data', '/', undefined, false],
  ['/mnt/disk/a', '/mnt/disk', undefined, false],
  ['/mnt/diskette', '/', undefined, false],
  ['/mnt/sshfs', '/mnt/sshfs', 'sshfs', true],
  ['/mnt/sshfs/not/yet', '/mnt/sshfs', 'sshfs', true],
  ['/mnt/ntfs disk/a', '/mnt/ntfs disk', undefined, true],
  ['/mnt/dav', '/mnt/dav', 'fuse', true],
  ['/mnt/rclone', '/mnt/rclone', 'rclone', true],
  ['/mnt/cipher', '/mnt/cipher', undefined, true],
  ['/mnt/host', '/mnt/host', 'virtiofs', true],
  ['/mnt/nfs', '/mnt/nfs', 'nfs4', true],
  ['/mnt/smb/a', '/mnt/smb', 'cifs', true],
  ['/auto/early', '/auto/early', undefined, true],
  ['/auto/late', '/auto/late', 'nfs4', true],
  ['/srv/self/a', '/', undefined, false],
  ['/srv/bound/a', '/srv/bound', undefined, false],
])('%s is on the mount %s, of type %s; it may hang: %s', (path, point, share, mayHang) => {
  expect(mountOf(path, mounts)).toMatchObject({ point, share, mayHang });
});

test('links to a share are followed, those on it are not', () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'a'));
  symlinkSync('/mnt/nfs/lab', join(folder, 'absolute'));
  symlinkSync('../absolute/x', join(folder, 'a/relative'));
  symlinkSync('loop', join(folder, 'loop'));
  expect(mountOf(join(folder, 'absolute/b'), mounts).point).toBe('/mnt/nfs');
  expect(mountOf(join(folder, 'a/relative'), mounts).point).toBe('/mnt/nfs');
  expect(mountOf(join(folder, 'loop'), mounts).point).toBe('/');
});

test('shares that name their server have the same source on every machine', () => {
  expect(mountOf('/mnt/nfs/a', mounts).source).toBe('nas:/lab /');
  expect(mountOf('/mnt/smb/a', mounts).source).toBe('//nas/lab /');
  // The tag of a virtual machine, and a disk.
  expect(mountOf('/mnt/host', mounts).source).toBeUndefined();
  expect(mountOf('/srv/data', mounts).source).toBeUndefined();
});

test('the tables of the system are read', () => {
  expect(mountOf('/proc/self')).toMatchObject({ point: '/proc', mayHang: false });
});

describe('a mount is missing', () => {
  const FSTAB = [
    '# <file system> <mount point>',
    'UUID=1 / ext4 errors=remount-ro 0 1',
    '//nas/lab\t/mnt/nas/  cifs  credentials=/etc/nas 0 0',
    'nas:/x /mnt/with\\040space nfs defaults 0 0',
    'nas:/y /mnt/nfs nfs defaults 0 0',
    'nas:/z /mnt/later nfs noauto 0 0',
    'nas:/u /auto/early nfs defaults 0 0',
    'UUID=2 none swap sw 0 0',
  ].join('\n');

  test.each([
    ['/mnt/nas', '/mnt/nas'],
    ['/mnt/nas/instruments/hplc', '/mnt/nas'],
    ['/mnt/with space', '/mnt/with space'],
    ['/auto/early/a', '/auto/early'],
    ['/mnt/nfs/x', undefined],
    ['/mnt/nasty', undefined],
    ['/mnt/later', undefined],
    ['/srv/data', undefined],
  ])('by /etc/fstab, for %s: %s', async (folder, point) => {
    expect(await missingMount(folder, undefined, tables(FSTAB))).toBe(point);
  });

  test.each([
    ['/mnt/gone', '/mnt/gone'],
    ['/srv/self', '/srv/self'],
    ['/mnt/nfs', undefined],
    ['/', undefined],
  ])('by what was seen before, if that was at %s: %s', async (point, missing) => {
    const memory: FolderMemory = {
      lastSeen: async () => ({ point, isEmpty: false }),
      see: async () => undefined,
    };
    expect(await missingMount('/data', memory, tables())).toBe(missing);
  });
});
