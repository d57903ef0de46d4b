#!/usr/bin/env bash
# FILE ENTRY [ARGUMENT...]: unpacks the lifecycle scripts that follow the last line, and runs one of their entries.
#
# ParallelCluster and PCS hand one file to a node, not a folder. This is the head of such a file: what follows it is the
# folder with its cluster.json as .tar.gz. One file has one checksum, which PCS verifies before it runs it.
set -euo pipefail
umask 022 # a hardened image has another, with which users could not read what is installed

readonly ROOT=${ULTRACLUSTER_ROOT:-}
entry=${1:?usage: FILE ENTRY [ARGUMENT...]}
shift
name=$(sha256sum <"$0")
folder=$ROOT/opt/ultracluster/unpacked/${name:0:16}
if [[ ! -x $folder/$entry.sh ]]; then
  rm -rf -- "$folder" "$folder.new"
  { mkdir -p "$folder.new" && chmod 0755 "${folder%/*}" &&
    tail -n "+$(($(awk '/^# --- archive ---$/ { print NR; exit }' "$0") + 1))" "$0" | tar --extract --gzip --no-same-owner --directory "$folder.new"; } ||
    { echo "FAILED unpack: the scripts of this node cannot be put into $folder, which has $(df --output=avail --block-size=1M "$ROOT/" | tail -n 1 | tr -d ' ') MiB: see the lines above" >&2 && exit 1; }
  [[ -x $folder.new/$entry.sh ]] || { echo "there is no entry $entry.sh in ${0##*/}" >&2 && exit 2; }
  mv -T -- "$folder.new" "$folder"
fi
exec "$folder/$entry.sh" "$@"
# --- archive ---
