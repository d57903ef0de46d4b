#!/usr/bin/env bats
# Images: what a node tells of its own, and what is taken away before one is made.
# shellcheck disable=SC2016,SC2034 # what `library` is given is expanded on the node; software.bash reads HAVE

load helpers
load software

# As `ssh NODE 'bash -s' <record.sh` does it
record() {
  ln -sf "$(type -P date)" "$REAL/date"
  on_node bash -s <"$REPOSITORY/lifecycle_scripts/image/record.sh"
}

# facts FIELD...: of the record on stdin
facts() {
  "$PYTHON" -IS -c 'import json, sys; facts = json.load(sys.stdin)["facts"]; print(*[json.dumps(facts[name]) for name in sys.argv[1:]])' "$@"
}

# A command on the node's PATH that prints these lines
command_on_node() {
  local -r name=$1
  shift
  { echo '#!/bin/bash' && printf 'echo %q\n' "$@"; } >"$SANDBOX/bin/$name"
  chmod +x "$SANDBOX/bin/$name"
}

full_node() {
  local version
  software::done cuda-toolkit-13-2 13.2.1-1
  mkdir -p "$ULTRACLUSTER_ROOT/usr/local/cuda-12.8" "$ULTRACLUSTER_ROOT"/usr/lib/x86_64-linux-gnu \
    "$ULTRACLUSTER_ROOT"/{opt/slurm/lib/slurm,etc/systemd/system,proc/self}
  "$SANDBOX/sources/aws-efa-installer/efa_installer.sh" -y
  touch "$ULTRACLUSTER_ROOT"/usr/lib/x86_64-linux-gnu/{libnccl.so.2.30.7,libgdrapi.so.2.6} "$ULTRACLUSTER_ROOT/opt/slurm/lib/slurm/spank_pyxis.so" \
    "$ULTRACLUSTER_ROOT/etc/systemd/system/configure-efa-fsx-lustre-client.service"
  for version in gdrdrv:2.6 nvidia_fs:2.29.1 lustre:2.15.6 neuron:2.30.2.0; do echo "${version#*:}" >"$FAKE/modules/${version%:*}"; done
  for version in nvidia-fabricmanager:595.91.07-1 nvidia-imex:595.91.07-1 nvlsm:2025.03.9-1 rdma-core:64.0-1 libgdrapi:2.6-1 \
    aws-neuronx-runtime-lib:2.34.10.0-1 aws-neuronx-collectives:2.34.10.0-1 amazon-ssm-agent:3.3.5226.0-1 lustre-client-utils:2.15.6-1fsx35; do
    echo "${version#*:}" >"$FAKE/packages/${version%:*}"
  done
  software::script /opt/slurm/bin/srun "slurm 25.11.8"
  command_on_node nvidia-ctk "NVIDIA Container Toolkit CLI version 1.20.1" "commit: 0123456"
  command_on_node dcgmi "" "dcgmi  version: 4.7.0"
  command_on_node enroot 4.2.1
  command_on_node docker "Docker version 29.1.3, build 0123"
  command_on_node containerd "containerd github.com/containerd/containerd/v2 v2.2.7 0123abc"
  echo "/dev/nvme1n1 /opt/sagemaker ext4 rw 0 0" >"$ULTRACLUSTER_ROOT/proc/self/mounts"
  printf 'root:x:0:0::/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n' >"$ULTRACLUSTER_ROOT/etc/passwd"
  echo 'Dual MIT/GPL' >"$FAKE/modules/nvidia.license"
  forget_calls
}

@test "a full node tells all of it" {
  full_node
  record >"$SANDBOX/record"
  run facts kernel nvidia_driver nvidia_driver_kind fabric_manager imex nvlsm cuda_default cuda_all <"$SANDBOX/record"
  assert::equal '"6.8.0-1039-aws" "595.91.07" "open" "595.91.07" "595.91.07" "2025.03.9-1" "13.2" "12.8 13.2"' "$output"
  run facts efa_installer efa_kmod libfabric aws_ofi_nccl rdma_core nccl gdrcopy_lib gdrdrv nvidia_fs <"$SANDBOX/record"
  assert::equal '"1.50.0" "3.3.0" "2.6.0amzn1.0" "1.21.1" "64.0-1" "2.30.7" "2.6" "2.6" "2.29.1"' "$output"
  run facts container_toolkit dcgm enroot pyxis slurm docker containerd <"$SANDBOX/record"
  assert::equal '"1.20.1" "4.7.0" "4.2.1" true "25.11.8" "29.1.3" "2.2.7"' "$output"
  run facts lustre_client lustre_module fsx_efa_setup second_volume neuron_driver neuron_runtime neuron_collectives login_user ssm_agent <"$SANDBOX/record"
  assert::equal '"2.15.6-1fsx35" "2.15.6" true true "2.30.2.0" "2.34.10.0" "2.34.10.0" "ubuntu" "3.3.5226.0"' "$output"
  assert::contains "$(cat "$SANDBOX/record")" '"os": "ubuntu22.04", "arch": "x86_64", "installed": ""'
  assert::contains "$(cat "$SANDBOX/record")" '"notes": {"cuda_default": "13.2.1", "pyxis": "/opt/slurm/lib/slurm/spank_pyxis.so", "second_volume": "/opt/sagemaker"}'
  assert::no_changes
  mkdir -p "$ULTRACLUSTER_ROOT/var/log/ultracluster"
  printf '{"step": "efa", "state": "installed"}\n{"step": "nccl", "state": "already"}\n' >"$REPORT"
  assert::contains "$(record)" '"installed": "efa"'
}

@test "an empty node lacks all of it, and what cannot be asked is not a no" {
  rm -rf "$FAKE"/{modules,packages}/* "$ULTRACLUSTER_ROOT"/{opt,etc/passwd} "$ULTRACLUSTER_ROOT"/usr/src
  rm "$SANDBOX"/bin/{df,mount.lustre}
  record >"$SANDBOX/record"
  run facts nvidia_driver nvidia_driver_kind fabric_manager imex cuda_default cuda_all efa_installer efa_kmod libfabric aws_ofi_nccl nccl gdrcopy_lib gdrdrv \
    container_toolkit dcgm enroot pyxis slurm docker lustre_client lustre_module fsx_efa_setup neuron_driver neuron_runtime dnf_versionlock second_volume ssm_agent <"$SANDBOX/record"
  assert::equal "$(printf 'false %.0s' {1..27} | sed 's/ $//')" "$output"
  run facts lustre_kernel_in_matrix login_user root_volume <"$SANDBOX/record"
  assert::equal 'null null null' "$output"
}

@test "without the tools that would tell, nothing is held to be absent" {
  rm -rf "$ULTRACLUSTER_ROOT/opt" "$SANDBOX"/bin/{modinfo,dpkg-query,rpm,mount.lustre}
  record >"$SANDBOX/record"
  run facts nvidia_driver nvidia_driver_kind fabric_manager efa_kmod efa_installer gdrdrv neuron_driver neuron_runtime rdma_core lustre_client ssm_agent <"$SANDBOX/record"
  assert::equal 'null null null null null null null null null null null' "$output"
}

@test "an EKS image has the EFA module and tells no release of the installer" {
  rm -rf "$ULTRACLUSTER_ROOT/opt"
  echo 3.1.0 >"$FAKE/modules/efa"
  printf 'ID="amzn"\nVERSION_ID="2023"\n' >"$ULTRACLUSTER_ROOT/etc/os-release"
  echo aarch64 >"$FAKE/processor"
  echo 6.12.94-123.180.amzn2023.aarch64 >"$FAKE/kernel"
  echo 61.0-1 >"$FAKE/packages/rdma-core"
  record >"$SANDBOX/record"
  run facts kernel efa_installer efa_kmod libfabric aws_ofi_nccl rdma_core <"$SANDBOX/record"
  assert::equal '"6.12.94-123.180" null "3.1.0" false false "61.0-1"' "$output"
  assert::contains "$(cat "$SANDBOX/record")" '"os": "al2023", "arch": "arm64"'
}

@test "of several versions of Slurm the newest counts" {
  local version
  rm -rf "$ULTRACLUSTER_ROOT/opt/slurm"
  for version in 25.11.6 24.11.7 25.5.8; do software::script "/opt/aws/pcs/scheduler/slurm-${version%.*}/bin/srun" "slurm $version"; done
  record >"$SANDBOX/record"
  assert::equal '"25.11.6"' "$(facts slurm <"$SANDBOX/record")"
  assert::contains "$(cat "$SANDBOX/record")" '"slurm": "beside 24.11.7 25.5.8"'
}

clean() { on_node bash "$ULTRACLUSTER_ROOT/opt/ultracluster/scripts/image/clean.sh"; }

# A machine on which an image was just built
built() {
  mkdir -p "$ULTRACLUSTER_ROOT"/{opt/ultracluster/scripts,etc/ssh,var/lib/{cloud/instances/i-0,systemd,dbus},var/log/{ultracluster,journal/0123},home/ubuntu/.ssh,home/ubuntu/.aws,root/.ssh,usr/local/sbin,var/lib/ultracluster/{work,health},opt/slurm/etc/task_prolog.d}
  cp -r "$SCRIPTS/." "$REPOSITORY/lifecycle_scripts/image" "$ULTRACLUSTER_ROOT/opt/ultracluster/scripts"
  touch "$ULTRACLUSTER_ROOT"/{etc/ssh/{ssh_host_ed25519_key,ssh_host_rsa_key.pub,sshd_config},home/ubuntu/.bash_history,home/ubuntu/.ssh/authorized_keys,home/ubuntu/keep,root/.ssh/authorized_keys,var/lib/systemd/random-seed,var/log/ultracluster/report.jsonl,opt/slurm/etc/task_prolog.d/10_x}
  echo 0123 >"$ULTRACLUSTER_ROOT/etc/machine-id"
  ln -sfn /etc/machine-id "$ULTRACLUSTER_ROOT/var/lib/dbus/machine-id"
  echo secret >"$ULTRACLUSTER_ROOT/var/log/syslog"
}

@test "before an image is made, what is of one machine goes, and what nodes need stays" {
  built
  run clean
  assert::status 0
  local gone kept
  for gone in etc/ssh/ssh_host_ed25519_key etc/ssh/ssh_host_rsa_key.pub home/ubuntu/.bash_history home/ubuntu/.ssh/authorized_keys home/ubuntu/.aws \
    root/.ssh/authorized_keys var/lib/cloud/instances var/log/ultracluster var/lib/ultracluster/{work,health} var/log/journal/0123 var/lib/systemd/random-seed opt/ultracluster/scripts; do
    [[ ! -e $ULTRACLUSTER_ROOT/$gone ]] || { echo "still there: $gone" && false; }
  done
  for kept in etc/ssh/sshd_config home/ubuntu/keep opt/slurm/etc/task_prolog.d/10_x; do [[ -e $ULTRACLUSTER_ROOT/$kept ]]; done
  [[ -e $ULTRACLUSTER_ROOT/etc/machine-id && ! -s $ULTRACLUSTER_ROOT/etc/machine-id && -L $ULTRACLUSTER_ROOT/var/lib/dbus/machine-id ]]
  [[ -e $ULTRACLUSTER_ROOT/var/log/syslog && ! -s $ULTRACLUSTER_ROOT/var/log/syslog ]]
}

@test "ParallelCluster's own clean-up runs first, and its failure is not passed over" {
  built
  printf '#!/bin/bash\n[[ -e %q ]] && touch %q\n' "$ULTRACLUSTER_ROOT/home/ubuntu/.bash_history" "$SANDBOX/asked" >"$ULTRACLUSTER_ROOT/usr/local/sbin/ami_cleanup.sh"
  chmod +x "$ULTRACLUSTER_ROOT/usr/local/sbin/ami_cleanup.sh"
  run clean
  assert::status 0
  [[ -e $SANDBOX/asked ]]
  built
  echo 'exit 3' >>"$ULTRACLUSTER_ROOT/usr/local/sbin/ami_cleanup.sh"
  run clean
  assert::status 3
}

# bake OPTION...: with two steps for Slurm, and one for Kubernetes
bake() {
  sed -i -e 's/^readonly STEPS_\(FABRIC\|LUSTRE\|LAST\)=.*/readonly STEPS_\1=/' -e 's/^readonly STEPS_CONTAINERS=.*/readonly STEPS_CONTAINERS="container_toolkit enroot"/' \
    -e 's/^readonly STEPS_KUBERNETES=.*/readonly STEPS_KUBERNETES=container_toolkit/' "$SCRIPTS/lib/steps.sh"
  rm -rf "$ULTRACLUSTER_ROOT/opt/ml" "$SCRIPTS/cluster.json"
  on_node "$SCRIPTS/bake.sh" --release 2026.11 --accelerator nvidia --efa yes "$@"
}

@test "an image for Kubernetes is baked without what pods bring" {
  run bake --family hyperpod-eks
  assert::status 0
  assert::states container_toolkit=installed
}

@test "a baked image is right when a second run installs nothing" {
  run bake --family pcs --verify yes
  assert::status 1
  assert::last_log_line "FAILED verify: the image lacked what it was made for, installed just now: container_toolkit enroot"
  run bake --family pcs --verify yes
  assert::status 0
  assert::states container_toolkit=already enroot=already node_exporter=skipped dcgm_exporter=skipped metrics=skipped
}

@test "a family that does not exist is refused" {
  run bake --family eks
  assert::status 2
  assert::contains "$output" "FAMILY: hyperpod-slurm, hyperpod-eks"
}

@test "the volume group that the image makes of the local disks" {
  full_node
  echo "/dev/mapper/vg.01-lv_ephemeral /opt/sagemaker ext4 rw 0 0" >"$ULTRACLUSTER_ROOT/proc/self/mounts"
  record >"$SANDBOX/record"
  run facts second_volume <"$SANDBOX/record"
  assert::equal '"vg.01"' "$output"
}
