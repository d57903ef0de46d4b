# shellcheck shell=bash
# Libraries: files
# The node where root administers Slurm keeps accounts of teams as teams.json says (files/slurm_accounts.py), and jobs from being
# lost when a Capacity Block or training plan ends, as lease.json says (files/lease_end.py). The pull of the cluster's state calls
# both with each new document (state_pull.sh), and a timer the second one each minute. On AWS PCS that is each login node: what both
# do is the same however often it is done.

readonly SLURM_ADMIN_FOLDER=/opt/ultracluster/teams
# file in this folder -> place on the node
declare -rA SLURM_ADMIN_FILES=(
  ['slurm_accounts_difference.py']=$SLURM_ADMIN_FOLDER/slurm_accounts_difference.py
  ['lease_end_decision.py']=$SLURM_ADMIN_FOLDER/lease_end_decision.py
  ['lease_end_times.py']=$SLURM_ADMIN_FOLDER/lease_end_times.py
  ['slurm_accounts.py']=/opt/ultracluster/state.d/40_teams
  ['lease_end.py']=/opt/ultracluster/state.d/41_lease
  ['lease_end.service']=/etc/systemd/system/ultracluster-lease-end.service
  ['lease_end.timer']=/etc/systemd/system/ultracluster-lease-end.timer
)
readonly SLURM_ADMIN_PULL=/usr/local/sbin/ultracluster-state
readonly SLURM_ADMIN_DONE=/run/ultracluster/state

slurm_admin::detect() {
  local missing
  [[ -n ${CLUSTER_STATE_URI:-} ]] || step::not_applicable "cluster.json names no place of documents"
  slurm_admin::is_here || step::not_applicable "root administers Slurm on another node"
  missing=$(slurm_admin::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

# AWS PCS runs the controller itself.
slurm_admin::is_here() { [[ $NODE_ROLE == controller || $NODE_ROLE:${CLUSTER_ORCHESTRATOR:-} == login:pcs ]]; }

# What is not as it should be, one thing per line
slurm_admin::missing() {
  local name
  for name in "${!SLURM_ADMIN_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/files/$name" "${SLURM_ADMIN_FILES[$name]}" || echo "${SLURM_ADMIN_FILES[$name]}"
  done
  { systemctl is-enabled --quiet ultracluster-lease-end.timer && systemctl is-active --quiet ultracluster-lease-end.timer; } || echo "its timer"
}

slurm_admin::install() {
  local name mode
  for name in "${!SLURM_ADMIN_FILES[@]}"; do
    mode=0644
    [[ ${SLURM_ADMIN_FILES[$name]} != */state.d/* ]] || mode=0755
    files::install "$ULTRACLUSTER_HOME/files/$name" "${SLURM_ADMIN_FILES[$name]}" "$mode"
  done
  # A new helper of a handler, too
  rm -f -- "$ULTRACLUSTER_ROOT$SLURM_ADMIN_DONE/teams" "$ULTRACLUSTER_ROOT$SLURM_ADMIN_DONE/lease"
  systemctl daemon-reload
  systemctl enable ultracluster-lease-end.timer
  systemctl start ultracluster-lease-end.timer
  # Slurm may come later than this step: then it is tried again each minute.
  ULTRACLUSTER_STATE_WAIT=60 bash "$ULTRACLUSTER_ROOT$SLURM_ADMIN_PULL" teams lease || true
}

slurm_admin::verify() {
  local missing status
  missing=$(slurm_admin::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  # The accounts are no condition for the node: jobs are refused without them, and a minute later they are there.
  status=$(bash "$ULTRACLUSTER_ROOT$SLURM_ADMIN_PULL" status teams lease) || status="no word of $SLURM_ADMIN_PULL"
  step::message "${status//$'\n'/; }"
}
