#!/usr/bin/env bash
# node-keys NAME: prints the host keys of a node of this cluster, as ssh's KnownHostsCommand; fails for what is none. Each node
# writes its own, as root, to a folder that all nodes have: a node that was replaced is known by its new key.
set -euo pipefail
folder=''
read -r folder 2>/dev/null </opt/ultracluster/ssh/folder || exit 1
[[ ${1:-} =~ ^[A-Za-z0-9][A-Za-z0-9._:-]{0,253}$ && -r $folder/$1 ]] || exit 1
exec cat -- "$folder/$1"
