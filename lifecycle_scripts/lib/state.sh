# shellcheck shell=bash
# Where jobs can ask whether a node has all of its release: a feature of the node on Slurm (ultracluster_ready,
# ultracluster_degraded), a label on Kubernetes (ultracluster/state). Best effort: a node works without it.
[[ -z ${ULTRACLUSTER_LIB_STATE:-} ]] || return 0
ULTRACLUSTER_LIB_STATE=1

# shellcheck source-path=SCRIPTDIR source=files.sh
source "${BASH_SOURCE[0]%/*}/files.sh"

readonly STATE_FILE=/etc/ultracluster/state
readonly STATE_TOOL=/usr/local/sbin/ultracluster-feature
readonly STATE_UNIT=/etc/systemd/system/ultracluster-feature.service
readonly STATE_LABEL=/etc/eks/nodeadm.d/99-ultracluster.json

# state::tell ENTRY ready|degraded
state::tell() {
  [[ ${NODE_ROLE:-} == compute ]] || return 0
  case $1 in
    hyperpod_on_create | hyperpod_on_init_complete | parallelcluster_on_node_configured | pcs_node) state::slurm "$2" ;;
    eks_user_data) state::label "$2" ;;
  esac || log::warn "the scheduler is not told that this node is $2"
}

# Slurm may know the node only later: a unit tells it, now and after every boot.
state::slurm() {
  local changed=''
  files::has "$STATE_FILE" "$1" || { files::write "$STATE_FILE" <<<"$1" && changed=yes; } || return 1
  files::same "$ULTRACLUSTER_HOME/files/slurm_feature.sh" "$STATE_TOOL" ||
    { files::install "$ULTRACLUSTER_HOME/files/slurm_feature.sh" "$STATE_TOOL" 0755 && changed=yes; } || return 1
  files::same "$ULTRACLUSTER_HOME/files/slurm_feature.service" "$STATE_UNIT" ||
    { files::install "$ULTRACLUSTER_HOME/files/slurm_feature.service" "$STATE_UNIT" && systemctl daemon-reload && changed=yes; } || return 1
  systemctl is-enabled --quiet ultracluster-feature.service || systemctl enable ultracluster-feature.service || return 1
  [[ -z $changed ]] || systemctl restart --no-block ultracluster-feature.service
}

# nodeadm merges what is in this folder into the node's configuration when it joins, and adds flags to flags
# (awslabs/amazon-eks-ami#2427, in its images since October 2025; older ones do not look there).
state::label() {
  local -r text='{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {"kubelet": {"flags": ["--node-labels=ultracluster/state='$1'"]}}}'
  files::has "$STATE_LABEL" "$text" || files::write "$STATE_LABEL" <<<"$text"
}
