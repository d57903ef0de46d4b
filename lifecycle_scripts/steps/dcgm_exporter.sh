# shellcheck shell=bash
# Libraries: contract files packages software telemetry
# The DCGM exporter: metrics of GPUs, by the jobs that have them. It asks the host engine that runs here (dcgm.sh), and starts none.
# Which job has which GPU is in files that parts of Slurm's prolog and epilog keep: never a reason for a job to fail.

readonly DCGM_EXPORTER_UNIT=ultracluster-dcgm-exporter.service
# The package's own would listen to everybody, as root.
readonly DCGM_EXPORTER_OWN=nvidia-dcgm-exporter.service
readonly DCGM_EXPORTER_COUNTERS=$TELEMETRY_FOLDER/dcgm_counters.csv
readonly DCGM_EXPORTER_ENVIRONMENT=/etc/ultracluster/metrics-dcgm
readonly DCGM_EXPORTER_PARTS=/opt/ultracluster DCGM_EXPORTER_PART=20_ultracluster_dcgm
# All nodes of ParallelCluster share these.
readonly DCGM_EXPORTER_SHARED=/opt/slurm/etc/scripts
readonly DCGM_EXPORTER_JOBS=/run/ultracluster/gpu-jobs
# HyperPod's image keeps such files itself (its hooks 700_dcgm_job_map_*).
readonly DCGM_EXPORTER_HYPERPOD_JOBS=/run/slurm/dcgm-job-mapping

dcgm_exporter::detect() {
  local missing part parts=()
  for part in prolog epilog; do
    parts+=("$DCGM_EXPORTER_PARTS/$part.d/$DCGM_EXPORTER_PART" "$DCGM_EXPORTER_SHARED/$part.d/$DCGM_EXPORTER_PART")
  done
  # What all nodes share goes from the head node; others find it gone.
  dcgm_exporter::is_head || parts=("${parts[0]}" "${parts[2]}")
  telemetry::wanted "$TELEMETRY_UNITS/$DCGM_EXPORTER_UNIT" "${parts[@]}"
  if ! dcgm_exporter::is_head; then
    telemetry::released dcgm-exporter
    software::for dcgm-exporter compute
    software::settle dcgm-exporter "$(dcgm_exporter::version)"
  fi
  missing=$(dcgm_exporter::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

dcgm_exporter::is_head() { [[ $NODE_FAMILY:$NODE_ROLE == parallelcluster:controller ]]; }

# 4.8.2-1: that of its package
dcgm_exporter::version() {
  local found
  found=$(packages::version datacenter-gpu-manager-exporter)
  found=${found#*:}
  printf '%s' "${found%%-*}"
}

# Source below the scripts, place on the node and mode, one per line: the parts of prolog and epilog
dcgm_exporter::parts() {
  local -r folder=$(dcgm_exporter::folder)
  [[ -n $folder ]] || return 0
  printf '%s\n' "files/metrics_gpu_jobs_prolog.sh $folder/prolog.d/$DCGM_EXPORTER_PART 0755" "files/metrics_gpu_jobs_epilog.sh $folder/epilog.d/$DCGM_EXPORTER_PART 0755"
  [[ $folder == "$DCGM_EXPORTER_PARTS" ]] || return 0
  # what Slurm's settings name, and what runs the parts
  printf '%s\n' "files/slurm_prolog.sh $folder/prolog 0755" "files/slurm_epilog.sh $folder/epilog 0755"
}

# Where this node puts the parts; nothing where others do: the head node of ParallelCluster, or HyperPod's image.
dcgm_exporter::folder() {
  if dcgm_exporter::is_head; then
    printf '%s' "$DCGM_EXPORTER_SHARED"
  elif [[ $NODE_FAMILY != parallelcluster && $(dcgm_exporter::jobs) == "$DCGM_EXPORTER_JOBS" ]]; then
    printf '%s' "$DCGM_EXPORTER_PARTS"
  fi
}

# The folder with a file for each GPU, in which its jobs are
dcgm_exporter::jobs() {
  local hook
  for hook in "$ULTRACLUSTER_ROOT"/opt/slurm/etc/*/700_dcgm_job_map_* "$ULTRACLUSTER_ROOT"/opt/slurm/etc/*/*/700_dcgm_job_map_*; do
    [[ ! -e $hook ]] || { printf '%s' "$DCGM_EXPORTER_HYPERPOD_JOBS" && return 0; }
  done
  printf '%s' "$DCGM_EXPORTER_JOBS"
}

# What is not as it should be, one thing per line
dcgm_exporter::missing() {
  local source target
  telemetry::runs_here || return 0
  while read -r source target _; do
    files::same "$ULTRACLUSTER_HOME/$source" "$target" && [[ -x $ULTRACLUSTER_ROOT$target ]] || echo "$target"
  done < <(dcgm_exporter::parts)
  ! dcgm_exporter::is_head || return 0
  telemetry::has_user "$TELEMETRY_EXPORTERS" || echo "its user"
  files::same "$ULTRACLUSTER_HOME/metrics/dcgm_counters.csv" "$DCGM_EXPORTER_COUNTERS" || echo "$DCGM_EXPORTER_COUNTERS"
  [[ $(cat "$ULTRACLUSTER_ROOT$DCGM_EXPORTER_ENVIRONMENT" 2>/dev/null) == "$(dcgm_exporter::environment)" ]] || echo "$DCGM_EXPORTER_ENVIRONMENT"
  telemetry::unit_missing metrics_dcgm_exporter.service "$DCGM_EXPORTER_UNIT"
}

dcgm_exporter::environment() {
  printf 'DCGM_EXPORTER_COLLECTORS=%s\nDCGM_EXPORTER_INTERVAL=%s000\nDCGM_HPC_JOB_MAPPING_DIR=%s\n' \
    "$DCGM_EXPORTER_COUNTERS" "${CLUSTER_METRICS_SCRAPE_SECONDS:-}" "$(dcgm_exporter::jobs)"
}

dcgm_exporter::needs() {
  [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]] || dcgm_exporter::is_head || software::lacking dcgm-exporter "$(dcgm_exporter::version)"
}

dcgm_exporter::install() {
  if [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]]; then
    dcgm_exporter::take_away
    return 0
  fi
  if ! dcgm_exporter::is_head; then
    contract::fits dcgm-exporter "$(dcgm_exporter::version)" || dcgm_exporter::program
  fi
  telemetry::runs_here || return 0
  # What runs the parts is named by Slurm's settings: it comes last.
  files::install_missing < <(dcgm_exporter::parts)
  ! dcgm_exporter::is_head || return 0
  mkdir -p "$ULTRACLUSTER_ROOT$(dcgm_exporter::jobs)"
  telemetry::user "$TELEMETRY_EXPORTERS"
  files::install "$ULTRACLUSTER_HOME/metrics/dcgm_counters.csv" "$DCGM_EXPORTER_COUNTERS"
  dcgm_exporter::environment | files::write "$DCGM_EXPORTER_ENVIRONMENT"
  telemetry::unit metrics_dcgm_exporter.service "$DCGM_EXPORTER_UNIT"
}

dcgm_exporter::program() {
  software::install dcgm-exporter
  software::clean dcgm-exporter
  systemctl disable "$DCGM_EXPORTER_OWN" 2>/dev/null || true
  systemctl stop "$DCGM_EXPORTER_OWN" 2>/dev/null || true
}

# The package stays: to remove packages from a node with jobs is not worth it. So does what runs the parts: others use it.
dcgm_exporter::take_away() {
  local part
  telemetry::take_away "$DCGM_EXPORTER_UNIT"
  rm -f -- "$ULTRACLUSTER_ROOT$DCGM_EXPORTER_ENVIRONMENT"
  for part in prolog epilog; do
    rm -f -- "$ULTRACLUSTER_ROOT$DCGM_EXPORTER_PARTS/$part.d/$DCGM_EXPORTER_PART"
    ! dcgm_exporter::is_head || rm -f -- "$ULTRACLUSTER_ROOT$DCGM_EXPORTER_SHARED/$part.d/$DCGM_EXPORTER_PART"
  done
}

dcgm_exporter::verify() {
  local missing
  if [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]]; then
    step::message "taken away"
    return 0
  fi
  missing=$(dcgm_exporter::missing)
  if dcgm_exporter::is_head; then
    [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
    step::message "in the folders that nodes share"
    return 0
  fi
  step::about dcgm-exporter
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  software::proven dcgm-exporter "$(dcgm_exporter::version)" "jobs of GPUs: $(dcgm_exporter::jobs)"
}
