# shellcheck shell=bash
# Libraries: files
# The few environment variables that help; libraries are found through the loader's configuration, never LD_LIBRARY_PATH.

readonly ENVIRONMENT_PROFILE=/etc/profile.d/ultracluster.sh
# HyperPod's TaskProlog runs what is in this folder (on the controller's and every node's own disk).
readonly ENVIRONMENT_PROLOGS=/opt/slurm/etc/task_prolog.d
readonly ENVIRONMENT_PROLOG=$ENVIRONMENT_PROLOGS/900_ultracluster.sh

environment::detect() {
  [[ $NODE_ROLE != system ]] || step::not_applicable "a system node runs no jobs"
  environment::is_here || step::absent "not as it should be"
  step::present "in place"
}

environment::has_prologs() {
  [[ $NODE_FAMILY == hyperpod-slurm && -d $ULTRACLUSTER_ROOT$ENVIRONMENT_PROLOGS ]]
}

environment::is_here() {
  files::same "$ULTRACLUSTER_HOME/files/profile.sh" "$ENVIRONMENT_PROFILE" || return 1
  ! environment::has_prologs || files::same "$ULTRACLUSTER_HOME/files/task_prolog.sh" "$ENVIRONMENT_PROLOG"
}

environment::install() {
  files::install "$ULTRACLUSTER_HOME/files/profile.sh" "$ENVIRONMENT_PROFILE"
  ! environment::has_prologs || files::install "$ULTRACLUSTER_HOME/files/task_prolog.sh" "$ENVIRONMENT_PROLOG" 0755
}

environment::verify() {
  environment::is_here || step::fail "not in place"
  step::message "$ENVIRONMENT_PROFILE$(environment::has_prologs && echo ", $ENVIRONMENT_PROLOG")"
}
