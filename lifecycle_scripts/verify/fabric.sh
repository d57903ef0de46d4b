#!/usr/bin/env bash
# Does EFA work on this node, and what stands on it: devices, libfabric, GDRCopy, Lustre. "Installed" proves nothing.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: fabric.sh [OPTION...] [CHECK...]
       fabric.sh [OPTION...] counters before|after
       fabric.sh [OPTION...] nccl LOG...

CHECKs: devices modules memlock libfabric gdrcopy lustre; all where none is named.
counters: keep the counters of all EFA devices, then say which moved since.
nccl: does NCCL use EFA, by the lines in its logs (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET).

  --json                 one JSON object on one line
  --type TYPE            EC2 instance type; else from cluster.json or the firmware
  --efa-interfaces N     how many are right; else from cluster.json
  --lustre-path PATH     mount point; else from cluster.json
  --lustre-efa           Lustre must use EFA; else where cluster.json says so, or its set-up unit is installed
  --write-mib N          written to Lustre to see the counters move (default 1024)
  --state FILE           where `counters before` keeps what it saw

The last line is PASS, FAIL or NOT JUDGED with the reason. Status 0 for PASS, 1 for FAIL and NOT JUDGED, 2 for a wrong call.
TEXT
}

ULTRACLUSTER_HOME=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
export ULTRACLUSTER_HOME ULTRACLUSTER_ROOT=${ULTRACLUSTER_ROOT:-} LC_ALL=C
for library in lib/node verify/checks verify/efa verify/gdrcopy verify/lustre verify/nccl; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/$library.sh"
done
# A user's PATH may lack these; a test's PATH is its own.
[[ -n $ULTRACLUSTER_ROOT ]] || export PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin

readonly FABRIC_CHECKS=(devices modules memlock libfabric gdrcopy lustre)

fabric::main() {
  local action=checks
  FABRIC_JSON='' FABRIC_TYPE='' FABRIC_INTERFACES='' FABRIC_LUSTRE_PATH='' FABRIC_LUSTRE_EFA='' FABRIC_WRITE_MIB=1024
  FABRIC_STATE=$ULTRACLUSTER_ROOT/run/ultracluster/efa-counters
  export FABRIC_JSON FABRIC_LUSTRE_EFA FABRIC_LUSTRE_LIMITED # the libraries read them
  while (($# > 0)) && [[ $1 == -* ]]; do
    case $1 in
      --json) FABRIC_JSON=yes ;;
      --lustre-efa) FABRIC_LUSTRE_EFA=yes ;;
      --help | -h) usage && exit 0 ;;
      --type | --efa-interfaces | --lustre-path | --write-mib | --state)
        (($# > 1)) || fabric::wrong "$1 needs a value"
        fabric::option "$1" "$2"
        shift
        ;;
      *) fabric::wrong "unknown option $1" ;;
    esac
    shift
  done
  case ${1:-} in
    counters | nccl)
      action=$1
      shift
      ;;
  esac
  fabric::identify
  "fabric::$action" "$@"
  check::finish
}

fabric::option() {
  local -r name=$1 value=$2
  case $name in
    --type) FABRIC_TYPE=${value#ml.} ;;
    --efa-interfaces)
      [[ $value =~ ^[0-9]{1,3}$ ]] || fabric::wrong "$name takes a number, not '$value'"
      FABRIC_INTERFACES=$value
      ;;
    --lustre-path)
      [[ $value == /* ]] || fabric::wrong "$name takes an absolute path, not '$value'"
      FABRIC_LUSTRE_PATH=$value
      ;;
    --write-mib)
      [[ $value =~ ^[1-9][0-9]{1,6}$ ]] || fabric::wrong "$name takes a number from 10 on, not '$value'"
      FABRIC_WRITE_MIB=$value
      ;;
    --state) FABRIC_STATE=$value ;;
  esac
}

fabric::wrong() {
  printf 'fabric.sh: %s\n' "$1" >&2
  usage >&2
  exit 2
}

# What this node is and should show. Options come before cluster.json, which knows the types of its groups.
fabric::identify() {
  local key value
  NODE_INSTANCE_TYPE='' LUSTRE_PATH='' LUSTRE_EFA='' FABRIC_HOST_WITHOUT_TOOLS=''
  if [[ -e $RESOURCE_CONFIG && -e $ULTRACLUSTER_HOME/cluster.json ]]; then
    # A node that cannot be found there is looked at all the same.
    node::identify || true
  fi
  FABRIC_TYPE=${FABRIC_TYPE:-$NODE_INSTANCE_TYPE}
  if [[ -z $FABRIC_TYPE ]]; then
    { read -r FABRIC_TYPE <"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"; } 2>/dev/null || true
  fi
  FABRIC_LUSTRE_PATH=${FABRIC_LUSTRE_PATH:-$LUSTRE_PATH}
  FABRIC_LUSTRE_EFA=${FABRIC_LUSTRE_EFA:-$LUSTRE_EFA}
  while IFS='=' read -r key value; do
    case $key in
      efa_interfaces) FABRIC_INTERFACES=${FABRIC_INTERFACES:-$value} ;;
      lustre_efa_interfaces) FABRIC_LUSTRE_INTERFACES=$value ;;
      lustre_efa_limited) FABRIC_LUSTRE_LIMITED=$value ;;
      gpu_direct) FABRIC_GPU_DIRECT=$value ;;
      nccl_protocol) FABRIC_PROTOCOL=$value ;;
      lustre_path) FABRIC_LUSTRE_PATH=${FABRIC_LUSTRE_PATH:-$value} ;;
      lustre_efa) FABRIC_LUSTRE_EFA=${FABRIC_LUSTRE_EFA:-$value} ;;
      eks) FABRIC_HOST_WITHOUT_TOOLS=$value ;;
    esac
  done < <(fabric::facts "$FABRIC_TYPE" "${NODE_GROUP:-}")
  [[ ! -d $ULTRACLUSTER_ROOT/etc/eks ]] || FABRIC_HOST_WITHOUT_TOOLS=yes
}

# Prints KEY=value lines; an empty value is one that nobody knows.
fabric::facts() {
  python3 -IS - "$ULTRACLUSTER_HOME/cluster.json" "$@" <<'PYTHON'
import json, sys

cluster_path, instance_type, group_name = sys.argv[1:]
try:
    with open(cluster_path, encoding="utf-8") as file:
        cluster = json.load(file)
    groups = {name: group for name, group in cluster["node_groups"].items() if group.get("instance_type") == instance_type}
except (OSError, ValueError, KeyError, TypeError, AttributeError):
    cluster, groups = {}, {}
groups = {group_name: groups[group_name]} if group_name in groups else groups


def setting(key):
    """What all groups of the type say; None where they say nothing, or not the same."""
    values = [group.get(key) for group in groups.values()]
    return values[0] if values and all(value == values[0] for value in values) else None


# of a type with several layouts any of them is right
right = setting("efa_layouts") or [setting("efa_interfaces")]
print("efa_interfaces=" + " ".join(str(number) for number in right if isinstance(number, int)))
bound = setting("lustre_efa_interfaces")
print("lustre_efa_interfaces=" + ("" if bound is None else str(bound)))
print("lustre_efa_limited=" + {True: "true"}.get(setting("lustre_efa_limited"), ""))
print("gpu_direct=" + {True: "true", False: "false"}.get(setting("gpu_direct_rdma"), ""))
print("nccl_protocol=" + (setting("nccl_protocol") or ""))
lustre = (cluster.get("mounts") or {}).get("lustre") or {}
print(f"lustre_path={lustre.get('path', '')}")
print("lustre_efa=" + ("yes" if lustre.get("efa") is True else ""))
print("eks=" + ("yes" if str(cluster.get("orchestrator", "")).endswith("eks") else ""))
PYTHON
}

fabric::checks() {
  local name checks=("$@")
  ((${#checks[@]} > 0)) || checks=("${FABRIC_CHECKS[@]}")
  for name in "${checks[@]}"; do
    [[ " ${FABRIC_CHECKS[*]} " == *" $name "* ]] || fabric::wrong "unknown check '$name'"
  done
  mapfile -t EFA_DEVICES < <(devices::names efa)
  for name in "${checks[@]}"; do
    # what stands on EFA is not looked at where none is expected
    if [[ $name != @(devices|gdrcopy|lustre) && $FABRIC_INTERFACES == 0 && ${#EFA_DEVICES[@]} == 0 ]]; then
      check::skip "$name" "this node has no EFA"
      continue
    fi
    case $name in
      devices) efa::check_devices "$FABRIC_INTERFACES" ;;
      modules) efa::check_modules ;;
      memlock) efa::check_memlock ;;
      libfabric) efa::check_libfabric "$FABRIC_HOST_WITHOUT_TOOLS" ;;
      gdrcopy) gdrcopy::check "$FABRIC_HOST_WITHOUT_TOOLS" ;;
      lustre) fabric::lustre ;;
    esac
  done
}

fabric::lustre() {
  if [[ -z $FABRIC_LUSTRE_PATH ]]; then
    check::skip lustre "no Lustre file system is known: give --lustre-path"
    return
  fi
  lustre::check_client
  lustre::check_mount "$FABRIC_LUSTRE_PATH" || return 0
  lustre::check_efa "$FABRIC_LUSTRE_PATH" "${FABRIC_LUSTRE_INTERFACES:-}" "$FABRIC_WRITE_MIB"
}

fabric::counters() {
  case ${1:-} in
    before) efa::counters_before "$FABRIC_STATE" ;;
    after) efa::counters_after "$FABRIC_STATE" ;;
    *) fabric::wrong "counters takes before or after" ;;
  esac
}

fabric::nccl() {
  (($# > 0)) || fabric::wrong "nccl takes one log or more"
  nccl::check_logs "${FABRIC_PROTOCOL:-}" "$FABRIC_INTERFACES" "${FABRIC_GPU_DIRECT:-}" "$@"
}

fabric::main "$@"
