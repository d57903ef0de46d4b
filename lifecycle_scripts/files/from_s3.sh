#!/usr/bin/env bash
# FOLDER SCRIPT [ARGUMENT...]: fetches the lifecycle scripts from FOLDER in S3, and runs one of them (without `.sh`).
#
# ParallelCluster hands one file to a node, not a folder: this one. FOLDER is s3://<bucket>/<cluster>/<content hash>, or
# s3://<bucket>/<cluster>/current: then the parameter /ultracluster/scripts/<cluster> of Systems Manager, which the deploy writes and
# nodes only read, has the hash of what was deployed last. The credentials are the instance's.
set -euo pipefail
umask 022 # a hardened image has another, with which users could not read what is installed

readonly ROOT=${ULTRACLUSTER_ROOT:-}
# The AWS CLI is in /usr/local/bin, which is not on the PATH of every service.
[[ -n $ROOT ]] || export PATH=$PATH:/usr/local/bin

fail() {
  echo "FAILED from_s3: $1" >&2
  exit 1
}

# retried COMMAND...: AWS may answer late right after a node's role was made.
retried() {
  local attempt
  for attempt in 1 2 3 4 5; do
    "$@" && return 0
    sleep "$((attempt * ${ULTRACLUSTER_RETRY_SECONDS:-5}))"
  done
  return 1
}

copy() { retried aws s3 cp --only-show-errors "$@"; }

# deployed_hash PARAMETER: the Region is what ParallelCluster has written down, else the AWS CLI's own.
deployed_hash() {
  local region
  local -a options=()
  region=$(sed -n 's/^cfn_region=//p' "$ROOT/etc/parallelcluster/cfnconfig" 2>/dev/null) || region=""
  [[ -z $region ]] || options=(--region "$region")
  retried aws ssm get-parameter --name "$1" --query Parameter.Value --output text "${options[@]}"
}

# hash_of FOLDER: of the content, as ultracluster.lifecycle makes it. What runs here as root must be what was deployed. `mounts`,
# `job_role` and `state_uri` are not part of it: they are known only after that. S3 keeps no modes; a script with `#!` is executable.
hash_of() {
  python3 -IS - "$1" <<'PYTHON'
import hashlib, json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
digest = hashlib.sha256()
for path in sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()):
    if path != "cluster.json":
        content = (folder / path).read_bytes()
        digest.update(path.encode() + b"\0" + (b"x" if content.startswith(b"#!") else b"-") + content + b"\0")
configuration = json.loads((folder / "cluster.json").read_bytes())
for key in ("mounts", "job_role", "state_uri"):
    configuration.pop(key, None)
digest.update(json.dumps(configuration, sort_keys=True).encode())
print(digest.hexdigest())
PYTHON
}

folder=${1:?usage: FOLDER SCRIPT [ARGUMENT...]}
script=${2:?usage: FOLDER SCRIPT [ARGUMENT...]}
shift 2
deployed=""
if [[ $folder == */current ]]; then
  cluster=${folder%/current}
  parameter=/ultracluster/scripts/${cluster##*/}
  deployed=$(deployed_hash "$parameter") || fail "the parameter $parameter, which says what was deployed, cannot be read"
  [[ $deployed =~ ^[0-9a-f]{64}$ ]] || fail "the parameter $parameter holds no hash of scripts"
  folder=$cluster/${deployed:0:12}
fi

command -v python3 >/dev/null || fail "this image has no python3, with which the scripts are compared with their hash"
readonly NAME=${folder##*/}
readonly HERE=$ROOT/opt/ultracluster/scripts/$NAME
if [[ ! -x $HERE/$script.sh ]]; then
  rm -rf -- "$HERE" "$HERE.new"
  mkdir -p "$HERE.new"
  copy --recursive "$folder/" "$HERE.new/" || fail "$folder cannot be read"
  [[ -e $HERE.new/$script.sh ]] || fail "there is no $script.sh in $folder"
  # an empty hash, where the content cannot be read, is none of a name
  content=$(hash_of "$HERE.new") || content=""
  [[ -n $content && ${#NAME} -ge 12 && $content == "${deployed:-$NAME}"* ]] ||
    fail "what is in $folder was changed after the deploy, nothing of it runs here: its hash is ${content:-none}, deployed was ${deployed:-$NAME}"
  find "$HERE.new" -name '*.sh' -exec chmod 0755 {} +
  chmod 0755 "${HERE%/*}"
  mv -T -- "$HERE.new" "$HERE"
fi
exec "$HERE/$script.sh" "$@"
