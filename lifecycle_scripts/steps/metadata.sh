# shellcheck shell=bash
# Libraries: files steps
# The instance metadata is for services: who reaches it has the credentials of the node's role. Users are refused, in containers as
# well; their jobs get to S3 by a role of their own (job_access.sh). The work is in files/metadata_access.sh, which also runs at boot.

readonly METADATA_TOOL=/usr/local/sbin/ultracluster-metadata
readonly METADATA_UNIT=/etc/systemd/system/ultracluster-metadata.service
readonly METADATA_CONFIG=/etc/ultracluster/metadata

metadata::detect() {
  local missing
  case ${CLUSTER_METADATA:-} in
    services) missing=$(metadata::missing) ;;
    everyone)
      [[ -e $ULTRACLUSTER_ROOT$METADATA_UNIT ]] || step::not_applicable "access.node_metadata is everyone"
      missing="to be opened to everyone"
      ;;
    *) step::not_applicable "cluster.json does not ask for it" ;;
  esac
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present
}

# What is not as it should be, one thing per line
metadata::missing() {
  local status
  files::same "$ULTRACLUSTER_HOME/files/metadata_access.sh" "$METADATA_TOOL" || echo "$METADATA_TOOL"
  files::same "$ULTRACLUSTER_HOME/files/metadata_access.service" "$METADATA_UNIT" || echo "$METADATA_UNIT"
  [[ $(cat "$ULTRACLUSTER_ROOT$METADATA_CONFIG" 2>/dev/null) == "$(metadata::config)" ]] || echo "$METADATA_CONFIG"
  systemctl is-enabled --quiet ultracluster-metadata.service || echo "its service"
  status=$(metadata::run status) || echo "${status#absent: }"
}

metadata::config() {
  printf '# Ultracluster: users of services who reach the instance metadata, beside those in %s\nUSERS=%s\n' "$METADATA_TOOL" "${CLUSTER_METADATA_USERS:-}"
}

metadata::run() { bash "$ULTRACLUSTER_HOME/files/metadata_access.sh" "$1"; }

metadata::install() {
  local reason
  [[ $CLUSTER_METADATA == services ]] || metadata::open
  metadata::config | files::write "$METADATA_CONFIG"
  files::install "$ULTRACLUSTER_HOME/files/metadata_access.sh" "$METADATA_TOOL" 0755
  files::install "$ULTRACLUSTER_HOME/files/metadata_access.service" "$METADATA_UNIT"
  systemctl daemon-reload
  systemctl enable ultracluster-metadata.service
  # The last line that the tool prints says why it gave up.
  reason=$(metadata::run up 2>&1 | tee /dev/stderr | tail --lines 1) || metadata::fail "${reason:-the rules were not taken}"
  systemctl start ultracluster-metadata.service
}

# It was for services only, and is no more.
metadata::open() {
  metadata::run down
  systemctl disable ultracluster-metadata.service
  rm -f -- "$ULTRACLUSTER_ROOT$METADATA_UNIT" "$ULTRACLUSTER_ROOT$METADATA_TOOL" "$ULTRACLUSTER_ROOT$METADATA_CONFIG"
  exit 0
}

# A node that people log in to does not join with its credentials open (steps::is_required); any other does, degraded.
metadata::fail() {
  ! steps::is_for_people || step::fail "$1: people who log in here would reach the credentials of the node's role"
  step::fail "$1"
}

metadata::verify() {
  local missing
  if [[ $CLUSTER_METADATA != services ]]; then
    step::message "open to everyone"
    return 0
  fi
  missing=$(metadata::missing)
  [[ -z $missing ]] || metadata::fail "not as it should be: ${missing//$'\n'/, }"
  missing=$(metadata::run probe) || metadata::fail "$missing"
  step::message "$(metadata::run status)"
}
