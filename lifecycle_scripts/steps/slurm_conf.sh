# shellcheck shell=bash
# Libraries: files
# Slurm's settings of this cluster, on HyperPod's controller: `slurm` of cluster.json. files/slurm_conf.py brings them into
# slurm.conf, and takes them back where slurmctld would not run with them; a timer sees to it after HyperPod's agent has written
# slurm.conf again. The controller runs without them as HyperPod set it up.

readonly SLURM_CONF_HOME=/opt/ultracluster/slurm
readonly SLURM_CONF_ETC=/opt/slurm/etc
readonly SLURM_CONF_STATE=/var/lib/ultracluster/slurm/state.json
# file in files/ -> place on the node
declare -rA SLURM_CONF_FILES=(
  ['slurm_conf.py']=$SLURM_CONF_HOME/slurm_conf.py
  ['slurm_try.py']=$SLURM_CONF_HOME/slurm_try.py
  ['slurm_conf.service']=/etc/systemd/system/ultracluster-slurm-conf.service
  ['slurm_conf.timer']=/etc/systemd/system/ultracluster-slurm-conf.timer
  # nodes get them with slurm.conf, which names them
  ['slurm_conf_prolog.sh']=$SLURM_CONF_ETC/ultracluster_prolog
  ['slurm_conf_epilog.sh']=$SLURM_CONF_ETC/ultracluster_epilog
)

slurm_conf::detect() {
  local missing
  [[ $NODE_ROLE == controller ]] || step::not_applicable "the controller has slurm.conf"
  [[ -n ${CLUSTER_SLURM:-} ]] || step::not_applicable "cluster.json has no settings for Slurm"
  missing=$(slurm_conf::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

# What is not as it should be, one thing per line
slurm_conf::missing() {
  local name
  for name in "${!SLURM_CONF_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/files/$name" "${SLURM_CONF_FILES[$name]}" || echo "${SLURM_CONF_FILES[$name]}"
  done
  [[ $(cat "$ULTRACLUSTER_ROOT$SLURM_CONF_HOME/settings.json" 2>/dev/null) == "$CLUSTER_SLURM" ]] || echo "$SLURM_CONF_HOME/settings.json"
  systemctl is-enabled --quiet ultracluster-slurm-conf.timer || echo "its timer"
}

slurm_conf::install() {
  local name mode
  [[ -d $ULTRACLUSTER_ROOT$SLURM_CONF_ETC ]] || step::fail "this image has no $SLURM_CONF_ETC"
  for name in "${!SLURM_CONF_FILES[@]}"; do
    mode=0644
    [[ $name != *.py && $name != *.sh ]] || mode=0755
    files::install "$ULTRACLUSTER_HOME/files/$name" "${SLURM_CONF_FILES[$name]}" "$mode"
  done
  printf '%s\n' "$CLUSTER_SLURM" | files::write "$SLURM_CONF_HOME/settings.json"
  systemctl daemon-reload
  systemctl enable ultracluster-slurm-conf.timer
  systemctl start ultracluster-slurm-conf.timer
}

slurm_conf::verify() {
  local missing result='' why=''
  missing=$(slurm_conf::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  systemctl start ultracluster-slurm-conf.service || true # its state says why
  if [[ -r $ULTRACLUSTER_ROOT$SLURM_CONF_STATE ]]; then
    { read -r result && IFS= read -r why; } < <(slurm_conf::state) || true
  fi
  case $result in
    applied | holds) step::message "slurmctld has the settings${why:+: $why}" ;;
    refused | rolled-back) step::fail "slurmctld runs without our settings: $why" ;;
    # Slurm may come up later than this node's scripts end.
    *) step::message "the timer goes on: ${why:-no answer yet}" ;;
  esac
}

slurm_conf::state() {
  python3 -IS -c 'import json, sys
state = json.load(open(sys.argv[1]))
print(state["result"]); print(" ".join(state["why"].split()))' "$ULTRACLUSTER_ROOT$SLURM_CONF_STATE"
}
