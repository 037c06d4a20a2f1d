import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type FilesystemProbe, isMountPoint, isNetworkFilesystem } from '../src/filesystem.js';
import { tempFolder } from './support/temp-folder.js';

const MOUNTINFO = [
  '22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw',
  '40 22 0:51 / /mnt/a rw,nosuid shared:9 master:2 - fuse.sshfs lab@nas:/data rw,user_id=0',
  '41 22 0:52 / /mnt/b\\040c rw - fuseblk /dev/sdb1 rw',
  '42 22 0:53 / /mnt/d rw - fuse https://dav.example.org/lab rw',
  '43 22 0:54 / /mnt/e rw - fuse.rclone remote: rw',
  '44 22 0:55 / /mnt/f rw - fuse.gocryptfs /home/lab/cipher rw',
  '45 22 0:56 / /mnt/g rw - virtiofs lab rw',
  '',
].join('\n');

const FUSE = 0x65735546;

function probe(magic: number, device = '254:0'): FilesystemProbe {
  return { magic: async () => magic, device: async () => device, mountinfo: async () => MOUNTINFO };
}

describe('network file systems', () => {
  test.each([
    ['NFS', 0x6969],
    ['SMB', 0x517b],
    ['CIFS', 0xff534d42],
    ['CIFS with a sign', 0xff534d42 | 0],
    ['SMB2', 0xfe534d42],
    ['9p', 0x01021997],
    ['AFS', 0x5346414f],
    ['Ceph', 0x00c36400],
  ])('include %s', async (_name, magic) => {
    expect(await isNetworkFilesystem('/data', probe(magic))).toBe(true);
  });

  test.each([
    ['ext4', 0xef53],
    ['xfs', 0x58465342],
    ['btrfs', 0x9123683e],
    ['tmpfs', 0x01021994],
  ])('do not include %s', async (_name, magic) => {
    expect(await isNetworkFilesystem('/data', probe(magic))).toBe(false);
  });

  test.each([
    ['sshfs', '0:51', true],
    ['an NTFS disk', '0:52', false],
    ['a WebDAV address without a kind', '0:53', true],
    ['rclone', '0:54', true],
    ['an encrypted local folder', '0:55', false],
    ["a host's folder in a virtual machine", '0:56', true],
    ['a mount that the table does not name', '0:99', false],
  ])('under FUSE are found in the mount table: %s', async (_name, device, network) => {
    expect(await isNetworkFilesystem('/data', probe(FUSE, device))).toBe(network);
  });

  test('a path that does not exist is classified by its parent', async () => {
    const asked: string[] = [];
    const nfs: FilesystemProbe = {
      ...probe(0x6969),
      async magic(path) {
        asked.push(path);
        if (path !== '/mnt') throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
        return 0x6969;
      },
    };
    expect(await isNetworkFilesystem('/mnt/new/journal.db', nfs)).toBe(true);
    expect(asked).toEqual(['/mnt/new/journal.db', '/mnt/new', '/mnt']);
  });

  test('a system error is not swallowed', async () => {
    const dead: FilesystemProbe = {
      ...probe(0),
      magic: async () => {
        throw Object.assign(new Error('i/o error'), { code: 'EIO' });
      },
    };
    await expect(isNetworkFilesystem('/data', dead)).rejects.toThrow('i/o error');
  });

  test('the system calls work', async () => {
    const folder = tempFolder();
    expect(typeof (await isNetworkFilesystem(join(folder, 'not', 'yet')))).toBe('boolean');
  });
});

test('mount points are distinguished from folders', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'file'), '');
  expect(await isMountPoint(join(folder, 'sub'))).toBe(false);
  expect(await isMountPoint('/proc')).toBe(true);
});
