# shellcheck shell=bash
# Libraries: files
# What of a cluster changes without a deploy of its nodes (users, teams) is a document in S3 that nodes pull: a timer looks each
# minute whether it changed. Steps that have a document put a handler into /opt/ultracluster/state.d; files/state_pull.sh says what
# a handler is.

# file in this folder -> place on the node
declare -rA PULL_FILES=(
  ['state_pull.sh']=/usr/local/sbin/ultracluster-state
  ['state_pull.service']=/etc/systemd/system/ultracluster-state.service
  ['state_pull.timer']=/etc/systemd/system/ultracluster-state.timer
)
readonly PULL_CONFIG=/etc/ultracluster/pull

state_pull::detect() {
  local missing
  [[ -n ${CLUSTER_STATE_URI:-} ]] || step::not_applicable "cluster.json names no place of documents"
  missing=$(state_pull::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

# What is not as it should be, one thing per line
state_pull::missing() {
  local name
  for name in "${!PULL_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/files/$name" "${PULL_FILES[$name]}" || echo "${PULL_FILES[$name]}"
  done
  [[ $(cat "$ULTRACLUSTER_ROOT$PULL_CONFIG" 2>/dev/null) == "$(state_pull::config)" ]] || echo "$PULL_CONFIG"
  { systemctl is-enabled --quiet ultracluster-state.timer && systemctl is-active --quiet ultracluster-state.timer; } || echo "its timer"
}

state_pull::config() {
  printf 'URI=%s\nREGION=%s\nCLUSTER=%s\nROLE=%s\nORCHESTRATOR=%s\n' "$CLUSTER_STATE_URI" "${CLUSTER_REGION:-}" "$CLUSTER_NAME" "$NODE_ROLE" "${CLUSTER_ORCHESTRATOR:-}"
}

state_pull::install() {
  local name mode
  for name in "${!PULL_FILES[@]}"; do
    mode=0644
    [[ $name != *.sh ]] || mode=0755
    files::install "$ULTRACLUSTER_HOME/files/$name" "${PULL_FILES[$name]}" "$mode"
  done
  state_pull::config | files::write "$PULL_CONFIG"
  systemctl daemon-reload
  systemctl enable ultracluster-state.timer
  systemctl start ultracluster-state.timer
}

state_pull::verify() {
  local missing
  missing=$(state_pull::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  step::message "$CLUSTER_STATE_URI"
}
