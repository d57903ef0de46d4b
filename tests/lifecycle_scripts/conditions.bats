#!/usr/bin/env bats
# Images and moments that nobody wishes for: what breaks is told, and nothing breaks that need not.

load helpers
load software

@test "where everybody may write, nothing of ours is: hardened images allow no programs there" {
  local folder
  for folder in tmp var/tmp run/lock; do
    mkdir -p "$(dirname "$ULTRACLUSTER_ROOT/$folder")"
    echo "no folder" >"$ULTRACLUSTER_ROOT/$folder"
  done
  software::done cuda-toolkit-13-2 13.2.1-1
  run run_steps limits scratch efa gdrcopy nccl lustre_tuning enroot pyxis environment holds
  assert::status 0
  assert::states limits=installed scratch=installed efa=installed gdrcopy=installed nccl=installed lustre_tuning=installed enroot=installed pyxis=installed environment=installed holds=installed
}

@test "a full root disk is the reason in the last line" {
  echo 0 >"$FAKE/free_mib"
  echo 'limits::install() { false; }' >>"$SCRIPTS/steps/limits.sh"
  run run_steps limits
  assert::contains "$(tail -n 1 "$LOG")" "install stopped with status 1 at: false (the root disk is full)"
}

@test "what fails while the cause is looked for neither hides it nor is asked about again" {
  cat >>"$SCRIPTS/steps/limits.sh" <<'STEP'
df() { false; }
limits::install() { false; }
STEP
  run run_steps limits
  assert::contains "$(tail -n 1 "$LOG")" "install stopped with status 1 at: false"
  assert::equal 0 "$(grep -c 'disk is full' "$LOG")"
}

@test "a file that cannot be written is named" {
  touch "$ULTRACLUSTER_ROOT/etc/apt"
  run run_steps holds
  assert::contains "$(tail -n 1 "$LOG")" "(cannot write /etc/apt/preferences.d/ultracluster-nvidia)"
}

@test "an image without python3 is told at once" {
  rm "$REAL/python3"
  run on_init_complete
  assert::status 1
  assert::last_log_line "FAILED node: this image has no python3, with which the scripts read their configuration"
}

@test "somebody's file in the place of the probe of /scratch is left alone" {
  run run_steps scratch
  assert::status 0
  echo precious >"$SANDBOX/victim"
  ln -s "$SANDBOX/victim" "$ULTRACLUSTER_ROOT/scratch/.ultracluster-probe"
  run run_steps scratch
  assert::status 0
  assert::equal precious "$(cat "$SANDBOX/victim")"
}

@test "a link in the place of the folder for /scratch is not followed" {
  node::image_mount
  mkdir "$SANDBOX/victim"
  chmod 0700 "$SANDBOX/victim"
  ln -s "$SANDBOX/victim" "$ULTRACLUSTER_ROOT/opt/dlami/nvme/scratch"
  run run_steps scratch
  assert::contains "$(tail -n 1 "$LOG")" "/opt/dlami/nvme/scratch is a link that somebody has put there: remove it"
  assert::equal 700 "$(stat --format %a "$SANDBOX/victim")"
}

@test "a second try waits as long as a first one may take" {
  local entry minutes
  while read -r entry minutes; do
    run library entry "lock::hold() { echo \"waits \$2\"; return 1; }; unset ULTRACLUSTER_RUN_DEADLINE; entry::run $entry"
    assert::status 1
    assert::contains "$output" "waits $((60 * minutes))"
  done <<'CASES'
pcs_node 25
eks_user_data 12
hyperpod_on_create 45
CASES
}

@test "the AWS CLI is found where it is, whatever the PATH of the service" {
  # shellcheck disable=SC2016 # expands on the node
  run library entry 'PATH=/usr/bin:/bin; entry::path; echo "$PATH"'
  assert::contains ":$output:" ":/usr/local/bin:"
}

@test "scripts that cannot be unpacked are told in one last line" {
  cluster_json 'cluster["mounts"] = {}'
  { cat "$SCRIPTS/files/self_extracting.sh" && tar --create --gzip --directory "$SCRIPTS" .; } >"$SANDBOX/node.sh"
  mkdir -p "$ULTRACLUSTER_ROOT/opt"
  echo "no folder" >"$ULTRACLUSTER_ROOT/opt/ultracluster"
  run on_node bash "$SANDBOX/node.sh" pcs_node
  assert::status 1
  assert::contains "$(tail -n 1 <<<"$output")" "FAILED unpack: the scripts of this node cannot be put into $ULTRACLUSTER_ROOT/opt/ultracluster/unpacked/"
  assert::contains "$(tail -n 1 <<<"$output")" "which has 100000 MiB"
}

@test "PCS: mounts that cannot be written are no wrong use" {
  mkdir "$SCRIPTS/cluster.json.new"
  run on_node "$SCRIPTS/pcs_node.sh" --openzfs /home fs-2.fsx.us-east-2.amazonaws.com /fsx --group gpu
  assert::status 1
  assert::last_log_line "FAILED mounts: mounts, role and state cannot be written into cluster.json: see the line above"
}

@test "scripts from S3 on an image without python3" {
  rm "$REAL/python3"
  run on_node bash "$SCRIPTS/files/from_s3.sh" s3://scripts/dev/0123 pcs_node
  assert::status 1
  assert::equal "FAILED from_s3: this image has no python3, with which the scripts are compared with their hash" "$output"
}

@test "EKS: the image's own services bring the driver in while we look: they are waited for" {
  local unit module device
  for unit in nvidia-kmod-load nvidia-setup neuron-kmod-load; do
    node::renew
    module=nvidia device=p5.48xlarge
    if [[ $unit == neuron* ]]; then
      module=neuron device=trn2.48xlarge
      mkdir -p "$ULTRACLUSTER_ROOT/dev" && touch "$ULTRACLUSTER_ROOT/dev/neuron0"
      node::type trn2.48xlarge
    fi
    REQUIRED="nvidia-driver neuron-driver" FLOORS="neuron-driver=2.0" software::lock
    rm -f "$FAKE/modules/$module"
    mkdir -p "$FAKE/units/$unit"
    echo 4711 >"$FAKE/units/$unit/job"
    (until_true grep -qs "waiting for $unit.service" "$LOG" && echo 595.91.07 >"$FAKE/modules/$module" && rm "$FAKE/units/$unit/job") 3>&- &
    run run_steps "$([[ $module == neuron ]] && echo neuron || echo nvidia_driver)"
    assert::status 0
    assert::contains "$output" "waiting for $unit.service of the image"
    assert::contains "$output" "$device"
  done
}

@test "a service of the image that never ends is not waited for without end" {
  mkdir -p "$FAKE/units/nvidia-kmod-load"
  echo 4711 >"$FAKE/units/nvidia-kmod-load/job"
  run on_node ULTRACLUSTER_IMAGE_SECONDS=1 bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; entry::main nvidia_driver"
  assert::status 0
  assert::contains "$output" "nvidia-kmod-load.service of the image has not ended"
}
