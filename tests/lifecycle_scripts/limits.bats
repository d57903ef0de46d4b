#!/usr/bin/env bats
# What users and slurmd may lock, open and start.

load helpers

@test "limits are in force, not only written" {
  mkdir -p "$ULTRACLUSTER_ROOT/proc/4711"
  echo 4711 >"$FAKE/units/slurmd/pid"
  echo 'Max locked memory         65536                65536                bytes' >"$ULTRACLUSTER_ROOT/proc/4711/limits"
  run run_steps limits
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/proc/4711/limits")" unlimited
  assert::never_called 'systemctl restart'
  # Slurm counts GPUs by files that are there only once the driver has been used
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/systemd/system/slurmd.service.d/20-ultracluster-gpus.conf")" 'nvidia-smi --list-gpus'
  assert::equal 16384 "$(cat "$ULTRACLUSTER_ROOT/proc/sys/net/ipv4/neigh/default/gc_thresh3")"
  assert::equal false "$(cat "$FAKE/remove_ipc")"
  # 110 MiB for each of 8 CPUs, in pages of 2 MiB, and one page
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/proc/meminfo")" "HugePages_Total: 441"
}

# kubernetes_limits: the step as a node of Kubernetes runs it
kubernetes_limits() {
  on_node bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; ENTRY_NAME=eks_user_data; export ULTRACLUSTER_ENTRY=eks_user_data; entry::main limits"
}

@test "pods may lock memory: containerd's limit is raised in place, and at its next start" {
  mkdir -p "$ULTRACLUSTER_ROOT/proc/815" "$FAKE/units/containerd"
  echo 815 >"$FAKE/units/containerd/pid"
  echo 'Max locked memory         8388608              8388608              bytes' >"$ULTRACLUSTER_ROOT/proc/815/limits"
  run run_steps limits
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/proc/815/limits")" 8388608
  [[ ! -e $ULTRACLUSTER_ROOT/etc/systemd/system/containerd.service.d ]]

  run kubernetes_limits
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/proc/815/limits")" unlimited
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/systemd/system/containerd.service.d/10-ultracluster-limits.conf")" LimitMEMLOCK=infinity
  assert::never_called 'systemctl restart'

  run kubernetes_limits
  assert::states limits=already
}

@test "huge pages that the EFA installer reserved stay" {
  # fewer than the 441 that we would reserve, too
  sed -i 's/^HugePages_Total:.*/HugePages_Total: 128/' "$ULTRACLUSTER_ROOT/proc/meminfo"
  run run_steps limits
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/proc/meminfo")" "HugePages_Total: 128"
  [[ ! -e $ULTRACLUSTER_ROOT/etc/sysctl.d/99-ultracluster-huge-pages.conf ]]
}

@test "a process may read another one's memory where EFA is, unless the image is hardened" {
  local -r scope=$ULTRACLUSTER_ROOT/proc/sys/kernel/yama/ptrace_scope
  mkdir -p "${scope%/*}"
  echo 1 >"$scope"
  run run_steps limits
  assert::status 0
  assert::equal 0 "$(cat "$scope")"
  [[ -e $ULTRACLUSTER_ROOT/etc/sysctl.d/99-ultracluster-ptrace.conf ]]
  echo 2 >"$scope"
  run run_steps limits
  assert::contains "$output" 'kernel.yama.ptrace_scope is 2 by this image and stays'
  assert::equal 2 "$(cat "$scope")"
  node::renew
  mkdir -p "${scope%/*}"
  echo 1 >"$scope"
  node::is_login
  run run_steps limits
  assert::equal 1 "$(cat "$scope")"
}

@test "a kernel with few free huge pages is no failure, and not asked again" {
  echo 100 >"$FAKE/huge_pages_free"
  run run_steps limits
  assert::status 0
  run run_steps limits
  assert::states limits=already
}
