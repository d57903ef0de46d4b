# shellcheck shell=bash
# Libraries: home mounts
# The image's users on a fresh shared file system: mounted over their homes, it hides these, and the session user has none
# (awslabs/awsome-distributed-ai copies homes over its mounts, too). What the image has is looked at beneath the mount, so it
# does not matter how often the node has booted. Others get a home when an administrator makes them one, or from
# pam_mkhomedir.

readonly HOMES_UNDER=/run/ultracluster/under

homes::detect() {
  local missing
  [[ -n ${OPENZFS_PATH:-} ]] || step::not_applicable "cluster.json names no shared file system for homes"
  [[ -n $(homes::users) ]] || step::not_applicable "no user of the image has a home in $OPENZFS_PATH"
  [[ -n $(mounts::at "$OPENZFS_PATH") ]] || step::not_applicable "$OPENZFS_PATH is not mounted"
  missing=$(homes::missing)
  [[ -z $missing ]] || step::absent "no home of ${missing//$'\n'/, }"
  step::present "in place"
}

# "NAME HOME", one per line: people and services that log in, not the system's own (login.defs, UID_MIN)
homes::users() {
  awk -F: -v below="$OPENZFS_PATH/" '$3 >= 1000 && $3 < 60000 && index($6 "/", below) == 1 { print $1, $6 }' "$ULTRACLUSTER_ROOT/etc/passwd" 2>/dev/null || true
}

# Names of those whose home is not there
homes::missing() {
  local name home
  while read -r name home; do
    home::exists "$home" || echo "$name"
  done < <(homes::users)
}

homes::install() {
  local name home
  local -r under=$ULTRACLUSTER_ROOT$HOMES_UNDER
  mkdir -p "$under"
  [[ -z $(mounts::at "$HOMES_UNDER") ]] || umount "$under" # of a run that was killed
  # The root file system alone, without what is mounted on it
  mount --bind "$ULTRACLUSTER_ROOT/" "$under"
  trap 'umount "$ULTRACLUSTER_ROOT$HOMES_UNDER"' EXIT
  while read -r name home; do
    home::exists "$home" || homes::copy "$name" "$home"
  done < <(homes::users)
  umount "$under"
  trap - EXIT
}

# homes::copy NAME HOME
homes::copy() {
  local status=0
  [[ -d $ULTRACLUSTER_ROOT$HOMES_UNDER$2 ]] || { log::warn "the image has no $2 either" && return 0; }
  home::make "$2" "$HOMES_UNDER$2" || status=$?
  case $status in
    0) log::info "copied $2" ;;
    3) step::fail "the home of $1 cannot be put at $2" ;;
    *) step::fail "the home of $1 cannot be copied to $OPENZFS_PATH: may this node change owners there (no_root_squash)?" ;;
  esac
}

homes::verify() {
  local missing
  missing=$(homes::missing)
  [[ -z $missing ]] || step::fail "no home of ${missing//$'\n'/, } in $OPENZFS_PATH"
  step::message "$(homes::users | cut -d ' ' -f 1 | tr '\n' ' ' | sed 's/ $//')"
}
