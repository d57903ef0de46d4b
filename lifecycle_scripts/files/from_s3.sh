#!/usr/bin/env bash
# FOLDER SCRIPT [ARGUMENT...]: fetches the lifecycle scripts from FOLDER in S3, and runs one of them (without `.sh`).
#
# ParallelCluster hands one file to a node, not a folder: this one. FOLDER is s3://<bucket>/<cluster>/<content hash>, or
# s3://<bucket>/<cluster>/current, where the object `uri` names the newest of them. The credentials are the instance's.
set -euo pipefail
umask 022 # a hardened image has another, with which users could not read what is installed

readonly ROOT=${ULTRACLUSTER_ROOT:-}
# The AWS CLI is in /usr/local/bin, which is not on the PATH of every service.
[[ -n $ROOT ]] || export PATH=$PATH:/usr/local/bin

fail() {
  echo "FAILED from_s3: $1" >&2
  exit 1
}

# copy ARGUMENT...: S3 may answer late right after a node's role was made.
copy() {
  local attempt
  for attempt in 1 2 3 4 5; do
    aws s3 cp --only-show-errors "$@" && return 0
    sleep "$((attempt * ${ULTRACLUSTER_RETRY_SECONDS:-5}))"
  done
  return 1
}

# is_what_its_name_says FOLDER: is the name the hash of the content, as ultracluster.lifecycle makes it? What runs here as root must
# be what was deployed. `mounts`, `job_role` and `state_uri` are not part of it: they are known only after that. S3 keeps no modes; a script with
# `#!` is executable.
is_what_its_name_says() {
  python3 -IS - "$1" "$NAME" <<'PYTHON'
import hashlib, json, pathlib, sys

folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
digest = hashlib.sha256()
for path in sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()):
    if path != "cluster.json":
        content = (folder / path).read_bytes()
        digest.update(path.encode() + b"\0" + (b"x" if content.startswith(b"#!") else b"-") + content + b"\0")
configuration = json.loads((folder / "cluster.json").read_bytes())
for key in ("mounts", "job_role", "state_uri"):
    configuration.pop(key, None)
digest.update(json.dumps(configuration, sort_keys=True).encode())
sys.exit(digest.hexdigest()[: len(name)] != name or len(name) < 12)
PYTHON
}

folder=${1:?usage: FOLDER SCRIPT [ARGUMENT...]}
script=${2:?usage: FOLDER SCRIPT [ARGUMENT...]}
shift 2
if [[ $folder == */current ]]; then
  newest=$(copy "$folder/uri" -) || fail "$folder/uri cannot be read"
  [[ $newest =~ ^s3://[a-z0-9.-]+/[A-Za-z0-9._/-]+$ ]] || fail "$folder/uri holds no s3:// folder"
  folder=$newest
fi

command -v python3 >/dev/null || fail "this image has no python3, with which the scripts are compared with their hash"
readonly NAME=${folder##*/}
readonly HERE=$ROOT/opt/ultracluster/scripts/$NAME
if [[ ! -x $HERE/$script.sh ]]; then
  rm -rf -- "$HERE" "$HERE.new"
  mkdir -p "$HERE.new"
  copy --recursive "$folder/" "$HERE.new/" || fail "$folder cannot be read"
  [[ -e $HERE.new/$script.sh ]] || fail "there is no $script.sh in $folder"
  is_what_its_name_says "$HERE.new" || fail "what is in $folder is not what its name says: it was changed after the deploy, nothing of it runs here"
  find "$HERE.new" -name '*.sh' -exec chmod 0755 {} +
  chmod 0755 "${HERE%/*}"
  mv -T -- "$HERE.new" "$HERE"
fi
exec "$HERE/$script.sh" "$@"
