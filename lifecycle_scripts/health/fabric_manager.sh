# shellcheck shell=bash
# What joins the GPUs of a node, or of an UltraServer: the fabric manager, the fabric as GPUs see it, and IMEX.
# shellcheck source-path=SCRIPTDIR source=../lib/health_gpu.sh
source "$ULTRACLUSTER_HOME/lib/health_gpu.sh"

fabric_manager::applies() { gpu::applies && [[ ${NODE_NVSWITCH:-} == yes || ${NODE_IMEX:-} == yes ]]; }

fabric_manager::quick() {
  [[ ${NODE_NVSWITCH:-} != yes ]] || fabric_manager::service
  [[ ${NODE_IMEX:-} != yes ]] || fabric_manager::imex
  fabric_manager::fabric
}

# fabric_manager::state UNIT: active, activating, inactive, failed; empty where systemd does not tell
fabric_manager::state() {
  health::tool 1 systemctl show --property=ActiveState --value "$1"
  TOOL_TEXT=${TOOL_TEXT//[[:space:]]/}
  [[ $TOOL_STATUS == 0 && $TOOL_TEXT == @(active|reloading|activating|inactive|deactivating|failed) ]] || TOOL_TEXT=
}

fabric_manager::service() {
  local state manager driver
  health::tool 1 systemctl cat nvidia-fabricmanager.service
  case $TOOL_STATUS in
    0) ;;
    124) health::unknown late "systemd does not answer in time" && return ;;
    *) health::unknown absent "nvidia-fabricmanager.service cannot be found (status $TOOL_STATUS)" && return ;;
  esac
  fabric_manager::state nvidia-fabricmanager.service
  state=$TOOL_TEXT
  case $state in
    active | reloading)
      health::ok "the fabric manager runs"
      return 0
      ;;
    '')
      health::unknown unread "systemd does not tell whether the fabric manager runs"
      return 0
      ;;
    activating)
      health::fault starting "the fabric manager is starting"
      return 0
      ;;
  esac
  health::fault down "nvidia-fabricmanager.service is $state"
  # Then it ends at once: which of the two is to be changed is seen here.
  health::read driver "$ULTRACLUSTER_ROOT/proc/driver/nvidia/version"
  [[ $driver =~ ([0-9]{3}\.[0-9]+(\.[0-9]+)?) ]] && driver=${BASH_REMATCH[1]} || return 0
  health::tool 1 nv-fabricmanager --version
  [[ $TOOL_TEXT =~ ([0-9]{3}\.[0-9]+(\.[0-9]+)?) ]] && manager=${BASH_REMATCH[1]} || return 0
  [[ $manager == "$driver" ]] || health::fault version "the fabric manager is $manager, the driver $driver"
}

# A prolog starts it with a job: that it does not run on an idle node is no fault.
fabric_manager::imex() {
  fabric_manager::state nvidia-imex.service
  [[ $TOOL_TEXT != failed ]] || health::fault imex "nvidia-imex.service has failed"
}

# From Hopper on a GPU says whether it has joined the fabric; older ones do not tell.
fabric_manager::fabric() {
  local row index state status
  gpu::ask
  for row in ${GPU_ROWS[@]+"${GPU_ROWS[@]}"}; do
    gpu::field index "$row" index
    gpu::field state "$row" fabric.state
    gpu::field status "$row" fabric.status
    case $state in
      Completed)
        if [[ $status == [A-Z]* && $status != *[!A-Za-z\ ]* && $status != Success ]]; then
          health::fault fabric "GPU $index: fabric is completed with status '$status'" "$index"
        elif [[ -n $status && $status != Success ]]; then
          health::unknown malformed "GPU $index: fabric's status is '${status:0:60}'"
        fi
        ;;
      'In Progress') health::fault starting "GPU $index is joining the fabric" "$index" ;;
      '' | 'Not Started' | 'Not Supported' | N/A) ;;
      *) health::unknown fabric "GPU $index: the fabric's state is '${state:0:60}'" ;;
    esac
  done
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "no fault of the fabric is told"
}
