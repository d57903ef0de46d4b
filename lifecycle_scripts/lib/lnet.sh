# shellcheck shell=bash
# Lustre's network: which interfaces it has bound, and over which of them messages go.
[[ -z ${ULTRACLUSTER_LIB_LNET:-} ]] || return 0
ULTRACLUSTER_LIB_LNET=1

# shellcheck source-path=SCRIPTDIR source=devices.sh
source "${BASH_SOURCE[0]%/*}/devices.sh"

# lnet::interfaces NETWORK: how many are bound on efa or tcp
lnet::interfaces() {
  local line count=0
  while IFS= read -r line; do [[ $line != *"nid: "*"@$1"* ]] || count=$((count + 1)); done < <(timeout 60 lnetctl net show --net "$1" 2>/dev/null)
  echo "$count"
}

# lnet::messages NETWORK: sent and received, over ALL its interfaces
lnet::messages() {
  { timeout 60 lnetctl net show -v --net "$1" 2>/dev/null || true; } |
    awk '$1 == "send_count:" || $1 == "recv_count:" { sum += $2 } END { printf "%.0f", sum }'
}

# The first module that loads, and the one whose table of CPU partitions EFA's interfaces are bound to
lnet::is_loaded() {
  [[ -e $ULTRACLUSTER_ROOT/sys/module/libcfs || -e $ULTRACLUSTER_ROOT/sys/module/lnet ]]
}

# lnet::probe PATH: makes the object servers of the file system answer, and looks which network that went over. Sets LNET_EFA
# and LNET_TCP, the messages on each. Metadata and pings use TCP by design, so that TCP alone proves nothing.
lnet::probe() {
  local -r path=$1
  local efa tcp status=0
  efa=$(lnet::messages efa) tcp=$(lnet::messages tcp)
  timeout 30 lfs df "$path" >/dev/null 2>&1 || true
  lnet::moved "$efa" "$tcp"
  ((LNET_EFA == 0)) || return 0
  # What it knows already is answered from memory: a small file is not. It must be new, as the folder may be everybody's.
  local -r file=$path/.ultracluster-probe-$RANDOM$RANDOM
  timeout 60 dd if=/dev/zero of="$file" bs=1M count=4 conv=excl oflag=direct status=none 2>/dev/null || status=$?
  ((status != 0 && status != 124)) || rm -f -- "$file"
  lnet::moved "$efa" "$tcp"
  # A file system that takes no files from this node (read-only, full, a quota) proves nothing; one that does not answer does.
  ((status == 0 || status == 124)) || LNET_TCP=0
}

# lnet::moved EFA TCP: what was counted before
lnet::moved() {
  LNET_EFA=$(($(lnet::messages efa) - $1))
  # shellcheck disable=SC2034 # the caller reads both
  LNET_TCP=$(($(lnet::messages tcp) - $2))
}

# lnet::is_right: are as many bound as should be? More of them are wrong only where cluster.json limits their number.
lnet::is_right() {
  lnet::has_enough && { ((LNET_BOUND == LNET_WANTED)) || [[ ${NODE_LUSTRE_EFA_LIMITED:-} != yes ]]; }
}

# lnet::has_enough: sets LNET_BOUND, how many EFA interfaces are bound now, and LNET_WANTED; are there not fewer?
lnet::has_enough() {
  lnet::wanted
  LNET_BOUND=$(lnet::interfaces efa)
  ((LNET_BOUND >= LNET_WANTED))
}

# lnet::wanted: sets LNET_WANTED, how many EFA interfaces FSx's set-up binds on this node, by cluster.json. 0: Lustre stays on TCP
# here. Without a number there, at least one.
lnet::wanted() {
  local devices
  [[ -z ${LNET_WANTED:-} ]] || return 0
  LNET_WANTED=${NODE_LUSTRE_EFA_INTERFACES:-1}
  # No more than the node has: launch layouts of one type differ.
  devices=$(devices::count efa)
  ((LNET_WANTED == 0 || devices == 0 || devices >= LNET_WANTED)) || LNET_WANTED=$devices
}
