# shellcheck shell=bash
# Libraries: contract files software telemetry
# The agent that sends metrics of this node to the workspace (Prometheus in agent mode), the collectors of what no exporter has
# (metrics/), and the folder where training jobs leave their figures. What is missing degrades the view, never the node.

readonly METRICS_PROMETHEUS=/opt/ultracluster/prometheus
readonly METRICS_AGENT=/opt/ultracluster/metrics_agent
readonly METRICS_TOLD=$METRICS_AGENT/told.json
# the agent's unit writes it
readonly METRICS_CONFIGURATION=/run/ultracluster/agent/prometheus.yml
readonly METRICS_PYTHON=/opt/ultracluster/python
readonly METRICS_MOUNTS=/etc/enroot/mounts.d/61-ultracluster-metrics.fstab
readonly METRICS_METADATA=/usr/local/sbin/ultracluster-metadata
# file in files/ -> place on the node
declare -rA METRICS_FILES=(
  ['metrics_agent.py']=$METRICS_AGENT/configuration.py
  ['metrics_place.py']=$METRICS_AGENT/metrics_place.py
  ['ultracluster_metrics.py']=$METRICS_PYTHON/ultracluster_metrics.py
  ['metrics_refresh.service']=$TELEMETRY_UNITS/ultracluster-agent-refresh.service
)
# unit -> file in files/. In the order of their names they would start before what they need.
declare -rA METRICS_UNITS=(
  ['run-ultracluster-training.mount']=metrics_training.mount
  ['ultracluster-collectors.service']=metrics_collectors.service
  ['ultracluster-neuron.service']=metrics_neuron.service
  ['ultracluster-agent.service']=metrics_agent.service
  ['ultracluster-agent-refresh.timer']=metrics_refresh.timer
)

metrics::detect() {
  local missing
  telemetry::wanted "$METRICS_TOLD"
  telemetry::released prometheus
  software::for prometheus compute login controller
  ! telemetry::runs_here || [[ -n ${CLUSTER_METRICS_REMOTE_WRITE_URL:-} ]] || step::fail "cluster.json does not state where metrics go"
  software::settle prometheus "$(metrics::version)"
  missing=$(metrics::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

# prometheus, version 3.13.1 (branch: HEAD, revision: ...)
metrics::version() {
  { "$ULTRACLUSTER_ROOT$METRICS_PROMETHEUS/prometheus" --version 2>&1 || true; } | sed -n 's/.*version \([0-9][^ ]*\).*/\1/p' | head -n 1
}

# Units of this node, in the order in which they start: what jobs write to is on compute nodes, and so are Neuron devices.
metrics::units() {
  [[ $NODE_ROLE != compute || ! -e $ULTRACLUSTER_HOME/files/ultracluster_metrics.py ]] || echo run-ultracluster-training.mount
  [[ ! -e $ULTRACLUSTER_HOME/metrics/main.py ]] || echo ultracluster-collectors.service
  [[ $NODE_ROLE:$NODE_ACCELERATOR != compute:neuron || ! -e $ULTRACLUSTER_HOME/metrics/neuron.py ]] || echo ultracluster-neuron.service
  echo ultracluster-agent.service
  echo ultracluster-agent-refresh.timer
}

# Source below the scripts and place on the node, one per line
metrics::files() {
  local name file
  for name in "${!METRICS_FILES[@]}"; do
    [[ ! -e $ULTRACLUSTER_HOME/files/$name ]] || echo "files/$name ${METRICS_FILES[$name]}"
  done
  for file in "$ULTRACLUSTER_HOME"/metrics/*; do
    [[ ! -f $file || $file == *.md ]] || echo "metrics/${file##*/} $TELEMETRY_FOLDER/${file##*/}"
  done
  [[ ! -d $ULTRACLUSTER_ROOT/etc/enroot || $NODE_ROLE != compute ]] || echo "files/metrics_mounts.fstab $METRICS_MOUNTS"
}

# What is not as it should be, one thing per line
metrics::missing() {
  local source target unit
  telemetry::runs_here || return 0
  telemetry::has_user "$TELEMETRY_AGENT" || echo "its user"
  while read -r source target; do
    files::same "$ULTRACLUSTER_HOME/$source" "$target" || echo "$target"
  done < <(metrics::files)
  files::has "$METRICS_TOLD" "$(metrics::settings)" || echo "$METRICS_TOLD"
  files::has "$TELEMETRY_ENVIRONMENT" "$(telemetry::environment)" || echo "$TELEMETRY_ENVIRONMENT"
  while read -r unit; do
    telemetry::unit_missing "${METRICS_UNITS[$unit]}" "$unit"
  done < <(metrics::units)
}

# What is known of this node, for the agent's configuration and the collectors (node.sh): the keys of cluster.json's `metrics` and others.
# An accelerator that only the image shows is added.
metrics::settings() {
  local document=${CLUSTER_METRICS_DOCUMENT:-}
  [[ -z ${NODE_ACCELERATOR:-} || $document == *'"accelerator": '* ]] || document="{\"accelerator\": \"$NODE_ACCELERATOR\", ${document#\{}"
  printf '%s\n' "$document"
}

metrics::needs() {
  [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]] || software::lacking prometheus "$(metrics::version)"
}

metrics::install() {
  local unit
  if [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]]; then
    metrics::take_away
    return 0
  fi
  telemetry::runs_here || { metrics::program && return 0; }
  metrics::agent_user
  files::install_missing < <(metrics::files)
  metrics::settings | files::write "$METRICS_TOLD"
  telemetry::environment | files::write "$TELEMETRY_ENVIRONMENT"
  mkdir -p "$ULTRACLUSTER_ROOT$TELEMETRY_WRITTEN"
  # What training jobs load and write does without the agent, should its program not come.
  while read -r unit; do
    [[ $unit != ultracluster-agent.service ]] || metrics::program
    telemetry::unit "${METRICS_UNITS[$unit]}" "$unit"
  done < <(metrics::units)
}

metrics::program() {
  ! contract::fits prometheus "$(metrics::version)" || return 0
  software::unpack prometheus
  software::publish "$UNPACKED" "$METRICS_PROMETHEUS"
  software::clean prometheus
}

# The metadata, and with it the node's role, are for services that its rules know by number (metadata.sh): this one is new.
metrics::agent_user() {
  telemetry::has_user "$TELEMETRY_AGENT" && return 0
  telemetry::user "$TELEMETRY_AGENT"
  [[ ! -x $ULTRACLUSTER_ROOT$METRICS_METADATA ]] || bash "$ULTRACLUSTER_HOME/files/metadata_access.sh" up ||
    step::fail "the instance metadata stays closed to $TELEMETRY_AGENT"
}

# It was there, and is no more. The users stay: what they own has their number.
metrics::take_away() {
  local path
  telemetry::take_away "${!METRICS_UNITS[@]}"
  for path in "${METRICS_FILES[@]}" "$METRICS_MOUNTS" "$TELEMETRY_ENVIRONMENT"; do
    rm -f -- "$ULTRACLUSTER_ROOT$path"
  done
  # told.json last: by it the next run knows that there is something to do
  rm -rf -- "$ULTRACLUSTER_ROOT$TELEMETRY_WRITTEN" "$ULTRACLUSTER_ROOT/var/lib/ultracluster-agent" "$ULTRACLUSTER_ROOT$METRICS_PYTHON" \
    "$ULTRACLUSTER_ROOT$TELEMETRY_FOLDER" "$ULTRACLUSTER_ROOT$METRICS_PROMETHEUS" "$ULTRACLUSTER_ROOT$METRICS_AGENT"
}

# By Prometheus' own judge: an agent that refuses its configuration seems to run for a moment, and starts again and again.
metrics::judged() {
  local -r judge=$ULTRACLUSTER_ROOT$METRICS_PROMETHEUS/promtool config=$ULTRACLUSTER_ROOT$METRICS_CONFIGURATION
  local said
  [[ -x $judge && -e $config ]] || return 0
  said=$("$judge" check config --agent "$config" 2>&1) || step::fail "the agent's configuration is refused: ${said##*$'\n'}"
}

metrics::verify() {
  local missing
  if [[ -z ${CLUSTER_METRICS:-}${NODE_BAKE:-} ]]; then
    step::message "taken away"
    return 0
  fi
  step::about prometheus
  missing=$(metrics::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  ! telemetry::runs_here || metrics::judged
  software::proven prometheus "$(metrics::version)" "the agent sends to ${CLUSTER_METRICS_REGION:-}"
}
