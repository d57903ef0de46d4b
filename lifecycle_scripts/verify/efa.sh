# shellcheck shell=bash
# EFA on the host: devices, modules, locked memory, libfabric, counters.
[[ -z ${ULTRACLUSTER_VERIFY_EFA:-} ]] || return 0
ULTRACLUSTER_VERIFY_EFA=1

# shellcheck source-path=SCRIPTDIR source=checks.sh
source "${BASH_SOURCE[0]%/*}/checks.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/devices.sh
source "${BASH_SOURCE[0]%/*}/../lib/devices.sh"

# libfabric registers its buffers as locked memory (aws/aws-ofi-nccl, doc): less than this is known to fail
readonly EFA_MEMLOCK=17179869184
# On types with Nitro v5 the devices come up some seconds after the first login.
readonly EFA_ATTEMPTS=3

# efa::check_devices EXPECTED: numbers that are right, one of them; empty = not known. Sets EFA_DEVICES.
efa::check_devices() {
  local -r expected=$1
  local attempt entries=() rates
  for ((attempt = 1; attempt <= EFA_ATTEMPTS; attempt++)); do
    mapfile -t EFA_DEVICES < <(devices::names efa)
    [[ -n $expected && " $expected " != *" ${#EFA_DEVICES[@]} "* ]] || break
    ((attempt == EFA_ATTEMPTS)) || sleep "${ULTRACLUSTER_EFA_PAUSE:-5}"
  done
  entries=("$ULTRACLUSTER_ROOT"/sys/class/infiniband/*)
  [[ -e ${entries[0]} ]] || entries=()
  local -r found=${#EFA_DEVICES[@]} others=$((${#entries[@]} - ${#EFA_DEVICES[@]}))
  local message="$found EFA devices"
  ((others == 0)) || message+=" ($others more entries are not EFA)"
  rates=$(efa::rates)
  [[ -z $rates ]] || message+=" at $rates"
  if [[ -z $expected ]]; then
    check::unknown devices "$message; how many this type should have is not known: give --efa-interfaces"
  elif [[ " $expected " == *" $found "* ]]; then
    if ((found == 0)); then
      check::skip devices "this node has no EFA, and none is expected"
    else
      check::pass devices "$message, as expected"
    fi
  else
    check::fail devices "$message, expected ${expected// / or }"
  fi
}

efa::rates() {
  local device rate rates=()
  for device in ${EFA_DEVICES[@]+"${EFA_DEVICES[@]}"}; do
    { read -r rate <"$ULTRACLUSTER_ROOT/sys/class/infiniband/$device/ports/1/rate"; } 2>/dev/null || continue
    [[ " ${rates[*]-} " == *" ${rate%% (*} "* ]] || rates+=("${rate%% (*}")
  done
  printf '%s' "${rates[*]-}"
}

efa::module_loaded() {
  [[ -d $ULTRACLUSTER_ROOT/sys/module/$1 ]] || grep -qs "^$1 " "$ULTRACLUSTER_ROOT/proc/modules"
}

efa::check_modules() {
  local module version='' missing=()
  for module in efa ib_uverbs ib_core; do
    efa::module_loaded "$module" || missing+=("$module")
  done
  if ((${#missing[@]} > 0)); then
    check::fail modules "not loaded: ${missing[*]}"
    return
  fi
  { read -r version <"$ULTRACLUSTER_ROOT/sys/module/efa/version"; } 2>/dev/null || true
  check::pass modules "efa${version:+ $version}, ib_uverbs, ib_core"
}

efa::check_memlock() {
  local soft
  soft=$(awk '/^Max locked memory/ { print $4 }' "$ULTRACLUSTER_ROOT/proc/self/limits" 2>/dev/null) || true
  if [[ $soft == unlimited ]]; then
    check::pass memlock unlimited
  elif [[ ! $soft =~ ^[0-9]+$ ]]; then
    check::unknown memlock "the limit of locked memory cannot be read"
  elif ((soft < EFA_MEMLOCK)); then
    check::fail memlock "$soft bytes may be locked, EFA needs $EFA_MEMLOCK; unlimited is better"
  else
    check::pass memlock "$soft bytes"
  fi
}

# efa::check_libfabric BY_DESIGN: not empty where hosts have no fi_info (EKS images)
efa::check_libfabric() {
  local -r by_design=$1
  local program text status=0 domains wrong
  program=$(efa::program fi_info)
  if [[ -z $program ]]; then
    if [[ -n $by_design ]]; then
      check::skip libfabric "no fi_info on this host, as EKS images have it: run it in a pod"
    else
      check::unknown libfabric "no fi_info, neither on the PATH nor in /opt/amazon/efa/bin"
    fi
    return
  fi
  text=$(timeout 60 "$program" -p efa -t FI_EP_RDM 2>&1) || status=$?
  if ((status == 61)); then
    local reason="the driver shows ${#EFA_DEVICES[@]} devices"
    [[ -d $ULTRACLUSTER_ROOT/dev/infiniband ]] || reason='/dev/infiniband is missing'
    check::fail libfabric "fi_info ends with 61 (no data available): libfabric finds no EFA; $reason"
    return
  elif ((status != 0)); then
    check::fail libfabric "fi_info ended with status $status: ${text:0:200}"
    return
  fi
  wrong=$(awk '$1 == "provider:" && $2 != "efa" { print $2; exit }' <<<"$text")
  if [[ -n $wrong ]]; then
    check::fail libfabric "fi_info shows the provider $wrong instead of efa"
    return
  fi
  # libfabric 2 lists each interface twice (fabrics efa and efa-direct): domains tell them apart
  domains=$(devices::libfabric <<<"$text")
  if ((domains == 0)); then
    check::fail libfabric "fi_info shows no provider efa"
  elif ((domains != ${#EFA_DEVICES[@]})); then
    check::fail libfabric "provider efa on $domains domains, but the driver shows ${#EFA_DEVICES[@]} devices"
  else
    check::pass libfabric "provider efa on $domains domains"
  fi
}

# efa::program NAME: its path, also where a login shell would not look
efa::program() {
  type -P "$1" && return 0
  [[ ! -x $ULTRACLUSTER_ROOT/opt/amazon/efa/bin/$1 ]] || printf '%s\n' "$ULTRACLUSTER_ROOT/opt/amazon/efa/bin/$1"
}

# efa::counters_before FILE
efa::counters_before() {
  local -r file=$1
  mkdir -p "${file%/*}"
  efa::counters >"$file"
  if [[ -s $file ]]; then
    check::pass counters "kept in $file"
  else
    check::unknown counters "no EFA device has counters"
  fi
}

# efa::counters_after FILE: what has moved since `counters before`
efa::counters_after() {
  local -r file=$1
  local outcome message
  if [[ ! -s $file ]]; then
    check::unknown counters "no earlier counters in $file: run \`counters before\` first"
    return
  fi
  while IFS='|' read -r outcome message; do
    "check::$outcome" counters "$message"
  done < <(awk -v bytes="${EFA_BYTES[*]}" '
    BEGIN { split(bytes, names, " "); for (i in names) counted[names[i]] = 1 }
    FNR == NR { before[$1 " " $2] = $3; if (!known[$1]++) devices[++n] = $1; next }
    {
      key = $1 " " $2
      if (!known[$1]) { fresh = fresh " " $1; next }
      here[$1] = 1
      if (!(key in before)) next
      delta = $3 - before[key]
      if (delta < 0) back = back " " key
      else if ($2 in counted) { moved[$1] += delta; measured[$1] = 1 }
      else if (delta > 0) errors = errors " " $1 ":" $2 "+" delta
    }
    END {
      for (i = 1; i <= n; i++) {
        d = devices[i]
        if (!here[d]) { gone = gone " " d; continue }
        if (!measured[d]) { blind = blind " " d; continue }
        if (moved[d] == 0) { still = still " " d; continue }
        if (!low || moved[d] < low) { low = moved[d]; least = d }
        if (moved[d] > high) { high = moved[d]; most = d }
        working++
      }
      if (gone) print "fail|devices that are gone:" gone
      if (back) print "unknown|counters went back, the device was reset:" back
      if (fresh) print "unknown|devices that were not there before:" fresh
      if (blind) print "unknown|devices without counters of bytes:" blind
      if (still) print "fail|devices that moved no data:" still
      if (errors) print "warn|errors rose:" errors
      if (working && high > 2 * low) printf "warn|uneven: %s moved %.0f bytes, %s %.0f\n", most, high, least, low
      if (working && !still && !gone) printf "pass|%d devices moved %.0f to %.0f bytes each\n", working, low, high
    }
  ' "$file" <(efa::counters))
}
