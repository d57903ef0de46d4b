#!/usr/bin/env bats
# MIG instances of a node's GPUs, at provisioning and at boot.

load helpers

readonly MIXED=4g.40gb:0,1g.10gb:4,1g.10gb:5,1g.10gb:6

scenario() {
  mkdir -p "$FAKE/gpus" "$FAKE/units/nvidia-dcgm"
  echo 2 >"$FAKE/gpus/count"
  cluster_json "gpu.update(accelerator='nvidia', accelerators=2, mig=['$MIXED', '$MIXED'])"
}

boot() { on_node "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-mig" up; }

instances() { cut -d ' ' -f 1 "$FAKE/gpus/$1/mig" | tr '\n' ' '; }

@test "every GPU is cut before slurmd counts, and left alone while it stays so" {
  run run_steps mig
  assert::status 0
  assert::equal "4g.40gb 1g.10gb 1g.10gb 1g.10gb " "$(instances 1)"
  [[ -e $FAKE/units/ultracluster-mig/enabled ]]
  grep -q '^Before=slurmd.service' "$ULTRACLUSTER_ROOT/etc/systemd/system/ultracluster-mig.service"
  forget_calls
  run run_steps mig
  assert::status 0
  assert::never_called 'nvidia-smi mig'
  assert::never_called 'nvidia-smi -i'
}

@test "a reboot takes the instances away, and boot makes them again" {
  run_steps mig
  rm "$FAKE"/gpus/*/mig "$FAKE"/gpus/*/mig.mode.current
  run boot
  assert::status 0
  assert::equal "4g.40gb 1g.10gb 1g.10gb 1g.10gb " "$(instances 0)"
}

@test "a GPU of the layout that stays whole leaves MIG mode, the others are not touched" {
  run_steps mig
  cluster_json "gpu['mig'] = ['$MIXED', '']"
  forget_calls
  run run_steps mig
  assert::status 0
  [[ ! -e $FAKE/gpus/1/mig && ! -e $FAKE/gpus/1/mig.mode.current ]]
  assert::never_called 'nvidia-smi .*-i 0 '
}

@test "other instances are replaced, DCGM lets go of the GPUs and runs again" {
  mkdir -p "$FAKE/gpus/0"
  echo Enabled >"$FAKE/gpus/0/mig.mode.current"
  echo '7g.80gb 0 8' >"$FAKE/gpus/0/mig"
  touch "$FAKE/units/nvidia-dcgm/active"
  run run_steps mig
  assert::status 0
  assert::equal "4g.40gb 1g.10gb 1g.10gb 1g.10gb " "$(instances 0)"
  assert::called 'systemctl stop nvidia-dcgm.service'
  [[ -e $FAKE/units/nvidia-dcgm/active ]]
}

@test "a GPU in use is never touched, and says who uses it" {
  mkdir -p "$FAKE/gpus/1"
  echo '4242, python3' >"$FAKE/gpus/1/user"
  run run_steps mig
  assert::status 1
  assert::contains "$output" "GPU 1 is in use by process 4242, python3: its MIG layout is left as it is"
  [[ ! -e $FAKE/gpus/0/mig ]]
}

@test "GPUs that a running slurmd may have given to jobs are not touched" {
  run_steps mig
  rm "$FAKE/gpus/1/mig"
  touch "$FAKE/units/slurmd/active"
  run boot
  assert::status 1
  assert::contains "$output" "GPU 1 has MIG mode Enabled with no instances instead of 1g.10gb 1g.10gb 1g.10gb 4g.40gb"
  assert::contains "$output" "slurmd runs"
  [[ ! -e $FAKE/gpus/1/mig ]]
}

@test "what a GPU does not take keeps the node away from Slurm" {
  mkdir -p "$FAKE/gpus/0"
  touch "$FAKE/gpus/0/refuses"
  run run_steps mig
  assert::status 1
  assert::contains "$output" "GPU 0 does not take MIG mode: "
  rm "$FAKE/gpus/0/refuses"
  touch "$FAKE/gpus/0/pending"
  run run_steps mig
  assert::status 1
  assert::contains "$output" "GPU 0 takes MIG mode only with a reset"
  rm "$FAKE/gpus/0/pending"
  cluster_json "gpu['mig'] = ['$MIXED,1g.10gb:3', '$MIXED']"
  run run_steps mig
  assert::status 1
  assert::contains "$output" "GPU 0 does not take $MIXED,1g.10gb:3: "
}

@test "a place that is taken is refused" {
  cluster_json "gpu['mig'] = ['1g.10gb:0,4g.40gb:0', '$MIXED']"
  run run_steps mig
  assert::status 1
  assert::contains "$output" "profile 4g.40gb: Insufficient Resources"
}

@test "a lost GPU is not passed over" {
  echo 1 >"$FAKE/gpus/count"
  run run_steps mig
  assert::status 1
  assert::contains "$output" "1 GPUs answer, and the layout is for 2"
}

@test "instances that a set-up says it made are read back" {
  mv "$SANDBOX/bin/nvidia-smi" "$SANDBOX/bin/nvidia-smi-true"
  # shellcheck disable=SC2016 # expanded when it runs
  printf '%s\n' '#!/bin/bash' '[[ $* != *-cgi* ]] || exit 0' 'exec "${0%/*}/nvidia-smi-true" "$@"' >"$SANDBOX/bin/nvidia-smi"
  chmod +x "$SANDBOX/bin/nvidia-smi"
  run run_steps mig
  assert::status 1
  assert::contains "$output" "after the set-up GPU 0 has MIG mode Enabled with no instances"
}

@test "a group without a layout keeps whole GPUs, a layout of another form ends the node" {
  cluster_json "gpu.pop('mig')"
  run run_steps mig
  assert::status 0
  assert::never_called nvidia-smi
  cluster_json "gpu['mig'] = ['1g.10gb:0; reboot']"
  run on_init_complete
  assert::status 1
  assert::contains "$output" "mig of group 'gpu'"
}
