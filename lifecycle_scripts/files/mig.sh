#!/usr/bin/env bash
# MIG instances of this node's GPUs, as /etc/ultracluster/mig has them: a line for each GPU, with its profiles as `nvidia-smi mig
# -cgi` takes them (each with its first slice of memory: the driver would choose places that the next has none beside), or `-` for one that stays whole. Run as `status` (prints "ready ..." or "absent ...") and `up`. MIG mode and
# instances are the GPUs' state: they end with a reboot or with the EC2 instance (NVIDIA Multi-Instance GPU User Guide). GPUs that
# are right are left alone; one that is in use is never touched.
set -euo pipefail

readonly MIG_CONFIG=${ULTRACLUSTER_ROOT:-}/etc/ultracluster/mig
# They hold every GPU, and are started again.
readonly MIG_HOLDERS="nvidia-dcgm ultracluster-dcgm-exporter"

mig::fail() {
  echo "$1" >&2
  exit 1
}

mig::smi() { timeout 120 nvidia-smi "$@"; }

# Sets MIG_WANTED, MIG_FOUND and MIG_MODES, arrays by index of the GPU; profiles are sorted, and separated by spaces.
mig::look() {
  local line gpu=-1 listed
  MIG_WANTED=() MIG_FOUND=() MIG_MODES=()
  while IFS= read -r line; do MIG_WANTED+=("$(mig::sorted "$line")"); done < <(grep -v '^#' "$MIG_CONFIG")
  listed=$(mig::smi --query-gpu=index,mig.mode.current --format=csv,noheader) || mig::fail "nvidia-smi does not list the GPUs: ${listed:0:200}"
  while IFS=', ' read -r gpu line; do
    [[ ! $gpu =~ ^[0-9]+$ ]] || MIG_MODES[gpu]=$line MIG_FOUND[gpu]=
  done <<<"$listed"
  ((${#MIG_MODES[@]} == ${#MIG_WANTED[@]})) || mig::fail "${#MIG_MODES[@]} GPUs answer, and the layout is for ${#MIG_WANTED[@]}"
  listed=$(mig::smi -L) || mig::fail "nvidia-smi -L fails: ${listed:0:200}"
  while IFS= read -r line; do
    if [[ $line =~ ^GPU\ ([0-9]+): ]]; then
      gpu=${BASH_REMATCH[1]}
    elif [[ $line =~ ^\ +MIG\ ([^ ]+)\ +Device ]]; then
      MIG_FOUND[gpu]+="${BASH_REMATCH[1]},"
    fi
  done <<<"$listed"
  for gpu in "${!MIG_FOUND[@]}"; do MIG_FOUND[gpu]=$(mig::sorted "${MIG_FOUND[gpu]}"); done
}

# mig::sorted PROFILES: of `3g.40gb:4,1g.10gb:0`, without places; nothing of `-`
mig::sorted() {
  local profiles
  IFS=', ' read -ra profiles <<<"${1#-}"
  ((${#profiles[@]} == 0)) || printf '%s\n' "${profiles[@]%:*}" | sort | tr '\n' ' '
}

# mig::is_right GPU: the same instances, and the mode that they need
mig::is_right() {
  [[ ${MIG_FOUND[$1]} == "${MIG_WANTED[$1]}" ]] || return 1
  if [[ -n ${MIG_WANTED[$1]} ]]; then [[ ${MIG_MODES[$1]} == Enabled ]]; else [[ ${MIG_MODES[$1]} != Enabled ]]; fi
}

# mig::wrong: sets MIG_WRONG, the GPUs that are not as they should be, and MIG_SAID, what is wrong with the first
mig::wrong() {
  local gpu
  MIG_WRONG=() MIG_SAID=''
  mig::look
  for gpu in "${!MIG_WANTED[@]}"; do
    ! mig::is_right "$gpu" || continue
    MIG_WRONG+=("$gpu")
    MIG_SAID=${MIG_SAID:-"GPU $gpu has MIG mode ${MIG_MODES[gpu]} with ${MIG_FOUND[gpu]:-no instances }instead of ${MIG_WANTED[gpu]:-none}"}
  done
}

mig::status() {
  mig::wrong
  if ((${#MIG_WRONG[@]} == 0)); then
    echo "ready ${#MIG_WANTED[@]} GPUs: $(grep -v '^#' "$MIG_CONFIG" | sort |
      awk '!number[$0]++ { order[++last] = $0 } END { for (at = 1; at <= last; at++) printf "%s%s x %s", (at > 1 ? "; " : ""), number[order[at]], order[at] }')"
  else
    echo "absent $MIG_SAID"
  fi
}

# A job may have been given a device that it has not opened yet: where slurmd runs, GPUs are in use.
mig::refuse_in_use() {
  local gpu users
  if systemctl is-active --quiet slurmd.service; then
    mig::fail "$MIG_SAID; slurmd runs and may have given it to a job: drain the node and replace or reboot it"
  fi
  for gpu in "${MIG_WRONG[@]}"; do
    users=$(mig::smi -i "$gpu" --query-compute-apps=pid,process_name --format=csv,noheader) || mig::fail "nvidia-smi does not show who uses GPU $gpu: ${users:0:200}"
    [[ ! $users =~ [0-9] ]] || mig::fail "GPU $gpu is in use by process ${users%%$'\n'*}: its MIG layout is left as it is"
  done
}

mig::up() {
  local gpu holder stopped=()
  mig::wrong
  ((${#MIG_WRONG[@]} > 0)) || return 0
  mig::refuse_in_use
  for holder in $MIG_HOLDERS; do
    systemctl is-active --quiet "$holder.service" || continue
    systemctl stop "$holder.service"
    stopped+=("$holder")
  done
  for gpu in "${MIG_WRONG[@]}"; do mig::cut "$gpu"; done
  mig::wrong # what counts is what the GPUs say
  ((${#MIG_WRONG[@]} == 0)) || mig::fail "after the set-up $MIG_SAID"
  for holder in ${stopped[@]+"${stopped[@]}"}; do systemctl start --no-block "$holder.service" || true; done
}

# mig::cut GPU
mig::cut() {
  local said profiles
  if [[ ${MIG_MODES[$1]} == Enabled ]]; then
    # They fail where there are none.
    mig::smi mig -i "$1" -dci >/dev/null 2>&1 || true
    mig::smi mig -i "$1" -dgi >/dev/null 2>&1 || true
  fi
  if [[ -z ${MIG_WANTED[$1]} ]]; then
    said=$(mig::smi -i "$1" -mig 0 2>&1) || mig::fail "GPU $1 does not leave MIG mode: ${said##*$'\n'}"
    return 0
  fi
  if [[ ${MIG_MODES[$1]} != Enabled ]]; then
    said=$(mig::smi -i "$1" -mig 1 2>&1) || mig::fail "GPU $1 does not take MIG mode: ${said##*$'\n'}"
    [[ $(mig::smi -i "$1" --query-gpu=mig.mode.current --format=csv,noheader) == Enabled ]] ||
      mig::fail "GPU $1 takes MIG mode only with a reset, which a node in its start cannot have: ${said##*$'\n'}"
  fi
  profiles=$(grep -v '^#' "$MIG_CONFIG" | sed -n "$(($1 + 1))p")
  said=$(mig::smi mig -i "$1" -cgi "$profiles" -C 2>&1) || mig::fail "GPU $1 does not take $profiles: ${said##*$'\n'}"
}

case ${1:-} in
  status | up) "mig::$1" ;;
  *) echo "usage: ${0##*/} status|up" >&2 && exit 2 ;;
esac
