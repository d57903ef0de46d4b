#!/bin/sh
# Starts a controller with one slurm.conf after the other, and keeps what each says.
#
#     unshare --mount --net --uts --pid --fork --kill-child sh read.sh ROOT FOLDER
#
# FOLDER has NAME.conf for each, may have NAME.topology.yaml, and gets NAME.log. With NAME.plugstack a slurmd of
# node n1 starts instead. Nothing is written to ROOT: what the daemon writes goes to
# file systems in memory, which end with the namespaces.
set -eu
root=$1 folder=$2
for place in etc/slurm var/lib/slurm run tmp var/log/slurm var/spool mnt; do
  mount -t tmpfs none "$root/$place"
done
mount -t proc none "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$folder" "$root/mnt"
ip link set lo up
ip addr add 10.9.9.9/32 dev lo # the loopback address is hidden from look-ups
hostname ctl
echo "10.9.9.9 ctl" >"$root/run/hosts"
mount --bind "$root/run/hosts" "$root/etc/hosts"
mkdir "$root/var/lib/slurm/slurmctld"
head -c 1024 /dev/urandom >"$root/etc/slurm/slurm.key"
chmod 600 "$root/etc/slurm/slurm.key"
echo "CgroupPlugin=disabled" >"$root/etc/slurm/cgroup.conf"
# shellcheck disable=SC2016 # the shell in the root expands them
exec chroot "$root" sh -c '
names="slurmctld slurmctld-wlm slurmscriptd slurmd slurmd-wlm"
for conf in /mnt/*.conf; do
  rm -rf /var/lib/slurm/slurmctld/*
  cp "$conf" /etc/slurm/slurm.conf
  rm -f /etc/slurm/topology.yaml
  [ ! -e "${conf%.conf}.topology.yaml" ] || cp "${conf%.conf}.topology.yaml" /etc/slurm/topology.yaml
  daemon="slurmctld -D -i"
  if [ -e "${conf%.conf}.plugstack" ]; then
    cp "${conf%.conf}.plugstack" /etc/slurm/plugstack.conf
    daemon="slurmd -D -N n1"
  fi
  $daemon 2>&1 | while read -r line; do
    echo "$line"
    case $line in *"Running as primary"* | *"slurmd started"*) kill -9 $(pidof $names) ;; esac
  done >"${conf%.conf}.log"
  while pidof $names >/dev/null; do kill -9 $(pidof $names) 2>/dev/null || :; done
done'
