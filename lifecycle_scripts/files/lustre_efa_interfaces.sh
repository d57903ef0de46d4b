#!/bin/bash
# lustre_efa_interfaces.sh NUMBER: keeps this many EFA interfaces of LNet and removes the others. FSx's set-up binds one per
# PCI bus, and each is one of the 1,024 connections of a file system (FSx for Lustre User Guide, "Configuring EFA clients").
# Those that stay are spread over NUMA nodes and buses. After FSx's set-up at each boot, and by the step lustre_efa.
set -euo pipefail

readonly WANTED=$1 DEVICES=${ULTRACLUSTER_ROOT:-}/sys/class/infiniband

# Prints NUMA-NODE BUS NAME of each that is bound.
bound() {
  local name numa device
  while read -r name; do
    { read -r numa <"$DEVICES/$name/device/numa_node"; } 2>/dev/null || numa=0
    device=$(readlink "$DEVICES/$name/device") || device=$name
    printf '%s %s %s\n' "$numa" "${device##*/}" "$name"
  done < <(timeout 60 lnetctl net show --net efa 2>/dev/null | awk '$1 ~ /^[0-9]+:$/ { print $2 }')
}

mapfile -t interfaces < <(bound | LC_ALL=C sort -k1,1n -k2,2 -k3,3)
for place in "${!interfaces[@]}"; do
  ((place * WANTED % ${#interfaces[@]} >= WANTED)) || continue
  timeout 60 lnetctl net del --net efa --if "${interfaces[place]##* }"
done
