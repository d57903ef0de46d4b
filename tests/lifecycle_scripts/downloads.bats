#!/usr/bin/env bats
# What a node downloads, what a lost download costs, and what becomes of a node that is given bad input: its metadata are closed
# in any case, and one last line names the first cause.
# shellcheck disable=SC2016,SC2030,SC2031 # text of fakes; a test is a process of its own

load helpers
load software

readonly METRICS="cluster['metrics'] = {'scrape_seconds': 30, 'max_series_per_node': 5000, 'region': 'us-east-1',
 'remote_write_url': 'https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1/api/v1/remote_write', 'labels': {'cluster': 'dev'}}"

closed() {
  cluster_json "cluster['metadata'] = {'for': 'services'}; ${1:-}"
  echo 'root:x:0:0::/root:/bin/bash' >"$ULTRACLUSTER_ROOT/etc/passwd"
}

assert::metadata_closed() { assert::contains "$(cat "$FAKE/nft")" "meta skuid { 0"; }

# steps_in MS STEP...: a run with so many milliseconds
steps_in() {
  on_node ULTRACLUSTER_RUN_MS="$1" bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; entry::main ${*:2}"
}

@test "what no step will use is not downloaded: an image that has the programs boots without a network" {
  export HAVE="cuda efa"
  node::renew
  closed "$METRICS"
  touch "$FAKE/web_down"
  # The link of pyxis is missing, gdrdrv is not loaded, and the services of metrics are not set up.
  mkdir -p "$ULTRACLUSTER_ROOT"/{opt/slurm/lib/slurm,usr/lib}
  touch "$ULTRACLUSTER_ROOT"/{opt/slurm/lib/slurm/spank_pyxis.so,usr/lib/libgdrapi.so.2.6}
  echo 2.6 >"$FAKE/modules/gdrdrv"
  software::script /opt/ultracluster/node-exporter/node_exporter "node_exporter, version 1.12.1 (branch: HEAD)"
  software::script /opt/ultracluster/prometheus/prometheus "prometheus, version 3.13.1 (branch: HEAD)"
  echo 4.8.2-1 >"$FAKE/packages/datacenter-gpu-manager-exporter"
  run run_steps metadata gdrcopy ofi_nccl pyxis node_exporter dcgm_exporter metrics
  assert::status 0
  assert::states metadata=installed gdrcopy=installed ofi_nccl=already pyxis=installed node_exporter=installed dcgm_exporter=installed metrics=installed
  assert::contains "$(tail -n 1 "$LOG")" "READY after"
  assert::never_called curl
}

@test "a lost download costs its own component: steps that need no file do not wait for it, and the rest is set up" {
  closed "$METRICS"
  node::is_login
  touch "$FAKE/web_down"
  run run_steps metadata pyxis environment metrics
  assert::status 0
  assert::states metadata=installed pyxis=degraded environment=installed metrics=degraded
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED pyxis, prometheus: pyxis: no srun --container-image (could not fetch https://example.org/pyxis-0.24.0.tar.gz within 0.3 s); prometheus: "
  assert::metadata_closed
  assert::contains "$(cat "$LOG")" "downloading for "
  # What training jobs import needs no agent.
  cmp "$SCRIPTS/files/metrics_agent.py" "$ULTRACLUSTER_ROOT/opt/ultracluster/metrics_agent/configuration.py"
}

@test "a download, and the patience with servers, have half of what is left of a run, an installation four fifths; what is required, all" {
  local -r times='clock::now() { printf -v "$1" 0; }; verb::begin_run 0 10; verb::budget pyxis 0; verb::time pyxis'
  local -r all='verb::deadlines; echo "$((VERB_MS / 1000)) ${VERB_DEADLINES[*]//_DEADLINE/}"'
  deadlines() { library verb "unset ULTRACLUSTER_FETCH_DEADLINE ULTRACLUSTER_PACKAGES_DEADLINE; $1"; }
  assert::equal "300 ULTRACLUSTER_FETCH=270 ULTRACLUSTER_PACKAGES=270" "$(deadlines "$times fetch; $all")"
  assert::equal "600 ULTRACLUSTER_FETCH=540" "$(deadlines "VERB_REFUSED=yes; $times fetch; $all")"
  assert::equal "480 ULTRACLUSTER_FETCH=300" "$(deadlines "$times install; $all")"
  assert::equal "600 ULTRACLUSTER_FETCH=300" "$(deadlines "${times/time pyxis/time slurm} install; $all")"
}

@test "a host that gave no answer is not waited for again, one that answers is" {
  touch "$FAKE/web_down"
  # a clock of which each look takes 100 ms: how many attempts 0.3 s allow does not depend on this machine
  run library fetch "clock::now() { printf -v \"\$1\" '%s' \"\$((ticks += 100))\"; }; ticks=0; sleep() { :; }
    for name in a b; do fetch::file https://example.org/\$name '$SANDBOX/got' sha256:$(printf '%064d' 0) || true; done"
  assert::equal "3 1" "$(grep -c '^curl.*example.org/a' "$FAKE/calls") $(grep -c '^curl.*example.org/b' "$FAKE/calls")"
}

@test "what protects a node is done though the time of the run is used up" {
  closed
  run steps_in 1 metadata enroot
  assert::status 0
  assert::states metadata=installed enroot=degraded
  assert::metadata_closed
}

@test "people never log in where metadata cannot be closed; other nodes join, and say it" {
  local who
  for who in login controller session; do
    node::renew
    case $who in
      login) closed && node::is_login ;;
      controller) closed 'cluster["state_uri"] = "s3://bucket/dev/state"' && node::is_controller ;;
      session) closed 'cluster["session_user"] = "ultracluster"' ;;
    esac
    rm -f "$SANDBOX/bin/nft"
    run run_steps metadata environment
    assert::status 1
    assert::last_log_line "FAILED metadata: this image has neither nft nor iptables: people who log in here would reach the credentials of the node's role"
  done
  node::renew
  closed
  run run_steps metadata environment
  assert::status 0
  assert::states metadata=degraded environment=installed
}

@test "bad input: files are gone, another index, another digest, an unknown system, no GPU, a clock of long ago" {
  local -A causes=(
    [gone]="DEGRADED enroot: enroot: no srun --container-image (could not fetch https://example.org/enroot_4.2.1-1_amd64.deb: HTTP status 404)"
    [index]="DEGRADED nccl: nccl: programs have to bring their own NCCL (cannot install libnccl2=2.30.7-1+cuda13.3: Version '2.30.7-1+cuda13.3' for 'libnccl2' was not found)"
    [digest]="DEGRADED enroot: enroot: no srun --container-image (refused https://example.org/enroot_4.2.1-1_amd64.deb: its checksum is not sha256:*)"
    [system]="DEGRADED enroot: enroot: no srun --container-image (release 2026.11 has no enroot for gentoo2.17 on x86_64, only for: ubuntu22.04 on x86_64, ubuntu24.04 on x86_64)"
    [gpu]="FAILED nvidia_driver: driver 595.91.07 is not loaded: the PCI bus shows no GPU, p5.48xlarge has 8: replace the node"
    [clock]="DEGRADED enroot: enroot: no srun --container-image (could not fetch https://example.org/enroot_4.2.1-1_amd64.deb: its certificate is not accepted (the clock of this node says 20*))"
  )
  local case step line
  for case in gone index digest system gpu clock; do
    node::renew
    closed
    rm -f "$SANDBOX"/bin/{apt-get,curl}
    ln -s "$BATS_TEST_DIRNAME"/fakes/{apt-get,curl} "$SANDBOX/bin"
    step=enroot
    case $case in
      gone) echo -n 404 >"$FAKE/code" ;;
      index)
        step=nccl
        broken apt-get "echo \"E: Version '2.30.7-1+cuda13.3' for 'libnccl2' was not found\" >&2; exit 100"
        ;;
      digest) echo tampered >>"$FAKE/web/enroot_4.2.1-1_amd64.deb" ;;
      system) printf 'ID=gentoo\nVERSION_ID="2.17"\n' >"$ULTRACLUSTER_ROOT/etc/os-release" ;;
      gpu)
        step=nvidia_driver
        rm "$ULTRACLUSTER_ROOT/proc/driver/nvidia/version"
        mkdir -p "$ULTRACLUSTER_ROOT/sys/bus/pci/devices"
        ;;
      clock) broken curl 'printf 000; exit 60' ;;
    esac
    run run_steps metadata "$step"
    line=$(tail -n 1 "$LOG")
    # shellcheck disable=SC2053 # a pattern
    [[ $line == ${causes[$case]} ]] || assert::equal "${causes[$case]}" "$line"
    assert::metadata_closed
  done
}

# broken COMMAND CODE
broken() {
  printf '#!/bin/bash\n%s\n' "$2" >"$SANDBOX/broken-$1"
  chmod +x "$SANDBOX/broken-$1"
  ln -sf "$SANDBOX/broken-$1" "$SANDBOX/bin/$1"
}
