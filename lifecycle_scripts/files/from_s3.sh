#!/usr/bin/env bash
# FOLDER SCRIPT [ARGUMENT...]: fetches the lifecycle scripts from FOLDER in S3, and runs one of them (without `.sh`).
#
# ParallelCluster hands one file to a node, not a folder: this one. FOLDER is s3://<bucket>/<cluster>/<content hash>, or
# s3://<bucket>/<cluster>/current, where the object `uri` names the newest of them. The credentials are the instance's.
set -euo pipefail

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

folder=${1:?usage: FOLDER SCRIPT [ARGUMENT...]}
script=${2:?usage: FOLDER SCRIPT [ARGUMENT...]}
shift 2
if [[ $folder == */current ]]; then
  newest=$(copy "$folder/uri" -) || fail "$folder/uri cannot be read"
  [[ $newest =~ ^s3://[a-z0-9.-]+/[A-Za-z0-9._/-]+$ ]] || fail "$folder/uri holds no s3:// folder"
  folder=$newest
fi

readonly HERE=$ROOT/opt/ultracluster/scripts/${folder##*/}
if [[ ! -x $HERE/$script.sh ]]; then
  rm -rf -- "$HERE" "$HERE.new"
  mkdir -p "$HERE.new"
  copy --recursive "$folder/" "$HERE.new/" || fail "$folder cannot be read"
  # S3 keeps no modes
  find "$HERE.new" -name '*.sh' -exec chmod 0755 {} +
  [[ -e $HERE.new/$script.sh ]] || fail "there is no $script.sh in $folder"
  mv -T -- "$HERE.new" "$HERE"
fi
exec "$HERE/$script.sh" "$@"
