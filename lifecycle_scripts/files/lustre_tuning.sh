#!/usr/bin/env bash
# ultracluster-lustre-tuning up|status: what FSx asks of large Lustre clients (FSx for Lustre User Guide, "Performance tips",
# read 2026-11-22). The parameters belong to mounts and are reset by each new one, so a timer runs `up`; the kernel
# modules' options are in /etc/modprobe.d.
set -euo pipefail
export LC_ALL=C

readonly ROOT=${ULTRACLUSTER_ROOT:-}

# One parameter and its value per line; max_mod_rpcs_in_flight has to stay below max_rpcs_in_flight.
parameters() {
  local cpus memory
  cpus=$(getconf _NPROCESSORS_ONLN)
  memory=$(awk '$1 == "MemTotal:" { print int($2 / 1048576) }' "$ROOT/proc/meminfo") # GiB
  if ((memory > 64)); then
    echo "ldlm.namespaces.*.lru_max_age 600000"
    echo "ldlm.namespaces.*.lru_size $((100 * cpus))"
  fi
  if ((cpus > 64)); then
    echo "osc.*OST*.max_rpcs_in_flight 32"
    echo "mdc.*.max_rpcs_in_flight 64"
    echo "mdc.*.max_mod_rpcs_in_flight 50"
  fi
  echo "llite.*.statahead_max 512"
  echo "llite.*.statahead_agl 1"
}

# Names of parameters that are there, with another value; none where nothing is mounted
others() {
  local name value found
  while read -r name value; do
    found=$(timeout 30 lctl get_param -n "$name" 2>/dev/null || true)
    found=${found:+$'\n'}$found
    [[ -z ${found//$'\n'"$value"/} ]] || echo "$name $value"
  done < <(parameters)
}

up() {
  local name value
  command -v lctl >/dev/null || return 0
  while read -r name value; do
    timeout 30 lctl set_param "$name=$value" >/dev/null || echo "lctl does not take $name=$value" >&2
  done < <(others)
}

case ${1:-} in
  up) up ;;
  status) ! command -v lctl >/dev/null || others ;;
  *)
    echo "usage: ultracluster-lustre-tuning up|status" >&2
    exit 1
    ;;
esac
