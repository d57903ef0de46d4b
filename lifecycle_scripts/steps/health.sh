# shellcheck shell=bash
# Libraries: files health
# The health loop: checks of this node at each boot, before jobs, after failed ones and in between, a service that follows the
# kernel's log, and what is done about a fault (health_loop/decide.py). All of it lies in one folder, so that a node works without
# these scripts.

readonly LOOP_HOME=/opt/ultracluster/health
readonly LOOP_UNIT=/etc/systemd/system/ultracluster-health.service
readonly LOOP_SETTINGS=$LOOP_HOME/settings.json
# Programs that settings of Slurm name: a node on which one is missing would be drained at its first job. On ParallelCluster they
# are its own, and run what is in folders that all nodes share.
readonly LOOP_PROLOG=/opt/ultracluster/prolog
readonly LOOP_EPILOG=/opt/ultracluster/epilog
readonly LOOP_SHARED=/opt/slurm/etc/scripts
readonly LOOP_PART=10_ultracluster_health

health::detect() {
  local missing
  [[ $NODE_ROLE == compute ]] || health::is_parallelcluster_head || step::not_applicable "a $NODE_ROLE node runs no jobs"
  if [[ -z ${CLUSTER_HEALTH:-} ]]; then
    [[ -e $ULTRACLUSTER_ROOT$LOOP_SETTINGS ]] || step::not_applicable "health.mode is off"
    step::absent "to be taken away"
  fi
  missing=$(health::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

health::is_parallelcluster() { [[ $NODE_FAMILY == parallelcluster ]]; }

health::is_parallelcluster_head() { health::is_parallelcluster && [[ $NODE_ROLE == controller ]]; }

# Source below the scripts, place on the node and mode, one per line: first what Slurm's settings name
health::wanted() {
  local file mode
  if health::is_parallelcluster; then
    ! health::is_parallelcluster_head || printf '%s\n' "health_loop/prolog.sh $LOOP_SHARED/prolog.d/$LOOP_PART 0755" "health_loop/epilog.sh $LOOP_SHARED/epilog.d/$LOOP_PART 0755"
  else
    printf '%s\n' "files/slurm_prolog.sh $LOOP_PROLOG 0755" "files/slurm_epilog.sh $LOOP_EPILOG 0755" \
      "health_loop/prolog.sh $LOOP_PROLOG.d/$LOOP_PART 0755" "health_loop/epilog.sh $LOOP_EPILOG.d/$LOOP_PART 0755"
  fi
  [[ $NODE_ROLE == compute ]] || return 0
  echo "health_loop/program.sh $LOOP_HOME/program 0755"
  for file in "$ULTRACLUSTER_HOME"/{lib,health,health_loop}/*; do
    [[ -f $file && $file != *.md ]] || continue
    mode=0644
    [[ $file != *.sh ]] || mode=0755
    file=${file#"$ULTRACLUSTER_HOME/"}
    case $file in
      health_loop/health.service) echo "$file $LOOP_UNIT $mode" ;;
      health_loop/*.py) echo "$file $LOOP_HOME/loop/${file##*/} $mode" ;;
      health_loop/*) ;;
      *) echo "$file $LOOP_HOME/$file $mode" ;;
    esac
  done
}

# What is not as it should be, one thing per line
health::missing() {
  local source target mode
  while read -r source target mode; do
    files::same "$ULTRACLUSTER_HOME/$source" "$target" && [[ $mode != 0755 || -x $ULTRACLUSTER_ROOT$target ]] || echo "$target"
  done < <(health::wanted)
  [[ $NODE_ROLE == compute ]] || return 0
  [[ $(cat "$ULTRACLUSTER_ROOT$LOOP_SETTINGS" 2>/dev/null) == "$CLUSTER_HEALTH" ]] || echo "$LOOP_SETTINGS"
  [[ $(cat "$HEALTH_NODE" 2>/dev/null) == "$(health::told)" ]] || echo "$HEALTH_NODE"
  systemctl is-enabled --quiet ultracluster-health.service || echo "its service"
}

# What health::remember keeps for the checks
health::told() {
  local key
  for key in "${HEALTH_FACTS[@]}"; do printf '%s=%s\n' "$key" "${!key-}"; done
}

health::install() {
  [[ -n ${CLUSTER_HEALTH:-} ]] || health::take_away
  files::install_missing < <(health::wanted)
  [[ $NODE_ROLE == compute ]] || return 0
  printf '%s\n' "$CLUSTER_HEALTH" | files::write "$LOOP_SETTINGS"
  mkdir -p "$ULTRACLUSTER_ROOT/var/lib/ultracluster/health"
  health::remember
  systemctl daemon-reload
  systemctl enable ultracluster-health.service
  systemctl restart ultracluster-health.service
}

# It was there, and is no more. What Slurm's settings may still name stays, and finds nothing to run.
health::take_away() {
  systemctl disable ultracluster-health.service || true
  systemctl stop ultracluster-health.service || true
  rm -rf -- "$ULTRACLUSTER_ROOT$LOOP_HOME/loop" "$ULTRACLUSTER_ROOT$LOOP_SETTINGS" "$ULTRACLUSTER_ROOT$LOOP_UNIT"
  exit 0
}

# A fault at this moment is told, and ends no run: the loop keeps jobs away from the node, where it may.
health::verify() {
  local missing found
  if [[ -z ${CLUSTER_HEALTH:-} ]]; then
    step::message "taken away"
    return 0
  fi
  missing=$(health::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  if [[ $NODE_ROLE != compute ]]; then
    step::message "in the folders that nodes share"
    return 0
  fi
  systemctl is-active --quiet ultracluster-health.service || step::fail "its service does not run"
  if found=$(timeout 90 python3 -ISB "$ULTRACLUSTER_ROOT$LOOP_HOME/loop/main.py" boot); then
    step::message "no fault found"
  else
    log::warn "health: ${found//$'\n'/; } (mode: $(health::mode))"
    step::message "$(health::mode): ${found//$'\n'/; }"
  fi
}

health::mode() {
  case $CLUSTER_HEALTH in
    *'"mode": "enforce"'*) echo "jobs are kept away" ;;
    *) echo "dry run, nothing is done" ;;
  esac
}
