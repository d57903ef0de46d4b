#!/usr/bin/env bash
# ultracluster-scratch up|status: /scratch on this node's local NVMe disks (EC2 instance store).
#
# `up` runs at provisioning and at every boot: a stop and start brings the disks back empty, so that an entry in fstab
# would not do. It stands alone, because the folder that HyperPod copies the scripts to may be gone by then.
#
# A mount that the image offers on these disks is used as it is; /scratch is a link into it. Where the kubelet and containerd write
# to that mount as well, a full /scratch would evict pods and delete their images: there /scratch is a file system of its own, in a
# file of fixed size on the mount. (No volume in the image's group: a second storage manager beside HyperPod's `vg.01` corrupts it,
# SageMaker Developer Guide, sagemaker-hyperpod-eks-ebs. No project quota: it is an option of the first mount, which is the image's.)
#
# HyperPod's images for EKS own the disks: they are never ours there, mounted or not. Otherwise the disks become one LVM volume group
# with a striped volume. LVM and not mdadm: it is on every image that stripes its disks itself
# (DLAMI, HyperPod); the volume is found by name at boot without an mdadm.conf in the initramfs; and a tag on the volume
# can say "the file system is complete", so that a kill inside mkfs is seen, and the tag vanishes with the disks.
set -euo pipefail
export LC_ALL=C

readonly ROOT=${ULTRACLUSTER_ROOT:-}
readonly MOUNT=/scratch GROUP=ultracluster VOLUME=scratch COMPLETE=ultracluster.complete
readonly DEVICE=/dev/$GROUP/$VOLUME
# On the image's mount, where the kubelet uses that, too
readonly PART=ultracluster-scratch/disk.xfs

# survey: DISKS, of which UNUSED have no mount on them; IMAGE_MOUNT; MOUNTED if /scratch is ours.
survey() {
  DISKS=() UNUSED=() IMAGE_MOUNT='' MOUNTED=''
  local found disk mounted
  found=$(disks)
  while read -r disk mounted; do
    [[ -n $disk ]] || continue
    DISKS+=("$disk")
    if [[ $mounted == "$MOUNT" ]]; then
      MOUNTED=yes
    elif [[ -n $mounted ]]; then
      IMAGE_MOUNT=${IMAGE_MOUNT:-$mounted}
    else
      UNUSED+=("$disk")
    fi
  done <<<"$found"
}

# contents: of UNUSED, BLANK and FOREIGN (with what is on them)
contents() {
  BLANK=() FOREIGN=()
  local members disk content group
  local -A groups=()
  members=$(volumes pvs --noheadings --options pv_name,vg_name 2>/dev/null) || true
  while read -r disk group; do
    [[ -z $disk ]] || groups[$disk]=$group
  done <<<"$members"
  for disk in "${UNUSED[@]}"; do
    # From the disk itself: what lsblk knows of signatures is udev's memory.
    content=$(wipefs --noheadings --output TYPE "$disk")
    group=${groups[$disk]:-}
    case ${content//$'\n'/ }:$group in
      LVM2_member:"$GROUP") ;;
      : | LVM2_member:) BLANK+=("$disk") ;; # the latter when vgcreate was cut short
      LVM2_member:*) FOREIGN+=("$disk (volume group $group)") ;;
      *) FOREIGN+=("$disk (${content//$'\n'/, })") ;;
    esac
  done
}

# One line per instance-store disk, never an EBS volume: its name, and where it or something on it is mounted.
disks() {
  lsblk --json --paths --output NAME,MAJ:MIN,TYPE,MODEL | python3 -IS -c '
import json, sys

mounts = {}  # device number -> where its root is mounted first
for line in open(sys.argv[1]):
    number, root, path = line.split()[2:5]
    if root == "/":
        mounts.setdefault(number, path)


def family(device):
    yield device
    for child in device.get("children") or []:
        yield from family(child)


for disk in json.load(sys.stdin)["blockdevices"]:
    if disk["type"] == "disk" and (disk["model"] or "").strip() == "Amazon EC2 NVMe Instance Storage":
        numbers = [member["maj:min"] for member in family(disk)]
        print(disk["name"], *[mounts[number] for number in numbers if number in mounts][:1])
' "$ROOT/proc/self/mountinfo"
}

# Without LVM's list of known devices: after the root volume was replaced, it does not have ours.
volumes() {
  LVM_SUPPRESS_FD_WARNINGS=1 lvm "$@" --config devices/use_devicesfile=0
}

status() {
  survey
  if ((${#DISKS[@]} == 0)); then
    echo none
  elif [[ -n $MOUNTED ]] && is_open "$ROOT$MOUNT"; then
    echo "ready ${#DISKS[@]} disks, mounted there"
  elif [[ -z $MOUNTED && -n $IMAGE_MOUNT ]] && is_used_by_pods && is_apart; then
    echo "ready ${#DISKS[@]} disks, a part of the image's $IMAGE_MOUNT"
  elif [[ -z $MOUNTED && -n $IMAGE_MOUNT ]] && ! is_used_by_pods && is_linked; then
    echo "ready ${#DISKS[@]} disks, the image's $IMAGE_MOUNT"
  else
    echo "absent $MOUNT is not there for all"
  fi
}

is_open() {
  [[ $(stat --format %a "$1" 2>/dev/null) == 1777 ]]
}

is_linked() {
  [[ $(readlink "$ROOT$MOUNT") == "$(link_target)" ]] && is_open "$ROOT$IMAGE_MOUNT/scratch"
}

# Relative to /, so that it holds under any root.
link_target() {
  printf '%s' "${IMAGE_MOUNT#/}/scratch"
}

# Do the kubelet and containerd write to the mount of the image?
is_used_by_pods() {
  [[ -e $ROOT/usr/bin/kubelet || -d $ROOT/var/lib/kubelet ]]
}

# HyperPod with EKS
are_the_images() {
  is_used_by_pods && [[ -e $ROOT/opt/ml/config/resource_config.json ]]
}

# What is mounted at /scratch, the topmost; nothing if that is no mount
mounted_device() {
  awk -v mount="$MOUNT" '$5 == mount { source = $0; sub(/.* - [^ ]+ /, "", source); sub(/ .*/, "", source) } END { print source }' \
    "$ROOT/proc/self/mountinfo"
}

# Is /scratch the file system in our file, for all?
is_apart() {
  local device file=''
  device=$(mounted_device)
  [[ $device == /dev/loop* ]] || return 1
  read -r file <"$ROOT/sys/block/${device#/dev/}/loop/backing_file" || true
  [[ $file == "$IMAGE_MOUNT/$PART" ]] && is_open "$ROOT$MOUNT"
}

up() {
  local left=${ULTRACLUSTER_VOLUME_SECONDS:-60}
  survey
  ((${#DISKS[@]} > 0)) || return 0
  # Before it is there, a pod must not find a folder on the root disk in its place.
  trap hide EXIT
  if [[ -z $MOUNTED$IMAGE_MOUNT ]] && systemctl is-enabled --quiet dlami-nvme.service 2>/dev/null; then
    # Joins the start that is under way; DLAMI formats for up to two minutes (awslabs/awsome-distributed-ai#427).
    timeout 180 systemctl start dlami-nvme.service || say "dlami-nvme.service failed"
    survey
  fi
  while are_the_images && [[ -z $IMAGE_MOUNT ]] && ((left > 0)); do
    left=$((left - 1))
    sleep 1
    survey
  done
  if [[ -n $MOUNTED ]]; then
    chmod 1777 "$ROOT$MOUNT"
  elif [[ -n $IMAGE_MOUNT ]]; then
    if is_used_by_pods; then divide; else link; fi
  elif are_the_images; then
    contents
    stop "HyperPod's image owns the local disks and has not mounted them (${FOREIGN[*]:-no volume group on them}): they are not touched; replace the node"
  else
    build
  fi
}

link() {
  # The image may let everybody write there.
  [[ ! -L $ROOT$IMAGE_MOUNT/scratch ]] || stop "$IMAGE_MOUNT/scratch is a link that somebody has put there: remove it"
  mkdir -p "$ROOT$IMAGE_MOUNT/scratch"
  chmod 1777 "$ROOT$IMAGE_MOUNT/scratch"
  if [[ -d $ROOT$MOUNT && ! -L $ROOT$MOUNT ]]; then
    rmdir "$ROOT$MOUNT" || stop "$MOUNT is a folder with something in it, it cannot become a link to $IMAGE_MOUNT"
  fi
  ln --symbolic --force --no-dereference "$(link_target)" "$ROOT$MOUNT"
  say "$MOUNT leads to $IMAGE_MOUNT of the image"
}

# An empty folder in the place of /scratch goes: hostPath volumes of type Directory then say that it is not there.
hide() {
  [[ ! -d $ROOT$MOUNT || -L $ROOT$MOUNT || -n $(mounted_device) ]] || rmdir "$ROOT$MOUNT" 2>/dev/null || true
}

# Half of the image's mount, as a file with a file system of its own. By default the kubelet deletes images when less than 15 % of
# their disk is free and evicts pods below 15 and 10 % (Kubernetes, Node-pressure Eviction): what is left to it is never ours.
divide() {
  local size free device
  local -r file=$ROOT$IMAGE_MOUNT/$PART folder=$ROOT$IMAGE_MOUNT/${PART%/*}
  needs mkfs.xfs fallocate losetup
  ! is_apart || return 0
  mkdir -m 0700 "$folder" 2>/dev/null || true
  [[ -d $folder && ! -L $folder && -O $folder ]] || stop "$IMAGE_MOUNT/${PART%/*} is not a folder of root"
  chmod 0700 "$folder"
  if [[ ! -e $file ]]; then
    read -r size free <<<"$(df --block-size=1M --output=size,avail "$ROOT$IMAGE_MOUNT" | tail -n 1)"
    ((free - size / 2 > size / 4)) || stop "$IMAGE_MOUNT is too full to take /scratch: $free of $size MiB are free"
    rm -f -- "$file.new"
    fallocate --length "$((size / 2))MiB" "$file.new"
    mkfs.xfs -f -K -q "$file.new"
    mv -T -- "$file.new" "$file"
  fi
  device=$(losetup --noheadings --output NAME --associated "$file" | head -n 1)
  if [[ -z $device ]]; then
    device=$(losetup --find --show "$file")
    # Without a second copy of everything in the page cache, where the disks' blocks allow it
    losetup --direct-io=on "$device" || say "$device: no direct I/O"
  fi
  [[ ! -L $ROOT$MOUNT ]] || rm -- "$ROOT$MOUNT" # of an earlier version, a link into the image's mount
  mkdir -p "$ROOT$MOUNT"
  mount -t xfs -o noatime "${device//[[:space:]]/}" "$ROOT$MOUNT"
  chmod 1777 "$ROOT$MOUNT"
  say "$MOUNT is ready, half of the image's $IMAGE_MOUNT"
}

needs() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || stop "$tool is not on this image: build it in (packages lvm2, xfsprogs and util-linux)"
  done
}

build() {
  local missing tags
  needs lvm mkfs.xfs
  contents
  ((${#FOREIGN[@]} == 0)) || stop "will not overwrite ${FOREIGN[*]}: mount it, or clear it with wipefs"

  missing=$(volumes vgs --noheadings --options vg_missing_pv_count "$GROUP" 2>/dev/null) || true
  if [[ -n $missing ]] && ((missing > 0)); then
    say "a disk of the stripe is gone, and its data with it: starting again"
    volumes vgreduce --removemissing --force "$GROUP"
    volumes vgremove --force --yes "$GROUP"
    missing=
    contents
  fi
  [[ -n $missing ]] || volumes vgcreate --yes "$GROUP" "${BLANK[@]}"
  volumes vgchange --activate y "$GROUP"
  if ! tags=$(volumes lvs --noheadings --options lv_tags "$GROUP/$VOLUME" 2>/dev/null); then
    create_volume
  fi
  if [[ $tags != *"$COMPLETE"* ]]; then
    # -K: instance store comes trimmed, and discarding terabytes takes time.
    mkfs.xfs -f -K -q "$DEVICE"
    volumes lvchange --addtag "$COMPLETE" "$GROUP/$VOLUME"
  fi
  if [[ -L $ROOT$MOUNT ]]; then
    rm -- "$ROOT$MOUNT" # an earlier image offered a mount to link to
  fi
  mkdir -p "$ROOT$MOUNT"
  mount -t xfs -o noatime "$DEVICE" "$ROOT$MOUNT"
  chmod 1777 "$ROOT$MOUNT"
  say "$MOUNT is ready"
}

create_volume() {
  local members
  members=$(volumes vgs --noheadings --options pv_count "$GROUP")
  local stripes=()
  # 256 KiB is the widest stripe that XFS can give its log, too.
  ((members < 2)) || stripes=(--stripes "$((members))" --stripesize 256k)
  volumes lvcreate --yes --wipesignatures y --extents 100%FREE "${stripes[@]}" --name "$VOLUME" "$GROUP"
}

say() {
  printf 'scratch: %s\n' "$1" >&2
}

stop() {
  printf '%s\n' "$1" >&2
  exit 1
}

case ${1:-} in
  up | status) "$1" ;;
  *) stop "usage: ultracluster-scratch up|status" ;;
esac
