# shellcheck shell=bash
# Libraries: files
# ParallelCluster's head node tells Slurm where EC2 has put the nodes: a timer asks, and writes topology.yaml when nodes have
# moved (files/topology_update.py). Slurm reads that file by itself; without it, it starts all the same and places jobs anywhere.

# file in this folder -> place on the node
declare -rA TOPOLOGY_FILES=(
  ['topology.py']=/opt/ultracluster/topology/topology.py
  ['topology_slurm.py']=/opt/ultracluster/topology/topology_slurm.py
  ['topology_update.py']=/opt/ultracluster/topology/topology_update.py
  ['topology.service']=/etc/systemd/system/ultracluster-topology.service
  ['topology.timer']=/etc/systemd/system/ultracluster-topology.timer
)
readonly TOPOLOGY_CONFIG=/etc/ultracluster/topology
readonly TOPOLOGY_YAML=/opt/slurm/etc/topology.yaml
readonly TOPOLOGY_STATE=/var/lib/ultracluster/topology.json

topology::detect() {
  local missing
  if ! topology::is_wanted; then
    [[ -e $ULTRACLUSTER_ROOT$TOPOLOGY_CONFIG ]] || step::not_applicable "this node writes no topology of Slurm"
    step::absent "to be taken away"
  fi
  [[ -n ${CLUSTER_REGION:-} ]] || step::fail "cluster.json does not tell the Region"
  missing=$(topology::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

topology::is_wanted() { [[ $NODE_ROLE == controller && ${CLUSTER_TOPOLOGY:-} == tree ]]; }

topology::config() { printf 'REGION=%s\nCLUSTER=%s\n' "$CLUSTER_REGION" "$CLUSTER_NAME"; }

# What is not as it should be, one thing per line
topology::missing() {
  local name
  for name in "${!TOPOLOGY_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/files/$name" "${TOPOLOGY_FILES[$name]}" || echo "${TOPOLOGY_FILES[$name]}"
  done
  [[ $(cat "$ULTRACLUSTER_ROOT$TOPOLOGY_CONFIG" 2>/dev/null) == "$(topology::config)" ]] || echo "$TOPOLOGY_CONFIG"
  systemctl is-enabled --quiet ultracluster-topology.timer || echo "its timer"
}

topology::install() {
  local name
  topology::is_wanted || topology::take_away
  for name in "${!TOPOLOGY_FILES[@]}"; do
    files::install "$ULTRACLUSTER_HOME/files/$name" "${TOPOLOGY_FILES[$name]}"
  done
  topology::config | files::write "$TOPOLOGY_CONFIG"
  systemctl daemon-reload
  systemctl enable ultracluster-topology.timer
  systemctl restart ultracluster-topology.timer
}

# It was wanted, and is no more: our file would go before what Slurm is told otherwise.
topology::take_away() {
  local path
  systemctl disable ultracluster-topology.timer
  systemctl stop ultracluster-topology.timer
  if grep -qs '^# Written by Ultracluster' "$ULTRACLUSTER_ROOT$TOPOLOGY_YAML"; then
    rm -f -- "$ULTRACLUSTER_ROOT$TOPOLOGY_YAML"
    timeout 120 scontrol reconfigure || log::warn "slurmctld has not read its configuration again: scontrol reconfigure"
  fi
  for path in "${TOPOLOGY_FILES[@]}" "$TOPOLOGY_STATE" "$TOPOLOGY_CONFIG"; do
    rm -f -- "$ULTRACLUSTER_ROOT$path"
  done
  exit 0
}

topology::verify() {
  local missing
  if ! topology::is_wanted; then
    step::message "taken away"
    return 0
  fi
  missing=$(topology::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  step::message "a timer keeps topology.yaml"
}
