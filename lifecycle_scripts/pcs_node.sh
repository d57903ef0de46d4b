#!/usr/bin/env bash
# AWS PCS, lifecycle stage `NodeBootstrapped`: after PCS configured the node, before slurmd. Arguments:
#   [--lustre PATH DNS_NAME MOUNT_NAME yes|no] [--further-lustre NAME PATH DNS_NAME MOUNT_NAME yes|no]... [--openzfs PATH DNS_NAME VOLUME_PATH] [--job-role ARN] [--state URI] [--metrics-url URL] [--group NAME]
# Mounts, role, place of the state and of metrics are arguments because their names are known only after deployment, when the
# file that PCS hands to nodes has its checksum already. They are written into its cluster.json; `yes` is a Lustre file system with EFA.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

pcs_node::usage() {
  echo "usage: ${0##*/} [--lustre PATH DNS_NAME MOUNT_NAME yes|no] [--further-lustre NAME PATH DNS_NAME MOUNT_NAME yes|no]... [--openzfs PATH DNS_NAME VOLUME_PATH] [--job-role ARN] [--state URI] [--metrics-url URL] [--group NAME]" >&2
  exit 2
}

# pcs_node::unwritten STATUS
pcs_node::unwritten() {
  (($1 != 2)) || pcs_node::usage
  ENTRY_NAME=pcs_node ENTRY_STAGE=mounts
  entry::fail "mounts, role and state cannot be written into cluster.json: see the line above"
}

mounts=() rest=()
while (($# > 0)); do
  case $1 in
    --lustre) count=5 ;;
    --further-lustre) count=6 ;;
    --openzfs) count=4 ;;
    --job-role | --state | --metrics-url) count=2 ;;
    *) rest+=("$1") && shift && continue ;;
  esac
  (($# >= count)) || pcs_node::usage
  mounts+=("${@:1:count}")
  shift "$count"
done
if ((${#mounts[@]} > 0)); then
  # Whole or not at all: another boot may read it. lib/node.sh checks the values.
  python3 -IS - "$ULTRACLUSTER_HOME/cluster.json" "${mounts[@]}" <<'PYTHON' || pcs_node::unwritten "$?"
import json, os, sys

KEYS = {"--lustre": ("path", "dns_name", "mount_name", "efa"), "--openzfs": ("path", "dns_name", "volume_path")}
path, *words = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    cluster = json.load(file)
before, mounts, others = json.dumps(cluster), {}, {"--job-role": "job_role", "--state": "state_uri"}
while words:
    kind, *words = words
    if kind == "--metrics-url":
        url, *words = words
        cluster.setdefault("metrics", {})["remote_write_url"] = url
        continue
    if kind in others:
        cluster[others[kind]], *words = words
        continue
    name = ""
    if kind == "--further-lustre":
        name, *words = words
    values = dict(zip(KEYS["--lustre" if name else kind], words))
    words = words[len(values):]
    if values.get("efa", "no") not in ("yes", "no"):
        sys.exit(2)
    if "efa" in values:
        values["efa"] = values["efa"] == "yes"
    (mounts.setdefault("further_lustre", {}) if name else mounts)[name or kind.removeprefix("--")] = values
cluster["mounts"] = mounts
if json.dumps(cluster) != before:
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(cluster, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
PYTHON
fi

entry::run pcs_node "${rest[@]}"
