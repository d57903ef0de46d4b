#!/usr/bin/env bats
# What ParallelCluster itself calls: the file that fetches our scripts from S3, and the IMEX prolog of Slurm.

# shellcheck disable=SC2016,SC2119,SC2120 # fakes expand when they run; most prologs take no arguments
load helpers

readonly PEERS=/etc/nvidia-imex/nodes_config.cfg
readonly JOB='JobId=7 JobName=train ReqNodeList=(null) ExcNodeList=(null) NodeList=gb200-st-gb200-[1-2] BatchHost=gb200-st-gb200-1 OverSubscribe=NO Contiguous=0'

# fake NAME: a command whose body is read from stdin
fake() {
  rm -f "$SANDBOX/bin/$1"
  { printf '#!%s\nset -euo pipefail\necho "%s $*" >>"$FAKE/calls"\n' "$REAL/bash" "$1" && cat; } >"$SANDBOX/bin/$1"
  chmod +x "$SANDBOX/bin/$1"
}

scenario() {
  ln -sf "$(type -P find)" "$REAL/find"
  # A bucket is a folder, a parameter is a file. The first $FAKE/s3_failures calls of S3 fail.
  fake aws <<'FAKE'
if [[ "$1 $2 $3" == 'ssm get-parameter --name' ]]; then
  exec cat "$FAKE/parameters$4"
fi
[[ "$1 $2" == 's3 cp' ]]
left=$(cat "$FAKE/s3_failures" 2>/dev/null || echo 0)
if ((left > 0)); then
  echo $((left - 1)) >"$FAKE/s3_failures"
  exit 1
fi
from=$FAKE/s3/${*: -2:1}
to=${*: -1}
from=${from/s3:\/\//}
if [[ " $* " == *' --recursive '* ]]; then
  [[ -d $from ]] || exit 0 # as the AWS CLI: no object, no error
  cp -r "$from." "$to"
else
  cp "$from" "$to"
fi
FAKE
  fake scontrol <<'FAKE'
case "$*" in
  '--oneliner show job 7') cat "$FAKE/job" ;;
  '--oneliner show node gb200-st-gb200-[1-2]') cat "$FAKE/nodes" ;;
  *) exit 1 ;;
esac
FAKE
  fake nvidia-imex </dev/null
  fake nvidia-imex-ctl <<<'cat "$FAKE/imex_state"'
  fake mknod </dev/null
  echo "$JOB" >"$FAKE/job"
  {
    echo 'NodeName=gb200-st-gb200-2 Arch=aarch64 NodeAddr=10.0.0.9 NodeHostName=ip-10-0-0-9 State=ALLOCATED'
    echo 'NodeName=gb200-st-gb200-1 Arch=aarch64 NodeAddr=10.0.0.12 NodeHostName=ip-10-0-0-12 State=ALLOCATED'
  } >"$FAKE/nodes"
  echo UNAVAILABLE >"$FAKE/imex_state"
  mkdir -p "$FAKE/units/nvidia-imex"
  echo 'echo READY >"$FAKE/imex_state"' >"$FAKE/units/nvidia-imex/start"
  fake nvidia-smi <<<'cat "$FAKE/fabric"'
  fabric_shows 8f2a0000-0000-0000-0000-0000000000b1
  printf 'Character devices:\n  1 mem\n234 nvidia-caps\n235 nvidia-caps-imex-channels\n' >"$ULTRACLUSTER_ROOT/proc/devices"
}

# fabric_shows UUID: what the driver says of the GPUs' NVLink fabric
fabric_shows() {
  printf '    Fabric\n        State                             : Completed\n        CliqueId                          : 32766\n        ClusterUUID                       : %s\n' "$1" >"$FAKE/fabric"
}

prolog() { on_node SLURM_JOB_ID=7 ULTRACLUSTER_IMEX_SECONDS=1 "$@" bash "$SCRIPTS/files/imex_prolog.sh"; }
peers() { tr '\n' ' ' <"$ULTRACLUSTER_ROOT$PEERS"; }
log() { cat "$ULTRACLUSTER_ROOT/var/log/ultracluster/imex-prolog.log"; }

@test "IMEX: the nodes of the job become one domain" {
  run prolog
  assert::status 0
  assert::equal '10.0.0.12 10.0.0.9 ' "$(peers)"
  assert::called 'systemctl restart nvidia-imex.service'
  assert::called "mknod --mode=0666 $ULTRACLUSTER_ROOT/dev/nvidia-caps-imex-channels/channel0 c 235 0"
  assert::contains "$(log)" 'job 7: the domain of gb200-st-gb200-[1-2] is up'
}

@test "IMEX: the file is the same on every node, in whatever order Slurm tells them" {
  local first
  prolog
  first=$(peers)
  tac "$FAKE/nodes" >"$FAKE/turned"
  mv "$FAKE/turned" "$FAKE/nodes"
  rm "$ULTRACLUSTER_ROOT$PEERS"
  prolog
  assert::equal "$first" "$(peers)"
}

@test "IMEX: Slurm's own list goes before what scontrol says of the job" {
  sed -i 's/NodeList=gb200[^ ]*/NodeList=none/' "$FAKE/job"
  run prolog SLURM_JOB_NODELIST='gb200-st-gb200-[1-2]'
  assert::status 0
  assert::equal '10.0.0.12 10.0.0.9 ' "$(peers)"
}

@test "IMEX: a domain of the same nodes that is up stays as it is" {
  prolog
  forget_calls
  run prolog
  assert::status 0
  assert::never_called 'systemctl restart'
  assert::contains "$(log)" 'is up already'
}

@test "IMEX: the same nodes, but a daemon that is not ready, is restarted" {
  prolog
  echo RECOVERING >"$FAKE/imex_state"
  forget_calls
  run prolog
  assert::status 0
  assert::called 'systemctl restart nvidia-imex.service'
}

@test "IMEX: only for exclusive jobs" {
  local shared
  for shared in OK YES USER; do
    echo "${JOB/OverSubscribe=NO/OverSubscribe=$shared}" >"$FAKE/job"
    run prolog
    assert::status 0
    [[ ! -e $ULTRACLUSTER_ROOT$PEERS ]]
  done
  assert::never_called 'systemctl restart'
  assert::contains "$(log)" 'not exclusive'
  echo "${JOB/OverSubscribe=NO/OverSubscribe=TOPO}" >"$FAKE/job"
  run prolog
  assert::called 'systemctl restart nvidia-imex.service'
}

@test "IMEX: nothing where NVLink joins no instances, and without IMEX" {
  local cluster
  for cluster in 00000000-0000-0000-0000-000000000000 N/A '' 'Unknown Error'; do
    fabric_shows "$cluster"
    run prolog
    assert::status 0
  done
  fake nvidia-smi <<<'exit 9'
  run prolog
  assert::status 0
  fabric_shows 8f2a0000-0000-0000-0000-0000000000b1
  rm "$SANDBOX/bin/nvidia-imex"
  run prolog
  assert::status 0
  assert::never_called scontrol
  assert::never_called systemctl
}

@test "IMEX: a host name is resolved; one that cannot be fails the prolog" {
  sed -i 's/NodeAddr=10.0.0.12/NodeAddr=gb200-st-gb200-1/' "$FAKE/nodes"
  fake getent <<<'[[ $2 != gb200-st-gb200-1 ]] || echo "10.0.0.77  STREAM $2"'
  run prolog
  assert::status 0
  assert::equal '10.0.0.77 10.0.0.9 ' "$(peers)"
  fake getent <<<'exit 2'
  run prolog
  assert::status 1
  assert::contains "$output" 'IMEX: the nodes gb200-st-gb200-[1-2] have no addresses'
}

@test "IMEX: what goes wrong drains the node and says why" {
  echo 'echo INITIALIZING >"$FAKE/imex_state"' >"$FAKE/units/nvidia-imex/start"
  run prolog
  assert::status 1
  assert::contains "$output" 'was not ready after 1 s'
  touch "$FAKE/units/nvidia-imex/broken"
  run prolog
  assert::status 1
  assert::contains "$output" 'nvidia-imex.service does not start'
  echo 'Character devices:' >"$ULTRACLUSTER_ROOT/proc/devices"
  run prolog
  assert::status 1
  assert::contains "$output" 'no IMEX channels'
  rm "$FAKE/job"
  run prolog
  assert::status 1
  assert::contains "$(log)" 'FAILED: Slurm does not know its own job'
}

@test "IMEX: the prolog is installed where Slurm runs it, and nothing else is" {
  local -r folder=$ULTRACLUSTER_ROOT/opt/slurm/etc/scripts/prolog.d
  run on_node bash "$SCRIPTS/files/imex_install.sh"
  assert::status 0
  run on_node bash "$SCRIPTS/files/imex_install.sh"
  assert::status 0
  assert::equal 91_ultracluster_imex "$(ls -A "$folder")"
  assert::equal 755 "$(stat -c %a "$folder/91_ultracluster_imex")"
  cmp "$SCRIPTS/files/imex_prolog.sh" "$folder/91_ultracluster_imex"
}

@test "IMEX: another scheduler's folder" {
  run on_node bash "$SCRIPTS/files/imex_install.sh" /etc/aws/pcs/scheduler/prolog.d
  assert::status 0
  [[ -x $ULTRACLUSTER_ROOT/etc/aws/pcs/scheduler/prolog.d/91_ultracluster_imex ]]
}

# --- files/from_s3.sh ---

# The name that constructs/ultracluster/lifecycle/scripts.py gives to a folder: of $FAKE/s3/scripts/dev/new, with the executable files.
content_hash() {
  "$PYTHON" -IS - "$FAKE/s3/scripts/dev/new" "$@" <<'PYTHON'
import hashlib, json, pathlib, sys

root, *executable = sys.argv[1:]
digest = hashlib.sha256()
for file in sorted(path for path in pathlib.Path(root).rglob("*") if path.is_file() and path.name != "cluster.json"):
    name = file.relative_to(root).as_posix()
    digest.update(name.encode() + b"\0" + (b"x" if name in executable else b"-") + file.read_bytes() + b"\0")
configuration = {key: value for key, value in json.loads(pathlib.Path(root, "cluster.json").read_text()).items() if key != "mounts"}
digest.update(json.dumps(configuration, sort_keys=True).encode())
print(digest.hexdigest())
PYTHON
}

# The hash of a folder of $FAKE/s3/scripts/dev as a node sees it: what begins with `#!` is executable.
node_hash() {
  rm -rf "$FAKE/s3/scripts/dev/new"
  cp -r "$FAKE/s3/scripts/dev/$1" "$FAKE/s3/scripts/dev/new"
  content_hash entry.sh files/inner.sh
  rm -rf "$FAKE/s3/scripts/dev/new"
}

fetch() { on_node ULTRACLUSTER_RETRY_SECONDS=0 bash "$SCRIPTS/files/from_s3.sh" "$@"; }

bucket() {
  mkdir -p "$FAKE/s3/scripts/dev"/new/files "$FAKE/parameters/ultracluster/scripts"
  echo 'echo "entry of ${0%/*}: $*" | sed "s,/.*/,,"' >"$FAKE/s3/scripts/dev/new/entry.sh"
  echo '"$(dirname "$0")/../entry.sh" from files' >"$FAKE/s3/scripts/dev/new/files/inner.sh"
  sed -i '1i #!'"$REAL/bash" "$FAKE/s3/scripts/dev/new"/{entry,files/inner}.sh
  echo "no script" >"$FAKE/s3/scripts/dev/new/files/limits.conf"
  printf '{"schema": 1, "é": [1, 2.5, null], "mounts": {"lustre": "fs-1"}}' >"$FAKE/s3/scripts/dev/new/cluster.json"
  DIGEST=$(content_hash entry.sh files/inner.sh)
  HASH=${DIGEST:0:12}
  mv "$FAKE/s3/scripts/dev/new" "$FAKE/s3/scripts/dev/$HASH"
  echo "$DIGEST" >"$FAKE/parameters/ultracluster/scripts/dev"
}

@test "scripts from S3: fetched once, run with their arguments" {
  bucket
  run fetch "s3://scripts/dev/$HASH" entry --group gpu
  assert::status 0
  assert::equal "entry of $HASH: --group gpu" "$output"
  forget_calls
  run fetch "s3://scripts/dev/$HASH" files/inner
  assert::status 0
  assert::contains "$output" ": from files"
  assert::never_called aws
}

@test "scripts from S3: the folder that stays leads to what was deployed last" {
  bucket
  mkdir -p "$ULTRACLUSTER_ROOT/etc/parallelcluster"
  echo 'cfn_region=eu-north-1' >"$ULTRACLUSTER_ROOT/etc/parallelcluster/cfnconfig"
  run fetch s3://scripts/dev/current entry
  assert::status 0
  assert::contains "$output" "entry of $HASH"
  [[ -x $ULTRACLUSTER_ROOT/opt/ultracluster/scripts/$HASH/entry.sh ]]
  assert::called 'aws ssm get-parameter --name /ultracluster/scripts/dev --query Parameter.Value --output text --region eu-north-1'
}

@test "scripts from S3: nothing in the bucket decides which scripts are the newest" {
  bucket
  # Whoever writes to the bucket adds scripts of his own, whose name is their hash, and says that they are the newest.
  cp -r "$FAKE/s3/scripts/dev/$HASH" "$FAKE/s3/scripts/dev/new"
  echo "echo mine" >>"$FAKE/s3/scripts/dev/new/entry.sh"
  local mine
  mine=$(content_hash entry.sh files/inner.sh)
  mv "$FAKE/s3/scripts/dev/new" "$FAKE/s3/scripts/dev/${mine:0:12}"
  mkdir -p "$FAKE/s3/scripts/dev/current"
  printf 's3://scripts/dev/%s' "${mine:0:12}" >"$FAKE/s3/scripts/dev/current/uri"
  run fetch s3://scripts/dev/current entry
  assert::status 0
  assert::contains "$output" "entry of $HASH"
}

@test "scripts from S3: another content with the first twelve digits of the hash does not run" {
  bucket
  local other
  other=${DIGEST:0:12}$(printf '0%.0s' {1..52})
  echo "$other" >"$FAKE/parameters/ultracluster/scripts/dev"
  run fetch s3://scripts/dev/current entry
  assert::status 1
  assert::contains "$output" "its hash is $DIGEST, deployed was $other"
}

@test "scripts from S3: what was changed after the deploy does not run" {
  local change
  for change in 'echo "echo more" >>entry.sh' 'echo more >>files/limits.conf' 'touch another' 'rm files/limits.conf' \
    'echo "{\"schema\": 1}" >cluster.json'; do
    rm -rf "$FAKE/s3" "$ULTRACLUSTER_ROOT/opt/ultracluster"
    bucket
    (cd "$FAKE/s3/scripts/dev/$HASH" && eval "$change")
    run fetch "s3://scripts/dev/$HASH" entry
    assert::status 1
    changed=$(node_hash "$HASH")
    assert::equal "FAILED from_s3: what is in s3://scripts/dev/$HASH was changed after the deploy, nothing of it runs here: its hash is $changed, deployed was $HASH" "$output"
    run fetch s3://scripts/dev/current entry
    assert::status 1
    assert::equal "FAILED from_s3: what is in s3://scripts/dev/$HASH was changed after the deploy, nothing of it runs here: its hash is $changed, deployed was $DIGEST" "$output"
  done
  # A mount is written in by the deploy.
  rm -rf "$FAKE/s3"
  bucket
  sed -i 's/fs-1/fs-2/' "$FAKE/s3/scripts/dev/$HASH/cluster.json"
  run fetch "s3://scripts/dev/$HASH" entry
  assert::status 0
}

@test "scripts from S3: transient failures are retried" {
  bucket
  echo 3 >"$FAKE/s3_failures"
  run fetch "s3://scripts/dev/$HASH" entry
  assert::status 0
}

@test "scripts from S3: what cannot be had is said in one line" {
  bucket
  run fetch s3://scripts/dev/ffffffffffff entry
  assert::status 1
  assert::equal 'FAILED from_s3: there is no entry.sh in s3://scripts/dev/ffffffffffff' "$output"
  echo 'https://example.com/' >"$FAKE/parameters/ultracluster/scripts/dev"
  run fetch s3://scripts/dev/current entry
  assert::status 1
  assert::equal 'FAILED from_s3: the parameter /ultracluster/scripts/dev holds no hash of scripts' "$output"
  rm "$FAKE/parameters/ultracluster/scripts/dev"
  run fetch s3://scripts/dev/current entry
  assert::status 1
  assert::contains "$output" 'FAILED from_s3: the parameter /ultracluster/scripts/dev, which says what was deployed, cannot be read'
  echo 99 >"$FAKE/s3_failures"
  run fetch "s3://scripts/dev/$HASH" entry
  assert::status 1
  assert::contains "$output" "FAILED from_s3: s3://scripts/dev/$HASH cannot be read"
}

@test "scripts from S3: a fetch that was killed is begun again" {
  bucket
  mkdir -p "$ULTRACLUSTER_ROOT/opt/ultracluster/scripts/$HASH.new"
  echo broken >"$ULTRACLUSTER_ROOT/opt/ultracluster/scripts/$HASH.new/entry.sh"
  run fetch "s3://scripts/dev/$HASH" entry
  assert::status 0
  assert::contains "$output" "entry of $HASH"
}
