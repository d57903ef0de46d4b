#!/usr/bin/env bash
# ultracluster-enroot-folder NAME: prints a folder of the user who calls it, for enroot's configuration: NAME below one that
# belongs to that user alone, on a local disk of this node; for `cache` on the file system that nodes share, where there is one.
#
# Both are open to everybody, so that somebody else may have put a folder (or a link) in this user's place: it is used
# only if it is the user's own, else the next name is tried.
set -euo pipefail
umask 077

readonly ROOT=${ULTRACLUSTER_ROOT:-}
base=/scratch
if [[ ! -d $ROOT$base ]]; then
  base=$(cat "$ROOT/etc/ultracluster/enroot-base" 2>/dev/null || true)
fi
name=${1:?usage: ultracluster-enroot-folder NAME}

# below BASE: prints the folder; status 1 where there is none for this user
below() {
  local suffix folder
  for suffix in '' -1 -2 -3 -4 -5 -6 -7 -8 -9; do
    folder=$1/.enroot-$UID$suffix
    mkdir "$ROOT$folder" 2>/dev/null || true
    if [[ -d $ROOT$folder && ! -L $ROOT$folder && -O $ROOT$folder ]] && mkdir -p "$ROOT$folder/$name" 2>/dev/null; then
      printf '%s\n' "$folder/$name"
      return
    fi
  done
  return 1
}

if [[ $name == cache ]]; then
  shared=$(cat "$ROOT/etc/ultracluster/enroot-cache" 2>/dev/null || true)
  [[ -z $shared || ! -d $ROOT$shared ]] || ! below "$shared" || exit 0
fi
[[ -z $base ]] || ! below "$base" || exit 0
# No local disk takes it: in the home, apart from those of other nodes, which may share it
folder=${HOME:-/tmp}/.local/share/enroot-$(uname -n)/$name
mkdir -p "$folder" && printf '%s\n' "$folder"
