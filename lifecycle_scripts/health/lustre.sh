# shellcheck shell=bash
# The shared Lustre file system: is it mounted, does it answer, does it take a file and give it back, and over which network? A
# look that does not end is for run_check.sh: the kernel may hold whoever asks a file system that is gone.
for library in mounts lnet; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done

lustre::applies() { [[ -n ${LUSTRE_PATH:-} && ${NODE_FAMILY:-} != *eks* ]]; }

lustre::quick() {
  local path
  for path in "$LUSTRE_PATH" $(mounts::further); do lustre::look "$path"; done
  lustre::network
}

# lustre::look PATH
lustre::look() {
  local -r path=$1
  local type
  # What systemd mounts when somebody looks is looked at first.
  ! mounts::is_automount "$path" || stat --file-system "$ULTRACLUSTER_ROOT$path" >/dev/null 2>&1 || true
  read -r type _ < <(mounts::at "$path") || type=''
  if [[ $type != lustre ]]; then
    health::fault unmounted "$path is not a Lustre mount${type:+, but $type}"
    return 0
  fi
  lustre::write_and_read "$path"
}

# lustre::write_and_read PATH: one small file, which no other look has: a prolog and a timer may look at once. In a folder that is root's, as others could put a
# link in its place. What a look that was ended has left goes with the next one of this node.
lustre::write_and_read() {
  local -r path=$1 folder=$ULTRACLUSTER_ROOT$1/.ultracluster-health
  local text said name left status=0
  name=${SLURMD_NODENAME:-}
  [[ -n $name ]] || health::read name "$ULTRACLUSTER_ROOT/proc/sys/kernel/hostname"
  [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || name=node
  local -r file=$folder/$name.$BASHPID
  read -r text _ </proc/uptime
  text="$text $RANDOM$RANDOM"
  said=$(lustre::make_own "$folder" 2>&1 &&
    { printf '%s' "$text" >"$file"; } 2>&1) || status=$?
  if ((status != 0)); then
    case $said in
      *'Read-only file system'*) health::fault readonly "$path takes no files: it is read-only" ;;
      *'No space left'* | *'Disk quota exceeded'*) health::fault full "$path takes no files: ${said##*: }" ;;
      *) health::unknown unwritable "$path is mounted, but this user cannot write there: ${said:0:200}" ;;
    esac
    return 0
  fi
  said=$({ cat "$file"; } 2>/dev/null) || status=$?
  if ((status != 0)); then
    health::unknown unread "a file that was just written to $path cannot be read"
  elif [[ $said != "$text" ]]; then
    health::fault wrong "a file on $path was read differently from how it was written"
  else
    health::ok "$path answers"
  fi
  for left in "$folder/$name".*; do
    [[ $left != "$file" && -d /proc/${left##*.} ]] || rm -f -- "$left"
  done
}

# lustre::make_own FOLDER: root's own, and no link. Another look, here or on another node, may make it between our question and our mkdir.
lustre::make_own() {
  lustre::is_own "$1" || mkdir -m 700 "$1" || lustre::is_own "$1"
}

lustre::is_own() { [[ -d $1 && ! -L $1 && -O $1 ]]; }

# Metadata and pings use TCP by design; that no interface of EFA is bound at all is what is wrong.
lustre::network() {
  local bound
  [[ ${LUSTRE_EFA:-} == yes && -n ${NODE_LUSTRE_EFA_INTERFACES:-} && $NODE_LUSTRE_EFA_INTERFACES != 0 ]] || return 0
  health::tool 1 lnetctl net show --net efa
  bound=$(grep -c 'nid: .*@efa' <<<"$TOOL_TEXT") || true
  ((bound == 0)) || return 0
  case $TOOL_STATUS in
    127) health::unknown absent "there is no lnetctl on this node" ;;
    124) health::unknown late "lnetctl does not answer in time" ;;
    *) health::fault tcp "Lustre uses TCP although EFA is configured" ;;
  esac
}
