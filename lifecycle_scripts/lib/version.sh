# shellcheck shell=bash
# Versions as vendors write them: 2.6.0amzn1.0, 595.91.07, 13.3.1, 2.30.7-1+cuda13.0.
[[ -z ${ULTRACLUSTER_LIB_VERSION:-} ]] || return 0
ULTRACLUSTER_LIB_VERSION=1

# version::compare A B: sets VERSION_ORDER to older, same or newer: what A is beside B.
# An epoch (1:) and what says for whom it was built (+cuda13.0, ~ubuntu22.04) do not count. A package revision (-1)
# counts only where both have one.
version::compare() {
  local a=${1#*:} b=${2#*:}
  a=${a%%[+~]*} b=${b%%[+~]*}
  version::order "${a%%-*}" "${b%%-*}"
  [[ $VERSION_ORDER == same && $a == *-* && $b == *-* ]] || return 0
  version::order "${a#*-}" "${b#*-}"
}

# Number by number and word by word; a number that is not there is 0, and a word is more than none.
version::order() {
  local a=$1 b=$2 left right
  VERSION_ORDER=same
  while [[ -n $a || -n $b ]]; do
    version::part "$a"
    left=$VERSION_PART a=$VERSION_REST
    version::part "$b"
    right=$VERSION_PART b=$VERSION_REST
    if [[ ${left:-0}${right:-0} =~ ^[0-9]+$ ]]; then
      ((10#${left:-0} != 10#${right:-0})) || continue
      ((10#${left:-0} > 10#${right:-0})) && VERSION_ORDER=newer || VERSION_ORDER=older
    else
      [[ $left != "$right" ]] || continue
      [[ $left > $right ]] && VERSION_ORDER=newer || VERSION_ORDER=older
    fi
    return 0
  done
}

version::part() {
  VERSION_PART='' VERSION_REST=''
  if [[ $1 =~ ^[^0-9a-zA-Z]*([0-9]+|[a-zA-Z]+)(.*)$ ]]; then
    VERSION_PART=${BASH_REMATCH[1]} VERSION_REST=${BASH_REMATCH[2]}
  fi
}
