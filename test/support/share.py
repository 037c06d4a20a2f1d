"""A network share with faults: shows a folder at a mount point, and behaves as the words in a file say."""

import errno
import os
import sys
import time

# Debian's package python3-fusepy.
from fusepy import FUSE, FuseOSError, Operations

source, mount_point, faults_file = sys.argv[1:]


def faults():
    with open(faults_file) as file:
        return file.read().split()


class Share(Operations):
    def find(self, path):
        """The file, after the faults: `hang` waits, `ESTALE` and other names of errors fail, `fold` ignores case."""
        while "hang" in faults():
            time.sleep(0.02)
        now = faults()
        for name in now:
            if name in errno.__dict__:
                raise FuseOSError(getattr(errno, name))
        here = source
        for name in path.strip("/").split("/") if path != "/" else []:
            names = os.listdir(here) if "fold" in now and os.path.isdir(here) else []
            same = [one for one in names if one.lower() == name.lower()]
            here = os.path.join(here, same[0] if same else name)
        return here

    def getattr(self, path, fh=None):
        stats = os.lstat(self.find(path))
        keys = ("st_mode", "st_nlink", "st_size", "st_ctime", "st_mtime", "st_atime", "st_uid", "st_gid", "st_ino")
        shown = {key: getattr(stats, key) for key in keys}
        for word in faults():
            # Times in steps of two seconds, and a clock that differs by some seconds.
            if word == "coarse":
                shown["st_mtime"] = shown["st_ctime"] = stats.st_mtime // 2 * 2
            if word.startswith("skew="):
                shown["st_mtime"] += int(word[5:])
        return shown

    def readdir(self, path, fh):
        return [".", ".."] + os.listdir(self.find(path))

    def open(self, path, flags):
        return os.open(self.find(path), flags)

    def read(self, path, size, offset, fh):
        self.find(path)
        return os.pread(fh, size, offset)

    def release(self, path, fh):
        os.close(fh)

    def create(self, path, mode, fi=None):
        return os.open(self.find(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def write(self, path, data, offset, fh):
        self.find(path)
        return os.pwrite(fh, data, offset)

    def fsync(self, path, datasync, fh):
        self.find(path)
        os.fsync(fh)

    def link(self, target, source):
        os.link(self.find(source), self.find(target))

    def rename(self, old, new):
        os.rename(self.find(old), self.find(new))

    def unlink(self, path):
        os.unlink(self.find(path))

    def mkdir(self, path, mode):
        os.mkdir(self.find(path), mode)

    def rmdir(self, path):
        os.rmdir(self.find(path))

    def chmod(self, path, mode):
        os.chmod(self.find(path), mode)

    def chown(self, path, uid, gid):
        os.chown(self.find(path), uid, gid)

    def utimens(self, path, times=None):
        os.utime(self.find(path), times)


FUSE(
    Share(),
    mount_point,
    foreground=True,
    fsname="nas:/lab",
    subtype="sshfs",
    attr_timeout=0,
    entry_timeout=0,
    use_ino=True,
    allow_other=True,
)
