# shellcheck shell=bash
# FSx for Lustre: client, mount, and whether data goes over EFA.
[[ -z ${ULTRACLUSTER_VERIFY_LUSTRE:-} ]] || return 0
ULTRACLUSTER_VERIFY_LUSTRE=1

# shellcheck source-path=SCRIPTDIR source=efa.sh
source "${BASH_SOURCE[0]%/*}/efa.sh"
for library in mounts lnet; do
  # shellcheck source=/dev/null
  source "${BASH_SOURCE[0]%/*}/../lib/$library.sh"
done

readonly LUSTRE_EFA_UNIT=configure-efa-fsx-lustre-client.service
# Lustre's default since 2.12: 1,024 pages of 4 KiB in one bulk request
readonly LUSTRE_PAGES_PER_REQUEST=1024

lustre::check_client() {
  local version
  version=$(modinfo --field version lustre 2>/dev/null) || true
  if [[ -z $version ]]; then
    check::fail lustre "there is no Lustre module for the running kernel"
  elif ! efa::module_loaded lustre || ! efa::module_loaded lnet; then
    check::fail lustre "the modules lustre and lnet $version are there, but not loaded"
  else
    check::pass lustre "client $version"
  fi
}

# lustre::check_mount PATH: mounted, and the servers answer
lustre::check_mount() {
  local -r path=$1
  local type source file text status=0
  if ! read -r type source < <(mounts::at "$path") || [[ $type != lustre ]]; then
    check::fail mount "$path is not a Lustre mount${type:+, but $type from $source}"
    return 1
  fi
  if ! timeout 60 lfs df "$ULTRACLUSTER_ROOT$path" >/dev/null 2>&1; then
    check::fail mount "$path: lfs df does not answer"
    return 1
  fi
  file=$ULTRACLUSTER_ROOT$path/.ultracluster-verify-$$
  # shellcheck disable=SC2016 # expanded by the shell that `timeout` can end
  text=$(timeout 60 bash -c 'umask 077; echo "$1" >"$1" && [[ $(<"$1") == "$1" ]] && rm -f -- "$1"' bash "$file" 2>&1) || status=$?
  if ((status == 0)); then
    check::pass mount "$path: $source, a file was written, read and removed"
  elif ((status == 124)); then
    check::fail mount "$path: writing a file did not end within 60 s"
  else
    check::unknown mount "$path is mounted, but this user cannot write there: ${text:-status $status}"
  fi
}

# lustre::check_efa PATH EXPECTED MIB: EXPECTED = interfaces that the FSx set-up binds on this type, empty = not known
lustre::check_efa() {
  local -r path=$1 expected=$2 mib=$3
  local bound
  if ! command -v lnetctl >/dev/null; then
    check::unknown lustre-efa "no lnetctl: whether Lustre uses EFA cannot be seen"
    return
  fi
  bound=$(lnet::interfaces efa)
  if ! lustre::efa_is_asked; then
    if ((bound == 0)); then
      check::skip lustre-efa "Lustre is on TCP, and EFA was not asked for"
      return
    fi
  elif [[ $expected == 0 ]]; then
    check::fail lustre-efa "Lustre over EFA was asked for, but FSx does not serve this instance type over EFA"
    return
  elif ((bound == 0)); then
    local reason="$LUSTRE_EFA_UNIT is not set up"
    [[ ! -e $ULTRACLUSTER_ROOT/etc/systemd/system/$LUSTRE_EFA_UNIT ]] || reason="$LUSTRE_EFA_UNIT bound no interface"
    ! systemctl is-failed --quiet "$LUSTRE_EFA_UNIT" 2>/dev/null || reason="$LUSTRE_EFA_UNIT failed"
    check::fail lustre-efa "Lustre is on TCP although EFA was asked for: $reason"
    return
  fi
  if [[ -n $expected && ${FABRIC_LUSTRE_LIMITED:-} == true ]] && ((bound > expected)); then
    check::fail lustre-bound "LNet bound $bound EFA interfaces instead of $expected (efa_interfaces_per_client): other nodes may not connect"
  # more or fewer is a choice of who set it up (1,024 connections per file system), none is not
  elif [[ -n $expected && $bound != "$expected" ]]; then
    check::warn lustre-bound "LNet bound $bound EFA interfaces, the FSx set-up binds $expected on this type"
  fi
  lustre::check_peers
  lustre::check_traffic "$path" "$mib" "$bound"
}

lustre::efa_is_asked() {
  [[ -n ${FABRIC_LUSTRE_EFA:-} || -e $ULTRACLUSTER_ROOT/etc/systemd/system/$LUSTRE_EFA_UNIT ]]
}

# Every server that LNet has found: the first one alone may be the only one that answers.
lustre::check_peers() {
  local nid own failed=() peers=()
  own=$({ timeout 60 lnetctl net show --net efa 2>/dev/null || true; } | awk '$NF ~ /@efa$/ { print $NF }')
  while IFS= read -r nid; do
    [[ $'\n'$own$'\n' == *$'\n'"$nid"$'\n'* ]] || peers+=("$nid")
  done < <({ timeout 60 lnetctl peer show 2>/dev/null || true; } | awk '$NF ~ /@efa$/ && !seen[$NF]++ { print $NF }')
  if ((${#peers[@]} == 0)); then
    check::unknown lustre-peers "LNet knows no server at an EFA address yet"
    return
  fi
  for nid in "${peers[@]}"; do
    timeout 30 lnetctl ping "$nid" >/dev/null 2>&1 || failed+=("$nid")
  done
  if ((${#failed[@]} == ${#peers[@]})); then
    check::fail lustre-peers "none of ${#peers[@]} EFA addresses answers: do the security groups of client and file system allow all traffic to and from themselves and each other, by group id?"
  elif ((${#failed[@]} > 0)); then
    check::warn lustre-peers "${#failed[@]} of ${#peers[@]} EFA addresses do not answer: ${failed[*]:0:3}"
  else
    check::pass lustre-peers "${#peers[@]} EFA addresses answer"
  fi
}

# Metadata and pings use TCP by design, so that its counters move, too: EFA has to move more, and by as much as was written.
lustre::check_traffic() {
  local -r path=$1 mib=$2 bound=$3
  local -r file=$ULTRACLUSTER_ROOT$path/.ultracluster-verify-direct-$$
  local efa tcp wanted status=0 text
  efa=$(lnet::messages efa)
  tcp=$(lnet::messages tcp)
  text=$(timeout 600 dd if=/dev/zero of="$file" bs=4M count="$((mib / 4))" oflag=direct status=none 2>&1) || status=$?
  rm -f -- "$file"
  if ((status != 0)); then
    check::unknown lustre-efa "$mib MiB could not be written to $path: ${text:-status $status}"
    return
  fi
  efa=$(($(lnet::messages efa) - efa))
  tcp=$(($(lnet::messages tcp) - tcp))
  wanted=$((mib * 256 / $(lustre::pages_per_request) / 2))
  local -r said="$mib MiB written: $efa messages over EFA on $bound interfaces, $tcp over TCP"
  if ((efa < 0 || tcp < 0)); then
    check::unknown lustre-efa "the counters of LNet went back"
  elif ((efa < wanted || efa <= tcp)); then
    check::fail lustre-efa "data does not go over EFA: $said, at least $wanted expected over EFA"
  else
    check::pass lustre-efa "$said"
  fi
}

lustre::pages_per_request() {
  local pages
  pages=$({ timeout 30 lctl get_param -n 'osc.*.max_pages_per_rpc' 2>/dev/null || true; } | sort -n | tail -n 1)
  [[ $pages =~ ^[1-9][0-9]*$ ]] || pages=$LUSTRE_PAGES_PER_REQUEST
  printf '%s' "$pages"
}
