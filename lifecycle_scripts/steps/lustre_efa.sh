# shellcheck shell=bash
# Libraries: files lnet mounts retry software version
# Lustre over EFA: FSx's own set-up script, the image's where it has one, else that of the release. Only where the file
# system was created for it and the instance type can do it; everywhere else Lustre uses TCP.
#
# The script binds each EFA interface to a CPU partition of libcfs, whose table the kernel reads when libcfs is loaded. Where
# Lustre was loaded before, only a few interfaces attach and nothing says so (aws/aws-parallelcluster-cookbook#3251). So what
# is mounted is unmounted, the modules are unloaded, and the state afterwards is what counts: on a first boot the script
# ends with an error although all is well, as systemd replaces the job that it started.

readonly LUSTRE_EFA_UNIT=configure-efa-fsx-lustre-client
readonly LUSTRE_EFA_LIMITER=/usr/local/sbin/ultracluster-lustre-efa-interfaces
readonly LUSTRE_EFA_LIMIT=/etc/systemd/system/$LUSTRE_EFA_UNIT.service.d/10-ultracluster-interfaces.conf
# Where images of EKS may have it (awslabs/amazon-eks-ami, nodeadm: fsx_lustre_efa.go)
readonly LUSTRE_EFA_SCRIPT=/etc/eks/configure-efa-fsx-lustre-client/setup.sh

lustre_efa::detect() {
  [[ -n ${LUSTRE_EFA:-} ]] || step::not_applicable "the Lustre file system does not use EFA"
  CLUSTER_COMPONENTS+=" lustre-efa-setup" # asked for by the file system
  software::for lustre-efa-setup compute
  ((NODE_EFA_INTERFACES > 0)) || step::not_applicable "no EFA interfaces"
  lnet::wanted
  ((LNET_WANTED > 0)) || step::not_applicable "$NODE_INSTANCE_TYPE uses Lustre over TCP"
  lnet::is_right || step::absent "LNet has $LNET_BOUND of $LNET_WANTED EFA interfaces"
  lustre_efa::survives_boot || step::absent "it would not come back after a boot"
  lustre_efa::is_back || step::absent "$LUSTRE_PATH is in /etc/fstab and not mounted"
  step::present "$LNET_BOUND EFA interfaces"
}

# --- fewer interfaces than FSx's set-up binds: efa_interfaces_per_client ---

lustre_efa::is_limited() {
  [[ ${NODE_LUSTRE_EFA_LIMITED:-} == yes ]]
}

lustre_efa::limit() {
  ! lustre_efa::is_limited || bash "$ULTRACLUSTER_HOME/files/lustre_efa_interfaces.sh" "$LNET_WANTED" ||
    log::warn "EFA interfaces could not be removed from LNet"
}

lustre_efa::limit_drop_in() {
  lnet::wanted
  printf '# Ultracluster\n[Service]\nExecStartPost=%s %s\n' "$LUSTRE_EFA_LIMITER" "$LNET_WANTED"
}

lustre_efa::limits_boot() {
  if lustre_efa::is_limited; then
    files::same "$ULTRACLUSTER_HOME/files/lustre_efa_interfaces.sh" "$LUSTRE_EFA_LIMITER" &&
      files::has "$LUSTRE_EFA_LIMIT" "$(lustre_efa::limit_drop_in)"
  else
    [[ ! -e $ULTRACLUSTER_ROOT$LUSTRE_EFA_LIMIT ]]
  fi
}

# The unit's own run then leaves this many at each boot, before anything is mounted.
lustre_efa::limit_boot() {
  ! lustre_efa::limits_boot || return 0
  if lustre_efa::is_limited; then
    files::install "$ULTRACLUSTER_HOME/files/lustre_efa_interfaces.sh" "$LUSTRE_EFA_LIMITER" 0755
    lustre_efa::limit_drop_in | files::write "$LUSTRE_EFA_LIMIT"
  else
    rm -f -- "$ULTRACLUSTER_ROOT$LUSTRE_EFA_LIMIT"
  fi
}

# --- after a boot ---

# Where the image brings its own way there may be no unit.
lustre_efa::has_unit() {
  systemctl cat "$LUSTRE_EFA_UNIT.service" >/dev/null 2>&1
}

lustre_efa::survives_boot() {
  ! lustre_efa::has_unit || systemctl is-enabled --quiet "$LUSTRE_EFA_UNIT.service" || return 1
  files::has "$(lustre_efa::drop_in_path)" "$(lustre_efa::drop_in)" || return 1
  lustre_efa::limits_boot
}

# The mount waits for the set-up, also where the service that owns /etc/fstab does not know of it. It does not require it: a
# node without EFA still has its file system.
lustre_efa::drop_in_path() {
  printf '/etc/systemd/system/%s.mount.d/10-ultracluster-efa.conf' "$(mounts::unit "$LUSTRE_PATH")"
}

lustre_efa::drop_in() {
  printf '# Ultracluster\n[Unit]\nAfter=%s.service\n' "$LUSTRE_EFA_UNIT"
}

# Nothing to bring back: it is mounted, will be when somebody looks, or is not in /etc/fstab (yet).
lustre_efa::is_back() {
  [[ -n $(mounts::at "$LUSTRE_PATH") ]] || mounts::is_automount "$LUSTRE_PATH" || ! lustre_efa::in_fstab
}

# lustre_efa::in_fstab [OPTION]: with this mount option
lustre_efa::in_fstab() {
  awk -v path="$LUSTRE_PATH" -v option="${1:-}" '
    $1 !~ /^#/ && $2 == path && $3 == "lustre" && (option == "" || index("," $4 ",", "," option ",")) { found = 1 }
    END { exit !found }' "$ULTRACLUSTER_ROOT/etc/fstab"
}

# Where the image has a way of its own, FSx's archive is downloaded when that one has failed.
lustre_efa::needs() {
  [[ -e $ULTRACLUSTER_ROOT$LUSTRE_EFA_SCRIPT ]] || lnet::is_right || lustre_efa::has_unit || lustre_efa::has_old_kernel || echo lustre-efa-setup
}

lustre_efa::install() {
  LUSTRE_EFA_SOURCE='' LUSTRE_EFA_AUTOMOUNT=''
  lustre_efa::limit_boot
  lnet::is_right || ((LNET_BOUND < LNET_WANTED)) || lustre_efa::limit
  if ! lnet::is_right; then
    ! lustre_efa::has_old_kernel ||
      step::fail "Lustre over EFA needs kernel 6.8 or newer on Ubuntu, this is $(uname -r): Lustre uses TCP"
    # Nothing is unmounted for an archive that did not come.
    [[ -z $(lustre_efa::needs) ]] || software::fetch lustre-efa-setup
    # Whatever comes, the file system is there again at the end.
    trap lustre_efa::put_back EXIT
    lustre_efa::take_down
    lustre_efa::configure
  fi
  ! lustre_efa::has_unit || systemctl enable "$LUSTRE_EFA_UNIT.service"
  lustre_efa::drop_in | files::write "$(lustre_efa::drop_in_path)"
  systemctl daemon-reload
  lustre_efa::put_back
  trap - EXIT
  software::clean lustre-efa-setup
}

# The only kernels that are known not to do (FSx for Lustre User Guide, "Configuring EFA clients"): any other is tried.
lustre_efa::has_old_kernel() {
  [[ $NODE_OS == ubuntu* ]] || return 1
  version::compare "$(uname -r)" 6.8
  [[ $VERSION_ORDER == older ]]
}

# --- out of the way, and back ---

lustre_efa::take_down() {
  local other users
  lnet::is_loaded || return 0
  other=$(mounts::of_type lustre | grep -vxFf <(printf '%s\n' "$LUSTRE_PATH" && mounts::further) | head -n 1) || true
  [[ -z $other ]] || step::fail "another Lustre file system is mounted at $other: its client is not unloaded, Lustre uses TCP"
  if [[ $(mounts::at "$LUSTRE_PATH") == 'lustre '* ]]; then
    LUSTRE_EFA_SOURCE=$(mounts::at "$LUSTRE_PATH")
    LUSTRE_EFA_SOURCE=${LUSTRE_EFA_SOURCE#* }
    if ! umount "$ULTRACLUSTER_ROOT$LUSTRE_PATH"; then
      users=$(lustre_efa::users)
      LUSTRE_EFA_SOURCE=
      step::fail "$LUSTRE_PATH is in use${users:+ by $users} and was mounted before EFA was set up: Lustre uses TCP until the node is replaced"
    fi
  fi
  lustre_efa::further_down
  # Else a look at the path would load the modules in the middle of this.
  if mounts::is_automount "$LUSTRE_PATH"; then
    LUSTRE_EFA_AUTOMOUNT=$(mounts::unit "$LUSTRE_PATH").automount
    systemctl stop "$LUSTRE_EFA_AUTOMOUNT"
  fi
  lustre_efa::unload || step::fail "the Lustre modules are in use and do not unload: Lustre uses TCP until the node is replaced"
}

# The other file systems of ours: their modules are the same ones.
lustre_efa::further_down() {
  local path
  while IFS= read -r path; do
    if [[ $(mounts::at "$path") == 'lustre '* ]]; then
      umount "$ULTRACLUSTER_ROOT$path" || step::fail "$path is in use and was mounted before EFA was set up: Lustre uses TCP until the node is replaced"
    fi
    ! mounts::is_automount "$path" || systemctl stop "$(mounts::unit "$path").automount"
  done < <(mounts::further)
}

# By /etc/fstab; what has no line there yet is mounted by the step `filesystems`.
lustre_efa::further_back() {
  local path
  while IFS= read -r path; do
    LUSTRE_PATH=$path lustre_efa::in_fstab || continue
    if LUSTRE_PATH=$path lustre_efa::in_fstab x-systemd.automount; then
      mounts::is_automount "$path" || systemctl start "$(mounts::unit "$path").automount" || log::warn "$path is not mounted again"
    elif [[ $(mounts::at "$path") != 'lustre '* ]]; then
      timeout 90 mount "$ULTRACLUSTER_ROOT$path" || log::warn "$path could not be mounted again"
    fi
  done < <(mounts::further)
}

lustre_efa::unload() {
  ! lnet::is_loaded || { timeout 120 lustre_rmmod && ! lnet::is_loaded; }
}

# Names of up to three programs that have something open there
lustre_efa::users() {
  local process name names=()
  while read -r process; do
    process=${process#"$ULTRACLUSTER_ROOT"/proc/}
    process=${process%%/*}
    { read -r name <"$ULTRACLUSTER_ROOT/proc/$process/comm"; } 2>/dev/null || name='?'
    [[ " ${names[*]-} " == *"($process) "* ]] || names+=("$name ($process)")
  done < <({ timeout 30 find "$ULTRACLUSTER_ROOT"/proc/[0-9]*/{cwd,root,exe,fd} -maxdepth 1 \( -lname "$LUSTRE_PATH" -o -lname "$LUSTRE_PATH/*" \) || true; } 2>/dev/null)
  names=("${names[@]:0:3}")
  printf '%s' "${names[*]-}"
}

# Also after a run that was killed in the middle of this: then /etc/fstab tells what was there.
lustre_efa::put_back() {
  local -r path=$ULTRACLUSTER_ROOT$LUSTRE_PATH
  if ! lustre_efa::is_back; then
    LUSTRE_EFA_SOURCE=${LUSTRE_EFA_SOURCE:-fstab}
    ! lustre_efa::in_fstab x-systemd.automount || LUSTRE_EFA_AUTOMOUNT=$(mounts::unit "$LUSTRE_PATH").automount
  fi
  if [[ -n $LUSTRE_EFA_AUTOMOUNT ]]; then
    systemctl start "$LUSTRE_EFA_AUTOMOUNT" || log::warn "$LUSTRE_EFA_AUTOMOUNT does not start"
  fi
  if [[ -n $LUSTRE_EFA_SOURCE && $(mounts::at "$LUSTRE_PATH") != 'lustre '* ]]; then
    if lustre_efa::in_fstab; then
      timeout 90 mount "$path"
    else
      timeout 90 mount -t lustre -o relatime,flock "$LUSTRE_EFA_SOURCE" "$path"
    fi || log::warn "$LUSTRE_PATH could not be mounted again"
  fi
  LUSTRE_EFA_SOURCE='' LUSTRE_EFA_AUTOMOUNT=''
  lustre_efa::further_back
}

# --- the set-up ---

lustre_efa::configure() {
  local script=$ULTRACLUSTER_ROOT$LUSTRE_EFA_SCRIPT
  # The image's own, or ours of an earlier run, that came after the modules
  if lustre_efa::has_unit; then
    timeout 300 systemctl restart "$LUSTRE_EFA_UNIT.service" || log::warn "$LUSTRE_EFA_UNIT.service did not start"
    ! lustre_efa::settled || return 0
    lustre_efa::unload || log::warn "the Lustre modules do not unload any more"
  fi
  if [[ ! -e $script ]]; then
    software::unpack lustre-efa-setup
    script=$UNPACKED/setup.sh
    [[ -e $script ]] || step::fail "the set-up archive of FSx has no setup.sh: Lustre uses TCP"
  fi
  # FSx's script ends with an error on types that it does not know for GPUDirect Storage, which may be newer than it.
  if lustre_efa::has_gds; then
    ! lustre_efa::run "$script" --optimized-for-gds || return 0
    lustre_efa::unload || log::warn "the Lustre modules do not unload any more"
  fi
  lustre_efa::run "$script" || step::fail "$(lustre_efa::reason)"
}

lustre_efa::has_gds() {
  [[ ${NODE_GDS:-} != no && -n $(software::module nvidia_fs) ]]
}

# lustre_efa::run SCRIPT [OPTION]
lustre_efa::run() {
  timeout 300 bash "$@" || log::warn "FSx's set-up script ended with status $?: what it has left decides"
  lustre_efa::settled
}

# The job of its unit may still run.
lustre_efa::settled() {
  retry::run "${ULTRACLUSTER_LUSTRE_EFA_DEADLINE:-45}" lnet::has_enough || return
  lustre_efa::limit
  lnet::is_right
}

lustre_efa::reason() {
  local reason
  if ((LNET_BOUND >= LNET_WANTED)); then
    printf 'LNet has %s EFA interfaces instead of %s (efa_interfaces_per_client): other nodes may not connect to the file system' \
      "$LNET_BOUND" "$LNET_WANTED"
    return
  fi
  reason="LNet has $LNET_BOUND of $LNET_WANTED EFA interfaces after FSx's set-up"
  [[ -n $(software::module kefalnd) ]] || reason+=": this Lustre client has no module for EFA (kefalnd)"
  printf '%s: Lustre uses TCP' "$reason"
}

lustre_efa::verify() {
  lnet::is_right || step::fail "$(lustre_efa::reason)"
  lustre_efa::limits_boot || step::fail "$LUSTRE_EFA_LIMIT is not right: after a boot LNet would have other EFA interfaces"
  lustre_efa::survives_boot || step::fail "$LUSTRE_EFA_UNIT.service is not enabled: after a boot Lustre would use TCP"
  lustre_efa::is_back || step::fail "$LUSTRE_PATH is in /etc/fstab and not mounted"
  [[ $(mounts::at "$LUSTRE_PATH") == 'lustre '* ]] || {
    step::message "$LNET_BOUND EFA interfaces; nothing is mounted yet"
    return 0
  }
  lnet::probe "$ULTRACLUSTER_ROOT$LUSTRE_PATH"
  ((LNET_EFA > 0 || LNET_TCP <= 0)) ||
    step::fail "$LNET_BOUND EFA interfaces are bound, but Lustre uses TCP ($LNET_TCP messages): do the security groups of client and file system allow all traffic to and from themselves and each other?"
  ((LNET_EFA > 0)) || log::warn "no answer of the file system was counted: whether it uses EFA is not proven"
  step::message "$LNET_BOUND EFA interfaces; $LNET_EFA messages over EFA, $LNET_TCP over TCP"
}
