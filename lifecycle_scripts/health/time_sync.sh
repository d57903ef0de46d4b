# shellcheck shell=bash
# The clock: with a wrong one munge, TLS and the order of logs fail. chrony's own estimate, and where it does not run, systemd's.

# munge's credentials live for 5 minutes (munge(7)); far within that TLS and Lustre are well.
readonly TIME_SYNC_WRONG_MS=240000
readonly TIME_SYNC_DRIFT_MS=1000
# AWS's source is asked every 16 s: so long without an answer is no chance.
readonly TIME_SYNC_SILENT_SECONDS=3600

time_sync::applies() { :; }

time_sync::quick() {
  local fields offset reached now
  health::tool 1 chronyc -n -c tracking
  # A9FEA97B,169.254.169.123,4,1763841600.123456789,-0.000001234,...,Normal: reference, address, stratum, last update, system offset
  IFS=',' read -ra fields <<<"${TOOL_TEXT%%$'\n'*}"
  if ((TOOL_STATUS != 0 || ${#fields[@]} < 14)); then
    time_sync::systemd
    return 0
  fi
  if [[ ! ${fields[4]} =~ ^-?([0-9]{1,9})\.([0-9]{3}) ]]; then
    health::unknown malformed "what chronyc printed cannot be read: ${TOOL_TEXT:0:200}"
    return 0
  fi
  offset=$((10#${BASH_REMATCH[1]} * 1000 + 10#${BASH_REMATCH[2]}))
  if ((offset >= TIME_SYNC_WRONG_MS)); then
    health::fault wrong "the clock is wrong by $((offset / 1000)) s"
  elif ((offset >= TIME_SYNC_DRIFT_MS)); then
    health::fault drift "the clock is wrong by $offset ms"
  fi
  reached=${fields[3]%%.*}
  printf -v now '%(%s)T' -1
  if [[ ${fields[0]} == 00000000 || ${fields[13]} == 'Not synchronised' ]]; then
    health::fault unsynchronised "chrony has no source"
  elif [[ $reached =~ ^[0-9]{9,11}$ ]] && ((now - reached > TIME_SYNC_SILENT_SECONDS)); then
    health::fault unsynchronised "chrony's source ${fields[1]:0:60} has not answered for $(((now - reached) / 60)) min"
  fi
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "the clock follows ${fields[1]:0:60}, $offset ms off"
}

time_sync::systemd() {
  local -r chrony=$TOOL_STATUS
  health::tool 1 timedatectl show --property=NTPSynchronized --value
  case $TOOL_STATUS:${TOOL_TEXT//[[:space:]]/} in
    0:yes) health::ok "the clock is synchronised" ;;
    0:no) health::fault unsynchronised "nothing keeps the clock right (chronyc: status $chrony)" ;;
    *) health::unknown unread "neither chronyc (status $chrony) nor timedatectl (status $TOOL_STATUS) tells how the clock is" ;;
  esac
}
