#!/usr/bin/env bash
# ultracluster-metadata up|status|probe|down: who on this node reaches the instance metadata, and with it the credentials of the
# node's role. Root and the services below do, and the users that /etc/ultracluster/metadata names; others are refused at once,
# as are containers behind a bridge. What counts is the host's user who opened the socket: in a user namespace (enroot, rootless
# containers) that is the one who started it.
set -euo pipefail
export LC_ALL=C

readonly ROOT=${ULTRACLUSTER_ROOT:-}
# Metadata over IPv4 and IPv6 (EC2 User Guide, "Access instance metadata"); and where agents of AWS hand credentials to containers
# (ECS Developer Guide, "Task IAM role"; whether HyperPod's does is not published).
readonly ADDRESSES_4="169.254.169.254 169.254.170.2" ADDRESSES_6="fd00:ec2::254"
# Users of services that ask for it and are not root; those that a node lacks are left out. ParallelCluster's daemons run as
# pcluster-admin on head and compute nodes (its cookbook, parallelcluster_supervisord.conf), which it lets pass itself, as it does
# dcv; cwagent and aoc are CloudWatch's and OpenTelemetry's agents, ultracluster-agent signs metrics (steps/metrics.sh), and sshd asks
# as ec2-instance-connect for keys.
readonly SERVICES="pcluster-admin dcv cwagent aoc ultracluster-agent ec2-instance-connect"
readonly TABLE=ultracluster_metadata NOBODY=65534

# Numbers of the users who pass, sorted: two runs write the same rules.
passing() {
  local more='' uid
  [[ ! -r $ROOT/etc/ultracluster/metadata ]] || more=$(sed -n 's/^USERS=//p' "$ROOT/etc/ultracluster/metadata")
  {
    echo 0
    # shellcheck disable=SC2086 # names; a status of 2 says that some are not there
    { getent passwd $SERVICES $more || true; } | while IFS=: read -r _ _ uid _; do echo "$uid"; done
  } | sort -nu
}

# A name that changes with the rules: what is in force is compared by it, and not by the form in which tools list rules.
digest() {
  local sum
  sum=$(printf '%s\n' "$ADDRESSES_4" "$ADDRESSES_6" "$UIDS" 2 | sha256sum)
  printf '%s' "${sum:0:8}"
}

# Tables of one's own stay apart from iptables' and everybody else's: what others save, restore or flush is not ours.
tool() {
  if command -v nft >/dev/null && nft list tables >/dev/null 2>&1; then
    echo nft
  elif command -v iptables >/dev/null && command -v ip6tables >/dev/null; then
    echo iptables
  else
    echo none
  fi
}

# A packet that opens no connection is let through: of a socket that is closing nobody is the owner any more, and only root
# can have opened it. One that opens a connection and has no owner is refused.
nft_rules() {
  local -r four=${ADDRESSES_4// /, } six=${ADDRESSES_6// /, } uids=${UIDS//$'\n'/, }
  cat <<EOT
table inet $TABLE
delete table inet $TABLE
table inet $TABLE {
  chain services_$DIGEST {
    meta skuid { $uids } accept
    tcp flags & (fin | syn | rst | ack) != syn accept
    meta l4proto tcp reject with tcp reset
    reject
  }
  chain output {
    type filter hook output priority -10; policy accept;
    ip daddr { $four } goto services_$DIGEST
    ip6 daddr { $six } goto services_$DIGEST
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    ip daddr { $four } reject
    ip6 daddr { $six } reject
  }
}
EOT
}

nft_in_force() {
  local rules
  rules=$(nft list table inet "$TABLE" 2>/dev/null) || return 1
  [[ $rules == *"hook output"*"goto services_$DIGEST"* && $rules == *"reject with tcp reset"* && $rules == *"hook forward"* ]]
}

# of_families COMMAND: calls it with iptables and each of its addresses
of_families() {
  local address
  for address in $ADDRESSES_4; do "$1" iptables "$address" || return; done
  for address in $ADDRESSES_6; do "$1" ip6tables "$address" || return; done
}

ipt_jumps() {
  "$1" -w 10 -C OUTPUT -d "$2" -j "$CHAIN" && "$1" -w 10 -C FORWARD -d "$2" -j REJECT && "$1" -w 10 -C "$CHAIN" -j REJECT
}

ipt_chain() {
  local uid
  "$1" -w 10 -N "$CHAIN" 2>/dev/null || "$1" -w 10 -F "$CHAIN"
  # RETURN, not ACCEPT: what others refuse stays refused.
  for uid in $UIDS; do "$1" -w 10 -A "$CHAIN" -m owner --uid-owner "$uid" -j RETURN; done
  "$1" -w 10 -A "$CHAIN" -p tcp ! --syn -j RETURN
  "$1" -w 10 -A "$CHAIN" -p tcp -j REJECT --reject-with tcp-reset
  "$1" -w 10 -A "$CHAIN" -j REJECT
}

ipt_jump() {
  "$1" -w 10 -C OUTPUT -d "$2" -j "$CHAIN" 2>/dev/null || "$1" -w 10 -I OUTPUT 1 -d "$2" -j "$CHAIN"
  "$1" -w 10 -C FORWARD -d "$2" -j REJECT 2>/dev/null || "$1" -w 10 -I FORWARD 1 -d "$2" -j REJECT
}

# ipt_remove COMMAND CHAIN: our chains but this one, and the rules that lead there
ipt_remove() {
  local rule chain
  while read -r _ chain rule; do
    [[ $rule == *" -j ULTRACLUSTER_"* && $rule != *" -j $2" ]] || continue
    # shellcheck disable=SC2086 # one word for each argument, as iptables prints them
    "$1" -w 10 -D "$chain" $rule
  done < <("$1" -w 10 -S OUTPUT)
  while read -r _ chain; do
    [[ $chain == ULTRACLUSTER_* && $chain != "$2" ]] || continue
    "$1" -w 10 -F "$chain" && "$1" -w 10 -X "$chain"
  done < <("$1" -w 10 -S | grep '^-N')
}

ipt_forward() { "$1" -w 10 -D FORWARD -d "$2" -j REJECT 2>/dev/null || true; }

up() {
  case $TOOL in
    nft) nft_in_force || nft_rules | nft -f - ;;
    iptables)
      status >/dev/null && return 0
      ipt_chain iptables
      ipt_chain ip6tables
      of_families ipt_jump
      ipt_remove iptables "$CHAIN"
      ipt_remove ip6tables "$CHAIN"
      ;;
    none)
      echo "this image has neither nft nor iptables" >&2
      return 1
      ;;
  esac
}

status() {
  case $TOOL in
    nft) nft_in_force ;;
    iptables) of_families ipt_jumps 2>/dev/null ;;
    none) false ;;
  esac || {
    echo "absent: the rules are not in force ($TOOL)"
    return 1
  }
  echo "in force ($TOOL), passing: ${UIDS//$'\n'/ }"
}

down() {
  case $TOOL in
    nft) ! nft list table inet "$TABLE" >/dev/null 2>&1 || nft delete table inet "$TABLE" ;;
    iptables)
      ipt_remove iptables none
      ipt_remove ip6tables none
      of_families ipt_forward
      ;;
  esac
}

# Somebody without rights tries to connect, and must not get there.
probe() {
  command -v setpriv >/dev/null || return 0
  setpriv --reuid="$NOBODY" --regid="$NOBODY" --clear-groups -- python3 -IS -c '
import socket, sys
with socket.socket() as client:
    client.settimeout(2)
    sys.exit(client.connect_ex((sys.argv[1], 80)) == 0)' "${ADDRESSES_4%% *}" || {
    echo "a user without rights is not refused"
    return 1
  }
}

UIDS=$(passing)
DIGEST=$(digest)
readonly UIDS DIGEST
readonly CHAIN=ULTRACLUSTER_$DIGEST
TOOL=$(tool)
readonly TOOL
case ${1:-} in
  up | status | probe | down) "$1" ;;
  *)
    echo "usage: ultracluster-metadata up|status|probe|down" >&2
    exit 2
    ;;
esac
