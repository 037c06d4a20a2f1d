#!/bin/bash
# The first process of a machine within this one: namespaces of its own, and a systemd that knows no units but
# those given. The units of the host stay out: at a boot some of them empty /tmp, which here is the host's.
#   boot-systemd.sh MACHINE PROJECT NODE    MACHINE has units/, etc/ (for /etc/labfeed) and srv/
set -euo pipefail
machine=$1 project=$2 node=$3

mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/etc /run/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work /etc
mount -t tmpfs -o mode=0755 tmpfs /var/lib
mount --bind "$machine/srv" /srv
mount --bind "$project" /opt

# What `npm install --global` leaves, where the service looks for it.
mount -t tmpfs -o mode=0755 tmpfs /usr/local/sbin
touch /usr/local/sbin/node
mount --bind "$node" /usr/local/sbin/node
printf '#!/bin/sh\nexec node /opt/dist/cli.js "$@"\n' >/usr/local/sbin/labfeed
chmod +x /usr/local/sbin/labfeed

# As the unit file says.
useradd --system --home-dir /var/lib/labfeed --shell /usr/sbin/nologin labfeed
mkdir /etc/labfeed
mount --bind "$machine/etc" /etc/labfeed

# What systemd hands to a service (its credentials) is mounted by a process of its own, and seen by this one.
mount --make-rshared /

export container=labfeed-test SYSTEMD_UNIT_PATH=$machine/units
exec /lib/systemd/systemd --system --unit=boot.target --show-status=0 --log-target=null
