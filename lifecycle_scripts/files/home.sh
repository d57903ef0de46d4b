#!/usr/bin/env bash
# ultracluster-home [USER]: makes the home of a user of the directory, once, with the right owner, whole or not at all: nodes that
# do it at once on a shared file system cannot disturb each other (one rename wins). Called by PAM (PAM_USER, a session opens),
# and by the service that asks for it where no PAM is: Session Manager starts a user's shell without.
set -Eeuo pipefail
PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 077

# LOWEST=, HIGHEST= (ids of the directory), HOMES= (folder of the homes), MOUNT= (file system that they are on)
readonly CONFIG=${ULTRACLUSTER_ROOT:-}/etc/ultracluster/homes
readonly MAKE=/opt/ultracluster/directory/home.sh
readonly LOCK=/run/ultracluster-home.lock

stop() {
  echo "ultracluster-home: $1" >&2
  exit 1
}

main() {
  local -r user=${1:-${PAM_USER:-}}
  local LOWEST='' HIGHEST='' HOMES='' MOUNT='' entry uid gid home lock status=0
  # shellcheck source=/dev/null
  source "$CONFIG"
  [[ $user =~ ^[A-Za-z0-9_][A-Za-z0-9_.@-]*$ ]] || stop "no name of a user"
  entry=$(getent passwd "$user") || stop "this node knows no user $user"
  IFS=: read -r _ _ uid gid _ home _ <<<"$entry"
  # Others have a home, or get theirs elsewhere.
  ((uid >= LOWEST && uid <= HIGHEST)) && [[ $home == "$HOMES/"* && ${home#"$HOMES/"} != */* ]] || return 0
  [[ ! -d $home ]] || return 0
  [[ -z $MOUNT ]] || mountpoint --quiet "$MOUNT" || stop "$MOUNT is not mounted: no home is made below it"
  [[ -d $HOMES ]] || (umask 022 && mkdir --parents "$HOMES")
  # One at a time on this node; lib/home.sh settles it between nodes.
  exec {lock}>"$LOCK"
  flock --wait 60 "$lock" || stop "another home is being made"
  [[ ! -d $home ]] || return 0
  bash "$MAKE" "$home" /etc/skel "$uid:$gid" || status=$?
  case $status in
    0) ;;
    2) stop "the file system of $home does not let root give folders away (root squash)" ;;
    *) stop "$home cannot be made" ;;
  esac
}

main "$@"
