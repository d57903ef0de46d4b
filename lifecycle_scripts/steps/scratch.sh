# shellcheck shell=bash
# Libraries: files
# /scratch on the local NVMe disks, now and after every boot. The work is in files/scratch.sh, which also runs at boot.

readonly SCRATCH_TOOL=/usr/local/sbin/ultracluster-scratch
readonly SCRATCH_UNIT=/etc/systemd/system/ultracluster-scratch.service

scratch::detect() {
  local status
  status=$(scratch::status)
  if [[ $status == none ]]; then
    ((NODE_LOCAL_NVME_DISKS == 0)) || log::warn "$NODE_INSTANCE_TYPE should have $NODE_LOCAL_NVME_DISKS local NVMe disks, found none"
    step::not_applicable "no local NVMe disks"
  fi
  [[ $status == ready* ]] || step::absent "${status#absent }"
  scratch::survives_boot || step::absent "/scratch would not come back after a boot"
  step::present "${status#ready }"
}

scratch::install() {
  local reason
  files::install "$ULTRACLUSTER_HOME/files/scratch.sh" "$SCRATCH_TOOL" 0755
  files::install "$ULTRACLUSTER_HOME/files/scratch.service" "$SCRATCH_UNIT"
  systemctl daemon-reload
  systemctl enable ultracluster-scratch.service
  # The last line that the tool prints says why it gave up.
  reason=$(bash "$ULTRACLUSTER_HOME/files/scratch.sh" up 2>&1 | tee /dev/stderr | tail --lines 1) || step::fail "$reason"
}

scratch::verify() {
  local status disks
  status=$(scratch::status)
  [[ $status == ready* ]] || step::fail "after the set-up: ${status#absent }"
  scratch::survives_boot || step::fail "ultracluster-scratch.service is not enabled"
  # Everybody may write there: a new file, never one (or a link) that somebody else has put in its place.
  local -r probe=$ULTRACLUSTER_ROOT/scratch/.ultracluster-probe-$RANDOM$RANDOM
  (set -o noclobber && printf 'written\n' >"$probe") || step::fail "cannot write to /scratch"
  rm -- "$probe"
  disks=${status#ready }
  disks=${disks%% *}
  ((disks >= NODE_LOCAL_NVME_DISKS)) || log::warn "$NODE_INSTANCE_TYPE should have $NODE_LOCAL_NVME_DISKS local NVMe disks, found $disks"
  step::message "${status#ready }"
}

scratch::status() {
  bash "$ULTRACLUSTER_HOME/files/scratch.sh" status
}

scratch::survives_boot() {
  files::same "$ULTRACLUSTER_HOME/files/scratch.sh" "$SCRATCH_TOOL" &&
    files::same "$ULTRACLUSTER_HOME/files/scratch.service" "$SCRATCH_UNIT" &&
    systemctl is-enabled --quiet ultracluster-scratch.service
}
