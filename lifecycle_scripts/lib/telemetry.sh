# shellcheck shell=bash
# shellcheck disable=SC2034 # what steps read
# What the steps of metrics share: whether this node collects them, the users of the services, and their units.
[[ -z ${ULTRACLUSTER_LIB_TELEMETRY:-} ]] || return 0
ULTRACLUSTER_LIB_TELEMETRY=1

# Runs the exporters: it has no rights. The agent's own user is the only one of the two that reaches the node's role
# (files/metadata_access.sh).
readonly TELEMETRY_EXPORTERS=ultracluster-metrics
readonly TELEMETRY_AGENT=ultracluster-agent
readonly TELEMETRY_UNITS=/etc/systemd/system
readonly TELEMETRY_FOLDER=/opt/ultracluster/metrics
# What units read before they start
readonly TELEMETRY_ENVIRONMENT=/etc/ultracluster/metrics
readonly TELEMETRY_WRITTEN=/var/lib/ultracluster/metrics

# telemetry::wanted LEFT...: returns where this node collects metrics. Else it ends `detect`: one of LEFT is there from a time when it
# did, and has to go; or there is nothing to do.
telemetry::wanted() {
  local path
  [[ -z ${CLUSTER_METRICS:-} ]] || return 0
  # an image that is being built for clusters with metrics has the programs, and nothing that runs
  [[ -z ${NODE_BAKE:-} ]] || return 0
  for path in "$@"; do
    [[ ! -e $ULTRACLUSTER_ROOT$path ]] || step::absent "to be taken away"
  done
  step::not_applicable "metrics are not collected"
}

# Is there anything of a service to do here? Not in an image that is being built.
telemetry::runs_here() { [[ -n ${CLUSTER_METRICS:-} && -z ${NODE_BAKE:-} ]]; }

# telemetry::released COMPONENT: ends `detect` where metrics are collected, and the release does not have what it takes.
telemetry::released() {
  step::about "$1"
  [[ -n ${RELEASE["$1.version"]:-} || -z ${CLUSTER_METRICS:-} ]] || step::fail "release $CLUSTER_RELEASE has no $1"
}

# telemetry::user NAME: of a service, without a home and a way in
telemetry::user() {
  telemetry::has_user "$1" && return 0
  # with a group of its own on every system, whatever login.defs says
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$1" ||
    step::fail "useradd refused $1"
}

telemetry::has_user() { getent passwd "$1" >/dev/null; }

# telemetry::unit_missing FILE UNIT: what of a unit, whose text is files/FILE, is not as it should be, one thing per line
telemetry::unit_missing() {
  files::same "$ULTRACLUSTER_HOME/files/$1" "$TELEMETRY_UNITS/$2" || echo "$TELEMETRY_UNITS/$2"
  systemctl is-enabled --quiet "$2" || echo "$2 is not enabled"
  systemctl is-active --quiet "$2" || echo "$2 does not run (journalctl -u $2)"
}

# telemetry::unit FILE UNIT: in place, enabled, and started with what it reads now
telemetry::unit() {
  files::install "$ULTRACLUSTER_HOME/files/$1" "$TELEMETRY_UNITS/$2"
  systemctl daemon-reload
  systemctl enable "$2"
  systemctl restart "$2" || step::fail "$2 does not start: see journalctl -u $2"
}

# telemetry::take_away UNIT...: stopped, and forgotten
telemetry::take_away() {
  local unit
  for unit in "$@"; do
    [[ -e $ULTRACLUSTER_ROOT$TELEMETRY_UNITS/$unit ]] || continue
    systemctl disable "$unit" || true
    systemctl stop "$unit" || true
    rm -f -- "$ULTRACLUSTER_ROOT$TELEMETRY_UNITS/$unit"
  done
  systemctl daemon-reload
}

# telemetry::environment: what units read before they start
telemetry::environment() {
  printf 'SCRAPE_SECONDS=%s\n' "${CLUSTER_METRICS_SCRAPE_SECONDS:-}"
}
