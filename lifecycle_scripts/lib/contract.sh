# shellcheck shell=bash
# shellcheck disable=SC2034 # what others read
# What a node does with what it finds of a component: keep it, bring it up, do without it, or refuse to join. RELEASE has
# its need (required, wanted, optional), its preferred version, and its floor, the lowest version that works, with a mark
# that says how sure that is (confirmed, reported, inferred).
[[ -z ${ULTRACLUSTER_LIB_CONTRACT:-} ]] || return 0
ULTRACLUSTER_LIB_CONTRACT=1

# shellcheck source-path=SCRIPTDIR source=version.sh
source "${BASH_SOURCE[0]%/*}/version.sh"

# What the release says (release::facts); empty where there is none
declare -gA RELEASE

# What callers pass as the version of what is here and does not tell it
readonly CONTRACT_UNKNOWN=unknown

# They only show what a node does: none of them refuses it, also not where every version is exact (CLUSTER_STRICT).
readonly CONTRACT_METRICS="node-exporter dcgm-exporter prometheus"

# What a node loses without a component (or step), in the words of its last log line.
declare -rA CONTRACT_LOST=(
  ['cuda-runtime']="no CUDA toolkit outside containers"
  ['libfabric']="programs may load another libfabric than the one of EFA"
  ['nccl']="programs have to bring their own NCCL"
  ['aws-ofi-nccl']="NCCL may fall back to TCP"
  ['gdrcopy']="small messages of NCCL, NVSHMEM and UCX are slower"
  ['nccl-tests']="the acceptance job needs its own nccl-tests"
  ['neuron-runtime']="programs have to bring their own Neuron runtime"
  ['neuron-collectives']="programs have to bring their own Neuron collectives"
  ['lustre-client']="pods cannot mount Lustre"
  ['lustre-efa-setup']="Lustre over TCP"
  ['nvidia-fs']="no GPUDirect Storage"
  ['container-toolkit']="containers may see no GPUs"
  ['enroot']="no srun --container-image"
  ['pyxis']="no srun --container-image"
  ['dcgm']="no health checks and metrics of GPUs"
  ['nixl']="programs have to bring their own NIXL"
  ['node-exporter']="no metrics of the node itself"
  ['dcgm-exporter']="no metrics of its GPUs"
  ['prometheus']="no metrics of it reach the workspace"
  ['metrics']="no metrics of it reach the workspace"
  ['limits']="limits of the image"
  ['scratch']="no /scratch on local disks"
  ['environment']="no variables in login shells"
  ['logs']="logs fill the root disk"
  ['holds']="an upgrade may replace kernel or driver"
  ['imex']="no IMEX domains"
  ['metadata']="users may reach the node's credentials"
  ['job_access']="jobs have no role for S3"
  ['state_pull']="changes of users and teams do not reach it"
  ['users']="users of the environment have no account here, or an older one"
  ['health']="no checks before jobs, and none after a fault"
  ['slurm_admin']="changes of teams do not reach accounting, and jobs are lost when a Capacity Block or training plan ends"
  ['proof']="jobs may miss what they need of it"
  ['enroot_config']="containers are unpacked where enroot does by itself"
  ['lustre_tuning']="Lustre with the client's defaults"
  ['container_storage']="container images fill the root volume"
  ['session_user']="no session as the cluster's ordinary user: log in with \`ultracluster connect --admin\`"
  ['directory']="people of the directory may be unknown here"
  ['job_ssh']="people may reach this node by SSH without a job on it"
  ['topology']="Slurm places jobs without regard to the network"
  ['homes']="no home directories for the image's users on a fresh file system"
)

# contract::judge COMPONENT FOUND: sets CONTRACT_JUDGEMENT to absent, below (the floor), drift (between floor and preferred),
# same, newer, or unknown. With CLUSTER_STRICT the preferred version is the floor.
contract::judge() {
  local -r component=$1 found=$2
  local -r preferred=${RELEASE["$component.version"]:-}
  local floor=${RELEASE["$component.floor.version"]:-}
  CONTRACT_JUDGEMENT=same
  if [[ -z $found ]]; then
    CONTRACT_JUDGEMENT=absent
  elif [[ $found != [0-9]* ]]; then
    CONTRACT_JUDGEMENT=unknown
  else
    if contract::pins "$component"; then
      version::compare "$found" "$preferred"
      [[ $preferred != "$found"[a-zA-Z]* ]] || VERSION_ORDER=same
      CONTRACT_JUDGEMENT=${VERSION_ORDER/older/drift}
      [[ -z ${CLUSTER_STRICT:-} ]] || floor=$preferred
    fi
    [[ -n $floor && $CONTRACT_JUDGEMENT != newer ]] || return 0
    version::compare "$found" "$floor"
    [[ $VERSION_ORDER != older ]] || CONTRACT_JUDGEMENT=below
  fi
}

# Does the release say a version, and not only that it comes with something (`image`, `bundled`, `unversioned`)?
contract::pins() {
  [[ ${RELEASE["$1.version"]:-} == [0-9]* ]]
}

# contract::fits COMPONENT FOUND: does what is here stay?
contract::fits() {
  contract::judge "$@"
  [[ $CONTRACT_JUDGEMENT != absent && $CONTRACT_JUDGEMENT != below ]]
}

# contract::verdict COMPONENT FOUND: what it means that FOUND could not be replaced, or does not work. Sets CONTRACT_VERDICT to
# refused (the node fails) or degraded (it joins without). A floor that is not certain never ends a node.
contract::verdict() {
  local -r component=$1 found=$2
  CONTRACT_VERDICT=degraded
  [[ " $CONTRACT_METRICS " != *" $component "* ]] || return 0
  if [[ -n ${CLUSTER_STRICT:-} ]]; then
    CONTRACT_VERDICT=refused
  elif [[ ${RELEASE["$component.need"]:-} == required ]]; then
    contract::judge "$component" "$found"
    [[ $CONTRACT_JUDGEMENT == below && ${RELEASE["$component.floor.mark"]:-} != confirmed ]] || CONTRACT_VERDICT=refused
  fi
}
