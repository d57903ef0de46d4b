# shellcheck shell=bash
# Libraries: files mounts network retry
# The shared file systems that cluster.json names, mounted now and after every boot.

# Written by FSx's set-up of the EFA client. The mount waits for it and does not require it, as FSx's guide writes: without
# EFA a node still has its file system, over TCP.
readonly FILESYSTEMS_EFA_UNIT=configure-efa-fsx-lustre-client.service
# Put there by the step lustre_tuning
readonly FILESYSTEMS_TUNING=/usr/local/sbin/ultracluster-lustre-tuning

# Before its OnInitComplete script HyperPod has mounted OpenZFS and one Lustre file system: of several the others are ours.
filesystems::after_hyperpod() { [[ ${ULTRACLUSTER_ENTRY:-} == hyperpod_on_init_complete ]]; }

# One per line; of further Lustre file systems the mount itself, `/scratch,<dns name>,<mount name>`
filesystems::kinds() {
  local further
  read -r -a further <<<"${LUSTRE_FURTHER:-}"
  ! filesystems::after_hyperpod || ((${#further[@]} > 0)) || return 0
  [[ -z ${LUSTRE_PATH:-} ]] || echo lustre
  [[ -z ${OPENZFS_PATH:-} ]] || filesystems::after_hyperpod || echo openzfs
  ((${#further[@]} == 0)) || printf '%s\n' "${further[@]}"
}

# filesystems::describe KIND: sets TYPE, SOURCE, MOUNT_POINT, OPTIONS, BOOT_OPTIONS, SERVER
filesystems::describe() {
  # network-online.target and not network.service, which FSx's guide names: Ubuntu and Amazon Linux 2023 have no such unit.
  local -r boot=_netdev,x-systemd.automount,x-systemd.requires=network-online.target
  case $1 in
    lustre | /*)
      IFS=, read -r MOUNT_POINT SERVER SOURCE <<<"${1/#lustre/${LUSTRE_PATH:-},${LUSTRE_DNS_NAME:-},${LUSTRE_MOUNT_NAME:-}}"
      TYPE=lustre SOURCE=$SERVER@tcp:/$SOURCE
      OPTIONS=relatime,flock
      BOOT_OPTIONS=defaults,$OPTIONS,$boot
      if [[ -e $ULTRACLUSTER_ROOT/etc/systemd/system/$FILESYSTEMS_EFA_UNIT ]]; then
        BOOT_OPTIONS+=,x-systemd.after=$FILESYSTEMS_EFA_UNIT
      fi
      ;;
    openzfs)
      TYPE=nfs SOURCE=$OPENZFS_DNS_NAME:$OPENZFS_VOLUME_PATH MOUNT_POINT=$OPENZFS_PATH SERVER=$OPENZFS_DNS_NAME
      OPTIONS=nfsvers=4.2,nconnect=16
      BOOT_OPTIONS=defaults,$OPTIONS,$boot
      ;;
  esac
}

filesystems::detect() {
  local kind kinds
  mapfile -t kinds < <(filesystems::kinds)
  ((${#kinds[@]} > 0)) || step::not_applicable "cluster.json names no file systems$(! filesystems::after_hyperpod || echo ' but those that HyperPod mounts')"
  for kind in "${kinds[@]}"; do
    filesystems::describe "$kind"
    filesystems::refuse_other
    filesystems::is_mounted || step::absent "$MOUNT_POINT is not mounted"
    filesystems::in_fstab || step::absent "$MOUNT_POINT is not in /etc/fstab"
  done
  step::present "${kinds[*]%%,*}"
}

filesystems::install() {
  local kind kinds
  mapfile -t kinds < <(filesystems::kinds)
  for kind in "${kinds[@]}"; do
    filesystems::describe "$kind"
    command -v "mount.$TYPE" >/dev/null || step::fail "this image has no $TYPE client (mount.$TYPE): build it in"
    filesystems::in_fstab || filesystems::write_fstab
    filesystems::is_mounted || filesystems::mount
  done
  systemctl daemon-reload
}

filesystems::verify() {
  local kind kinds
  mapfile -t kinds < <(filesystems::kinds)
  for kind in "${kinds[@]}"; do
    filesystems::describe "$kind"
    filesystems::is_mounted || step::fail "$MOUNT_POINT is not mounted from $SOURCE"
    # A server that does not answer makes every look at the path hang.
    timeout 60 stat --file-system "$ULTRACLUSTER_ROOT$MOUNT_POINT" >/dev/null || step::fail "$MOUNT_POINT does not answer"
  done
  step::version "$(modinfo --field version lustre 2>/dev/null || true)"
  step::message "mounted: ${kinds[*]%%,*}"
}

# The kernel shows a Lustre server by address: there only the mount name can be compared.
filesystems::is_mounted() {
  local type source
  read -r type source < <(mounts::at "$MOUNT_POINT") || return 1
  case $TYPE in
    lustre) [[ $type == lustre && $source == *"@tcp:${SOURCE##*:}" ]] ;;
    nfs) [[ $type == nfs* && $source == "$SOURCE" ]] ;;
  esac
}

filesystems::refuse_other() {
  local found
  found=$(mounts::at "$MOUNT_POINT")
  [[ -z $found ]] || filesystems::is_mounted || step::fail "$MOUNT_POINT is taken by another mount: $found"
}

filesystems::in_fstab() {
  local source=$SOURCE
  ! filesystems::after_hyperpod || source= # HyperPod may write it differently
  awk -v source="$source" -v path="$MOUNT_POINT" '$1 !~ /^#/ && (source == "" || $1 == source) && $2 == path { found = 1 } END { exit !found }' \
    "$ULTRACLUSTER_ROOT/etc/fstab"
}

# Any other entry for the same path goes: two would race at boot.
filesystems::write_fstab() {
  local text
  text=$(awk -v path="$MOUNT_POINT" '$1 ~ /^#/ || $2 != path' "$ULTRACLUSTER_ROOT/etc/fstab")
  files::write /etc/fstab <<<"${text:+$text$'\n'}$SOURCE $MOUNT_POINT $TYPE $BOOT_OPTIONS 0 0"
}

filesystems::mount() {
  local -r path=$ULTRACLUSTER_ROOT$MOUNT_POINT
  network::wait_for "$SERVER" || step::fail "the name $SERVER is not resolved"
  mkdir -p "$path"
  [[ -z $(ls -A "$path") ]] || log::warn "the mount hides what is in $MOUNT_POINT now"
  retry::run "${ULTRACLUSTER_MOUNT_DEADLINE:-300}" timeout 90 mount -t "$TYPE" -o "$OPTIONS" "$SOURCE" "$path" ||
    step::fail "cannot mount $SOURCE on $MOUNT_POINT"
  [[ $TYPE != lustre || ! -x $ULTRACLUSTER_ROOT$FILESYSTEMS_TUNING ]] || bash "$ULTRACLUSTER_ROOT$FILESYSTEMS_TUNING" up
}
