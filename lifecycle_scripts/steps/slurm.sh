# shellcheck shell=bash
# Libraries: files retry
# Starts the Slurm daemons that fit the node's role, as HyperPod expects it of an OnCreate script.
#
# Known from AWS's own scripts (awslabs/awsome-distributed-ai, base-config): HyperPod's agent writes
# /opt/slurm/etc/slurm.conf on the controller and needs a moment for it; controllers run slurmctld and no slurmd; compute
# and login nodes run slurmd, which fetches its configuration from the controllers; the unit's command line has
# $SLURMD_OPTIONS in it for that. A login node is not in slurm.conf: its slurmd may end after fetching the configuration,
# which is what the node needs it for. A compute node may be unknown to slurmctld for minutes.
# Not confirmed: which of munge, slurmdbd and their configuration HyperPod prepares in this mode. So munge is started where
# its unit exists, and slurmdbd where the image or a later step has left a slurmdbd.conf.

readonly SLURM_ETC=/opt/slurm/etc
readonly SLURM_CACHED_CONF=/var/spool/slurmd/conf-cache/slurm.conf
readonly SLURM_DROP_IN=/etc/systemd/system/slurmd.service.d/20-ultracluster-configless.conf
readonly SLURM_OPTIONS=/etc/ultracluster/slurmd.env

slurm::detect() {
  case $NODE_ROLE in
    controller) slurm::controller_runs && step::present "slurmctld runs" ;;
    compute | login) slurm::is_configless && slurm::daemon_serves && step::present "slurmd serves this $NODE_ROLE node" ;;
    *) step::not_applicable "a $NODE_ROLE node has no Slurm daemon" ;;
  esac
  step::absent "the daemons of a $NODE_ROLE node are not running"
}

slurm::install() {
  slurm::start_munge
  case $NODE_ROLE in
    controller) slurm::start_controller ;;
    compute | login) slurm::start_daemon ;;
  esac
}

slurm::verify() {
  local -r deadline=${ULTRACLUSTER_SLURM_DEADLINE:-300}
  step::version "$({ slurmd -V || slurmctld -V || true; } 2>/dev/null)"
  case $NODE_ROLE in
    controller)
      retry::run "$deadline" slurm::controller_runs || step::fail "slurmctld is not running: see journalctl -u slurmctld"
      step::message "slurmctld runs"
      ;;
    *)
      systemctl is-enabled --quiet slurmd.service || step::fail "slurmd is not enabled"
      # Not a failure: the controller may come later than this node, and systemd goes on trying.
      if retry::run "${ULTRACLUSTER_SLURMD_DEADLINE:-60}" slurm::daemon_serves; then
        step::message "slurmd has its configuration from ${CLUSTER_CONTROLLERS// /,}"
      else
        log::warn "slurmd has not reached a controller yet"
        step::message "slurmd is enabled, and waits for ${CLUSTER_CONTROLLERS// /,}"
      fi
      ;;
  esac
}

slurm::start_munge() {
  slurm::has_unit munge || return 0
  systemctl enable munge.service
  systemctl start munge.service
}

slurm::has_unit() {
  systemctl cat "$1.service" >/dev/null 2>&1
}

# --- controllers ---

slurm::controller_runs() {
  systemctl is-enabled --quiet slurmctld.service && systemctl is-active --quiet slurmctld.service
}

slurm::start_controller() {
  local -r deadline=${ULTRACLUSTER_SLURM_DEADLINE:-300}
  slurm::has_unit slurmctld || step::fail "this image has no slurmctld.service"
  retry::run "$deadline" slurm::conf_names_controller ||
    step::fail "HyperPod has not written $SLURM_ETC/slurm.conf with the address of a controller within $deadline s"
  # slurmctld must find the database at its first start, else it invents a cluster id that the database later refuses
  # (aws-samples/sample-physical-ai-scaffolding-kit#17). slurmdbd answers some time after its start only (#20 there).
  if [[ -e $ULTRACLUSTER_ROOT$SLURM_ETC/slurmdbd.conf ]]; then
    systemctl enable slurmdbd.service
    systemctl start slurmdbd.service
    retry::run "$deadline" timeout 30 sacctmgr --noheader --parsable2 show cluster >/dev/null ||
      step::fail "slurmdbd does not answer: see journalctl -u slurmdbd"
  fi
  systemctl disable --now slurmd.service || log::warn "could not disable slurmd on this controller"
  systemctl enable slurmctld.service
  systemctl start slurmctld.service || step::fail "slurmctld did not start: see journalctl -u slurmctld"
}

slurm::conf_names_controller() {
  local -r conf=$ULTRACLUSTER_ROOT$SLURM_ETC/slurm.conf
  local controller
  for controller in $CLUSTER_CONTROLLERS; do
    if grep -sqwF -e "$controller" -e "ip-${controller//./-}" "$conf"; then
      return 0
    fi
  done
  return 1
}

# --- compute and login nodes ---

slurm::daemon_serves() {
  systemctl is-enabled --quiet slurmd.service || return 1
  if systemctl is-active --quiet slurmd.service; then
    slurm::daemon_knows_controllers
  else
    [[ $NODE_ROLE == login && -s $ULTRACLUSTER_ROOT$SLURM_CACHED_CONF ]]
  fi
}

# What the running daemon was started with, which may be older than our files.
slurm::daemon_knows_controllers() {
  local -r command_line=$ULTRACLUSTER_ROOT/proc/$(systemctl show --property=MainPID --value slurmd.service)/cmdline
  [[ ! -r $command_line ]] || grep -qF -- "${CLUSTER_CONTROLLERS// /,}" <<<"$(tr '\0' ' ' <"$command_line")"
}

slurm::start_daemon() {
  local unit
  [[ -n $CLUSTER_CONTROLLERS ]] || step::fail "neither resource_config.json nor cluster.json leads to a controller"
  slurm::has_unit slurmd || step::fail "this image has no slurmd.service"
  unit=$(systemctl cat slurmd.service)
  grep -q '^ExecStart=.*\(SLURMD_OPTIONS\|--conf-server\)' <<<"$unit" ||
    step::fail "slurmd.service of this image takes no SLURMD_OPTIONS, it cannot be pointed to the controllers"
  if ! slurm::is_configless; then
    slurm::options | files::write "$SLURM_OPTIONS"
    slurm::drop_in | files::write "$SLURM_DROP_IN"
    systemctl daemon-reload
  fi
  systemctl disable --now slurmctld.service || log::warn "could not disable slurmctld on this $NODE_ROLE node"
  systemctl enable slurmd.service
  # Without waiting: slurmd is ready only when a controller has answered.
  systemctl restart --no-block slurmd.service
}

slurm::is_configless() {
  cmp --silent <(slurm::options) "$ULTRACLUSTER_ROOT$SLURM_OPTIONS" &&
    cmp --silent <(slurm::drop_in) "$ULTRACLUSTER_ROOT$SLURM_DROP_IN"
}

# One word, so that it is right for $SLURMD_OPTIONS and ${SLURMD_OPTIONS} in the unit.
slurm::options() {
  echo "SLURMD_OPTIONS=--conf-server=${CLUSTER_CONTROLLERS// /,}"
}

slurm::drop_in() {
  cat <<EOT
# Ultracluster. The last EnvironmentFile wins, so the image's own may stay.
[Service]
EnvironmentFile=$SLURM_OPTIONS
EOT
  # A compute node tries until slurmctld knows it; a login node never will be known.
  [[ $NODE_ROLE != compute ]] || cat <<EOT
Restart=on-failure
RestartSec=15

[Unit]
StartLimitIntervalSec=0
EOT
}
