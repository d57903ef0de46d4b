# shellcheck shell=bash
# Libraries: devices health_gpu lnet mounts retry
# The last look, at every run: is there what jobs stand on? Mounts, GPUs or Neuron devices, EFA, Lustre over EFA, and whether
# Slurm knows this node. Its message is made of words KEY=value:
#   mounts=/fsx:lustre,/home:nfs4 gpus=8/8 efa=32/32 lustre_efa=8/8 slurmd=IDLE
# Something that is missing degrades the node; so do fewer devices than its type has. Without any GPU, Neuron or EFA device the
# required component that drives them does not work: the node fails. The health checks count with the same functions.

PROOF_WORDS=() PROOF_LACKS=() PROOF_NONE=''

proof::detect() { step::present "to be looked at"; }

proof::install() { :; }

proof::verify() {
  local message
  proof::mounts
  proof::accelerators
  proof::efa
  proof::lustre_efa
  proof::slurmd
  message="${PROOF_WORDS[*]-}"
  [[ -z $PROOF_NONE ]] || step::about "$PROOF_NONE"
  ((${#PROOF_LACKS[@]} == 0)) || step::fail "${PROOF_LACKS[0]}${message:+ ($message)}"
  step::message "${message:-nothing to prove}"
}

# Pods mount for themselves. A look makes an automount mount.
proof::mounts() {
  local path type found=()
  [[ $NODE_FAMILY != hyperpod-eks && $NODE_FAMILY != eks-al2023 ]] || return 0
  for path in ${LUSTRE_PATH:-} $(mounts::further) ${OPENZFS_PATH:-}; do
    timeout 20 stat --file-system "$ULTRACLUSTER_ROOT$path" >/dev/null 2>&1 || PROOF_LACKS+=("$path does not answer")
    read -r type _ < <(mounts::at "$path") || type=''
    if [[ -n $type ]]; then
      found+=("$path:$type")
    else
      PROOF_LACKS+=("$path is not mounted")
    fi
  done
  ((${#found[@]} == 0)) || PROOF_WORDS+=("mounts=$(
    IFS=,
    echo "${found[*]}"
  )")
}

# proof::count KEY NUMBER EXPECTED COMPONENT WHAT [WHY]: NUMBER is empty where it could not be counted.
proof::count() {
  local -r number=$2 expected=$3 what="$5${6:+: $6}"
  PROOF_WORDS+=("$1=${number:-unknown}/$expected")
  if [[ -z $number ]]; then
    PROOF_LACKS+=("not known how many $what")
  elif ((number == 0)); then
    PROOF_LACKS=("no $what; ${NODE_INSTANCE_TYPE:-this node} has $expected" "${PROOF_LACKS[@]}")
    PROOF_NONE=${PROOF_NONE:-$4}
  elif ((number < expected)); then
    PROOF_LACKS+=("$number of $expected $what")
  fi
}

proof::accelerators() {
  [[ $NODE_ROLE == compute && ${NODE_ACCELERATORS:-0} -gt 0 ]] || return 0
  case ${NODE_ACCELERATOR:-} in
    neuron) proof::count neuron "$(devices::count neuron)" "$NODE_ACCELERATORS" neuron-driver "Neuron devices are served by their driver" ;;
    nvidia)
      # The first answer of a boot takes long, and a health check may have given up on it.
      rm -f -- "$HEALTH_RUN/nvidia-smi"
      ULTRACLUSTER_HEALTH_TOOL_SECONDS=${ULTRACLUSTER_HEALTH_TOOL_SECONDS:-60} gpu::ask
      gpu::count
      proof::count gpus "$GPU_COUNT" "$NODE_ACCELERATORS" nvidia-driver "GPUs answer" "$GPU_WHY"
      ;;
  esac
}

# On types of Nitro v5 the devices come up some seconds late.
proof::efa() {
  local found
  [[ $NODE_ROLE == compute ]] && ((NODE_EFA_INTERFACES > 0)) || return 0
  retry::run "${ULTRACLUSTER_DEVICES_DEADLINE:-30}" proof::efa_is_complete || true
  proof::count efa "$found" "$(devices::efa_expected "$found")" efa-installer "EFA devices are served by their driver"
  proof::libfabric "$found"
}

proof::efa_is_complete() {
  found=$(devices::count efa)
  ((found >= NODE_EFA_INTERFACES))
}

# proof::libfabric FOUND: does libfabric offer what the driver serves? On EKS it is in the containers.
proof::libfabric() {
  local -r program=$ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info
  local offered
  [[ -x $program ]] || return 0
  offered=$({ timeout 20 "$program" -p efa -t FI_EP_RDM 2>/dev/null || true; } | devices::libfabric)
  ((offered >= $1)) || PROOF_LACKS+=("libfabric offers $offered of $1 EFA devices")
}

proof::lustre_efa() {
  [[ -n ${LUSTRE_EFA:-} && $NODE_ROLE == compute ]] && ((NODE_EFA_INTERFACES > 0)) || return 0
  lnet::wanted
  ((LNET_WANTED > 0)) || return 0
  lnet::is_right || log::warn "LNet has $LNET_BOUND EFA interfaces, $LNET_WANTED expected"
  PROOF_WORDS+=("lustre_efa=$LNET_BOUND/$LNET_WANTED")
  ((LNET_BOUND > 0)) || { PROOF_LACKS+=("Lustre uses TCP, not EFA") && return; }
  [[ $(mounts::at "$LUSTRE_PATH") == 'lustre '* ]] || return 0
  lnet::probe "$ULTRACLUSTER_ROOT$LUSTRE_PATH"
  ((LNET_EFA > 0 || LNET_TCP <= 0)) || PROOF_LACKS+=("$LNET_BOUND EFA interfaces are bound, but Lustre uses TCP")
}

# Only where slurmd runs: PCS and ParallelCluster start it after us, and slurmctld may know a node minutes later.
proof::slurmd() {
  local state
  systemctl is-active --quiet slurmd.service && [[ $NODE_ROLE == compute ]] || return 0
  state=$({ timeout 10 "$ULTRACLUSTER_ROOT/opt/slurm/bin/scontrol" --oneliner show node "$(uname -n)" 2>/dev/null || true; } |
    sed -n 's/.* State=\([^ ]*\).*/\1/p')
  PROOF_WORDS+=("slurmd=${state:-unknown}")
  case $state in
    '') log::warn "slurmctld does not know this node yet" ;;
    *'*'* | DOWN* | *FAIL*) log::warn "slurmctld has this node as $state" ;;
  esac
}
