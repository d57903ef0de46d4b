# shellcheck shell=bash
# Which steps each entry runs, in this order. The only list of them.
[[ -z ${ULTRACLUSTER_LIB_STEPS:-} ]] || return 0
ULTRACLUSTER_LIB_STEPS=1

# Steps that bring the node to its release. The driver comes before what is built on it, EFA before the libraries that it
# brings, the container toolkit before enroot, and enroot before pyxis.
readonly STEPS_FABRIC="nvidia_driver cuda_runtime efa libfabric nccl gdrcopy ofi_nccl nccl_tests neuron"
readonly STEPS_LUSTRE="lustre_client lustre_tuning nvidia_fs lustre_efa"
readonly STEPS_CONTAINERS="container_toolkit enroot enroot_config pyxis dcgm nixl"
readonly STEPS_LAST="environment holds"
# Pods bring CUDA, NCCL, the plugin and DCGM themselves: a Kubernetes node needs what reaches into the kernel, and the toolkit.
readonly STEPS_KUBERNETES="nvidia_driver efa neuron $STEPS_LUSTRE container_toolkit holds"
readonly STEPS_SOFTWARE="$STEPS_FABRIC $STEPS_LUSTRE $STEPS_CONTAINERS $STEPS_LAST"

# Slurm's daemons start last: they inherit the limits, count the GPUs, and jobs need both kinds of storage.
declare -rA STEPS=(
  [hyperpod_on_create]="limits $STEPS_FABRIC $STEPS_LUSTRE filesystems homes scratch container_storage $STEPS_CONTAINERS $STEPS_LAST slurm proof"
  [hyperpod_on_init_complete]="limits $STEPS_FABRIC $STEPS_LUSTRE scratch container_storage $STEPS_CONTAINERS $STEPS_LAST proof"
  [hyperpod_eks_on_create]="limits $STEPS_KUBERNETES scratch container_storage proof"
  # Before ParallelCluster configures Slurm and mounts what is shared
  [parallelcluster_on_node_start]="limits $STEPS_FABRIC $STEPS_LUSTRE scratch container_storage"
  # After it: pyxis is compiled against its Slurm
  [parallelcluster_on_node_configured]="$STEPS_CONTAINERS $STEPS_LAST proof"
  [pcs_node]="limits $STEPS_FABRIC $STEPS_LUSTRE filesystems homes scratch container_storage $STEPS_CONTAINERS $STEPS_LAST imex proof"
  [eks_user_data]="limits $STEPS_KUBERNETES scratch container_storage proof"
  [bake]="$STEPS_FABRIC $STEPS_LUSTRE $STEPS_CONTAINERS $STEPS_LAST"
  [bake_kubernetes]="$STEPS_KUBERNETES"
)

# steps::of ENTRY: one per line
steps::of() {
  local steps
  read -r -a steps <<<"${STEPS[$1]}"
  printf '%s\n' "${steps[@]}"
}

# steps::need_release STEP...: is there one that reads the release?
steps::need_release() {
  local step
  for step in "$@"; do
    [[ " $STEPS_SOFTWARE " != *" $step "* ]] || return 0
  done
  return 1
}
