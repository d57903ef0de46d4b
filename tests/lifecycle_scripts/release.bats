#!/usr/bin/env bats
# Nodes that lack all of their release, part of it, or nothing; what the release says, and what it does not.
# shellcheck disable=SC2030,SC2031 # a test is a process of its own

load helpers
load software

# message STEP: of the last run
message() {
  "$REAL/python3" -IS -c '
import json, sys
print([line["message"] for line in map(json.loads, open(sys.argv[1])) if line.get("step") == sys.argv[2]][-1])' "$REPORT" "$1"
}

# timed WHAT: runs the entry; `make bench` reads the milliseconds that it took
timed() {
  local -r started=${EPOCHREALTIME/[.,]/}
  run on_init_complete
  [[ -z ${ULTRACLUSTER_BENCH:-} ]] || printf '%s %d\n' "$1" "$(((${EPOCHREALTIME/[.,]/} - started) / 1000))" >>"$ULTRACLUSTER_BENCH"
}

@test "a bare node is brought to the release; a second run changes nothing" {
  # HyperPod has mounted by then.
  mkdir "$ULTRACLUSTER_ROOT"/{fsx,home}
  printf '%s\n' '50 1 0:60 / /fsx rw - lustre 10.1.0.9@tcp:/abcdefgh rw' '51 1 0:61 / /home rw - nfs4 fs-4567:/fsx rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  timed full-install
  assert::status 0
  assert::states metadata=skipped limits=installed nvidia_driver=installed cuda_runtime=installed efa=installed libfabric=already nccl=installed \
    gdrcopy=installed ofi_nccl=already nccl_tests=skipped neuron=skipped lustre_client=installed lustre_tuning=installed \
    nvidia_fs=skipped lustre_efa=skipped filesystems=skipped session_user=skipped state_pull=skipped users=skipped directory=skipped scratch=installed container_storage=skipped container_toolkit=installed enroot=installed \
    enroot_config=installed pyxis=installed dcgm=installed nixl=skipped environment=installed holds=installed job_access=skipped health=skipped node_exporter=skipped dcgm_exporter=skipped metrics=skipped slurm_conf=skipped job_ssh=skipped slurm_admin=skipped logs=installed proof=already
  # The plugin comes with EFA: its source is not fetched.
  assert::never_called 'curl.*aws-ofi-nccl'
  assert::called "efa_installer.sh -y --mpi=openmpi4"
  # Downloads of all steps begin before the first installation.
  local -r downloads=$(grep -n 'downloading for .*pyxis' "$LOG" | cut -d : -f 1)
  local -r first_install=$(grep -n 'cuda_runtime: installed' "$LOG" | cut -d : -f 1)
  assert::equal yes "$( ((downloads < first_install)) && echo yes)"
  # Nothing of downloads and builds stays.
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT/var/tmp" -mindepth 1)"
  forget_calls
  local -r before=$(snapshot)
  timed no-op
  assert::status 0
  assert::no_changes
  assert::never_called curl
  assert::equal "$before" "$(snapshot)"
  assert::equal 0 "$(tail -n 25 "$REPORT" | grep -c '"installed"')"
}

@test "a reboot between steps: the next run goes on from what is there" {
  run_steps nvidia_driver cuda_runtime efa >/dev/null 2>&1
  rm -rf "$ULTRACLUSTER_ROOT/run"
  run run_steps nvidia_driver cuda_runtime efa libfabric gdrcopy
  assert::status 0
  assert::states nvidia_driver=already cuda_runtime=already efa=already libfabric=already gdrcopy=installed
}

@test "controllers and login nodes need little" {
  node::is_login
  cluster_json 'cluster["mounts"] = {}'
  run run_steps nvidia_driver cuda_runtime efa libfabric nccl ofi_nccl gdrcopy neuron lustre_client container_toolkit enroot dcgm environment
  assert::status 0
  assert::states nvidia_driver=skipped cuda_runtime=skipped efa=skipped libfabric=skipped nccl=skipped ofi_nccl=skipped \
    gdrcopy=skipped neuron=skipped lustre_client=skipped container_toolkit=skipped enroot=skipped dcgm=skipped environment=installed
}

@test "a compute node without accelerators skips their steps" {
  cluster_json 'gpu.update(accelerator="none", accelerators=0, efa_interfaces=0)'
  run run_steps nvidia_driver efa ofi_nccl gdrcopy neuron container_toolkit dcgm enroot
  assert::status 0
  assert::states nvidia_driver=skipped efa=skipped ofi_nccl=skipped gdrcopy=skipped neuron=skipped container_toolkit=skipped \
    dcgm=skipped enroot=installed
}

@test "a Trainium node gets driver, runtime and collectives" {
  node::type trn2.48xlarge
  run run_steps nvidia_driver nccl neuron
  assert::status 0
  assert::states nvidia_driver=skipped nccl=skipped neuron=installed
  assert::contains "$(grep '^apt-get' "$FAKE/calls")" "install aws-neuronx-dkms=2.30.2.0*"
  run run_steps neuron
  assert::states neuron=already
}

@test "what is newer on the image stays, and the report says so" {
  mkdir -p "$ULTRACLUSTER_ROOT/usr/bin"
  software::script /usr/bin/enroot 4.3.0
  run run_steps enroot
  assert::status 0
  assert::states enroot=already
  assert::equal "kept-newer: the release has 4.2.1; enroot" "$(message enroot)"
  assert::never_called apt-get
}

@test "what is newer and must be exact is refused, never downgraded" {
  software::script /usr/bin/enroot 4.3.0
  cluster_json 'cluster["strict"] = True'
  run run_steps enroot
  assert::status 1
  assert::last_log_line "FAILED enroot: enroot is 4.3.0 on this image, newer than 4.2.1 of release 2026.11, which allows no other: choose an image or release that fits"
  assert::no_changes
}

@test "what is older than the floor is brought up" {
  software::script /usr/bin/enroot 4.1.2
  FLOORS=enroot=4.2.0 software::lock
  run run_steps enroot
  assert::status 0
  assert::states enroot=installed
}

@test "an unknown release is refused, and those that exist are named" {
  cluster_json 'cluster["release"] = "2030.01"'
  run on_init_complete
  assert::status 1
  assert::last_log_line "FAILED release: there is no release '2030.01'; there are: 2026.07, 2026.11"
  assert::no_changes
}

@test "a lock file that cannot be read, or is of another schema, is refused" {
  echo '{"schema": 1,' >"$SCRIPTS/releases/2026.11.lock"
  run run_steps nccl
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED release: cannot read $SCRIPTS/releases/2026.11.lock: JSONDecodeError"
  echo '{"schema": 3}' >"$SCRIPTS/releases/2026.11.lock"
  run run_steps nccl
  assert::contains "$(tail -n 1 "$LOG")" "has schema 3, these scripts read schema 2"
}

@test "the wrong processor is told, with those that the release has" {
  REQUIRED=enroot software::lock
  echo aarch64 >"$FAKE/processor"
  run run_steps enroot
  assert::status 1
  assert::last_log_line "FAILED enroot: release 2026.11 has no enroot for ubuntu22.04 on aarch64, only for: ubuntu22.04 on x86_64, ubuntu24.04 on x86_64"
}

@test "a file without a checksum is never installed" {
  export REQUIRED=enroot
  release::change 'components["enroot"]["artifacts"][0].pop("sha256"); components["enroot"]["artifacts"][0]["integrity"] = "to-be-locked"'
  run run_steps enroot
  assert::status 1
  assert::last_log_line "FAILED enroot: enroot_4.2.1-1_amd64.deb of release 2026.11 is not locked: it has no checksum (run: ultracluster software lock)"
  assert::no_changes
  assert::never_called curl
}

@test "an optional component is installed where cluster.json asks for it" {
  HAVE="cuda efa" node::renew
  cluster_json 'cluster["components"] = ["nccl-tests", "nixl"]'
  run run_steps nccl_tests nixl
  assert::status 0
  assert::states nccl_tests=installed nixl=installed
  [[ -x $ULTRACLUSTER_ROOT/opt/ultracluster/nccl-tests-2.19.6/all_reduce_perf ]]
  PYTHONPATH=$ULTRACLUSTER_ROOT/opt/ultracluster/nixl-1.5.1 "$PYTHON" -c 'from nixl._api import nixl_agent; import nixl, nixl_cu13'
  [[ ! -e $ULTRACLUSTER_ROOT/opt/ultracluster/nixl-1.5.1/nixl_cu13-1.5.1.data ]]
}

@test "with a mirror everything comes from it, and no public host is asked" {
  local -r digest=$(sha256sum "$FAKE/web/enroot_4.2.1-1_amd64.deb")
  local -r folder=$FAKE/s3/bucket/mirror/2026.11/${digest:0:16}
  mkdir -p "$folder"
  cp "$FAKE/web/enroot_4.2.1-1_amd64.deb" "$folder"
  cluster_json 'cluster["mirror"] = "s3://bucket/mirror"'
  run run_steps enroot
  assert::status 0
  assert::never_called curl
  # A package of a public repository is refused, unless the image has it.
  export REQUIRED=nccl
  release::change 'components["nccl"]["packages"][0]["repository"] = {"url": "https://example.org/repo/", "suite": "/"}'
  run run_steps nccl
  assert::status 1
  assert::last_log_line "FAILED nccl: nccl comes from a public repository, this cluster reads only s3://bucket/mirror, and release 2026.11 records no packages of a mirror for ubuntu22.04 on x86_64: run ultracluster software mirror and deploy, or use an image that has it"
}

@test "on Amazon Linux 2023 packages come through dnf, and versionlock holds them" {
  rm "$SANDBOX"/bin/{apt-get,dpkg,dpkg-query,apt-mark} "$FAKE/packages/linux-image-aws"
  printf 'ID="amzn"\nVERSION_ID="2023"\n' >"$ULTRACLUSTER_ROOT/etc/os-release"
  run run_steps container_toolkit holds
  assert::status 0
  assert::called "dnf --assumeyes --setopt=install_weak_deps=False install nvidia-container-toolkit-1.20.1-1"
  assert::equal "nvidia-container-toolkit-0:1.20.1-1.* nvidia-fabricmanager-0:595.91.07-1.*" \
    "$(paste -sd ' ' "$ULTRACLUSTER_ROOT/etc/dnf/plugins/versionlock.list")"
  forget_calls
  run run_steps container_toolkit holds
  assert::states container_toolkit=already holds=already
  assert::no_changes
}

@test "holds cover what must keep its version, and nothing restarts the daemons of jobs" {
  local name
  for name in nvidia-fabricmanager-595 libnccl2 datacenter-gpu-manager-4-core efa libfabric1-aws enroot nvidia-open-595 vim; do
    echo 1.0-1 >"$FAKE/packages/$name"
  done
  run run_steps holds
  assert::status 0
  assert::equal "datacenter-gpu-manager-4-core efa enroot libfabric1-aws libnccl2 linux-image-aws nvidia-fabricmanager nvidia-fabricmanager-595 nvidia-open-595" \
    "$(find "$FAKE/held" -type f -printf '%f\n' | sort | paste -sd ' ')"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/needrestart/conf.d/99-ultracluster.conf")" "slurmd"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/apt/apt.conf.d/99-ultracluster")" 'Unattended-Upgrade::Automatic-Reboot "false";'
  forget_calls
  run run_steps holds
  assert::states holds=already
  assert::no_changes
  # An installer that brings a newer EFA finds its packages free.
  run run_steps efa
  assert::called "apt-mark unhold efa libfabric1-aws"
}

@test "Amazon Linux without the plugin for holds: degraded, with the reason" {
  rm "$SANDBOX"/bin/{apt-get,dpkg,dpkg-query,apt-mark,dnf} "$FAKE/packages/linux-image-aws"
  printf 'ID="amzn"\nVERSION_ID="2023"\n' >"$ULTRACLUSTER_ROOT/etc/os-release"
  printf '#!/bin/bash\necho "No such command: versionlock" >&2\nexit 1\n' >"$SANDBOX/bin/dnf"
  chmod +x "$SANDBOX/bin/dnf"
  echo 6.12.1-1 >"$FAKE/packages/kernel6.12"
  run run_steps holds
  assert::status 0
  assert::states holds=degraded
  assert::last_log_line "DEGRADED holds: holds: an upgrade may replace kernel or driver (cannot hold kernel6.12 nvidia-fabricmanager: dnf has no versionlock here (package python3-dnf-plugin-versionlock))"
}

@test "what the release leaves open, cluster.json may complete; what it has locked stays" {
  local -r digest=$(sha256sum "$FAKE/web/enroot_4.2.1-1_amd64.deb" | cut -d ' ' -f 1)
  release::change 'components["enroot"]["artifacts"][0].pop("sha256")'
  cluster_json 'cluster["locked"] = {"files": {"enroot_4.2.1-1_amd64.deb": "sha256:'"$digest"'"}, "keys": {}}'
  run run_steps enroot
  assert::states enroot=installed
  # Another digest for a file that the release has locked, or one that is none, changes nothing.
  node::renew
  cluster_json 'cluster["locked"] = {"files": {"enroot_4.2.1-1_amd64.deb": "sha256:'"${digest//[0-9]/0}"'", "pyxis-0.24.0.tar.gz": "md5:1"}}'
  LOCK_CHANGES='components["pyxis"]["artifacts"][0].pop("sha256")' software::lock
  run run_steps enroot pyxis
  assert::states enroot=installed pyxis=degraded
  assert::contains "$(tail -n 1 "$LOG")" "pyxis-0.24.0.tar.gz of release 2026.11 is not locked"
  cluster_json 'cluster["locked"] = "all"'
  run run_steps enroot
  assert::contains "$(tail -n 1 "$LOG")" "FAILED node: $SCRIPTS/cluster.json: locked is 'all', not an object with files and keys"
}

@test "a key that the release leaves open may come from cluster.json, its own is never replaced" {
  release::change 'components["nccl"]["packages"][0]["repository"] = {"url": "https://example.org/repo/", "key_url": "https://example.org/key"}; components["dcgm"]["packages"][0]["repository"] = {"url": "https://example.org/repo/", "key_url": "https://example.org/key", "key_fingerprint": "B" * 40}'
  cluster_json 'cluster["locked"] = {"keys": {"https://example.org/key": "a" * 40}}'
  run library release "NODE_OS=ubuntu22.04 NODE_ARCH=x86_64 CLUSTER_RELEASE=2026.11 CLUSTER_LOCKED='{\"keys\": {\"https://example.org/key\": \"$(printf 'a%.0s' {1..40})\"}}'
    export CLUSTER_LOCKED NODE_OS NODE_ARCH CLUSTER_RELEASE
    release::load; release::facts; echo \"\${RELEASE[nccl.repository.key_fingerprint]} \${RELEASE[dcgm.repository.key_fingerprint]}\""
  assert::contains "$output" "$(printf 'A%.0s' {1..40}) $(printf 'B%.0s' {1..40})"
  # Without one, it degrades what is wanted.
  cluster_json 'cluster.pop("locked")'
  run run_steps nccl
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED nccl: nccl: programs have to bring their own NCCL (nccl: repository https://example.org/repo/ is not locked"
}
