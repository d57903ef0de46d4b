#!/bin/sh
# twin.sh WORK LOWER SCRIPTS NAME=ADDRESS[,CGROUP...]...
# The first process of a twin, in its own mount, network and process namespace: a bridge, a file system in memory,
# and one loop for each machine. All of it ends with this process.
set -eu
work=$1 lower=$2
shift 2
read -r pid _ </proc/self/stat # of the machine that runs this: its /proc is still the one that is mounted

mount -t tmpfs -o mode=0755 tmpfs "$work"
mkdir "$work/common" "$work/shared" "$work/pid" "$work/fresh" "$work/log"
ip link set lo up
ip link add br0 type bridge
ip link set br0 up
echo "$pid"
read -r _ # until everything that the machines share is written

here=$(dirname "$0")
first=$1
for machine; do
  if [ "$machine" != "$first" ]; then
    [ -n "${go-}" ] || read -r go # the controller comes first where nodes are many
  fi
  (
    name=${machine%%=*}
    while :; do
      # its own clock since boot, by which slurmctld sees that a node was rebooted
      clock=
      if [ -e /proc/self/ns/time ]; then
        clock="--time --boottime=-$(cut -d . -f 1 /proc/uptime)"
      fi
      # shellcheck disable=SC2086 # two words, or none
      unshare --mount --net --uts --ipc $clock --pid --fork --kill-child \
        sh "$here/machine.sh" "$work" "$lower" "$pid" "$name" "${machine#*=}" >"$work/log/$name" 2>&1 || true
      [ -e "$work/pid/$name" ] || exit # it could not even be made: the log says why
      rm "$work/pid/$name"
      if [ -e "$work/fresh/$name" ]; then
        rm -rf "$work/machines/$name" "$work/fresh/$name"
      fi
      sleep 3 # slurmctld counts in seconds: a boot in the second of the last answer is none to it
    done
  ) &
done
while :; do
  sleep 3600 &
  wait $!
done
