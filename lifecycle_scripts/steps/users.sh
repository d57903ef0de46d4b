# shellcheck shell=bash
# Libraries: files
# The environment's users: the same accounts on every node, as users.json says. The work is in files/people.py, which the pull of the
# cluster's state calls with each new document (state_pull.sh); this step lays it, and has it called once.

readonly USERS_FOLDER=/opt/ultracluster/people
# file in this folder -> place on the node
declare -rA USERS_FILES=(
  ['files/people_document.py']=$USERS_FOLDER/people_document.py
  ['files/people_accounts.py']=$USERS_FOLDER/people_accounts.py
  ['lib/home.sh']=$USERS_FOLDER/home.sh
  ['files/people.py']=/opt/ultracluster/state.d/10_users
)
readonly USERS_PULL=/usr/local/sbin/ultracluster-state
readonly USERS_DONE=/run/ultracluster/state/users

users::detect() {
  local missing
  [[ -n ${CLUSTER_STATE_URI:-} ]] || step::not_applicable "cluster.json names no place of documents"
  missing=$(users::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

# What is not as it should be, one thing per line
users::missing() {
  local name
  for name in "${!USERS_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/$name" "${USERS_FILES[$name]}" || echo "${USERS_FILES[$name]}"
  done
  [[ -e $ULTRACLUSTER_ROOT$USERS_DONE ]] || echo "the document"
}

users::install() {
  local name mode
  for name in "${!USERS_FILES[@]}"; do
    mode=0644
    [[ $name != */people.py ]] || mode=0755
    files::install "$ULTRACLUSTER_HOME/$name" "${USERS_FILES[$name]}" "$mode"
  done
  # A new helper of the handler, too
  rm -f -- "$ULTRACLUSTER_ROOT$USERS_DONE"
  # What is missing is told by verify, and tried again each minute.
  ULTRACLUSTER_STATE_WAIT=60 bash "$ULTRACLUSTER_ROOT$USERS_PULL" users || true
}

users::verify() {
  local status
  status=$(bash "$ULTRACLUSTER_ROOT$USERS_PULL" status users) || status="no word of $USERS_PULL"
  [[ -e $ULTRACLUSTER_ROOT$USERS_DONE && $status != *PROBLEM* ]] || step::fail "${status#users: }; it is tried again each minute"
  step::message "${status#users: }"
}
