# shellcheck shell=bash
# Time in milliseconds, without a process per look at the clock.
[[ -z ${ULTRACLUSTER_LIB_CLOCK:-} ]] || return 0
ULTRACLUSTER_LIB_CLOCK=1

# clock::now VARIABLE: since the kernel started. Nobody sets this clock; the one of the wall may be moved by hours at the first
# boot, and with it every deadline. Its hands move by 10 ms.
clock::now() {
  local uptime
  read -r uptime _ </proc/uptime
  clock::to_ms "$1" "$uptime"
}

# clock::to_ms VARIABLE SECONDS: 0.25 becomes 250
clock::to_ms() {
  local -r whole=${2%%.*}
  local fraction=000
  [[ $2 != *.* ]] || fraction=${2#*.}000
  printf -v "$1" '%s' "$((10#${whole:-0} * 1000 + 10#${fraction:0:3}))"
}

# clock::to_seconds VARIABLE MILLISECONDS: 250 becomes 0.250
clock::to_seconds() {
  printf -v "$1" '%d.%03d' "$(($2 / 1000))" "$(($2 % 1000))"
}
