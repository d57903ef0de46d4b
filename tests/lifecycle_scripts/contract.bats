#!/usr/bin/env bats
# What a node does with a component that it finds, or does not: keep, install, go on without it, or refuse to join.
# shellcheck disable=SC2016,SC2030,SC2031 # what `library` is given is expanded on the node; a test is a process of its own

load helpers
load software

# component NAME: OUTCOME FOUND PREFERRED of the last run, and the detail
component() {
  local -r row="\"$1\": \{\"outcome\": \"([a-z-]*)\", \"found\": \"([^\"]*)\", \"preferred\": \"([^\"]*)\", \"detail\": \"(([^\"\\]|\\\\.)*)\"\}"
  local line found=''
  while read -r line; do
    [[ ! $line =~ $row ]] || found="${BASH_REMATCH[1]:--} ${BASH_REMATCH[2]:--} ${BASH_REMATCH[3]:--} ${BASH_REMATCH[4]}"
  done <"$REPORT"
  printf '%b\n' "${found//'\"'/\"}"
}

# ended KEY: of the line that ends the report, as JSON
ended() {
  "$REAL/python3" -IS -c '
import json, sys
line = json.loads(open(sys.argv[1]).readlines()[-1])
assert line["run"] == "ended", line
print(json.dumps(line[sys.argv[2]]))' "$REPORT" "$1"
}

unlock() { release::change "components['$1']['artifacts'][0].pop('sha256')"; }

@test "a version is judged by floor and preferred version; what is not known is kept" {
  local found floor judgement
  while read -r found floor judgement; do
    [[ $floor != - ]] || floor=''
    [[ $found != - ]] || found=''
    assert::equal "$found $floor $judgement" "$found $floor $(library contract "
      declare -A RELEASE=([x.version]=4.2.1 [x.floor.version]=$floor); contract::judge x '$found'; echo \$CONTRACT_JUDGEMENT")"
  done <<'CASES'
- - absent
- 4.0 absent
4.2.1 4.0 same
4.2.2 4.0 newer
4.1 4.0 drift
4.0 4.0 drift
3.9 4.0 below
0.1 - drift
unknown 4.0 unknown
CASES
  # An image may leave a suffix out.
  assert::equal "same drift" "$(library contract 'declare -A RELEASE=([x.version]=2.7.0amzn2.0)
    for found in 2.7.0 2.7; do contract::judge x "$found"; printf "%s " "$CONTRACT_JUDGEMENT"; done' | sed 's/ $//')"
  # What comes with something else has no version of its own, but may have a floor.
  assert::equal below "$(library contract 'declare -A RELEASE=([x.version]=bundled [x.floor.version]=2); contract::judge x 1; echo $CONTRACT_JUDGEMENT')"
}

@test "between floor and preferred version it is kept, and the report tells the drift" {
  software::script /usr/bin/enroot 3.4.1
  FLOORS=enroot=3.1.0 software::lock
  run run_steps enroot
  assert::status 0
  assert::states enroot=already
  assert::equal "kept 3.4.1 4.2.1 kept-older: the release has 4.2.1; enroot" "$(component enroot)"
  [[ $(tail -n 1 "$LOG") =~ ^'READY after '[0-9.]+' s, keeps older enroot 3.4.1 (the release has 4.2.1): enroot'$ ]]
  assert::equal '"ready" "keeps older enroot 3.4.1 (the release has 4.2.1)"' "$(ended state) $(ended reason)"
  assert::no_changes
}

@test "without a floor any version works" {
  software::script /usr/bin/enroot 0.1
  run run_steps enroot
  assert::equal "kept 0.1 4.2.1 kept-older: the release has 4.2.1; enroot" "$(component enroot)"
}

@test "what is here and tells no version is kept" {
  HAVE="cuda efa" node::renew
  REQUIRED=aws-ofi-nccl FLOORS=aws-ofi-nccl=1.20 software::lock
  printf 'no number' >"$ULTRACLUSTER_ROOT/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so"
  run run_steps ofi_nccl
  assert::status 0
  assert::states ofi_nccl=already
  assert::contains "$(component aws-ofi-nccl)" "kept - 1.21.1 kept: its version is not known, the release has 1.21.1"
}

@test "what was installed is told as installed" {
  run run_steps enroot
  assert::equal "installed 4.2.1 4.2.1 enroot" "$(component enroot)"
  run run_steps enroot cuda_runtime
  assert::equal "kept 4.2.1 4.2.1 enroot" "$(component enroot)"
  assert::equal "installed 13.2 13.2 under /usr/local" "$(component cuda-runtime)"
  run run_steps cuda_runtime
  assert::equal "kept 13.2 13.2 under /usr/local" "$(component cuda-runtime)"
}

@test "a wanted component that cannot be installed degrades the node, and the run goes on" {
  unlock enroot
  run run_steps enroot container_toolkit
  assert::status 0
  assert::states enroot=degraded container_toolkit=installed
  assert::equal "degraded - 4.2.1 enroot_4.2.1-1_amd64.deb of release 2026.11 is not locked: it has no checksum (run: ultracluster software lock)" \
    "$(component enroot)"
  assert::last_log_line "DEGRADED enroot: enroot: no srun --container-image (enroot_4.2.1-1_amd64.deb of release 2026.11 is not locked: it has no checksum (run: ultracluster software lock))"
  assert::equal '"degraded" ["enroot"]' "$(ended state) $(ended degraded)"
  cmp <(tail -n 1 "$REPORT") "$ULTRACLUSTER_ROOT/run/ultracluster/ready"
  assert::equal 1 "$(grep -c '^DEGRADED' "$LOG")"
}

@test "the last line of a degraded node names what stays older, too, but not what was brought up" {
  software::script /usr/bin/enroot 3.4.1
  FLOORS=enroot=3.1.0 release::change 'components["container-toolkit"]["packages"] = []'
  run run_steps enroot container_toolkit
  assert::status 0
  [[ $(tail -n 1 "$LOG") == 'DEGRADED container-toolkit: container-toolkit: containers may see no GPUs ('*'); keeps older enroot 3.4.1 (the release has 4.2.1)' ]]
  assert::equal '["container-toolkit"]' "$(ended degraded)"
  software::script /usr/bin/enroot 3.0
  FLOORS=enroot=3.1.0 software::lock
  run run_steps enroot
  assert::states enroot=installed
  [[ $(tail -n 1 "$LOG") =~ ^'READY after '[0-9.]+' s: enroot'$ ]]
}

@test "an older one that cannot be replaced is told with its version" {
  software::script /usr/bin/enroot 3.0
  export FLOORS=enroot=3.1.0
  unlock enroot
  run run_steps enroot
  assert::status 0
  assert::contains "$(component enroot)" "degraded 3.0 4.2.1 enroot_4.2.1-1_amd64.deb of release 2026.11 is not locked"
}

@test "a required component that is absent and cannot be installed fails the node" {
  export REQUIRED=enroot
  unlock enroot
  run run_steps enroot container_toolkit
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED enroot: enroot_4.2.1-1_amd64.deb of release 2026.11 is not locked"
  assert::contains "$(component enroot)" "refused - 4.2.1 enroot_4.2.1-1_amd64.deb"
  assert::equal '"failed" []' "$(ended state) $(ended degraded)"
  assert::contains "$(ended reason)" "enroot: enroot_4.2.1-1_amd64.deb"
  [[ ! -e $ULTRACLUSTER_ROOT/run/ultracluster/ready ]]
}

@test "a required component below its floor: only a confirmed floor fails the node" {
  local mark
  export REQUIRED=enroot
  software::script /usr/bin/enroot 3.0
  for mark in reported inferred; do
    export FLOORS=enroot=3.1.0:$mark
    unlock enroot
    run run_steps enroot
    assert::status 0
    assert::contains "$(component enroot)" "degraded 3.0 4.2.1 "
  done
  export FLOORS=enroot=3.1.0:confirmed
  unlock enroot
  run run_steps enroot
  assert::status 1
  assert::contains "$(component enroot)" "refused 3.0 4.2.1 "
}

@test "strict: the release's version and no other, whatever the need" {
  cluster_json 'cluster["strict"] = True'
  software::script /usr/bin/enroot 3.4.1
  run run_steps enroot
  assert::status 0
  assert::equal "installed 4.2.1 4.2.1 enroot" "$(component enroot)"
  software::script /usr/bin/enroot 3.4.1
  unlock enroot
  run run_steps enroot
  assert::status 1
  assert::contains "$(component enroot)" "refused 3.4.1 4.2.1 "
}

@test "a step that is no component: some a node cannot be without, others it can" {
  echo 'scratch::install() { step::fail "the disks are broken"; }' >>"$SCRIPTS/steps/scratch.sh"
  run run_steps scratch limits
  assert::status 0
  assert::states scratch=degraded limits=installed
  assert::last_log_line "DEGRADED scratch: scratch: no /scratch on local disks (the disks are broken)"
  echo 'filesystems::detect() { step::fail "no server"; }' >>"$SCRIPTS/steps/filesystems.sh"
  run run_steps filesystems limits
  assert::status 1
  assert::last_log_line "FAILED filesystems: no server"
}

@test "strict is about versions: what is no component ends no node for it" {
  cluster_json 'cluster["strict"] = True'
  echo 'holds::install() { step::fail "dnf has no versionlock here"; }; holds::missing() { echo kernel; }' >>"$SCRIPTS/steps/holds.sh"
  run run_steps holds limits
  assert::status 0
  assert::states holds=degraded limits=installed
}

@test "a driver that is not loaded yet is loaded" {
  rm "$ULTRACLUSTER_ROOT/proc/driver/nvidia/version"
  cat >"$SANDBOX/bin/loads" <<'EOT'
#!/bin/bash
echo "modprobe $*" >>"$FAKE/calls"
[[ -e $FAKE/broken_driver ]] || touch "$ULTRACLUSTER_ROOT/proc/driver/nvidia/version"
EOT
  chmod +x "$SANDBOX/bin/loads"
  ln -sf loads "$SANDBOX/bin/modprobe"
  run run_steps nvidia_driver
  assert::status 0
  assert::called "modprobe nvidia"
  [[ -e $FAKE/units/nvidia-fabricmanager/active ]]
  rm "$ULTRACLUSTER_ROOT/proc/driver/nvidia/version"
  touch "$FAKE/broken_driver"
  REQUIRED="nvidia-driver" software::lock
  run run_steps nvidia_driver
  assert::status 1
  assert::last_log_line "FAILED nvidia_driver: driver 595.91.07 is not loaded"
}

@test "several that are lacking make one warning line" {
  release::change 'for name in ("enroot", "gdrcopy"): components[name]["artifacts"][0].pop("sha256")'
  HAVE=cuda node::renew
  release::change 'for name in ("enroot", "gdrcopy"): components[name]["artifacts"][0].pop("sha256")'
  run run_steps gdrcopy enroot
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED gdrcopy, enroot: gdrcopy: small messages of NCCL, NVSHMEM and UCX are slower (gdrcopy-2.6.tar.gz "
  assert::equal '["gdrcopy", "enroot"]' "$(ended degraded)"
}

@test "what is not needed here is told, too" {
  node::is_login
  run run_steps enroot
  assert::equal "not-needed - 4.2.1 a login node needs no enroot" "$(component enroot)"
}

@test "the last line names the first cause, not what was said before it" {
  echo 'scratch::verify() { step::message "8 disks"; step::fail "they are slow"; }' >>"$SCRIPTS/steps/scratch.sh"
  run run_steps scratch
  assert::contains "$(tail -n 1 "$LOG")" "(they are slow)"
}

@test "a Trainium node without devices is refused, one without collectives degraded" {
  node::type trn2.48xlarge
  : | software::brings aws-neuronx-dkms
  echo 2.30.2.0 >"$FAKE/modules/neuron"
  REQUIRED=neuron-driver software::lock
  run run_steps neuron
  assert::status 1
  assert::last_log_line "FAILED neuron: the neuron module shows no device"
  # A component of the same step that the node can be without
  mkdir -p "$ULTRACLUSTER_ROOT/dev"
  touch "$ULTRACLUSTER_ROOT/dev/neuron0"
  rm -f "$FAKE"/packages/aws-neuronx-collectives "$FAKE"/packages.d/aws-neuronx-collectives
  run run_steps neuron
  assert::status 0
  assert::equal '["neuron-collectives"]' "$(ended degraded)"
  assert::contains "$(component neuron-collectives)" "degraded - 2.34.10.0 cannot install aws-neuronx-collectives=2.34.10.0-abc"
  assert::contains "$(component neuron-driver)" "kept 2.30.2.0"
}

@test "a file ends a node only where the node cannot be without it, and is not asked for twice" {
  release::change 'components["pyxis"]["artifacts"][0]["url"] = "https://example.org/gone.tar.gz"; components["enroot"]["need"] = "required"'
  rm -f "$FAKE/remote"
  run run_steps enroot pyxis environment
  assert::status 0
  assert::states enroot=installed pyxis=degraded environment=installed
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED pyxis: "
  assert::contains "$(report::steps | grep '"pyxis"')" '"fetch": "failed"'
  assert::equal 1 "$(grep -c 'ERROR .*could not fetch https://example.org/gone.tar.gz' "$LOG")"
}

@test "a required file that does not come stops the other downloads, and no orphan holds the lock" {
  export REQUIRED=enroot
  printf '#!/bin/bash\necho "curl $*" >>"$FAKE/calls"\n[[ $* != *enroot* ]] || { printf 404; exit 22; }\nexec tail -f "$FAKE/calls"\n' >"$SANDBOX/slow"
  chmod +x "$SANDBOX/slow"
  ln -sf "$SANDBOX/slow" "$SANDBOX/bin/curl"
  software::lock
  run run_steps pyxis enroot
  assert::status 1
  assert::last_log_line "FAILED enroot: could not fetch https://example.org/enroot_4.2.1-1_amd64.deb: HTTP status 404"
  flock --nonblock "$ULTRACLUSTER_ROOT/run/ultracluster/run.lock" true
  run ! pgrep -f "^tail -f $FAKE/calls"
  assert::equal '' "$(pgrep --full "tail -f $FAKE/calls")"
}

@test "a driver is right by its branch, and one that nobody can replace is kept or refused by its floor" {
  echo 580.159.03 >"$FAKE/modules/nvidia"
  echo 580.159.03-1 >"$FAKE/packages/nvidia-fabricmanager"
  FLOORS=nvidia-driver=580.159.04 software::lock
  run run_steps nvidia_driver
  assert::status 0
  assert::contains "$(component nvidia-driver)" "kept 580.159.03 595.91.07 kept-older: the release has 595.91.07; driver, fabric manager runs"
  assert::contains "$(component fabric-manager)" "kept 580.159.03-1 580.159.03 it runs"
  FLOORS=nvidia-driver=590:reported software::lock
  run run_steps nvidia_driver
  assert::status 0
  assert::contains "$(component nvidia-driver)" "degraded 580.159.03 595.91.07 the driver is 580.159.03, release 2026.11 needs 590"
  FLOORS=nvidia-driver=590 software::lock
  run run_steps nvidia_driver
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED nvidia_driver: the driver is 580.159.03, release 2026.11 needs 590: it comes with the hyperpod-slurm image"
}

@test "the floor of the driver is that of the GPU family, where the release has one" {
  echo 565.57.01 >"$FAKE/modules/nvidia"
  echo 565.57.01-1 >"$FAKE/packages/nvidia-fabricmanager"
  export FLOORS=nvidia-driver=525
  release::change 'components["nvidia-driver"]["floors"] = {"p6-b200": {"version": "570", "mark": "confirmed", "source": "a test"}}'
  run run_steps nvidia_driver
  assert::status 0
  assert::contains "$(component nvidia-driver)" "kept 565.57.01 595.91.07 kept-older: the release has 595.91.07"
  sed -i 's/ml.p5.48xlarge/ml.p6-b200.48xlarge/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  run run_steps nvidia_driver
  assert::status 1
  assert::last_log_line "FAILED nvidia_driver: the driver is 565.57.01, p6-b200 needs 570: it comes with the hyperpod-slurm image and is never installed beside it, choose a newer image"
  assert::contains "$(component nvidia-driver)" "refused 565.57.01 595.91.07"
}

@test "the fabric manager runs where cluster.json says that there are NVSwitches" {
  cluster_json 'gpu["nvswitch"] = False'
  run run_steps nvidia_driver
  assert::status 0
  assert::never_called 'systemctl start nvidia-fabricmanager'
  cluster_json 'gpu["nvswitch"] = True'
  sed -i 's/ml.p5.48xlarge/ml.p9.48xlarge/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  run run_steps nvidia_driver
  assert::status 0
  assert::called 'systemctl start nvidia-fabricmanager.service'
  # An image that has none, and no package of it
  rm -r "$FAKE/units/nvidia-fabricmanager" "$FAKE/packages/nvidia-fabricmanager"
  run run_steps nvidia_driver
  assert::status 1
  assert::last_log_line "FAILED nvidia_driver: the GPUs of p9.48xlarge are joined by NVSwitches, and this image has no fabric manager: choose an image that has it"
}

@test "an image without a fabric manager gets the driver's own version, where the release has its package" {
  rm -r "$FAKE/units/nvidia-fabricmanager" "$FAKE/packages/nvidia-fabricmanager"
  echo 'mkdir -p "$FAKE/units/nvidia-fabricmanager"' | software::brings nvidia-fabricmanager-595
  release::change 'components["fabric-manager"]["packages"] = [packages("nvidia-fabricmanager-595=595.91.07-*")]'
  echo 595.112.07 >"$FAKE/modules/nvidia"
  run run_steps nvidia_driver
  assert::status 0
  assert::contains "$(grep '^apt-get' "$FAKE/changes")" "install nvidia-fabricmanager-595=595.112.07-*"
  assert::contains "$(component fabric-manager)" "installed 595.112.07"
}

@test "a step that takes too long ends, with what it was and its time" {
  echo 'scratch::install() { sleep 30; }' >>"$SCRIPTS/steps/scratch.sh"
  echo 'limits::detect() { step::present; }; limits::verify() { :; }' >>"$SCRIPTS/steps/limits.sh"
  run on_node ULTRACLUSTER_STEP_MS=4000 bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; entry::main scratch limits"
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED scratch: scratch: no /scratch on local disks (the step did not end within 10 min)"
  sed -i 's/scratch::/filesystems::/' "$SCRIPTS/steps/filesystems.sh"
  echo 'filesystems::install() { sleep 30; }' >>"$SCRIPTS/steps/filesystems.sh"
  run on_node ULTRACLUSTER_STEP_MS=4000 bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; entry::main filesystems"
  assert::status 1
  assert::last_log_line "FAILED filesystems: the step did not end within 15 min"
}

@test "when the time of a run is used up nothing more is installed, and what is here still counts" {
  run_steps enroot
  forget_calls
  cluster_json 'cluster["budget_minutes"] = 25'
  run on_node ULTRACLUSTER_RUN_MS=1 bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; entry::main enroot container_toolkit"
  assert::status 0
  assert::states enroot=already container_toolkit=degraded
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED container-toolkit: container-toolkit: containers may see no GPUs (the run's 25 min are used up)"
  assert::no_changes
}

@test "a budget that is no number of minutes is refused" {
  cluster_json 'cluster["budget_minutes"] = "25"'
  run run_steps enroot
  assert::last_log_line "FAILED node: $SCRIPTS/cluster.json: budget_minutes is '25', not a number of minutes"
}

@test "what a verb leaves running keeps neither its step nor the lock" {
  echo 'scratch::install() { sleep 3119 & echo started; }; scratch::verify() { step::message fine; }' >>"$SCRIPTS/steps/scratch.sh"
  run run_steps scratch
  assert::status 0
  flock --nonblock "$ULTRACLUSTER_ROOT/run/ultracluster/run.lock" true
  pkill -f '^sleep 3119$'
  assert::contains "$output" "started"
}

@test "what is installed can be read by everybody, whatever the umask of who runs the scripts" {
  umask 077
  HAVE="cuda efa" BUNDLED=1.18.0 FLOORS=aws-ofi-nccl=1.20 node::renew
  run run_steps ofi_nccl
  assert::status 0
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT/opt/ultracluster" "$ULTRACLUSTER_ROOT/etc/ld.so.conf.d" ! -perm -o=r)"
}

@test "a plugin of the image in LD_LIBRARY_PATH does not win over ours unseen" {
  local path
  export HAVE="cuda efa" BUNDLED=1.18.0 FLOORS=aws-ofi-nccl=1.20
  node::renew
  mkdir -p "$ULTRACLUSTER_ROOT/etc/profile.d"
  run run_steps ofi_nccl
  assert::status 0
  [[ ! -e $ULTRACLUSTER_ROOT/etc/profile.d/zz-ultracluster-nccl.sh ]]
  echo 'export LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib:$LD_LIBRARY_PATH' >"$ULTRACLUSTER_ROOT/etc/profile.d/dlami.sh"
  forget_calls
  run run_steps ofi_nccl
  assert::states ofi_nccl=installed
  assert::never_called make
  path=$(LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib bash -c "source '$ULTRACLUSTER_ROOT/etc/profile.d/zz-ultracluster-nccl.sh'; echo \$LD_LIBRARY_PATH")
  assert::equal /opt/ultracluster/aws-ofi-nccl-1.21.1/lib:/opt/amazon/ofi-nccl/lib "$path"
  path=$(LD_LIBRARY_PATH='' bash -c "source '$ULTRACLUSTER_ROOT/etc/profile.d/zz-ultracluster-nccl.sh'; echo \$LD_LIBRARY_PATH")
  assert::equal '' "$path"
  run run_steps ofi_nccl
  assert::states ofi_nccl=already
}

@test "a library that users cannot read is built again, and one of the image is told" {
  export HAVE="cuda efa" BUNDLED=1.18.0 FLOORS=aws-ofi-nccl=1.20
  node::renew
  run_steps ofi_nccl
  chmod 0700 "$ULTRACLUSTER_ROOT/opt/ultracluster"
  run run_steps ofi_nccl
  assert::states ofi_nccl=installed
  assert::equal 755 "$(stat --format %a "$ULTRACLUSTER_ROOT/opt/ultracluster")"
  unset BUNDLED
  node::renew
  chmod 0750 "$ULTRACLUSTER_ROOT/opt/amazon/ofi-nccl"
  run run_steps ofi_nccl
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "users cannot read /opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so"
  # The file's own mode
  chmod 0755 "$ULTRACLUSTER_ROOT/opt/amazon/ofi-nccl"
  chmod 0751 "$ULTRACLUSTER_ROOT/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so"
  run run_steps ofi_nccl
  assert::contains "$(tail -n 1 "$LOG")" "users cannot read /opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so"
}

@test "a Kubernetes node needs the module of GDRCopy alone, and no CUDA" {
  sed -i 's/"ClusterType": "Slurm"/"ClusterType": "Kubernetes"/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  run run_steps gdrcopy
  assert::status 0
  assert::states gdrcopy=installed
  assert::equal "installed 2.6 2.6 gdrdrv 2.6; containers bring the library" "$(component gdrcopy)"
  assert::called "dkms install --force -m gdrdrv -v 2.6"
  [[ ! -e $ULTRACLUSTER_ROOT/opt/ultracluster/gdrcopy-2.6 ]]
  run run_steps gdrcopy
  assert::states gdrcopy=already
  # Without the driver's sources the node does without.
  node::renew
  sed -i 's/"ClusterType": "Slurm"/"ClusterType": "Kubernetes"/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  rm -r "$ULTRACLUSTER_ROOT"/usr/src/nvidia-*
  run run_steps gdrcopy
  assert::status 0
  assert::contains "$(component gdrcopy)" "degraded - 2.6 gdrdrv cannot be built"
}
