# shellcheck shell=bash
# shellcheck disable=SC2034 # what others read
# Which steps each entry runs, in this order, how long they may take, and which of them a node cannot be without.
[[ -z ${ULTRACLUSTER_LIB_STEPS:-} ]] || return 0
ULTRACLUSTER_LIB_STEPS=1

# Steps that bring the node to its release. The driver comes before what is built on it, EFA before the libraries that it
# brings, the container toolkit before enroot, and enroot before pyxis.
readonly STEPS_FABRIC="nvidia_driver cuda_runtime efa libfabric nccl gdrcopy ofi_nccl nccl_tests neuron"
readonly STEPS_LUSTRE="lustre_client lustre_tuning nvidia_fs lustre_efa"
readonly STEPS_CONTAINERS="container_toolkit enroot enroot_config pyxis dcgm nixl"
readonly STEPS_LAST="environment holds"
# Pods bring CUDA, NCCL, the plugin and DCGM themselves: a Kubernetes node needs what reaches into the kernel, and the toolkit.
readonly STEPS_KUBERNETES="nvidia_driver efa gdrcopy neuron $STEPS_LUSTRE container_toolkit holds"
# Metrics, after DCGM and enroot; a cluster that collects none has nothing of them
readonly STEPS_METRICS="node_exporter dcgm_exporter metrics"
# What is left: rotation of the logs that Slurm's daemons now have, and the last look
readonly STEPS_PROOF="logs proof"
readonly STEPS_SOFTWARE="$STEPS_FABRIC $STEPS_LUSTRE $STEPS_CONTAINERS $STEPS_LAST $STEPS_METRICS"

# `own` stands for the steps that a team adds (NODE_STEPS): after ours, so that they find what the release brings; before Slurm
# is started here, so that no job meets a node without them; and before the last look.
# Metadata close to users first, before anything is downloaded: it takes no file of the release. On ParallelCluster when it has
# configured the node, before it starts Slurm.
# Slurm's daemons start last: they inherit the limits, count the GPUs, and jobs need both kinds of storage.
declare -rA STEPS=(
  [hyperpod_on_create]="metadata limits $STEPS_FABRIC $STEPS_LUSTRE filesystems homes session_user state_pull users directory scratch container_storage $STEPS_CONTAINERS $STEPS_LAST job_access health $STEPS_METRICS own slurm slurm_conf job_ssh slurm_admin $STEPS_PROOF"
  [hyperpod_on_init_complete]="metadata limits $STEPS_FABRIC $STEPS_LUSTRE filesystems session_user state_pull users directory scratch container_storage $STEPS_CONTAINERS $STEPS_LAST job_access health $STEPS_METRICS slurm_conf job_ssh slurm_admin own $STEPS_PROOF"
  [hyperpod_eks_on_create]="limits $STEPS_KUBERNETES session_user scratch container_storage own $STEPS_PROOF"
  # Before ParallelCluster configures Slurm and mounts what is shared
  [parallelcluster_on_node_start]="limits $STEPS_FABRIC $STEPS_LUSTRE scratch container_storage"
  # After it: pyxis is compiled against its Slurm
  [parallelcluster_on_node_configured]="metadata session_user state_pull users $STEPS_CONTAINERS $STEPS_LAST job_access health $STEPS_METRICS topology job_ssh slurm_admin own $STEPS_PROOF"
  [pcs_node]="metadata limits $STEPS_FABRIC mig $STEPS_LUSTRE filesystems homes session_user state_pull users directory scratch container_storage $STEPS_CONTAINERS $STEPS_LAST imex job_access health $STEPS_METRICS job_ssh slurm_admin own $STEPS_PROOF"
  [eks_user_data]="limits $STEPS_KUBERNETES scratch container_storage own $STEPS_PROOF"
  [bake]="$STEPS_FABRIC $STEPS_LUSTRE $STEPS_CONTAINERS $STEPS_LAST $STEPS_METRICS"
  [bake_kubernetes]="$STEPS_KUBERNETES"
)

# Minutes that a step may take, all its verbs together; 10 for those that are not here. Builds and installers on a node
# under load take a fifth to a half of it.
declare -rA STEPS_MINUTES=(
  [cuda_runtime]=15 [efa]=20 [ofi_nccl]=15 [gdrcopy]=15 [lustre_efa]=15 [filesystems]=15 [slurm]=15 [limits]=3 [metadata]=3 [job_access]=3 [health]=5 [node_exporter]=5 [dcgm_exporter]=5 [metrics]=5 [job_ssh]=3 [topology]=3 [environment]=3 [logs]=3 [holds]=5
)
readonly STEPS_MINUTES_ELSE=10

# Minutes of a whole run, unless cluster.json has `budget_minutes`. PCS gives a node 30 minutes to join (AWS PCS User
# Guide), EKS's managed groups about 15, ParallelCluster 30 for both of its entries (compute_node_bootstrap_timeout). HyperPod's
# limit is not documented.
declare -rA STEPS_RUN_MINUTES=(
  [pcs_node]=25 [eks_user_data]=12 [parallelcluster_on_node_start]=16 [parallelcluster_on_node_configured]=10 [bake]=120 [bake_kubernetes]=120
)
readonly STEPS_RUN_MINUTES_ELSE=45
# Of `budget_minutes`, in hundredths: the entries of ParallelCluster share them.
declare -rA STEPS_RUN_SHARE=([parallelcluster_on_node_start]=60 [parallelcluster_on_node_configured]=40)

# A node cannot be without these; without others it can (components have their own word on it in the release).
readonly STEPS_NEVER_LACKING="nvidia_driver efa neuron lustre_client filesystems slurm"

# They keep people from what is not theirs. They have their time when the run's is used up, too.
readonly STEPS_PROTECT="metadata job_ssh"

# After this entry another one goes on: the node is not ready yet.
readonly STEPS_NOT_LAST="parallelcluster_on_node_start"

# steps::of ENTRY: one per line
steps::of() {
  local steps
  read -r -a steps <<<"${STEPS[$1]}"
  printf '%s\n' "${steps[@]}"
}

steps::is_own() {
  [[ " ${NODE_STEPS:-}" == *" "[0-9][0-9]"_$1:"* ]]
}

# steps::run_minutes VARIABLE ENTRY
steps::run_minutes() {
  local run_minutes=${STEPS_RUN_MINUTES[${2:-none}]:-$STEPS_RUN_MINUTES_ELSE}
  [[ -z ${CLUSTER_BUDGET_MINUTES:-} ]] || run_minutes=$((CLUSTER_BUDGET_MINUTES * ${STEPS_RUN_SHARE[${2:-none}]:-100} / 100))
  printf -v "$1" '%d' "$((run_minutes > 0 ? run_minutes : 1))"
}

# steps::need_release STEP...: is there one that reads the release?
steps::need_release() {
  local step
  for step in "$@"; do
    [[ " $STEPS_SOFTWARE " != *" $step "* ]] || return 0
  done
  return 1
}

# steps::protects STEP: is it one of STEPS_PROTECT?
steps::protects() { [[ " $STEPS_PROTECT " == *" $1 "* ]]; }

# Do people log in to this node? To login nodes always, to others as the ordinary user of sessions; to a controller also where it has
# accounts of people.
steps::is_for_people() {
  [[ ${NODE_ROLE:-} == login || -n ${CLUSTER_SESSION_USER:-} ]] ||
    [[ ${NODE_ROLE:-} == controller && -n ${CLUSTER_STATE_URI:-}${CLUSTER_DIRECTORY:-} ]]
}

# steps::is_required STEP: can a node not be without it? Asked where a step fails before, or without, naming a component of
# the release. UltraServers of NVIDIA share memory through IMEX; elsewhere its prolog does nothing. GPUs that
# are not cut as Slurm expects would be given to jobs whole, or not at all. Where people log in, the credentials of the node's role are closed or the
# node does not join. Own steps say it themselves.
steps::is_required() {
  ! { [[ $1 == metadata ]] && steps::is_for_people; } || return 0
  [[ " $STEPS_NEVER_LACKING " == *" $1 "* || $1:${NODE_IMEX:-} == imex:yes || ($1 == mig && -n ${NODE_MIG:-}) || " ${NODE_STEPS:-} " == *" "[0-9][0-9]"_$1:required "* ]]
}
