# shellcheck shell=bash
# What the kernel has logged since the last look, by the table: XIDs, errors of NVSwitches, of Neuron and of disks. The watcher
# (watch.py) sees them at once; this is for a node on which it does not run.

xid::applies() { :; }

xid::quick() {
  local line found=''
  if ! command -v journalctl >/dev/null; then
    health::unknown absent "there is no journalctl on this node"
    return 0
  fi
  # HEALTH_NEXT is kept when this look has reported: one that is ended before takes no line with it
  health::tool "${ULTRACLUSTER_HEALTH_TOOL_SECONDS:-1.7}" python3 -ISB "$ULTRACLUSTER_HOME/health/watch.py" --once "$HEALTH_STATE/xid.state" "$HEALTH_NEXT"
  while IFS= read -r line; do
    [[ $line == row$'\t'* ]] || continue
    printf '%s\n' "$line" >>"$HEALTH_FOUND"
    found=yes
  done <<<"$TOOL_TEXT"
  [[ -z $found ]] || return 0
  if ((TOOL_STATUS == 0)); then
    health::ok "no new fault in the kernel's log"
  elif ((TOOL_STATUS == 124)); then
    health::unknown late "the journal does not answer in time"
  else
    health::unknown unread "the journal cannot be read: ${TOOL_TEXT:0:200}"
  fi
}
