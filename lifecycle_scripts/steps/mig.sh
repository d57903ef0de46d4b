# shellcheck shell=bash
# Libraries: files
# GPUs cut into MIG instances, now and after every boot, before slurmd counts them. The work is in files/mig.sh, which also runs
# at boot. AWS PCS: only its gres.conf takes devices that are found as slurmd starts.

readonly MIG_TOOL=/usr/local/sbin/ultracluster-mig
readonly MIG_UNIT=/etc/systemd/system/ultracluster-mig.service
readonly MIG_FILE=/etc/ultracluster/mig

mig::detect() {
  local status
  [[ -n ${NODE_MIG:-} ]] || step::not_applicable "GPUs of this group stay whole"
  mig::is_here || step::absent "not as it should be"
  status=$(mig::tool status)
  [[ $status == ready* ]] || step::absent "${status#absent }"
  step::present "${status#ready }"
}

mig::config() { printf '# Ultracluster: profiles of each GPU\n' && tr ' ' '\n' <<<"$NODE_MIG"; }

mig::tool() { bash "$ULTRACLUSTER_HOME/files/mig.sh" "$@"; }

mig::is_here() {
  files::same "$ULTRACLUSTER_HOME/files/mig.sh" "$MIG_TOOL" && files::same "$ULTRACLUSTER_HOME/files/mig.service" "$MIG_UNIT" &&
    cmp --silent <(mig::config) "$ULTRACLUSTER_ROOT$MIG_FILE" && systemctl is-enabled --quiet ultracluster-mig.service
}

mig::install() {
  local reason
  mig::config | files::write "$MIG_FILE"
  # The last line that the tool prints says why it gave up.
  reason=$(mig::tool up 2>&1 | tee /dev/stderr | tail --lines 1) || step::fail "$reason"
  files::install "$ULTRACLUSTER_HOME/files/mig.sh" "$MIG_TOOL" 0755
  files::install "$ULTRACLUSTER_HOME/files/mig.service" "$MIG_UNIT"
  systemctl daemon-reload
  systemctl enable ultracluster-mig.service
}

mig::verify() {
  local status
  status=$(mig::tool status)
  [[ $status == ready* ]] || step::fail "after the set-up: ${status#absent }"
  mig::is_here || step::fail "ultracluster-mig.service is not in place"
  step::message "${status#ready }"
}
