#!/usr/bin/env bash
# [FOLDER]: puts the IMEX prolog into the folder of which Slurm runs every file as a prolog.
set -euo pipefail

readonly ROOT=${ULTRACLUSTER_ROOT:-}
readonly HERE=${BASH_SOURCE[0]%/*}
# The folder of ParallelCluster (3.6 and later), which compute nodes share with the head node.
readonly FOLDER=$ROOT${1:-/opt/slurm/etc/scripts/prolog.d}
readonly NAME=91_ultracluster_imex

mkdir -p "$FOLDER"
# Nodes may be running it: a new file beside it, of a name that Slurm would not run, then one rename.
cp -- "$HERE/imex_prolog.sh" "$FOLDER/../.$NAME.new"
chmod 0755 "$FOLDER/../.$NAME.new"
mv -f -- "$FOLDER/../.$NAME.new" "$FOLDER/$NAME"
echo "wrote $FOLDER/$NAME"
