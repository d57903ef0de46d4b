# shellcheck shell=bash
# A node in a folder: a root for every path, fakes for every command that would change a system, and nothing else on PATH.

bats_require_minimum_version 1.5.0

REPOSITORY=$(cd -- "$BATS_TEST_DIRNAME/../.." && pwd)

# shellcheck source-path=SCRIPTDIR source=remembered.bash
source "$BATS_TEST_DIRNAME/remembered.bash"

# The commands that the scripts may use as they are. What is missing here and in fakes/ does not exist for them.
REAL_COMMANDS=(awk bash cat chmod cmp cp cut dirname env find flock grep gzip head install ls ln mkdir mv readlink rm rmdir sed sha256sum
  sha512sum sleep sort stat tail tar tee timeout touch tr wc)

# The interpreter itself and not a launcher of some version manager, which would need a PATH. What all tests of a file begin with is
# made once, and copied for each.
setup_file() {
  PYTHON=$(python3 -IS -c 'import os, sys; print(os.path.realpath(sys.executable))')
  PKILL=$(type -P pkill)
  export PYTHON PKILL
  mkdir "$BATS_FILE_TMPDIR/remembered"
  sandbox::make "$BATS_FILE_TMPDIR/sandbox"
  ULTRACLUSTER_ROOT=$BATS_FILE_TMPDIR/node/root FAKE=$BATS_FILE_TMPDIR/node/fake node::make
}

setup() {
  SANDBOX=$BATS_TEST_TMPDIR
  REMEMBERED=$BATS_FILE_TMPDIR/remembered
  export ULTRACLUSTER_ROOT=$SANDBOX/root FAKE=$SANDBOX/fake REAL=$SANDBOX/real
  SCRIPTS=$SANDBOX/scripts
  LOG=$ULTRACLUSTER_ROOT/var/log/provision/provisioning.log
  REPORT=$ULTRACLUSTER_ROOT/var/log/ultracluster/report.jsonl
  cp -a "$BATS_FILE_TMPDIR/sandbox/." "$SANDBOX"
  node::fresh
  if declare -F scenario >/dev/null; then scenario; fi
}

# sandbox::make FOLDER: scripts and commands
sandbox::make() {
  local commands
  mkdir -p "$1"/{scripts,bin,real}
  cp -r "$REPOSITORY"/lifecycle_scripts/{lib,steps,files,verify,health,health_loop,metrics} "$REPOSITORY"/lifecycle_scripts/*.sh "$1/scripts"
  cp "$BATS_TEST_DIRNAME/cluster.json" "$1/scripts"
  # The steps of the release have tests of their own; all others do without them (see software.bash).
  [[ -n ${WITH_SOFTWARE:-} ]] || sed -i -E 's/^(readonly STEPS_[A-Z]+)=.*/\1=/' "$1/scripts/lib/steps.sh"
  mapfile -t commands < <(type -P "${REAL_COMMANDS[@]}")
  ((${#commands[@]} == ${#REAL_COMMANDS[@]})) || { echo "this machine lacks some of: ${REAL_COMMANDS[*]}" && return 1; }
  ln -s -t "$1/real" "${commands[@]}"
  ln -s "$PYTHON" "$1/real/python3"
  ln -s "$BATS_TEST_DIRNAME"/fakes/* "$1/bin"
}

# node::fresh: root, fakes and cluster.json are those of a new node, or of what a file's scenario has built on it before (`node::template`
# sets TEMPLATE to its folder). A command there is in the place of a link to the fake that all tests share.
node::fresh() {
  TEMPLATE=$BATS_FILE_TMPDIR/node
  if declare -F node::template >/dev/null; then node::template; fi
  [[ -e $TEMPLATE ]] || TEMPLATE=$BATS_FILE_TMPDIR/node
  cp -a --remove-destination "$TEMPLATE/." "$SANDBOX"
  node::cluster_json
}

# A p5 node of group `gpu` as HyperPod hands it over, the image with Slurm and without a mount on its eight disks.
node::make() {
  local index
  # the folders of logs and locks, too: each run would make them (first boots begin without)
  mkdir -p "$ULTRACLUSTER_ROOT"/{etc,run/ultracluster,var/log/{ultracluster,provision},proc/self,proc/sys/net/ipv4/neigh/default,opt/ml/config,opt/slurm/etc} \
    "$FAKE"/{lvm,modules} "$FAKE"/units/{slurmd,slurmctld,munge}
  echo '25 1 259:0 / / rw,relatime shared:1 - ext4 /dev/root rw' >"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  printf 'MemTotal:       2000000000 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n' >"$ULTRACLUSTER_ROOT/proc/meminfo"
  for index in 1 2 3; do echo 128 >"$ULTRACLUSTER_ROOT/proc/sys/net/ipv4/neigh/default/gc_thresh$index"; done
  echo 'UUID=0123 / ext4 defaults 0 1' >"$ULTRACLUSTER_ROOT/etc/fstab"
  echo 'SlurmctldHost=ip-10-1-0-10(10.1.0.10)' >"$ULTRACLUSTER_ROOT/opt/slurm/etc/slurm.conf"
  # shellcheck disable=SC2016 # systemd expands it
  echo 'ExecStart=/opt/slurm/sbin/slurmd -D $SLURMD_OPTIONS' >"$FAKE/units/slurmd/unit"
  touch "$FAKE/calls" "$FAKE/changes" "$FAKE/lvm/pvs" "$FAKE/any_package"
  echo 2.15.6 >"$FAKE/modules/lustre"
  echo x86_64 >"$FAKE/processor"
  echo 6.8.0-1039-aws >"$FAKE/kernel"
  echo 100000 >"$FAKE/free_mib"
  printf 'ID=ubuntu\nVERSION_ID="22.04"\n' >"$ULTRACLUSTER_ROOT/etc/os-release"
  echo 1000000 >"$FAKE/huge_pages_free"
  echo true >"$FAKE/remove_ipc"
  echo 10.1.0.21 >"$FAKE/addresses"
  node::disks 8
  node::resource_config
}

# node::disks COUNT [CONTENT]: instance-store disks beside the root volume and a data volume, which are EBS.
node::disks() {
  local index
  {
    echo "/dev/nvme0n1 259:0 ext4 Amazon Elastic Block Store"
    echo "/dev/nvme99n1 259:99 - Amazon Elastic Block Store"
    for ((index = 1; index <= $1; index++)); do
      echo "/dev/nvme${index}n1 259:$index ${2:--} Amazon EC2 NVMe Instance Storage"
    done
  } >"$FAKE/disks"
}

# node::efa_devices COUNT: rdmap0, rdmap1, ... with the efa driver; made once for all tests of a file, as each takes two processes
node::efa_devices() {
  local -r built=$BATS_FILE_TMPDIR/efa-devices-$1
  local index devices=()
  if [[ ! -e $built ]]; then
    for ((index = 0; index < $1; index++)); do devices+=("$built.new/class/infiniband/rdmap$index/device"); done
    mkdir -p "$built.new/bus/pci/drivers/efa" "${devices[@]}"
    for index in "${devices[@]}"; do ln -s ../../../../bus/pci/drivers/efa "$index/driver"; done
    mv "$built.new" "$built"
  fi
  mkdir -p "$ULTRACLUSTER_ROOT/sys"
  cp -a "$built/." "$ULTRACLUSTER_ROOT/sys"
}

# What DLAMI offers: its own volume over all disks, mounted at /opt/dlami/nvme.
node::image_mount() {
  node::disks 8 image
  mkdir -p "$ULTRACLUSTER_ROOT/opt/dlami/nvme"
  echo '40 1 253:9 / /opt/dlami/nvme rw,noatime shared:2 - ext4 /dev/mapper/vg.01-lv_ephemeral rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

# HyperPod's image for EKS: its volume over all disks is where the kubelet and containerd write, too.
node::hyperpod_eks_disks() {
  node::disks 8 image
  mkdir -p "$ULTRACLUSTER_ROOT"/{opt/sagemaker,usr/bin,var/lib/kubelet}
  touch "$ULTRACLUSTER_ROOT/usr/bin/kubelet"
  [[ ${1:-} == unmounted ]] || echo '40 1 253:9 / /opt/sagemaker rw,noatime shared:2 - ext4 /dev/mapper/vg.01-lv_ephemeral rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

# Valid by lifecycle_scripts/cluster.schema.json, with the facts of its types as the catalogue has them (tests/model/test_cluster_json.py)
node::cluster_json() {
  cp "$BATS_TEST_DIRNAME/cluster.json" "$SCRIPTS/cluster.json"
}

# cluster_json PYTHON: changes `cluster`, with `gpu` for its group of GPUs
cluster_json() {
  remembered::key "$SCRIPTS/cluster.json"
  KEY+=$1
  ! remembered::find cluster || { cp "$FOUND" "$SCRIPTS/cluster.json" && return; }
  "$PYTHON" -IS -c '
import json, sys
cluster = json.load(open(sys.argv[1]))
gpu = cluster["node_groups"]["gpu"]
exec(sys.argv[2])
json.dump(cluster, open(sys.argv[1], "w"))' "$SCRIPTS/cluster.json" "$1"
  remembered::keep cluster <"$SCRIPTS/cluster.json"
}

# node::type TYPE: the group of GPUs is of this type, with what types.json has of it; no more than the name of an unknown one
node::type() {
  cluster_json "facts = json.load(open('$BATS_TEST_DIRNAME/types.json')).get('$1', {}); gpu.clear(); gpu.update(facts, role='compute', instance_type='$1')"
  sed -i "s/ml.p5.48xlarge/ml.$1/" "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
}

node::resource_config() {
  cat >"$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json" <<'JSON'
{"ClusterConfig": {"ClusterName": "dev", "ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"},
 "ClusterType": "Slurm", "SlurmConfig": {"PrimaryControllerIp": "10.1.0.10", "SecondaryControllerIps": []},
 "InstanceGroups": [
  {"Name": "head", "InstanceType": "ml.m5.2xlarge", "Instances": [
   {"InstanceName": "head-1", "InstanceId": "i-0a", "AgentIpAddress": "172.16.0.1", "CustomerIpAddress": "10.1.0.10", "InstanceLabel": null}]},
  {"Name": "entrance", "InstanceType": "ml.m5.xlarge", "Instances": [
   {"InstanceName": "entrance-1", "InstanceId": "i-0b", "AgentIpAddress": "172.16.0.2", "CustomerIpAddress": "10.1.0.11", "InstanceLabel": null}]},
  {"Name": "gpu", "InstanceType": "ml.p5.48xlarge", "Instances": [
   {"InstanceName": "gpu-1", "InstanceId": "i-0c", "AgentIpAddress": "10.1.0.99", "CustomerIpAddress": "10.1.0.21", "InstanceLabel": null},
   {"InstanceName": "gpu-2", "InstanceId": "i-0d", "AgentIpAddress": "172.16.0.4", "CustomerIpAddress": "10.1.0.22", "InstanceLabel": null}]}]}
JSON
}

node::is_controller() {
  echo 10.1.0.10 >"$FAKE/addresses"
  node::disks 0
}

node::is_login() {
  echo 10.1.0.11 >"$FAKE/addresses"
  node::disks 0
}

# Runs a command on the node, in a session of its own. It gives up after fractions of a second: where something has to come right in
# the end, PATIENCE=600 lets a busy machine take its time.
on_node() {
  setsid --wait env -i PATH="$SANDBOX/bin:$REAL" ULTRACLUSTER_ROOT="$ULTRACLUSTER_ROOT" FAKE="$FAKE" REAL="$REAL" PKILL="$PKILL" \
    ULTRACLUSTER_LINGER=0 ULTRACLUSTER_CONSOLE=all ULTRACLUSTER_VOLUME_SECONDS=0 ULTRACLUSTER_SPREAD="${SPREAD:-0}" ULTRACLUSTER_RETRY_PAUSE=0.02 ULTRACLUSTER_RETRY_LONGEST_PAUSE=0.1 ULTRACLUSTER_NODE_DEADLINE="${PATIENCE:-0.1}" \
    ULTRACLUSTER_DNS_DEADLINE="${PATIENCE:-0.3}" ULTRACLUSTER_MOUNT_DEADLINE="${PATIENCE:-0.3}" ULTRACLUSTER_SLURM_DEADLINE="${PATIENCE:-0.3}" \
    ULTRACLUSTER_LUSTRE_EFA_DEADLINE="${PATIENCE:-0.1}" ULTRACLUSTER_DEVICES_DEADLINE="${PATIENCE:-0.1}" ULTRACLUSTER_SLURMD_DEADLINE="${PATIENCE:-0.1}" ULTRACLUSTER_RUN_DEADLINE=600 \
    ULTRACLUSTER_PACKAGES_DEADLINE="${PATIENCE:-0.2}" ULTRACLUSTER_FETCH_DEADLINE="${PATIENCE:-0.3}" "$@" 3>&-
}

on_init_complete() { on_node "$@" "$SCRIPTS/hyperpod_on_init_complete.sh"; }
on_create() { on_node "$@" "$SCRIPTS/hyperpod_on_create.sh"; }

# only_steps STEP...: each entry runs these, where the others are not what a test is about.
only_steps() { sed -i -E "s/^  \[([a-z_]+)\]=\"[^0-9]*\"$/  [\1]=\"$*\"/" "$SCRIPTS/lib/steps.sh"; }

# run_steps STEP...: an entry with these steps only
run_steps() {
  on_node REMEMBERED="$REMEMBERED" ${KILL_AT:+KILL_AT="$KILL_AT"} ${KILL_DISKS:+KILL_DISKS="$KILL_DISKS"} \
    bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; source '$BATS_TEST_DIRNAME/remembered.bash'; entry::main $*"
}

# library NAME CODE: a line of bash with one of the libraries at hand.
library() {
  on_node bash -c "set -euo pipefail; ULTRACLUSTER_HOME=$SCRIPTS; source '$SCRIPTS/lib/$1.sh'; $2"
}

# until_true COMMAND...: returns when it succeeds.
until_true() { until "$@"; do sleep 0.02; done; }

# holds_lock NAME: somebody else holds a lock of the node, until lets_go.
holds_lock() {
  local -r file=$ULTRACLUSTER_ROOT/run/ultracluster/$1.lock
  mkdir -p "${file%/*}"
  flock "$file" sleep 600 3>&- &
  HOLDER=$!
  while flock --nonblock "$file" true; do sleep 0.02; done
}

lets_go() { pkill -P "$HOLDER" sleep; }

node::renew() {
  rm -rf "$ULTRACLUSTER_ROOT" "$FAKE"
  node::fresh
  if declare -F scenario >/dev/null; then scenario; fi
}

forget_calls() {
  : >"$FAKE/calls"
  : >"$FAKE/changes"
}

# kill_everywhere STEP LEAST: a run is killed before each of its changes (LEAST or more), and inside those that take time. The
# run after that must leave exactly what an uninterrupted one leaves. One run keeps what a kill would leave on disk at each of
# these points: of a killed run there is nothing else (interruption.bats kills for real).
#
# With DEPTH=deep each kill counts. Without, one does not that leaves what the one before left; and of kills between the same two
# commands the last one counts: of files that are written one after the other, and units that are started so. What does all again
# when the last is missing does so when more are missing.
kill_everywhere() {
  local -r step=$1 least=$2 disks=$SANDBOX/disks
  local changes kinds=('') between=('') disk at before='' expected found name verb
  local -A last=()
  rm -rf "$disks" && mkdir "$disks"
  KILL_DISKS=$disks run_steps "$step" >"$SANDBOX/output" 2>&1 || { cat "$SANDBOX/output" && return 1; }
  expected=$(snapshot)
  mapfile -t changes <"$FAKE/changes"
  ((${#changes[@]} >= least)) || { echo "only ${#changes[@]} changes" && cat "$FAKE/changes" && return 1; }
  for at in "${!changes[@]}"; do [[ -d $disks/$((at + 1)) ]] || { echo "no disk of change $((at + 1))" && return 1; }; done
  while read -r name verb _; do kinds+=("$name $verb"); done <"$FAKE/changes"
  for ((at = 1; at <= ${#changes[@]}; at++)); do
    between[at]="${kinds[at - 1]}, ${kinds[at]}"
    last[${between[at]}]=$at
  done
  for disk in $(printf '%s\n' "$disks"/* | sort --version-sort); do
    at=${disk##*/}
    if [[ ${DEPTH:-} != deep ]]; then
      [[ $at == *.inside || ${last[${between[at]}]} == "$at" ]] || continue
      [[ -z $before ]] || ! diff --recursive --brief --no-dereference --exclude={calls,changes,numbers,log} "$disk" "$before" >/dev/null || continue
    fi
    before=$disk
    rm -rf "$ULTRACLUSTER_ROOT" "$FAKE"
    cp -a "$disk/." "$SANDBOX"
    run_steps "$step" >"$SANDBOX/output" 2>&1 || { echo "after change $at:" && cat "$SANDBOX/output" && return 1; }
    found=$(snapshot)
    [[ $found == "$expected" ]] || {
      echo "after change $at" && diff <(echo "$expected") <(echo "$found")
      return 1
    }
  done
}

# --- what tests assert ---

assert::equal() {
  (($# == 2)) || { echo "assert::equal EXPECTED FOUND" && return 1; }
  [[ $1 == "$2" ]] || { printf 'expected: %s\nfound:    %s\n' "$1" "$2" && return 1; }
}

# The exit status of the last `run`
assert::status() {
  # shellcheck disable=SC2154 # set by `run`
  ((status == $1)) || { printf 'expected status %s, found %s\n%s\n' "$1" "$status" "$output" && return 1; }
}

assert::contains() {
  (($# == 2)) || { echo "assert::contains TEXT PART" && return 1; }
  [[ $1 == *"$2"* ]] || { printf 'not in the text: %s\nthe text:\n%s\n' "$2" "$1" && return 1; }
}

assert::last_log_line() {
  assert::equal "$1" "$(tail -n 1 "$LOG")"
}

# report::steps: the lines of the report that are about steps
report::steps() { grep '"step"' "$REPORT"; }

# assert::states STEP=STATE...: of the last run, in this order
assert::states() {
  (($# > 0)) || { echo "assert::states STEP=STATE..." && return 1; }
  local line found=()
  while read -r line; do
    [[ ! $line =~ ^\{\"time\":\ [^,]*,\ \"step\":\ \"([a-z_]+)\",\ \"state\":\ \"([a-z]+)\", ]] || found+=("${BASH_REMATCH[1]}=${BASH_REMATCH[2]}")
  done <"$REPORT"
  ((${#found[@]} <= $#)) || found=("${found[@]: -$#}")
  assert::equal "$*" "${found[*]}"
}

assert::called() { [[ $'\n'$(<"$FAKE/calls")$'\n' == *$'\n'"$1"$'\n'* ]] || { printf 'not called: %s\nbut:\n%s\n' "$1" "$(cat "$FAKE/calls")" && return 1; }; }
assert::never_called() { ! grep -q -- "^$1" "$FAKE/calls" || { printf 'called: %s\n' "$(grep -- "^$1" "$FAKE/calls")" && return 1; }; }
assert::no_changes() { assert::equal '' "$(<"$FAKE/changes")"; }

# Everything in the root that a run may leave: what the tests for kill -9 compare.
snapshot() {
  (
    cd "$ULTRACLUSTER_ROOT" || exit
    {
      find . -path ./var/log -prune -o -path ./run -prune -o -printf '%p %y %m %l\n' -type f -exec sha256sum {} +
      grep -rs . "$FAKE"/{packages,modules,held,loader}
      find "$FAKE/units" -type f -printf '%P\n'
    } | sort
    cat "$FAKE/lvm/pvs" "$FAKE/formatted" 2>/dev/null || true
  )
}
