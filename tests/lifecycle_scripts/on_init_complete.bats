#!/usr/bin/env bats
# The entry for OnInitComplete, on nodes of several kinds.

load helpers

@test "a fresh node gets limits and a striped scratch, and a second run finds everything" {
  local before
  run on_init_complete
  assert::status 0
  assert::states metadata=skipped limits=installed filesystems=skipped session_user=skipped state_pull=skipped users=skipped directory=skipped scratch=installed container_storage=skipped job_access=skipped health=skipped slurm_conf=skipped job_ssh=skipped slurm_admin=skipped
  assert::called "lvm vgcreate --yes ultracluster /dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1 /dev/nvme4n1 /dev/nvme5n1 /dev/nvme6n1 /dev/nvme7n1 /dev/nvme8n1 --config devices/use_devicesfile=0"
  assert::contains "$(grep 'lvm lvcreate' "$FAKE/calls")" "--stripes 8"
  assert::equal 1777 "$(stat --format %a "$ULTRACLUSTER_ROOT/scratch")"
  [[ -e $FAKE/units/ultracluster-scratch/enabled ]]
  # What runs at boot needs nothing of the folder that HyperPod copied the scripts to.
  [[ -x $ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-scratch ]]
  assert::contains "$(tail -n 1 "$LOG")" " s: metadata limits filesystems session_user state_pull users directory scratch container_storage job_access health slurm_conf job_ssh slurm_admin"
  assert::contains "$(tail -n 1 "$LOG")" "READY after "
  before=$(snapshot)
  forget_calls
  run on_init_complete
  assert::status 0
  assert::states metadata=skipped limits=already filesystems=skipped session_user=skipped state_pull=skipped users=skipped directory=skipped scratch=already container_storage=skipped job_access=skipped health=skipped slurm_conf=skipped job_ssh=skipped slurm_admin=skipped
  assert::no_changes
  assert::equal "$before" "$(snapshot)"
  # The report is JSON, one line per step with every verb, and one for each run.
  "$REAL/python3" -IS - "$REPORT" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert ["step" in line for line in lines] == ([True] * (len(lines) // 2 - 1) + [False]) * 2, lines
runs = [line for line in lines if "run" in line]
lines = [line for line in lines if "step" in line]
assert [(line["run"], line["state"], line["degraded"]) for line in runs] == [("ended", "ready", [])] * 2, runs
assert runs[0]["entry"] == "hyperpod_on_init_complete" and runs[0]["image_family"] == "hyperpod-slurm", runs
assert runs[0]["kernel"] == "6.8.0-1039-aws" and runs[0]["seconds"] > 0, runs
half = len(lines) // 2
for state, some in (("installed", lines[:half]), ("already", lines[half:])):
    assert {line["step"]: line["state"] for line in some if line["state"] != "skipped"} == {"limits": state, "scratch": state}, some
assert lines[1]["verbs"] == {"detect": "absent", "install": "ok", "verify": "ok"}, lines[1]
assert lines[half + 1]["verbs"] == {"detect": "present", "verify": "ok"}, lines[half + 1]
for line in lines:
    assert isinstance(line["seconds"], float) and line["message"], line
    assert (line["group"], line["role"], line["release"]) == ("gpu", "compute", "2026.11"), line
PYTHON
}

@test "a node without local disks has no scratch" {
  node::is_login
  run on_init_complete
  assert::status 0
  assert::states metadata=skipped limits=installed filesystems=skipped session_user=skipped state_pull=skipped users=skipped directory=skipped scratch=skipped container_storage=skipped job_access=skipped health=skipped slurm_conf=skipped job_ssh=skipped slurm_admin=skipped
}

@test "without a resource configuration an image is being built" {
  rm "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  run on_init_complete
  assert::status 0
  assert::contains "$output" "an image is being built"
  assert::no_changes
  [[ ! -e $REPORT ]]
}

@test "SAGEMAKER_RESOURCE_CONFIG_PATH is followed" {
  run on_init_complete env SAGEMAKER_RESOURCE_CONFIG_PATH=/nowhere.json
  assert::status 0
  assert::contains "$output" "no /nowhere.json: an image is being built"
}
