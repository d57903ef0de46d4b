#!/usr/bin/env bats
# The steps of metrics: exporters, collectors and the agent, on nodes of clusters that collect metrics, and nothing on others.
# shellcheck disable=SC2016 # Python expands it

load helpers
load software

readonly URL=https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0123/api/v1/remote_write
readonly METRICS="cluster['metrics'] = {'scrape_seconds': 30, 'max_series_per_node': 5000, 'region': 'us-east-1',
  'labels': {'cluster': 'dev', 'node_group': 'gpu'}, 'remote_write_url': '$URL'}"
readonly -a ALL_OF_THEM=(node_exporter dcgm_exporter metrics)

# shellcheck disable=SC2034 # node::fresh reads it
node::template() { TEMPLATE=$BATS_FILE_TMPDIR/node-cuda-; }

scenario() {
  software::shared
  HAVE=cuda software::node
  software::lock
  software::done datacenter-gpu-manager-4-core 1:4.7.0-1
  touch "$FAKE/units/nvidia-dcgm"/{enabled,active}
  : >"$ULTRACLUSTER_ROOT/etc/passwd"
  mkdir -p "$ULTRACLUSTER_ROOT/etc/enroot"
  [[ -e $SCRIPTS/metrics/main.py ]] || echo 'pass' >"$SCRIPTS/metrics/main.py"
  [[ -e $SCRIPTS/files/ultracluster_metrics.py ]] || echo 'pass' >"$SCRIPTS/files/ultracluster_metrics.py"
  cluster_json "$METRICS"
  forget_calls
}

is_enabled() { [[ -e $FAKE/units/${1%.service}/enabled && -e $FAKE/units/${1%.service}/active ]] || { echo "$1 does not run" && return 1; }; }

@test "a GPU node has exporters, collectors and an agent, once" {
  run run_steps "${ALL_OF_THEM[@]}"
  assert::status 0
  assert::states node_exporter=installed dcgm_exporter=installed metrics=installed
  local unit
  for unit in ultracluster-{node-exporter,dcgm-exporter,collectors,agent}.service ultracluster-agent-refresh.timer run-ultracluster-training.mount; do
    is_enabled "$unit"
  done
  [[ ! -e $FAKE/units/ultracluster-neuron ]]
  assert::equal "prometheus, version 3.13.1 (branch: HEAD)" "$("$ULTRACLUSTER_ROOT/opt/ultracluster/prometheus/prometheus")"
  grep -q '^ultracluster-metrics:' "$ULTRACLUSTER_ROOT/etc/passwd"
  grep -q '^ultracluster-agent:' "$ULTRACLUSTER_ROOT/etc/passwd"
  assert::equal $'DCGM_EXPORTER_COLLECTORS=/opt/ultracluster/metrics/dcgm_counters.csv\nDCGM_EXPORTER_INTERVAL=30000\nDCGM_HPC_JOB_MAPPING_DIR=/run/ultracluster/gpu-jobs' \
    "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/metrics-dcgm")"
  assert::equal SCRAPE_SECONDS=30 "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/metrics")"
  [[ -x $ULTRACLUSTER_ROOT/opt/ultracluster/prolog.d/20_ultracluster_dcgm && -x $ULTRACLUSTER_ROOT/opt/ultracluster/prolog && -x $ULTRACLUSTER_ROOT/opt/ultracluster/epilog ]]
  forget_calls
  run run_steps "${ALL_OF_THEM[@]}"
  assert::states node_exporter=already dcgm_exporter=already metrics=already
  assert::no_changes
  assert::never_called curl
}

@test "a cluster without metrics has nothing of it" {
  cluster_json 'del cluster["metrics"]'
  run run_steps "${ALL_OF_THEM[@]}"
  assert::states node_exporter=skipped dcgm_exporter=skipped metrics=skipped
  assert::no_changes
}

@test "what was there is taken away" {
  run_steps "${ALL_OF_THEM[@]}" >/dev/null 2>&1
  cluster_json 'del cluster["metrics"]'
  run run_steps "${ALL_OF_THEM[@]}"
  assert::status 0
  assert::states node_exporter=installed dcgm_exporter=installed metrics=installed
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT"/{etc/systemd/system,opt/ultracluster/{metrics*,node-exporter,prometheus,python,*.d},etc/ultracluster/metrics*,var/lib/ultracluster*/metrics*,etc/enroot} -type f 2>/dev/null)"
  assert::equal '' "$(find "$FAKE/units" -path '*ultracluster*' -name enabled)"
  forget_calls
  run run_steps "${ALL_OF_THEM[@]}"
  assert::states node_exporter=skipped dcgm_exporter=skipped metrics=skipped
  assert::no_changes
}

@test "a node without GPUs has nothing of theirs; Trainium has its own" {
  cluster_json 'gpu.update(accelerator="none", accelerators=0, efa_interfaces=0)'
  run run_steps "${ALL_OF_THEM[@]}"
  assert::status 0
  assert::states node_exporter=installed dcgm_exporter=skipped metrics=installed
  [[ ! -e $ULTRACLUSTER_ROOT/opt/ultracluster/prolog && ! -e $ULTRACLUSTER_ROOT/etc/ultracluster/metrics-dcgm ]]
  node::renew
  echo 'pass' >"$SCRIPTS/metrics/neuron.py"
  cluster_json 'gpu.update(accelerator="neuron", accelerators=16)'
  run run_steps "${ALL_OF_THEM[@]}"
  assert::states node_exporter=installed dcgm_exporter=skipped metrics=installed
  is_enabled ultracluster-neuron.service
}

@test "controllers and login nodes send, too; training jobs write on compute nodes only" {
  node::is_login
  run run_steps "${ALL_OF_THEM[@]}"
  assert::status 0
  assert::states node_exporter=installed dcgm_exporter=skipped metrics=installed
  [[ ! -e $FAKE/units/run-ultracluster-training.mount ]]
}

@test "HyperPod's image keeps the jobs of GPUs itself: its files are read, and no part is added" {
  mkdir -p "$ULTRACLUSTER_ROOT/opt/slurm/etc/prolog.d"
  : >"$ULTRACLUSTER_ROOT/opt/slurm/etc/prolog.d/700_dcgm_job_map_prolog.sh"
  run run_steps dcgm_exporter
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/metrics-dcgm")" DCGM_HPC_JOB_MAPPING_DIR=/run/slurm/dcgm-job-mapping
  [[ ! -e $ULTRACLUSTER_ROOT/opt/ultracluster/prolog.d ]]
}

@test "what is not locked is not installed: the view is degraded, and the node joins, strict or not" {
  release::change 'for name in ("node-exporter", "prometheus"): components[name]["artifacts"][0].update(sha256=None, integrity="to-be-locked")'
  local strict dcgm=installed
  for strict in False True; do
    cluster_json "cluster['strict'] = $strict"
    run run_steps "${ALL_OF_THEM[@]}"
    assert::status 0
    assert::states node_exporter=degraded dcgm_exporter=$dcgm metrics=degraded
    dcgm=already
    assert::contains "$(tail -n 1 "$LOG")" "prometheus: no metrics of it reach the workspace (prometheus-3.13.1.linux-amd64.tar.gz of release 2026.11 is not locked"
  done
}

@test "a release without them, an exporter that does not start, a user that cannot be made: the node joins" {
  release::change 'del components["node-exporter"]'
  mkdir -p "$FAKE/units/ultracluster-dcgm-exporter" && touch "$FAKE/units/ultracluster-dcgm-exporter/stays_down"
  run run_steps "${ALL_OF_THEM[@]}"
  assert::status 0
  assert::states node_exporter=degraded dcgm_exporter=degraded metrics=installed
  assert::contains "$(cat "$LOG")" "node-exporter: no metrics of the node itself (release 2026.11 has no node-exporter)"
  assert::contains "$(cat "$LOG")" "dcgm-exporter: no metrics of its GPUs (not as it should be: ultracluster-dcgm-exporter.service does not run (journalctl -u ultracluster-dcgm-exporter.service))"
  node::renew
  touch "$FAKE/no_useradd"
  run run_steps "${ALL_OF_THEM[@]}"
  assert::status 0
  assert::states node_exporter=degraded dcgm_exporter=degraded metrics=degraded
}

@test "a deploy that did not tell the workspace degrades the view" {
  cluster_json 'del cluster["metrics"]["remote_write_url"]'
  run run_steps metrics
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "cluster.json does not state where metrics go"
}

@test "a configuration that Prometheus refuses degrades the view, with its reason" {
  run_steps metrics >/dev/null 2>&1
  mkdir -p "$ULTRACLUSTER_ROOT/run/ultracluster/agent"
  echo '{}' >"$ULTRACLUSTER_ROOT/run/ultracluster/agent/prometheus.yml"
  printf '#!/bin/bash\n[[ $* == "check config --agent "* ]] && printf "Checking\\n  FAILED: no such field\\n" && exit 1\n' \
    >"$ULTRACLUSTER_ROOT/opt/ultracluster/prometheus/promtool"
  chmod +x "$ULTRACLUSTER_ROOT/opt/ultracluster/prometheus/promtool"
  run run_steps metrics
  assert::status 0
  assert::states metrics=degraded
  assert::contains "$(tail -n 1 "$LOG")" "the agent's configuration is refused:   FAILED: no such field"
}

@test "values that would break a configuration are refused" {
  cluster_json 'cluster["metrics"]["remote_write_url"] = "https://a.example/\nsigv4: {}"'
  run run_steps metrics
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "metrics.remote_write_url is "
}

@test "the instance metadata is opened for the agent's new user" {
  mkdir -p "$ULTRACLUSTER_ROOT/usr/local/sbin"
  cp "$SCRIPTS/files/metadata_access.sh" "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-metadata"
  chmod +x "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-metadata"
  run run_steps metrics
  assert::status 0
  assert::contains "$(cat "$FAKE/calls")" "nft -f -"
}

@test "the settings tell the collectors what the node should have" {
  run_steps metrics >/dev/null 2>&1
  "$PYTHON" -IS - "$ULTRACLUSTER_ROOT/opt/ultracluster/metrics_agent/told.json" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
wanted = dict(node_group="gpu", role="compute", instance_type="p5.48xlarge", accelerators=8, efa_interfaces=32, accelerator="nvidia",
              lustre_path="/fsx", lustre_efa=False, scrape_seconds=30, orchestrator="hyperpod-slurm", release="2026.11", shared="/home")
assert wanted.items() <= told.items(), told
PYTHON
}

@test "killed at any change of the exporters, the next run completes it" {
  kill_everywhere "node_exporter dcgm_exporter" 12
}

@test "killed at any change of collectors and agent, the next run completes it" {
  kill_everywhere metrics 12
}

# --- jobs of GPUs ---

# job PART ID GPUS: what Slurm runs before or after a job
job() { on_node SLURM_JOB_ID="$2" SLURM_JOB_GPUS="${3-}" "$SCRIPTS/files/metrics_gpu_jobs_$1.sh"; }

gpu_jobs() { (cd "$ULTRACLUSTER_ROOT/run/ultracluster/gpu-jobs" && grep -H . [0-9]* 2>/dev/null | tr '\n' ' '); }

@test "a job is noted at each of its GPUs, and taken out after it" {
  job prolog 7 0,1
  job prolog 8 1,2
  job prolog 8 1,2
  assert::equal "0:7 1:7 1:8 2:8 " "$(gpu_jobs)"
  job epilog 7
  assert::equal "1:8 2:8 " "$(gpu_jobs)"
  job epilog 8 1,2
  assert::equal "" "$(gpu_jobs)"
}

@test "a job without GPUs, odd values, and a folder that cannot be written fail no job" {
  local gpus
  for gpus in '' all '../x' '0;reboot' 'GPU-1'; do
    run job prolog 7 "$gpus"
    assert::status 0
  done
  [[ ! -e $ULTRACLUSTER_ROOT/run/ultracluster/gpu-jobs ]]
  run job epilog x
  assert::status 0
  mkdir -p "$ULTRACLUSTER_ROOT/run/ultracluster"
  echo >"$ULTRACLUSTER_ROOT/run/ultracluster/gpu-jobs"
  run job prolog 7 0
  assert::status 0
  run job epilog 7 0
  assert::status 0
}

@test "jobs that begin and end at once lose nothing" {
  local id
  for id in {1..12}; do job prolog "$id" 0,1 & done
  wait
  for id in {1..11}; do job epilog "$id" & done
  wait
  assert::equal "0:12 1:12 " "$(gpu_jobs)"
}
