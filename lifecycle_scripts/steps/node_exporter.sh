# shellcheck shell=bash
# Libraries: contract software telemetry
# node_exporter: metrics of the machine, and of the files that the collectors write (metrics.sh). On every node of a cluster that
# collects metrics; for the node's own agent only.

readonly NODE_EXPORTER_HOME=/opt/ultracluster/node-exporter
readonly NODE_EXPORTER_UNIT=ultracluster-node-exporter.service

node_exporter::detect() {
  local missing
  telemetry::wanted "$TELEMETRY_UNITS/$NODE_EXPORTER_UNIT"
  telemetry::released node-exporter
  software::for node-exporter compute login controller
  software::settle node-exporter "$(node_exporter::version)"
  missing=$(node_exporter::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "node_exporter $(node_exporter::version)"
}

# node_exporter, version 1.12.1 (branch: HEAD, revision: ...)
node_exporter::version() {
  { "$ULTRACLUSTER_ROOT$NODE_EXPORTER_HOME/node_exporter" --version 2>&1 || true; } | sed -n 's/.*version \([0-9][^ ]*\).*/\1/p' | head -n 1
}

# What is not as it should be, one thing per line
node_exporter::missing() {
  telemetry::runs_here || return 0
  telemetry::has_user "$TELEMETRY_EXPORTERS" || echo "its user"
  telemetry::unit_missing metrics_node_exporter.service "$NODE_EXPORTER_UNIT"
}

node_exporter::needs() {
  [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]] || software::lacking node-exporter "$(node_exporter::version)"
}

node_exporter::install() {
  if [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]]; then
    rm -rf -- "$ULTRACLUSTER_ROOT$NODE_EXPORTER_HOME"
    telemetry::take_away "$NODE_EXPORTER_UNIT"
    return 0
  fi
  contract::fits node-exporter "$(node_exporter::version)" || node_exporter::program
  telemetry::runs_here || return 0
  telemetry::user "$TELEMETRY_EXPORTERS"
  mkdir -p "$ULTRACLUSTER_ROOT$TELEMETRY_WRITTEN"
  telemetry::unit metrics_node_exporter.service "$NODE_EXPORTER_UNIT"
}

node_exporter::program() {
  software::unpack node-exporter
  software::publish "$UNPACKED" "$NODE_EXPORTER_HOME"
  software::clean node-exporter
}

node_exporter::verify() {
  local missing
  if [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]]; then
    step::message "taken away"
    return 0
  fi
  step::about node-exporter
  missing=$(node_exporter::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  software::proven node-exporter "$(node_exporter::version)" "node_exporter"
}
