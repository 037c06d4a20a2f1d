#!/bin/bash
# The first process of a machine within this one, with the file system of a Debian installation and its own systemd.
#   boot-debian.sh ROOT
# Nothing of the host can be changed: its devices, its kernel settings and its file systems are read-only or not there.
set -euo pipefail
root=$1

mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --bind -o ro proc/sys proc/sys
# systemd needs to write to the control groups below it.
mount --rbind /sys sys
mount -o remount,bind,ro sys
mount -t tmpfs -o mode=0755 tmpfs dev
for name in null zero full random urandom tty; do
  touch "dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=0755 tmpfs run
mkdir run/host
pivot_root . run/host
umount -l /run/host
rmdir /run/host
# What systemd hands to a service (its credentials) is mounted by a process of its own, and seen by this one.
mount --make-rshared /

exec env -i container=labfeed-test PATH=/usr/sbin:/usr/bin \
  /lib/systemd/systemd --system --unit=multi-user.target --show-status=0 --log-target=null
