# shellcheck shell=bash
# Libraries: files
# What FSx asks of large Lustre clients: options of the kernel modules, which have to be there before these are loaded, and
# parameters of what is mounted. The work is in files/lustre_tuning.sh, which a timer runs, too.

# file in this folder -> place on the node
declare -rA LUSTRE_TUNING_FILES=(
  ['lustre_tuning.sh']=/usr/local/sbin/ultracluster-lustre-tuning
  ['lustre_tuning.service']=/etc/systemd/system/ultracluster-lustre-tuning.service
  ['lustre_tuning.timer']=/etc/systemd/system/ultracluster-lustre-tuning.timer
)
readonly LUSTRE_TUNING_MODULES=/etc/modprobe.d/ultracluster-lustre.conf

lustre_tuning::detect() {
  local missing
  [[ -n ${LUSTRE_PATH:-} ]] || step::not_applicable "cluster.json names no Lustre file system"
  [[ $NODE_ROLE != system ]] || step::not_applicable "a system node mounts no Lustre"
  missing=$(lustre_tuning::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present
}

lustre_tuning::is_large() {
  (($(getconf _NPROCESSORS_ONLN) > 64))
}

lustre_tuning::missing() {
  local name
  for name in "${!LUSTRE_TUNING_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/files/$name" "${LUSTRE_TUNING_FILES[$name]}" || echo "${LUSTRE_TUNING_FILES[$name]}"
  done
  ! lustre_tuning::is_large || files::same "$ULTRACLUSTER_HOME/files/lustre_modules.conf" "$LUSTRE_TUNING_MODULES" || echo "$LUSTRE_TUNING_MODULES"
  systemctl is-enabled --quiet ultracluster-lustre-tuning.timer || echo "its timer"
  lustre_tuning::others
}

lustre_tuning::others() {
  bash "$ULTRACLUSTER_HOME/files/lustre_tuning.sh" status
}

lustre_tuning::install() {
  local name mode
  for name in "${!LUSTRE_TUNING_FILES[@]}"; do
    mode=0644
    [[ $name != *.sh ]] || mode=0755
    files::same "$ULTRACLUSTER_HOME/files/$name" "${LUSTRE_TUNING_FILES[$name]}" || files::install "$ULTRACLUSTER_HOME/files/$name" "${LUSTRE_TUNING_FILES[$name]}" "$mode"
  done
  ! lustre_tuning::is_large || files::install "$ULTRACLUSTER_HOME/files/lustre_modules.conf" "$LUSTRE_TUNING_MODULES"
  systemctl daemon-reload
  systemctl enable ultracluster-lustre-tuning.timer
  systemctl start ultracluster-lustre-tuning.timer
  bash "$ULTRACLUSTER_HOME/files/lustre_tuning.sh" up
}

lustre_tuning::verify() {
  local missing
  missing=$(lustre_tuning::missing)
  [[ -z $missing ]] || step::fail "not in force: ${missing//$'\n'/, }"
  lustre_tuning::modules_follow || log::warn "the Lustre modules were loaded before their options: these hold from the next boot on"
  if command -v lctl >/dev/null; then
    step::message "in force"
  else
    # On EKS over TCP the client's tools are in the container of the CSI driver only.
    step::message "this host has no lctl: what is mounted keeps the client's own parameters"
  fi
}

lustre_tuning::modules_follow() {
  local -r found=$ULTRACLUSTER_ROOT/sys/module/ptlrpc/parameters/ptlrpcd_per_cpt_max
  ! lustre_tuning::is_large || [[ ! -r $found || $(<"$found") == 32 ]]
}
