# shellcheck shell=bash
# Time in milliseconds, without a process per look at the clock.
[[ -z ${ULTRACLUSTER_LIB_CLOCK:-} ]] || return 0
ULTRACLUSTER_LIB_CLOCK=1

# clock::now VARIABLE
clock::now() {
  local -r microseconds=${EPOCHREALTIME/[.,]/} # the separator is the locale's
  printf -v "$1" '%s' "$((microseconds / 1000))"
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
