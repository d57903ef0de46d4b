#!/bin/sh
# machine.sh WORK LOWER TWIN NAME ADDRESS[,CGROUP...]: one boot of a machine, as the first process of its namespaces.
set -eu
work=$1 lower=$2 twin=$3 name=$4
address=${5%%,*}
cgroups=$(echo "${5#"$address"}" | tr , ' ')
read -r pid _ </proc/self/stat

echo "$name" >/proc/sys/kernel/hostname
ip link set lo up
# of the boot before: the kernel removes it some time after its processes
nsenter --target "$twin" --net ip link delete "v-$name" 2>/dev/null || true
# the other namespace's pair, whose far end goes to process 1, as this process namespace counts
nsenter --target "$twin" --net ip link add "v-$name" master br0 type veth peer name eth0 netns 1
ip address add "$address/16" dev eth0
ip link set eth0 up
nsenter --target "$twin" --net ip link set "v-$name" up

folder=$work/machines/$name root=$work/machines/$name/root
mkdir -p "$folder/upper" "$folder/work" "$root"
mount -t overlay overlay -o "lowerdir=$work/common:$lower,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"
while read -r device minor; do
  mknod -m 0666 "$root/dev/$device" c 1 "$minor"
done <<END
null 3
zero 5
full 7
random 8
urandom 9
END
mknod -m 0666 "$root/dev/tty" c 5 0
for shared in "$work/shared"/*; do # etc_slurm is /etc/slurm
  if [ -e "$work/common/etc/twin/configless" ] && [ "$shared" = "$work/shared/etc_slurm" ] && [ "$name" != ctl ]; then
    continue # slurmd fetches it from slurmctld
  fi
  place=$root/$(basename "$shared" | tr _ /)
  mkdir -p "$place"
  mount --bind "$shared" "$place"
done
if [ -e "$work/common/etc/twin/host" ]; then # what is installed on the machine that runs the twin, to read
  mkdir -p "$root/host/usr"
  mount --bind /usr "$root/host/usr"
  mount -o remount,bind,ro "$root/host/usr"
fi

mount -t sysfs sysfs "$root/sys"
if [ -n "$cgroups" ]; then
  for group in $cgroups; do
    find "$group" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || true # of the boot before
    echo 0 >"$group/cgroup.procs"                                                 # the writer
  done
fi
echo "$pid" >"$work/pid/$name"
# shellcheck disable=SC2086 # none or several
exec unshare --cgroup sh "$(dirname "$0")/enter.sh" "$root" $cgroups
