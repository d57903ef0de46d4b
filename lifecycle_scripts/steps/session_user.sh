# shellcheck shell=bash
# Libraries: home mounts
# The user of people's sessions, where the environment file names none of the image: without sudo, and with the same ids on
# every node, so that files on shared file systems are theirs on all of them. A user of that name who is there already, of the
# image or of a directory, stays as he is.

# Above what images and ParallelCluster give to users, below what directories begin with
readonly SESSION_USER_ID=4999

session_user::detect() {
  local home
  [[ -n ${CLUSTER_SESSION_USER:-} ]] || step::not_applicable "sessions are those of a user of the image"
  home=$(session_user::home)
  [[ -n $home ]] || step::absent "no user $CLUSTER_SESSION_USER"
  [[ -d $ULTRACLUSTER_ROOT$home ]] || step::absent "no home $home"
  session_user::owns "$home" || step::absent "$home is not the home of $CLUSTER_SESSION_USER"
  step::present "in place"
}

# session_user::owns PATH: is it his? On a shared file system it may be of another cluster, whose user had another id.
session_user::owns() {
  [[ $(stat --format %u "$ULTRACLUSTER_ROOT$1") == "$(getent passwd "$CLUSTER_SESSION_USER" | cut -d : -f 3)" ]]
}

# Empty where there is no such user
session_user::home() {
  local entry
  entry=$(getent passwd "$CLUSTER_SESSION_USER") || return 0
  cut -d : -f 6 <<<"$entry"
}

session_user::install() {
  local home
  if [[ -z $(session_user::home) ]]; then
    getent group "$CLUSTER_SESSION_USER" >/dev/null || groupadd --gid "$SESSION_USER_ID" "$CLUSTER_SESSION_USER"
    useradd --uid "$SESSION_USER_ID" --gid "$CLUSTER_SESSION_USER" --shell /bin/bash --no-create-home "$CLUSTER_SESSION_USER" ||
      step::fail "useradd refused $CLUSTER_SESSION_USER; is the id $SESSION_USER_ID taken?"
  fi
  home=$(session_user::home)
  [[ -n $home ]] || step::fail "no user $CLUSTER_SESSION_USER after useradd"
  [[ -d $ULTRACLUSTER_ROOT$home ]] || session_user::make_home "$home"
}

# session_user::is_hidden PATH: would a home be made beneath a shared file system that is not mounted?
session_user::is_hidden() {
  [[ -n ${OPENZFS_PATH:-} && $1/ == "$OPENZFS_PATH"/* && -z $(mounts::at "$OPENZFS_PATH") ]]
}

# session_user::make_home PATH
session_user::make_home() {
  local status=0
  ! session_user::is_hidden "$1" || step::fail "$OPENZFS_PATH, which has the home, is not mounted"
  home::make "$1" /etc/skel "$CLUSTER_SESSION_USER:" || status=$?
  case $status in
    0) ;;
    2) step::fail "the file system of $1 does not let root give folders away (root squash)" ;;
    4) step::fail "the home $1 cannot be given to $CLUSTER_SESSION_USER: ${HOME_SAID##*$'\n'}" ;;
    *) step::fail "the home $1 cannot be made" ;;
  esac
}

session_user::verify() {
  local home groups
  home=$(session_user::home)
  [[ -n $home && -d $ULTRACLUSTER_ROOT$home ]] || step::fail "no user $CLUSTER_SESSION_USER with a home"
  session_user::owns "$home" ||
    step::fail "$home belongs to the id $(stat --format %u "$ULTRACLUSTER_ROOT$home"), not to $CLUSTER_SESSION_USER ($(id --user "$CLUSTER_SESSION_USER")): his sessions cannot write there"
  groups=" $(id --groups --name "$CLUSTER_SESSION_USER") "
  case $groups in
    *' sudo '* | *' wheel '* | *' admin '* | *' root '*)
      step::message "$CLUSTER_SESSION_USER may become root: in${groups% }"
      ;;
    *) step::message "$CLUSTER_SESSION_USER, $home" ;;
  esac
}
