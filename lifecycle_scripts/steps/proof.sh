# shellcheck shell=bash
# The last look, at every run: is there what jobs stand on? Mounts, EFA as libfabric shows it, Lustre over EFA, and whether
# Slurm knows this node. Its message is made of words KEY=value, which the command `wait` reads:
#   mounts=/fsx:lustre,/home:nfs4 efa=32/32 lustre_efa=8/8 slurmd=IDLE
# Something that should be there and is not at all degrades the node; a number that is doubtful is a warning.

for library in mounts lnet; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done

PROOF_WORDS=() PROOF_LACKS=()

proof::detect() { step::present "to be looked at"; }

proof::install() { :; }

proof::verify() {
  local message
  proof::mounts
  proof::efa
  proof::lustre_efa
  proof::slurmd
  message="${PROOF_WORDS[*]-}"
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

# By libfabric where the host has it, else by the driver
proof::efa() {
  local -r program=$ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info
  local found text
  [[ $NODE_ROLE == compute ]] && ((NODE_EFA_INTERFACES > 0)) || return 0
  found=$(lnet::efa_devices)
  if [[ -x $program ]]; then
    text=$(timeout 20 "$program" -p efa -t FI_EP_RDM 2>/dev/null) || true
    # Each interface is there twice, as efa and as efa-direct.
    found=$(awk '$1 == "provider:" { efa = $2 == "efa" } efa && $1 == "domain:" && !seen[$2]++ { n++ } END { print n + 0 }' <<<"$text")
  fi
  PROOF_WORDS+=("efa=$found/$NODE_EFA_INTERFACES")
  if ((found == 0)); then
    PROOF_LACKS+=("no EFA interface is usable, $NODE_EFA_INTERFACES should be")
  elif ((found < NODE_EFA_INTERFACES)); then
    log::warn "$found EFA interfaces are usable, $NODE_INSTANCE_TYPE should have $NODE_EFA_INTERFACES"
  fi
}

proof::lustre_efa() {
  local bound wanted
  [[ -n ${LUSTRE_EFA:-} && $NODE_ROLE == compute ]] && ((NODE_EFA_INTERFACES > 0)) || return 0
  wanted=$(lnet::wanted)
  ((wanted > 0)) || return 0
  bound=$(lnet::interfaces efa)
  PROOF_WORDS+=("lustre_efa=$bound/$wanted")
  ((bound > 0)) || { PROOF_LACKS+=("Lustre uses TCP, not EFA") && return; }
  ((bound >= wanted)) || log::warn "LNet has $bound of $wanted EFA interfaces"
  [[ $(mounts::at "$LUSTRE_PATH") == 'lustre '* ]] || return 0
  lnet::probe "$ULTRACLUSTER_ROOT$LUSTRE_PATH"
  ((LNET_EFA > 0 || LNET_TCP <= 0)) || PROOF_LACKS+=("$bound EFA interfaces are bound, but Lustre uses TCP")
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
