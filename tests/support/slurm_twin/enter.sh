#!/bin/sh
# enter.sh ROOT [CGROUP...]: the rest of a boot, where the machine's own control groups are the top ones.
set -eu
root=$1
shift
at=$root/sys/fs/cgroup
for group; do
  if [ -e "$group/cgroup.controllers" ]; then
    mount -t cgroup2 cgroup2 "$at"
  else
    [ -d "$at/unified" ] || { mount -t tmpfs -o mode=0755 tmpfs "$at" && mkdir "$at/unified"; }
    controller=$(echo "${group#/sys/fs/cgroup/}" | cut -d / -f 1)
    mkdir "$at/$controller"
    mount -t cgroup -o "$controller" cgroup "$at/$controller"
  fi
done
mount -t proc proc "$root/proc"
[ -s "$root/etc/machine-id" ] || tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
cat /proc/sys/kernel/random/uuid >"$root/run/boot_id"
mount --bind "$root/run/boot_id" "$root/proc/sys/kernel/random/boot_id"
exec chroot "$root" /bin/sh /etc/twin/init
